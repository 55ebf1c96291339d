"""`direct`: every answer measured as it is; the best choice for short horizons and short windows."""

from __future__ import annotations

from dpwindows.ask.privacy import EventLevel, ItemPerPeriod
from dpwindows.ask.queries import AnyWindow, Cumulative
from dpwindows.ask.windows import count_windows, longest_window
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.bounds import period_sensitivity, sensitivity
from dpwindows.kernel.maps.integer_maps import Identity
from dpwindows.kernel.shapes import BOUNDED_UNITS, CountersDesign, Design, Problem, SeriesDesign

NAME = "direct"


def design(problem: Problem) -> Design | None:
    """Applies to every window and law; None for a unit without bounds."""
    if not isinstance(problem.unit, BOUNDED_UNITS):
        return None
    longest = longest_window(problem.window, problem.steps)
    event = isinstance(problem.unit, EventLevel)
    touched = _windows_holding_a_step(problem.steps, longest) if isinstance(problem.window, AnyWindow) else longest
    cells = sensitivity.direct_cells(touched, _changed(problem, longest), problem.thresholds, event=event)
    # Gaussian noise is charged for the coarseness of its lattice, so counts are measured in fine units of it.
    unit = 2**problem.bits if problem.law == GAUSSIAN else 1
    bound = cells * unit**2
    proof = "dpwindows.kernel.bounds.sensitivity.direct_cells"
    if isinstance(problem.window, AnyWindow):
        return CountersDesign(problem, NAME, bound, proof, map=Identity(longest, unit), causal=True)
    return SeriesDesign(problem, NAME, bound, proof, map=Identity(problem.steps, unit))


def _changed(problem: Problem, longest: int) -> int:
    """The most windows that one changed item can change; at event level this is not asked for."""
    every = count_windows(problem.window, problem.steps)
    if not isinstance(problem.unit, ItemPerPeriod) or isinstance(problem.window, Cumulative):
        return every
    if isinstance(problem.window, AnyWindow):
        return period_sensitivity.any_cells_period(longest, problem.unit.steps, problem.steps)
    return period_sensitivity.affected_ends(longest, problem.unit.steps, problem.steps)


def _windows_holding_a_step(steps: int, longest: int) -> int:
    """The most windows of at most `longest` steps that hold one step: those of the step in the middle."""
    middle = (steps + 1) // 2
    starts = range(max(1, middle - longest + 1), middle + 1)
    return sum(min(steps, start + longest - 1) - middle + 1 for start in starts)
