r"""Spectra of stationary filters of least error, and the causal filters that have them.

Stationary Gaussian noise of spectrum S on a long series costs, for a pattern of changes with pair counts `a_d` (ones
at distance 0), `<a, r> = a_0 r_0 + 2 sum a_d r_d` where r is the autocorrelation with spectrum `G = 1/S`; its variance
is the mean of `1/G` over frequencies. Filters are designed by minimising `mean(1/G) * max <a, r>`:

- *intervals* (k = 1): the dual, weights w on interval lengths. By Cauchy and Schwarz
  `mean(sqrt P)^2 <= mean(P/S) mean(S)` for `P = sum w_n |ghat_n|^2`, so the product is at least `mean(sqrt P)^2` for
  every S, with equality at `S = sqrt P`: a concave problem in w, solved by multiplicative updates;
- *patterns* (k > 1): the primal in `log G`, over a growing set of worst patterns, each found by the very bound that the
  filter will be certified by.

`causal_taps` factors G: the logarithm's Fourier series, its causal half, exponentiated (the minimum-phase filter).

All of this is design, in floating point that rounds alike on every machine (`portable`), for there are too many
frequencies to choose them from a grid. What a filter costs is certified afterwards from its rounded taps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.strategies.search.descent import minimise
from dpwindows.strategies.search.portable import even_transform, exp, exp_of_series, log, power, product

# Multiplicative updates of weights on intervals, and their power; below 1 they settle smoothly.
ROUNDS, _POWER = 400, 0.9
# Width of the rounded kink where lags change sign, relative to the first lag, at sharpness 1.
_SOFTNESS = 2.0
# Frequencies are this many times as fine as the longest pattern asks for.
_FINENESS = 16
# The search for intervals of more places than this begins from shorter ones; how many times shorter.
_STRETCHED, _STRETCH = 1024, 10
# Rounds after which the search of a spectrum for patterns may end; and how many in a row that gain nothing end it.
_SETTLED, _IDLE = 10, 3

Column = FloatArray
Oracle = Callable[[FloatArray], Sequence[Column]]


def grid_size(reach: int) -> int:
    """Points on the circle of frequencies for patterns of at most `reach` places."""
    return max(512, 1 << (_FINENESS * reach - 1).bit_length())


def circle_mean(values: FloatArray) -> float:
    """The mean over the whole circle of an even function given on its half, both ends included."""
    return float((values[0] + values[-1] + 2 * values[1:-1].sum()) / (2 * (len(values) - 1)))


def power_of(pairs: FloatArray, size: int) -> FloatArray:
    """The spectrum `a_0 + 2 sum a_d cos(d omega)` on half a circle of `size` points, shape (size / 2 + 1,)."""
    even = np.zeros(size)
    even[: len(pairs)] = pairs
    even[size - len(pairs) + 1 :] += pairs[1:][::-1]
    return np.asarray(np.fft.rfft(even).real)


def pair_counts(changes: FloatArray) -> FloatArray:
    """`sum_i c_i c_(i+d)` at every distance d, along the last axis, of changes of whole numbers."""
    places = changes.shape[-1]
    # Whole numbers, so rounding makes the transform exact.
    powers = np.abs(np.fft.rfft(changes, 2 * places)) ** 2
    return np.asarray(np.rint(np.fft.irfft(powers, 2 * places)[..., :places]))


@lru_cache(maxsize=64)
def interval_weights(reach: int, size: int, rounds: int) -> tuple[FloatArray, FloatArray]:
    """Weights on the lengths 1..reach that nearly maximise `mean(sqrt P)`, and P on half a circle of `size` points.

    For long intervals those of a few hundred places are stretched, and improved from there.
    """
    weights = np.full(reach, 1.0 / reach)
    if reach > _STRETCHED:
        shorter = -(-reach // _STRETCH)
        few, _ = interval_weights(shorter, grid_size(shorter), rounds)
        weights = np.interp(np.linspace(0, shorter, reach + 1), np.arange(shorter + 1), np.cumsum([0.0, *few]))
        weights, rounds = np.diff(weights), rounds // _STRETCH
    for step in range(rounds + 1):
        # Pairs at distance d: sum_{n > d} w_n (n - d).
        pairs = np.cumsum(np.cumsum(weights[::-1]))[::-1]
        spectrum = np.maximum(even_transform(pairs, size), 1e-12)
        if step == rounds:
            break
        lags = even_transform(1 / np.sqrt(spectrum), size, reach) / size
        norms = np.cumsum(np.cumsum(np.concatenate([lags[:1], 2 * lags[1:]])))
        weights *= power(norms / circle_mean(np.sqrt(spectrum)), _POWER)
        weights /= weights.sum()
    weights.flags.writeable = spectrum.flags.writeable = False
    return weights, spectrum


def interval_spectrum(reach: int, size: int) -> FloatArray:
    """`log G` of the filter of least error for intervals of at most `reach` places, shape (size / 2 + 1,)."""
    return -log(interval_weights(reach, size, ROUNDS)[1]) / 2


def causal_taps(log_spectrum: FloatArray, count: int) -> FloatArray:
    """The first taps of the causal, minimum-phase filter L with `|L|^2 = exp(log_spectrum)`: shape (count,), from 1."""
    size = 2 * (len(log_spectrum) - 1)
    # log G = log L + its conjugate: log L is the part of it with non-negative powers only.
    series = even_transform(log_spectrum, size) / size
    series[-1] /= 2
    return exp_of_series(series, min(count, size))


def patterns_spectrum(
    start: FloatArray, columns: list[Column], oracle: Oracle, silent: NDArray[np.int64], rounds: int
) -> FloatArray:
    """`log G` that nearly minimises `mean(1/G) * max <a, r>` over the columns found by an oracle.

    Args:
        start: where to begin, on the half circle.
        columns: pair counts of some patterns, all of one length.
        oracle: from an autocorrelation to the pair counts of patterns that it makes costly, the costliest last.
        silent: for each distance, how many pairs the certificate charges where `r_d` is positive.
        rounds: how often the oracle is asked; rounds end early where it finds nothing new.
    """
    reach, size = len(silent), 2 * (len(start) - 1)
    best, idle, log_spectrum = (np.inf, start), 0, start
    twice = 2.0 * silent.astype(np.float64)
    for step in range(rounds):
        lags = even_transform(exp(log_spectrum), size, reach) / size
        worst = oracle(lags)
        charged = float(product(cost_of(worst[-1]), lags)) + float(product(twice, np.maximum(lags, 0)))
        error = charged * circle_mean(exp(-log_spectrum))
        idle = 0 if error < best[0] * (1 - 1e-5) else idle + 1
        best = best if idle else (error, log_spectrum)
        if step > _SETTLED and idle >= _IDLE:
            break
        columns = [*columns, *worst]
        costs = np.array([cost_of(column) for column in columns])
        log_spectrum = _descend(best[1], costs, twice, sharpness=100.0 * (1 + step))
        lags = even_transform(exp(log_spectrum), size, reach) / size
        keep = np.argsort(-product(costs, lags), kind="stable")[:100]
        columns = [columns[i] for i in sorted({*keep.tolist(), len(columns) - 1})]
    return best[1]


def cost_of(column: Column) -> FloatArray:
    """The coefficients of the cost `<a, r>` in one of a and r: pairs at a distance d > 0 count twice."""
    return np.concatenate([column[:1], 2 * column[1:]])


def _descend(start: FloatArray, costs: FloatArray, silent: FloatArray, sharpness: float) -> FloatArray:
    """Minimise `log mean(1/G)` plus the smoothed maximum of `log <a, r>` over the columns, over log G."""
    reach, size = costs.shape[1], 2 * (len(start) - 1)
    share = np.full(len(start), 2.0 / size)
    share[[0, -1]] = 1.0 / size
    # Pairs that are charged only where lags are positive make a kink at 0, rounded off less and less.
    first_lag = circle_mean(exp(start))
    softness = _SOFTNESS / sharpness * first_lag / np.maximum(np.arange(reach), 1) ** 2

    def objective(log_spectrum: FloatArray) -> tuple[float, FloatArray]:
        spectrum = exp(log_spectrum)
        lags = even_transform(spectrum, size, reach) / size
        inverse = share / spectrum
        variance = float(inverse.sum())
        root = np.sqrt(lags**2 + softness**2)
        values = np.maximum(product(costs, lags) + product(silent, lags + root) / 2, 1e-300)
        scaled = log(values)
        weights = exp(np.maximum(sharpness * (scaled - scaled.max()), -700.0))
        total = float(weights.sum())
        per_value = weights / total / values
        by_lag = (per_value[:, None] * costs).sum(axis=0) + per_value.sum() * silent * (1 + lags / root) / 2
        by_lag[1:] /= 2
        gradient = share * even_transform(by_lag, size) * spectrum - inverse / variance
        of_all = log(np.array([variance, total]))
        return float(of_all[0] + scaled.max() + of_all[1] / sharpness), gradient

    return minimise(objective, start)
