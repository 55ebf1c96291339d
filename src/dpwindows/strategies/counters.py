"""`counters`: one filtered counter for every start, all calibrated jointly; any windows, item level, Gaussian noise."""

from __future__ import annotations

import numpy as np

from dpwindows.ask.privacy import ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.maps.integer_maps import Filter
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.counters import CountersDesign
from dpwindows.kernel.shapes.design import Design
from dpwindows.strategies.search.fractional import integer_taps, real_interval_norms, real_taps, search

NAME = "counters"


def design(problem: Problem) -> Design | None:
    """The filter of least error along the length of windows, or None where the strategy does not apply."""
    if problem.law != GAUSSIAN or not isinstance(problem.window, AnyWindow):
        return None
    if not isinstance(problem.unit, (ItemLevel, ItemAddRemove, ItemPerPeriod)):
        return None
    formal = not isinstance(problem.unit, ItemAddRemove)
    longest = longest_window(problem.window, problem.steps)
    # How many starts have a counter of each length 1..longest.
    having = np.ones(longest)
    having[-1] += problem.steps - longest
    existing = np.cumsum(having[::-1])[::-1]
    if isinstance(problem.unit, ItemPerPeriod):
        # How many of the starts that a span can change have a counter with so many ends left.
        having = np.minimum(having, 1)
        having[-1] = min(problem.unit.steps, problem.steps - longest + 1)

    def error(alpha: float, decay: float) -> float:
        taps, inverse = real_taps(alpha, decay, longest), real_taps(-alpha, decay, longest)
        norms = real_interval_norms(taps, longest)[1:] if formal else np.cumsum(np.cumsum(taps) ** 2)
        variance = np.cumsum(inverse**2)
        worst = variance[-1] if problem.criterion == "max" else float(variance @ existing / existing.sum())
        return float(np.sqrt((norms @ having) * worst))

    alpha, decay = search(error, longest)
    taps = integer_taps(alpha, decay, longest, problem.bits)
    return CountersDesign(
        problem,
        NAME,
        {"alpha": alpha, "decay": decay, "taps": len(taps), "bits": problem.bits},
        map=Filter(longest, taps),
        causal=True,
    )
