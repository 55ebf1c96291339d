"""Rolling counts of several lengths as one measurement: at every step one filter on all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from dpwindows.kernel.advice import Advise
from dpwindows.kernel.certify import Certificate
from dpwindows.kernel.certify_together import together
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, Memory, read_back
from dpwindows.kernel.maps.matrix_filters import MatrixFilter
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import StepAnswers


@dataclass(frozen=True)
class TogetherShape:
    """Rolling counts of `lengths`, one lane each, through a filter that mixes them; canonical order is by length."""

    lengths: tuple[int, ...]
    map: MatrixFilter

    @property
    def reach(self) -> int:
        """The longest window."""
        return max(self.lengths)

    def rows_at(self, step: int) -> int:
        """One for each length."""
        return len(self.lengths)

    def fresh(self) -> Memory:
        """The filter's memory before step 1."""
        return self.map.fresh()

    def _exact(self, answers: StepAnswers, k: int) -> IntArray:
        recent = answers.recent[k]
        return np.array([recent[min(length, answers.step) - 1] for length in self.lengths], dtype=np.int64)

    def encode(self, answers: StepAnswers, k: int, memory: Memory) -> IntArray:
        """The integers that the filter makes of the newest counts, shape (lengths,)."""
        return self.map.encode(self._exact(answers, k), memory)

    def decode(self, answers: StepAnswers, k: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """Estimates of the windows that end at the step, shape (lengths,), and the memory after it."""
        kept = self.map.remember(self._exact(answers, k), memory)
        return read_back(partial(self.map.decode, measured), memory, kept)

    def moment(self, step: int, power: int) -> FloatArray:
        """The moments of the estimates of the step, shape (lengths,)."""
        return np.asarray(self._moments(step, power)[-1])

    def moments(self, steps: int, power: int) -> FloatArray:
        """The moments of all estimates, one length after another."""
        return np.asarray(self._moments(steps, power).T.ravel())

    def _moments(self, steps: int, power: int) -> FloatArray:
        return self.map.variance(steps) if power == 2 else self.map.fourth_moment(steps)

    def certificate(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of the filter on all lengths."""
        return together(problem, self.lengths, self.map, horizon)
