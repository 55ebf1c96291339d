"""`logarithmic-counter`: cumulative counts of a stream without end, under Gaussian noise.

Its error grows with the logarithm of the time that has passed (`dpwindows.kernel.maps.endless_counter`). Releases have
an end, and other strategies serve them better.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpwindows.ask.queries import Cumulative
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import StepDesign
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.endless_counter import EndlessCounter
from dpwindows.kernel.problem import Problem

NAME = "logarithmic-counter"


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """The counter, for cumulative counts without a horizon."""
    if problem.law == GAUSSIAN and isinstance(problem.window, Cumulative) and horizon is None:
        shape = Series(EndlessCounter(problem.bits))
        yield StepDesign(problem, shape, NAME, {"bits": problem.bits}, horizon=horizon)
