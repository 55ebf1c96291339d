"""Filters with an offset, bounded by chains of runs: against every history, brute force and adversaries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import groupby, pairwise, product
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
from dpwindows.kernel.families.chains_of_runs import (
    Lane,
    SeriesByThreshold,
    best_chain_of_runs,
    chain_bound,
    gram,
    largest_by_distance,
    most_runs_inside,
    offset_norm,
    rolling_chains_l2,
    worth_inside,
)
from dpwindows.kernel.families.run_patterns import Lags
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.filters import Identity, OffsetFilter
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import offset_filter, threshold_filters
from dpwindows.strategies.search.noise_scales import unit_scale
from dpwindows.strategies.search.witnesses import with_witness
from tests.kernel.cases import PRESENCE, bound_of, case
from tests.single_item import all_logs, joint_answers


def problem(length: int, *thresholds: int, steps: int, unit: Unit = ItemAddRemove(), bits: int = 24) -> Problem:  # noqa: B008
    scale = unit_scale(ApproxDP(1.0, 1e-6), GAUSSIAN)
    return Problem(Rolling(length), steps, thresholds, unit, GAUSSIAN, scale, bits=bits)


@cache
def designed(length: int, *thresholds: int, steps: int, bits: int = 24) -> Design:
    found = threshold_filters.design(problem(length, *thresholds, steps=steps, bits=bits))
    assert found is not None
    return with_witness(found)


def dense(rows: OffsetFilter) -> NDArray[np.object_]:
    """The matrix on the values, from the definition."""
    steps, unit = rows.length, 1 << rows.shift
    found = np.zeros((steps, steps), dtype=object)
    for t in range(steps):
        for j in range(t + 1):
            taps = [*rows.taps, *[0] * steps]
            entry = rows.weights[t] * taps[t - j] - rows.offsets[t] * sum(taps[: t - j])
            found[t, j] = math.floor(Fraction(entry, unit) + Fraction(1, 2)) if rows.shift else entry
    return found


MAPS = tuple(offset_filter.filtered(*one, 6, 2.0**20) for one in ((0.6, 0.75, 0.3), (0.4, 0.5, 0.2)))
ASKED = problem(2, 1, 2, steps=6)
# What two ones in different runs cost together is more than apart.
SUMS = OffsetFilter((1, 1), (9, 8, 7, 6, 5, 4), (1,) * 6, 0)


def together(maps: Sequence[OffsetFilter], length: int, thresholds: tuple[int, ...], unit: Unit) -> int:
    """The bound of a filter for each threshold."""
    shape = SeriesByThreshold(thresholds, tuple(maps))
    return bound_of(rolling_chains_l2, Rolling(length), shape, maps[0].length, thresholds, unit)


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


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [1, 2])
def test_prices_bound_whatever_has_so_few_runs_and_ones(k: int, seed: int) -> None:
    """Against all series of a few places, at any prices: with windows of one step any series is a history."""
    rng = np.random.default_rng([seed, k])
    places, runs, ones = 8, int(rng.integers(1, 4)), int(rng.integers(2, 9))
    lags = Lags((int(rng.integers(30, 90)), *(int(lag) for lag in rng.integers(-12, 1, size=places - 1))), seed % 3)
    lane = Lane(k, lags, int(rng.integers(0, 5)), ones, runs)
    worst = 0
    for g in product((0, 1), repeat=places):
        at = [place for place, one in enumerate(g) if one]
        if sum(1 for one, _ in groupby(g) if one) <= runs and len(at) <= ones:
            form = sum(lags.values[abs(i - j)] for i in at for j in at) << lags.shift
            worst = max(worst, form - lane.offset * len(at) ** 2)
    found = [chain_bound((lane,), 1, prices) for prices in product(range(0, 60, 12), (0, 5, 30, 120))]
    assert min(found) >= worst > 0
    # Prices for runs are of use, where these are few.
    assert min(found) < min(chain_bound((lane,), 1, (price, 0)) for price in range(0, 60, 12)) or runs > 1


def test_no_number_wraps_on_the_finest_lattice() -> None:
    huge = [replace(one, taps=tuple(tap << 60 for tap in one.taps)) for one in MAPS]
    bound = together(MAPS, 2, (1, 2), PRESENCE)
    assert (bound << 120) * 1.001 >= together(huge, 2, (1, 2), PRESENCE) >= (bound << 120) * 0.999
    few = CountingRule(max_runs=2)
    ruled = [bound_of(rolling_chains_l2, Rolling(2), made[0], 6, (1,), PRESENCE, rule=few) for made in (MAPS, huge)]
    assert (ruled[0] << 120) * 1.001 >= ruled[1] >= (ruled[0] << 120) * 0.999


def test_filters_are_bounded_together_in_parts_of_one_size() -> None:
    maps = MAPS[0], replace(MAPS[1], shift=MAPS[1].shift + 1)
    assert rolling_chains_l2(case(Rolling(2), SeriesByThreshold((1, 2), maps), 6, (1, 2), PRESENCE)) is None


@pytest.mark.parametrize(
    ("asked", "maps", "steps"),
    [
        (replace(ASKED, unit=EventLevel()), MAPS, 6),
        (replace(ASKED, law=LAPLACE), MAPS, 6),
        (replace(ASKED, window=Cumulative()), MAPS, 6),
        (replace(ASKED, thresholds=(1, 2, 3)), MAPS, 6),
        (replace(ASKED, thresholds=(1, 3)), MAPS, 6),
        (ASKED, MAPS, 7),
        (ASKED, MAPS, None),
        (ASKED, MAPS[:1], 6),
        (ASKED, (MAPS[0], Identity(1 << 24)), 6),
        (ASKED, (MAPS[0], SUMS), 6),
        (ASKED, (SUMS, SUMS), 6),
        (ASKED, (SUMS, *MAPS), 6),
    ],
)
def test_what_no_proof_covers_is_refused(asked: Problem, maps: tuple[Any, ...], steps: int | None) -> None:
    with pytest.raises(NotCertifiedError):
        certified(asked, maps, steps)


class Sly(tuple):  # type: ignore[type-arg]
    """Hands out other maps by number than in a row."""

    def __getitem__(self, _: Any) -> Any:
        return SUMS


@pytest.mark.parametrize(("asked", "maps"), [(ASKED, Sly(MAPS)), (ASKED, list(MAPS))])
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


# --- The integers of one matrix ---------------------------------------------------------------------------------------


def test_the_gram_matrix_is_exact_on_every_lattice() -> None:
    rng = np.random.default_rng(0)
    for bits in (3, 12, 24, 25, 27, 34, 61):
        weights = np.tril(rng.integers(-(1 << bits), 1 << bits, size=(40, 40)))
        exact = weights.astype(object)
        exact[:, :-1] = exact[:, :-1] - exact[:, 1:]
        assert (gram(weights).astype(object) == exact.T @ exact).all()


def test_the_largest_entry_at_each_distance() -> None:
    assert largest_by_distance(np.array([[5, -1, 2], [-1, 7, 0], [2, 0, 6]])) == [7, 0, 2]


@pytest.mark.parametrize("shape", [(4, 4), (6, 6), (5, 4), (5, 6)], ids=str)
def test_a_matrix_of_another_shape_has_no_bound(shape: tuple[int, int]) -> None:
    assert bound_of(rolling_chains_l2, Rolling(2), MatrixCounter(np.eye(5)), 5, (1,), PRESENCE) >= 1
    measured = MatrixCounter(np.eye(*shape, dtype=np.int64))
    assert rolling_chains_l2(case(Rolling(2), measured, 5, (1,), PRESENCE)) is None


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
    found = rolling_chains_l2(case(Rolling(3), MatrixCounter(weights), 6, (1,), PRESENCE))
    assert found is None or found >= true


# --- The integers of one filter ---------------------------------------------------------------------------------------


def filtered(steps: int, *, size: float = 2.0**24) -> OffsetFilter:
    """As the strategy makes them."""
    return offset_filter.filtered(0.6, 0.75, 0.3, steps, size)


def test_the_bound_of_a_fine_lattice_is_nearly_attained() -> None:
    """Windows of one step: an item may be counted in any steps. What runs lower one another's cost by is left out."""
    rows = filtered(8)
    matrix, histories = dense(rows), np.array(list(product((0, 1), repeat=8)), dtype=object)
    true = max(int(value) for value in ((matrix @ histories.T) ** 2).sum(axis=0))
    assert true <= bound_of(rolling_chains_l2, Rolling(1), rows, rows.length, (1,), PRESENCE) <= 1.2 * true


def test_what_rounding_adds_is_charged() -> None:
    """Every entry that is applied is 1/2 above what it is before it is rounded."""
    steps = 6
    rows = OffsetFilter((1,), (1,) * steps, (0,) * steps, 1)
    assert dense(rows).tolist() == np.eye(steps, dtype=int).tolist()
    assert bound_of(rolling_chains_l2, Rolling(1), rows, rows.length, (1,), PRESENCE) >= steps


@pytest.mark.parametrize(
    ("weights", "offsets"),
    [([9, 9, 9], [1, 1, 1]), ([9, -9], [1, 1]), ([9, 9], [1, -1])],
    ids=str,
)
def test_offsets_that_the_proof_is_not_for(weights: list[int], offsets: list[int]) -> None:
    assert offset_norm(OffsetFilter((4, -1), tuple(weights), tuple(offsets), 0)) is None


@pytest.mark.parametrize(("weights", "offsets"), [((9, 9), (1,)), ((), ())])
def test_every_row_has_a_weight_and_an_offset(weights: tuple[int, ...], offsets: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="a weight and an offset for each position"):
        OffsetFilter((4, -1), weights, offsets, 0)
