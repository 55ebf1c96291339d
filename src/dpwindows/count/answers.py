"""Exact answers: signed counts by step and recency, and the window counts that are sums over them.

Write h_t[a] for the number of items whose k-th most recent occurrence at the end of step t lies in step a. The signed
counts are its changes, `delta(s, a) = h_s[a] - h_{s-1}[a]`, and for every a >= 1

    CountAtLeast_k(a, t) = sum of delta(s, r) over s <= t and r >= a.

Steps and recencies are numbered from 1. All arithmetic is on 64-bit integers and exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.zones import Int64Array
from dpwindows.count.query.first_runs import Series
from dpwindows.errors import InputError

Changes = Sequence[Int64Array] | Int64Array
"""Signed counts: the equally long arrays step, recency and delta, in any order."""


class ExactAnswers:
    """Exact window counts of one event log, for a horizon of `steps` steps and the thresholds it was counted for.

    Memory is proportional to the number of signed counts (at most the number of events, and at most
    steps * (steps + 1) / 2 a threshold) plus `steps`; only `windows` is dense, in the block asked for. `rule` is
    the one that was enforced when they were counted.
    """

    def __init__(
        self,
        steps: int,
        changes: Mapping[int, Changes],
        rule: CountingRule = EVERY_OCCURRENCE,
        series: Mapping[Series, Changes] | None = None,
        reach: int | None = None,
    ) -> None:
        """`changes` maps each threshold k to its signed counts.

        Where the rule bounds runs, `series` does so for each rolling count that can be asked for. With `reach`, the
        counts are of rolling windows of at most `reach` steps, and of cumulative ones.

        Raises:
            ValueError: signed counts cannot be of such a range.
        """
        if steps < 1:
            raise ValueError(f"steps must be at least 1, got {steps}")
        self.steps, self.rule, self._reach = steps, rule, reach
        self._changes = {k: _by_step(changes[k], steps) for k in sorted(changes)}
        self._series = {of: _by_step(found, steps) for of, found in sorted((series or {}).items())}

    @property
    def thresholds(self) -> tuple[int, ...]:
        """The thresholds k that can be asked for, ascending."""
        return tuple(self._changes)

    def canonical(self) -> Iterator[bytes]:
        """The signed counts as bytes that are equal for equal answers, however the engine ordered or split them."""
        yield f"{self.steps}\n".encode()
        # What bounded runs are of is written as K:LENGTH, which is no threshold.
        named = {f"{k}": changes for k, changes in self._changes.items()}
        named |= {f"{k}:{length}": changes for (k, length), changes in self._series.items()}
        for name, changes in named.items():
            cells, index = np.unique(changes[:2], axis=1, return_inverse=True)
            delta = np.zeros(cells.shape[1], dtype=np.int64)
            np.add.at(delta, index.reshape(-1), changes[2])
            rows = np.vstack([cells, delta])[:, delta != 0]
            yield f"{name} {rows.shape[1]}\n".encode()
            yield rows.astype("<i8").tobytes()

    def cumulative(self, k: int) -> Int64Array:
        """Items with at least k occurrences in steps 1..t, for t = 1..T; shape (T,)."""
        return self.rolling(k, self.steps)

    def rolling(self, k: int, length: int) -> Int64Array:
        """Items with at least k occurrences in steps max(1, t - length + 1)..t, for t = 1..T; shape (T,).

        `length` may exceed the horizon, which makes the answers cumulative. Where the rule bounds runs, an item counts
        in its first runs only.

        Raises:
            InputError: the length is below 1, or this was not counted.
        """
        if length < 1:
            raise InputError(f"the length of a rolling window must be at least 1, got {length}")
        if self._reach is not None and self._reach < length < self.steps:
            raise InputError(f"these answers were counted for windows of at most {self._reach} steps, not of {length}")
        bounded = self.rule.max_runs is not None and length < self.steps
        step, recency, delta = self._of_series(k, length) if bounded else self._of(k)
        # A change made at step s with recency r is seen by the windows that end at s..r + length - 1.
        gone = recency + min(length, self.steps)
        seen = gone > step
        difference = np.zeros(self.steps + 2, dtype=np.int64)
        np.add.at(difference, step[seen], delta[seen])
        np.subtract.at(difference, np.minimum(gone[seen], self.steps + 1), delta[seen])
        answers: Int64Array = np.cumsum(difference[1:-1])
        return answers

    def windows(self, k: int, first_start: int, starts: int, first_end: int, ends: int) -> Int64Array:
        """Items with at least k occurrences in steps a..b: a block of shape (starts, ends), 0 where b < a.

        a runs over first_start..first_start + starts - 1 and b over first_end..first_end + ends - 1, all in 1..T.

        Raises:
            InputError: a window lies outside the range, or the rule bounds runs.
        """
        if self.rule.max_runs is not None:
            raise InputError("where the rule of counting bounds runs there are rolling and cumulative counts only")
        if self._reach is not None:
            raise InputError("these answers were counted for rolling and cumulative windows only")
        last_start, last_end = first_start + starts - 1, first_end + ends - 1
        if not (1 <= first_start <= last_start <= self.steps and 1 <= first_end <= last_end <= self.steps):
            raise InputError(
                f"windows must start and end within steps 1 to {self.steps}, "
                f"got starts {first_start} to {last_start} and ends {first_end} to {last_end}"
            )
        changes = self._of(k)
        # Recency never exceeds the step, so only changes in steps first_start..last_end can count.
        low, high = np.searchsorted(changes[0], [first_start, last_end + 1])
        step, recency, delta = changes[:, low:high]
        row = np.minimum(recency, last_start) - first_start
        column = np.maximum(step, first_end) - first_end
        counted = row >= 0
        block = np.zeros((starts, ends), dtype=np.int64)
        np.add.at(block, (row[counted], column[counted]), delta[counted])
        np.cumsum(block, axis=1, out=block)
        np.cumsum(block[::-1], axis=0, out=block[::-1])
        return block

    def _of(self, k: int) -> Int64Array:
        if k not in self._changes:
            raise InputError(f"these answers were counted for thresholds {self.thresholds}, not for k={k}")
        return self._changes[k]

    def _of_series(self, k: int, length: int) -> Int64Array:
        if (k, length) not in self._series:
            raise InputError(f"these answers were not counted for the first runs of at least {k} in {length} steps")
        return self._series[k, length]


def _by_step(changes: Changes, steps: int) -> Int64Array:
    """Signed counts as rows of one array, ascending by step. Raises `ValueError` if they cannot be of such a range."""
    table = np.array(changes, dtype=np.int64)
    step, recency, _ = table
    if not ((recency >= 1) & (recency <= step) & (step <= steps)).all():
        raise ValueError(f"signed counts must have 1 <= recency <= step <= {steps}")
    return table[:, np.argsort(step, kind="stable")]
