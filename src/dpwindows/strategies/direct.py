"""`direct`: every answer is measured as it is; the best choice for short horizons and short windows."""

from __future__ import annotations

from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design, StepShape
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.problem import Problem

NAME = "direct"


def design(problem: Problem) -> Design:
    """Every answer measured as it is, for every window and law."""
    measured = Identity(_unit(problem))
    shape: StepShape = Series(measured)
    if isinstance(problem.window, AnyWindow):
        shape = Starts(longest_window(problem.window, problem.steps), measured)
    return Design(problem, shape, NAME)


def lost_items(problem: Problem) -> Design:
    """The number of items that lost something by the rule of counting, for which there is no other strategy."""
    return Design(problem, Series(Identity(_unit(problem))), NAME)


def _unit(problem: Problem) -> int:
    """Lattice units of one count: many under Gaussian noise, which is charged for the coarseness of its lattice."""
    return 2**problem.bits if problem.law == GAUSSIAN else 1
