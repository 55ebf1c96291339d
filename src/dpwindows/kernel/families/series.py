"""Counts of windows with one after the other in time: one series through one integer map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.counting_rule import LOST
from dpwindows.ask.periods import first_steps, sizes
from dpwindows.ask.queries import Cumulative, LostItems, Rolling, ToDate, Tumbling, WindowFamily
from dpwindows.ask.windows import Answers, count_windows
from dpwindows.kernel.accounting import JOINT
from dpwindows.kernel.designs import Shape, StepAnswers, StepShape
from dpwindows.kernel.families.lines import count_moved
from dpwindows.kernel.maps.integer_maps import CausalMap, IntArray, IntegerMap, Memory
from dpwindows.kernel.rules import Case


@dataclass(frozen=True)
class Series(StepShape):
    """Cumulative and rolling counts as one series over time, and the number of items that lost something.

    The map of a stream is a causal one; only such a map has steps to encode.
    """

    map: IntegerMap

    @property
    def measured(self) -> IntegerMap:
        """Rules are declared for maps along time."""
        return self.map

    def moved(self, case: Case) -> int:
        """What is drawn for as a whole is charged for as a whole."""
        return super().moved(case) if case.problem.law in JOINT else count_moved(case)

    def rows(self, window: WindowFamily, steps: int) -> int:
        return self.map.rows(count_windows(window, steps))

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        return self.map.encode(series(window, answers, k))

    @property
    def causal(self) -> CausalMap:
        """The map of a stream."""
        return self.map  # type: ignore[return-value]

    def reach(self, window: WindowFamily) -> int:
        """The length of the window; none for totals."""
        return window.length if isinstance(window, Rolling) else 0

    def rows_at(self, window: WindowFamily, step: int) -> int:
        return self.causal.rows_at(step)

    def fresh(self) -> Memory:
        """The map's memory before step 1, of one lane."""
        return self.causal.fresh(1)

    def encode_step(
        self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory
    ) -> tuple[IntArray, Memory]:
        measured, after = self.causal.encode_step(answers.step, _newest(window, answers, k), memory)
        return measured.ravel(), after


@dataclass(frozen=True)
class FromTotals(Shape):
    """Occurrences of any family, as differences of cumulative counts, which are measured in place of its windows.

    That serves occurrences alone: an item that is counted in two windows is counted once in both together.
    """

    map: IntegerMap

    @property
    def measured(self) -> IntegerMap:
        """Rules are declared for maps along time."""
        return self.map

    def measures(self, window: WindowFamily) -> WindowFamily:
        """Cumulative counts, whatever they are for."""
        return Cumulative()

    def is_for(self, case: Case) -> bool:
        """What is certified are the windows measured."""
        return isinstance(case.problem.window, Cumulative)

    def moved(self, case: Case) -> int:
        """As for a series."""
        return Series(self.map).moved(case)

    def rows(self, window: WindowFamily, steps: int) -> int:
        return self.map.rows(steps)

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        return self.map.encode(answers.cumulative(k))


def _newest(window: WindowFamily, answers: StepAnswers, k: int) -> IntArray:
    """The count of the one window that ends at the step, shape (1,)."""
    if isinstance(window, Cumulative):
        return np.array([answers.total[k]], dtype=np.int64)
    if not isinstance(window, Rolling):
        raise ValueError(f"{window} is not counted at every step")
    return np.asarray(answers.recent[k][min(window.length, answers.step) - 1])[None].astype(np.int64)


def series(window: WindowFamily, answers: Answers, k: int) -> NDArray[Any]:
    """The exact series of a family, shape (windows,).

    Raises:
        ValueError: the family is no series over time.
    """
    match window:
        case Cumulative():
            return answers.cumulative(k)
        case Rolling(length=length):
            return answers.rolling(k, length)
        case LostItems():
            return answers.cumulative(LOST)[-1:]
        case Tumbling() | ToDate():
            begun = zip(first_steps(window, answers.steps), sizes(window, answers.steps), strict=True)
            to_date = (answers.windows(k, int(first), 1, int(first), int(size))[0] for first, size in begun)
            # The count of a period is its last count to date.
            return np.concatenate([counts[-1:] if isinstance(window, Tumbling) else counts for counts in to_date])
    raise ValueError(f"{window} is not a series over time")
