"""Changes that are costly under any noise, for `limits` to put its weights on: each gives a valid bound.

*Runs* (k > 1, event level): patterns drawn at random are improved by flips of single places, as long as these raise
the true cost `g'Gg` under the noise that is best for the weights so far, and are weighed anew.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.strategies.search.dual import improve_weights
from dpwindows.strategies.search.spectrum import pair_counts

# Patterns drawn, how often they are improved, by how many flips each time, and how many of these are kept.
_DRAWN, _ROUNDS, _FLIPS, _KEPT = 150, 12, 3, 40
# Updates of weights in each round and at the end, their power, and weights that are dropped.
_UPDATES, _LAST_UPDATES, _POWER, _NEGLIGIBLE = 12, 60, 1.8, 1e-5


@lru_cache(maxsize=32)
def run_weights(reach: int, runs: int) -> tuple[FloatArray, FloatArray]:
    """Patterns of at most `runs` runs in `reach` places, shape (patterns, places), and weights that sum to 1."""
    runs = min(runs, (reach + 1) // 2)
    patterns = drawn = _draw(reach, runs)
    weights, lags = improve_weights(pair_counts(patterns), np.ones(len(patterns)), _LAST_UPDATES, _POWER)
    for _ in range(_ROUNDS):
        patterns, weights = patterns[weights > _NEGLIGIBLE], weights[weights > _NEGLIGIBLE]
        flipped = np.unique(_flip(np.vstack([patterns, drawn[::7]]), lags, runs), axis=0)
        dearest = np.argsort(-(pair_counts(flipped) @ np.append(lags[:1], 2 * lags[1:])), kind="stable")[:_KEPT]
        patterns = np.vstack([patterns, flipped[dearest]])
        weights = np.append(weights * (9 * len(dearest) / weights.sum()), np.ones(len(dearest)))
        weights, lags = improve_weights(pair_counts(patterns), weights, _UPDATES, _POWER)
    return patterns, improve_weights(pair_counts(patterns), weights, _LAST_UPDATES, 1.0)[0]


def _draw(reach: int, runs: int) -> FloatArray:
    """Single runs, and runs with ends that are evenly spaced or near it."""
    draw, places = np.random.default_rng(0), np.arange(reach)
    rows = [places < length for length in np.unique(np.rint(np.geomspace(1, reach, 24)))]
    for _ in range(_DRAWN):
        count, gap = int(draw.integers(1, runs + 1)), 0.6 * draw.random()
        period = reach / (count - gap)
        even = np.add.outer(np.arange(count) * period, [0.0, (1 - gap) * period]).ravel()
        ends = even + draw.choice((0.0, 0.3, 1.0)) * gap * period * draw.normal(size=2 * count)
        rows.append(np.searchsorted(np.rint(np.sort(ends)), places, side="right") % 2 == 1)
    patterns = np.unique(np.array(rows, dtype=np.float64), axis=0)
    return patterns[patterns.any(axis=1) & (_count_runs(patterns) <= runs)]


def _count_runs(patterns: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(np.diff(patterns, axis=1, prepend=0.0), 0).sum(axis=1))


def _flip(patterns: FloatArray, lags: FloatArray, runs: int) -> FloatArray:
    """Patterns improved by the best flip of one place, a few times as long as there is one."""
    places, patterns = np.arange(patterns.shape[1]), patterns.copy()
    gram = lags[np.abs(places[:, None] - places)]
    for _ in range(_FLIPS):
        # A flip between two ones joins two runs, one between two zeros begins a run.
        sign, beside = 1 - 2 * patterns, np.pad(patterns, ((0, 0), (1, 1)))
        count = _count_runs(patterns)[:, None] + sign * (1 - beside[:, :-2] - beside[:, 2:])
        gain = np.where(count <= runs, 2 * sign * (patterns @ gram) + gram[0, 0], -np.inf)
        best = gain.argmax(axis=1)
        better = gain.max(axis=1) > 1e-9 * gram[0, 0]
        patterns[better, best[better]] = 1 - patterns[better, best[better]]
    return patterns
