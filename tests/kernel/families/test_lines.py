"""Bounds on what one item changes of windows on lines: against every neighbour, every staircase, and long searches."""

from __future__ import annotations

import itertools
from itertools import product

import numpy as np
import pytest

from dpwindows.ask.privacy import ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import count_windows
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.lines import (
    Line,
    Lines,
    filter_costs,
    lines_bound,
    lines_of_starts,
    one_line,
)
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search.fractional import integer_taps
from tests.kernel.lines_met import any_costs, costliest_span, crossed_bound, crossing
from tests.kernel.made_up import any_taps
from tests.single_item import Ints, all_logs, runs, squares

# --- Which places of a line change ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("k", [1, 2, 3])
def test_an_item_changes_cumulative_counts_on_one_interval(k: int) -> None:
    series = np.unique(squares(all_logs(6, 2), k)[:, 0], axis=0)
    assert (np.diff(series, axis=1) >= 0).all()
    for first, second in itertools.product(series, repeat=2):
        change: Ints = first - second
        assert len(runs(abs(change))) <= 1
        assert {0, 1} >= set(change) or {-1, 0} >= set(change)


def test_an_item_changes_any_windows_below_a_staircase() -> None:
    for table in squares(all_logs(5, 2), 2):
        for a in range(5):
            assert (np.diff(table[a, a:]) >= 0).all()
            assert (np.diff(table[: a + 1, a]) <= 0).all()


def test_a_line_cannot_cost_less_than_nothing() -> None:
    with pytest.raises(ValueError, match="less than nothing"):
        lines_bound(Lines([Line(1, 2, 2), Line(1, 2, 2, -1)], range(1, 2), 1), [0, 1, 2], 1)
