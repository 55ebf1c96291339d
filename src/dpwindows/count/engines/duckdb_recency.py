"""The counting query as DuckDB runs it best: one sort of the events, read once, each row beside the rows before it.

`count.query.recency` is the specification. DuckDB answers its windows by partitioning and sorting inside the window
operator, once for numbers of occurrences and once more to look them up; a plain sort followed by `lag(...) OVER ()`,
which DuckDB computes while rows stream by, gives the same in half the CPU time and memory or less.

SQL does not promise the order of such a stream, so the query checks the order and fails unless it is right.
Each row has a code: its item, or a hash of it where items have no fixed width (sorting long keys is slow). Let
r_1, ..., r_n be the rows as they stream by; lag(x) OVER () is x of the row before, for all x alike, and null for r_1
only, as no code is null. The query fails unless for every i > 1

    code(i-1) < code(i),  or  code(i-1) = code(i) and step(i-1) <= step(i) and item(i-1) = item(i).

So the codes ascend, rows of one code stand together, and they are of one item and in the order of their steps. A code
is a function of the item, hence rows of one item have one code. The rows of each code are exactly those of one item in
the order of PARTITION BY item ORDER BY step, which is all that the specification asks. Two items with the same hash
are thus never taken for one: the query fails, and the specification is run instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from dpwindows.ask.queries import OCCURRENCES
from dpwindows.count.query.recency import Occurrences, is_held, move_signs, rows_back, sum_steps_back_sql, summed_sql

_MARK = "dpwindows found rows out of order"
# With offsets beyond its vectors of 2048 rows DuckDB gathers all rows first; a sum of up to k counts a row stops
# paying at about k = 16.
_FARTHEST = 2000
_MOST_SUMMED = 8


def in_order_sql(
    events: Occurrences, thresholds: Sequence[int], *, hashed: bool, span: int | None = None, reach: int | None = None
) -> str | None:
    """A query for the counts of `recency_sql`, made by one sort of the events, or None where it would be slower.

    `span` and `reach` are as there; `hashed` says that items have no fixed width. If the query fails and
    `is_out_of_order` says so, the reason is that rows came out of order or that two items have the same hash, and no
    count was made.
    """
    weighted, held = events.weighted and max(thresholds) > 1, is_held(events, thresholds)
    # Occurrences alone need no order.
    if max(thresholds) > (_MOST_SUMMED if weighted else _FARTHEST) or max(thresholds) == OCCURRENCES:
        return None
    code = "hash(item) AS code, item" if hashed else "item AS code"
    count = f", least(count, {max(thresholds)}) AS occurrences" if weighted else ""
    count += ", count" * held
    before = f"""{events.before}in_order AS (
    SELECT * FROM (SELECT {code}, step{count} FROM {events.relation}) ORDER BY code, step
),
placed AS ({_placed_sql("code, step" + ", occurrences" * weighted + ", count" * held, hashed)}),
"""
    if weighted:
        moved = f"near AS ({_near_sql(thresholds, held)}),\nmoved AS ({_moved_sql(thresholds, held)})"
        return f"\nWITH {before}{moved},\n{summed_sql('moved', move_signs(thresholds), held=held)}"
    # b rows back is the same item if the code is the same.
    lags = ", ".join(
        f"CASE WHEN NOT first AND lag(code, {back}) OVER () = code THEN lag(step, {back}) OVER () END AS back_{back}"
        for back in rows_back(thresholds)
    )
    looked_up = f"SELECT step{', count' * held}, {lags} FROM placed"
    return sum_steps_back_sql(before, looked_up, thresholds, span, reach, held=held)


def is_out_of_order(error: duckdb.Error) -> bool:
    """Whether this is how the query of `in_order_sql` says that its order could not be had."""
    return _MARK in str(error)


def _placed_sql(kept: str, hashed: bool) -> str:
    """The rows as they stream by, with `first` true for an item's first; fails where they are out of order."""
    same_item = " AND lag(item) OVER () = item" if hashed else ""
    return f"""SELECT {kept}, CASE
        WHEN lag(code) OVER () = code AND lag(step) OVER () <= step{same_item} THEN FALSE
        WHEN lag(code) OVER () IS NULL OR lag(code) OVER () < code THEN TRUE
        ELSE CAST(error('{_MARK}' || left(CAST(step AS VARCHAR), 0)) AS BOOLEAN) END AS first
    FROM in_order"""


def _near_sql(thresholds: Sequence[int], held: bool) -> str:
    """Each row with the rows before it that may hold its recencies, numbered from 0 for itself."""
    lags = "".join(
        f", lag({name}, {back}) OVER () AS {name}_{back}"
        for back in range(1, max(thresholds) + 1)
        for name in ("step", "occurrences", "first")
    )
    own = "step AS step_0, occurrences AS occurrences_0, first AS first_0"
    return f"SELECT {own}{', count' * held}{lags} FROM placed"


def _moved_sql(thresholds: Sequence[int], held: bool) -> str:
    """The relation `moved` of `recency.moved_sql`, but for the item.

    The k-th most recent occurrence after a row lies in the latest row from which the counts up to this one add up to
    at least k. A count is at least 1, so it is at most k - 1 rows back, unless the item's first row comes before.
    """
    moves = ", ".join(
        f"{_recency(k, 0)} AS recency_{k}, CASE WHEN NOT first_0 THEN {_recency(k, 1)} END AS before_{k}"
        for k in thresholds
        if k != OCCURRENCES
    )
    return f"SELECT step_0 AS step{', count' * held}, {moves} FROM near"


def _recency(k: int, latest: int) -> str:
    """The recency after the row `latest`: rows are added backwards until they hold k occurrences or the item begins."""
    branches = []
    for back in range(latest, latest + k):
        held = " + ".join(f"occurrences_{row}" for row in range(latest, back + 1))
        branches.append(f"WHEN {held} >= {k} THEN step_{back} WHEN first_{back} THEN NULL")
    return f"CASE {' '.join(branches)} END"
