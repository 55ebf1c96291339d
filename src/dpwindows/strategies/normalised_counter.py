"""`normalised square root`: prefix counter of items added or removed, every increment made to cost the same.

The square root of the prefix-sum matrix, its columns scaled to one norm (arXiv 2509.14334): no increment is charged
more than another, so none of the budget is wasted. Gaussian noise, cumulative counts, known horizon.
"""

from __future__ import annotations

import numpy as np

from dpwindows.ask.privacy import ItemAddRemove
from dpwindows.ask.queries import Cumulative
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.bounds.sensitivity import cumulative_counter_add_remove_l2
from dpwindows.kernel.maps.integer_maps import WeightedCounter
from dpwindows.kernel.shapes import Design, Problem, SeriesDesign
from dpwindows.strategies.search.fractional import real_taps

NAME = "normalised-root"
# Its error is computed in O(steps^2); beyond this the plain filter is as good as needed.
_LONGEST = 8192


def design(problem: Problem) -> Design | None:
    """The counter, or None where it does not apply."""
    applies = isinstance(problem.window, Cumulative) and isinstance(problem.unit, ItemAddRemove)
    if problem.law != GAUSSIAN or not applies or problem.steps > _LONGEST:
        return None
    root = real_taps(-0.5, 1.0, problem.steps)
    norms = np.sqrt(np.cumsum(root**2))[::-1]
    # A third of the resolution goes to the weights, which lie between 1 and the largest norm.
    fine = problem.bits // 3
    taps = tuple(int(tap) for tap in np.rint(root * 2.0 ** (problem.bits - fine)))
    weights = tuple(int(weight) for weight in np.rint(norms[0] / norms * 2.0**fine))
    bound = cumulative_counter_add_remove_l2(taps, weights, problem.steps, problem.thresholds)
    return SeriesDesign(
        problem,
        NAME,
        bound,
        "dpwindows.kernel.bounds.sensitivity.cumulative_counter_add_remove_l2",
        {"bits": problem.bits},
        map=WeightedCounter(problem.steps, taps, weights),
    )
