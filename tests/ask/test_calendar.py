"""Weeks, months, quarters and years of a time zone, against one walk over its days with the standard library."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import dpwindows as dw
from dpwindows.ask.calendar import Calendar
from dpwindows.ask.periods import cuts_first, ends_with, fewest_and_most, first_steps, place, place_of, sizes
from dpwindows.ask.queries import PERIODS, PeriodFamily, Query, parse_window
from dpwindows.ask.windows import are_complete, count_windows, window_steps
from dpwindows.plan.plan import Plan

# Half an hour of summer time, a skipped day, clocks that change at midnight, and more common ones.
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Asia/Beirut", "America/Havana", "Asia/Kolkata")


def period_of(moment: datetime, name: str) -> tuple[int, int]:
    """The period that a local time lies in, straight from the calendar of the standard library."""
    match name:
        case "week":
            return moment.isocalendar()[:2]
        case "month":
            return moment.year, moment.month
        case "quarter":
            return moment.year, (moment.month - 1) // 3
    return moment.year, 0


def placed(window: PeriodFamily, timeline: dw.Timeline) -> PeriodFamily:
    found = place(window, Calendar.of(timeline))
    assert isinstance(found, PeriodFamily)
    return found


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("name", PERIODS)
@pytest.mark.parametrize(
    ("start", "end", "step"),
    [
        ("2011-11-15", "2013-02-03", "1d"),
        ("2012-01-01", "2012-12-31", "1d"),
        ("2013-03-28T05:00", "2013-05-02T13:00", "1h"),
        ("2013-10-20", "2013-11-12", "30m"),
    ],
)
def test_periods_begin_where_local_dates_do(zone: str, name: str, start: str, end: str, step: str) -> None:
    timeline = dw.Timeline(start, end, step=step, time_zone=zone)
    window = placed(dw.Tumbling(name), timeline)
    moments = [value.as_py() for value in timeline.boundaries()]
    lengths = np.diff(timeline.boundary_values)
    own = [period_of(moment.astimezone(ZoneInfo(zone)), name) for moment in moments]
    # A step that a zone left out holds no time, so it belongs to either day.
    expected = [1] + [
        step + 1 for step in range(1, timeline.steps) if own[step] != own[step - 1] and lengths[step - 1] > 0
    ]
    found = first_steps(window, timeline.steps)
    assert found.tolist() == expected
    just_before = moments[0].astimezone(ZoneInfo(zone)) - timedelta(seconds=1)
    assert cuts_first(window) == (period_of(just_before, name) == own[0])
    assert ends_with(window, timeline.steps) == (own[-1] != own[-2])
    assert int(sizes(window, timeline.steps).sum()) == timeline.steps
    for step_number in range(1, timeline.steps + 1, 7):
        period, position = place_of(window, step_number)
        assert found[period - 1] + position - 1 == step_number


def test_weeks_are_those_of_iso_8601() -> None:
    timeline = dw.Timeline("2020-12-20", "2021-01-20")
    window = placed(dw.Tumbling("week"), timeline)
    days = [datetime(2020, 12, 20) + timedelta(days=int(step) - 1) for step in first_steps(window, timeline.steps)]
    assert [day.weekday() for day in days] == [6, 0, 0, 0, 0, 0]
    assert [day.isocalendar()[1] for day in days] == [51, 52, 53, 1, 2, 3]


ENDING_TOGETHER = [
    *((name, step, steps) for name in PERIODS for step, steps in (("1d", 15_000), ("1h", 60_000))),
    *((name, "1mo", 500) for name in ("month", "quarter", "year")),
    *(("quarter", "3mo", 99), ("year", "3mo", 99), ("week", "1w", 500)),
]


@pytest.mark.quick(5)
@pytest.mark.parametrize(("name", "step", "steps"), ENDING_TOGETHER)
def test_no_period_has_more_or_fewer_steps_than_said(name: str, step: str, steps: int) -> None:
    start = "1987-01-01" if step != "1w" else "1987-01-05"
    timeline = dw.Timeline.of_length(start, steps, step, "America/Chicago")
    window = placed(dw.Tumbling(name), timeline)
    fewest, most = fewest_and_most(window)
    whole = sizes(window, timeline.steps)[1:-1]
    assert fewest <= whole.min()
    assert whole.max() <= most
    if step != "1h":
        assert (fewest, most) == (whole.min(), whole.max()), "calendar steps leave no doubt"


@pytest.mark.parametrize(
    ("timeline", "name", "complaint"),
    [
        (dw.Timeline("2013-01-01", "2013-03-05", step="1w"), "month", "a month begins at 2013-02-01 00:00:00"),
        (dw.Timeline("2013-01-01T06:00", "2013-03-05T06:00"), "week", "a week begins at 2013-01-07 00:00:00"),
        (dw.Timeline("2013-01-15", "2013-04-15", step="1mo"), "quarter", "a quarter begins at 2013-04-01"),
        (dw.Timeline("2013-01-01", "2015-01-01", step="2mo"), "quarter", "a quarter begins at 2013-04-01"),
        (dw.Timeline.of_steps(40), "month", "needs a calendar.*tumbling:30"),
    ],
    ids=str,
)
def test_periods_that_begin_within_a_step_are_refused(timeline: dw.Timeline, name: str, complaint: str) -> None:
    with pytest.raises(dw.InputError, match=complaint):
        Plan(dw.Tumbling(name), timeline=timeline, unit=dw.EventLevel(), budget=dw.PureDP(1.0))


def test_steps_longer_than_periods_are_fine_where_no_period_begins_within_one() -> None:
    timeline = dw.Timeline("2013-01-07", "2013-01-28", step="1w")
    window = placed(dw.Tumbling("month"), timeline)
    assert first_steps(window, timeline.steps).tolist() == [1]
    assert cuts_first(window)
    assert not ends_with(window, timeline.steps)


@pytest.mark.parametrize("text", ["tumbling:7", "tumbling:month", "to-date:week", "to-date:quarter", "to-date:28"])
def test_texts_are_read_back(text: str) -> None:
    assert parse_window(text).text == text


@pytest.mark.parametrize("text", ["tumbling", "tumbling:", "tumbling:decade", "to-date", "to-date:-1", "tumbling:0"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(dw.InputError, match="needs a period"):
        parse_window(text)
    with pytest.raises(dw.InputError, match="a period is a number of steps or one of week, month, quarter, year"):
        dw.Tumbling("fortnight")


def test_windows_of_a_range_that_cuts_the_first_and_the_last() -> None:
    timeline = dw.Timeline("2013-01-30", "2013-03-03")
    tumbling, to_date = placed(dw.Tumbling("month"), timeline), placed(dw.ToDate("month"), timeline)
    first, last = window_steps(tumbling, timeline.steps)
    assert list(zip(first.tolist(), last.tolist(), strict=True)) == [(1, 2), (3, 30), (31, 32)]
    assert are_complete(tumbling, first, last, timeline.steps).tolist() == [False, True, False]
    assert are_complete(tumbling, first, last, None).tolist() == [False, True, True]
    assert count_windows(tumbling, timeline.steps) == 3
    first, last = window_steps(to_date, timeline.steps)
    assert last.tolist() == list(range(1, 33))
    assert first.tolist() == [1] * 2 + [3] * 28 + [31] * 2
    assert are_complete(to_date, first, last, timeline.steps).tolist() == [False] * 2 + [True] * 30
    assert count_windows(to_date, timeline.steps) == 32


@pytest.mark.parametrize(("period", "steps"), [(1, 5), (3, 10), (3, 9), (7, 3)])
def test_windows_of_so_many_steps(period: int, steps: int) -> None:
    first, last = window_steps(dw.Tumbling(period), steps)
    expected = [(a, min(a + period - 1, steps)) for a in range(1, steps + 1, period)]
    assert list(zip(first.tolist(), last.tolist(), strict=True)) == expected
    whole = are_complete(dw.Tumbling(period), first, last, steps)
    assert whole.tolist() == [b - a + 1 == period for a, b in expected]
    first, last = window_steps(dw.ToDate(period), steps)
    assert first.tolist() == [(t - 1) // period * period + 1 for t in range(1, steps + 1)]
    assert are_complete(dw.ToDate(period), first, last, steps).all()


def test_a_plan_made_from_the_queries_of_another_has_its_own_calendar() -> None:
    asked: dict[str, Any] = {"unit": dw.EventLevel(), "budget": dw.PureDP(1)}
    january = Plan(dw.Tumbling("month"), timeline=dw.Timeline("2013-01-01", "2013-03-01"), **asked)
    again = Plan(january.queries, timeline=dw.Timeline("2013-01-20", "2013-03-01"), **asked)
    sizes_of = [
        [b - a for a, b in pairwise([*first_steps(w, p.timeline.steps).tolist(), p.timeline.steps + 1])]
        for p in (january, again)
        for w in [p.queries[0].window]
        if isinstance(w, PeriodFamily)
    ]
    assert sizes_of == [[31, 28], [12, 28]]
    assert isinstance(again.queries[0], Query)
