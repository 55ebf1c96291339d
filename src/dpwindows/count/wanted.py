"""What an engine is asked to count: the thresholds, of which occurrences; and the query that counts it.

The rule is enforced in the query, on what every engine reads as a relation (item, step, count), so that it holds for
any data.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.count.recency import recency_sql


@dataclass(frozen=True)
class Occurrences:
    """A relation (item, step, count) in SQL, a name or a query in parentheses; `weighted` if not every count is 1."""

    sql: str
    weighted: bool


@dataclass(frozen=True)
class Wanted:
    """The signed counts to find: for distinct `thresholds`, ascending, of the occurrences that `rule` lets count.

    With `grouped` relations and counts have a column `cell` more, the code of a group, and each group is counted, and
    its rule enforced, as if there were no other.
    """

    thresholds: tuple[int, ...]
    rule: CountingRule = EVERY_OCCURRENCE
    grouped: bool = False

    @property
    def cap(self) -> int:
        """More occurrences than this in one row are as good as this many."""
        return max(self.thresholds)

    def occurrences(self, events: str, *, weighted: bool) -> Occurrences:
        """The occurrences of a relation (item, step, count) that count."""
        if self.rule.distinct_steps:
            key = "item, step, cell" if self.grouped else "item, step"
            once = f"SELECT {key}, CAST(1 AS BIGINT) AS count FROM {events} AS events GROUP BY {key}"
            return Occurrences(f"({once})", weighted=False)
        return Occurrences(events, weighted)

    def sql(self, events: str, *, weighted: bool, grouping_sets: bool = True) -> str:
        """The query for the signed counts (k, step, recency, delta) of a relation (item, step, count)."""
        counted = self.occurrences(events, weighted=weighted)
        return recency_sql(
            counted.sql,
            self.thresholds,
            weighted=counted.weighted,
            grouping_sets=grouping_sets,
            grouped=self.grouped,
        )
