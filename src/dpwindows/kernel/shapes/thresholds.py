"""Rolling counts for several thresholds, each through a map of its own, bounded together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NoReturn

from dpwindows.ask.queries import Rolling
from dpwindows.ask.windows import Answers
from dpwindows.kernel.advice import Advise, Witness
from dpwindows.kernel.certify import Certificate, NotCertifiedError
from dpwindows.kernel.certify_thresholds import by_threshold
from dpwindows.kernel.maps.integer_maps import CausalMap, FloatArray, IntArray, IntegerMap, Memory
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import SeriesShape, Shape, StepAnswers, StepDesign
from dpwindows.kernel.shapes.design import AdvisedDesign, NamedDesign
from dpwindows.kernel.shapes.series import SeriesDesign, series


def _ask_at() -> NoReturn:
    raise ValueError("every threshold has a map of its own here: ask the design `at` one")


@dataclass(frozen=True)
class ThresholdsDesign(AdvisedDesign, NamedDesign):
    """A series for each of the problem's thresholds, measured through its own integer map; all have as many rows."""

    maps: tuple[IntegerMap, ...] = field(kw_only=True)
    witness: Witness = field(default_factory=dict, kw_only=True)

    def certified(self, advise: Advise) -> Certificate:
        """The certificate of all maps together."""
        return by_threshold(self.problem, self.maps, self.problem.steps, advise)

    @property
    def rows(self) -> int:
        return self.maps[0].rows

    def at(self, k: int) -> SeriesDesign:
        """The design that measures and reads back one threshold; its own certificate is not what is charged."""
        return self._at[k]

    @cached_property
    def _at(self) -> dict[int, SeriesDesign]:
        return {
            k: SeriesDesign(replace(self.problem, thresholds=(k,)), self.strategy, self.parameters, map=own)
            for k, own in zip(self.problem.thresholds, self.maps, strict=True)
        }

    def encode(self, answers: Answers, k: int) -> IntArray:
        own = self.maps[self.problem.thresholds.index(k)]
        return own.encode(series(self.problem.window, answers, k))

    def decode(self, measured: FloatArray) -> FloatArray:
        _ask_at()

    def variance(self) -> FloatArray:
        _ask_at()

    def fourth_moment(self) -> FloatArray | None:
        _ask_at()


@dataclass(frozen=True)
class ThresholdsShape:
    """Rolling counts of a step, each threshold through its own causal map; their memories are of one form."""

    window: Rolling
    thresholds: tuple[int, ...]
    maps: tuple[CausalMap, ...]

    @property
    def reach(self) -> int:
        """The length of the window."""
        return self.window.length

    def at(self, k: int) -> SeriesShape:
        """The shape of one threshold."""
        return SeriesShape(self.window, self.maps[self.thresholds.index(k)])

    def rows_at(self, step: int) -> int:
        return self.maps[0].rows_at(step)

    def fresh(self) -> Memory:
        """The memory of any of the maps before step 1."""
        return self.maps[0].fresh(1)

    def encode(self, answers: StepAnswers, k: int, memory: Memory) -> IntArray:
        return self.at(k).encode(answers, k, memory)

    def decode(self, answers: StepAnswers, k: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The estimate of the one window that ends at the step, shape (1,), and the memory after it."""
        return self.at(k).decode(answers, k, measured, memory)

    def moment(self, step: int, power: int) -> FloatArray:
        _ask_at()

    def moments(self, steps: int, power: int) -> FloatArray:
        _ask_at()

    def certificate(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of all maps together.

        Raises:
            NotCertifiedError: no proof covers them, or the shape is one for other windows or thresholds.
        """
        if (problem.window, problem.thresholds) != (self.window, self.thresholds):
            raise NotCertifiedError(problem, *self.maps)
        return by_threshold(problem, self.maps, horizon, advise)


def step_design(problem: Problem, shape: Shape, strategy: str, horizon: int | None, witness: Witness) -> StepDesign:
    """The design of a shape, by its kind."""
    kind = StepThresholds if isinstance(shape, ThresholdsShape) else StepDesign
    return kind(problem, shape, strategy, horizon, witness=witness)


@dataclass(frozen=True)
class StepThresholds(StepDesign):
    """A `StepDesign` whose shape has a map for each threshold."""

    def at(self, k: int) -> StepDesign:
        """The design that measures and reads back one threshold; its own certificate is not what is charged."""
        return self._at[k]

    @cached_property
    def _at(self) -> dict[int, StepDesign]:
        return {
            k: StepDesign(
                replace(self.problem, thresholds=(k,)),
                self.shape.at(k) if isinstance(self.shape, ThresholdsShape) else self.shape,
                self.strategy,
                self.horizon,
                self.parameters,
            )
            for k in self.problem.thresholds
        }
