"""Changes that every noise finds costly: what `limits` puts its weights on. Any of them gives a valid bound.

*Runs* (k > 1, event level): patterns are proposed by the tables of `run_patterns` and improved by local search on
their true cost `g'Gg` under the best noise so far; weights by multiplicative updates.
*Renewals* (item level): an item that is counted and out by turns, for times of random length.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpwindows.kernel.bounds.run_patterns import Lags, memory_for, recent_pattern
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.strategies.search.spectrum import circle_mean, grid_size, power_of

_POWER = 1.8
_CELLS = 1_000_000
# Places up to which the tables propose patterns; beyond, even splits and local search do.
_TABLED = 128


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
            starts.append(tuple(recent_pattern(whole, runs, memory)))
        climbed = {_climbed(start, lags, runs) for start in starts}
        new = [p for p in climbed if p not in patterns and _cost(p, lags) > mean * (1 + 1e-4)]
        for found in sorted(new, key=lambda pattern: -_cost(pattern, lags))[:4]:
            patterns, pairs = [*patterns, found], np.vstack([pairs, pair_counts(found)])
            weights = np.append(weights * 0.98, 0.02)
    return patterns, weights


def _improved(pairs: FloatArray, weights: FloatArray, size: int) -> tuple[FloatArray, FloatArray, float]:
    for _ in range(60):
        root = np.sqrt(np.maximum(power_of(weights @ pairs, size), 1e-9))
        lags = np.fft.irfft(1 / root, size)[: pairs.shape[1]]
        mean = circle_mean(root)
        weights = weights * ((pairs[:, 0] * lags[0] + 2 * (pairs[:, 1:] * lags[1:]).sum(axis=1)) / mean) ** _POWER
        weights /= weights.sum()
    return weights, lags, mean


def _even_patterns(reach: int, runs: int) -> list[tuple[int, ...]]:
    found = [(1,) * n + (0,) * (reach - n) for n in sorted({round(n) for n in np.geomspace(1, reach, 24)})]
    for count in sorted({round(n) for n in np.geomspace(1, runs, 12)}):
        for gap in sorted({round(n) for n in np.geomspace(1, max(1, reach // (2 * count)), 6)}):
            length, longer = divmod(reach - gap * (count - 1), count)
            if length >= 1:
                pattern = [((1,) * (length + (i < longer)) + (0,) * gap) for i in range(count)]
                found.append(tuple(sum(pattern, ())[:reach]))
    return found


def _scattered(reach: int, runs: int, draw: np.random.Generator) -> tuple[int, ...]:
    """Runs with ends anywhere: where even splits are no good place to begin a search."""
    ends = sorted(draw.choice(reach + 1, size=2 * min(runs, reach // 2 or 1), replace=False).tolist())
    return tuple(int(sum(end <= place for end in ends) % 2) for place in range(reach))


def pair_counts(pattern: tuple[int, ...]) -> FloatArray:
    """Ones at distance 0, and pairs of ones at every further distance."""
    ones = np.array(pattern, dtype=np.float64)
    return np.asarray(np.correlate(ones, ones, "full")[len(ones) - 1 :])


def _cost(pattern: tuple[int, ...], lags: FloatArray) -> float:
    pairs = pair_counts(pattern)
    return float(pairs[0] * lags[0] + 2 * pairs[1:] @ lags[1:])


def _climbed(start: tuple[int, ...], lags: FloatArray, runs: int) -> tuple[int, ...]:
    """Flips of one place, and of two, as long as they raise the cost and keep the number of runs."""
    index = np.arange(len(start))
    gram = lags[np.abs(index[:, None] - index[None, :])]
    pattern = np.array(start, dtype=np.float64)
    while True:
        sign = 1 - 2 * pattern
        single = 2 * sign * (gram @ pattern) + lags[0]
        double = single[:, None] + single[None, :] + 2 * np.outer(sign, sign) * gram
        np.fill_diagonal(double, single)
        for flat in np.argsort(-double, axis=None)[:400]:
            if double.flat[flat] <= 1e-9 * lags[0]:
                return tuple(int(place) for place in pattern)
            i, j = divmod(int(flat), len(start))
            tried = pattern.copy()
            tried[[i, j]] = 1 - tried[[i, j]]
            if (np.diff(tried, prepend=0.0) > 0).sum() <= runs:
                pattern = tried
                break
        else:
            return tuple(int(place) for place in pattern)


def renewal_pairs(length: int, staying: float, returning: float, distances: int) -> FloatArray:
    """Probabilities that an item is counted at a step and d steps later, d = 0..distances-1, in the long run.

    It is counted for `length` steps and then for each further one with probability `staying`; it is out for one step
    and then for each further one with probability `returning`: a Markov chain on the steps counted so far and "out".
    """
    counted, out = length + staying / (1 - staying), 1 + returning / (1 - returning)
    ages = np.full(length + 1, 1.0)
    ages[length - 1], ages[length] = 1 / (1 - staying), 0.0
    state = ages / (counted + out)
    pairs = np.zeros(distances)
    for d in range(distances):
        pairs[d] = state[:length].sum()
        moved = np.zeros_like(state)
        moved[1:length] = state[: length - 1]
        moved[length - 1] += state[length - 1] * staying
        moved[length] = state[length - 1] * (1 - staying) + state[length] * returning
        moved[0] += state[length] * (1 - returning)
        state = moved
    return pairs
