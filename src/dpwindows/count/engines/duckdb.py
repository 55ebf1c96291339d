"""DuckDB, the default engine: files, databases in files and data frames, counted inside this process.

No progress report repeats the contents of a row; messages show values that cannot be read, and where they stand.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import duckdb
import pyarrow as pa

from dpwindows.ask.timeline import Timeline
from dpwindows.count.engines.duckdb_progress import progress_bar
from dpwindows.count.engines.duckdb_recency import in_order_sql, is_out_of_order
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.query.dialect import TIME_TEXT, Column, Dialect, Kind, quote_text, shown, such_as
from dpwindows.count.query.relation import EventQueries, unreadable
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest
from dpwindows.count.sources.duckdb import find_parts, out_of_memory, outside, reaches_out
from dpwindows.count.sources.json_lines import unreadable_field
from dpwindows.count.sources.places import place_of, place_of_line, place_of_no_object
from dpwindows.count.time_formats import has_offset
from dpwindows.errors import EngineError, InputError

Config = dict[str, str | bool | int | float | list[str]]
_NO_FIXED_WIDTH = ("varchar", "blob", "bit", "bignum")
_WIDER_THAN_BIGINT = ("ubigint", "hugeint", "uhugeint")


class _DuckDB(Dialect):
    """DuckDB's spelling; a column's `type_name` is the engine's identifier of its type in capitals."""

    name = "duckdb"
    divide = "//"
    reads_floats = True

    def microseconds(self, column: Column, about: str) -> str:
        if column.type_name in ("TIMESTAMP_NS", "TIMESTAMPTZ_NS"):
            # The engine's own division rounds towards zero.
            return "(epoch_ns(time) - ((epoch_ns(time) % 1000) + 1000) % 1000) // 1000"
        return "epoch_us(time)" if column.kind is Kind.INSTANT else "epoch_us(TRY_CAST(time AS TIMESTAMP))"

    def between(self, column: Column, low: datetime, high: datetime) -> str:
        if column.kind is Kind.DATE:
            return f"time >= DATE '{low.date()}' AND time < DATE '{high.date()}'"
        if column.type_name == "TIMESTAMP WITH TIME ZONE":
            return f"time >= TIMESTAMPTZ '{low}+00' AND time < TIMESTAMPTZ '{high}+00'"
        return f"time >= TIMESTAMP '{low}' AND time < TIMESTAMP '{high}'" if column.type_name == "TIMESTAMP" else "TRUE"

    def matches(self, text: str, pattern: str) -> str:
        return f"regexp_full_match({text}, {quote_text(pattern)})"

    def number(self, text: str) -> str:
        return f"TRY_CAST(trim({text}) AS HUGEINT)"

    def whole(self, number: str) -> str:
        # A decimal of 38 digits has no room for what it is compared with, a HUGEINT has.
        return f"CAST({super().whole(number)} AS HUGEINT)"

    def text_times(self, relation: str) -> str:
        """The engine's own reader, which takes half the time and cuts fractions as well."""
        # Beyond the date come the hours, with a colon; a sign or a Z after it is an offset.
        zoned = "regexp_matches(time, ':.*(Z|[+-])')"
        instant, local = (f"epoch_us(TRY_CAST(time AS {name}))" for name in ("TIMESTAMPTZ", "TIMESTAMP"))
        read = f"CASE WHEN {zoned} THEN {instant} ELSE {local} END"
        wall = f"CASE WHEN {self.matches('time', TIME_TEXT)} THEN {read} END"
        return f"SELECT *, {wall} AS wall, CASE WHEN {zoned} THEN 0 END AS ahead FROM ({relation}) AS texts"

    def whole_items(self, column: Column, beyond: int) -> str | None:
        """All as BIGINT, so that files of several types go together, but for integers that may not fit."""
        match column.kind:
            case Kind.INTEGER if column.type_name.lower() not in _WIDER_THAN_BIGINT:
                return "CAST(item AS BIGINT)"
            case Kind.FLOAT:
                return self.whole_float("item", beyond)
            case Kind.DECIMAL:
                return "CASE WHEN floor(item) = ceil(item) THEN TRY_CAST(floor(item) AS BIGINT) END"
            case Kind.TEXT:
                number = "TRY_CAST(regexp_extract(item, '[+-]?[0-9]+') AS BIGINT)"
                exact = f"contains(item, '.') AND NOT {number} BETWEEN {1 - beyond} AND {beyond - 1}"
                pattern = "[ \t\n\r]*[+-]?[0-9]+([.]0*)?[ \t\n\r]*"
                return f"CASE WHEN {exact} THEN NULL WHEN {self.matches('item', pattern)} THEN {number} END"
            case _:
                return super().whole_items(column, beyond)

    def patterned_times(self, relation: str, pattern: str) -> str:
        """The engine's own reader, which takes words such as epoch for times too: a time has a digit in it."""
        read = f"epoch_us(try_strptime(CAST(time AS VARCHAR), {quote_text(pattern)}))"
        wall = f"CASE WHEN regexp_matches(CAST(time AS VARCHAR), '[0-9]') THEN {read} END"
        ahead = "CAST(0 AS BIGINT)" if has_offset(pattern) else "CAST(NULL AS BIGINT)"
        return f"SELECT *, {wall} AS wall, {ahead} AS ahead FROM ({relation}) AS texts"

    def failure(self, message: str, column: str) -> str:
        return f"CAST(error({quote_text(message)} || {shown(f'CAST({column} AS VARCHAR)')}) AS BIGINT)"


class _Lenient(_DuckDB):
    def failure(self, message: str, column: str) -> str:
        return "CAST(NULL AS BIGINT)"


LENIENT: Dialect = _Lenient()
"""For looking at a log: what cannot be read is null, and no failure."""


@dataclass(frozen=True)
class EventRelation:
    """A query with the columns item (any exact type), step (1..T) and count (bigint, at least 1), on a connection.

    `weighted` is False if every count is 1. `hashed` says that items are of no fixed width, so that sorting them by a
    hash pays. `rereadable` says whether it may be run more than once: a stream of record batches may not.
    """

    connection: duckdb.DuckDBPyConnection
    sql: str
    weighted: bool
    hashed: bool
    rereadable: bool


def signed_counts(request: CountRequest) -> pa.Table:
    """See `Engine.signed_counts`: counts files, a database in a file, a data frame or a relation."""
    settings, wanted = request.settings, request.wanted
    settings.refuse("duckdb", password_file="its files have no password", spark_master="it is for Spark")
    given = request.source, request.columns, request.timeline
    with (
        open_events(*given, cap=wanted.cap, table=request.table, settings=settings) as events,
        progress_bar(events.connection, "counting events", shown=settings.progress),
    ):
        return _count(events, wanted)


def _count(events: EventRelation, wanted: Wanted) -> pa.Table:
    """The signed counts: by the query in order, or by the specification where that one does not serve."""
    relation = wanted.occurrences(f"({events.sql})", weighted=events.weighted)
    # What can be read only once leaves no second try.
    if events.rereadable and wanted.rule.max_runs is None and not wanted.loss:
        query = in_order_sql(
            relation.relation,
            wanted.thresholds,
            weighted=relation.weighted,
            hashed=events.hashed,
            span=wanted.span,
            reach=wanted.reach,
            before=relation.before,
        )
        if query is not None:
            try:
                return events.connection.sql(query).to_arrow_table()
            except duckdb.Error as error:
                if not is_out_of_order(error):
                    raise
    return events.connection.sql(wanted.sql(f"({events.sql})", weighted=events.weighted)).to_arrow_table()


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

    `source` is the path of a Parquet, CSV, JSON Lines, DuckDB or SQLite file (the last two with `table`), a glob, a
    directory, a SQLAlchemy engine of SQLite, a pandas, Polars or Arrow table, a record batch reader or a DuckDB
    relation. Counts above `cap` are given as `cap`. With `later`, events at or after the end of the range are not left
    out, and get the step after the last one.

    Raises `InputError` if the source is missing, unreadable or of the wrong types, `EngineError` if the engine
    fails; errors during the reading itself are turned into these two as well.
    """
    with private_engine(settings or EngineSettings()) as connection:
        parts = find_parts(connection, source, columns, table)
        held = [part for part in parts if part.types["item"].kind is not Kind.NULL]
        kinds = sorted({_items_of(part.of, part.types["item"], columns) for part in held})
        if len(kinds) > 1:
            raise InputError(
                f"the item column {columns.item!r} has different types in different files "
                f"({', '.join(kinds)}); write it with one type"
            )
        writer = EventQueries(_DuckDB(), columns, timeline, cap=cap, later=later)
        query = writer.events((part.sql, part.types) for part in parts)
        with running(columns, source):
            yield EventRelation(
                connection,
                query,
                weighted=columns.count is not None,
                hashed=bool(set(kinds) & set(_NO_FIXED_WIDTH)),
                rereadable=not isinstance(source, pa.RecordBatchReader | duckdb.DuckDBPyRelation),
            )


def _items_of(own: str, column: Column, columns: EventColumns) -> str:
    """The type that the items of a part come to be of, which is that of all other parts."""
    wide = column.type_name.lower() in _WIDER_THAN_BIGINT
    return own if columns.item_type is None or wide else "bigint"


@contextmanager
def private_engine(settings: EngineSettings) -> Iterator[duckdb.DuckDBPyConnection]:
    """A private engine in memory, without network, that spills to a private directory.

    Raises:
        EngineError: no directory to spill to can be made.
    """
    scratch, config = isolated(settings)
    with scratch, duckdb.connect(":memory:", config=config | {"preserve_insertion_order": False}) as connection:
        yield connection


def isolated(settings: EngineSettings) -> tuple[tempfile.TemporaryDirectory[str], Config]:
    """A private directory to spill to, and the configuration of an engine that loads no extension by itself.

    Raises:
        EngineError: no directory to spill to can be made.
    """
    try:
        scratch = tempfile.TemporaryDirectory(prefix="dpwindows-", dir=settings.spill_directory)
    except OSError as error:
        raise EngineError(f"no directory to spill to can be made: {error.strerror or error}") from None
    config: Config = {
        "temp_directory": scratch.name,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "python_enable_replacements": False,
    }
    if settings.memory_limit is not None:
        config["memory_limit"] = settings.memory_limit.strip()
    if settings.threads is not None:
        config["threads"] = settings.threads
    return scratch, config


@contextmanager
def running(columns: EventColumns, source: object = None) -> Iterator[None]:
    """Turn what the engine says while it runs into our two kinds of errors; of rows they show the values refused.

    Raises:
        InputError: the events cannot be read.
        EngineError: the engine failed.
    """
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise out_of_memory() from None
    except duckdb.Error as error:
        text = str(error)
        place = partial(place_of, source, columns)
        if refusal := unreadable(text, columns, place) or unreadable_field(text, columns, place):
            raise refusal from None
        if reaches_out(error):
            raise outside("the table") from None
        line = re.search(r"CSV Error on Line: [0-9]+", text)
        if line or (isinstance(error, duckdb.InvalidInputException) and "CSV" in text):
            which = such_as(text, "", lambda _, start: place_of_line(source, start)).removeprefix(", such as ")
            raise InputError(
                f"a CSV file is malformed ({line[0] if line else which or 'invalid CSV'}): it must be UTF-8, with the "
                f"same number of fields in every row, fields with delimiters in double quotes, and one kind of line end"
            ) from None
        if "JSON" in text and isinstance(error, duckdb.InvalidInputException):
            where = place_of_no_object(source) or "invalid JSON"
            raise InputError(
                f"a file of JSON Lines is malformed ({where}): each line is one object in UTF-8, in which no name is "
                f"repeated"
            ) from None
        # The readers' own complaints arrive as the base class, lengths beyond a file's end as failures of the disk.
        damaged = type(error) is duckdb.Error or isinstance(error, duckdb.InvalidInputException | duckdb.DataError)
        if damaged or "Could not read enough bytes" in text:
            raise InputError(f"the events cannot be read ({type(error).__name__}): a file is damaged") from None
        raise EngineError(f"the engine failed ({type(error).__name__}){_disk_hint(text)}") from None


def _disk_hint(text: str) -> str:
    hints = ("No space left", "File too large", "Disk quota", "lock on file", "Permission denied", "Input/output error")
    found = [hint for hint in hints if hint in text]
    return f": {found[0].lower()}" if found else ""
