"""Crossed counters: bounds against every staircase, line by line."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.ask.privacy import ItemAddRemove
from dpwindows.ask.queries import AnyWindow
from dpwindows.count.answers import ExactAnswers
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.families.crossed import crossed_lines
from dpwindows.kernel.families.lines import filter_costs, lines_bound, lines_of_starts
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import crossed_counters
from dpwindows.strategies.search.fractional import integer_taps
from tests.kernel.lines_met import any_costs, costliest_span, crossed_bound, crossing
from tests.single_item import TableAnswers


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
    found = crossed_counters.design(Problem(AnyWindow(), 5, (1,), ItemAddRemove(), GAUSSIAN, 4.2247))
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
