"""`anchored differences`: every step's change, and the value itself now and then; rolling counts, Laplace noise.

One event changes a rolling count by a short run: two differences and a few anchors, in L1 far less than its length.
Decoded by weighted least squares.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import scipy

from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import LAPLACE
from dpwindows.kernel.certify_series import differences
from dpwindows.kernel.maps.differences import AnchoredDifferences, CausalAnchors
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import SeriesShape, StepDesign
from dpwindows.kernel.shapes.design import Design
from dpwindows.kernel.shapes.series import SeriesDesign
from dpwindows.strategies.search.apart_from_noise import apart_from_noise

NAME = "anchored-differences"
# The largest of the two integer weights; the other is searched relative to it.
_WEIGHT = 1000
# Horizon over which spacing and weights are searched.
_SEARCHED = 512


def design(problem: Problem) -> Design | None:
    """The spacing and weights of least error, or None where the strategy does not apply."""
    if problem.law != LAPLACE or not isinstance(problem.window, Rolling):
        return None
    horizon = min(problem.steps, max(_SEARCHED, 4 * problem.window.length), 8 * _SEARCHED)
    best = min((_best_weight(problem, horizon, every) for every in _spacings(horizon)), key=lambda found: found[0])
    _, every, ratio = best
    found = _map(problem.steps, every, ratio)
    parameters = {"every": every, "step_weight": found.step_weight, "anchor_weight": found.anchor_weight}
    return SeriesDesign(problem, NAME, parameters, map=found)


def _spacings(longest: int) -> list[int]:
    """The spacings of anchors that are tried, each about a quarter wider than the one before."""
    return sorted({min(longest, max(1, round(1.25**power))) for power in range(40)})


def _best_weight(problem: Problem, horizon: int, every: int) -> tuple[float, int, float]:
    """(error, spacing, log of anchor weight over step weight) at the best weight for this spacing."""

    def error(ratio: float) -> float:
        candidate = _map(horizon, every, ratio)
        variance = candidate.variance()
        worst = variance.max() if problem.criterion == "max" else variance.mean()
        return float(np.sqrt(worst)) * differences(problem, candidate, horizon)[0]

    found = scipy.optimize.minimize_scalar(error, bounds=(-5.0, 3.0), method="bounded", options={"maxiter": 14})
    return float(found.fun), every, float(found.x)


def _map(steps: int, every: int, ratio: float) -> AnchoredDifferences:
    anchor = 2.0**ratio
    largest = max(1.0, anchor)
    return AnchoredDifferences(steps, every, round(_WEIGHT / largest), max(1, round(_WEIGHT * anchor / largest)))


# --- In a stream, decoded from what has been measured so far ----------------------------------------------------------


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """Anchored differences, with the spacing and weights that are best for causal decoding."""
    if problem.law != LAPLACE or not isinstance(problem.window, Rolling):
        return
    found = _causal_map(apart_from_noise(problem), min(problem.steps, 4 * problem.window.length), horizon)
    parameters = {"every": found.every, "step_weight": found.step_weight, "anchor_weight": found.anchor_weight}
    yield StepDesign(problem, SeriesShape(problem.window, found), NAME, horizon, parameters)


@lru_cache(maxsize=128)
def _causal_map(problem: Problem, longest: int, horizon: int | None) -> CausalAnchors:
    """That of least error, with anchors at most so many steps apart."""
    best = min((_best_in_stream(problem, horizon, every) for every in _spacings(longest)), key=lambda found: found[0])
    return best[1]


def _best_in_stream(problem: Problem, horizon: int | None, every: int) -> tuple[float, CausalAnchors]:
    def made(ratio: float) -> CausalAnchors:
        anchor = 2.0**ratio
        largest = max(1.0, anchor)
        return CausalAnchors(every, max(1, round(_WEIGHT / largest)), max(1, round(_WEIGHT * anchor / largest)))

    def error(ratio: float) -> float:
        found = made(ratio)
        variance = found.variance(max(8 * every, 64))[-every:]
        worst = variance.max() if problem.criterion == "max" else variance.mean()
        return float(np.sqrt(worst)) * differences(problem, found, horizon)[0]

    found = scipy.optimize.minimize_scalar(error, bounds=(-5.0, 3.0), method="bounded", options={"maxiter": 14})
    return float(found.fun), made(float(found.x))
