"""The query that counts each item in its first runs only: the specification of `max_runs`, in standard SQL.

A run is a maximal stretch of steps at whose ends an item is counted: the last W of them hold at least k occurrences
of it. The item is to be counted in its first R runs. It leaves the count at the end of a run by itself, so all that is
to be done is to leave out what it does from the step on where its run R + 1 would begin: with the recency it has
before, which is too old for the window, it is not counted any more, and up to there nothing changes. So for each pair
(k, W) the signed counts are those of the rows of an item before that step.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpwindows.ask.counting_rule import LOST
from dpwindows.count.query.recency import Occurrences, move_signs, moved_sql, summed_sql

Series = tuple[int, int]
"""A threshold k and the length W of a rolling window, in steps."""


def series_number(place: int) -> int:
    """What stands for the series in this place of a list, in the column k of signed counts."""
    return -1 - place


def first_runs_sql(
    events: Occurrences, series: Sequence[Series], thresholds: Sequence[int], max_runs: int, *, loss: bool = False
) -> str:
    """The query for the signed counts (k, step, recency, delta) of events.

    Those of `series` stand under their numbers (`series_number`) and are of the first `max_runs` runs of each item;
    those of `thresholds` are of all occurrences. With `loss` those of `LOST` are of the items that lose a run of
    some series, each from the step on where the first such run begins.
    """
    every = sorted({k for k, _ in series} | set(thresholds))
    count = f"CASE WHEN count > {max(every)} THEN {max(every)} ELSE count END" if events.weighted else "1"
    rows = f"SELECT item, step, CAST(sum({count}) AS BIGINT) AS count FROM {events.relation} AS events"
    order = "(PARTITION BY item ORDER BY step ROWS UNBOUNDED PRECEDING)"
    # Counted at the end of this step, and not at that of the step before.
    runs = ", ".join(
        f"sum(CASE WHEN recency_{k} > step - {length} AND (before_{k} IS NULL OR before_{k} < step - {length}) "
        f"THEN 1 ELSE 0 END) OVER {order} AS run_{place}"
        for place, (k, length) in enumerate(series)
    )
    plain = ", ".join(f"recency_{k}, before_{k}" for k in every)
    kept = "".join(
        f", CASE WHEN run_{place} <= {max_runs} THEN {name}_{k} END AS {name}_in_{place}"
        for place, (k, _) in enumerate(series)
        for name in ("recency", "before")
    )
    signs = [
        (f"{name}_in_{place}", series_number(place), sign)
        for place in range(len(series))
        for name, sign in (("recency", 1), ("before", -1))
    ]
    signs += move_signs(thresholds)
    if loss:
        # The row of an item with which the first of its runs too many begins.
        beyond = " OR ".join(f"run_{place} > {max_runs}" for place in range(len(series)))
        earlier = f"coalesce(lag(CASE WHEN {beyond} THEN 1 ELSE 0 END) OVER (PARTITION BY item ORDER BY step), 0)"
        kept += f", CASE WHEN ({beyond}) AND {earlier} = 0 THEN CAST(1 AS BIGINT) END AS lost"
        signs.append(("lost", LOST, 1))
    return f"""
WITH {events.before}{moved_sql(f"({rows} GROUP BY item, step)", every)},
ranked AS (SELECT item, step, {plain}, {runs} FROM moved),
kept AS (SELECT step, {plain}{kept} FROM ranked),
{summed_sql("kept", signs)}"""
