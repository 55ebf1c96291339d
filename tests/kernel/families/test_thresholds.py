"""Thresholds measured apart and bounded together: against every history, brute force and adversaries."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import ApproxDP, EventLevel, ItemAddRemove, ItemLevel, Unit
from dpwindows.ask.queries import Cumulative, Rolling
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.certificate import Certificate, NotCertifiedError
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.offset_patterns import gram, rolling_offset_add_remove_l2
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.thresholds import (
    SeriesByThreshold,
    best_chain_of_runs,
    most_runs_inside,
    rolling_thresholds_l2,
    worth_inside,
)
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import threshold_filters
from dpwindows.strategies.search.noise_scales import unit_scale
from dpwindows.strategies.search.witnesses import with_witness
from tests.kernel.cases import PRESENCE, bound_of
from tests.single_item import Ints, all_logs, joint_answers


def problem(length: int, *thresholds: int, steps: int, unit: Unit = ItemAddRemove(), bits: int = 24) -> Problem:  # noqa: B008
    scale = unit_scale(ApproxDP(1.0, 1e-6), GAUSSIAN)
    return Problem(Rolling(length), steps, thresholds, unit, GAUSSIAN, scale, bits=bits)


@cache
def designed(length: int, *thresholds: int, steps: int, bits: int = 24) -> Design:
    found = threshold_filters.design(problem(length, *thresholds, steps=steps, bits=bits))
    assert found is not None
    return with_witness(found)


def matrices_of(design: Design) -> list[Ints]:
    return [one.weights for one in maps_of(design)]


def maps_of(design: Design) -> tuple[MatrixCounter, ...]:
    assert isinstance(design.shape, SeriesByThreshold)
    found = tuple(one for one in design.shape.maps if isinstance(one, MatrixCounter))
    assert len(found) == len(design.shape.maps)
    return found


MAPS = maps_of(designed(2, 1, 2, steps=6))
ASKED = problem(2, 1, 2, steps=6)


def together(matrices: Sequence[NDArray[Any]], length: int, thresholds: tuple[int, ...], unit: Unit) -> int:
    """The bound of a matrix for each threshold."""
    shape = SeriesByThreshold(thresholds, tuple(map(MatrixCounter, matrices)))
    return bound_of(rolling_thresholds_l2, Rolling(length), shape, len(matrices[0]), thresholds, unit)


def certified(asked: Problem, maps: Any, steps: int | None) -> Certificate:
    """The certificate of a map for each threshold in a stream."""
    return with_witness(StepDesign(asked, SeriesByThreshold((1, 2), maps), "", horizon=steps)).certificate


@pytest.mark.parametrize(("length", "k"), [(1, 2), (2, 2), (3, 2), (2, 3), (3, 3)])
def test_runs_inside_a_run_are_no_more_than_is_said(length: int, k: int) -> None:
    """Over every log; and what is said is reached for most lengths of runs."""
    steps = 9 if k == 2 else 7
    answers = joint_answers(all_logs(steps, k), Rolling(length), (1, k))
    largest = dict.fromkeys(product(range(1, steps + 1), (False, True)), 0)
    patterns = np.unique(answers.reshape(len(answers), -1), axis=0).reshape(-1, 2, steps)
    for outer, inside in patterns:
        edges = np.flatnonzero(np.diff(outer, prepend=0, append=0))
        assert (inside <= outer).all()
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            starts = int((np.diff(inside[begin:end], prepend=0) == 1).sum())
            which = int(end - begin), bool(end == steps)
            assert which[0] >= length or which[1]
            largest[which] = max(largest[which], starts)
    said = {(n, last): most_runs_inside(k, length, n, last=last) for n, last in largest}
    assert all(largest[which] <= said[which] for which in largest)
    seen = [which for which in largest if largest[which]]
    assert sum(largest[which] == said[which] for which in seen) >= 0.6 * len(seen)


def concave(rng: np.random.Generator, places: int) -> NDArray[Any]:
    rises = np.sort(rng.integers(-30, 60, size=places))[::-1]
    return np.concatenate([[0], np.cumsum(rises)]).astype(object)


def chains(places: int) -> list[list[tuple[int, int]]]:
    """The runs (first place, length) of every 0/1 series."""
    found = []
    for series in product((0, 1), repeat=places):
        edges = np.flatnonzero(np.diff(np.array(series), prepend=0, append=0))
        found.append([(int(a), int(b - a)) for a, b in zip(edges[::2], edges[1::2], strict=True)])
    return found


@pytest.mark.parametrize("seed", range(6))
def test_worth_and_chains_are_those_of_brute_force(seed: int) -> None:
    rng, places, length = np.random.default_rng(seed), 11, int(np.random.default_rng(seed).integers(1, 4))
    worth = concave(rng, places)
    for last in (False, True):
        found, held = worth_inside(worth, 3, length, last=last)
        for n in range(places + 1):
            runs = most_runs_inside(3, length, n, last=last)
            splits = [[size for _, size in chain] for chain in chains(n) if len(chain) <= runs]
            assert found[n] == max(sum(worth[size] for size in split) for split in splits)
            assert any(sum(split) == held[n] and sum(worth[size] for size in split) == found[n] for split in splits)
    inner = rng.integers(-50, 50, size=places + 1).astype(object)
    last_worth = inner + rng.integers(0, 20, size=places + 1)
    most, chosen, cut = best_chain_of_runs(inner, last_worth, length)
    expected = 0
    for chain in chains(places):
        value = 0
        for place, (begin, size) in enumerate(chain):
            final = place == len(chain) - 1 and begin + size == places
            if size < length and not final:
                break
            value += last_worth[size] if final else inner[size]
        else:
            expected = max(expected, value)
    assert most == expected
    assert most == sum(inner[size] for size in chosen) + (last_worth[cut] if cut else 0)


def test_no_number_wraps_on_the_finest_lattice() -> None:
    coarse = designed(2, 1, 2, steps=6, bits=20)
    matrices = matrices_of(coarse)
    huge = [one << 38 for one in matrices]
    bound = together(matrices, 2, (1, 2), PRESENCE)
    assert together(huge, 2, (1, 2), PRESENCE) >= (bound << 76) * 0.999


# Sums of the counts themselves: what two ones in different runs cost together is more than apart.
SUMS = np.tril(np.arange(1, 7)[:, None] - np.arange(6)[None, :])


def test_the_least_number_of_64_bits_is_not_taken_for_a_small_one() -> None:
    """Its absolute value is none of 64 bits: NumPy's is the number itself."""
    least = -(1 << 63)
    weights = np.eye(6, dtype=np.int64)
    weights[5, 0] = least
    exact = weights.astype(object)
    exact[:, :-1] = exact[:, :-1] - exact[:, 1:]
    assert (gram(weights).astype(object) == exact.T @ exact).all()
    added = np.eye(6, dtype=object)[0].cumsum()
    true = int(((exact @ added) ** 2).sum())
    assert true > 1 << 125
    maps = (MatrixCounter(weights), MatrixCounter(weights))
    with suppress(NotCertifiedError):
        assert certified(ASKED, maps, 6).bound >= true

    assert bound_of(rolling_offset_add_remove_l2, Rolling(3), MatrixCounter(weights), 6, (1,), PRESENCE) >= true
    cumulative = replace(ASKED, window=Cumulative(), thresholds=(1,))
    assert Design(cumulative, Series(MatrixCounter(weights)), "").sensitivity >= least**2


def test_entries_that_are_positive_beside_the_diagonal_are_refused() -> None:
    with pytest.raises(NotCertifiedError):
        certified(ASKED, (MatrixCounter(SUMS), MatrixCounter(SUMS)), 6)


@pytest.mark.parametrize(
    ("asked", "maps", "steps"),
    [
        (replace(ASKED, unit=EventLevel()), MAPS, 6),
        (replace(ASKED, law=LAPLACE), MAPS, 6),
        (replace(ASKED, window=Cumulative()), MAPS, 6),
        (replace(ASKED, rule=CountingRule(max_runs=2)), MAPS, 6),
        (replace(ASKED, rule=CountingRule(max_occurrences=2)), MAPS, 6),
        (replace(ASKED, thresholds=(1, 2, 3)), MAPS, 6),
        (ASKED, MAPS, 7),
        (ASKED, MAPS, None),
        (ASKED, MAPS[:1], 6),
        (ASKED, (MAPS[0], Identity(1 << 24)), 6),
        (ASKED, (MAPS[0], MatrixCounter(SUMS)), 6),
    ],
)
def test_what_no_proof_covers_is_refused(asked: Problem, maps: tuple[Any, ...], steps: int | None) -> None:
    with pytest.raises(NotCertifiedError):
        certified(asked, maps, steps)


class Sly(tuple):  # type: ignore[type-arg]
    """Hands out other maps by number than in a row."""

    def __getitem__(self, _: Any) -> Any:
        return MatrixCounter(MAPS[0].weights * 1000)


@pytest.mark.parametrize(
    ("asked", "maps"),
    [
        (ASKED, Sly(MAPS)),
        (ASKED, list(MAPS)),
    ],
)
def test_a_container_is_what_it_seems(asked: Problem, maps: Any) -> None:
    with pytest.raises(NotCertifiedError):
        certified(asked, maps, 6)


def test_items_that_change_cost_four_times_those_that_come_and_move_a_number_at_every_step() -> None:
    formal = certified(replace(ASKED, unit=ItemLevel()), MAPS, 6)
    assert formal.bound == 4 * certified(ASKED, MAPS, 6).bound
    assert formal.moved == 6


def test_a_wider_window_or_horizon_costs_no_less() -> None:
    bounds = [designed(2, 1, 2, steps=steps).sensitivity / 4.0**24 for steps in (4, 8, 16, 32)]
    assert all(one <= other * 1.01 for one, other in pairwise(bounds))
