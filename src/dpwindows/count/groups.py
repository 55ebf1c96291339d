"""Exact answers of every group of a log, each as if its events were the whole log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.groups import Grouping
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import Int64Array
from dpwindows.count.answers import ExactAnswers

# For one threshold the arrays (cell, step, recency, delta), equally long.
CellChanges = tuple[Int64Array, Int64Array, Int64Array, Int64Array]


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
        changes: Mapping[int, CellChanges],
        rule: CountingRule = EVERY_OCCURRENCE,
        reach: int | None = None,
    ) -> None:
        """`changes` maps each threshold k to its signed counts, in any order; `reach` as for `ExactAnswers`."""
        self.steps, self.grouping, self.rule, self._reach = steps, grouping, rule, reach
        self._changes = {k: _by_cell(changes[k]) for k in sorted(changes)}

    def group(self, cell: int) -> ExactAnswers:
        """The answers of one group, by its code."""
        return ExactAnswers(self.steps, {k: self._part(k, cell) for k in self._changes}, self.rule, reach=self._reach)

    def canonical(self) -> Iterator[bytes]:
        """The signed counts as bytes that are equal for equal answers, however the engine ordered or split them."""
        yield f"{self.steps} {self._cells}\n".encode()
        for cell in range(self._cells):
            yield from self.group(cell).canonical()

    @cached_property
    def _cells(self) -> int:
        return sum(level.count for level in self.grouping.levels)

    def _part(self, k: int, cell: int) -> tuple[Int64Array, Int64Array, Int64Array]:
        cells, step, recency, delta = self._changes[k]
        low, high = np.searchsorted(cells, [cell, cell + 1])
        return step[low:high], recency[low:high], delta[low:high]


def _by_cell(changes: CellChanges) -> CellChanges:
    order = np.argsort(changes[0], kind="stable")
    cell, step, recency, delta = (array[order] for array in changes)
    return cell, step, recency, delta
