"""`direct` and `joint-noise`: every answer is measured as it is, with noise for each answer or for all at once.

`direct` is the best choice for short horizons and short windows.
"""

from __future__ import annotations

from dataclasses import replace

from dpwindows.ask.privacy import ApproxDP, ItemAddRemove, ItemLevel, PureDP
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import CUBE, GAUSSIAN, LAPLACE, RANGE, Law
from dpwindows.kernel.designs import Design, StepShape
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.problem import Problem

NAME, JOINTLY = "direct", "joint-noise"
# For one number joint noise is Laplace noise.
_SHORTEST = 2


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


def joint_design(problem: Problem) -> Design | None:
    """Every count with the noise of the smallest box that holds what an item can move, or None where none is known.

    It serves whole items under a pure budget. One item can move every count by one, so independent Laplace noise pays
    for each of n counts by itself. But an item moves the counts by a vector of ones and zeros, and noise that is
    equally likely for all vectors in a box costs 1 for all of them together (`dpwindows.kernel.joint_noise`): standard
    errors are about n / sqrt(3) in place of n sqrt(2), and n / sqrt(6) where items are added or removed and all counts
    move one way. This is the K-norm mechanism of Hardt and Talwar 2010, arXiv 0907.3754.

    Under an approximate budget it spends the epsilon alone, and still errs less than Gaussian noise for some fifty
    counts or fewer: months and weeks.
    """
    law, pure = _law(problem), problem.law == LAPLACE and isinstance(problem.budget, (PureDP, ApproxDP))
    if law is None or not pure or isinstance(problem.window, AnyWindow) or problem.steps < _SHORTEST:
        return None
    return Design(replace(problem, law=law), Series(Identity()), JOINTLY)


def _law(problem: Problem) -> Law | None:
    match problem.unit:
        case ItemLevel():
            return CUBE
        case ItemAddRemove():
            return RANGE
    return None
