"""`joint-noise`: every answer is measured as it is, with noise drawn for all answers at once.

It serves whole items under a pure budget. One item can move every count by one, so independent Laplace noise pays for
each of n counts by itself. But an item moves the counts by a vector of ones and zeros, and noise that is equally likely
for all vectors in a box costs 1 for all of them together (`dpwindows.kernel.joint_noise`): standard errors are about
n / sqrt(3) in place of n sqrt(2), and n / sqrt(6) where items are added or removed and all counts move one way. This
is the K-norm mechanism of Hardt and Talwar 2010, arXiv 0907.3754.

Under an approximate budget it spends the epsilon alone, and still errs less than Gaussian noise for some fifty counts
or fewer: months and weeks.
"""

from __future__ import annotations

from dataclasses import replace

from dpwindows.ask.privacy import ApproxDP, ItemAddRemove, ItemLevel, PureDP
from dpwindows.ask.queries import AnyWindow
from dpwindows.kernel.accounting import CUBE, LAPLACE, RANGE, Law
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.problem import Problem

NAME = "joint-noise"
# For one number it is Laplace noise.
_SHORTEST = 2


def design(problem: Problem) -> Design | None:
    """Every count with the noise of the smallest box that holds what an item can move, or None where none is known."""
    law, pure = _law(problem), problem.law == LAPLACE and isinstance(problem.budget, (PureDP, ApproxDP))
    if law is None or not pure or isinstance(problem.window, AnyWindow) or problem.steps < _SHORTEST:
        return None
    return Design(replace(problem, law=law), Series(Identity()), NAME)


def _law(problem: Problem) -> Law | None:
    match problem.unit:
        case ItemLevel():
            return CUBE
        case ItemAddRemove():
            return RANGE
    return None
