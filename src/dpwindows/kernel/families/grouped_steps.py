"""Steps grouped before they are measured: a design on groups of steps answers every window of the original steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.privacy import ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import WindowFamily
from dpwindows.ask.windows import Answers
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.certificate import Certificate, NotCertifiedError
from dpwindows.kernel.designs import Design, Shape
from dpwindows.kernel.maps.integer_maps import IntArray
from dpwindows.kernel.problem import Problem


def grouped_unit(unit: Unit, size: int) -> Unit:
    """The unit counted in groups of `size` steps: L steps that begin anywhere meet at most `ceil((L-1)/size) + 1`."""
    return ItemPerPeriod(-(-(unit.steps - 1) // size) + 1) if isinstance(unit, ItemPerPeriod) else unit


@dataclass(frozen=True)
class GroupedSteps(Shape):
    """A design on groups of `size` steps, which answers every window of the original steps."""

    size: int
    inner: Design

    def certify(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of the inner design: grouping steps keeps neighbours neighbours.

        Raises:
            NotCertifiedError: the inner design is not for the groups of these steps.
        """
        inner, groups = self.inner.problem, -(-problem.steps // self.size)
        # The inner bound may rest on which occurrences count: they must be those that the answers were counted from.
        asked = (problem.thresholds, problem.law, groups, problem.rule)
        same = (inner.thresholds, inner.law, inner.steps, inner.rule) == asked
        # Whatever else a unit lets a neighbour change, an item changed arbitrarily may change as well.
        if not same or inner.unit not in (grouped_unit(problem.unit, self.size), ItemLevel()):
            raise NotCertifiedError(problem, self.inner)
        return self.inner.certificate

    def rows(self, window: WindowFamily, steps: int) -> int:
        return self.inner.rows

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        return self.inner.encode(GroupedAnswers(answers, self.size), k)


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
