"""The exact state of a stream: how many items have each recency, updated every step; answers are sums of these.

For each threshold k, `recent[k][i]` is the number of items whose k-th most recent occurrence at the end of step t lies
in step `oldest + i`, with `oldest = max(1, t - reach + 1)`: further back nothing is asked. `total[k]` is the number of
items with at least k occurrences since step 1; it is there only where totals are asked for, since without them items
are forgotten. Then CountAtLeast_k(a, t) is the sum of `recent[k]` over steps a..t.
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
    """So many items changed the step of their k-th most recent occurrence; `before` may be `NONE`, `after` not.

    In place of a threshold, k may be the number of a series with bounded runs (`count.query.first_runs.series_number`).
    """

    k: int
    before: int
    after: int
    items: int
    cell: int = 0
    """The code of the group whose items they are."""


@dataclass(frozen=True)
class StepCounts:
    """Exact counts by recency at the end of a step; see the module."""

    step: int
    reach: int
    recent: Mapping[int, Int64Array]
    total: Mapping[int, int]

    @classmethod
    def before_all(cls, thresholds: Iterable[int], reach: int, *, totals: bool) -> StepCounts:
        """Before step 1: nothing has occurred."""
        recent = {k: np.zeros(0, dtype=np.int64) for k in thresholds}
        return cls(0, reach, recent, dict.fromkeys(recent, 0) if totals else {})

    @property
    def oldest(self) -> int:
        """The first step whose recencies are kept; `step + 1` if none are."""
        return oldest_at(self.step, self.reach)

    def after(self, changes: Iterable[Change]) -> StepCounts:
        """The counts one step later, given what changed in that step.

        A recency before `oldest` has left `recent` with its step, so that its changes concern the new one only.
        """
        step = self.step + 1
        oldest = oldest_at(step, self.reach)
        recent = {k: np.append(counts, 0)[max(oldest - self.oldest, 0) :] for k, counts in self.recent.items()}
        total = dict(self.total)
        for k, before, after, items, _ in changes:
            if before >= oldest:
                recent[k][before - oldest] -= items
            if after >= oldest:
                recent[k][after - oldest] += items
            if k in total and before == NONE:
                total[k] += items
        return StepCounts(step, self.reach, recent, total)

    def answers(self) -> StepAnswers:
        """What the mechanism asks for: counts of the last 1, 2, ... steps, and totals."""
        return StepAnswers(self.step, {k: np.cumsum(counts[::-1]) for k, counts in self.recent.items()}, self.total)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """As named arrays; `from_arrays` gives it back."""
        return {
            **{f"recent.{k}": counts for k, counts in self.recent.items()},
            **{f"total.{k}": np.array(total) for k, total in self.total.items()},
        }

    @classmethod
    def from_arrays(cls, step: int, reach: int, arrays: Mapping[str, np.ndarray]) -> StepCounts:
        """The counts that `to_arrays` gave."""
        recent = {int(name[7:]): counts for name, counts in arrays.items() if name.startswith("recent.")}
        total = {int(name[6:]): int(count) for name, count in arrays.items() if name.startswith("total.")}
        return cls(step, reach, recent, total)


def oldest_at(step: int, reach: int) -> int:
    """The first step that windows reaching `reach` steps back from the end of `step` can begin in."""
    return max(1, step - reach + 1)
