"""Limits where an item changes within a period: every change that is drawn against all logs that could make it."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.ask.privacy import ApproxDP, EventLevel, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import Rolling
from dpwindows.ask.timeline import Timeline
from dpwindows.plan.plan import Plan
from dpwindows.strategies.search.limits import limit
from dpwindows.strategies.search.period_limits import changes, period_limit
from tests.single_item import all_logs, differences

EVENT, ITEM = EventLevel(), ItemLevel()
Counted = tuple[int, ...]


def made_by_neighbours(steps: int, length: int, period: int) -> set[Counted]:
    """All changes of rolling counts of one item, from every two logs of it that differ within the period."""
    pieces = differences(all_logs(steps, 1), Rolling(length), (1,), ItemPerPeriod(period))
    return {tuple(change) for piece in pieces for change in piece[:, 0].tolist()}


@pytest.mark.parametrize(
    ("steps", "length", "period"), [(8, 3, 2), (8, 2, 3), (8, 3, 3), (7, 1, 3), (9, 2, 4), (8, 4, 2)]
)
def test_every_change_that_is_drawn_is_made_by_some_neighbours(steps: int, length: int, period: int) -> None:
    made = made_by_neighbours(steps, length, period)
    drawn = changes(length, period)
    places = period + length - 1
    assert drawn.shape[1] == places
    assert set(np.unique(drawn)) <= {-1.0, 0.0, 1.0}
    for change in drawn.astype(int):
        for start in range(1 - places, steps):
            padded = np.zeros(steps + 2 * places, dtype=int)
            padded[start + places : start + 2 * places] = change
            shifted = padded[places : places + steps]
            if start >= 0:
                assert tuple(shifted.tolist()) in made
            # Cut off at the left only what ends before step W.
            assert tuple(shifted[length - 1 :].tolist()) in {row[length - 1 :] for row in made}


def test_a_first_run_that_is_cut_at_the_start_is_no_change() -> None:
    """The trap: nothing comes before step 1, so what shifts leave of a change there is not made by neighbours."""
    made = made_by_neighbours(8, 3, 3)
    cut = [tuple(row[1:].tolist()) + (0,) * (8 - len(row) + 1) for row in changes(3, 3).astype(int)]
    assert any(change not in made for change in cut)


def test_known_limits_of_a_year() -> None:
    """Times 4.2247: those of stationary noise are 11.03, 14.52 and 10.15; the start of a year costs some of it."""
    known = {(28, 7): 11.03, (28, 28): 14.52, (7, 7): 10.15}
    for (length, period), best in known.items():
        found = limit(Rolling(length), 1, ItemPerPeriod(period), 365)
        assert found is not None
        assert 0.965 * best < found * 4.2247 < best
    # Steps by themselves: independent signs on all of a period.
    daily = limit(Rolling(1), 1, ItemPerPeriod(9), 200) or 0.0
    assert 0.99 * 3 < daily <= 3


@pytest.mark.slow
def test_limits_grow_with_the_period_up_to_that_of_an_item() -> None:
    for steps in (120, 1500):
        found = [limit(Rolling(7), 1, ItemPerPeriod(period), steps) or 0.0 for period in (1, 3, 7, 20, 60)]
        ends = [limit(Rolling(7), 1, unit, steps) or 0.0 for unit in (EVENT, ITEM)]
        assert [ends[0] * (1 - 1e-9), *found, ends[1]] == sorted([ends[0] * (1 - 1e-9), *found, ends[1]])
    # Long periods are looked at as blocks of the range.
    assert (limit(Rolling(7), 1, ItemPerPeriod(900), 2000) or 0) > 1.3 * period_limit(2000, 7, 900, float)


@pytest.mark.slow
def test_a_plan_shows_the_limit() -> None:
    timeline = Timeline("2013-01-01", "2014-01-01", step="1d")
    plan = Plan([Rolling(28)], timeline=timeline, unit=ItemPerPeriod(7), budget=ApproxDP(1.0, 1e-6))
    (forecast,) = plan.forecast()
    assert forecast.limit is not None
    assert forecast.limit > 10.85
    assert forecast.ratio_to_limit is not None
    assert 1 <= forecast.ratio_to_limit < 1.06


@pytest.mark.parametrize(("steps", "length", "period"), [(10_000, 28, 365), (10_000, 365, 30), (400, 200, 200)])
def test_the_numbers_that_are_drawn_do_not_grow_with_the_problem(steps: int, length: int, period: int) -> None:
    assert 100_000 < changes(length, period).size < 500_000
    assert period_limit(steps, length, period, lambda first: 1.0) > 1
