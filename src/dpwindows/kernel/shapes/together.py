"""Rolling counts of several lengths as one measurement: at every step one filter on all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpwindows.ask.queries import WindowFamily
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.certify import Certificate
from dpwindows.kernel.certify_together import certify_together
from dpwindows.kernel.designs import StepAnswers, StepShape
from dpwindows.kernel.maps.integer_maps import IntArray, Memory
from dpwindows.kernel.maps.matrix_filters import MatrixFilter
from dpwindows.kernel.problem import Problem


@dataclass(frozen=True)
class Together(StepShape):
    """Rolling counts of `lengths`, one lane each, through a filter that mixes them."""

    lengths: tuple[int, ...]
    map: MatrixFilter

    def certify(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of the filter on all lengths."""
        return certify_together(problem, self.lengths, self.map, horizon)

    def reach(self, window: WindowFamily) -> int:
        """The longest window."""
        return max(self.lengths)

    def rows_at(self, window: WindowFamily, step: int) -> int:
        """One for each length."""
        return len(self.lengths)

    def fresh(self) -> Memory:
        """The filter's memory before step 1."""
        return self.map.fresh()

    def _newest(self, answers: StepAnswers, k: int) -> IntArray:
        recent = answers.recent[k]
        return np.array([recent[min(length, answers.step) - 1] for length in self.lengths], dtype=np.int64)

    def encode_step(self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory) -> IntArray:
        """The integers that the filter makes of the newest counts, shape (lengths,)."""
        return self.map.encode_step(self._newest(answers, k), memory)

    def remember(self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory) -> Memory:
        return self.map.remember(self._newest(answers, k), memory)
