"""The items of a stream and the steps of their last occurrences: one step is one pass of the engine.

The table `items` holds for each item the steps `r1 >= r2 >= ...` of its last `depth` occurrences, multiplicities
counted, where `depth` is the largest threshold asked for; null where there are fewer. That is all of an item's past
that can matter: a step with c occurrences puts c times its number in front and shifts the rest back, and the k-th most
recent occurrence lies in step `rk`. Items are kept as they are, never by a hash.

Of what is too old for every window (`oldest_at`) only its being there is kept, as step 0, and where no totals are
asked for not even that: see `prune`.

In a stream with groups an item is a pair: the code of a group, `cell`, and an item of that group. Each of these pairs
has recencies of its own.

Where a rule bounds what an item adds, `had` is how many occurrences of it counted, and `run_i` how many runs of the
series in place i it has had (`count.first_runs` is the specification). Such items are never deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from dpwindows.count.query.first_runs import Series, series_number
from dpwindows.stream.step_counts import NONE, Change, oldest_at


@dataclass(frozen=True)
class Bound:
    """What one item may add: its first `max_occurrences`, or, in each of `series`, its first `max_runs` runs."""

    max_occurrences: int | None = None
    max_runs: int | None = None
    series: tuple[Series, ...] = ()

    @property
    def columns(self) -> list[str]:
        """What is kept of each item beside its recencies: what it has had."""
        return ["had"] * (self.max_occurrences is not None) + [f"run_{place}" for place in range(len(self.series))]

    def after(self, step: int) -> dict[str, str]:
        """What an item has had after a step that it occurs in, by column: of its recencies before and after."""
        found = {"had": "had + counted"} if self.max_occurrences is not None else {}
        for place, (k, length) in enumerate(self.series):
            now, then = f"r{k} > {step - length}", f"before[{k}] >= {step - length}"
            found[f"run_{place}"] = f"run_{place} + CASE WHEN {now} AND NOT coalesce({then}, FALSE) THEN 1 ELSE 0 END"
        return found


NO_BOUND = Bound()

# Pruning rewrites the table, so it waits for this many steps where most items stay.
_RARELY = 64


def item_columns(sql_type: str, depth: int, bound: Bound = NO_BOUND) -> dict[str, str]:
    """The columns of the table and their types, for items of one type."""
    steps = {f"r{j}": "INTEGER" for j in range(1, depth + 1)}
    return {"item": sql_type} | steps | dict.fromkeys(bound.columns, "BIGINT")


def make_items(connection: duckdb.DuckDBPyConnection, sql_type: str, depth: int, bound: Bound = NO_BOUND) -> None:
    """Make the table, for items of one type."""
    listed = ", ".join(f"{name} {kind}" for name, kind in item_columns(sql_type, depth, bound).items())
    connection.execute(f"CREATE TABLE items ({listed})")


def occur(
    connection: duckdb.DuckDBPyConnection,
    occurrences: str,
    step: int,
    thresholds: Sequence[int],
    oldest: int,
    bound: Bound = NO_BOUND,
    *,
    grouped: bool = False,
) -> list[Change]:
    """Let items occur in a step, and tell how recencies changed.

    Args:
        connection: the state, inside a transaction.
        occurrences: SQL of a query with the columns item, each once, and total, at least 1.
        step: later than all before.
        thresholds: every k to tell the changes of, ascending.
        oldest: the first step that still matters at the end of this one; changes from and to earlier ones are told
            as from and to step 0.
        bound: what an item may add; the changes of its series are told under their numbers.
        grouped: whether items are pairs with the group that they are in; changes are then told by group.
    """
    depth = max([*thresholds, *(k for k, _ in bound.series)])
    old = ", ".join(f"items.r{j}" for j in range(1, depth + 1))
    shifted = ", ".join(
        f"CASE WHEN fresh >= {j} THEN {step} ELSE before[{j} - fresh] END AS r{j}" for j in range(1, depth + 1)
    )
    # Temporary tables lie outside the state, and in the engine's private directory if they are spilled.
    kept = "".join(f", coalesce(items.{name}, 0) AS {name}" for name in bound.columns)
    most = bound.max_occurrences
    counted = "occurred.total" if most is None else f"least(occurred.total, {most} - coalesce(items.had, 0))"
    after = "".join(f", {value} AS {name}" for name, value in bound.after(step).items())
    connection.execute(f"""
CREATE OR REPLACE TEMP TABLE touched AS
SELECT * EXCLUDE ({", ".join(["counted", *bound.columns])}){after} FROM (
    SELECT item, place, before, {shifted}, {", ".join(["counted", *bound.columns])} FROM (
        SELECT occurred.item, items.rowid AS place, [{old}] AS before, {counted} AS counted,
            CAST(least({counted}, {depth}) AS INTEGER) AS fresh{kept}
        FROM ({occurrences}) AS occurred LEFT JOIN items ON items.item = occurred.item
    )
)""")
    changes = _changes(connection, thresholds, oldest, bound, "item.cell" if grouped else "0")
    names = [*(f"r{j}" for j in range(1, depth + 1)), *bound.columns]
    settings = ", ".join(f"{name} = touched.{name}" for name in names)
    connection.execute(f"UPDATE items SET {settings} FROM touched WHERE items.rowid = touched.place")
    columns = ", ".join(names)
    connection.execute(f"INSERT INTO items SELECT item, {columns} FROM touched WHERE place IS NULL")
    return changes


def _changes(
    connection: duckdb.DuckDBPyConnection, thresholds: Sequence[int], oldest: int, bound: Bound, cell: str
) -> list[Change]:
    def known(recency: str) -> str:
        return f"CASE WHEN {recency} IS NULL THEN {NONE} WHEN {recency} < {oldest} THEN 0 ELSE {recency} END"

    counted = [(k, k, "") for k in thresholds]
    counted += [
        (series_number(place), k, f" AND run_{place} <= {bound.max_runs}") for place, (k, _) in enumerate(bound.series)
    ]
    queries = [
        f"SELECT {number}, {known(f'before[{k}]')} AS left_step, {known(f'r{k}')} AS entered, count(*), {cell} AS cell "
        f"FROM touched WHERE r{k} IS NOT NULL{within} GROUP BY left_step, entered, cell"
        for number, k, within in counted
    ]
    return [Change(*row) for row in connection.execute(" UNION ALL ".join(queries)).fetchall()]


def prune(
    connection: duckdb.DuckDBPyConnection,
    step: int,
    depth: int,
    reach: int,
    *,
    totals: bool,
    bound: Bound = NO_BOUND,
) -> None:
    """After some steps, forget what can no longer matter once `step` is closed.

    What comes next asks back to `oldest_at(step + 1)`. Recencies before that become 0 (there was an occurrence); where
    no totals are asked for they matter to nobody, and items that have no others are deleted. The table is written
    anew, which also gives back the room of rows that went: it never holds more than twice what matters, where no
    totals are asked for. Bounded items stay, and a step more of them: whether a run begins is told by the step before.
    """
    totals, reach = totals or bool(bound.columns), reach + bool(bound.series)
    every = _RARELY if totals else min(max(reach, 1), _RARELY)
    if step % every:
        return
    oldest = oldest_at(step + 1, reach)
    kept = ", ".join(f"CASE WHEN r{j} < {oldest} THEN 0 ELSE r{j} END AS r{j}" for j in range(1, depth + 1))
    kept = ", ".join([kept, *bound.columns])
    mattering = "TRUE" if totals else f"r1 >= {oldest}"
    connection.execute(f"CREATE OR REPLACE TABLE items AS SELECT item, {kept} FROM items WHERE {mattering}")
