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

import duckdb
import pyarrow as pa

from dpwindows.ask.timeline import Timeline
from dpwindows.count.engines.duckdb import EventRelation, open_events, progress_bar
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.groups import span_of
from dpwindows.count.query.dialect import quote_text
from dpwindows.errors import InputError
from dpwindows.stream.engine import Engine

NOTHING = "0" * 32
"""The fingerprint of a step without events."""

_MODULUS = 1 << 128
# Counts in one row, and of one item in one step, are told apart up to here.
_MOST = 1 << 62
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


def hand_over(
    engine: Engine,
    source: object,
    columns: EventColumns,
    timeline: Timeline,
    key: str,
    known: str | None,
    *,
    later: bool,
    table: str | None,
    settings: EngineSettings,
) -> Handed:
    """Read events into the temporary table `handed` of an engine; with `later` those after the timeline too.

    Raises:
        InputError: the events cannot be read as asked, or their items are of another kind than those `known`.
        EngineError: the engine failed while reading.
    """
    keys = ["item"] if columns.grouping is None else ["cell", "item"]
    with open_events(source, columns, timeline, cap=_MOST, table=table, settings=settings, later=later) as events:
        reader = events.connection
        reader.execute("SET TimeZone = 'UTC'")
        item_type = reader.sql(events.sql).types[0]
        kind = kind_of(item_type.id, str(item_type))
        # Read and grouped before it leaves that engine, so that whatever is wrong with the events shows there.
        with progress_bar(reader, "reading events", shown=settings.progress):
            span = None if columns.grouping is None else span_of(timeline, later=later)
            reader.execute(_grouped_sql(events, kind, span))
        with engine.guarded() as connection:
            _lay_out(connection, reader.table("grouped").to_arrow_reader(), keys)
    with engine.guarded() as connection:
        fingerprints = _fingerprints(connection, key, " || ':' || ".join(keys))
    if fingerprints and known not in (None, kind):
        raise InputError(
            f"the items of this stream are of type {known}, as in its first events, and the column {columns.item!r} is "
            f"now of type {kind}: write it as it was"
        )
    return Handed(kind if fingerprints else None, fingerprints)


def _grouped_sql(events: EventRelation, kind: str, span: int | None) -> str:
    """The rows of `handed`; with groups, steps are places in cells of `span` (`places_sql`)."""
    total = f"CAST(least(sum(count), {_MOST}) AS BIGINT)" if events.weighted else "count(*)"
    item = "hex(item)" if kind == "BLOB" else f"CAST(item AS {sql_type_of(kind)})"
    cell, place = (f"CAST(step {sign} {span} AS INTEGER)" for sign in ("//", "%"))
    place = "step" if span is None else f"{cell} AS cell, {place} AS step"
    rows = f"SELECT item, step, {total} AS total FROM ({events.sql}) GROUP BY item, step"
    return f"CREATE TEMP TABLE grouped AS SELECT {item} AS item, {place}, total FROM ({rows})"


def _lay_out(connection: duckdb.DuckDBPyConnection, rows: pa.RecordBatchReader, keys: list[str]) -> None:
    connection.register("arriving", rows)
    try:
        # In order of steps, so that reading one step skips the others.
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE handed AS SELECT {', '.join(keys)}, step, total FROM arriving ORDER BY step"
        )
    finally:
        connection.unregister("arriving")


def _fingerprints(connection: duckdb.DuckDBPyConnection, key: str, item: str) -> dict[int, str]:
    """The fingerprint of each step that has rows; `item` is the SQL of an item's text.

    Step and total end in a mark that no number holds, so that different rows are different texts.
    """
    halves = ", ".join(
        f"CAST(CAST('0x' || substr(hash, {at}, 16) AS UBIGINT) AS HUGEINT) AS {name}"
        for at, name in ((1, "high"), (17, "low"))
    )
    text = f"{quote_text(key)} || step || ':' || total || ':' || {item}"
    hashes = f"SELECT step, {halves} FROM (SELECT step, sha256({text}) AS hash FROM handed)"
    rows = connection.execute(
        f"SELECT step, CAST(sum(high) AS VARCHAR), CAST(sum(low) AS VARCHAR) FROM ({hashes}) "
        "GROUP BY step ORDER BY step"
    ).fetchall()
    return {step: _text((int(high) << 64) + int(low)) for step, high, low in rows}


def _text(value: int) -> str:
    return f"{value % _MODULUS:032x}"
