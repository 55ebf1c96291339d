"""What a strategy answers: an integer measurement of one window family, all at once or one step at a time.

A design says which integers are measured of the exact answers. It states no bound: its certificate derives how far one
neighbour can move them, over all thresholds together, from the maps that it applies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpwindows.ask.privacy import EventLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, RollingTogether, WindowFamily
from dpwindows.ask.windows import Answers
from dpwindows.ask.zones import Int64Array
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.advice import Advise, Witness, from_witness
from dpwindows.kernel.certificate import Certificate, NotCertifiedError, require_own
from dpwindows.kernel.maps.integer_maps import IntArray, Memory
from dpwindows.kernel.occurrences import certificate_of_all, problem_of_one
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import Case, certify


@dataclass(frozen=True)
class StepAnswers:
    """Exact counts at the end of one step: all that a mechanism sees of the data.

    `recent[k][j]` is the number of items with at least k occurrences in the last j + 1 steps, for j = 0.. as far as
    the mechanism reaches; `total[k]` is the number with at least k occurrences since step 1.
    """

    step: int
    recent: Mapping[int, Int64Array]
    total: Mapping[int, int]


class Shape(ABC):
    """The integers that are measured of a window family, and how far one neighbour can move them."""

    def certify(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """What is proved of all steps up to the horizon (None: without end) together: the least bound of any rule.

        Args:
            problem: what is measured, for whom.
            horizon: the steps after which there are no more, None if there is no end.
            advise: who is asked for the free choices of a bound.

        Raises:
            NotCertifiedError: no proof covers it, or the shape is one for another problem.
            ValueError: an answer is none that is legal.
        """
        case = Case(problem, self.measured, horizon, advise)
        if not self.is_for(case):
            raise NotCertifiedError(problem, self)
        return Certificate(*certify(case), self.moved(case))

    @property
    def measured(self) -> Any:
        """What rules know the shape by: its map, if that is all there is to say, or the shape itself."""
        return self

    def is_for(self, case: Case) -> bool:
        """Whether the shape is one for the windows of a problem within a horizon."""
        return True

    def moved(self, case: Case) -> int:
        """The most numbers of one threshold that one neighbour can change; all, where nothing less is known."""
        return self.rows(case.problem.window, case.horizon)

    def measures(self, window: WindowFamily) -> WindowFamily:
        """The family whose windows are measured, of occurrences in those of another."""
        return window

    @abstractmethod
    def rows(self, window: WindowFamily, steps: int) -> int:
        """How many numbers are measured of each threshold in a release of `steps` steps."""

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        """The exact integers of threshold k, shape (rows,)."""
        raise NotImplementedError

    def at(self, k: int) -> Shape:
        """What measures one threshold: the shape itself, if all thresholds are measured alike."""
        return self


class StepShape(Shape):
    """A shape that is measured one step at a time, with a memory of exact integers."""

    @abstractmethod
    def reach(self, window: WindowFamily) -> int:
        """How many steps back recent counts are needed."""

    @abstractmethod
    def rows_at(self, window: WindowFamily, step: int) -> int:
        """How many numbers are measured of each threshold at a step."""

    def rows(self, window: WindowFamily, steps: int) -> int:
        """Those of all steps."""
        return sum(self.rows_at(window, step) for step in range(1, steps + 1))

    @abstractmethod
    def fresh(self) -> Memory:
        """The memory before step 1."""

    @abstractmethod
    def encode_step(
        self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory
    ) -> tuple[IntArray, Memory]:
        """The exact integers of threshold k measured at a step, shape (rows_at,), and the memory after it."""


@dataclass(frozen=True)
class Design:
    """An integer measurement of one problem, all of its steps at once.

    Attributes:
        problem: what is measured, for whom.
        shape: which integers are measured.
        strategy: the name users see and may ask for.
        parameters: what was chosen, as plain values for metadata.
        witness: answers to what the bound asks (`dpwindows.kernel.advice`).
    """

    problem: Problem
    shape: Shape
    strategy: str
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    witness: Witness = field(default_factory=dict, hash=False, kw_only=True)

    @cached_property
    def certificate(self) -> Certificate:
        """What is proved of the measurement, by its witness.

        Raises:
            NotCertifiedError: no proof covers it.
        """
        return self.certify(from_witness(self.witness))

    def certify(self, advise: Advise) -> Certificate:
        """What is proved of the measurement, with the answers of whoever is asked.

        Raises:
            NotCertifiedError: no proof covers it.
        """
        require_own(self.problem, self.shape, self._until)
        if not self.problem.counts_occurrences:
            return self.shape.certify(self.problem, self._until, advise)
        one, most = problem_of_one(replace(self.problem, window=self.shape.measures(self.problem.window)))
        power = 2 if self.problem.law == GAUSSIAN else 1
        numbers = None if self._until is None else self.shape.rows(self.problem.window, self._until)
        return certificate_of_all(self.shape.certify(one, self._until, advise), most, power, numbers)

    @property
    def _until(self) -> int | None:
        """The steps that the certificate is for; None: there is no end of them."""
        return self.problem.steps

    @property
    def rows(self) -> int:
        """Numbers measured for each threshold."""
        return self.shape.rows(self.problem.window, self.problem.steps)

    def encode(self, answers: Answers, k: int) -> IntArray:
        """The exact integers of threshold k, shape (rows,)."""
        return self.shape.encode(self.problem.window, answers, k)

    def at(self, k: int) -> Design:
        """What measures one threshold: the design itself, if all are measured alike.

        The certificate of another one is not what is charged: that is the certificate of all thresholds together.
        """
        return self if self.alike else self._at[k]

    @cached_property
    def _at(self) -> dict[int, Design]:
        return {
            k: replace(self, problem=replace(self.problem, thresholds=(k,)), shape=self.shape.at(k))
            for k in self.problem.thresholds
        }

    @property
    def alike(self) -> bool:
        """Whether all thresholds are measured alike."""
        return self.shape.at(self.problem.thresholds[0]) is self.shape

    @property
    def sensitivity(self) -> int:
        """The certified bound: L1 (Laplace) or squared L2 (Gaussian), over all thresholds, in lattice units."""
        return self.certificate.bound

    @property
    def proof(self) -> str:
        """The name of the bound's proof."""
        return self.certificate.proof

    @property
    def moved(self) -> int:
        """The most numbers, measured for one threshold, that one neighbour can change."""
        return self.certificate.moved


@dataclass(frozen=True)
class StepDesign(Design):
    """A measurement of one window family that is made one step at a time.

    Run over all steps of a horizon it measures all that a stream does, which is what plans forecast.

    Attributes:
        horizon: the steps after which the stream ends, which the certificate is for; None: it has no end. The `steps`
            of the problem are those that a forecast is for.
    """

    shape: StepShape
    horizon: int | None = field(kw_only=True)

    @property
    def _until(self) -> int | None:
        return self.horizon

    def forecast_over(self, steps: int) -> StepDesign:
        """This design with its forecast over `steps` steps."""
        return replace(self, problem=replace(self.problem, steps=steps))

    @property
    def rows(self) -> int:
        """Numbers measured of each threshold over all steps."""
        return sum(self.rows_at(step) for step in range(1, self.problem.steps + 1))

    @property
    def reach(self) -> int:
        """How many steps back recent counts are needed."""
        return self.shape.reach(self.problem.window)

    def rows_at(self, step: int) -> int:
        """How many numbers are measured of each threshold at a step."""
        return self.shape.rows_at(self.problem.window, step)

    def encode_step(self, answers: StepAnswers, k: int, memory: Memory) -> tuple[IntArray, Memory]:
        """The exact integers of threshold k measured at a step, shape (rows_at,), and the memory after it."""
        return self.shape.encode_step(self.problem.window, answers, k, memory)

    def encode(self, answers: Answers, k: int) -> IntArray:
        """Step by step."""
        memory, encoded = self.shape.fresh(), []
        for step in range(1, self.problem.steps + 1):
            measured, memory = self.encode_step(self._answers_at(answers, step, k), k, memory)
            encoded.append(measured)
        return np.concatenate(encoded)

    def _answers_at(self, answers: Answers, step: int, k: int) -> StepAnswers:
        window = self.problem.window
        if self.problem.rule.max_runs is None or not isinstance(window, Cumulative | Rolling):
            return step_answers(answers, step, k, self.reach)
        # Bounded runs are those of one length: it is counted by itself, and nothing else is read.
        if isinstance(window, Cumulative):
            return StepAnswers(step, {}, {k: int(answers.cumulative(k)[step - 1])})
        count = answers.rolling(k, window.length)[step - 1]
        return StepAnswers(step, {k: np.full(min(window.length, step), count)}, {})


def horizon_of(window: WindowFamily, unit: Unit, horizon: int | None) -> int | None:
    """The horizon that a family's measurement is bounded by in a stream; None where it is the same without one.

    A stream that ends is one without end whose later steps are never seen. A neighbour changes a bounded number of
    short windows, so families of these are measured alike with and without a horizon.
    """
    match window:
        case Rolling(length=length) | AnyWindow(max_length=int(length)):
            shorter = horizon is None or length < horizon
            return None if shorter and isinstance(unit, (EventLevel, ItemPerPeriod)) else horizon
        case RollingTogether(lengths=lengths):
            return horizon_of(Rolling(max(lengths)), unit, horizon)
    return horizon


def step_answers(answers: Answers, step: int, k: int, reach: int) -> StepAnswers:
    """One step of the exact answers of a whole log."""
    first = max(1, step - reach + 1)
    recent = answers.windows(k, first, step - first + 1, step, 1)[::-1, 0] if reach else np.zeros(0, dtype=np.int64)
    return StepAnswers(step, {k: recent}, {k: int(answers.windows(k, 1, 1, step, 1)[0, 0])})
