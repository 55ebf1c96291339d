"""A look into a log, for the operator's screen only: its rows, items and times, and what cannot be read.

Everything here is exact and is protected by nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np

from dpwindows.ask.groups import Grouping
from dpwindows.ask.timeline import Timeline, parse_zone
from dpwindows.ask.zones import from_microseconds, offset_table, to_microseconds
from dpwindows.count.dialects.duckdb import DuckDB
from dpwindows.count.engines.duckdb import private_engine, progress_bar, running
from dpwindows.count.events import EventColumns
from dpwindows.count.query.dialect import SHOWN, Column, Kind, quote_text
from dpwindows.count.query.groups import listed_values
from dpwindows.count.query.relation import EventQueries
from dpwindows.count.sample import Log
from dpwindows.count.sources.duckdb import find_parts
from dpwindows.count.sources.places import place_of
from dpwindows.count.time_formats import EPOCHS

PLACEHOLDERS = ("", "null", "none", "na", "n/a", "nan", "nil", "-", "?", "unknown", "undefined", "#n/a")
"""Texts in small letters that stand for no value, and that a release reads as any other text."""

_MOST_SHOWN, _MOST_OTHERS = 5, 100
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
class GroupLook:
    """What a column holds of its public list of values.

    `absent` are the values of the list that no event has, of the range if it is known. `others` are the most frequent
    values that are not on it, with their rows in all of the log, and `other_rows` the rows of all such values.
    """

    column: str
    listed: int
    absent: tuple[str, ...]
    others: tuple[tuple[str, int], ...]
    other_rows: int


@dataclass(frozen=True)
class Look:
    """What is in a log, exactly.

    `first` and `last` are the first and last time on the clock of `zone`, as ISO text, or integers; `grain` is the
    longest of s, m, h, d that all times are whole multiples of, None where there is none. `null_rows` counts the rows
    without item or time, `null_items` and `null_times` those without either one; `placeholders` those whose item is a
    text such as NULL. `inside` counts the events of the range, occurrences where there is a count column,
    `items_inside` their items, `steps_inside` the steps that have any, from `first_step` to `last_step`; all are None
    without a range. `ignored` counts the rows with a count below 1.
    """

    rows: int
    items: int
    null_rows: int
    null_items: int
    null_times: int
    placeholders: int
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
    steps_inside: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    groups: tuple[GroupLook, ...] = ()
    zone: str = "UTC"

    @property
    def span(self) -> int:
        """From the first time to the last, in microseconds or in whole numbers; 0 where there is none."""
        if self.first is None or self.last is None:
            return 0
        if isinstance(self.first, int) and isinstance(self.last, int):
            return self.last - self.first
        length = datetime.fromisoformat(str(self.last)) - datetime.fromisoformat(str(self.first))
        return length // timedelta(microseconds=1)


class _Lenient(DuckDB):
    """What cannot be read is null, and no failure."""

    def failure(self, message: str, column: str, value: str) -> str:
        return "CAST(NULL AS BIGINT)"


class _Readings(EventQueries):
    """Writes the query for how every row is read, whatever is in it."""

    def readings(self, relation: str, types: Mapping[str, Column]) -> str:
        """The columns item, moment, count, and of what cannot be read bad_time and bad_count, texts; null elsewhere.

        Where `instant` is true a moment is one of UTC, and else one on the clock that its time is local to.
        """
        if self._columns.item_type is not None:
            relation = self._whole_items(relation, types["item"])
        time = self._time(relation, types["time"])
        count = self._count(types.get("count"))
        chosen = (
            "CAST(item AS VARCHAR) AS item",
            "time IS NULL AS no_time",
            f"{'count' if 'count' in types else '1'} IS NULL AS no_count",
            f"{time.moment} AS moment",
            f"{self._instant(types['time'])} AS instant",
            f"{count} AS count",
            f"{self._bad('time', time.moment, types['time'])} AS bad_time",
            f"{self._bad('count', count, types.get('count'))} AS bad_count",
        )
        return f"SELECT {', '.join(chosen)} FROM ({time.relation}) AS source"

    def _instant(self, column: Column) -> str:
        if column.kind is Kind.INSTANT or self._columns.time_format in EPOCHS:
            return "TRUE"
        local = self._timeline.is_integer or column.kind in (Kind.WALL, Kind.DATE, Kind.NULL)
        return "FALSE" if local else "ahead IS NOT NULL"

    def _bad(self, role: str, read: str, column: Column | None) -> str:
        """The text of a value that is there and is not read; of types that leave nothing open there is none."""
        open_to = (Kind.TEXT, Kind.DECIMAL, Kind.FLOAT)
        patterned = role == "time" and self._columns.time_format is not None
        if column is None or not (column.kind in open_to or (patterned and column.kind is Kind.INTEGER)):
            return "CAST(NULL AS VARCHAR)"
        # A row without an item is passed over, whatever else is in it.
        there = f"item IS NOT NULL AND {role} IS NOT NULL"
        there += f" AND NOT isnan({role})" if column.kind is Kind.FLOAT else ""
        return f"CASE WHEN {there} AND ({read}) IS NULL THEN left(CAST({role} AS VARCHAR), {SHOWN}) END"


def look(
    log: Log, columns: EventColumns, timeline: Timeline | None, *, integer: bool = False, zone: str = "UTC"
) -> Look:
    """Read all of a log that the engine duckdb counts, and say what is in it.

    The public range is `timeline`, if it is known; where it is not, `integer` says whether times are whole numbers, and
    `zone` on which clock the first and the last are told.

    Raises:
        InputError: the source cannot be read at all, or a column has a type that does not serve.
        EngineError: the engine failed.
    """
    grouping, columns = columns.grouping, replace(columns, grouping=None)
    if timeline is not None:
        integer, zone = timeline.is_integer, timeline.time_zone
    clock = parse_zone(zone)
    groups = []
    for group in () if grouping is None else grouping.columns:
        grouped = replace(columns, grouping=Grouping((group,)))
        groups.append(_group_look(log, grouped, timeline or (_ALL_NUMBERS if integer else _ALL_TIME)))
    with private_engine(log.settings) as connection:
        parts = find_parts(connection, log.source, columns, log.table)
        wide = _Readings(_Lenient(), columns, _ALL_NUMBERS if integer else _ALL_TIME, cap=2**62)
        readings = " UNION ALL ".join(wide.readings(part.sql, part.types) for part in parts)
        inside: dict[str, Any] = {}
        shown = log.settings.progress
        with running(columns, log.source), progress_bar(connection, "looking at events", shown=shown):
            figures = _figures(connection, readings, None if integer else clock)
            bad = tuple(_bad_values(connection, readings, log.source, columns))
            if timeline is not None:
                narrow = EventQueries(_Lenient(), columns, timeline, cap=2**31)
                inside = _inside(connection, [narrow.sql(part.sql, part.types) for part in parts])
    return Look(**figures, bad=bad, **inside, groups=tuple(groups), zone=zone)


def _group_look(log: Log, columns: EventColumns, timeline: Timeline) -> GroupLook:
    """What the one column of a grouping holds, its values matched as a release matches them."""
    assert columns.grouping is not None
    (group,) = columns.grouping.columns
    dialect = _Lenient()
    writer = EventQueries(dialect, columns, timeline, cap=1)
    with private_engine(log.settings) as connection:
        parts = find_parts(connection, log.source, columns, log.table)
        coded = " UNION ALL ".join(f"SELECT code FROM ({writer.sql(part.sql, part.types)})" for part in parts)
        others = []
        for part in parts:
            compared, literals = listed_values(dialect, group, "group_0", part.types["group_0"])
            listed = ", ".join(f"({literal})" for literal in literals)
            others.append(
                f"SELECT CAST(read AS VARCHAR) AS read FROM (SELECT {compared} AS read FROM ({part.sql}) AS part) "
                f"WHERE read IS NOT NULL AND NOT EXISTS (SELECT 1 FROM (VALUES {listed}) AS list(one) WHERE one = read)"
            )
        with running(columns, log.source):
            there = {code for (code,) in connection.execute(f"SELECT DISTINCT code FROM ({coded}) AS coded").fetchall()}
            rows = connection.execute(
                f"SELECT left(read, {SHOWN}), count(*), sum(count(*)) OVER () FROM ({' UNION ALL '.join(others)}) "
                f"GROUP BY read ORDER BY count(*) DESC, read LIMIT {_MOST_OTHERS}"
            ).fetchall()
    absent = tuple(str(value) for code, value in enumerate(group.values) if code not in there)
    frequent = tuple((text, number) for text, number, _ in rows)
    return GroupLook(group.name, len(group.values), absent, frequent, int(rows[0][2]) if rows else 0)


def _row(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    row: dict[str, Any] = connection.sql(query).to_arrow_table().to_pylist()[0]
    return row


def _figures(connection: duckdb.DuckDBPyConnection, readings: str, clock: ZoneInfo | None) -> dict[str, Any]:
    """The figures of all rows; without a clock times are whole numbers."""
    grains = ", ".join(f"count(*) FILTER (moment % {length} <> 0) AS off_{name}" for name, length in _LENGTHS.items())
    kinds = {"null_items": "item IS NULL", "null_times": "no_time", "null_counts": "no_count", "ignored": "count < 1"}
    kinds["null_rows"] = "item IS NULL OR no_time"
    kinds["placeholders"] = f"lower(trim(item)) IN ({', '.join(map(quote_text, PLACEHOLDERS))})"
    counted = ", ".join(f"count(*) FILTER ({condition}) AS {name}" for name, condition in kinds.items())
    pairs = product((("first", "min"), ("last", "max")), ("true", "false"))
    ends = ", ".join(f"{best}(moment) FILTER (instant = {said}) AS {name}_{said}" for (name, best), said in pairs)
    figures = _row(
        connection,
        f"SELECT count(*) AS rows, count(DISTINCT item) AS items, {counted}, "
        f"{ends}, count(coalesce(bad_time, bad_count)) AS bad_rows, {grains} "
        f"FROM ({readings}) AS readings",
    )
    for name, best in (("first", min), ("last", max)):
        instant, local = figures.pop(f"{name}_true"), figures.pop(f"{name}_false")
        local_instant = None if instant is None or clock is None else _local(instant, clock)
        moment = best((one for one in (local, local_instant) if one is not None), default=None)
        figures[name] = moment if moment is None or clock is None else _text(moment)
    whole = [name for name in _LENGTHS if figures.pop(f"off_{name}") == 0]
    figures["grain"] = whole[-1] if whole and figures["first"] is not None and clock is not None else None
    return figures


def _text(moment: int) -> str:
    """A moment as ISO text; beyond what a datetime holds, the nearest that it does."""
    ends = to_microseconds(datetime.min), to_microseconds(datetime.max)
    return from_microseconds(min(max(moment, ends[0]), ends[1])).isoformat()


def _local(instant: int, clock: ZoneInfo) -> int:
    return int(offset_table(clock, instant, instant).to_local(np.array([instant]))[0])


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
    kept = "CAST(item AS VARCHAR) AS item, step, count"
    all_events = " UNION ALL ".join(f"SELECT {kept} FROM ({one})" for one in events)
    return _row(
        connection,
        f"SELECT count(*) AS rows_inside, CAST(coalesce(sum(count), 0) AS BIGINT) AS inside, "
        f"count(DISTINCT item) AS items_inside, count(DISTINCT step) AS steps_inside, min(step) AS first_step, "
        f"max(step) AS last_step FROM ({all_events}) AS events",
    )
