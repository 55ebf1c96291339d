"""The items of a stream and the steps of their last occurrences: one step is one pass of the engine.

The table `items` holds for each item the steps `r1 >= r2 >= ...` of its last `depth` occurrences, multiplicities
counted, where `depth` is the largest threshold asked for; null where there are fewer. That is all of an item's past
that can matter: a step with c occurrences puts c times its number in front and shifts the rest back, and the k-th most
recent occurrence lies in step `rk`. Items are kept as they are, never by a hash.

Of what is too old for every window (`oldest_at`) only its being there is kept, as step 0, and where no totals are
asked for not even that: see `prune`.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from dpwindows.stream.step_counts import NONE, Change, oldest_at

# Pruning rewrites the table, so it waits for this many steps where most items stay.
_RARELY = 64


def make_items(connection: duckdb.DuckDBPyConnection, sql_type: str, depth: int) -> None:
    """Make the table, for items of one type."""
    steps = ", ".join(f"r{j} INTEGER" for j in range(1, depth + 1))
    connection.execute(f"CREATE TABLE items (item {sql_type}, {steps})")


def occur(
    connection: duckdb.DuckDBPyConnection, occurrences: str, step: int, thresholds: Sequence[int], oldest: int
) -> list[Change]:
    """Let items occur in a step, and tell how recencies changed.

    Args:
        connection: the state, inside a transaction.
        occurrences: SQL of a query with the columns item, each once, and total, at least 1.
        step: later than all before.
        thresholds: every k to tell the changes of, ascending.
        oldest: the first step that still matters at the end of this one; changes from and to earlier ones are told
            as from and to step 0.
    """
    depth = max(thresholds)
    old = ", ".join(f"items.r{j}" for j in range(1, depth + 1))
    shifted = ", ".join(
        f"CASE WHEN fresh >= {j} THEN {step} ELSE before[{j} - fresh] END AS r{j}" for j in range(1, depth + 1)
    )
    # Temporary tables lie outside the state, and in the engine's private directory if they are spilled.
    connection.execute(f"""
CREATE OR REPLACE TEMP TABLE touched AS
SELECT item, place, before, {shifted} FROM (
    SELECT occurred.item, items.rowid AS place, [{old}] AS before,
        CAST(least(occurred.total, {depth}) AS INTEGER) AS fresh
    FROM ({occurrences}) AS occurred LEFT JOIN items ON items.item = occurred.item
)""")
    changes = _changes(connection, thresholds, oldest)
    settings = ", ".join(f"r{j} = touched.r{j}" for j in range(1, depth + 1))
    connection.execute(f"UPDATE items SET {settings} FROM touched WHERE items.rowid = touched.place")
    columns = ", ".join(f"r{j}" for j in range(1, depth + 1))
    connection.execute(f"INSERT INTO items SELECT item, {columns} FROM touched WHERE place IS NULL")
    return changes


def _changes(connection: duckdb.DuckDBPyConnection, thresholds: Sequence[int], oldest: int) -> list[Change]:
    def known(recency: str) -> str:
        return f"CASE WHEN {recency} IS NULL THEN {NONE} WHEN {recency} < {oldest} THEN 0 ELSE {recency} END"

    queries = [
        f"SELECT {k}, {known(f'before[{k}]')} AS left_step, {known(f'r{k}')} AS entered, count(*) FROM touched "
        f"WHERE r{k} IS NOT NULL GROUP BY left_step, entered"
        for k in thresholds
    ]
    return [Change(*row) for row in connection.execute(" UNION ALL ".join(queries)).fetchall()]


def prune(connection: duckdb.DuckDBPyConnection, step: int, depth: int, reach: int, *, totals: bool) -> None:
    """After some steps, forget what can no longer matter once `step` is closed.

    What comes next asks back to `oldest_at(step + 1)`. Recencies before that become 0 (there was an occurrence); where
    no totals are asked for they matter to nobody, and items that have no others are deleted. The table is written
    anew, which also gives back the room of rows that went: it never holds more than twice what matters, where no
    totals are asked for.
    """
    every = _RARELY if totals else min(max(reach, 1), _RARELY)
    if step % every:
        return
    oldest = oldest_at(step + 1, reach)
    kept = ", ".join(f"CASE WHEN r{j} < {oldest} THEN 0 ELSE r{j} END AS r{j}" for j in range(1, depth + 1))
    mattering = "TRUE" if totals else f"r1 >= {oldest}"
    connection.execute(f"CREATE OR REPLACE TABLE items AS SELECT item, {kept} FROM items WHERE {mattering}")
