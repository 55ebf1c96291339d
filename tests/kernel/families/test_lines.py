"""Bounds on what one item changes of windows on lines: against every neighbour, every staircase, and long searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative
from dpwindows.ask.windows import count_windows
from dpwindows.count.answers import ExactAnswers
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.blocks import Block
from dpwindows.kernel.families.crossed import Crossed, CrossedFilters, crossed_lines
from dpwindows.kernel.families.lines import (
    Line,
    Lines,
    filter_costs,
    lines_bound,
    lines_of_starts,
    one_line,
)
from dpwindows.kernel.families.norms import step_norms
from dpwindows.kernel.families.periods import lines_of_periods, periods_met, periods_met_at_most
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.maps.integer_maps import IntegerMap
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import crossed_counters
from dpwindows.strategies.search.fractional import integer_taps
from tests import brute_force
from tests.kernel.families.test_sensitivity import any_taps, largest_norm, matrix_of, tent_trees, toeplitz, truth
from tests.search import examples
from tests.single_item import all_logs, differences

UNITS: tuple[Unit, ...] = (ItemAddRemove(), ItemLevel())


@cache
def staircases(steps: int) -> NDArray[np.int64]:
    """Every `f(a, b) = 1(tau(b) >= a)` with tau non-decreasing and tau(b) <= b, shape (count, steps, steps)."""
    taus = [
        tau
        for tau in product(*(range(b + 1) for b in range(1, steps + 1)))
        if all(first <= second for first, second in pairwise(tau))
    ]
    return (np.array(taus)[:, None, :] >= np.arange(1, steps + 1)[None, :, None]).astype(np.int64)


Crossing = tuple[Block, CrossedFilters]


def crossing(first: int, start_weights: tuple[int, ...], end_weights: tuple[int, ...]) -> Crossing:
    """A block of windows with a line for each start and each end."""
    return Block(first, len(start_weights), len(end_weights)), CrossedFilters((1,), start_weights, end_weights)


def crossed_bound(
    taps: Sequence[int], blocks: Sequence[Crossing], power: int, *, formal: bool, span: int | None = None
) -> int:
    """The bound of crossed counters for one threshold, where the last block ends at the horizon."""
    last, _ = blocks[-1]
    steps = last.first + last.ends - 1
    costs = filter_costs(taps, max(block.ends for block, _ in blocks), power, formal=formal)
    return lines_bound(crossed_lines(blocks, power, span or steps, steps), costs, 1)


def block_of(found: CrossedFilters) -> Crossing:
    return crossing(1, found.start_weights, found.end_weights)


def first_block(found: Design) -> CrossedFilters:
    """The map of the first block of crossed counters."""
    assert isinstance(found.shape, Crossed)
    return found.shape.list_blocks(found.problem.window, found.problem.steps)[0][1]


def problem(
    steps: int, unit: Unit, law: Law = GAUSSIAN, longest: int | None = None, ks: tuple[int, ...] = (1,)
) -> Problem:
    return Problem(AnyWindow(longest), steps, ks, unit, law, noise_per_unit=4.2247)


small_filters = st.integers(2, 5).flatmap(
    lambda steps: st.builds(
        CrossedFilters,
        st.lists(st.integers(-6, 6), min_size=0, max_size=4).map(lambda tail: (5, *tail)),
        st.lists(st.integers(1, 4), min_size=steps, max_size=steps).map(tuple),
        st.lists(st.integers(1, 4), min_size=steps, max_size=steps).map(tuple),
    )
)


@examples(60)
@given(small_filters)
def test_added_or_removed_the_bound_is_the_truth_for_any_taps(found: CrossedFilters) -> None:
    steps = found.shape[0]
    encoded = np.array([found.encode(f) for f in staircases(steps)])
    block = block_of(found)
    assert (encoded**2).sum(axis=1).max() == crossed_bound(found.taps, [block], 2, formal=False)
    assert abs(encoded).sum(axis=1).max() == crossed_bound(found.taps, [block], 1, formal=False)


@examples(40)
@given(small_filters)
def test_changed_no_pair_of_staircases_exceeds_the_bound_for_any_taps(found: CrossedFilters) -> None:
    encoded = np.array([found.encode(f) for f in staircases(found.shape[0])])
    changes = encoded[:, None, :] - encoded[None, :, :]
    block = block_of(found)
    assert (changes**2).sum(axis=2).max() <= crossed_bound(found.taps, [block], 2, formal=True)
    assert abs(changes).sum(axis=2).max() <= crossed_bound(found.taps, [block], 1, formal=True)


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("steps", [2, 3, 5, 7])
def test_the_filters_in_use_are_charged_the_truth_for_one_staircase(steps: int, law: Law) -> None:
    found = crossed_counters.design(problem(steps, ItemAddRemove(), law))
    assert found is not None
    sizes = []
    for f in staircases(steps):
        change = found.encode(Square({1: f}), 1)
        sizes.append(sum(int(value) ** 2 if law == GAUSSIAN else abs(int(value)) for value in change))
    assert max(sizes) == found.sensitivity


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("steps", [2, 4, 6, 7])
def test_the_filters_in_use_are_within_fifteen_percent_for_every_pair_of_staircases(steps: int, law: Law) -> None:
    found = crossed_counters.design(problem(steps, ItemLevel(), law))
    assert found is not None
    weights = first_block(found)
    encoded = np.array([weights.encode(f) for f in staircases(steps)]).astype(np.float64)
    worst = 0.0
    for first in encoded:
        change = encoded - first
        sizes = (change**2).sum(axis=1) if law == GAUSSIAN else abs(change).sum(axis=1)
        worst = max(worst, float(sizes.max()))
    assert worst <= found.sensitivity * (1 + 1e-12)
    # In noise, where the squared bound counts by its root.
    reached = worst / found.sensitivity
    assert (reached**0.5 if law == GAUSSIAN else reached) >= 0.85


def single_item_logs(steps: int, most: int) -> list[tuple[int, ...]]:
    return list(product(range(most + 1), repeat=steps))


def exact(log: tuple[int, ...], ks: tuple[int, ...]) -> dict[int, NDArray[np.int64]]:
    events = [("item", step, count) for step, count in enumerate(log, start=1) if count]
    return {k: np.array(brute_force.any_window(events, k, len(log))) for k in ks}


class Square:
    """Answers given as squares of starts and ends."""

    def __init__(self, squares: dict[int, NDArray[np.int64]]) -> None:
        self.squares = squares
        self.steps = len(next(iter(squares.values())))

    def cumulative(self, k: int) -> NDArray[np.int64]:
        raise NotImplementedError

    def rolling(self, k: int, length: int) -> NDArray[np.int64]:
        raise NotImplementedError

    def windows(self, k: int, first_start: int, starts: int, first_end: int, ends: int) -> NDArray[np.int64]:
        a, b = first_start - 1, first_end - 1
        return self.squares[k][a : a + starts, b : b + ends]


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize("longest", [2, None])
def test_no_item_of_a_log_exceeds_the_bound_in_blocks_and_with_several_thresholds(
    width: int, longest: int | None, law: Law
) -> None:
    # Logs of one item with up to 3 occurrences in each of 4 steps, counted from the definition.
    ks, steps = (1, 3), 4
    taps = integer_taps(0.75, 0.999, steps, 8)
    for unit in UNITS:
        asked = problem(steps, unit, law, longest, ks)
        found = Design(asked, Crossed(width, taps, (8, 11, 14, 16)), "test")
        encoded = []
        for log in single_item_logs(steps, 3):
            squares = Square(exact(log, ks))
            encoded.append(np.concatenate([found.encode(squares, k) for k in ks]))
        vectors = np.unique(np.array(encoded), axis=0)
        changes = vectors[:, None, :] - vectors[None, :, :] if isinstance(unit, ItemLevel) else vectors
        sizes = (changes**2).sum(axis=-1) if law == GAUSSIAN else abs(changes).sum(axis=-1)
        assert sizes.max() <= found.sensitivity
        if isinstance(unit, ItemAddRemove):
            assert sizes.max() == found.sensitivity


def best_partner(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The tau of largest total cost, exactly, where `columns[b, m]` is the cost of tau(b) = m and `rows[a, m]` that of
    m ones at the end of the row of start a; a dynamic programme over ends."""
    steps = len(rows)
    # below[b, x]: the cost of the rows of starts 1..x stepping up at end b + 1; the last row: never stepping up.
    ones = np.append(np.arange(steps, 0, -1), 0)
    below = np.concatenate([np.zeros((steps + 1, 1), dtype=np.int64), np.cumsum(rows[:, ones].T, axis=1)], axis=1)
    best = np.full(steps + 1, np.iinfo(np.int64).min // 2)
    best[0] = 0
    came = np.zeros((steps, steps + 1), dtype=np.int64)
    for b in range(steps):
        reached = best - below[b]
        leader = np.maximum.accumulate(reached)
        came[b] = np.maximum.accumulate(np.where(reached == leader, np.arange(steps + 1), 0))
        best = leader + below[b] + columns[b]
        best[b + 2 :] = np.iinfo(np.int64).min // 2
    best = best + below[steps, -1] - below[steps]
    tau, at = np.zeros(steps, dtype=np.int64), int(best.argmax())
    for b in range(steps - 1, -1, -1):
        tau[b] = at
        at = int(came[b, at])
    return tau


def ones_of(tau: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many ones the row of each start and the column of each end has."""
    return (tau[None, :] >= np.arange(1, len(tau) + 1)[:, None]).sum(axis=1), tau


def search_for_worst_pair(taps: tuple[int, ...], weights: NDArray[np.int64], rounds: int) -> float:
    """The largest squared change found, by improving one staircase at a time to the exact best, from several starts."""
    steps = len(weights)
    response = np.cumsum(np.concatenate([taps, np.zeros(steps, dtype=np.int64)])[:steps].astype(np.int64))
    pair = np.zeros((steps + 1, steps + 1), dtype=np.int64)
    for apart in range(1, steps + 1):
        change = response.copy()
        change[apart:] -= response[: steps - apart]
        norms = np.concatenate([[0], np.cumsum(change**2)])
        for more in range(apart, steps + 1):
            pair[more, more - apart] = pair[more - apart, more] = norms[more]
    squared = weights**2
    b = np.arange(1, steps + 1)
    starts = [b, b * 2 // 3, b // 2, np.maximum(0, b - 3), np.maximum(0, b - 20), b // 30 * 30, b // 7 * 7, b * 0]
    worst = 0
    for tau in starts:
        for _ in range(rounds):
            by_row, by_column = ones_of(tau)
            rows, columns = squared[::-1, None] * pair[by_row], squared[:, None] * pair[by_column]
            tau = best_partner(rows, columns)
            new_row, new_column = ones_of(tau)
            total = int(rows[np.arange(steps), new_row].sum() + columns[np.arange(steps), new_column].sum())
            worst = max(worst, total)
    return float(worst)


@pytest.mark.parametrize(("steps", "longest", "tight"), [(60, None, 0.93), (365, None, 0.93), (365, 28, 0.9)])
def test_the_worst_pair_that_a_search_finds_is_close_below_the_formal_bound(
    steps: int, longest: int | None, tight: float
) -> None:
    found = crossed_counters.design(problem(steps, ItemLevel(), longest=longest))
    assert found is not None
    weights = np.array(first_block(found).end_weights, dtype=np.int64)
    # Taps of fewer bits keep the search in 64 bits; the bound is taken for the same.
    taps = integer_taps(found.parameters["alpha"], found.parameters["decay"], steps, 12)
    listed = tuple(weights.tolist())
    bound = crossed_bound(taps, [crossing(1, listed[::-1], listed)], 2, formal=True)
    worst = search_for_worst_pair(taps, weights, rounds=4)
    assert worst <= bound
    assert (worst / bound) ** 0.5 >= tight


def test_a_formal_change_costs_less_than_twice_in_noise() -> None:
    taps = integer_taps(0.75, 0.997, 365, 16)
    block = crossing(1, (1,) * 365, (1,) * 365)
    formal, single = (crossed_bound(taps, [block], 2, formal=formal) for formal in (True, False))
    assert single < formal < 2 * single
    # The older ceiling: two changes of one item, twice the noise.
    assert formal <= 4 * single


@pytest.mark.parametrize("formal", [True, False])
@pytest.mark.parametrize("span", [1, 7, 50])
def test_the_rows_alone_are_a_counter_for_every_start(span: int, formal: bool) -> None:
    taps = integer_taps(0.6, 0.99, 50, 16)
    rows = crossing(1, (1,) * 50, (0,) * 50)
    counters = lines_bound(lines_of_starts(50, span, 50), filter_costs(taps, 50, 2, formal=formal), 1)
    assert crossed_bound(taps, [rows], 2, formal=formal, span=span) == counters


def test_norms_beyond_64_bits_are_exact() -> None:
    taps = (1 << 40, -(1 << 39), -7)
    for formal in (True, False):
        shifts = range(1, 7) if formal else [6]
        response = [1 << 40, 1 << 39, *((1 << 39) - 7 for _ in range(4))]
        for n, norm in enumerate(step_norms(taps, 6, np.square, formal=formal)):
            sizes = [sum((response[i] - (response[i - d] if i >= d else 0)) ** 2 for i in range(n)) for d in shifts]
            assert norm == max(sizes)


def test_signed_counts_of_a_log_are_measured_as_the_square_of_its_answers() -> None:
    answers = ExactAnswers(5, {1: (np.array([1, 3, 3, 5]), np.array([1, 3, 1, 2]), np.array([4, 2, -1, 7]))})
    found = crossed_counters.design(problem(5, ItemAddRemove()))
    assert found is not None
    square = answers.windows(1, 1, 5, 1, 5)
    assert (found.encode(answers, 1) == found.encode(Square({1: square}), 1)).all()


def test_all_pairs_of_small_gaps_are_covered() -> None:
    # Every item with two occurrences, at a horizon too long to enumerate: none is above the bound.
    steps = 24
    found = crossed_counters.design(problem(steps, ItemAddRemove()))
    assert found is not None
    for x, y in combinations(range(steps), 2):
        log = tuple(int(step in (x, y)) for step in range(steps))
        change = found.encode(Square(exact(log, (1,))), 1)
        assert int((change.astype(object) ** 2).sum()) <= found.sensitivity


# --- Which places of a line change -----------------------------------------------------------------------------------

Window = tuple[int, int]


def costliest_span(lines: Sequence[tuple[int, Sequence[Window]]], costs: Sequence[int], span: int, steps: int) -> int:
    """The largest sum over all spans of the range, from the windows themselves: (times, the windows in order)."""
    totals = []
    for p in range(1, steps - span + 2):
        total = 0
        for times, windows in lines:
            met = [a <= p + span - 1 and b >= p for a, b in windows]
            # What a span meets lies at the end of a line.
            assert met == sorted(met)
            total += times * costs[sum(met)]
        totals.append(total)
    return max(totals)


def any_costs(rng: np.random.Generator, most: int) -> list[int]:
    return [0, *np.cumsum(rng.integers(0, 9, size=most)).tolist()]


@pytest.mark.parametrize("steps", range(1, 10))
def test_lines_of_starts_change_in_the_places_that_a_span_meets(steps: int) -> None:
    rng = np.random.default_rng(steps)
    for longest, span in product(range(1, steps + 1), range(1, steps + 1)):
        costs = any_costs(rng, longest)
        windows = [[(a, b) for b in range(a, min(steps, a + longest - 1) + 1)] for a in range(1, steps + 1)]
        bound = lines_bound(lines_of_starts(longest, span, steps), costs, 1)
        assert bound == costliest_span([(1, line) for line in windows], costs, span, steps)
        # Longer windows than the horizon there are none.
        if longest == steps:
            assert lines_bound(lines_of_starts(longest + 3, span, steps), costs, 2) == 2 * bound
        # Without a horizon there are as many spans as can be, and lines are not cut.
        assert bound <= lines_bound(lines_of_starts(longest, span, None), costs, 1)


@pytest.mark.parametrize(("longest", "span"), [(1, 1), (1, 4), (5, 1), (4, 3), (5, 9), (3, 17)])
def test_lines_without_a_horizon_are_those_of_a_long_one(longest: int, span: int) -> None:
    costs = any_costs(np.random.default_rng(longest), longest)
    free = lines_bound(lines_of_starts(longest, span, None), costs, 2)
    far = 2 * longest + span - 2
    for steps in (far, far + 1, 300):
        windows = [[(a, b) for b in range(a, min(steps, a + longest - 1) + 1)] for a in range(1, steps + 1)]
        assert lines_bound(lines_of_starts(longest, span, steps), costs, 2) == free
        assert 2 * costliest_span([(1, line) for line in windows], costs, span, steps) == free


def test_lines_of_crossed_blocks_change_in_the_places_that_a_span_meets() -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        steps = int(rng.integers(1, 9))
        width, longest, power = (
            int(rng.integers(1, steps + 1)),
            int(rng.integers(1, steps + 1)),
            int(rng.integers(1, 3)),
        )
        blocks, lines = [], []
        for first in range(1, steps + 1, width):
            starts = range(first, min(first + width, steps + 1))
            ends = range(first, min(starts[-1] + longest - 1, steps) + 1)
            block = crossing(first, *(tuple(rng.integers(-3, 5, size=len(part)).tolist()) for part in (starts, ends)))
            blocks.append(block)
            for a, weight in zip(starts, block[1].start_weights, strict=True):
                lines.append((abs(weight) ** power, [(a, b) for b in ends if b >= a]))
            for b, weight in zip(ends, block[1].end_weights, strict=True):
                lines.append((abs(weight) ** power, [(a, b) for a in reversed(starts) if a <= b]))
        costs = any_costs(rng, steps)
        for span in range(1, steps + 1):
            found = lines_bound(crossed_lines(blocks, power, span, steps), costs, 1)
            assert found == costliest_span(lines, costs, span, steps)
        assert lines_bound(crossed_lines(blocks, power, steps + 4, steps), costs, 1) == found


def test_lines_of_periods_change_in_the_places_that_a_span_meets() -> None:
    rng = np.random.default_rng(8)
    reached = 0
    for _ in range(300):
        sizes = rng.integers(1, 6, size=int(rng.integers(1, 6))).tolist()
        steps, longest, fewest = sum(sizes), max(sizes), min(sizes[1:-1], default=sum(sizes))
        firsts = np.concatenate([[1], np.cumsum(sizes)[:-1] + 1])
        windows = [[(a, b) for b in range(a, a + size)] for a, size in zip(firsts.tolist(), sizes, strict=True)]
        costs = any_costs(rng, longest)
        for span in range(1, steps + 1):
            met = periods_met(firsts, steps, span)
            bound = lines_bound(lines_of_periods(longest, met, span, fewest), costs, 1)
            true = costliest_span([(1, line) for line in windows], costs, span, steps)
            assert true <= bound <= met * costs[-1]
            reached += true == bound
            # Without a horizon only the fewest and the most steps of a period are known.
            free = lines_of_periods(longest, periods_met_at_most(fewest, span), span, fewest)
            assert bound <= lines_bound(free, costs, 1)
    assert reached > 300


@pytest.mark.parametrize("span", range(1, 30))
def test_lines_of_periods_of_equal_length_are_charged_the_truth(span: int) -> None:
    costs = any_costs(np.random.default_rng(span), 7)
    windows = [[(a, b) for b in range(a, a + 7)] for a in range(1, 70, 7)]
    bound = lines_bound(lines_of_periods(7, periods_met_at_most(7, span), span, 7), costs, 3)
    assert bound == 3 * costliest_span([(1, line) for line in windows], costs, span, 70)


def test_the_last_cost_is_for_more_places_too() -> None:
    assert lines_bound(one_line(9), (0, 5), 2) == 10
    assert lines_bound(one_line(9), range(10), 2) == 18
    assert lines_bound(Lines([], range(1, 4), 2), (0, 5), 3) == 0


@pytest.mark.parametrize("factor", [1, 1 << 20, 3 << 40, 5 << 70])
def test_sums_beyond_64_bits_are_exact(factor: int) -> None:
    blocks = [crossing(1, (3, 2, 1), (1, 2, 3))]
    heavy = [crossing(1, *(tuple(factor * w for w in part) for part in ((3, 2, 1), (1, 2, 3))))]
    for power in (1, 2):
        small = crossed_bound((5, -2, 1), blocks, power, formal=True, span=2)
        assert crossed_bound((5, -2, 1), heavy, power, formal=True, span=2) == small * factor**power
        large = crossed_bound((5 * factor, -2 * factor, factor), blocks, power, formal=True, span=2)
        assert large == small * factor**power
    alike = Line(1, 3, 3, factor)
    assert lines_bound(Lines([alike, alike], range(1, 2), 1), (0, 1, 2, 1 << 61), 1) == factor << 62


def test_windows_that_meet_a_span_are_counted_one_by_one() -> None:
    for steps, longest, span in product((1, 2, 5, 8), (1, 2, 3, 8), (1, 2, 5)):
        met = [
            sum(
                a <= first + span - 1 and b >= first
                for a in range(1, steps + 1)
                for b in range(a, min(steps, a + longest - 1) + 1)
            )
            for first in range(1, steps + 1)
        ]
        assert lines_bound(lines_of_starts(longest, span, steps), range(longest + 1), 1) == max(met)


def test_a_period_as_long_as_the_horizon_is_item_level() -> None:
    taps = integer_taps(0.5, 0.95, 64, 16)
    for steps, length in ((9, 3), (20, 20), (20, 7)):
        costs = filter_costs(taps, length, 2, formal=True)
        for span in (steps, steps + 1, 10**6):
            bound = lines_bound(lines_of_starts(length, span, steps), costs, 2)
            assert bound == 2 * sum(costs[min(length, steps - a)] for a in range(steps))
            cells = lines_bound(lines_of_starts(length, span, steps), range(length + 1), 1)
            assert cells == count_windows(AnyWindow(length), steps)
    costs = filter_costs((5, -2, 1), 3, 2, formal=True)
    whole = sum(2 * n**2 * costs[n] for n in (1, 2, 3))
    assert crossed_bound((5, -2, 1), [crossing(1, (3, 2, 1), (1, 2, 3))], 2, formal=True, span=3) == whole


# --- Every neighbour on small horizons --------------------------------------------------------------------------------

THRESHOLDS = ((1,), (2,), (3,), (1, 2), (2, 3), (1, 3), (1, 2, 3))


def moved_most(design: Design, unit: Unit, most: int) -> int:
    """The exact sensitivity over all logs with at most `most` occurrences a step."""
    asked = design.problem
    changes = differences(all_logs(asked.steps, most), AnyWindow(), asked.thresholds, unit)
    return largest_norm(changes, matrix_of(design), asked.law)


def random_cases(rng: np.random.Generator, count: int) -> Iterator[tuple[int, int, int, tuple[int, ...], int]]:
    """(steps, span, length, thresholds, most occurrences a step)."""
    shapes = [((1,), 7, 1), ((1,), 5, 2), ((2,), 5, 2), ((3,), 4, 3), ((1, 2), 4, 2), ((1, 3), 4, 3)]
    for i in range(count):
        ks, largest, most = shapes[i % len(shapes)]
        steps = int(rng.integers(2, largest + 1))
        yield steps, int(rng.integers(1, steps + 1)), int(rng.integers(1, steps + 1)), ks, most


def measurements(rng: np.random.Generator, asked: Problem, longest: int) -> Iterator[Design]:
    """Everything that measures any windows by lines, with parameters that no planner would choose."""
    taps, steps, fewer = any_taps(rng, longest), asked.steps, isinstance(asked.unit, ItemPerPeriod)
    tents = TentTree(longest, (longest // 2, longest // 3), 10)
    tree = CausalTree(int(rng.integers(2, 4)), tuple(rng.integers(1, 9, size=3).tolist()))
    along: IntegerMap = Filter(taps) if asked.law == GAUSSIAN else tree
    if asked.law == LAPLACE:
        yield Design(asked, Starts(longest, tents, continued=True), "test")
    weights = tuple(rng.integers(1, 17, size=steps).tolist())
    yield Design(asked, Crossed(int(rng.integers(1, steps + 1)), any_taps(rng, steps), weights), "test")
    for one in (along, Identity(3)):
        yield Design(asked, Starts(longest, one), "test")
        for horizon in (steps, *([None] if fewer else [])):
            yield StepDesign(asked, Starts(longest, one), "test", horizon=horizon)


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
def test_no_neighbour_moves_any_windows_by_more_than_the_bound(law: Law) -> None:
    rng = np.random.default_rng(2)
    tightest: dict[tuple[str, str], float] = {}
    for steps, span, longest, ks, most in random_cases(rng, 30):
        for unit in (ItemPerPeriod(span), ItemLevel(), ItemAddRemove()):
            asked = Problem(AnyWindow(longest), steps, ks, unit, law, 1.0)
            for design in measurements(rng, asked, longest):
                true, found = moved_most(design, unit, most), design.certificate
                assert true <= found.bound
                assert found.proof == "windows-on-lines"
                made = f"{type(design).__name__} {type(design.shape).__name__}"
                where = made, unit.name.partition(":")[0]
                tightest[where] = min(tightest.get(where, 9.0), found.bound / true)
                if unit == ItemAddRemove() and law == GAUSSIAN:
                    assert true == found.bound
    assert set(tightest.values()) == {1.0}


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
def test_streams_are_charged_as_releases_are(law: Law) -> None:
    """A horizon as long as the release cuts the lines alike."""
    rng = np.random.default_rng(6)
    for steps, longest, span in product((3, 8, 20), (1, 3, 8), (1, 4)):
        taps, longest = any_taps(rng, 4), min(longest, steps)
        for unit in (ItemPerPeriod(span), ItemLevel(), ItemAddRemove()):
            asked = Problem(AnyWindow(longest), steps, (1, 2), unit, law, 1.0)
            for along in (Identity(3), Filter(taps) if law == GAUSSIAN else CausalTree(2, (3, 1))):
                shape = Starts(longest, along)
                stream = StepDesign(asked, shape, "test", horizon=steps).certificate
                assert stream == Design(asked, shape, "test").certificate


def test_a_neighbour_changes_no_more_numbers_than_is_said() -> None:
    rng = np.random.default_rng(3)
    for steps, span, longest, ks, most in random_cases(rng, 12):
        for unit in (ItemPerPeriod(span), ItemLevel(), ItemAddRemove()):
            asked = Problem(AnyWindow(longest), steps, ks, unit, GAUSSIAN, 1.0)
            for design in measurements(rng, asked, longest):
                matrix = matrix_of(design)
                for change in differences(all_logs(steps, most), AnyWindow(), ks, unit):
                    numbers = ((change @ matrix.T) != 0).sum(axis=2)
                    assert numbers.max() <= design.certificate.moved


@pytest.mark.parametrize("thresholds", THRESHOLDS, ids=str)
def test_cumulative_filters_with_any_taps(thresholds: tuple[int, ...]) -> None:
    """No signs are needed; thresholds may be passed at steps of their own choice, so the bound is attained."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        steps = int(rng.integers(1, 5))
        for unit in UNITS:
            taps = any_taps(rng, steps)
            design = series(steps, thresholds, unit, GAUSSIAN, Filter(taps))
            costs = filter_costs(taps, steps, 2, formal=isinstance(unit, ItemLevel))
            assert design.certificate.bound == lines_bound(one_line(steps), costs, len(thresholds)) == truth(design)


@pytest.mark.parametrize("thresholds", [(1,), (3,), (1, 2)], ids=str)
def test_weighted_counters_with_any_taps_and_weights(thresholds: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    for _ in range(40):
        steps = int(rng.integers(1, 6))
        taps = any_taps(rng, int(rng.integers(1, steps + 1)))
        weights = tuple(int(weight) for weight in rng.integers(1, 20, size=steps))
        design = series(
            steps, thresholds, ItemAddRemove(), GAUSSIAN, MatrixCounter(toeplitz(taps, steps) * np.array(weights))
        )
        assert truth(design) == design.certificate.bound


@pytest.mark.parametrize("thresholds", [(1,), (3,), (1, 2)], ids=str)
def test_matrices_of_increments(thresholds: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        steps = int(rng.integers(1, 6))
        matrix = np.tril(rng.integers(-9, 10, size=(steps, steps)))
        np.fill_diagonal(matrix, rng.integers(1, 9, size=steps))
        design = series(steps, thresholds, ItemAddRemove(), GAUSSIAN, MatrixCounter(matrix))
        assert truth(design) == design.certificate.bound


def trees(steps: int) -> list[CausalTree | TentTree]:
    """Trees of every branching, and trees of tents with levels that a planner would not choose."""
    found: list[CausalTree | TentTree] = [*tent_trees(steps)]
    branchings = range(2, max(3, steps + 1))
    return found + [CausalTree(one, weights) for one in branchings for weights in ((1,), (3, 1), (1, 1, 5))]


@pytest.mark.parametrize("thresholds", [(1,), (3,), (1, 2), (1, 2, 3)], ids=str)
def test_trees_of_any_kind(thresholds: tuple[int, ...]) -> None:
    for steps in range(1, 5):
        for found, unit in product(trees(steps), (EventLevel(), *UNITS)):
            design = series(steps, thresholds, unit, LAPLACE, found)
            true, bound = truth(design), design.certificate.bound
            assert true <= bound
            # The bound is reached where each end that moves has a node of its own on every level; tents overlap.
            moved_ends = 1 if isinstance(unit, ItemAddRemove) else 2
            apart = found.branching ** (found.levels - 1) if isinstance(found, CausalTree) else steps
            if steps > 3 and len(thresholds) == 1 and moved_ends * apart <= steps:
                assert true == bound


def series(steps: int, thresholds: tuple[int, ...], unit: Unit, law: Law, made: IntegerMap) -> Design:
    return Design(Problem(Cumulative(), steps, thresholds, unit, law, 1.0), Series(made), "test")


@pytest.mark.parametrize("thresholds", [(1,), (2,), (1, 3)], ids=str)
def test_counters_for_every_start_with_any_taps(thresholds: tuple[int, ...]) -> None:
    """No signs needed: one interval a start."""
    rng = np.random.default_rng(9)
    for steps in range(1, 5):
        for longest in range(1, steps + 1):
            for unit in UNITS:
                asked = Problem(AnyWindow(longest), steps, thresholds, unit, GAUSSIAN, 1.0)
                filtered = Design(asked, Starts(longest, Filter(any_taps(rng, longest))), "test")
                assert truth(filtered) <= filtered.certificate.bound
                if isinstance(unit, ItemLevel):
                    assert filtered.certificate.bound <= 4 * truth(filtered)
