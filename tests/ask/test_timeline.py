"""Time ranges, their steps, and the map from a time to its step."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpwindows.ask.timeline import Timeline
from dpwindows.count.query.step_map import StepMap, instant_map, wall_map
from dpwindows.errors import InputError
from tests.search import examples

HOUR_US = 3_600_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def hours(timeline: Timeline) -> list[float]:
    """The lengths of the steps in hours."""
    return [float(length) / HOUR_US for length in np.diff(timeline.boundary_values)]


def step_at(step_map: StepMap, time: int) -> int | None:
    """The step of one time by the pieces themselves, without SQL."""
    found = [piece.step(time) for piece in step_map.pieces if piece.low <= time < piece.high]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize(
    ("start", "end", "step", "steps"),
    [
        ("2013-01-01", "2014-01-01", "1d", 365),
        ("2013-01-01", "2013-01-02", "15m", 96),
        ("2013-01-01", "2013-01-02", "1h", 24),
        ("2013-01-01", "2013-01-01T00:01", "30s", 2),
        ("2013-01-01", "2013-01-29", "1w", 4),
        ("2013-01-15", "2014-01-15", "1mo", 12),
        ("2013-01-15T06:00", "2014-01-15T06:00", "3mo", 4),
        (date(2013, 1, 1), datetime(2013, 1, 3), "1d", 2),
        ("2013-01-01T00:00Z", "2013-01-03T01:00+01:00", "1d", 2),
        (0, 10, 2, 5),
        ("-4", "6", "5", 2),
    ],
)
def test_number_of_steps(start: str | int, end: str | int, step: str | int, steps: int) -> None:
    timeline = Timeline(start, end, step)
    assert timeline.steps == steps
    assert len(timeline.boundaries()) == steps + 1
    assert Timeline.from_dict(timeline.to_dict()) == timeline


@pytest.mark.parametrize(
    ("zone", "start", "end", "lengths"),
    [
        ("America/New_York", "2021-03-13", "2021-03-16", [24, 23, 24]),
        ("America/New_York", "2021-11-06", "2021-11-09", [24, 25, 24]),
        ("Asia/Kolkata", "2021-03-13", "2021-03-16", [24, 24, 24]),
        ("Australia/Lord_Howe", "2021-04-03", "2021-04-06", [24, 24.5, 24]),
        ("Australia/Lord_Howe", "2021-10-02", "2021-10-05", [24, 23.5, 24]),
        ("America/Sao_Paulo", "2018-11-04", "2018-11-06", [23, 24]),  # this day begins at 01:00
        ("Pacific/Apia", "2011-12-29", "2012-01-01", [24, 0, 24]),  # 30 December was left out
    ],
)
def test_days_follow_the_zone(zone: str, start: str, end: str, lengths: list[float]) -> None:
    timeline = Timeline(start, end, "1d", zone)
    assert hours(timeline) == lengths
    assert Timeline.from_dict(timeline.to_dict()) == timeline


def test_hours_are_elapsed_time() -> None:
    assert Timeline("2021-03-14", "2021-03-15", "1h", "America/New_York").steps == 23
    assert Timeline("2021-11-07", "2021-11-08", "1h", "America/New_York").steps == 25


def test_months_keep_their_day() -> None:
    timeline = Timeline("2021-01-15", "2021-05-15", "1mo", "America/New_York")
    assert [str(bound.as_py())[:10] for bound in timeline.boundaries()] == [
        f"2021-{month:02}-15" for month in range(1, 6)
    ]
    assert hours(timeline) == [31 * 24, 28 * 24 - 1, 31 * 24, 30 * 24]


def test_boundaries_carry_the_zone() -> None:
    boundaries = Timeline("2021-03-14", "2021-03-16", "1d", "America/New_York").boundaries()
    assert str(boundaries.type) == "timestamp[us, tz=America/New_York]"
    assert str(boundaries[1].as_py()) == "2021-03-15 00:00:00-04:00"
    assert str(Timeline.of_steps(3).boundaries().type) == "int64"
    assert Timeline.of_steps(3).boundaries().to_pylist() == [0, 1, 2, 3]


def test_the_second_of_two_equal_local_times_survives() -> None:
    second = datetime(2021, 11, 7, 1, 30, tzinfo=ZoneInfo("America/New_York"), fold=1)
    timeline = Timeline(second, "2021-11-09T01:30", "1d", "America/New_York")
    assert timeline.boundary_values[0] == (second - EPOCH) // timedelta(microseconds=1)
    assert Timeline.from_dict(timeline.to_dict()) == timeline
    assert timeline != Timeline("2021-11-07T01:30", "2021-11-09T01:30", "1d", "America/New_York")


def test_millions_of_steps() -> None:
    timeline = Timeline("2000-01-01", "2010-01-01", "1m")
    assert timeline.steps == 3653 * 1440
    assert timeline.step_of("2009-12-31T23:59") == timeline.steps - 1


def test_step_of_reads_boundaries_only() -> None:
    timeline = Timeline("2013-01-01", "2014-01-01")
    assert timeline.step_of("2013-01-01") == 0
    assert timeline.step_of(date(2013, 2, 1)) == 31
    assert timeline.step_of(datetime(2014, 1, 1, tzinfo=UTC)) == 365
    with pytest.raises(InputError, match="the nearest are 2013-02-01 and 2013-02-02"):
        timeline.step_of("2013-02-01T12:00")
    with pytest.raises(InputError, match="2014-01-02 is outside the range, which is 2013-01-01 to 2014-01-01"):
        timeline.step_of("2014-01-02")
    assert Timeline(10, 30, 5).step_of("20") == 2
    with pytest.raises(InputError, match="the nearest are 20 and 25"):
        Timeline(10, 30, 5).step_of(21)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("2013-01-02", "2013-01-01"), "end must be after start, got start=2013-01-02 and end=2013-01-01"),
        (("2013-01-02", "2013-01-02"), "end must be after start"),
        ((5, 5, 1), "end must be after start"),
        (("2013-01-01", "2013-01-10", "1w"), "the nearest end is 2013-01-08 or 2013-01-15"),
        (("2013-01-01", "2013-01-01T05:00", "1d"), "the nearest end is 2013-01-02"),
        (("2013-01-01", "2013-02-14", "1mo"), "the nearest end is 2013-02-01 or 2013-03-01"),
        ((0, 10, 3), "the nearest end is 9 or 12"),
        (("2013-01-31", "2013-03-31", "1mo"), "must start on day 1 to 28"),
        (("2013-01-01", "2014-01-01", "1y"), "unknown unit 'y' in '1y'; known units are s"),
        (("2013-01-01", "2014-01-01", "d"), "step must be text such as"),
        (("2013-01-01", "2014-01-01", "0d"), "step must be at least 1"),
        (("2013-01-01", "2014-01-01", "9999999mo"), "shorter than 500 years"),
        ((0, 10, 0), "step must be at least 1"),
        ((0, 10, -1), "step must be at least 1"),
        ((0, 10, True), "step must be an integer"),
        ((0, 10, "1d"), "start must be a time where step has a unit, got the integer 0"),
        (("2013-01-01", "2014-01-01", 1), "start must be an integer where step is a plain integer"),
        (("soon", "2014-01-01"), "start must be a date or time such as"),
        (("2013-01-01", "2014-02-30"), "end must be a date or time such as"),
        (("0001-01-01", "2014-01-01"), "years 1000 to 9000"),
        (("2013-01-01", "2014-01-01", "1d", "Mars/Base"), r"time_zone\) must be a name such as"),
        (("2013-01-01", "2014-01-01", "1d", "berlin"), "got 'berlin' \\(did you mean 'Europe/Berlin'\\?\\)"),
        (("2013-01-01", "2014-01-01", "1d", ""), r"time_zone\) must be a name such as"),
        (("1000-01-01", "9000-01-01", "1s"), "take longer steps"),
        ((0, 2**61, 1), "take longer steps"),
        ((0, 2**80, 1), "must lie between"),
    ],
)
def test_bad_ranges_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Timeline(*arguments)  # type: ignore[arg-type]


def test_from_dict_names_what_is_missing() -> None:
    with pytest.raises(InputError, match="missing: end, time_zone"):
        Timeline.from_dict({"start": 0, "step": 1})


def test_text() -> None:
    assert str(Timeline("2013-01-01", "2014-01-01", "1d", "Asia/Kolkata")) == (
        "365 steps of 1d from 2013-01-01 to 2014-01-01 (Asia/Kolkata)"
    )
    assert str(Timeline.of_steps(1)) == "1 step of 1 from 0 to 1"
    assert Timeline("2013-01-01", "2014-01-01", " 01d").step_text == "1d"


TIMELINES = [
    Timeline("2021-03-01", "2021-11-20", "1d", "America/New_York"),
    Timeline("2021-03-13T02:30", "2021-03-17T02:30", "1d", "America/New_York"),
    Timeline("2021-11-06T01:30", "2021-11-09T01:30", "1d", "America/New_York"),
    Timeline("2021-03-13", "2021-03-15T12:00", "1h", "America/New_York"),
    Timeline("2021-11-06", "2021-11-08T06:00", "1h", "America/New_York"),
    Timeline("2021-03-13", "2021-03-14T03:30", "30m", "America/New_York"),
    Timeline("2021-04-01", "2021-10-10", "1d", "Australia/Lord_Howe"),
    Timeline("2021-04-04", "2021-04-05", "30m", "Australia/Lord_Howe"),
    Timeline("2005-10-29", "2005-11-02", "1d", "America/St_Johns"),  # clocks went back over midnight
    Timeline("2011-12-28", "2012-01-02", "1d", "Pacific/Apia"),
    Timeline("2018-11-03", "2018-11-06", "1d", "America/Sao_Paulo"),
    Timeline("2020-01-15", "2022-01-15", "1mo", "Europe/Berlin"),
    Timeline("1969-12-30", "1970-01-03", "1d", "Asia/Kolkata"),
    Timeline("2021-01-04", "2021-12-06", "2w", "Europe/London"),
]


@given(timeline=st.sampled_from(TIMELINES), share=st.floats(-0.1, 1.1), second=st.integers(-7200, 7200))
@examples(600)
def test_every_time_meets_its_step(timeline: Timeline, share: float, second: int) -> None:
    """Instants by search among the boundaries; local times by what Python's own zone makes of them."""
    bounds = timeline.boundary_values
    near = bounds[int(np.clip(share * timeline.steps, 0, timeline.steps))]
    for instant in (int(near) + second * 1_000_000, int(bounds[0] + share * (bounds[-1] - bounds[0]))):
        expected = int(np.searchsorted(bounds, instant, side="right"))
        inside = bool(bounds[0] <= instant < bounds[-1])
        assert step_at(instant_map(timeline), instant) == (expected if inside else None)
        wall = (
            (EPOCH + timedelta(microseconds=instant))
            .astimezone(ZoneInfo(timeline.time_zone))
            .replace(tzinfo=None, fold=0)
        )
        for shifted in (wall, wall + timedelta(minutes=30), wall + timedelta(hours=1)):
            meant = (shifted.replace(tzinfo=ZoneInfo(timeline.time_zone)) - EPOCH) // timedelta(microseconds=1)
            local = (shifted - datetime(1970, 1, 1)) // timedelta(microseconds=1)
            assert step_at(wall_map(timeline), local) == step_at(instant_map(timeline), meant)


@pytest.mark.parametrize("timeline", TIMELINES, ids=str)
def test_sql_says_the_same(timeline: Timeline) -> None:
    for step_map in (instant_map(timeline), wall_map(timeline)):
        times = sorted(
            {edge + shift for piece in step_map.pieces for edge in (piece.low, piece.high) for shift in (-1, 0)}
        )
        times = [time for time in times if step_map.low <= time < step_map.high]
        rows = ", ".join(f"({time})" for time in times)
        query = f"SELECT {step_map.sql('t')} FROM (VALUES {rows}) AS times(t) ORDER BY t"
        found = duckdb.execute(query).fetchall()
        assert [step for (step,) in found] == [step_at(step_map, time) for time in times]


def test_whole_days_of_naive_times_take_one_division() -> None:
    assert len(wall_map(TIMELINES[0]).pieces) == 1
    assert len(instant_map(TIMELINES[0]).pieces) > 1
    assert all(first.high <= second.low for first, second in pairwise(instant_map(TIMELINES[0]).pieces))


@pytest.mark.parametrize(("zone", "hours_ahead"), [("UTC", 0), ("Etc/GMT-3", 3)])
def test_a_clock_that_never_changes_is_not_looked_up_day_by_day(zone: str, hours_ahead: int) -> None:
    assert ZoneInfo(zone).utcoffset(None) is not None
    made = Timeline("1000-01-01", "9000-01-01", "120mo", zone)
    assert (list(made.offsets.changes), list(made.offsets.offsets)) == ([], [hours_ahead * HOUR_US])


def test_zones_whose_clock_changes_have_no_fixed_offset() -> None:
    """What the shortcut for other zones rests on; Istanbul has stood still since 2016, and did not before."""
    for zone in ("America/New_York", "Europe/Istanbul", "Asia/Kolkata"):
        assert ZoneInfo(zone).utcoffset(None) is None
