"""Tumbling counts and counts to date in a stream: one causal map, from window to window or anew in each period."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from dpwindows.ask.periods import ends_with, place_of, sizes
from dpwindows.ask.queries import ToDate, Tumbling
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.certify import Certificate, NotCertifiedError
from dpwindows.kernel.certify_periods import in_periods_of_stream
from dpwindows.kernel.maps.integer_maps import CausalMap, FloatArray, IntArray, Memory, read_back
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import StepAnswers, moment_of


@dataclass(frozen=True)
class PeriodShape:
    """One lane. Tumbling: a number at the last step of each period; to date: one at every step.

    Attributes:
        window: the family, its periods in their place in the calendar.
        map: for tumbling counts its positions are the periods, for counts to date the steps of a period.
        fewest: every period but the first and the last has so many steps or more, which the certificate rests on.
        most: no period has more steps.
        last: the step after which the stream ends, None if it has no end: it cuts the last window.
    """

    window: Tumbling | ToDate
    map: CausalMap
    fewest: int
    most: int
    last: int | None

    @property
    def reach(self) -> int:
        """No period is longer."""
        return self.most

    def _require_planned(self, step: int, memory: Memory) -> None:
        """Check that a step follows those before it in the calendar that the certificate counts on.

        The rules of time zones change: a month that began an hour earlier by newer ones would be measured twice.

        Raises:
            ValueError: a period has more or fewer steps, or other ones, than were planned.
        """
        period, place = place_of(self.window, step)
        before = int(memory["place"][0])
        # The first period may be cut. The last one is not followed by another.
        short = place == 1 and period > 2 and before < self.fewest
        if short or place > self.most or place not in (1, before + 1):
            raise ValueError(
                f"step {step} is number {place} of a period of {self.window}, after number {before}, and periods have "
                f"{self.fewest} to {self.most} steps: the rules of the time zone are not those it was planned with"
            )

    def _at(self, step: int) -> int | None:
        """The position of the map that a step is, None if nothing is measured at it."""
        period, place = place_of(self.window, step)
        if isinstance(self.window, ToDate):
            return place
        return period if step == self.last or ends_with(self.window, step) else None

    def _own(self, position: int, memory: Memory) -> Memory:
        """The memory of the map; at the first step of a period one of nothing."""
        return self.map.fresh(1) if position == 1 else memory

    def _exact(self, answers: StepAnswers, k: int) -> IntArray:
        _, place = place_of(self.window, answers.step)
        return np.asarray(answers.recent[k][place - 1])[None].astype(np.int64)

    def rows_at(self, step: int) -> int:
        position = self._at(step)
        return 0 if position is None else self.map.rows_at(position)

    def fresh(self) -> Memory:
        """The map's memory before its first position, of one lane, and the place of a step in its period."""
        return self.map.fresh(1) | {"place": np.zeros(1, dtype=np.int64)}

    def encode(self, answers: StepAnswers, k: int, memory: Memory) -> IntArray:
        self._require_planned(answers.step, memory)
        position = self._at(answers.step)
        if position is None:
            return np.zeros(0, dtype=np.int64)
        return self.map.encode(position, self._exact(answers, k), self._own(position, memory)).ravel()

    def decode(self, answers: StepAnswers, k: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The estimate of the window that ends at the step, none where none does, and the memory after it."""
        position = self._at(answers.step)
        kept = {"place": np.array(place_of(self.window, answers.step)[1:], dtype=np.int64)}
        if position is None:
            return np.zeros(0), memory | kept
        own = self._own(position, memory)
        exact = self.map.remember(position, self._exact(answers, k), own)
        estimate, after = read_back(partial(self.map.decode, position, measured[:, None]), own, exact)
        return estimate, after | kept

    def moment(self, step: int, power: int) -> FloatArray:
        """The moment of the estimate of the step, shape (1,), or (0,) where there is none."""
        position = self._at(step)
        return np.zeros(0) if position is None else moment_of(self.map, position, power)[-1:]

    def moments(self, steps: int, power: int) -> FloatArray:
        """The moments of all estimates of steps 1..steps, which a `StepDesign` asks for at once."""
        if isinstance(self.window, ToDate):
            known = moment_of(self.map, min(self.most, steps), power)
            return np.concatenate([known[:size] for size in sizes(self.window, steps)])
        windows, _ = place_of(self.window, steps)
        ended = windows - (self._at(steps) is None)
        return moment_of(self.map, ended, power) if ended else np.zeros(0)

    def certificate(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of the map for all periods.

        Raises:
            NotCertifiedError: no proof covers it, or the shape is one for other periods.
        """
        if problem.window != self.window or horizon != self.last:
            raise NotCertifiedError(problem, self.map)
        return in_periods_of_stream(problem, self.map, horizon, self.fewest, self.most, advise)
