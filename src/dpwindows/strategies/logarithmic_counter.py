"""`logarithmic-counter`: cumulative counts of a stream without end, under Gaussian noise.

Its error grows with the logarithm of time, whatever the time (`dpwindows.kernel.maps.endless_counter`). A release has
an end, and better strategies.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpwindows.ask.queries import Cumulative
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.maps.counters import CausalCounter
from dpwindows.kernel.maps.endless_counter import LogarithmicRows
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import SeriesShape, StepDesign

NAME = "logarithmic-counter"


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """The counter, for cumulative counts without a horizon."""
    if problem.law == GAUSSIAN and isinstance(problem.window, Cumulative) and horizon is None:
        shape = SeriesShape(problem.window, CausalCounter(LogarithmicRows(problem.bits)))
        yield StepDesign(problem, shape, NAME, horizon, {"bits": problem.bits})
