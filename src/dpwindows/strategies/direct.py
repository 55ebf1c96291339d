"""`direct`: every answer measured as it is; the best choice for short horizons and short windows."""

from __future__ import annotations

from collections.abc import Iterator

from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.maps.filters import CausalIdentity, Identity
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import BlocksShape, StepDesign
from dpwindows.kernel.shapes.counters import CountersDesign
from dpwindows.kernel.shapes.design import Design
from dpwindows.kernel.shapes.series import SeriesDesign
from dpwindows.strategies.twins import twins

NAME = "direct"


def design(problem: Problem) -> Design | None:
    """Applies to every window and law."""
    unit = _unit(problem)
    if isinstance(problem.window, AnyWindow):
        longest = longest_window(problem.window, problem.steps)
        return CountersDesign(problem, NAME, map=Identity(longest, unit), causal=True)
    return SeriesDesign(problem, NAME, map=Identity(problem.steps, unit))


def lost_items(problem: Problem) -> Design:
    """The number of items that lost something by the rule of counting, for which there is no other strategy."""
    return SeriesDesign(problem, NAME, map=Identity(1, _unit(problem)))


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """The same in a stream, of any windows those that end at a step."""
    if not isinstance(problem.window, AnyWindow):
        yield from twins(design, problem, horizon)
        return
    longest = longest_window(problem.window, problem.steps)
    shape = BlocksShape(longest, 1, longest, Identity(1), CausalIdentity(_unit(problem)))
    yield StepDesign(problem, shape, NAME, horizon, {})


def _unit(problem: Problem) -> int:
    """What one count is measured as: Gaussian noise is charged for the coarseness of its lattice, so fine units."""
    return 2**problem.bits if problem.law == GAUSSIAN else 1
