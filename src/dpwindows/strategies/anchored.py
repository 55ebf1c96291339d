"""`anchored differences`: every step's change, and the value itself now and then; rolling counts, Laplace noise.

One event changes a rolling count by a short run: two differences and a few anchors, in L1 far less than its length.
Decoded by weighted least squares.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import optimize

from dpwindows.ask.privacy import EventLevel, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import LAPLACE
from dpwindows.kernel.bounds import period_sensitivity, sensitivity
from dpwindows.kernel.maps.integer_maps import AnchoredDifferences
from dpwindows.kernel.shapes import BOUNDED_UNITS, Design, Problem, SeriesDesign

NAME = "anchored-differences"
# The largest of the two integer weights; the other is searched relative to it.
_WEIGHT = 1000
# Horizon over which spacing and weights are searched.
_SEARCHED = 512


def design(problem: Problem) -> Design | None:
    """The spacing and weights of least error, or None where the strategy does not apply."""
    if not isinstance(problem.unit, BOUNDED_UNITS):
        return None
    if problem.law != LAPLACE or not isinstance(problem.window, Rolling):
        return None
    horizon = min(problem.steps, max(_SEARCHED, 4 * problem.window.length), 8 * _SEARCHED)
    spacings = sorted({min(horizon, max(1, round(1.25**power))) for power in range(40)})
    best = min((_best_weight(problem, horizon, every) for every in spacings), key=lambda found: found[0])
    _, every, ratio = best
    found = _map(problem.steps, every, ratio)
    bound, proof = certified(problem, found, problem.steps)
    parameters = {"every": every, "step_weight": found.step_weight, "anchor_weight": found.anchor_weight}
    return SeriesDesign(problem, NAME, bound, proof, parameters, map=found)


def _best_weight(problem: Problem, horizon: int, every: int) -> tuple[float, int, float]:
    """(error, spacing, log of anchor weight over step weight) at the best weight for this spacing."""

    def error(ratio: float) -> float:
        candidate = _map(horizon, every, ratio)
        variance = candidate.variance()
        worst = variance.max() if problem.criterion == "max" else variance.mean()
        return float(np.sqrt(worst)) * certified(problem, candidate, horizon)[0]

    found = optimize.minimize_scalar(error, bounds=(-5.0, 3.0), method="bounded", options={"maxiter": 14})
    return float(found.fun), every, float(found.x)


def _map(steps: int, every: int, ratio: float) -> AnchoredDifferences:
    anchor = 2.0**ratio
    largest = max(1.0, anchor)
    return AnchoredDifferences(steps, every, round(_WEIGHT / largest), max(1, round(_WEIGHT * anchor / largest)))


def certified(problem: Problem, found: AnchoredDifferences, steps: int) -> tuple[int, str]:
    """The certified L1 sensitivity of anchored differences over so many steps, and the name of its proof."""
    assert isinstance(problem.window, Rolling)
    weights, length = (found.step_weight, found.anchor_weight, found.every), problem.window.length
    if isinstance(problem.unit, ItemPerPeriod):
        value = period_sensitivity.rolling_differences_period_l1(
            *weights, length, problem.unit.steps, steps, problem.thresholds
        )
        return value, "dpwindows.kernel.bounds.period_sensitivity.rolling_differences_period_l1"
    arguments = (*weights, length, steps, problem.thresholds)
    if isinstance(problem.unit, EventLevel):
        return (
            sensitivity.rolling_differences_event_l1(*arguments),
            "dpwindows.kernel.bounds.sensitivity.rolling_differences_event_l1",
        )
    bound = partial(sensitivity.rolling_differences_item_l1, formal=isinstance(problem.unit, ItemLevel))
    return bound(*arguments), "dpwindows.kernel.bounds.sensitivity.rolling_differences_item_l1"
