"""`counters`: one counter for every start, all calibrated jointly; any windows of a stream, item level.

A filter under Gaussian noise, a tree under Laplace noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from dpwindows.ask.privacy import EventLevel, ItemAddRemove
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import StepDesign
from dpwindows.kernel.maps.filters import Filter
from dpwindows.kernel.maps.integer_maps import CausalMap
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.starts import Starts
from dpwindows.strategies.search.apart_from_noise import apart_from_noise
from dpwindows.strategies.search.fractional import integer_taps, real_interval_norms, real_taps, search
from dpwindows.strategies.search.level_weights import best_of_trees, branchings

NAME = "counters"


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """One counter along the ends of every start; item level, any noise."""
    if not isinstance(problem.window, AnyWindow) or isinstance(problem.unit, EventLevel):
        return
    longest = longest_window(problem.window, problem.steps)
    counter: CausalMap
    parameters: dict[str, Any]
    if problem.law == GAUSSIAN:
        alpha, decay = _stream_parameters(apart_from_noise(problem))
        taps = integer_taps(alpha, decay, longest, problem.bits)
        counter, parameters = Filter(taps), {"alpha": alpha, "decay": decay, "taps": len(taps)}
    else:
        tree = best_of_trees(problem.criterion, branchings(longest), longest)
        counter, parameters = tree, {"branching": tree.branching, "weights": list(tree.weights)}
    yield StepDesign(problem, Starts(longest, counter), NAME, parameters, horizon=horizon)


@lru_cache(maxsize=128)
def _stream_parameters(problem: Problem) -> tuple[float, float]:
    longest, formal = longest_window(problem.window, problem.steps), not isinstance(problem.unit, ItemAddRemove)
    return search(lambda alpha, decay: _stream_error(problem, longest, formal, alpha, decay), longest)


def _stream_error(problem: Problem, longest: int, formal: bool, alpha: float, decay: float) -> float:
    """Error of one real filter along the ends of a start, up to a constant."""
    taps, inverse = real_taps(alpha, decay, longest), real_taps(-alpha, decay, longest)
    norm = real_interval_norms(taps, longest)[-1] if formal else float((np.cumsum(taps) ** 2).sum())
    variance = np.cumsum(inverse**2)
    return float(np.sqrt(norm * (variance[-1] if problem.criterion == "max" else variance.mean())))
