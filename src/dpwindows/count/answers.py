"""Exact answers: signed counts by step and recency, and the window counts that are sums over them.

Write h_t[a] for the number of items whose k-th most recent occurrence at the end of step t lies in step a. The signed
counts are its changes, `delta(s, a) = h_s[a] - h_{s-1}[a]`, and for every a >= 1

    CountAtLeast_k(a, t) = sum of delta(s, r) over s <= t and r >= a.

Steps and recencies are numbered from 1. All arithmetic is on 64-bit integers and exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.zones import Int64Array
from dpwindows.count.query.first_runs import Series
from dpwindows.errors import InputError


@dataclass(frozen=True)
class SignedCounts:
    """The changes of one threshold: at `step[i]`, `delta[i]` items gained the recency `recency[i]`; ascending steps."""

    step: Int64Array
    recency: Int64Array
    delta: Int64Array

    @classmethod
    def of(cls, step: Int64Array, recency: Int64Array, delta: Int64Array, steps: int) -> SignedCounts:
        """Signed counts in any order, checked and sorted by step.

        Raises:
            ValueError: they cannot be of such a range.
        """
        if not step.shape == recency.shape == delta.shape or step.ndim != 1:
            raise ValueError(f"signed counts need equally long arrays, got {len(step)}, {len(recency)}, {len(delta)}")
        if len(step) and not (step.max() <= steps and recency.min() >= 1 and (recency <= step).all()):
            raise ValueError(f"signed counts must have 1 <= recency <= step <= {steps}")
        order = np.argsort(step, kind="stable")
        return cls(*(array[order].astype(np.int64, copy=False) for array in (step, recency, delta)))


class ExactAnswers:
    """Exact window counts of one event log, for a horizon of `steps` steps and the thresholds it was counted for.

    Memory is proportional to the number of signed counts (at most the number of events, and at most
    steps * (steps + 1) / 2 a threshold) plus `steps`; only `windows` is dense, in the block asked for. `rule` is
    the one that was enforced when they were counted.
    """

    def __init__(
        self,
        steps: int,
        changes: Mapping[int, tuple[Int64Array, Int64Array, Int64Array]],
        rule: CountingRule = EVERY_OCCURRENCE,
        series: Mapping[Series, tuple[Int64Array, Int64Array, Int64Array]] | None = None,
        reach: int | None = None,
    ) -> None:
        """`changes` maps each threshold k to its arrays (step, recency, delta) of equal length, in any order.

        Where the rule bounds runs, `series` does so for each rolling count that can be asked for. With `reach`, the
        counts are of rolling windows of at most `reach` steps, and of cumulative ones.

        Raises:
            ValueError: signed counts cannot be of such a range.
        """
        if steps < 1:
            raise ValueError(f"steps must be at least 1, got {steps}")
        self.steps, self.rule, self._reach = steps, rule, reach
        self._changes = {k: SignedCounts.of(*changes[k], steps) for k in sorted(changes)}
        bounded = series or {}
        self._series = {of: SignedCounts.of(*bounded[of], steps) for of in sorted(bounded)}

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
            cells, index = np.unique(np.stack([changes.step, changes.recency]), axis=1, return_inverse=True)
            delta = np.zeros(cells.shape[1], dtype=np.int64)
            np.add.at(delta, index.reshape(-1), changes.delta)
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
        changes = self._of(k) if self.rule.max_runs is None or length >= self.steps else self._of_series(k, length)
        # A change made at step s with recency r is seen by the windows that end at s..r + length - 1.
        gone = changes.recency + min(length, self.steps)
        seen = gone > changes.step
        difference = np.zeros(self.steps + 2, dtype=np.int64)
        np.add.at(difference, changes.step[seen], changes.delta[seen])
        np.subtract.at(difference, np.minimum(gone[seen], self.steps + 1), changes.delta[seen])
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
        low, high = np.searchsorted(changes.step, [first_start, last_end + 1])
        recency, delta = changes.recency[low:high], changes.delta[low:high]
        row = np.minimum(recency, last_start) - first_start
        column = np.maximum(changes.step[low:high], first_end) - first_end
        counted = row >= 0
        block = np.zeros((starts, ends), dtype=np.int64)
        np.add.at(block, (row[counted], column[counted]), delta[counted])
        np.cumsum(block, axis=1, out=block)
        np.cumsum(block[::-1], axis=0, out=block[::-1])
        return block

    def _of(self, k: int) -> SignedCounts:
        if k not in self._changes:
            raise InputError(f"these answers were counted for thresholds {self.thresholds}, not for k={k}")
        return self._changes[k]

    def _of_series(self, k: int, length: int) -> SignedCounts:
        if (k, length) not in self._series:
            raise InputError(f"these answers were not counted for the first runs of at least {k} in {length} steps")
        return self._series[k, length]
