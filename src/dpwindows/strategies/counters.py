"""`counters`: one filtered counter for every start, all calibrated jointly; any windows, item level, Gaussian noise."""

from __future__ import annotations

import numpy as np

from dpwindows import sensitivity
from dpwindows.accounting import GAUSSIAN
from dpwindows.integer_maps import Filter
from dpwindows.privacy import ItemAddRemove, ItemLevel
from dpwindows.queries import AnyWindow
from dpwindows.strategies.design import CountersDesign, Design, Problem
from dpwindows.strategies.fractional import integer_taps, real_interval_norms, real_taps, search
from dpwindows.windows import longest_window

NAME = "counters"


def design(problem: Problem) -> Design | None:
    """The filter of least error along the length of windows, or None where the strategy does not apply."""
    if problem.law != GAUSSIAN or not isinstance(problem.window, AnyWindow):
        return None
    if not isinstance(problem.unit, (ItemLevel, ItemAddRemove)):
        return None
    formal = isinstance(problem.unit, ItemLevel)
    longest = longest_window(problem.window, problem.steps)
    # How many starts have a counter of each length 1..longest.
    having = np.ones(longest)
    having[-1] += problem.steps - longest
    existing = np.cumsum(having[::-1])[::-1]

    def error(alpha: float, decay: float) -> float:
        taps, inverse = real_taps(alpha, decay, longest), real_taps(-alpha, decay, longest)
        norms = real_interval_norms(taps, longest)[1:] if formal else np.cumsum(np.cumsum(taps) ** 2)
        variance = np.cumsum(inverse**2)
        worst = variance[-1] if problem.criterion == "max" else float(variance @ existing / existing.sum())
        return float(np.sqrt((norms @ having) * worst))

    alpha, decay = search(error, longest)
    taps = integer_taps(alpha, decay, longest, problem.bits)
    bound = sensitivity.any_counters_l2(taps, longest, problem.steps, problem.thresholds, formal=formal)
    return CountersDesign(
        problem,
        NAME,
        bound,
        "dpwindows.sensitivity.any_counters_l2",
        {"alpha": alpha, "decay": decay, "taps": len(taps), "bits": problem.bits},
        map=Filter(longest, taps),
        causal=True,
    )
