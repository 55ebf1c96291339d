"""Times by --time-format: each value is read by itself, by Python's own calendar, and what is not of it is refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpwindows as dw
from dpwindows.count.events import EventColumns
from dpwindows.errors import InputError
from dpwindows.ledger.request import Request
from dpwindows.stream.records import Creation
from tests.counting import in_steps

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = {"epoch-s": 10**6, "epoch-ms": 10**3, "epoch-us": 1}
DAYS = dw.Timeline("2013-03-01", "2013-04-01", "1d", "America/New_York")


def moments() -> list[datetime]:
    """Around every boundary of the range, its clock change among them, and far out on both sides."""
    zone = ZoneInfo("America/New_York")
    days = [datetime(2013, 3, 1, tzinfo=zone) + timedelta(days=day) for day in range(32)]
    ends = [
        datetime(1901, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(9000, 1, 1, tzinfo=UTC),
    ]
    return [*(day.astimezone(UTC) + timedelta(seconds=s) for day in days for s in (-1, 0, 1, 9000)), *ends]


def by_day(times: list[datetime]) -> list[int]:
    zone = ZoneInfo("America/New_York")
    local = [time.astimezone(zone).date() for time in times]
    return [sum((day.year, day.month, day.day) == (2013, 3, n) for day in local) for n in range(1, 32)]


def counted(
    source: object, time_format: str | None, timeline: dw.Timeline = DAYS, table: str | None = None
) -> list[int]:
    return in_steps(source, EventColumns("item", "time", time_format=time_format), timeline, table=table)


def in_csv(rows: dict[str, Any], folder: Path) -> tuple[object, str | None]:
    lines = [f"{item},{time}" for item, time in zip(rows["item"], rows["time"], strict=True)]
    (folder / "log.csv").write_text("\n".join(["item,time", *lines, ""]))
    return folder / "log.csv", None


def in_parquet(rows: dict[str, Any], folder: Path) -> tuple[object, str | None]:
    pq.write_table(pa.table(rows), folder / "log.parquet")
    return folder / "log.parquet", None


def in_frame(rows: dict[str, Any], folder: Path) -> tuple[object, str | None]:
    import pandas as pd

    return pd.DataFrame(rows), None


def in_floats(rows: dict[str, Any], folder: Path) -> tuple[object, str | None]:
    return pa.table({"item": rows["item"], "time": pa.array([float(time) for time in rows["time"]])}), None


def in_decimals(rows: dict[str, Any], folder: Path) -> tuple[object, str | None]:
    times = pa.array([Decimal(time) for time in rows["time"]], pa.decimal128(20, 2))
    return pa.table({"item": rows["item"], "time": times}), None


def in_relation(rows: dict[str, Any], folder: Path) -> tuple[object, str | None]:
    return duckdb.connect().from_arrow(pa.table(rows)), None


def in_sqlite(rows: dict[str, Any], folder: Path) -> tuple[object, str | None]:
    with sqlite3.connect(folder / "log.sqlite") as connection:
        connection.execute("CREATE TABLE log (item, time)")
        connection.executemany("INSERT INTO log VALUES (?, ?)", zip(rows["item"], rows["time"], strict=True))
    connection.close()
    return folder / "log.sqlite", "log"


Put = Callable[[dict[str, Any], Path], tuple[object, str | None]]


@pytest.mark.parametrize("time_format", UNITS)
@pytest.mark.parametrize("put", [in_csv, in_parquet, in_frame, in_floats, in_decimals, in_relation, in_sqlite])
def test_epochs_are_instants_in_every_source(put: Put, time_format: str, tmp_path: Path) -> None:
    times = moments()
    # Floating-point numbers beyond are refused: another test.
    times = [time for time in times if put is not in_floats or abs(time - EPOCH) < timedelta(microseconds=2**53)]
    numbers = [(time - EPOCH) // timedelta(microseconds=UNITS[time_format]) for time in times]
    items = [f"i{place}" for place in range(len(times))]
    source, table = put({"item": items, "time": numbers}, tmp_path)
    assert counted(source, time_format, table=table) == by_day(times)


@pytest.mark.xdist_group("postgresql")
def test_epochs_in_postgresql(server: Any) -> None:
    times = moments()
    with server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS epochs")
        connection.execute("CREATE TABLE epochs (item text, time bigint)")
        connection.execute("GRANT SELECT ON epochs TO reader")
        for place, time in enumerate(times):
            connection.execute(
                "INSERT INTO epochs VALUES (%s, %s)", (str(place), (time - EPOCH) // timedelta(milliseconds=1))
            )
    assert counted(server.address(), "epoch-ms", table="epochs") == by_day(times)
    with pytest.raises(InputError, match=r"engine postgresql does not read times by a pattern.*'%Y%m%d'"):
        counted(server.address(), "%Y%m%d", table="epochs")


def test_numbers_as_large_as_they_come_are_outside_the_range() -> None:
    far = [2**63 - 1, -(2**63), 2**62, 0]
    for time_format in UNITS:
        assert sum(counted(pa.table({"item": ["a"] * 4, "time": far}), time_format)) == 0
    text = pa.table({"item": ["a", "b"], "time": ["9" * 60, "-" + "9" * 60]})
    assert sum(counted(text, "epoch-s")) == 0


@pytest.mark.parametrize(
    "times",
    [
        *(pa.array([1362200000.5]), pa.array([float("inf")]), pa.array([2.0**53]), pa.array([2.0**24], pa.float32())),
        *(pa.array([Decimal("1362200000.5")]), pa.array(["1362200000.5"]), pa.array(["2013-03-05"]), pa.array([""])),
        pa.array(["nan"]),
    ],
    ids=str,
)
def test_a_number_that_is_not_whole_or_not_exact_is_refused(times: pa.Array) -> None:
    """Even beside rows that would do: nothing is rounded, and nothing is left out silently."""
    log = pa.table({"item": ["a", "b"], "time": pa.concat_arrays([times, times[:0], pa.nulls(1, times.type)])})
    with pytest.raises(InputError, match=r"time column 'time'.*--time-format"):
        counted(log, "epoch-s")


def test_no_time_at_all_is_passed_over() -> None:
    times = pa.array([None, float("nan"), 1362200000.0])
    assert sum(counted(pa.table({"item": ["a", "b", "c"], "time": times}), "epoch-s")) == 1


# Text, pattern, and the moment on the clock of New York, or the instant.
PATTERNS = [
    ("03/05/2013 11:59:59 PM", "%m/%d/%Y %I:%M:%S %p", 5),
    ("05.03.2013", "%d.%m.%Y", 5),
    ("3/5/13 0:00", "%m/%d/%y %H:%M", 5),
    ("20130331", "%Y%m%d", 31),
    ("2013 064", "%Y %j", 5),
    ("05/Mar/2013:23:30:00 -0500", "%d/%b/%Y:%H:%M:%S %z", 5),
    ("06/Mar/2013:04:30:00 +0000", "%d/%b/%Y:%H:%M:%S %z", 5),
    ("06/Mar/2013:05:00:00 +0000", "%d/%b/%Y:%H:%M:%S %z", 6),
    ("2013-03-06 04:30:00 UTC", "%Y-%m-%d %H:%M:%S UTC", 5),
    ("20130306T043000Z", "%Y%m%dT%H%M%SZ", 5),
    ("2013-03-05 23:59:59.999999", "%Y-%m-%d %H:%M:%S.%f", 5),
    ("100% 2013-03-05", "100%% %Y-%m-%d", 5),
    # In the gap of that night, and after it: the rule of ISO text.
    ("2013-03-10 02:30", "%Y-%m-%d %H:%M", 10),
    ("Sun 2013-03-10", "%a %Y-%m-%d", 10),
]


@pytest.mark.parametrize("put", [in_frame, in_sqlite])
@pytest.mark.parametrize(("text", "pattern", "day"), PATTERNS)
def test_patterns_are_read_by_the_calendar(put: Put, text: str, pattern: str, day: int, tmp_path: Path) -> None:
    log, table = put({"item": ["a", "b"], "time": [text, None]}, tmp_path)
    assert counted(log, pattern, table=table) == [int(day == n) for n in range(1, 32)]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [("01/01/0001", "%m/%d/%Y"), ("00240305", "%Y%m%d"), ("05030024", "%d%m%Y"), ("0999 064", "%Y %j")],
)
def test_four_digits_are_a_year_however_long_ago(text: str, pattern: str) -> None:
    assert sum(counted(pa.table({"item": ["a"], "time": [text]}), pattern)) == 0


def test_a_year_of_two_digits_is_refused_with_the_format_that_reads_it() -> None:
    with pytest.raises(InputError, match=r"'03/05/13'.*: give another format \(.*%y one of two\)"):
        counted(pa.table({"item": ["a"], "time": ["03/05/13"]}), "%m/%d/%Y")
    assert counted(pa.table({"item": ["a"], "time": ["03/05/13"]}), "%m/%d/%y")[4] == 1


def test_whole_numbers_are_read_by_their_digits() -> None:
    assert counted(pa.table({"item": ["a"], "time": [20130305]}), "%Y%m%d")[4] == 1


def test_gap_and_fold_are_those_of_iso_text() -> None:
    """A pattern and ISO text of the same clock fall into the same hour, also where the clock skips or repeats one."""
    for first, last in (("2013-03-10", "2013-03-11"), ("2013-11-03", "2013-11-04")):
        hours = dw.Timeline(first, last, "1h", "America/New_York")
        texts = [f"{first} {hour:02}:{minute:02}" for hour in range(24) for minute in (0, 30)]
        items = [str(place) for place in range(len(texts))]
        iso = counted(pa.table({"item": items, "time": texts}), "iso", hours)
        other = [f"{text[11:]} {text[:10]}" for text in texts]
        assert counted(pa.table({"item": items, "time": other}), "%H:%M %Y-%m-%d", hours) == iso
        assert sum(iso) == len(texts)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        *(("2013-03-05", "%m/%d/%Y"), ("13/05/2013", "%m/%d/%Y"), ("epoch", "%Y-%m-%d"), ("infinity", "%Y-%m-%d")),
        *(("2013-02-30", "%Y-%m-%d"), ("2013-03-05x", "%Y-%m-%d"), ("", "%Y-%m-%d")),
        # Of %Y no year of fewer than four digits: not 13 for the year 13, and not 013.
        *(("03/05/13", "%m/%d/%Y"), (" 3/5/013 ", "%m/%d/%Y"), ("050313", "%d%m%Y"), ("1152013", "%m%d%Y")),
        *(("13-03-05 10:00", "%Y-%m-%d %H:%M"), ("Tue Mar  5 13", "%a %b %d %Y"), ("06413", "%j%Y")),
        *(("05Mar13", "%d%b%Y"), ("%Y 5. 3. 13", "%%Y %d. %m. %Y"), ("10:00:00.5 13 064", "%H:%M:%S.%f %Y %j")),
        *(("03/05/13 0013", "%m/%d/%Y %H%M"), ("10 PM 3/5/13", "%I %p %m/%d/%Y"), ("+0100 3/5/13", "%z %m/%d/%Y")),
    ],
)
def test_text_off_the_pattern_fails_the_run(text: str, pattern: str) -> None:
    log = pa.table({"item": ["a", "b"], "time": [text, None]})
    with pytest.raises(InputError, match=r"time column 'time' is not all as --time-format '.*' says"):
        counted(log, pattern)


@pytest.mark.parametrize(
    ("time_format", "said"),
    [
        *(("epoch", "no % in it"), ("epoch-ns", "no % in it"), ("%Z %Y-%m-%d", "%Z is not read")),
        *(("%s", "%s is not read"), ("%H:%M", "year, month and day"), ("%Y-%m", "year, month and day")),
        *(("%Y-%m-%d %I:%M", "%I and %p"), ("%Y-%m-%d %d", "day of the month twice"), ("%Y-%m-%d %y", "year twice")),
        *(("%Y-%m-%d %j", "day twice"), ("%Y-%m-%d %", "is not read"), ("", "iso, epoch-s"), (7, "iso, epoch-s")),
    ],
)
def test_formats_that_leave_the_day_open_are_refused(time_format: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        EventColumns("item", "time", time_format=time_format)


def test_a_format_does_not_go_with_integer_steps_or_columns_of_times() -> None:
    log = pa.table({"item": ["a"], "time": [1]})
    with pytest.raises(InputError, match="integer steps"):
        counted(log, "epoch-s", dw.Timeline.of_steps(3))
    times = pa.table({"item": ["a"], "time": pa.array([0], pa.timestamp("us"))})
    for time_format in ("epoch-s", "%Y-%m-%d"):
        with pytest.raises(InputError, match=r"TIMESTAMP.*leave --time-format out"):
            counted(times, time_format)
    with pytest.raises(InputError, match="--time-format epoch-s, epoch-ms or epoch-us"):
        counted(log, None)


def request(time_format: str | None = None) -> Request:
    columns = EventColumns("who", "at", time_format=time_format)
    return Request("release", {"queries": []}, dw.PureDP(1.0), dw.EventLevel(), DAYS, columns)


def test_a_format_is_part_of_a_request_and_of_its_clock_only_where_it_is_given() -> None:
    plain, seconds = request(), request("epoch-s")
    assert plain.key == "eb79d9e140d83f7b872f928a39e11afbf8dca82739a829c6d52cf8d3520c7e60"
    assert plain.facts["columns"] == {"item": "who", "time": "at", "count": None}
    assert plain.place["clock"] == ["America/New_York", "at"]
    assert seconds.key != plain.key
    assert seconds.place["clock"] != plain.place["clock"], "one event may lie in both of two disjoint ranges"
    assert EventColumns("a", "b", time_format="iso") == EventColumns("a", "b")


def test_a_stream_remembers_the_format(tmp_path: Path) -> None:
    plan = dw.StreamPlan([dw.Cumulative()], unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    state = tmp_path / "s.state"
    options: dict[str, Any] = {"item": "who", "time": "at", "start": "2013-03-01", "step": "1d"}
    dw.Stream.create(state, plan, **options, time_format="epoch-s").close()
    with dw.Stream.open(state) as stream:
        creation = stream._creation
        assert Creation.from_json(creation.to_json()).columns.time_format == "epoch-s"
        log = pa.table({"who": ["a"], "at": [int(datetime(2013, 3, 1, 6, tzinfo=UTC).timestamp())]})
        stream.advance(log, "2013-03-02")
        with pytest.raises(InputError, match="time column 'at'"):
            stream.advance(pa.table({"who": ["a"], "at": ["2013-03-02"]}), "2013-03-03")


def test_a_state_without_a_format_is_as_it_was() -> None:
    columns = EventColumns("who", "at", "times")
    made = Creation("id", "s", "t", {}, columns, 0, 0, 1, "UTC", None, None)
    assert '"columns": {"item": "who", "time": "at", "count": "times"}' in made.to_json()
    assert Creation.from_json(made.to_json()) == made
