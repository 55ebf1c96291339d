"""Exact answers of every group of a log, each as if its events were the whole log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.groups import Grouping
from dpwindows.ask.timeline import Timeline
from dpwindows.count.answers import Changes, ExactAnswers


def span_of(timeline: Timeline, *, later: bool = False) -> int:
    """The places of one cell where groups are counted together: one more than steps (`recency_sql`).

    With `later` one more, for events after the last step.
    """
    return timeline.steps + 1 + later


class GroupedAnswers:
    """Exact window counts of every group that a log was counted by.

    `grouping` is what the log was counted by, under the rule `rule` in each group. Memory is proportional to the number
    of signed counts.
    """

    def __init__(
        self,
        steps: int,
        grouping: Grouping,
        changes: Mapping[int, Changes],
        rule: CountingRule = EVERY_OCCURRENCE,
        reach: int | None = None,
    ) -> None:
        """`changes` maps each threshold k to the arrays cell, step, recency, delta; `reach` as for `ExactAnswers`."""
        self.steps, self.grouping, self.rule, self._reach = steps, grouping, rule, reach
        tables = {k: np.array(changes[k], dtype=np.int64) for k in sorted(changes)}
        self._changes = {k: table[:, np.argsort(table[0], kind="stable")] for k, table in tables.items()}

    def group(self, cell: int) -> ExactAnswers:
        """The answers of one group, by its code."""
        changes = {}
        for k, table in self._changes.items():
            low, high = np.searchsorted(table[0], [cell, cell + 1])
            changes[k] = table[1:, low:high]
        return ExactAnswers(self.steps, changes, self.rule, reach=self._reach)

    def canonical(self) -> Iterator[bytes]:
        """The signed counts as bytes that are equal for equal answers, however the engine ordered or split them."""
        cells = sum(level.count for level in self.grouping.levels)
        yield f"{self.steps} {cells}\n".encode()
        for cell in range(cells):
            yield from self.group(cell).canonical()
