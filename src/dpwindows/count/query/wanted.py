"""The request that an engine gets: which thresholds, which occurrences count, and the query for both.

The rule of counting is enforced in the query, on what every engine reads as a relation (item, step, count), so that it
holds for any data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, LOST, CountingRule
from dpwindows.ask.queries import OCCURRENCES, Query, Rolling
from dpwindows.ask.windows import fit_to_range
from dpwindows.count.query.dialect import Dialect
from dpwindows.count.query.first_runs import Series, first_runs_sql
from dpwindows.count.query.recency import Occurrences, recency_sql
from dpwindows.errors import InputError

MOST_IN_A_ROW = 2**31 - 1
"""A row stands for at most this many occurrences where these are added up: sums of fewer than 2^32 rows fit 64 bits."""


@dataclass(frozen=True)
class Wanted:
    """The signed counts to find, of the occurrences that `rule` lets count.

    Attributes:
        thresholds: whole numbers k from 1 to 2^31 - 1, in any order, and `OCCURRENCES`; kept distinct and ascending.
        rule: which occurrences of an item count.
        series: where the rule bounds runs, the rolling counts to find: pairs of a threshold and a length below the
            number of steps, in any order; kept distinct and ascending.
        span: where it is given, steps are places in cells (`recency_sql`), and an item is counted in each cell by
            itself; not for rules that bound what an item adds.
        reach: with `span`, the most steps of a window that does not begin at the beginning; None: any number.
        loss: find the items that lost something by the rule too, as signed counts of the threshold `LOST`: each item
            counts from the step on where the first of its occurrences, or runs of a series, is left out.

    Raises:
        InputError: there is no threshold at all, or one is not legal.
    """

    thresholds: tuple[int, ...]
    rule: CountingRule = EVERY_OCCURRENCE
    series: tuple[Series, ...] = ()
    span: int | None = None
    reach: int | None = None
    loss: bool = False

    def __post_init__(self) -> None:
        every = [*self.thresholds, *(k for k, _ in self.series)]
        if self.loss and not self.rule.bounded:
            raise InputError("only a rule that bounds what an item adds leaves something out")
        if not every:
            raise InputError("at least one threshold k is needed")
        for k in every:
            if isinstance(k, bool) or not isinstance(k, int | np.integer) or (k < 1 and k != OCCURRENCES):
                raise InputError(f"a threshold k must be a whole number of at least 1, got {k!r}")
        # Running numbers, at most k times the rows of an item, must fit 64 bits.
        if max(every) >= 2**31:
            raise InputError(f"a threshold k must be below 2**31, got {max(every)}")
        object.__setattr__(self, "thresholds", tuple(sorted(set(self.thresholds))))
        object.__setattr__(self, "series", tuple(sorted(set(self.series))))

    @classmethod
    def of(cls, queries: Iterable[Query], rule: CountingRule, steps: int, *, loss: bool = False) -> Self:
        """What is counted for queries over a range of so many steps, however they are measured."""
        thresholds: set[int] = set()
        series: set[Series] = set()
        for query in queries:
            window = fit_to_range(query.window, steps)
            if rule.max_runs is not None and isinstance(window, Rolling):
                series |= {(k, window.length) for k in query.thresholds}
            else:
                thresholds |= set(query.thresholds)
        return cls(tuple(thresholds), rule, tuple(series), loss=loss)

    @property
    def cap(self) -> int:
        """More occurrences than this in one row are as good as this many."""
        if OCCURRENCES in self.thresholds:
            return MOST_IN_A_ROW
        # One more than is allowed is something lost.
        most = (self.rule.max_occurrences or 0) + self.loss
        return max(*self.thresholds, *(k for k, _ in self.series), most, 1)

    def occurrences(self, events: Occurrences, dialect: Dialect) -> Occurrences:
        """The occurrences of events that count, but for those beyond the last run allowed."""
        relation, weighted, before = events
        if self.rule.distinct_steps:
            once = f"SELECT item, step, CAST(1 AS BIGINT) AS count FROM {relation} AS events GROUP BY item, step"
            relation, weighted, before = "once", False, f"{before}once AS ({once}),\n"
        if self.rule.max_occurrences is not None:
            first = _first_weighted_sql if weighted else _first_rows_sql
            # What is lost is read off the same relation, and a source may be read once only.
            before += first(relation, self.rule.max_occurrences, dialect.materialized if self.loss else "")
            relation = "first_ones"
        return Occurrences(relation, weighted, before)

    def sql(self, events: Occurrences, dialect: Dialect) -> str:
        """The query for the signed counts (k, step, recency, delta) of events."""
        counted = self.occurrences(events, dialect)
        if self.rule.max_runs is not None and self.series:
            return first_runs_sql(counted, self.series, self.thresholds, self.rule.max_runs, loss=self.loss)
        query = recency_sql(counted, self.thresholds, span=self.span, reach=self.reach, remainder=dialect.remainder)
        lost = self.loss and self.rule.max_occurrences is not None
        return f"{query}\nUNION ALL\n{self._lost_sql(counted.weighted)}" if lost else query

    def _lost_sql(self, weighted: bool) -> str:
        """The items with more occurrences than count, by the step of the first one too many: one row for each item."""
        most = self.rule.max_occurrences
        beyond = f"summed WHERE so_far > {most} AND so_far - held <= {most}"
        if not weighted:
            beyond = f"numbered_rows WHERE place = {most} + 1"
        return f"SELECT {LOST} AS k, step, 1 AS recency, CAST(count(*) AS BIGINT) AS delta FROM {beyond} GROUP BY step"


def _first_rows_sql(events: str, most: int, kept: str) -> str:
    """The first rows of each item, `first_ones`, where a row is one occurrence.

    Rows of one item and step are alike, so that any of them may be the first.
    """
    return f"""numbered_rows AS {kept}(
    SELECT item, step, count, row_number() OVER (PARTITION BY item ORDER BY step) AS place FROM {events} AS events
),
first_ones AS (SELECT item, step, count FROM numbered_rows WHERE place <= {most}),
"""


def _first_weighted_sql(events: str, most: int, kept: str) -> str:
    """The first occurrences of each item, `first_ones`, step by step, where a row may be several."""
    return f"""each_step AS (SELECT item, step, sum(count) AS held FROM {events} AS events GROUP BY item, step),
summed AS {kept}(
    SELECT item, step, held, sum(held) OVER (PARTITION BY item ORDER BY step ROWS UNBOUNDED PRECEDING) AS so_far
    FROM each_step
),
first_ones AS (
    SELECT item, step, CAST(CASE WHEN so_far <= {most} THEN held ELSE {most} - so_far + held END AS BIGINT) AS count
    FROM summed WHERE so_far - held < {most}
),
"""
