"""`counters`: one counter for every start, all calibrated jointly; any windows of items.

Each counter is a filter under Gaussian noise and, in streams, a tree under Laplace noise. In releases it errs least for
items that change within periods about as long as the windows, by 9 to 29 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemPerPeriod
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.maps.filters import Filter
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search.choice import apart_from_noise
from dpwindows.strategies.search.fractional import integer_taps, real_interval_norms, real_taps, search
from dpwindows.strategies.tree import best_of_trees, branchings

NAME = "counters"


def design(problem: Problem) -> Design | None:
    """The filter of least error along the length of windows, or None where the strategy does not apply."""
    if problem.law != GAUSSIAN or not _applies(problem):
        return None
    counters, parameters = _make(problem)
    return Design(problem, counters, NAME, parameters)


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """One counter along the ends of every start, under any noise."""
    if _applies(problem):
        counters, parameters = _make(problem)
        yield StepDesign(problem, counters, NAME, parameters, horizon=horizon)


def _applies(problem: Problem) -> bool:
    return isinstance(problem.window, AnyWindow) and not isinstance(problem.unit, EventLevel)


def _make(problem: Problem) -> tuple[Starts, dict[str, Any]]:
    longest = longest_window(problem.window, problem.steps)
    if problem.law != GAUSSIAN:
        tree = best_of_trees(problem.criterion, branchings(longest), longest)
        return Starts(longest, tree), {"branching": tree.branching, "weights": list(tree.weights)}
    # They do not depend on the thresholds: each is measured alike.
    alpha, decay = _search(replace(apart_from_noise(problem), thresholds=(1,)))
    taps = integer_taps(alpha, decay, longest, problem.bits)
    return Starts(longest, Filter(taps)), {"alpha": alpha, "decay": decay, "taps": len(taps), "bits": problem.bits}


@lru_cache(maxsize=128)
def _search(problem: Problem) -> tuple[float, float]:
    """The exponent and the decay of least error."""
    formal = not isinstance(problem.unit, ItemAddRemove)
    longest = longest_window(problem.window, problem.steps)
    # How many starts have a counter of each length 1..longest.
    having = np.ones(longest)
    having[-1] += problem.steps - longest
    existing = np.cumsum(having[::-1])[::-1]
    if isinstance(problem.unit, ItemPerPeriod):
        # By the ends that are left: how many of the starts that a span can change have such a counter.
        having = np.minimum(having, 1)
        having[-1] = min(problem.unit.steps, problem.steps - longest + 1)

    def error(alpha: float, decay: float) -> float:
        taps, inverse = real_taps(alpha, decay, longest), real_taps(-alpha, decay, longest)
        norms = real_interval_norms(taps, longest)[1:] if formal else np.cumsum(np.cumsum(taps) ** 2)
        variance = np.cumsum(inverse**2)
        worst = variance[-1] if problem.criterion == "max" else float(variance @ existing / existing.sum())
        return float(np.sqrt((norms @ having) * worst))

    return search(error, longest)
