"""`compressed`: steps grouped before measuring, for streams with at most one event a step (`singleton`).

With g steps to a group the horizon, and with it the noise of item-level counts, shrinks; a window is answered by the
nearest window of whole groups. In a singleton stream one step holds at most one event, so moving an end of a window
by one step changes "at least k" and "exactly k" by at most 1: the bias of an answer is at most the number of steps
its two ends were moved by. Neighbouring logs stay neighbouring when steps are grouped (a span of L steps becomes one of
the groups that it meets, at most `ceil((L-1)/g) + 1`), so the guarantee is that of the inner strategy on the grouped
stream, which is not a singleton any more and is not taken for one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.privacy import ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.ask.windows import Answers, count_windows, longest_window, window_steps
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.kernel.shapes import Design, Problem

NAME = "compressed"


def designs(problem: Problem, candidates: Callable[[Problem], list[Design]]) -> list[Design]:
    """The best inner design for every group size worth trying."""
    found: list[Design] = []
    for size in _group_sizes(problem):
        inner = replace(problem, window=_grouped(problem.window, size), singleton=False)
        inner = replace(inner, steps=-(-problem.steps // size), unit=grouped_unit(problem.unit, size))
        if isinstance(inner.window, Rolling) and inner.window.length >= inner.steps:
            inner = replace(inner, window=Cumulative())
        found.append(CompressedDesign(problem, size, candidates(inner)[0]))
    return found


def grouped_unit(unit: Unit, size: int) -> Unit:
    """What the unit is in groups of `size` steps: L steps that begin anywhere meet at most `ceil((L-1)/size) + 1`."""
    return ItemPerPeriod(-(-(unit.steps - 1) // size) + 1) if isinstance(unit, ItemPerPeriod) else unit


def _group_sizes(problem: Problem) -> list[int]:
    longest = longest_window(problem.window, problem.steps)
    sizes = sorted({max(2, round(1.3**power)) for power in range(1, 24)})
    if isinstance(problem.window, Rolling):
        # The grouped stream must have a rolling window of the same length.
        return [size for size in range(2, longest + 1) if longest % size == 0]
    return [size for size in sizes if size <= longest]


def _grouped(window: WindowFamily, size: int) -> WindowFamily:
    match window:
        case Rolling(length=length):
            return Rolling(length // size)
        case AnyWindow(max_length=int(longest)):
            # Both ends may move outward to the nearest boundary: one group more than fits.
            return AnyWindow(-(-longest // size) + 1)
    return window


@dataclass(frozen=True)
class CompressedDesign:
    """An inner design on groups of `size` steps, answering every window of the original steps."""

    problem: Problem
    size: int
    inner: Design

    @property
    def strategy(self) -> str:
        """`compressed` and the inner strategy."""
        return f"{NAME}({self.inner.strategy})"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Those of the inner design, and the group size."""
        return {"steps_per_group": self.size, **self.inner.parameters}

    @property
    def sensitivity(self) -> int:
        """That of the inner design: grouping steps keeps neighbours neighbours."""
        return self.inner.sensitivity

    @property
    def proof(self) -> str:
        """That of the inner design."""
        return self.inner.proof

    @property
    def rows(self) -> int:
        """Those of the inner design."""
        return self.inner.rows

    def encode(self, answers: Answers, k: int) -> IntArray:
        """The inner design applied to the grouped stream's exact answers."""
        return self.inner.encode(GroupedAnswers(answers, self.size), k)

    def decode(self, measured: FloatArray) -> FloatArray:
        """The inner estimates, each read for all the windows it is nearest to."""
        return self.inner.decode(measured)[self.nearest]

    def variance(self) -> FloatArray:
        """That of the inner estimate used."""
        return self._variance

    @cached_property
    def _variance(self) -> FloatArray:
        return self.inner.variance()[self.nearest]

    def fourth_moment(self) -> FloatArray | None:
        """That of the inner estimate used."""
        moment = self.inner.fourth_moment()
        return None if moment is None else moment[self.nearest]

    def bias_bound(self) -> FloatArray:
        """Steps by which the two ends of each window were moved."""
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
        """Number of groups."""
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
