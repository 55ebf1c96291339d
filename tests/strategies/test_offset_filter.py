"""Filters with a common offset: bounds against every neighbour, against adversaries, and the figures they buy."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, product
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows import reading
from dpwindows.ask.privacy import ApproxDP, EventLevel, ItemAddRemove, ItemLevel, Unit
from dpwindows.ask.queries import Cumulative, Rolling, WindowFamily
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.offset_patterns import gram, rolling_offset_add_remove_l2
from dpwindows.kernel.families.run_patterns import Lags, neighbour_bound
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.filters import OffsetFilter
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import Case, certify
from dpwindows.strategies import candidates, offset_filter, stream_candidates
from dpwindows.strategies.search.noise_scales import unit_scale
from dpwindows.strategies.search.witnesses import searched, with_witness
from dpwindows.strategies.strategy import score
from tests.kernel.cases import PRESENCE, bound_of
from tests.single_item import all_logs, differences

ADD_REMOVE = ItemAddRemove()


def problem(
    window: WindowFamily, *thresholds: int, steps: int = 365, unit: Unit = ADD_REMOVE, bits: int = 24
) -> Problem:
    scale = unit_scale(ApproxDP(1.0, 1e-6), GAUSSIAN)
    return Problem(window, steps, thresholds or (1,), unit, GAUSSIAN, scale, bits=bits)


def designed(window: WindowFamily, *thresholds: int, steps: int = 365, bits: int = 24) -> Design:
    found = offset_filter.design(problem(window, *thresholds, steps=steps, bits=bits))
    assert found is not None
    return with_witness(found)


def matrix_of(design: Design) -> NDArray[np.int64]:
    assert isinstance(design.shape, Series)
    assert isinstance(design.shape.map, MatrixCounter)
    return np.asarray(design.shape.map.weights)


def truth(weights: NDArray[np.int64], window: Rolling, thresholds: tuple[int, ...]) -> int:
    """The largest squared norm over all logs of one item, in exact integers."""
    steps, most = len(weights), max(thresholds)
    while (most + 2) ** steps <= 20_000 and most < max(thresholds) + 1:
        most += 1
    applied = weights.astype(object)
    largest = 0
    for piece in differences(all_logs(steps, most), window, thresholds, ADD_REMOVE):
        increments = np.diff(piece, axis=2, prepend=0)
        for change in increments:
            largest = max(largest, sum(int(value) ** 2 for series in change for value in applied @ series))
    return largest


SMALL = [
    *((length, (1,), steps) for steps in (2, 3, 5, 8) for length in range(1, steps + 1)),
    *((length, thresholds, steps) for thresholds in ((2,), (1, 2)) for steps in (3, 5, 6) for length in (1, 2, 4)),
]


@pytest.mark.quick(15)
@pytest.mark.parametrize(("length", "thresholds", "steps"), SMALL, ids=str)
def test_the_bound_holds_for_every_item(length: int, thresholds: tuple[int, ...], steps: int) -> None:
    """For the strategy's own integers on fine and coarse lattices, and for matrices that no strategy would make."""
    rng = np.random.default_rng(steps * 100 + length)
    matrices = [matrix_of(designed(Rolling(length), *thresholds, steps=steps, bits=bits)) for bits in (4, 24)]
    for spread in (2, 40):
        made = np.tril(rng.integers(-spread, spread + 1, size=(steps, steps)))
        np.fill_diagonal(made, rng.integers(1, 60, size=steps))
        matrices.append(made)
    for weights in matrices:
        true = truth(weights, Rolling(length), thresholds)
        assert true <= bound_of(
            rolling_offset_add_remove_l2, Rolling(length), MatrixCounter(weights), steps, thresholds, PRESENCE
        )


def legal(length: int, starts: NDArray[np.int64], lengths: NDArray[np.int64], steps: int) -> NDArray[np.float64]:
    """What an item is counted at that comes at each start and stays for so many steps, at least a window."""
    pattern = np.zeros(steps)
    for start, many in zip(starts, lengths, strict=True):
        pattern[start : start + max(length, int(many))] = 1
    return pattern


@pytest.mark.parametrize(("length", "looseness"), [(1, 1.02), (7, 1.1), (28, 1.1)])
def test_an_adversary_does_not_pass_the_bound_and_comes_near(length: int, looseness: float) -> None:
    design, steps, rng = designed(Rolling(length)), 365, np.random.default_rng(length)
    cost = gram(matrix_of(design)).astype(np.float64)
    best = 0.0
    for gap in range(1, 16):
        for longer in range(2):
            starts = np.arange(0, steps, length + longer + gap)
            for count in np.unique(np.linspace(1, len(starts), 20).astype(int)):
                pattern = legal(length, starts[:count], np.full(count, length + longer), steps)
                best = max(best, float(pattern @ cost @ pattern))
    # Then single steps of the gaps' lengths, at random, as long as they gain.
    starts = np.arange(0, steps, length + 2)
    reached = 0.0
    for _ in range(600):
        tried = np.sort(np.unique(np.clip(starts + (rng.random(len(starts)) < 0.05) * rng.integers(-3, 4), 0, steps)))
        tried = tried[np.diff(tried, prepend=-steps) > length]
        pattern = legal(length, tried, np.full(len(tried), length), steps)
        found = float(pattern @ cost @ pattern)
        if found > reached:
            starts, reached = tried, found
    best = max(best, reached)
    assert best <= design.sensitivity <= looseness * best


@pytest.mark.parametrize(("length", "std", "least"), [(1, 42.6, 42.47), (7, 37.6, 34.7), (28, 28.6, 25.6)])
def test_figures_and_the_limit_of_random_items(length: int, std: float, least: float) -> None:
    """No Gaussian noise errs less than the limit, from the covariance of the series of items drawn at random."""
    assert least <= score(designed(Rolling(length))) <= std


def test_the_planner_chooses_it() -> None:
    found = candidates(problem(Rolling(7), steps=60))
    assert found[0].strategy == "offset-filter"
    assert score(found[0]) < 0.9 * score(found[1])


def run_lengths(pattern: tuple[int, ...]) -> list[int]:
    return [len(list(run)) for one, run in groupby(pattern) if one]


@pytest.mark.parametrize("seed", range(24))
def test_runs_with_a_price_for_ones_and_gaps_cut_short(seed: int) -> None:
    rng = np.random.default_rng(seed)
    places, runs, shortest = int(rng.integers(2, 11)), int(rng.integers(1, 6)), int(rng.integers(1, 4))
    tail = rng.integers(-30, 3 if seed % 3 else 30, size=places - 1)
    lags = Lags((int(rng.integers(30, 120)), *(int(lag) for lag in tail)), 0)
    allowed = [
        ones
        for g in product((0, 1), repeat=places)
        if len(lengths := run_lengths(g)) <= runs and all(n >= shortest for n in lengths[:-1])
        for ones in [[place for place, one in enumerate(g) if one]]
    ]
    for price in (0, lags.values[0] // 3, lags.values[0]):
        worst = max(sum(lags.values[abs(i - j)] - price * (i == j) for i in g for j in g) for g in allowed)
        for place in (0, 1, lags.values[0] // 5):
            for widest in (None, 1, 2, 4):
                assert neighbour_bound(lags, runs, place, shortest=shortest, price=price, widest=widest) >= worst


def test_a_stream_with_a_horizon_measures_the_same_integers() -> None:
    asked = problem(Rolling(7), steps=60)
    streamed = {design.strategy: design for design in stream_candidates(asked, 60)}
    assert next(iter(streamed)) == "offset-filter"
    batch, stream = designed(Rolling(7), steps=60), streamed["offset-filter"]
    assert stream.sensitivity == batch.sensitivity
    assert stream.proof == batch.proof == "rolling-offset-presence"
    assert np.allclose(reading.of(stream).variance(), reading.of(batch).variance(), rtol=1e-9)


def test_what_it_is_not_for() -> None:
    for unit in (EventLevel(), ItemLevel()):
        assert offset_filter.design(problem(Rolling(7), unit=unit)) is None
    assert offset_filter.design(problem(Cumulative())) is None
    assert offset_filter.design(problem(Rolling(7), steps=offset_filter.LONGEST + 1)) is None
    assert offset_filter.design(Problem(Rolling(7), 30, (1,), ADD_REMOVE, LAPLACE, 1.0)) is None


@pytest.mark.parametrize("many", [False, True])
def test_another_horizon_or_unit_is_not_certified(many: bool) -> None:
    filtered = offset_filter.filtered(0.6, 0.75, 0.2, 6, 2.0**24)
    measured = filtered if many else MatrixCounter(matrix_of(designed(Rolling(3), steps=6)))
    for unit, steps in ((EventLevel(), 6), (ItemLevel(), 6), *((ADD_REMOVE, other) for other in (5, 7, None))):
        with pytest.raises(NotCertifiedError):
            certify(Case(problem(Rolling(3), steps=6, unit=unit), measured, steps, searched))
    assert certify(Case(problem(Rolling(3), steps=6), measured, 6, searched))[1] == "rolling-offset-presence"


# --- In many steps ----------------------------------------------------------------------------------------------------

MANY = offset_filter.DENSE + 1


@pytest.mark.quick(1)
@pytest.mark.search(1)
@pytest.mark.parametrize(("length", "most"), [(28, 1.007), (1, 1.002), (7, 1.003), (64, 1.011)])
def test_one_step_more_than_matrices_are_for_costs_next_to_nothing(length: int, most: float) -> None:
    few, many = (designed(Rolling(length), steps=steps) for steps in (MANY - 1, MANY))
    assert isinstance(few.shape, Series)
    assert isinstance(many.shape, Series)
    assert isinstance(few.shape.map, MatrixCounter)
    assert isinstance(many.shape.map, OffsetFilter)
    assert score(few) < score(many) < most * score(few)


@pytest.mark.slow
def test_no_item_passes_the_bound_in_many_steps() -> None:
    design, steps, length = designed(Rolling(28), steps=700), 700, 28
    assert isinstance(design.shape, Series)
    assert isinstance(design.shape.map, OffsetFilter)
    best = 0
    for gap in range(1, 16):
        for longer in range(3):
            starts = np.arange(0, steps, length + longer + gap)
            counts = np.unique(np.linspace(1, len(starts), 12).astype(int))
            patterns = [legal(length, starts[:count], np.full(count, length + longer), steps) for count in counts]
            moved = design.shape.map.encode(np.stack(patterns, axis=1).astype(np.int64)).astype(object)
            best = max(best, *(moved**2).sum(axis=0))
    assert best <= design.sensitivity <= 1.1 * best


def test_a_stream_of_many_steps_measures_the_same_integers_and_reads_them_alike() -> None:
    measure = offset_filter.filtered(0.6, 0.75, 0.2, 40, 2.0**24)
    reader = reading.step_reader(measure)
    rng = np.random.default_rng(0)
    for largest in (1000, 2**45):
        exact = rng.integers(0, largest, size=40)
        kept, decoded, measured = measure.fresh(1), reader.fresh(1), []
        for position, value in enumerate(exact, 1):
            newest = exact[position - 1 : position]
            numbers, kept = measure.encode_step(position, newest, kept)
            measured.append(int(numbers[0, 0]))
            estimate, decoded = reader.decode_step(position, np.array([[float(measured[-1])]]), decoded)
            assert float(estimate[0]) == pytest.approx(value, rel=1e-6)
        assert measured == [int(value) for value in measure.encode(exact)]
    asked = problem(Rolling(7), steps=MANY)
    streamed = {design.strategy: design for design in stream_candidates(asked, MANY)}["offset-filter"]
    batch = designed(Rolling(7), steps=MANY)
    assert streamed.sensitivity == batch.sensitivity
    assert streamed.proof == "rolling-offset-presence"
    assert np.allclose(reading.of(streamed).variance(), reading.of(batch).variance())


def test_the_matrix_of_many_steps_is_applied_exactly_and_undone() -> None:
    measured = offset_filter.filtered(0.6, 0.75, 0.2, 30, 2.0**24)
    matrix = np.array([np.pad(measured.row(t), (0, 30 - t)) for t in range(1, 31)])
    wide = replace(
        measured,
        weights=tuple(weight << 40 for weight in measured.weights),
        offsets=tuple(offset << 40 for offset in measured.offsets),
        shift=measured.shift + 40,
    )
    rng = np.random.default_rng(1)
    for largest in (2**38, 2**63 - 1):
        exact = rng.integers(-largest, largest, size=(30, 2), endpoint=True)
        for one in (measured, wide):
            assert (one.encode(exact).astype(object) == matrix.astype(object) @ exact.astype(object)).all()
    with pytest.raises(ValueError, match="for 30 positions"):
        measured.encode(exact[:29])
    reader = reading.series_reader(measured, 30)
    decoder = reader.decode(np.eye(30))
    assert np.allclose(decoder @ matrix, np.eye(30), atol=1e-9)
    assert np.allclose(reader.variance(), (decoder**2).sum(axis=1), rtol=1e-5)
    fourth = reader.fourth_moment()
    assert fourth is not None
    assert np.allclose(fourth, (decoder**4).sum(axis=1), rtol=1e-5)
    wanted = rng.normal(size=(30, 3))
    assert np.allclose(reader.transposed(wanted), decoder.T @ wanted)


def test_offsets_without_a_proof_are_not_certified() -> None:
    measured = OffsetFilter((4, -1), (9, 9, 9), (1, 1, 1), 0)
    with pytest.raises(NotCertifiedError):
        certify(Case(problem(Rolling(3), steps=3), measured, 3, searched))


def test_weights_that_are_not_plain_whole_numbers_are_not_certified() -> None:
    """They would wrap, or be cut off, in a bound that takes them for Python's."""
    asked, plain = problem(Rolling(3), steps=3), OffsetFilter((4, -1), (9, 8, 7), (1, 1, 1), 0)
    assert Design(asked, Series(plain), "").sensitivity > 0
    one = cast("int", np.int64(4))
    for made in (
        replace(plain, taps=(one, -1)),
        replace(plain, weights=(9, cast("int", 8.5), 7)),
        replace(plain, offsets=cast("tuple[int, ...]", np.ones(3, dtype=np.int64))),
        replace(plain, shift=one),
    ):
        with pytest.raises(NotCertifiedError):
            Design(asked, Series(made), "").certify(searched)
