"""`joint-filter`: rolling counts of several lengths through one filter that mixes them, Gaussian noise.

It serves k = 1 at event level, and for items within one step. One occurrence changes a day's, a week's and a month's
count by one history, so the three cost less together than apart. The filter is the best stationary one for
them (`dpwindows.strategies.search.together`), rounded to integers and charged for these. It is causal, so batch and
continual release share it. A plan weighs it against measuring each length by itself, and it serves no family alone.
"""

from __future__ import annotations

import numpy as np

from dpwindows.ask.queries import RollingTogether
from dpwindows.kernel.designs import StepDesign
from dpwindows.kernel.families.together import MatrixFilter, Together
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search.portable import to_lattice
from dpwindows.strategies.search.together import together_taps

NAME = "joint-filter"
# Bits after the point that are kept of taps, which are made by a library's eigenvectors.
_KEPT = 16


def design(problem: Problem, horizon: int | None) -> StepDesign:
    """The filter for a problem of several rolling windows.

    Args:
        problem: what is measured; its `shares` say what part of the budget each length has.
        horizon: the steps after which there are no more; None: there is no end.
    """
    assert isinstance(problem.window, RollingTogether)
    lengths = problem.window.lengths
    # Shares that are the same but for rounding lead to the same filter.
    shares = tuple(float(f"{share / sum(problem.shares):.9g}") for share in problem.shares)
    scaled = to_lattice(together_taps(lengths, shares), problem.bits, _KEPT)
    used = np.flatnonzero(scaled.any(axis=(1, 2)))[-1] + 1
    taps = tuple(scaled[:used].ravel().tolist())
    shape = Together(lengths, MatrixFilter(len(lengths), taps))
    return StepDesign(problem, shape, NAME, {"taps": int(used), "bits": problem.bits}, horizon=horizon)
