"""The events handed over in one call, laid out by step beside the state, and their fingerprints.

Events are read once, by the same rules as in a batch release, into a relation with one row an item and step. The
fingerprint of a step is the sum, modulo 2^128, of a keyed hash of each of its rows (item, step, number of occurrences):
it does not depend on the order or the division of the log, and whoever does not know the key, which is in the state,
cannot make two different steps that agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EventColumns
from dpwindows.count.groups import span_of
from dpwindows.count.query.dialect import Column, Dialect, Kind
from dpwindows.errors import InputError

NOTHING = "0" * 32
"""The fingerprint of a step without events."""

_MODULUS = 1 << 128
# Counts in one row, and of one item in one step, are told apart up to here.
MOST = 1 << 62


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


def capped_sum(column: str) -> str:
    """The SQL of a sum that does not wrap in any engine: beyond `MOST` it is `MOST`."""
    return f"CAST(least(sum(CAST({column} AS DECIMAL(38, 0))), {MOST}) AS BIGINT)"


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
