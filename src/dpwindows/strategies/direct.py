"""`direct`: every answer measured as it is; the best choice for short horizons and short windows."""

from __future__ import annotations

from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.maps.integer_maps import Identity
from dpwindows.kernel.problem import BOUNDED_UNITS, Problem
from dpwindows.kernel.shapes.counters import CountersDesign
from dpwindows.kernel.shapes.design import Design
from dpwindows.kernel.shapes.series import SeriesDesign

NAME = "direct"


def design(problem: Problem) -> Design | None:
    """Applies to every window and law; None for a unit without bounds."""
    if not isinstance(problem.unit, BOUNDED_UNITS):
        return None
    # Gaussian noise is charged for the coarseness of its lattice, so counts are measured in fine units of it.
    unit = 2**problem.bits if problem.law == GAUSSIAN else 1
    if isinstance(problem.window, AnyWindow):
        longest = longest_window(problem.window, problem.steps)
        return CountersDesign(problem, NAME, map=Identity(longest, unit), causal=True)
    return SeriesDesign(problem, NAME, map=Identity(problem.steps, unit))
