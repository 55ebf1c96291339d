"""`direct`: every answer measured as it is; the best choice for short horizons and short windows."""

from __future__ import annotations

from dpwindows import sensitivity
from dpwindows.accounting import GAUSSIAN
from dpwindows.integer_maps import Identity
from dpwindows.privacy import EventLevel
from dpwindows.queries import AnyWindow
from dpwindows.strategies.design import CountersDesign, Design, Problem, SeriesDesign
from dpwindows.windows import count_windows, longest_window

NAME = "direct"


def design(problem: Problem) -> Design:
    """Always applies."""
    longest = longest_window(problem.window, problem.steps)
    event = isinstance(problem.unit, EventLevel)
    touched = _windows_holding_a_step(problem.steps, longest) if isinstance(problem.window, AnyWindow) else longest
    cells = sensitivity.direct_cells(
        touched, count_windows(problem.window, problem.steps), problem.thresholds, event=event
    )
    # Gaussian noise is charged for the coarseness of its lattice, so counts are measured in fine units of it.
    unit = 2**problem.bits if problem.law == GAUSSIAN else 1
    bound = cells * unit**2
    proof = "dpwindows.sensitivity.direct_cells"
    if isinstance(problem.window, AnyWindow):
        return CountersDesign(problem, NAME, bound, proof, map=Identity(longest, unit), causal=True)
    return SeriesDesign(problem, NAME, bound, proof, map=Identity(problem.steps, unit))


def _windows_holding_a_step(steps: int, longest: int) -> int:
    """The most windows of at most `longest` steps that hold one step: those of the step in the middle."""
    middle = (steps + 1) // 2
    starts = range(max(1, middle - longest + 1), middle + 1)
    return sum(min(steps, start + longest - 1) - middle + 1 for start in starts)
