"""Changes that are costly under any noise, for `limits` to put its weights on: each gives a valid bound.

Arithmetic is that of `portable`, so that every machine finds one limit.

*Runs* (k > 1, event level): patterns are proposed by the tables of `run_patterns` and improved by local search on
their true cost `g'Gg` under the best noise so far; weights by multiplicative updates.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpwindows.kernel.families.run_patterns import Lags
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.strategies.search.pattern_search import memory_for, recent_patterns
from dpwindows.strategies.search.portable import even_transform, power, product
from dpwindows.strategies.search.spectrum import grid_size

# Power of the multiplicative updates of weights, and their number.
_POWER, _IMPROVED = 1.8, 60
_CELLS = 1_000_000
# Places up to which the tables propose patterns; beyond, even splits and local search do.
_TABLED = 128
# Pairs of flips, over several patterns, that are weighed at a time.
_FLIPS = 1 << 20
# How finely the lags are looked at that flips are chosen by.
_FINE = 2.0**32


@lru_cache(maxsize=32)
def run_weights(reach: int, runs: int, rounds: int = 12) -> tuple[list[tuple[int, ...]], FloatArray]:
    """Patterns of at most `runs` runs in `reach` places, and weights that sum to 1."""
    runs = min(runs, (reach + 1) // 2)
    size = grid_size(reach)
    patterns = list(dict.fromkeys(_even_patterns(reach, runs)))
    first = patterns[:: max(1, len(patterns) // 6)]
    pairs = np.array([pair_counts(pattern) for pattern in patterns])
    weights = np.full(len(patterns), 1.0 / len(patterns))
    memory = memory_for(reach, runs, _CELLS)
    draw = np.random.default_rng(0)
    for _ in range(rounds):
        weights, lags, mean = _improved(pairs, weights, size)
        kept = weights > 1e-9
        patterns = [pattern for pattern, keep in zip(patterns, kept, strict=True) if keep]
        pairs, weights = pairs[kept], weights[kept] / weights[kept].sum()
        heaviest = sorted(zip(weights.tolist(), patterns, strict=True))[-3:]
        starts = [pattern for _, pattern in heaviest] + first + [_scattered(reach, runs, draw) for _ in range(12)]
        if reach <= _TABLED:
            whole = Lags(tuple(int(np.ceil(lag / lags[0] * 2.0**40)) for lag in lags), 0)
            starts.append(tuple(recent_patterns(whole, (runs,), memory)[0]))
        climbed = _climbed(np.array(starts, dtype=np.float64), lags, runs)
        new = [p for p in climbed if p not in patterns and _cost(p, lags) > mean * (1 + 1e-4)]
        for worst in sorted(new, key=lambda pattern: -_cost(pattern, lags))[:4]:
            patterns, pairs = [*patterns, worst], np.vstack([pairs, pair_counts(worst)])
            weights = np.append(weights * 0.98, 0.02)
    return patterns, weights


def _improved(pairs: FloatArray, weights: FloatArray, size: int) -> tuple[FloatArray, FloatArray, float]:
    """Better weights, and the lags of the noise that is best for them with their average cost."""
    powers = np.array([even_transform(row, size) for row in pairs])
    share = np.full(powers.shape[1], 2.0 / size)
    share[[0, -1]] = 1.0 / size
    for _ in range(_IMPROVED):
        root = np.sqrt(np.maximum(product(powers.T, weights), 1e-9))
        weights = weights * power(np.maximum(product(powers, share / root), 1e-300) / product(share, root), _POWER)
        weights /= weights.sum()
    return weights, even_transform(1 / root, size)[: pairs.shape[1]] / size, float(product(share, root))


def _even_patterns(reach: int, runs: int) -> list[tuple[int, ...]]:
    patterns = [(1,) * n + (0,) * (reach - n) for n in sorted({round(n) for n in np.geomspace(1, reach, 24)})]
    for count in sorted({round(n) for n in np.geomspace(1, runs, 12)}):
        for gap in sorted({round(n) for n in np.geomspace(1, max(1, reach // (2 * count)), 6)}):
            length, longer = divmod(reach - gap * (count - 1), count)
            if length >= 1:
                pattern = [((1,) * (length + (i < longer)) + (0,) * gap) for i in range(count)]
                patterns.append(tuple(sum(pattern, ())[:reach]))
    return patterns


def _scattered(reach: int, runs: int, draw: np.random.Generator) -> tuple[int, ...]:
    """Runs with ends anywhere: where even splits are no good place to begin a search."""
    ends = np.sort(draw.choice(reach + 1, size=2 * min(runs, reach // 2 or 1), replace=False))
    return tuple((np.searchsorted(ends, np.arange(reach), side="right") % 2).tolist())


def pair_counts(pattern: tuple[int, ...]) -> FloatArray:
    """Ones at distance 0, and pairs of ones at every further distance."""
    ones = np.array(pattern, dtype=np.float64)
    return np.asarray(np.correlate(ones, ones, "full")[len(ones) - 1 :])


def _cost(pattern: tuple[int, ...], lags: FloatArray) -> float:
    pairs = pair_counts(pattern)
    return float(pairs[0] * lags[0] + 2 * product(pairs[1:], lags[1:]))


def _climbed(starts: FloatArray, lags: FloatArray, runs: int) -> list[tuple[int, ...]]:
    """Patterns of shape (patterns, places), improved by the best flip of one place or two as long as there is one."""
    index = np.arange(starts.shape[1])
    # Whole numbers, so that products of matrices are exact.
    gram = np.rint(lags / lags[0] * _FINE)[np.abs(index[:, None] - index[None, :])]
    together = max(1, _FLIPS // len(index) ** 2)
    pieces = [starts[first : first + together] for first in range(0, len(starts), together)]
    climbed = np.concatenate([_climbed_together(piece, gram, runs) for piece in pieces])
    return list(dict.fromkeys(tuple(row) for row in climbed.astype(int).tolist()))


def _climbed_together(patterns: FloatArray, gram: FloatArray, runs: int) -> FloatArray:
    patterns, rising = patterns.copy(), np.arange(len(patterns))
    places = np.arange(len(gram))
    while len(rising):
        now = patterns[rising]
        sign = 1 - 2 * now
        both = sign[:, :, None] * sign[:, None, :]
        single = 2 * sign * (now @ gram) + gram[0, 0]
        gain = single[:, :, None] + single[:, None, :] + 2 * both * gram
        # A flip between two ones joins two runs, one between two zeros begins a run; neighbours see each other's.
        beside = np.pad(now, ((0, 0), (1, 1)))
        begun = sign * (1 - beside[:, :-2] - beside[:, 2:])
        more = begun[:, :, None] + begun[:, None, :]
        more[:, places[:-1], places[1:]] -= sign[:, :-1] * sign[:, 1:]
        more[:, places[1:], places[:-1]] -= sign[:, :-1] * sign[:, 1:]
        gain[:, places, places], more[:, places, places] = single, begun
        count = np.maximum(np.diff(now, axis=1, prepend=0.0), 0).sum(axis=1)
        gain[count[:, None, None] + more > runs] = -np.inf
        best = gain.reshape(len(now), -1).argmax(axis=1)
        better = gain.reshape(len(now), -1)[np.arange(len(now)), best] > 1e-9 * gram[0, 0]
        rising, first, second = rising[better], *np.divmod(best[better], len(gram))
        patterns[rising, first] = 1 - patterns[rising, first]
        twice = first != second
        patterns[rising[twice], second[twice]] = 1 - patterns[rising[twice], second[twice]]
    return patterns
