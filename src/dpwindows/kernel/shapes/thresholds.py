"""Rolling counts for several thresholds, each through a map of its own, bounded together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dpwindows.ask.queries import WindowFamily
from dpwindows.ask.windows import Answers
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.certify import Certificate, NotCertifiedError
from dpwindows.kernel.certify_thresholds import by_threshold
from dpwindows.kernel.designs import StepAnswers, StepShape
from dpwindows.kernel.maps.integer_maps import IntArray, IntegerMap, Memory
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.series import Series


@dataclass(frozen=True)
class SeriesByThreshold(StepShape):
    """A series for each threshold, through its own map; all maps have as many rows and memories of one form."""

    thresholds: tuple[int, ...]
    maps: tuple[IntegerMap, ...]

    def certify(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of all maps together.

        Raises:
            NotCertifiedError: no proof covers them, or the shape is one for other thresholds.
        """
        if problem.thresholds != self.thresholds:
            raise NotCertifiedError(problem, *self.maps)
        return by_threshold(problem, self.maps, horizon, advise)

    def at(self, k: int) -> Series:
        return self._at[k]

    @cached_property
    def _at(self) -> dict[int, Series]:
        return {k: Series(own) for k, own in zip(self.thresholds, self.maps, strict=True)}

    @property
    def _first(self) -> Series:
        return self._at[self.thresholds[0]]

    def rows(self, window: WindowFamily, steps: int) -> int:
        return self._first.rows(window, steps)

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        return self.at(k).encode(window, answers, k)

    def reach(self, window: WindowFamily) -> int:
        return self._first.reach(window)

    def rows_at(self, window: WindowFamily, step: int) -> int:
        return self._first.rows_at(window, step)

    def fresh(self) -> Memory:
        """The memory of any of the maps before step 1."""
        return self._first.fresh()

    def encode_step(self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory) -> IntArray:
        return self.at(k).encode_step(window, answers, k, memory)

    def remember(self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory) -> Memory:
        return self.at(k).remember(window, answers, k, memory)
