"""`threshold-filters`: rolling counts for several thresholds at item level, a filter with an offset for each of them.

One item makes the changes of all thresholds, and seldom the worst for each at once: an item that comes and goes is not
counted often, and one that is counted often does not go. So what they cost together, which `rolling-chains-item`
bounds, is well below what they cost apart, if counts of several occurrences forget sooner than they would alone. The
filters are those of `offset_filter`. For an item that is changed arbitrarily the bound is four times as large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE
from dpwindows.ask.privacy import ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.chains_of_runs import SeriesByThreshold
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import offset_filter
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.fractional import real_taps
from dpwindows.strategies.search.portable import power
from dpwindows.strategies.search.prices_of_ones import dearest_mixture

NAME = "threshold-filters"
# Of thresholds above 1: by what part the memory of the filter may be shorter than alone, and the share of the
# precision of the mean that is left may be larger.
_SHORTER, _LARGER, _MOST_SHARE = (1.0, 0.85, 0.73, 0.62), (1.0, 1.5), 0.9
# The most thresholds, for what is searched grows with them; how often weights are set anew; the least part of the
# bound that a threshold is taken to cost.
_MOST, _ROUNDS, _LEAST = 4, 2, 1e-3
# How many windows are enough to tell by, and how much longer than a period the range may be.
_WINDOWS, _NEARLY_ALL = 16, 1.25
_Filter = tuple[float, float, float]


def design(problem: Problem) -> Design | None:
    """The filters, or None where they do not apply."""
    window, thresholds = problem.window, problem.thresholds
    if problem.law != GAUSSIAN or not isinstance(window, Rolling) or problem.rule != EVERY_OCCURRENCE:
        return None
    unit = problem.unit
    # An item that changes within nearly all steps is charged for all of them.
    whole = isinstance(unit, ItemAddRemove | ItemLevel)
    nearly = isinstance(unit, ItemPerPeriod) and problem.steps <= _NEARLY_ALL * unit.steps
    if not (whole or nearly) or not 2 <= len(thresholds) <= _MOST:
        return None
    if not offset_filter.SHORTEST <= problem.steps <= offset_filter.LONGEST:
        return None
    filters, weights = _chosen(min(window.length, problem.steps), problem.steps, thresholds)
    maps = []
    for one, weight in zip(filters, weights, strict=True):
        if (own := offset_filter.measured(*one, problem.steps, math.sqrt(weight) * 2.0**problem.bits)) is None:
            return None
        maps.append(own)
    names = ("alpha", "decay", "share")
    parameters: dict[str, Any] = {
        name: list(values) for name, values in zip(names, zip(*filters, strict=True), strict=True)
    }
    parameters |= {"weight": list(weights), "bits": problem.bits}
    return Design(problem, SeriesByThreshold(thresholds, tuple(maps)), NAME, parameters)


@lru_cache(maxsize=16)
def _chosen(length: int, steps: int, thresholds: tuple[int, ...]) -> tuple[tuple[_Filter, ...], tuple[float, ...]]:
    """A filter for each threshold and the weight of its precision, nearly of least mean square error."""
    alone = [offset_filter.parameters(length, steps, (k,), EVERY_OCCURRENCE) for k in thresholds]
    tried = _Tried.of(alone, np.ones(len(thresholds)), length, steps, thresholds)
    for _ in range(_ROUNDS):
        tried = _Tried.of(alone, tried.balanced, length, steps, thresholds)
    weights, candidates = tried.balanced, [tried]
    for shorter, larger in product(_SHORTER, _LARGER):
        filters = [one if k == 1 else _adapted(one, shorter, larger) for one, k in zip(alone, thresholds, strict=True)]
        candidates.append(_Tried.of(filters, weights, length, steps, thresholds))
    best = choice.best_of(candidates, lambda one: one.error)
    for _ in range(_ROUNDS):
        balanced = _Tried.of(best.filters, best.balanced, length, steps, thresholds)
        best = choice.best_of([best, balanced], lambda one: one.error)
    return tuple(best.filters), tuple(best.weights.tolist())


def _adapted(one: _Filter, shorter: float, larger: float) -> _Filter:
    alpha, decay, share = one
    return alpha, round(1 - (1 - decay) * shorter, 12), min(_MOST_SHARE, round(share * larger, 6))


@dataclass(frozen=True)
class _Tried:
    """Filters and weights that were tried.

    Attributes:
        filters: order, decay and share of each.
        weights: of their precision.
        error: the mean square error over thresholds, for noise of unit variance.
        balanced: weights that are better, as what the thresholds cost says, in few digits.
    """

    filters: Sequence[_Filter]
    weights: FloatArray
    error: float
    balanced: FloatArray

    @classmethod
    def of(
        cls, filters: Sequence[_Filter], weights: FloatArray, length: int, steps: int, thresholds: Sequence[int]
    ) -> _Tried:
        # What costs are in proportion to is known from fewer steps.
        part = min(steps, max(offset_filter.DENSE, _WINDOWS * length))
        variances, norms, offsets = (
            np.array(values) for values in zip(*(_lane(one, steps, part) for one in filters), strict=True)
        )
        mixture = dearest_mixture(norms * weights[:, None], offsets * weights, length, thresholds)
        # The mean of variance over weight, times the bound, is least where these are in proportion for all thresholds.
        costs = np.maximum(mixture.costs / weights, _LEAST * mixture.bound)
        balanced = np.sqrt(variances / costs)
        rounded = np.array([float(f"{weight:.3g}") for weight in balanced / balanced[0]])
        return cls(filters, weights, float((variances / weights).mean() * mixture.bound), rounded)


@lru_cache(maxsize=64)
def _lane(one: _Filter, steps: int, part: int) -> tuple[float, FloatArray, float]:
    """The variance of the estimates, and for a part of the steps what a run of n = 0.. places costs, and the offset."""
    alpha, decay, share = one
    lags = offset_filter.autocorrelation(alpha, decay, part)
    mean = power(np.array([1 - decay]), -2 * alpha)[0]
    variance = (real_taps(-alpha, decay, steps) ** 2).sum() + (1 - share) / share * mean / steps
    rises = np.cumsum(np.concatenate([lags[:1], 2 * np.minimum(lags[1:], 0)]))
    return float(variance), np.concatenate([[0.0], np.cumsum(rises)]), (1 - share) / (part * mean)
