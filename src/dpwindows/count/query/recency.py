"""Exact counting: one query reduces a log of events to signed counts by step and recency.

Recency tau_k(u, t) is the step of the k-th most recent occurrence of item u at or before step t, 0 if there are fewer
than k. It decides every window at once, since CountAtLeast_k(a, t) = #{u : tau_k(u, t) >= a} for all a >= 1, and it
changes only at steps in which u occurs. The query sorts the events of each item by step, finds the recencies, and
adds up over all items the signed counts delta_k(step, recency): an item whose recency changes from r' to r at step s
counts -1 at (s, r') and +1 at (s, r), where a recency of 0 does not count.

Occurrences themselves are counted as if each were of an item of its own, under the threshold `OCCURRENCES`: one in step
s counts +1 at (s, s) and never leaves, so that the sums that give CountAtLeast_k(a, t) give the occurrences in [a, t].

The SQL is standard (window functions, GROUPING SETS) and is the specification of the count: DuckDB, Spark SQL and
PostgreSQL read it alike. It passes over the events once, for all thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dpwindows.ask.queries import OCCURRENCES

REMAINDER = "{} % {}"
"""How most engines spell what is left of a whole number after dividing it by another one."""


class Occurrences(NamedTuple):
    """A relation (item, step, count) in SQL, a name or a query in parentheses; `weighted` if not every count is 1.

    Otherwise the column count is not read. It uses the common table expressions `before`, each of which ends with a
    comma. Rows of the same item and step add up.
    """

    relation: str
    weighted: bool
    before: str = ""


def recency_sql(
    events: Occurrences,
    thresholds: Sequence[int],
    *,
    span: int | None = None,
    reach: int | None = None,
    remainder: str = REMAINDER,
) -> str:
    """The query for the signed counts (k, step, recency, delta) of events, for distinct thresholds.

    With `span` the steps are places `c * span + s`: step s, from 1 to span - 1, of the cell c. Cells are counted apart,
    as if each were a log of its own. Let an item's rows be in the order of their places: those of one cell stand
    together, by step. So the k-th most recent occurrence at a place lies in its own cell if and only if the item has at
    least k occurrences there so far. Counts whose recency is of another cell than their step count for nothing,
    and are left out or to be left out; the counts of one (k, step, recency) may be in several rows.

    With `reach` too, answers are wanted for windows of at most `reach` steps, and for those since the beginning. Then
    at step s a recency r < s - reach may stand as s - reach: no window that ends at s or later and has at most `reach`
    steps holds either, and windows since the beginning hold both. Fewer recencies are fewer rows; what is left as it
    is does no harm. `remainder` is that of a `Dialect`.
    """
    held = is_held(events, thresholds)
    if events.weighted and max(thresholds) > 1:
        moved = moved_sql(events.relation, thresholds)
        return f"\nWITH {events.before}{moved},\n{summed_sql('moved', move_signs(thresholds), held=held)}"
    order = "(PARTITION BY item ORDER BY step)"
    lags = "".join(f", lag(step, {back}) OVER {order} AS back_{back}" for back in rows_back(thresholds))
    looked_up = f"SELECT step{', count' * held}{lags} FROM {events.relation} AS events"
    return sum_steps_back_sql(events.before, looked_up, thresholds, span, reach, held=held, remainder=remainder)


def is_held(events: Occurrences, thresholds: Sequence[int]) -> bool:
    """Whether the column count is added up, for occurrences."""
    return events.weighted and OCCURRENCES in thresholds


def rows_back(thresholds: Sequence[int]) -> list[int]:
    """How many rows back the steps lie that the thresholds need where a row is one occurrence, ascending from 1."""
    return sorted({back for k in thresholds if k != OCCURRENCES for back in (k - 1, k)} - {0})


def sum_steps_back_sql(
    before: str,
    occurrences: str,
    thresholds: Sequence[int],
    span: int | None,
    reach: int | None,
    *,
    held: bool,
    remainder: str = REMAINDER,
) -> str:
    """The query for the signed counts where a row is one occurrence: the k-th most recent one is k - 1 rows back.

    `occurrences` is a query with the columns step and, for each b in `rows_back(thresholds)`, back_b: the step b rows
    back of the same item, null if there is none; and count, if that is `held`. It may use the common table expressions
    `before`, each of which ends with a comma.

    The row of an occurrence moves the recency from the step k rows back to the step k - 1 rows back. Where an item
    occurs several times in one step the moves are made one after the other at that step, and their sum is the move
    from the first to the last: occurrences need no grouping by step.
    """
    backs = rows_back(thresholds)
    if span is not None:
        own = remainder.format("step", span)
        far = f" WHEN back_{{b}} < step - {reach} AND {own} > {reach} THEN step - {reach}"
        far = "" if reach is None else far
        near = "".join(
            f", CASE WHEN back_{b} <= step - {own} THEN NULL{far.format(b=b)} ELSE back_{b} END AS back_{b}"
            for b in backs
        )
        occurrences = f"SELECT step{', count' * held}{near} FROM ({occurrences}) AS looked_up"
    moves = [(back, k, sign) for k in thresholds if k != OCCURRENCES for back, sign in ((k - 1, 1), (k, -1))]
    signs = [(f"back_{back}" if back else "step", k, sign) for back, k, sign in moves]
    signs += [("step", OCCURRENCES, 1)] if OCCURRENCES in thresholds else []
    counted = summed_sql("occurrences", signs, merged=span is None, held=held)
    return f"\nWITH {before}occurrences AS ({occurrences}),\n{counted}"


def summed_sql(relation: str, signs: Sequence[tuple[str, int, int]], *, merged: bool = True, held: bool = False) -> str:
    """The end of a query: for each (column of recencies, k, sign) the rows of a relation by step and recency, added.

    A column may be `step` itself. Unless `merged`, the counts of one (k, step, recency) may be in several rows. Where
    the column count is `held`, occurrences are its sum.
    """
    columns = [column for column in dict.fromkeys(column for column, _, _ in signs) if column != "step"]
    places = {"step": -1} | {column: place for place, column in enumerate(columns)}
    sets = ", ".join(["(step)"] * any(column == "step" for column, _, _ in signs) + [f"(step, {c})" for c in columns])
    which = " ".join(f"WHEN grouping({column}) = 0 THEN {places[column]}" for column in columns)
    found = " ".join(f"WHEN grouping({column}) = 0 THEN {column}" for column in columns)
    listed = " UNION ALL ".join(
        f"SELECT {places[column]} AS place, {k} AS k, {sign} AS sign" for column, k, sign in signs
    )
    place, recency = (f"CASE {which} ELSE -1 END", f"CASE {found} ELSE step END") if columns else ("-1", "step")
    moved, own = "sign * rows_counted", ""
    if held:
        own = ", sum(count) AS occurrences_held"
        moved = f"CASE WHEN k = {OCCURRENCES} THEN occurrences_held ELSE {moved} END"
    delta, added = f"CAST({moved} AS BIGINT)", ""
    if merged:
        delta = f"CAST(sum({moved}) AS BIGINT)"
        added = f"\nGROUP BY k, step, recency HAVING sum({moved}) <> 0"
    return f"""counted AS (
    SELECT {place} AS place, step, {recency} AS recency, CAST(count(*) AS BIGINT) AS rows_counted{own}
    FROM {relation} GROUP BY GROUPING SETS ({sets})
),
signs AS ({listed})
SELECT k, step, recency, {delta} AS delta
FROM counted JOIN signs ON counted.place = signs.place
WHERE recency IS NOT NULL{added}"""


def moved_sql(events: str, thresholds: Sequence[int]) -> str:
    """Common table expressions, the last of them `moved`, where a row may be several occurrences.

    Its columns are item, step, count and, for each threshold k, recency_k and before_k: its recency after this row and
    after its row before, null for none. Occurrences are numbered, and looked up k - 1 numbers back: `numbered` is the
    running number of the last occurrence of a row. More than max(k) occurrences in one row are as good as max(k). Rows
    of one step come in any order; only the sum of their moves matters, as in `sum_steps_back_sql`.
    """
    order, most = "(PARTITION BY item ORDER BY numbered", max(thresholds)
    thresholds = [k for k in thresholds if k != OCCURRENCES]
    recencies = ", ".join(
        f"CASE WHEN numbered >= {k} THEN first_value(step) OVER {order} RANGE BETWEEN {k - 1} PRECEDING "
        f"AND CURRENT ROW) END AS recency_{k}"
        for k in thresholds
    )
    befores = ", ".join(f"recency_{k}, lag(recency_{k}) OVER {order}) AS before_{k}" for k in thresholds)
    return f"""capped AS (
    SELECT item, step, count, CASE WHEN count > {most} THEN {most} ELSE count END AS occurrences
    FROM {events} AS events
),
running AS (
    SELECT item, step, count, CAST(
        sum(occurrences) OVER (PARTITION BY item ORDER BY step ROWS UNBOUNDED PRECEDING) AS BIGINT
    ) AS numbered
    FROM capped
),
reached AS (SELECT item, step, count, numbered, {recencies} FROM running),
moved AS (SELECT item, step, count, {befores} FROM reached)"""


def move_signs(thresholds: Sequence[int]) -> list[tuple[str, int, int]]:
    """What `summed_sql` adds up of `moved`: at its step a row reaches one recency and leaves another."""
    reached = [k for k in thresholds if k != OCCURRENCES]
    signs = [(f"{column}_{k}", k, sign) for k in reached for column, sign in (("recency", 1), ("before", -1))]
    return signs + ([("step", OCCURRENCES, 1)] if OCCURRENCES in thresholds else [])
