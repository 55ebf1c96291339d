"""Logs that every engine must count alike, and their steps by Python's own calendar."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import datafusion
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EngineSettings
from tests.brute_force import any_window

THRESHOLDS = [1, 2, 3, 7, 50]
# Equal for a collation, a trim, a number or a normal form, and different as bytes.
TEXTS = ["a", "A", "a ", " a", "ä", "Ä", "a\u0308", "ae", "ß", "ss", "SS", "7", "07", "7.0", "", "%", "it's"]
TEXTS += ["\u200ba", "a\n"]
NUMBERS = [0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 12345678901234567, 12345678901234568]
EIGHTHS = [Decimal(number) / 8 for number in range(9)]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Log:
    """Rows (item, time, count), any of them perhaps null; `time` and `count` say what these are."""

    name: str
    timeline: Timeline
    time: str
    rows: list[tuple[Any, Any, Any]]
    weighted: bool
    count: str = "integer"

    @property
    def table(self) -> pa.Table:
        """The rows as Arrow."""
        items, times, counts = zip(*self.rows, strict=True)
        kinds = {
            "zoned": pa.timestamp("us", tz="UTC"),
            "naive": pa.timestamp("us"),
            "date": pa.date32(),
            "integer": pa.int64(),
            "decimal": pa.decimal128(38, 9),
            "text": pa.string(),
        }
        columns = [pa.array(items), pa.array(times, kinds[self.time]), pa.array(counts, kinds[self.count])]
        return pa.table(columns, ["item", "time", "count"])

    @cached_property
    def events(self) -> list[tuple[Any, int, int]]:
        """The occurrences within the range: item, step and how many."""
        events = []
        for item, time, count in self.rows:
            step = None if time is None else step_of(self.timeline, time)
            occurrences = 1 if not self.weighted else 0 if count is None else int(count)
            if item is not None and step is not None and occurrences >= 1:
                events.append((item, step, occurrences))
        return events

    @cached_property
    def windows(self) -> dict[int, list[list[int]]]:
        """Any-window counts for each of THRESHOLDS, from the definition alone."""
        return {k: any_window(self.events, k, self.timeline.steps) for k in THRESHOLDS}


@dataclass(frozen=True)
class Place:
    """Where a log has been put."""

    source: object
    table: str | None = None
    settings: EngineSettings | None = None


Put = Callable[[pa.Table, Path, pytest.FixtureRequest], Place]


def in_duckdb(rows: pa.Table, directory: Path, request: pytest.FixtureRequest) -> Place:
    return Place(rows)


def in_duckdb_table(rows: pa.Table, directory: Path, request: pytest.FixtureRequest) -> Place:
    """A table whose texts are of a collation by which many of them are equal."""
    path = directory / "log.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("rows", rows)
        described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE rows)").fetchall()
        collated = {"VARCHAR": "VARCHAR COLLATE NOCASE.NOACCENT"}
        kinds = ", ".join(f'"{name}" {collated.get(kind, kind)}' for name, kind in described)
        connection.execute(f"CREATE TABLE log ({kinds})")
        connection.execute("INSERT INTO log SELECT * FROM rows")
    return Place(path, "log")


def in_sqlite(rows: pa.Table, directory: Path, request: pytest.FixtureRequest) -> Place:
    path = directory / "log.sqlite"

    def plain(value: Any) -> Any:
        if isinstance(value, Decimal) and "." in (text := format(value, "f")):
            return text.rstrip("0").rstrip(".")
        return str(value) if isinstance(value, datetime | date | Decimal) else value

    # SQLite has no decimals: a column of NUMERIC affinity keeps whole ones as integers, and texts would be, too.
    numeric = {field.name for field in rows.schema if pa.types.is_decimal(field.type) and field.name == "count"}
    kinds = ", ".join(f"{name} {'NUMERIC' if name in numeric else ''} COLLATE NOCASE" for name in rows.column_names)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE log ({kinds})")
        marks = ", ".join("?" * rows.num_columns)
        connection.executemany(f"INSERT INTO log VALUES ({marks})", [tuple(map(plain, row)) for row in _plain(rows)])
    return Place(path)


def in_postgresql(rows: pa.Table, directory: Path, request: pytest.FixtureRequest) -> Place:
    server = request.getfixturevalue("server")

    def kind(type_: pa.DataType) -> str:
        if pa.types.is_timestamp(type_):
            return "timestamp" if type_.tz is None else "timestamptz"
        return {"date32[day]": "date", "int64": "bigint", "string": "text"}.get(str(type_), "numeric")

    with server.connect() as connection:
        kinds = ", ".join(f"{field.name} {kind(field.type)}" for field in rows.schema)
        connection.execute(f"DROP TABLE IF EXISTS put; CREATE TABLE put ({kinds}); GRANT SELECT ON put TO reader")
        with connection.cursor().copy("COPY put FROM STDIN") as copy:
            for row in _plain(rows):
                copy.write_row(row)
    return Place(server.address(), "put")


def in_spark(rows: pa.Table, directory: Path, request: pytest.FixtureRequest) -> Place:
    request.getfixturevalue("spark")
    pq.write_table(rows, directory / "log.parquet")
    return Place(directory / "log.parquet", None, EngineSettings(engine="spark"))


def in_clickhouse(rows: pa.Table, directory: Path, request: pytest.FixtureRequest) -> Place:
    """A table of ClickHouse; times without a zone, which it has not, as text."""
    session = request.getfixturevalue("clickhouse")

    def kind(field: pa.Field) -> str:
        shown = {"int64": "Int64", "date32[day]": "Date32", "string": "String"}.get(str(field.type), "Decimal(38, 9)")
        shown = "DateTime64(6, 'Australia/Lord_Howe')" if pa.types.is_timestamp(field.type) else shown
        return f"{field.name} {'LowCardinality(Nullable(String))' if shown == 'String' else f'Nullable({shown})'}"

    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is None:
            texts = [None if time is None else time.isoformat() for time in rows[field.name].to_pylist()]
            rows = rows.set_column(place, field.name, pa.array(texts))
    pq.write_table(rows, directory / "put.parquet")
    session.query("DROP TABLE IF EXISTS put")
    session.query(f"CREATE TABLE put ({', '.join(map(kind, rows.schema))}) ENGINE = MergeTree ORDER BY tuple()")
    session.query(f"INSERT INTO put SELECT * FROM file('{directory / 'put.parquet'}', Parquet)")
    return Place(session, "put")


def in_datafusion(rows: pa.Table, directory: Path, request: pytest.FixtureRequest) -> Place:
    session = datafusion.SessionContext()
    session.from_arrow(rows, "put")
    return Place(session, "put")


def _plain(rows: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


ENGINES = [
    *(pytest.param(put, id=put.__name__) for put in (in_duckdb, in_duckdb_table, in_sqlite)),
    pytest.param(in_postgresql, id="postgresql", marks=pytest.mark.xdist_group("postgresql")),
    pytest.param(in_clickhouse, id="clickhouse", marks=pytest.mark.xdist_group("clickhouse")),
    # With ClickHouse: one process asks DataFusion what its probe asks.
    pytest.param(in_datafusion, id="datafusion", marks=pytest.mark.xdist_group("clickhouse")),
    pytest.param(in_spark, id="spark", marks=pytest.mark.xdist_group("spark")),
]
"""The parameters of a test that runs with a log put into every place that an engine of the tests reads."""


def step_of(timeline: Timeline, time: datetime | date | Decimal | int | str) -> int | None:
    """The step of a time by search among the boundaries; None outside the range."""
    if isinstance(time, Decimal):
        time = int(time)
    if isinstance(time, str):
        time = int(time) if timeline.is_integer else datetime.fromisoformat(time)
    if isinstance(time, date) and not isinstance(time, datetime):
        time = datetime(time.year, time.month, time.day)
    if isinstance(time, datetime):
        zoned = time if time.tzinfo else time.replace(tzinfo=ZoneInfo(timeline.time_zone), fold=0)
        time = (zoned.astimezone(UTC) - EPOCH) // MICROSECOND
    step = int(np.searchsorted(timeline.boundary_values, time, side="right"))
    return step if 1 <= step <= timeline.steps else None


def _times(rng: random.Random, timeline: Timeline, events: int) -> list[int]:
    """Boundary values: random ones, and such as lie on or beside a boundary of a step, in and out of the range."""
    bounds = [int(bound) for bound in timeline.boundary_values]
    spread = bounds[-1] - bounds[0]
    near = [bound + shift for bound in bounds for shift in (-1, 0, 1)]
    busy = rng.randrange(bounds[0], bounds[-1])
    kinds = [
        lambda: bounds[0] + rng.randrange(-spread // 20, spread + spread // 20),
        lambda: rng.choice(near),
        lambda: busy,
    ]
    return [rng.choice(kinds)() for _ in range(events)]


def _instant(value: int) -> datetime:
    return EPOCH + value * MICROSECOND


def _local(timeline: Timeline) -> Callable[[int], datetime]:
    zone = ZoneInfo(timeline.time_zone)
    return lambda value: _instant(value).astimezone(zone).replace(tzinfo=None, fold=0)


def _naive(timeline: Timeline, rng: random.Random) -> Callable[[int], datetime]:
    """Local times, some of which never happened: clocks that go forward leave a gap."""
    local = _local(timeline)
    return lambda value: local(value) + rng.choice([0, 0, 0, 15, 30, 45]) * timedelta(minutes=1)


def _text(timeline: Timeline, rng: random.Random) -> Callable[[int], str]:
    """ISO 8601 text in every form that is read, some of it with an offset of its own."""

    def write(value: int) -> str:
        local = _local(timeline)(value)
        offset = timedelta(minutes=rng.choice([0, 330, -180, 60 * rng.randint(-12, 12)]))
        zoned = (_instant(value) + offset).replace(tzinfo=None).isoformat(rng.choice("T "), "microseconds")
        hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
        sign = "-" if offset < timedelta(0) else "+"
        endings = [f"{sign}{hours:02}:{minutes:02}"]
        endings += [f"{sign}{hours:02}"] if minutes == 0 else []
        endings += ["Z"] if not offset else []
        forms = [
            local.date().isoformat(),
            local.isoformat(" ", "minutes"),
            local.isoformat("T", "seconds"),
            local.isoformat("T", "milliseconds"),
            local.isoformat("T", "microseconds"),
            local.isoformat(" ", "microseconds") + "999",
            zoned + rng.choice(endings),
            zoned[:19] + rng.choice(endings),
            zoned[:16] + rng.choice(endings),
        ]
        return rng.choice(forms)

    return write


def _log(
    name: str, timeline: Timeline, time: str, items: list[Any], seed: int, *, weighted: bool, count: str = "integer"
) -> Log:
    rng = random.Random(seed)
    writers: dict[str, Callable[[int], Any]] = {
        "zoned": _instant,
        "naive": _naive(timeline, rng),
        "date": lambda value: _local(timeline)(value).date(),
        "integer": int,
        "decimal": Decimal,
        "text": str if timeline.is_integer else _text(timeline, rng),
    }
    write = writers[time]
    counts = [1, 1, 1, 2, 3, 6, 7, 49, 50, 2**40, 0, -3, None]
    tell = {"integer": int, "decimal": Decimal, "text": str}[count]

    def occurrences(number: int | None) -> Any:
        return None if number is None else tell(number)

    rows: list[tuple[Any, Any, Any]] = [
        (rng.choice(items), write(value), occurrences(rng.choice(counts))) for value in _times(rng, timeline, 260)
    ]
    rows += [(None, write(int(timeline.boundary_values[0])), occurrences(1)), (items[0], None, occurrences(1))]
    return Log(name, timeline, time, rows, weighted, count)


_NEW_YORK = Timeline("2021-03-10", "2021-03-26", "1d", "America/New_York")
_FALL = Timeline("2021-11-07", "2021-11-07T12:00", "1h", "America/New_York")
_LORD_HOWE = Timeline("2021-04-03T20:00", "2021-04-04T06:00", "30m", "Australia/Lord_Howe")
_SPRING = Timeline("2021-03-14T01:30", "2021-03-14T03:30", "15m", "America/New_York")  # ends within the gap
_MONTHS = Timeline("2020-01-15", "2021-07-15", "1mo", "Europe/Berlin")
_OLD = Timeline("1969-12-20", "1970-01-12", "1d", "Asia/Kolkata")
_NUMBERS = Timeline(-30, 70, 5)

LOGS = [
    _log("zoned days", _NEW_YORK, "zoned", TEXTS, 1, weighted=True),
    _log("naive days", _NEW_YORK, "naive", TEXTS, 2, weighted=False),
    _log("naive hours of a day of 25", _FALL, "naive", NUMBERS, 3, weighted=True),
    _log("zoned half hours", _LORD_HOWE, "zoned", NUMBERS, 4, weighted=False),
    _log("naive half hours", _LORD_HOWE, "naive", TEXTS, 5, weighted=True),
    _log("naive times of a range with a hole", _SPRING, "naive", NUMBERS, 12, weighted=False),
    _log("dates in months", _MONTHS, "date", TEXTS, 6, weighted=True),
    _log("before 1970", _OLD, "zoned", NUMBERS, 7, weighted=True),
    _log("integer time", _NUMBERS, "integer", TEXTS, 8, weighted=True),
    _log("text time", _NEW_YORK, "text", NUMBERS, 9, weighted=True),
    _log("text time in hours", _FALL, "text", TEXTS, 10, weighted=False),
    _log("integers as text", _NUMBERS, "text", NUMBERS, 11, weighted=True, count="text"),
    _log("decimals", _NUMBERS, "decimal", EIGHTHS, 13, weighted=True, count="decimal"),
]
