"""Counts of windows with one after the other in time: one series through one integer map."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.counting_rule import LOST
from dpwindows.ask.periods import first_steps, sizes
from dpwindows.ask.queries import Cumulative, LostItems, PeriodFamily, Rolling, ToDate, Tumbling, WindowFamily
from dpwindows.ask.windows import Answers
from dpwindows.kernel.accounting import JOINT
from dpwindows.kernel.advice import Advise, Witness
from dpwindows.kernel.certify import Certificate
from dpwindows.kernel.certify_joint import jointly
from dpwindows.kernel.certify_periods import in_periods
from dpwindows.kernel.certify_series import along_time
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, IntegerMap
from dpwindows.kernel.shapes.design import AdvisedDesign, NamedDesign


@dataclass(frozen=True)
class SeriesDesign(AdvisedDesign, NamedDesign):
    """Counts of any family but `any` as one series over time, measured through one integer map."""

    map: IntegerMap = field(kw_only=True)
    witness: Witness = field(default_factory=dict, kw_only=True)

    def certified(self, advise: Advise) -> Certificate:
        """The certificate of the map along time, for the periods of the windows, or under noise of all numbers."""
        if self.problem.law in JOINT:
            bound, proof = jointly(self.problem, self.map)
        elif isinstance(self.problem.window, PeriodFamily):
            bound, proof = in_periods(self.problem, self.map, advise)
        else:
            bound, proof = along_time(self.problem, self.map, self.problem.steps, advise)
        return Certificate(bound, proof, moved=self.rows)

    @property
    def rows(self) -> int:
        return self.map.rows

    def encode(self, answers: Answers, k: int) -> IntArray:
        return self.map.encode(series(self.problem.window, answers, k))

    def decode(self, measured: FloatArray) -> FloatArray:
        return self.map.decode(measured)

    def variance(self) -> FloatArray:
        return self._variance

    @cached_property
    def _variance(self) -> FloatArray:
        return self.map.variance()

    def fourth_moment(self) -> FloatArray | None:
        return self.map.fourth_moment()


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
