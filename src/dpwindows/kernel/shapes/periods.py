"""Tumbling counts and counts to date in a stream: one causal map, from window to window or anew in each period."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpwindows.ask.periods import ends_with, place_of
from dpwindows.ask.queries import PeriodFamily, ToDate, WindowFamily
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.certify import Certificate, NotCertifiedError
from dpwindows.kernel.certify_periods import certify_in_periods_of_stream
from dpwindows.kernel.designs import StepAnswers, StepShape
from dpwindows.kernel.maps.integer_maps import CausalMap, IntArray, Memory
from dpwindows.kernel.problem import Problem


@dataclass(frozen=True)
class SeriesInPeriods(StepShape):
    """One lane. Tumbling: a number at the last step of each period; to date: one at every step.

    Attributes:
        map: for tumbling counts its positions are the periods, for counts to date the steps of a period.
        fewest: every period but the first and the last has this many steps or more, which the certificate rests on.
        most: no period has more steps.
        last: the step after which the stream ends, None if it has no end: it cuts the last window.
    """

    map: CausalMap
    fewest: int
    most: int
    last: int | None

    def certify(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of the map for all periods.

        Raises:
            NotCertifiedError: no proof covers it, or the shape is one for other periods.
        """
        if not isinstance(problem.window, PeriodFamily) or horizon != self.last:
            raise NotCertifiedError(problem, self.map)
        return certify_in_periods_of_stream(problem, self.map, horizon, self.fewest, self.most, advise)

    def _require_planned(self, window: PeriodFamily, step: int, memory: Memory) -> None:
        """Check that a step follows those before it in the calendar that the certificate counts on.

        The rules of time zones change: a month that began an hour earlier by newer ones would be measured twice.

        Raises:
            ValueError: a period has more or fewer steps, or other ones, than were planned.
        """
        period, place = place_of(window, step)
        before = int(memory["place"][0])
        # The first period may be cut. The last one is not followed by another.
        short = place == 1 and period > 2 and before < self.fewest
        if short or place > self.most or place not in (1, before + 1):
            raise ValueError(
                f"step {step} is number {place} of a period of {window}, after number {before}, and periods have "
                f"{self.fewest} to {self.most} steps: the rules of the time zone are not those it was planned with"
            )

    def position(self, window: WindowFamily, step: int) -> int | None:
        """The position of the map that a step is, None if nothing is measured at it."""
        window = _in_periods(window)
        period, place = place_of(window, step)
        if isinstance(window, ToDate):
            return place
        return period if step == self.last or ends_with(window, step) else None

    def reach(self, window: WindowFamily) -> int:
        """No period is longer."""
        return self.most

    def rows_at(self, window: WindowFamily, step: int) -> int:
        position = self.position(window, step)
        return 0 if position is None else self.map.rows_at(position)

    def fresh(self) -> Memory:
        """The map's memory before its first position, of one lane, and the place of a step in its period."""
        return self.map.fresh(1) | {"place": np.zeros(1, dtype=np.int64)}

    def _own(self, position: int, memory: Memory) -> Memory:
        """The memory of the map; at the first step of a period one of nothing."""
        return self.map.fresh(1) if position == 1 else memory

    def encode_step(self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory) -> IntArray:
        self._require_planned(_in_periods(window), answers.step, memory)
        position = self.position(window, answers.step)
        if position is None:
            return np.zeros(0, dtype=np.int64)
        return self.map.encode_step(position, _newest(window, answers, k), self._own(position, memory)).ravel()

    def remember(self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory) -> Memory:
        position = self.position(window, answers.step)
        place = {"place": np.array(place_of(_in_periods(window), answers.step)[1:], dtype=np.int64)}
        if position is None:
            return memory | place
        return self.map.remember(position, _newest(window, answers, k), self._own(position, memory)) | place


def _in_periods(window: WindowFamily) -> PeriodFamily:
    if not isinstance(window, PeriodFamily):
        raise ValueError(f"{window} has no periods")
    return window


def _newest(window: WindowFamily, answers: StepAnswers, k: int) -> IntArray:
    """The count of the period so far, shape (1,)."""
    _, place = place_of(_in_periods(window), answers.step)
    return np.asarray(answers.recent[k][place - 1])[None].astype(np.int64)
