"""The exact state of a stream: how many items have each recency, updated every step; answers are sums of these.

For each threshold k and group c, `recent[k][c, i]` is the number of items whose k-th most recent occurrence at the end
of step t lies in step `oldest + i`, with `oldest = max(1, t - reach + 1)`: further back nothing is asked. `total[k][c]`
is the number of items with at least k occurrences since step 1; it is there only for a k that totals are asked for,
since otherwise items are forgotten. Then CountAtLeast_k(a, t) is the sum of `recent[k][c]` over steps a..t. Occurrences
are counted as if each were of an item of its own, under `OCCURRENCES` in place of k.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpwindows.ask.zones import Int64Array
from dpwindows.kernel.designs import StepAnswers

NONE = -1
"""In place of a recency: the item has fewer than k occurrences."""


class Change(NamedTuple):
    """So many items of a group changed the step of their k-th most recent occurrence; only `before` may be `NONE`.

    In place of a threshold, k may be the number of a series with bounded runs (`count.query.first_runs.series_number`).
    """

    k: int
    before: int
    after: int
    items: int
    cell: int = 0


@dataclass(frozen=True)
class StepCounts:
    """Exact counts by recency at the end of a step; see the module."""

    step: int
    reach: int
    recent: Mapping[int, Int64Array]
    total: Mapping[int, Int64Array]

    @classmethod
    def before_all(cls, thresholds: Iterable[int], reach: int, *, totals: Iterable[int], cells: int = 1) -> StepCounts:
        """Before step 1: nothing has occurred. `totals` are the thresholds that totals are asked for."""
        recent = {k: np.zeros((cells, 0), dtype=np.int64) for k in thresholds}
        return cls(0, reach, recent, {k: np.zeros(cells, dtype=np.int64) for k in totals})

    def after(self, changes: Iterable[Change]) -> StepCounts:
        """The counts one step later, given what changed in that step.

        A recency before `oldest` has left `recent` with its step, so that its changes concern the new one only.

        Raises `ValueError` where a count would be below 0: what changed is not of the items that are known.
        """
        step, oldest = self.step + 1, oldest_at(self.step + 1, self.reach)
        gone = oldest - oldest_at(self.step, self.reach)
        recent = {k: np.pad(counts, ((0, 0), (0, 1)))[:, gone:] for k, counts in self.recent.items()}
        total = {k: counts.copy() for k, counts in self.total.items()}
        for k, before, after, items, cell in changes:
            if before >= oldest:
                recent[k][cell, before - oldest] -= items
            if after >= oldest:
                recent[k][cell, after - oldest] += items
            if k in total and before == NONE:
                total[k][cell] += items
        if any((counts < 0).any() for counts in (*recent.values(), *total.values())):
            raise ValueError("fewer items than none have a recency: what changed is not of the items that are known")
        return StepCounts(step, self.reach, recent, total)

    def answers(self) -> list[StepAnswers]:
        """What the mechanism asks for, of each group: counts of the last 1, 2, ... steps, and totals."""
        sums = {k: np.cumsum(counts[:, ::-1], axis=1) for k, counts in self.recent.items()}
        cells = len(next(iter(sums.values())))
        return [
            StepAnswers(
                self.step,
                {k: counts[cell] for k, counts in sums.items()},
                {k: int(counts[cell]) for k, counts in self.total.items()},
            )
            for cell in range(cells)
        ]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """As named arrays; `from_arrays` gives it back."""
        named = {"recent": self.recent, "total": self.total}
        return {f"{name}.{k}": values for name, counts in named.items() for k, values in counts.items()}

    @classmethod
    def from_arrays(cls, step: int, reach: int, arrays: Mapping[str, np.ndarray]) -> StepCounts:
        """The counts that `to_arrays` gave."""
        counts: dict[str, dict[int, Int64Array]] = {"recent": {}, "total": {}}
        for name, values in arrays.items():
            what, k = name.split(".")
            counts[what][int(k)] = values
        return cls(step, reach, counts["recent"], counts["total"])


def oldest_at(step: int, reach: int) -> int:
    """The first step that windows reaching `reach` steps back from the end of `step` can begin in."""
    return max(1, step - reach + 1)
