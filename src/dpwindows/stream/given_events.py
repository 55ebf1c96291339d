"""The events handed over in one call, laid out by step beside the state, and their fingerprints.

Events are read once, by the same engine and the same rules as in a batch release, into a temporary table with one row
an item and step. The fingerprint of a step is the sum, modulo 2^128, of a keyed hash of each of its rows (item, step,
number of occurrences): it does not depend on the order or the division of the log, and whoever does not know the key,
which is in the state, cannot make two different steps that agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from dpwindows.ask.timeline import Timeline
from dpwindows.count.dialects.duckdb import DIALECT
from dpwindows.count.engines.duckdb import open_events, progress_bar
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.groups import span_of
from dpwindows.count.query.dialect import Column, Dialect, Kind, quote_text
from dpwindows.errors import InputError
from dpwindows.stream.engine import Engine

NOTHING = "0" * 32
"""The fingerprint of a step without events."""

_MODULUS = 1 << 128
# Counts in one row, and of one item in one step, are told apart up to here.
MOST = 1 << 62
_SIGNED = ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger")
_TEXTS = ("varchar", "enum")


def kind_of(type_id: str, type_name: str) -> str:
    """The kind of a column of the engine's type; equal kinds have equal values for equal items.

    Whole decimals are of one kind, as they are the same text however wide their type.
    """
    if type_id in _SIGNED:
        return "integer"
    whole = re.fullmatch(r"DECIMAL\([0-9]+, ?0\)", type_name) is not None
    return "text" if type_id in _TEXTS else "DECIMAL(38,0)" if whole else type_name


def sql_type_of(kind: str) -> str:
    """The SQL type that items of a kind are kept as."""
    return "BIGINT" if kind == "integer" else "VARCHAR"


def kind_elsewhere(column: Column, columns: EventColumns) -> str:
    """The kind of a column where items are kept in another engine; text is kept there as its bytes.

    Raises:
        InputError: items of its type are not kept there.
    """
    if columns.item_type is not None or column.kind is Kind.INTEGER:
        return "integer"
    if column.kind in (Kind.TEXT, Kind.NULL):
        return "text"
    raise InputError(
        f"{columns.title('item')} is of type {column.type_name}, and a stream keeps items elsewhere as text or as "
        "integers of 64 bits: make it one of these, in a view for example"
    )


@dataclass(frozen=True)
class Given:
    """The events of one call as they are given, and how they are read.

    Attributes:
        source: what holds them.
        columns: their columns, as was fixed when the stream was created.
        timeline: the steps up to the end of the call.
        key: of the fingerprints.
        known: the kind of the items so far, None before the first.
        later: whether events after the timeline are read too.
        table: the table of a database.
    """

    source: Any
    columns: EventColumns
    timeline: Timeline
    key: str
    known: str | None
    later: bool
    table: str | None

    def grouped_sql(self, dialect: Dialect, events: str, item: str) -> str:
        """The query of the rows of `handed`, out of (item, step, count), in any engine's SQL.

        Args:
            dialect: of the engine.
            events: the query of the events, as `EventQueries` writes it.
            item: the expression that items are kept as, each as another one.
        """
        total = capped_sum("count") if self.columns.count is not None else "count(*)"
        place = "step"
        if self.columns.grouping is not None:
            # Steps are places in cells of so many (`places_sql`).
            span = span_of(self.timeline, later=self.later)
            cell, step = dialect.divide.format("step", span), dialect.remainder.format("step", span)
            place = f"CAST({cell} AS INTEGER) AS cell, CAST({step} AS INTEGER) AS step"
        rows = f"SELECT item, step, {total} AS total FROM ({events}) AS events GROUP BY item, step"
        return f"SELECT {item} AS item, {place}, total FROM ({rows}) AS rows_of_steps"

    def text_of_row(self, key: str) -> str:
        """The SQL of the text of a row of `handed` that is hashed, but for its item; `key` is that of the key.

        Step, total and cell end in a mark that no number holds, so that different rows are different texts.
        """
        cell = "" if self.columns.grouping is None else " || cell || ':'"
        return f"{key} || step || ':' || total || ':'{cell}"

    def require_kind(self, kind: str) -> None:
        """Check that items are of the kind that they have been of so far.

        Raises:
            InputError: they are not.
        """
        if self.known not in (None, kind):
            raise InputError(
                f"the items of this stream are of type {self.known}, as in its first events, and the column "
                f"{self.columns.item!r} is now of type {kind}: write it as it was"
            )


@dataclass(frozen=True)
class Handed:
    """The events of one call: in the temporary table `handed` (item, step, total), and by step.

    With groups the code of the group is in `cell`; an event is there once for every level.

    `steps` are the steps that have rows, ascending; the step after the last one of the timeline stands for everything
    later. `kind` is None if there are no rows.
    """

    kind: str | None
    fingerprints: Mapping[int, str]

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that have rows, ascending."""
        return tuple(self.fingerprints)

    def of(self, step: int) -> str:
        """The fingerprint of a step's events; a step without events has one too."""
        return self.fingerprints.get(step, NOTHING)

    def together(self, steps: Iterable[int]) -> str:
        """The fingerprint of several steps."""
        return _text(sum(int(self.of(step), 16) for step in steps))


EMPTY = Handed(None, {})


def hand_over(engine: Engine, given: Given, settings: EngineSettings) -> Handed:
    """Read events into the temporary table `handed` of an engine.

    Raises:
        InputError: the events cannot be read as asked, or their items are of another kind than before.
        EngineError: the engine failed while reading.
    """
    keys = ["item"] if given.columns.grouping is None else ["cell", "item"]
    read = given.source, given.columns, given.timeline
    with open_events(*read, cap=MOST, table=given.table, settings=settings, later=given.later) as events:
        reader = events.connection
        reader.execute("SET TimeZone = 'UTC'")
        item_type = reader.sql(events.sql).types[0]
        kind = kind_of(item_type.id, str(item_type))
        # Read and grouped before it leaves that engine, so that whatever is wrong with the events shows there.
        with progress_bar(reader, "reading events", shown=settings.progress):
            item = "hex(item)" if kind == "BLOB" else f"CAST(item AS {sql_type_of(kind)})"
            reader.execute(f"CREATE TEMP TABLE grouped AS {given.grouped_sql(DIALECT, events.sql, item)}")
        with engine.guarded() as connection:
            _lay_out(connection, reader.table("grouped").to_arrow_reader(), keys)
    with engine.guarded() as connection:
        fingerprints = _fingerprints(connection, given)
    if fingerprints:
        given.require_kind(kind)
    return Handed(kind if fingerprints else None, fingerprints)


def capped_sum(column: str) -> str:
    """The SQL of a sum that does not wrap in any engine: beyond `MOST` it is `MOST`."""
    return f"CAST(least(sum(CAST({column} AS DECIMAL(38, 0))), {MOST}) AS BIGINT)"


def _lay_out(connection: duckdb.DuckDBPyConnection, rows: pa.RecordBatchReader, keys: list[str]) -> None:
    connection.register("arriving", rows)
    try:
        # In order of steps, so that reading one step skips the others.
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE handed AS SELECT {', '.join(keys)}, step, total FROM arriving ORDER BY step"
        )
    finally:
        connection.unregister("arriving")


def _fingerprints(connection: duckdb.DuckDBPyConnection, given: Given) -> dict[int, str]:
    """The fingerprint of each step that has rows."""
    high, low = (f"CAST(CAST('0x' || substr(hash, {at}, 16) AS UBIGINT) AS HUGEINT)" for at in (1, 17))
    query = fingerprint_sql(
        "handed", f"sha256({given.text_of_row(quote_text(given.key))} || item)", high, low, "VARCHAR"
    )
    return fingerprints_of(connection.execute(query).fetchall())


def fingerprint_sql(relation: str, hashed: str, high: str, low: str, text: str) -> str:
    """The query of (step, sum of the upper halves, sum of the lower) of the hashes of rows, in any engine's SQL.

    Args:
        relation: that of `handed`.
        hashed: the SHA-256 of a row, in 64 hexadecimal digits.
        high: out of `hash`, the number that its first 16 digits are, of a type whose sums are exact.
        low: the same of the next 16.
        text: the type of text.
    """
    hashes = f"SELECT step, {high} AS high, {low} AS low FROM (SELECT step, {hashed} AS hash FROM {relation}) AS hashes"
    sums = f"CAST(sum(high) AS {text}) AS high, CAST(sum(low) AS {text}) AS low"
    return f"SELECT step, {sums} FROM ({hashes}) AS halves GROUP BY step ORDER BY step"


def fingerprints_of(rows: Iterable[tuple[Any, ...]]) -> dict[int, str]:
    """The fingerprint of each step, out of the rows of `fingerprint_sql`."""
    return {step: _text((int(high) << 64) + int(low)) for step, high, low in rows}


def _text(value: int) -> str:
    return f"{value % _MODULUS:032x}"
