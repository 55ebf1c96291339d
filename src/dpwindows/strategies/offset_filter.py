"""`offset-filter`: a filter whose noise has a common random offset, for rolling counts under item add/remove.

An item that is added may be counted at half of all steps and more, so much of what it costs is the mean of its series.
With `L` a fractional filter, `L'(1 - c 11')L` is the precision of its noise plus one random number common to all
steps, which is lenient about that mean. Its factor is lower-triangular and takes a few integers for each step
(`OffsetFilter`), so batch and continual release share it. Its three parameters are sought at the cost of evenly spaced
runs, a place apart; the certificate is `rolling-chains-item`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import ItemAddRemove
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.counted_by_rule import places_by_rule, runs_by_rule
from dpwindows.kernel.families.runs import most_runs
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.filters import OffsetFilter
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.fractional import LONGEST as FILTER
from dpwindows.strategies.search.fractional import as_integers, real_taps, search
from dpwindows.strategies.search.portable import product

NAME = "offset-filter"
# One step has no mean of its own. Many steps take O(steps^2).
SHORTEST, LONGEST = 2, 1 << 15
# The share of the precision of the mean that is left: what is tried.
_SHARES = np.array([round(0.01 * 1.05**power, 4 if power >= 0 else 6) for power in range(-46, 93)])
# Prices for every one that are tried, in parts of what one costs by itself.
_PRICES = np.linspace(0, 1, 96) ** 2
# How many places and windows are enough to tell by, and the most distances of places.
PART, _WINDOWS, _LAGS = 512, 8, 1024
# Bits of weights and offsets.
_SHIFT = 34


def design(problem: Problem) -> Design | None:
    """The filter with its offset, or None where it does not apply."""
    window = problem.window
    if problem.law != GAUSSIAN or not isinstance(window, Rolling) or not isinstance(problem.unit, ItemAddRemove):
        return None
    if not SHORTEST <= problem.steps <= LONGEST:
        return None
    alpha, decay, share = parameters(window.length, problem.steps, problem.thresholds, problem.rule)
    chosen = {"alpha": alpha, "decay": decay, "share": share, "bits": problem.bits}
    return Design(problem, Series(filtered(alpha, decay, share, problem.steps, 2.0**problem.bits)), NAME, chosen)


def filtered(alpha: float, decay: float, share: float, steps: int, size: float) -> OffsetFilter:
    """The filter times `size` with its offset, in integers.

    The factor of `1 - c 11'` has the diagonal `(1 - c_t)^(1/2)` and in row t before it `-c_t (1 - c_t)^(-1/2)`, where
    `1 / c_t = 1 / c - (T - t)`. Rounded, offsets are what they are, and weights so large that the certificate holds.
    """
    taps = as_integers(np.trunc(real_taps(alpha, decay, min(steps, FILTER)) * size))
    left = 1 / (steps / (1 - share) - np.arange(steps - 1, -1, -1.0))
    weights, offsets = np.sqrt(1 - left) * 2.0**_SHIFT, np.rint(left / np.sqrt(1 - left) * 2.0**_SHIFT)
    later_first, listed = [round(float(weights[-1]))], [max(1, int(offset)) for offset in offsets]
    for later, offset in pairwise(reversed(listed)):
        later_first.append(-(-later * (later_first[-1] + later) // offset))
    return OffsetFilter(taps, tuple(later_first[::-1]), tuple(listed), _SHIFT)


@lru_cache(maxsize=64)
def parameters(length: int, steps: int, thresholds: tuple[int, ...], rule: CountingRule) -> tuple[float, float, float]:
    """Order and decay of the filter and the share of the precision of the mean that is left, of least error."""
    # Runs are of a part of many steps; the whole costs as much more as it is longer.
    part = min(steps, max(PART, _WINDOWS * length))
    charged = [
        (
            np.arange(min(length, part) if k == 1 else 1, part + 1),
            -(-runs * part // steps),
            -(-places_by_rule(rule, k, length, steps) * part // steps),
        )
        for k in thresholds
        # Exactly k is measured by k + 1 too, which no item may reach by a rule: it costs nothing.
        if (runs := runs_by_rule(rule, k, most_runs(k, length, steps)))
    ]

    def errors(alpha: float, decay: float) -> FloatArray:
        """The squared error for each of the shares, as on an unbounded horizon."""
        alone, mean = (real_taps(-alpha, decay, steps) ** 2).sum(), (1 - decay) ** (-2 * alpha)
        variance = alone + (1 - _SHARES) / _SHARES * mean / steps
        offsets, norms = (1 - _SHARES[:, None]) / (part * mean), norms_of_runs(alpha, decay, part)
        prices = norms[1] * _PRICES
        cost = np.zeros(len(_SHARES))
        for lengths, runs, ones in charged:
            most = np.minimum(runs, (part + 1) / (lengths + 1))
            chains = (most * np.maximum(norms[lengths] - prices[:, None] * lengths, 0)).max(axis=1)
            at = np.minimum(ones, prices / (2 * offsets))
            cost += (prices * at - offsets * at**2 + chains).min(axis=1)
        return np.asarray(variance * cost)

    alpha, decay = search(lambda alpha, decay: float(errors(alpha, decay).min()), min(length, steps), none=True)
    return alpha, decay, float(_SHARES[choice.first_near_best(errors(alpha, decay).tolist())])


def norms_of_runs(alpha: float, decay: float, places: int) -> FloatArray:
    """What a run of n = 0..places ones costs through the filter, by itself."""
    lags = np.zeros(places)
    few = autocorrelation(alpha, decay, min(places, _LAGS))
    lags[: len(few)] = np.minimum(few, np.where(np.arange(len(few)) > 0, 0.0, np.inf))
    return np.concatenate([[0.0], np.cumsum(np.cumsum(lags * np.where(np.arange(places) > 0, 2.0, 1.0)))])


def autocorrelation(alpha: float, decay: float, count: int) -> FloatArray:
    """Of the fractional filter, at distances 0..count-1."""
    taps = real_taps(alpha, decay, 3 * count)
    later = np.lib.stride_tricks.sliding_window_view(taps, 2 * count)[:count]
    return product(later, taps[: 2 * count])
