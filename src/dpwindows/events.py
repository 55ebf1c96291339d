"""Any event source as one relation of exactly (item, step, count), validated and limited to the public range.

Rows with a null item or time, with a null count or one below 1, and events outside the range are left out, row by
row. What is wrong with a whole column is an `InputError` that names the column and its type; no message and no
progress report repeats the contents of a row.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from dpwindows.errors import EngineError, InputError
from dpwindows.sources import EventColumns, Part, find_parts, quote_text
from dpwindows.step_map import StepMap, instant_map, offset_sql, wall_map
from dpwindows.timeline import Timeline
from dpwindows.zones import DAY_US, from_microseconds

__all__ = ["EngineSettings", "EventColumns", "EventRelation", "open_events"]

_INTEGERS = (
    *("tinyint", "smallint", "integer", "bigint", "hugeint"),
    *("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"),
)
_WALL_TIMES = ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "date")
_ZONED_TIMES = ("timestamp with time zone", "timestamptz_ns")
_EXACT_ITEMS = (
    *_INTEGERS,
    *_WALL_TIMES,
    *_ZONED_TIMES,
    *("boolean", "varchar", "blob", "uuid", "enum", "decimal", "bit", "bignum", "time", "time_ns"),
)
_NESTED = ("list", "struct", "map", "array", "union", "variant")
_NULL = ("null", "sqlnull")
_MARK = "dpwindows cannot read column: "
_INTEGER_TEXT = r"\s*[+-]?[0-9]+\s*"
_CLOCK_TEXT = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}(:[0-9]{2})?)?"
_TIME_TEXT = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([T ]{_CLOCK_TEXT})?"
_BEFORE_ALL = str(-(2**63 - 1))  # earlier than any timeline of integers may begin
_AFTER_ALL = str(2**63 - 1)
_TIME_ADVICE = 'ISO 8601 text such as "2013-01-31", "2013-01-31T06:30:00" or "2013-01-31T06:30:00+01:00"'


@dataclass(frozen=True)
class EngineSettings:
    """How the embedded engine may use the machine.

    `memory_limit` is text such as "2GB" (by default the engine takes most of the memory), `spill_directory` an
    existing directory for what does not fit (by default the system's temporary one; a private directory is made in
    it and removed afterwards), `threads` a number of at least 1, and `progress` allows a progress bar on a terminal.
    """

    memory_limit: str | None = None
    spill_directory: Path | None = None
    threads: int | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        if self.memory_limit is not None and not re.fullmatch(
            r"[0-9]*[1-9][0-9]*(\.[0-9]+)?\s*[KMGT]i?B", str(self.memory_limit).strip(), re.IGNORECASE
        ):
            raise InputError(f'memory_limit must be text such as "2GB" or "512MB", got {self.memory_limit!r}')
        if self.spill_directory is not None and not Path(self.spill_directory).is_dir():
            raise InputError(f"spill_directory must be an existing directory, got {self.spill_directory}")
        threads = self.threads
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise InputError(f"threads must be a whole number of at least 1, got {threads!r}")


@dataclass(frozen=True)
class EventRelation:
    """A query with the columns item (any exact type), step (1..T) and count (bigint, at least 1), on a connection.

    It may be run once only: a stream of record batches has no second reading. `weighted` is False if every count
    is 1.
    """

    connection: duckdb.DuckDBPyConnection
    sql: str
    weighted: bool


@contextmanager
def open_events(
    source: object,
    columns: EventColumns,
    timeline: Timeline,
    *,
    cap: int,
    table: str | None = None,
    settings: EngineSettings | None = None,
    later: bool = False,
) -> Iterator[EventRelation]:
    """Open a source of events for one reading.

    `source` is the path of a Parquet, CSV or DuckDB file (the last with `table`), a glob, a directory, a pandas,
    Polars or Arrow table, a record batch reader or a DuckDB relation. Counts above `cap` are given as `cap`. With
    `later`, events at or after the end of the range are not left out, and get the step after the last one.

    Raises `InputError` if the source is missing, unreadable or of the wrong types, `EngineError` if the engine
    fails; errors during the reading itself are turned into these two as well.
    """
    with _engine(settings or EngineSettings()) as connection:
        parts = find_parts(connection, source, columns, table)
        kinds = sorted({part.types["item"] for part in parts} - set(_NULL))
        if len(kinds) > 1:
            raise InputError(
                f"the item column {columns.item!r} has different types in different files "
                f"({', '.join(kinds)}); write it with one type"
            )
        steps = _Steps(timeline, columns, later=later)
        queries = [_events_sql(part, columns, steps, cap) for part in parts]
        with _running(columns):
            yield EventRelation(connection, "\nUNION ALL\n".join(queries), columns.count is not None)


@contextmanager
def _engine(settings: EngineSettings) -> Iterator[duckdb.DuckDBPyConnection]:
    """A private engine in memory, without network, that spills to a private directory."""
    try:
        directory = tempfile.TemporaryDirectory(prefix="dpwindows-", dir=settings.spill_directory)
    except OSError as error:
        raise EngineError(f"no directory to spill to can be made: {error.strerror or error}") from None
    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": directory.name,
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "python_enable_replacements": False,
    }
    if settings.memory_limit is not None:
        config["memory_limit"] = settings.memory_limit.strip()
    if settings.threads is not None:
        config["threads"] = settings.threads
    with directory, duckdb.connect(":memory:", config=config) as connection:
        yield connection


@contextmanager
def _running(columns: EventColumns) -> Iterator[None]:
    """Turn what the engine says while it runs into our two kinds of errors, without repeating any contents."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise EngineError(
            "the engine ran out of memory or of disk to spill to; raise memory_limit, take fewer threads, "
            "or give a spill_directory with more room"
        ) from None
    except duckdb.Error as error:
        text = str(error)
        if _MARK in text:
            role = text.split(_MARK, 1)[1].split()[0]
            raise _unreadable(role, columns) from None
        line = re.search(r"CSV Error on Line: [0-9]+", text)
        if line or (isinstance(error, duckdb.InvalidInputException) and "CSV" in text):
            raise InputError(
                f"a CSV file is malformed ({line[0] if line else 'invalid CSV'}): it must be UTF-8, with the same "
                f"number of fields in every row, fields with delimiters in double quotes, and one kind of line end"
            ) from None
        # The file readers' own complaints arrive as the base class.
        if type(error) is duckdb.Error or isinstance(error, duckdb.InvalidInputException | duckdb.DataError):
            raise InputError(f"the events cannot be read ({type(error).__name__}): a file is damaged") from None
        raise EngineError(f"the engine failed ({type(error).__name__}){_disk_hint(text)}") from None


def _disk_hint(text: str) -> str:
    hints = ("No space left", "File too large", "Disk quota", "lock on file", "Permission denied", "Input/output error")
    found = [hint for hint in hints if hint in text]
    return f": {found[0].lower()}" if found else ""


def _unreadable(role: str, columns: EventColumns) -> InputError:
    """The error for text that is not what its column should hold."""
    wanted = {
        "time": f"expected {_TIME_ADVICE}",
        "integer_time": "expected whole numbers, since the timeline has integer steps",
        "count": "expected whole numbers",
    }[role]
    role = "count" if role == "count" else "time"
    name = dict(columns.roles)[role]
    return InputError(f"the {role} column {name!r} is text and not all of it can be read; {wanted}")


def _microseconds(kind: str) -> str:
    """A time column as microseconds since 1970, rounded down; null where there is no such time (infinity)."""
    if kind in ("timestamp_ns", "timestamptz_ns"):
        # The engine's own division rounds towards zero.
        return "(epoch_ns(time) - ((epoch_ns(time) % 1000) + 1000) % 1000) // 1000"
    if kind in _ZONED_TIMES:
        return "epoch_us(time)"
    return "epoch_us(TRY_CAST(time AS TIMESTAMP))"


class _Steps:
    """SQL for the step of a time column of any accepted type."""

    def __init__(self, timeline: Timeline, columns: EventColumns, *, later: bool = False) -> None:
        self.timeline, self.later = timeline, later
        self.name = columns.time
        self.instants = instant_map(timeline)
        self.walls = self.instants if timeline.is_integer else wall_map(timeline)

    def read(self, kind: str) -> tuple[str, StepMap, str]:
        """For a column type: the time as a bigint, the map from it to steps, and a cheap condition on the column."""
        if self.timeline.is_integer:
            return self._read_integer(kind)
        if kind in _ZONED_TIMES:
            return _microseconds(kind), self.instants, self._about_range(kind)
        if kind in _WALL_TIMES:
            return _microseconds(kind), self.walls, self._about_range(kind)
        if kind == "varchar":
            return self._read_text(), self.instants, "TRUE"
        if kind in _NULL:
            return "CAST(NULL AS BIGINT)", self.instants, "FALSE"
        advice = "; for integer time give step as a plain integer" if kind in _INTEGERS else ""
        raise InputError(
            f"the time column {self.name!r} is of type {kind.upper()}; steps of {self.timeline.step_text} need a "
            f"timestamp, a date or {_TIME_ADVICE}{advice}"
        )

    def _read_integer(self, kind: str) -> tuple[str, StepMap, str]:
        if kind in _INTEGERS:
            low, high = self.instants.low, self.instants.high
            if self.later:
                return (
                    f"CAST(CASE WHEN time >= {high} THEN {high} ELSE time END AS BIGINT)",
                    self.instants,
                    f"time >= {low}",
                )
            return "CAST(time AS BIGINT)", self.instants, f"time >= {low} AND time < {high}"
        if kind == "varchar":
            beyond = f"CASE WHEN starts_with(trim(time), '-') THEN {_BEFORE_ALL} ELSE {_AFTER_ALL} END"
            value = _text_integer("time", "BIGINT", beyond)
            return _or_fail("time", value, "integer_time"), self.instants, "TRUE"
        if kind in _NULL:
            return "CAST(NULL AS BIGINT)", self.instants, "FALSE"
        raise InputError(
            f"the time column {self.name!r} is of type {kind.upper()}, but the timeline has integer steps; "
            f'give a start, end and step of times, such as step "1d"'
        )

    def _read_text(self) -> str:
        """Instants out of ISO text; text without an offset is local to the zone."""
        wall = "epoch_us(TRY_CAST(time AS TIMESTAMP))"
        offset = offset_sql(wall, self.timeline.offsets)
        local = wall if offset == "0" else f"{wall} - ({offset})"
        # Beyond the date come the hours, with a colon; a sign or a Z after it is an offset.
        zoned = "regexp_matches(time, ':.*(Z|[+-])')"
        value = f"CASE WHEN {zoned} THEN epoch_us(TRY_CAST(time AS TIMESTAMPTZ)) ELSE {local} END"
        return _or_fail("time", f"CASE WHEN regexp_full_match(time, {quote_text(_TIME_TEXT)}) THEN {value} END", "time")

    def _about_range(self, kind: str) -> str:
        """The range with two days to spare, in the column's own type: lets the engine skip whole blocks of rows."""
        if kind not in ("timestamp", "timestamp with time zone", "date"):
            return "TRUE"
        low = from_microseconds(self.instants.low - 2 * DAY_US).isoformat(" ", "seconds")
        high = from_microseconds(self.instants.high + 2 * DAY_US).isoformat(" ", "seconds")
        zone, sql = ("+00", "TIMESTAMPTZ") if kind in _ZONED_TIMES else ("", "TIMESTAMP")
        if kind == "date":
            low, high, sql = low[:10], high[:10], "DATE"
        from_low = f"time >= {sql} '{low}{zone}'"
        return from_low if self.later else f"{from_low} AND time < {sql} '{high}{zone}'"


def _events_sql(part: Part, columns: EventColumns, steps: _Steps, cap: int) -> str:
    """The query for (item, step, count) of one part."""
    _check_item(part.types["item"], columns.item)
    moment, step_map, about = steps.read(part.types["time"])
    count = _count_sql(part.types["count"], columns.count, cap) if columns.count is not None else "CAST(1 AS BIGINT)"
    inner = f"SELECT item, {moment} AS moment, {count} AS count FROM ({part.sql}) WHERE item IS NOT NULL AND {about}"
    step, within = step_map.sql("moment"), f"moment >= {step_map.low}"
    if steps.later:
        step = f"CASE WHEN moment >= {step_map.high} THEN {steps.timeline.steps + 1} ELSE {step} END"
    else:
        within += f" AND moment < {step_map.high}"
    if " NULL" in step:
        within += f" AND ({step}) IS NOT NULL"
    if columns.count is not None:
        within += " AND count >= 1"
    return f"SELECT item, CAST({step} AS INTEGER) AS step, count FROM ({inner}) WHERE {within}"


def _check_item(kind: str, name: str) -> None:
    if kind in _EXACT_ITEMS or kind in _NULL:
        return
    if kind in ("float", "double"):
        raise InputError(
            f"the item column {name!r} is of type {kind.upper()}, and floating-point numbers do not identify items; "
            f"write it as integers or text (a pandas column of integers with gaps needs the type Int64)"
        )
    if kind in _NESTED:
        raise InputError(
            f"the item column {name!r} is of the nested type {kind.upper()}; name one of its fields, "
            f"or make one column of it as text"
        )
    raise InputError(f"the item column {name!r} is of type {kind.upper()}; items must be text, integers, UUIDs or such")


def _count_sql(kind: str, name: str, cap: int) -> str:
    """The count as a bigint of at most `cap`: at least-k answers do not change if it is not below any k."""
    if kind in _INTEGERS:
        return _capped("count", cap)
    if kind == "varchar":
        beyond = f"CASE WHEN starts_with(trim(count), '-') THEN 0 ELSE {cap} END"
        return _or_fail("count", _capped(_text_integer("count", "HUGEINT", beyond), cap), "count")
    if kind in _NULL:
        return "CAST(NULL AS BIGINT)"
    raise InputError(f"the count column {name!r} is of type {kind.upper()}; counts must be of an integer type")


def _capped(count: str, cap: int) -> str:
    """A count of at most `cap`, null where it is null: `least` would pass over a null and give the cap."""
    return f"CAST(CASE WHEN {count} > {cap} THEN {cap} ELSE {count} END AS BIGINT)"


def _text_integer(role: str, sql_type: str, beyond: str) -> str:
    """Whole numbers out of text; `beyond` stands in for those that do not fit the type."""
    cast = f"TRY_CAST(trim({role}) AS {sql_type})"
    return f"CASE WHEN regexp_full_match({role}, {quote_text(_INTEGER_TEXT)}) THEN coalesce({cast}, {beyond}) END"


def _or_fail(column: str, value: str, role: str) -> str:
    """`value`, null where the column is null; where only the value is, the query fails and names the role."""
    failure = f"error({quote_text(_MARK + role)} || left({column}, 0))"
    return f"CASE WHEN {column} IS NOT NULL THEN coalesce({value}, CAST({failure} AS BIGINT)) END"
