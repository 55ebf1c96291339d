"""Steps grouped before they are measured: a design on groups of steps answers every window of the original steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.privacy import ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, Rolling
from dpwindows.ask.windows import Answers, count_windows, longest_window, window_steps
from dpwindows.kernel.certify import Certificate, NotCertifiedError
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.design import Design


def grouped_unit(unit: Unit, size: int) -> Unit:
    """What the unit is in groups of `size` steps: L steps that begin anywhere meet at most `ceil((L-1)/size) + 1`."""
    return ItemPerPeriod(-(-(unit.steps - 1) // size) + 1) if isinstance(unit, ItemPerPeriod) else unit


@dataclass(frozen=True)
class CompressedDesign(Design):
    """An inner design on groups of `size` steps, answering every window of the original steps."""

    problem: Problem
    size: int
    inner: Design

    @property
    def strategy(self) -> str:  # type: ignore[override]
        """`compressed` and the inner strategy."""
        return f"compressed({self.inner.strategy})"

    @property
    def parameters(self) -> Mapping[str, Any]:  # type: ignore[override]
        """Those of the inner design, and the group size."""
        return {"steps_per_group": self.size, **self.inner.parameters}

    @cached_property
    def certificate(self) -> Certificate:
        """That of the inner design: grouping steps keeps neighbours neighbours.

        Raises:
            NotCertifiedError: the inner design is not for the groups of these steps.
        """
        mine, inner = self.problem, self.inner.problem
        groups = -(-mine.steps // self.size)
        # The inner bound may rest on which occurrences count: they must be those that the answers were counted from.
        asked = (mine.thresholds, mine.law, groups, mine.rule)
        same = (inner.thresholds, inner.law, inner.steps, inner.rule) == asked
        # Whatever else a unit lets a neighbour change, an item changed arbitrarily may change as well.
        if not same or inner.unit not in (grouped_unit(mine.unit, self.size), ItemLevel()):
            raise NotCertifiedError(mine, self.inner)
        found = self.inner.certificate
        return Certificate(found.bound, found.proof, found.moved, found.squared)

    @property
    def rows(self) -> int:
        return self.inner.rows

    def encode(self, answers: Answers, k: int) -> IntArray:
        return self.inner.encode(GroupedAnswers(answers, self.size), k)

    def decode(self, measured: FloatArray) -> FloatArray:
        """The inner estimates, each read for all the windows it is nearest to."""
        return self.inner.decode(measured)[self.nearest]

    def variance(self) -> FloatArray:
        return self._variance

    @cached_property
    def _variance(self) -> FloatArray:
        return self.inner.variance()[self.nearest]

    def fourth_moment(self) -> FloatArray | None:
        moment = self.inner.fourth_moment()
        return None if moment is None else moment[self.nearest]

    def bias_bound(self) -> FloatArray:
        """How many steps the two ends of each window were moved, together."""
        return self._nearest[1]

    @property
    def nearest(self) -> NDArray[np.int64]:
        """For each window, the position of the inner estimate that answers it."""
        return self._nearest[0]

    @cached_property
    def _nearest(self) -> tuple[NDArray[np.int64], FloatArray]:
        """For each window, the position of the grouped window that answers it, and the steps moved."""
        first, last = window_steps(self.problem.window, self.problem.steps)
        start, end = self._boundary(first - 1), self._boundary(last)
        end = np.maximum(end, start + 1)
        over = end > self.inner.problem.steps
        start, end = np.where(over, start - 1, start), np.where(over, end - 1, end)
        if isinstance(self.problem.window, Rolling):
            start = np.maximum(0, end - self.problem.window.length // self.size)
        moved = np.abs(self._steps_before(start) - (first - 1)) + np.abs(self._steps_before(end) - last)
        return self._position(start, end), moved.astype(np.float64)

    def _boundary(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The group boundary nearest to the end of a step, as the number of groups before it."""
        low = steps // self.size
        high = np.minimum(low + 1, self.inner.problem.steps)
        closer_high = self._steps_before(high) - steps < steps - self._steps_before(low)
        return np.where(closer_high, high, low)

    def _steps_before(self, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.minimum(groups * self.size, self.problem.steps)

    def _position(self, start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the inner design lists the window of groups start+1..end."""
        inner = self.inner.problem
        if not isinstance(inner.window, AnyWindow):
            return end - 1
        longest = longest_window(inner.window, inner.steps)
        full = np.maximum(0, start - (inner.steps - longest))
        listed = start * longest - full * (full - 1) // 2
        position = listed + (end - start - 1)
        assert int(position.max()) < count_windows(inner.window, inner.steps)
        return np.asarray(position)


@dataclass(frozen=True)
class GroupedAnswers:
    """Exact answers of the stream whose steps are groups of `size` steps of another (the last one may be short)."""

    answers: Answers
    size: int

    @property
    def steps(self) -> int:
        """How many groups of steps there are."""
        return -(-self.answers.steps // self.size)

    def _last_steps(self, first_group: int, groups: int) -> NDArray[np.int64]:
        return np.minimum(np.arange(first_group, first_group + groups) * self.size, self.answers.steps)

    def cumulative(self, k: int) -> NDArray[Any]:
        """Cumulative counts at the ends of groups."""
        return self.answers.cumulative(k)[self._last_steps(1, self.steps) - 1]

    def rolling(self, k: int, length: int) -> NDArray[Any]:
        """Counts of the last `length` groups at the ends of groups."""
        lasts = self._last_steps(1, self.steps)
        counts = self.answers.rolling(k, length * self.size)[lasts - 1]
        first = max(1, (self.steps - length) * self.size + 1)
        counts[-1] = self.answers.windows(k, first, 1, self.answers.steps, 1)[0, 0]
        return counts

    def windows(self, k: int, first_start: int, starts: int, first_end: int, ends: int) -> NDArray[Any]:
        """Counts of whole groups a..b."""
        first = (first_start - 1) * self.size + 1
        lasts = self._last_steps(first_end, ends)
        span = (starts - 1) * self.size + 1
        square = self.answers.windows(k, first, span, int(lasts[0]), int(lasts[-1] - lasts[0]) + 1)
        return square[:: self.size][:, lasts - lasts[0]]
