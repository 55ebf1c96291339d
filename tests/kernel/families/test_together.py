"""Rolling counts measured together: filters against their matrix, and the bound against every neighbour."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import Rolling, RollingTogether
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import StepDesign
from dpwindows.kernel.families.together import Together, rolling_together_event_l2
from dpwindows.kernel.problem import Problem
from tests.kernel.cases import bound_of
from tests.kernel.matrix_filters import STEPS, drawn_filter, run, whole
from tests.kernel.truth import truth
from tests.single_item import SingleItem

LENGTHS = [(1, 2), (2, 1), (1, 3), (2, 3), (3, 3), (1, 2, 3), (2,)]


def together(taps: tuple[int, ...], lengths: tuple[int, ...]) -> int:
    """The bound of a filter on rolling counts of several lengths."""
    return bound_of(rolling_together_event_l2, RollingTogether(lengths), Together(lengths, taps), None)


def drawn(lengths: tuple[int, ...], memory: int, seed: int) -> Together:
    lanes = len(lengths)
    taps = np.random.default_rng([*lengths, memory, seed]).integers(-9, 10, (memory + 1, lanes, lanes))
    return Together(lengths, tuple(taps.ravel().tolist()))


def problem_of(lengths: tuple[int, ...], steps: int, unit: Unit) -> Problem:
    return Problem(RollingTogether(lengths), steps, (1,), unit, GAUSSIAN, 1.0)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_the_bound_is_reached_where_there_is_room(lengths: tuple[int, ...]) -> None:
    longest, memory = max(lengths), 2
    mixed = drawn(lengths, memory, 7)
    # Room for the occurrence before, the ends that it changes, and all that the filter makes of them.
    steps = longest + longest + memory
    design = StepDesign(problem_of(lengths, steps, EventLevel()), mixed, "", horizon=steps)
    assert truth(design, 1) == together(mixed.taps, lengths)
    # Numbers that change: as far as the longest window and the filter reach, or all where the horizon comes sooner.
    moved = {
        horizon: StepDesign(problem_of(lengths, steps, EventLevel()), mixed, "", horizon=horizon).certificate.moved
        for horizon in (None, longest)
    }
    assert moved == {None: (longest + memory) * len(lengths), longest: longest * len(lengths)}


def test_numbers_beyond_64_bits_do_not_wrap() -> None:
    small, large = (1, -2, 3, 4, 5, -6, 7, 8), 1 << 45
    scaled = tuple(large * tap for tap in small)
    found = together(scaled, (2, 5))
    assert found == large**2 * together(small, (2, 5)) > 1 << 63


def test_of_one_length_alone_it_is_the_norm_of_the_longest_interval() -> None:
    taps = (16, -4, -3, -2, -1)
    padded = np.convolve(taps, np.ones(6, dtype=np.int64))
    intervals = [np.convolve(taps, np.ones(n, dtype=np.int64)) for n in range(1, 7)]
    assert int((padded**2).sum()) == max(int((one**2).sum()) for one in intervals)
    assert together(taps, (6,)) == int((padded**2).sum())


@pytest.mark.parametrize(
    ("change", "lengths"),
    [
        ({"unit": ItemLevel()}, (1, 2)),
        ({"unit": ItemAddRemove()}, (1, 2)),
        ({"unit": ItemPerPeriod(2)}, (1, 2)),
        ({"law": LAPLACE}, (1, 2)),
        ({"thresholds": (2,)}, (1, 2)),
        ({"thresholds": (1, 2)}, (1, 2)),
        ({"window": Rolling(2)}, (1, 2)),
        # Other windows than are certified, and in another order.
        ({}, (1, 3)),
        ({}, (2, 1)),
    ],
)
def test_what_no_proof_covers_is_refused(change: dict[str, object], lengths: tuple[int, ...]) -> None:
    known = {"window": RollingTogether((1, 2)), "thresholds": (1,), "unit": EventLevel(), "law": GAUSSIAN}
    problem = Problem(steps=4, noise_per_unit=1.0, **(known | change))  # type: ignore[arg-type]
    shape = Together(lengths, tuple(range(1, len(lengths) ** 2 + 1)))
    with pytest.raises(NotCertifiedError):
        _ = StepDesign(problem, shape, "", horizon=4).certificate


@pytest.mark.parametrize("taps", [(), (1, 2, 3), tuple(range(9))], ids=len)
def test_taps_for_more_or_fewer_series_than_windows_are_refused(taps: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="no square matrices for 2 lengths"):
        Together((1, 2), taps)


def test_a_shape_encodes_what_its_certificate_is_of() -> None:
    mixed = drawn((2, 3), 2, 0)
    design = StepDesign(problem_of((2, 3), 5, EventLevel()), mixed, "", horizon=5)
    assert design.problem.rule == EVERY_OCCURRENCE == CountingRule()
    log = SingleItem((0, 2, 0, 0, 1))
    counts = np.stack([log.rolling(1, 2), log.rolling(1, 3)], axis=1)
    rows = [sum(mixed.matrices[back] @ counts[t - back] for back in range(min(t, mixed.memory) + 1)) for t in range(5)]
    np.testing.assert_array_equal(design.encode(log, 1), np.concatenate(rows))


@pytest.mark.parametrize(("lanes", "memory"), [(1, 3), (2, 0), (2, 4), (3, 20)])
def test_it_measures_as_the_whole_matrix_does(lanes: int, memory: int) -> None:
    mixed, rng = drawn_filter(lanes, memory), np.random.default_rng(0)
    series = rng.integers(0, 1000, (STEPS, lanes))
    np.testing.assert_array_equal(run(mixed, series).ravel(), whole(mixed) @ series.ravel())


def test_counts_and_weights_beyond_64_bits_do_not_wrap() -> None:
    mixed = drawn_filter(2, 2, 1 << 40)
    series = np.full((STEPS, 2), 1 << 40, dtype=np.int64)
    measured = run(mixed, series)
    np.testing.assert_array_equal(measured.ravel(), whole(mixed) @ series.astype(object).ravel())
    assert max(map(abs, measured.ravel().tolist())) > 1 << 63
