"""A look into a log, for the operator's screen only: its rows, items and times, and what cannot be read.

Everything here is exact and is protected by nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import duckdb

from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import from_microseconds
from dpwindows.count.engines.duckdb import _DuckDB, private_engine, progress_bar, running
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.query.dialect import SHOWN, Column, Kind
from dpwindows.count.query.relation import EventQueries
from dpwindows.count.sources.duckdb import find_parts
from dpwindows.count.sources.places import place_of

_MOST_SHOWN = 5
# As long as any timeline may be: where the clock of a zone stood does not matter here.
_ALL_TIME = Timeline("1000-01-01", "9000-01-01", "1w")
_ALL_NUMBERS = Timeline(-(2**61), 2**61, 2**50)
_LENGTHS = {"s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6, "d": 86_400 * 10**6}


@dataclass(frozen=True)
class BadValue:
    """A value that cannot be read: the role of its column, its text, in how many rows, and where first (or empty)."""

    role: str
    text: str
    rows: int
    place: str


@dataclass(frozen=True)
class Look:
    """What is in a log, exactly.

    `first` and `last` are the first and last time on the log's own clock (of times with an offset: in UTC), as ISO text
    or integers; `grain` is the longest of s, m, h, d that all times are whole multiples of, None where there is none.
    `inside` counts the events of the range, occurrences where there is a count column, `items_inside` their items;
    both are None without a range. `ignored` counts the rows with a count below 1.
    """

    rows: int
    items: int
    null_items: int
    null_times: int
    null_counts: int
    ignored: int
    first: str | int | None
    last: str | int | None
    grain: str | None
    bad_rows: int
    bad: tuple[BadValue, ...]
    rows_inside: int | None = None
    inside: int | None = None
    items_inside: int | None = None

    @property
    def span(self) -> int:
        """From the first time to the last, in microseconds or in whole numbers; 0 where there is none."""
        if self.first is None or self.last is None:
            return 0
        if isinstance(self.first, int) and isinstance(self.last, int):
            return self.last - self.first
        length = datetime.fromisoformat(str(self.last)) - datetime.fromisoformat(str(self.first))
        return length // timedelta(microseconds=1)


class _Lenient(_DuckDB):
    """What cannot be read is null, and no failure."""

    def failure(self, message: str, column: str) -> str:
        return "CAST(NULL AS BIGINT)"


class _Readings(EventQueries):
    """Writes the query for how every row is read, whatever is in it."""

    def readings(self, relation: str, types: Mapping[str, Column]) -> str:
        """The columns item, moment, count, and of what cannot be read bad_time and bad_count, texts; null elsewhere."""
        if self._columns.item_type is not None:
            relation = self._whole_items(relation, types["item"])
        time = self._time(relation, types["time"])
        count = self._count(types.get("count"))
        chosen = (
            "CAST(item AS VARCHAR) AS item",
            "time IS NULL AS no_time",
            f"{'count' if 'count' in types else '1'} IS NULL AS no_count",
            f"{time.moment} AS moment",
            f"{count} AS count",
            f"{self._bad('time', time.moment, types['time'])} AS bad_time",
            f"{self._bad('count', count, types.get('count'))} AS bad_count",
        )
        return f"SELECT {', '.join(chosen)} FROM ({time.relation}) AS source"

    def _bad(self, role: str, read: str, column: Column | None) -> str:
        """The text of a value that is there and is not read; of types that leave nothing open there is none."""
        open_to = (Kind.TEXT, Kind.DECIMAL, Kind.FLOAT)
        patterned = role == "time" and self._columns.time_format is not None
        if column is None or not (column.kind in open_to or (patterned and column.kind is Kind.INTEGER)):
            return "CAST(NULL AS VARCHAR)"
        there = f"{role} IS NOT NULL" + (f" AND NOT isnan({role})" if column.kind is Kind.FLOAT else "")
        return f"CASE WHEN {there} AND ({read}) IS NULL THEN left(CAST({role} AS VARCHAR), {SHOWN}) END"


def look(
    source: object,
    columns: EventColumns,
    timeline: Timeline | None,
    *,
    integer: bool = False,
    table: str | None = None,
    settings: EngineSettings | None = None,
) -> Look:
    """Read all of a log, of a source that the engine duckdb counts, and say what is in it.

    The public range is `timeline`, if it is known; where it is not, `integer` says whether times are whole numbers.

    Raises:
        InputError: the source cannot be read at all, or a column has a type that does not serve.
        EngineError: the engine failed.
    """
    settings = settings or EngineSettings()
    with private_engine(settings) as connection:
        parts = find_parts(connection, source, columns, table)
        integer = timeline.is_integer if timeline is not None else integer
        wide = _Readings(_Lenient(), columns, _ALL_NUMBERS if integer else _ALL_TIME, cap=2**62)
        readings = " UNION ALL ".join(wide.readings(part.sql, part.types) for part in parts)
        inside: dict[str, Any] = {}
        with running(columns, source), progress_bar(connection, "looking at events", shown=settings.progress):
            figures = _figures(connection, readings, integer=integer)
            bad = tuple(_bad_values(connection, readings, source, columns))
            if timeline is not None:
                narrow = EventQueries(_Lenient(), columns, timeline, cap=2**31)
                inside = _inside(connection, [narrow.sql(part.sql, part.types) for part in parts])
    return Look(**figures, bad=bad, **inside)


def _row(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    row: dict[str, Any] = connection.sql(query).to_arrow_table().to_pylist()[0]
    return row


def _figures(connection: duckdb.DuckDBPyConnection, readings: str, *, integer: bool) -> dict[str, Any]:
    grains = ", ".join(f"count(*) FILTER (moment % {length} <> 0) AS off_{name}" for name, length in _LENGTHS.items())
    kinds = {"null_items": "item IS NULL", "null_times": "no_time", "null_counts": "no_count", "ignored": "count < 1"}
    counted = ", ".join(f"count(*) FILTER ({condition}) AS {name}" for name, condition in kinds.items())
    figures = _row(
        connection,
        f"SELECT count(*) AS rows, count(DISTINCT item) AS items, {counted}, "
        f"min(moment) AS first, max(moment) AS last, count(coalesce(bad_time, bad_count)) AS bad_rows, {grains} "
        f"FROM ({readings}) AS readings",
    )
    whole = [name for name in _LENGTHS if figures.pop(f"off_{name}") == 0]
    figures["grain"] = whole[-1] if whole and figures["first"] is not None and not integer else None
    for name in () if integer or figures["first"] is None else ("first", "last"):
        figures[name] = from_microseconds(figures[name]).isoformat()
    return figures


def _bad_values(
    connection: duckdb.DuckDBPyConnection, readings: str, source: object, columns: EventColumns
) -> Iterator[BadValue]:
    for role in ("time", "count") if columns.count is not None else ("time",):
        shown = connection.execute(
            f"SELECT bad_{role}, count(*) FROM ({readings}) AS readings WHERE bad_{role} IS NOT NULL "
            f"GROUP BY ALL ORDER BY count(*) DESC, bad_{role} LIMIT {_MOST_SHOWN}"
        ).fetchall()
        for text, rows in shown:
            yield BadValue(role, text, rows, place_of(source, columns, role, text))


def _inside(connection: duckdb.DuckDBPyConnection, events: list[str]) -> dict[str, Any]:
    # As text: files may hold their items in several types.
    all_events = " UNION ALL ".join(f"SELECT CAST(item AS VARCHAR) AS item, count FROM ({one})" for one in events)
    return _row(
        connection,
        f"SELECT count(*) AS rows_inside, CAST(coalesce(sum(count), 0) AS BIGINT) AS inside, "
        f"count(DISTINCT item) AS items_inside FROM ({all_events}) AS events",
    )
