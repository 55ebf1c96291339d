"""Crossed counters: bounds against every staircase, and against long searches."""

from __future__ import annotations

from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.ask.privacy import ItemAddRemove, ItemLevel, Unit
from dpwindows.ask.queries import AnyWindow
from dpwindows.count.answers import ExactAnswers
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.crossed import Crossed, CrossedFilters, crossed_lines
from dpwindows.kernel.families.lines import filter_costs, lines_bound, lines_of_starts
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import crossed_counters
from dpwindows.strategies.search.fractional import integer_taps
from tests.kernel.lines_met import any_costs, costliest_span, crossed_bound, crossing
from tests.single_item import TableAnswers


@cache
def staircases(steps: int) -> NDArray[np.int64]:
    """Every `f(a, b) = 1(tau(b) >= a)` with tau non-decreasing and tau(b) <= b, shape (count, steps, steps)."""
    taus = [
        tau
        for tau in product(*(range(b + 1) for b in range(1, steps + 1)))
        if all(first <= second for first, second in pairwise(tau))
    ]
    return (np.array(taus)[:, None, :] >= np.arange(1, steps + 1)[None, :, None]).astype(np.int64)


def first_block(found: Design) -> CrossedFilters:
    """The map of the first block of crossed counters."""
    assert isinstance(found.shape, Crossed)
    return found.shape.list_blocks(found.problem.window, found.problem.steps)[0][1]


def problem(
    steps: int, unit: Unit, law: Law = GAUSSIAN, longest: int | None = None, ks: tuple[int, ...] = (1,)
) -> Problem:
    return Problem(AnyWindow(longest), steps, ks, unit, law, noise_per_unit=4.2247)


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


def test_signed_counts_of_a_log_are_measured_as_the_square_of_its_answers() -> None:
    answers = ExactAnswers(5, {1: (np.array([1, 3, 3, 5]), np.array([1, 3, 1, 2]), np.array([4, 2, -1, 7]))})
    found = crossed_counters.design(problem(5, ItemAddRemove()))
    assert found is not None
    square = answers.windows(1, 1, 5, 1, 5)
    assert (found.encode(answers, 1) == found.encode(TableAnswers(square), 1)).all()


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
