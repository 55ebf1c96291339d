"""DuckDB, the default engine: files, databases in files and data frames, counted inside this process.

No progress report repeats the contents of a row; messages show values that cannot be read, and where they stand.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from dpwindows.ask.timeline import Timeline
from dpwindows.count.dialects.duckdb import DIALECT, WIDER_THAN_BIGINT
from dpwindows.count.engines.duckdb_recency import in_order_sql, is_out_of_order
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.query.dialect import Kind, such_as
from dpwindows.count.query.recency import Occurrences
from dpwindows.count.query.relation import EventQueries, unreadable
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest
from dpwindows.count.sources.duckdb import Part, find_parts, translated
from dpwindows.count.sources.files import require_one_type
from dpwindows.count.sources.json_lines import unreadable_field
from dpwindows.count.sources.places import place_of, place_of_line, place_of_no_object
from dpwindows.errors import EngineError, InputError
from dpwindows.progress import show_progress, watched

_NO_FIXED_WIDTH = ("varchar", "blob", "bit", "bignum")
_DISK = ("No space left", "File too large", "Disk quota", "lock on file", "Permission denied", "Input/output error")


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
    """As `engines.signed_counts` says: counts files, a database in a file, a data frame or a relation."""
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
    all_events = Occurrences(f"({events.sql})", events.weighted)
    # What can be read only once leaves no second try.
    if events.rereadable and wanted.rule.max_runs is None and not wanted.loss:
        counted, span, reach = wanted.occurrences(all_events, DIALECT), wanted.span, wanted.reach
        query = in_order_sql(counted, wanted.thresholds, hashed=events.hashed, span=span, reach=reach)
        if query is not None:
            try:
                return events.connection.sql(query).to_arrow_table()
            except duckdb.Error as error:
                if not is_out_of_order(error):
                    raise
    return events.connection.sql(wanted.sql(all_events, DIALECT)).to_arrow_table()


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
    directory, a SQLAlchemy engine of SQLite, a table of a lake, a pandas, Polars or Arrow table, an Arrow dataset or
    stream, or a DuckDB relation. Counts above `cap` are given as `cap`. With `later`, events at or after the end of the
    range are not left out, and get the step after the last one.

    Raises `InputError` if the source is missing, unreadable or of the wrong types, `EngineError` if the engine
    fails; errors during the reading itself are turned into these two as well.
    """
    with private_engine(settings or EngineSettings()) as connection:
        parts = find_parts(connection, source, columns, table)
        kinds = {_items_of(part, columns) for part in parts if part.types["item"].kind is not Kind.NULL}
        require_one_type(columns, "item", kinds)
        writer = EventQueries(DIALECT, columns, timeline, cap=cap, later=later)
        query = writer.events((part.sql, part.types) for part in parts)
        with running(columns, source):
            yield EventRelation(
                connection,
                query,
                weighted=columns.count is not None,
                hashed=bool(kinds & set(_NO_FIXED_WIDTH)),
                rereadable=all(part.again for part in parts),
            )


def _items_of(part: Part, columns: EventColumns) -> str:
    """The type that the items of a part come to be of, which is that of all other parts."""
    wide = part.types["item"].type_name.lower() in WIDER_THAN_BIGINT
    return part.of if columns.item_type is None or wide else "bigint"


@contextmanager
def private_engine(settings: EngineSettings) -> Iterator[duckdb.DuckDBPyConnection]:
    """A private engine in memory, without network, that spills to a private directory.

    Raises:
        EngineError: no directory to spill to can be made.
    """
    try:
        scratch = tempfile.TemporaryDirectory(prefix="dpwindows-", dir=settings.spill_directory)
    except OSError as error:
        raise EngineError(f"no directory to spill to can be made: {error.strerror or error}") from None
    config: dict[str, str | bool | int | float | list[str]] = {
        "preserve_insertion_order": False,
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
    with scratch, duckdb.connect(":memory:", config=config) as connection:
        yield connection


@contextmanager
def progress_bar(connection: duckdb.DuckDBPyConnection, label: str, *, shown: bool = True) -> Iterator[None]:
    """Show how far the queries on `connection` are, and how long they will still take, while the block runs."""
    if shown and watched():
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar_print = false")
    with show_progress(label, 100, done=connection.query_progress, shown=shown):
        yield


def running(columns: EventColumns, source: object = None) -> AbstractContextManager[None]:
    """Turn what the engine says while it runs into our two kinds of errors; of rows they show the values refused.

    Raises:
        InputError: the events cannot be read.
        EngineError: the engine failed.
    """
    return translated("the table", lambda error: _explained(error, columns, source))


def _explained(error: duckdb.Error, columns: EventColumns, source: object) -> InputError | EngineError:
    text, invalid = str(error), isinstance(error, duckdb.InvalidInputException)

    def place(role: str, value: str) -> str:
        return place_of(source, columns, role, value)

    if refusal := unreadable(text, columns, place) or unreadable_field(text, columns, place):
        return refusal
    line = re.search(r"CSV Error on Line: ([0-9]+)", text)
    if line or (invalid and "CSV" in text):
        which = such_as(text, "", lambda _, start: place_of_line(source, start)).removeprefix(", such as ")
        # The engine names the file after the row, which may say anything.
        file = re.findall(r"^  file = (.+)$", text, re.MULTILINE)[-1:]
        where = " of ".join(([f"line {int(line[1]):,}"] if line else []) + file)
        return InputError(
            f"a CSV file is malformed ({where or which or 'invalid CSV'}): it must be UTF-8, with the same number of "
            f"fields in every row, fields with delimiters in double quotes, and one kind of line end"
        )
    if invalid and "JSON" in text:
        return InputError(
            f"a file of JSON Lines is malformed ({place_of_no_object(source) or 'invalid JSON'}): each line is one "
            f"object in UTF-8, in which no name is repeated"
        )
    if "registered as '" in text:
        return EngineError(
            "the batches of the log cannot be read to the end: a file of it is damaged, cannot be reached, or is gone "
            "since it was opened, as after VACUUM; nothing was counted"
        )
    # The readers' own complaints arrive as the base class, lengths beyond a file's end as failures of the disk.
    damaged = type(error) is duckdb.Error or invalid or isinstance(error, duckdb.DataError)
    if damaged or "Could not read enough bytes" in text:
        return InputError(f"the events cannot be read ({type(error).__name__}): a file is damaged")
    hint = next((f": {hint.lower()}" for hint in _DISK if hint in text), "")
    return EngineError(f"the engine failed ({type(error).__name__}){hint}")
