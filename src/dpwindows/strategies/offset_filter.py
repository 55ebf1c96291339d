"""`offset-filter`: a filter whose noise has a common random offset, for rolling counts under item add/remove.

An item that is added may be counted at half of all steps and more, so much of what it costs is the mean of its series.
With `G` the Gram matrix of a fractional filter, `G - c 11'` is the precision of the filter's noise plus one random
number common to all steps, which is lenient about that mean. The factor M of `G - c 11' = M'M` is lower-triangular, so
batch and continual release share it. Its three parameters are sought at the cost of evenly spaced runs, which are
nearly the worst; the certificate is `rolling-chains-item`.

In many steps the factor is that of `L'(1 - c 11')L`, L the filter: `OffsetFilter`, a few integers for each step, with
the same certificate. Its noise is larger only near the end of the range.
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
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.filters import OffsetFilter
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.fractional import LONGEST as FILTER
from dpwindows.strategies.search.fractional import as_integers, real_taps, search
from dpwindows.strategies.search.pattern_search import some_lengths
from dpwindows.strategies.search.portable import cholesky, product
from dpwindows.strategies.search.spectrum import cost_of, pair_counts

NAME = "offset-filter"
# One step has no mean of its own. The factor of G and its certificate take O(steps^3), and are for so many steps; those
# of L take O(steps^2).
SHORTEST, DENSE, LONGEST = 2, 512, 1 << 15
# The share of the precision of the mean that is left: what is tried.
_SHARES = np.array([round(0.01 * 1.05**power, 4 if power >= 0 else 6) for power in range(-46, 93)])
# How many lengths of runs, widths of gaps and numbers of runs the search charges for.
_LENGTHS, _WIDTHS, _COUNTS = 24, 16, 5
# How many windows are enough to tell by, and the most distances of places.
_WINDOWS, _LAGS = 8, 1024
# Bits of weights and offsets.
_SHIFT = 34
# More than any sum of the inverse of a Gram matrix.
_MORE = 2.0**100


def design(problem: Problem) -> Design | None:
    """The filter with its offset, or None where it does not apply."""
    window = problem.window
    if problem.law != GAUSSIAN or not isinstance(window, Rolling) or not isinstance(problem.unit, ItemAddRemove):
        return None
    if not SHORTEST <= problem.steps <= LONGEST:
        return None
    alpha, decay, share = parameters(window.length, problem.steps, problem.thresholds, problem.rule)
    chosen = {"alpha": alpha, "decay": decay, "share": share, "bits": problem.bits}
    filtered_map = measured(alpha, decay, share, problem.steps, 2.0**problem.bits)
    return None if filtered_map is None else Design(problem, Series(filtered_map), NAME, chosen)


def measured(alpha: float, decay: float, share: float, steps: int, size: float) -> MatrixCounter | OffsetFilter | None:
    """The map of a filter times `size` with its offset; None where what matters of it is rounded off."""
    if steps > DENSE:
        return filtered(alpha, decay, share, steps, size)
    weights = on_increments(alpha, decay, share, steps, size)
    return None if weights is None else MatrixCounter(weights)


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


def on_increments(alpha: float, decay: float, share: float, steps: int, size: float) -> IntArray | None:
    """The filter times `size`, in integers: its weights on increments; None where an entry that matters is rounded off.

    Args:
        alpha: the order of the filter.
        decay: its decay.
        share: the part of the precision of the mean that is left.
        steps: T.
        size: lattice units to one count.

    Returns:
        `E = M D^-1`, whose columns are sums of M's from x on; shape (T, T).
    """
    weights = np.rint(_factor(alpha, decay, share, steps) * size).astype(np.int64)
    return np.cumsum(weights[:, ::-1], axis=1)[:, ::-1] if (np.diagonal(weights) > 0).all() else None


@lru_cache(maxsize=16)
def _factor(alpha: float, decay: float, share: float, steps: int) -> FloatArray:
    """M, lower-triangular, of `M'M = G - c 11'` with `1 - c 1'G^-1 1 = share`."""
    places = np.arange(steps)
    alike = autocorrelation(alpha, decay, steps)[abs(places[:, None] - places)]
    # With G = L L' a row of ones below G makes one of numbers y with L y = 1 below L, and 1'G^-1 1 = y'y.
    below = np.pad(alike, (0, 1), constant_values=1.0)
    below[-1, -1] = _MORE
    mean = float((cholesky(below)[-1, :-1] ** 2).sum())
    # The factor of the matrix with rows and columns reversed, which is the same.
    return np.asarray(cholesky(alike - (1 - share) / mean).T[::-1, ::-1])


@lru_cache(maxsize=64)
def parameters(length: int, steps: int, thresholds: tuple[int, ...], rule: CountingRule) -> tuple[float, float, float]:
    """Order and decay of the filter and the share of the precision of the mean that is left, of least error."""
    # Patterns are of a part of many steps; the whole costs as much more as it is longer.
    part = min(steps, max(DENSE, _WINDOWS * length))
    charged = [
        _even_patterns(
            min(length, steps) if k == 1 else 1,
            -(-runs * part // steps),
            part,
            -(-places_by_rule(rule, k, length, steps) * part // steps),
        )
        for k in thresholds
        # Exactly k is measured by k + 1 too, which no item may reach by a rule: it costs nothing.
        if (runs := runs_by_rule(rule, k, most_runs(k, length, steps)))
    ]

    def errors(alpha: float, decay: float) -> FloatArray:
        """The squared error for each of the shares, as on an unbounded horizon."""
        lags = autocorrelation(alpha, decay, min(part, _LAGS))
        alone, mean = (real_taps(-alpha, decay, steps) ** 2).sum(), (1 - decay) ** (-2 * alpha)
        variance = alone + (1 - _SHARES) / _SHARES * mean / steps
        cost = np.zeros(len(_SHARES))
        for ones, pairs in charged:
            cost += ((pairs @ lags)[:, None] - np.outer(ones**2, (1 - _SHARES) / (part * mean))).max(axis=0)
        return np.asarray(variance * cost)

    alpha, decay = search(lambda alpha, decay: float(errors(alpha, decay).min()), min(length, steps))
    return alpha, decay, float(_SHARES[choice.first_near_best(errors(alpha, decay).tolist())])


def autocorrelation(alpha: float, decay: float, count: int) -> FloatArray:
    """Of the fractional filter, at distances 0..count-1."""
    taps = real_taps(alpha, decay, 3 * count)
    later = np.lib.stride_tricks.sliding_window_view(taps, 2 * count)[:count]
    return product(later, taps[: 2 * count])


def _even_patterns(shortest: int, runs: int, steps: int, places: int) -> tuple[FloatArray, FloatArray]:
    """Evenly spaced runs: how many ones each pattern has, and how many ordered pairs of ones at each distance."""
    all_pairs, ones = [], []
    sizes = some_lengths(steps)
    for size in _thinned(sizes[sizes >= shortest], _LENGTHS):
        for gap in _thinned(sizes, _WIDTHS):
            most = min(runs, (steps + gap) // (size + gap), max(1, places // size))
            for count in _thinned(np.arange(1, most + 1), _COUNTS):
                pattern = np.zeros(steps)
                for first in range(0, count * (size + gap), size + gap):
                    pattern[first : first + size] = 1
                pairs = pair_counts(pattern)[: min(steps, _LAGS)]
                all_pairs.append(cost_of(pairs))
                ones.append(pattern.sum())
    return np.array(ones), np.array(all_pairs)


def _thinned(values: np.ndarray, count: int) -> list[int]:
    """At most `count` of some values, dense at the lower end, the last always among them."""
    if not len(values):
        return []
    places = np.unique(np.rint(np.geomspace(1, len(values), count)).astype(int)) - 1
    return [int(value) for value in values[places]]
