"""Fractional-difference filters: their taps, and the search for the best two parameters.

The filter `(1 - lambda B)^alpha`, B the shift by one step, has taps `1, -alpha lambda, ...` and inverse taps
`1, alpha lambda, ...`, all of one sign after the first; between no filter (alpha = 0) and plain differences
(alpha = 1) lies the best trade of sensitivity against error. Rounded towards zero its taps keep the signs that the
proofs in `dpwindows.kernel.bounds.sensitivity` ask for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy

from dpwindows.kernel.maps.integer_maps import FloatArray

# Filters are cut to this many taps, and searched for over this many steps; longer ones gain next to nothing.
LONGEST = 4096


def real_taps(alpha: float, decay: float, count: int) -> FloatArray:
    """The first `count` taps of `(1 - decay B)^alpha`, shape (count,)."""
    lags = _lags(count)
    factors = (lags[:-1] - alpha) / lags[1:] * decay
    taps = np.ones(count)
    np.cumprod(factors, out=taps[1:])
    return taps


@lru_cache(maxsize=8)
def _lags(count: int) -> FloatArray:
    return np.arange(count, dtype=np.float64)


def integer_taps(alpha: float, decay: float, count: int, bits: int) -> tuple[int, ...]:
    """The taps times `2^bits`, rounded towards zero after the first; trailing zeros dropped.

    Rounding towards zero keeps the order of magnitudes and a positive sum.
    """
    scaled = np.trunc(real_taps(alpha, decay, min(count, LONGEST)) * 2.0**bits)
    taps = [int(tap) for tap in scaled]
    while len(taps) > 1 and taps[-1] == 0:
        taps.pop()
    return tuple(taps)


def held_taps(alpha: float, decay: float, count: int, bits: int) -> tuple[int, ...]:
    """The taps of `(1 - decay B)^alpha`, `count` of them or less, times `2^bits`, rounded so that their sums are kept.

    A tap is held until the sum is caught up with, so magnitudes never increase, and the sum of all stays positive.
    Were each rounded by itself, the long tail of small ones would be lost.
    """
    magnitudes = -real_taps(alpha, decay, count)[1:] * 2.0**bits
    taps, last, behind = [1 << bits], 1 << bits, 0.0
    left = min(round(float(magnitudes.sum())), taps[0] - 1)
    for magnitude in magnitudes.tolist():
        behind += magnitude
        last = min(last, max(1, math.ceil(behind - 0.5)), left)
        if not last:
            break
        taps.append(-last)
        behind, left = behind - last, left - last
    return tuple(taps)


def real_interval_norms(taps: FloatArray, longest: int) -> FloatArray:
    """`q(n)` for n = 0..longest, shape (longest + 1,), in floating point: `sensitivity.interval_norms` is exact."""
    size = 1 << (2 * len(taps) - 1).bit_length()
    lags = np.fft.irfft(np.abs(np.fft.rfft(taps, size)) ** 2, size)[: min(longest, len(taps))]
    lags[1:] *= 2
    rises = np.empty(longest)
    np.cumsum(lags, out=rises[: len(lags)])
    rises[len(lags) :] = rises[len(lags) - 1]
    norms = np.zeros(longest + 1)
    np.cumsum(rises, out=norms[1:])
    return norms


def real_inverse(taps: FloatArray, count: int) -> FloatArray:
    """The first `count` taps of the inverse filter, shape (count,), for searches: `decoding.filters` has them exactly.

    By Newton's iteration: where x is the inverse of a up to so many taps, `x (2 - a x)` is to twice as many.
    """
    inverse = 1 / taps[:1]
    while len(inverse) < count:
        size = min(2 * len(inverse), count)
        width = 1 << (4 * size - 1).bit_length()
        product = np.fft.rfft(inverse, width) ** 2 * np.fft.rfft(taps[:size], width)
        inverse = 2 * np.pad(inverse, (0, size - len(inverse))) - np.fft.irfft(product, width)[:size]
    return inverse[:count]


def search(error: Callable[[float, float], float], scale: int) -> tuple[float, float]:
    """The (alpha, decay) of least `error(alpha, decay)`, for changes that last about `scale` steps.

    Deterministic: two fixed starts of Nelder and Mead's method on (logit alpha, log(1 - decay)).
    """

    def parameters(point: FloatArray) -> tuple[float, float]:
        alpha = 1 / (1 + math.exp(-min(max(point[0], -6.0), 6.0)))
        return alpha, -math.expm1(min(max(point[1], -16.0), -0.05))

    best: tuple[float, FloatArray] | None = None
    for start in ((0.0, -math.log(2 + scale)), (0.6, -2.0 - math.log(2 + scale))):
        found = scipy.optimize.minimize(
            lambda point: error(*parameters(point)),
            np.array(start),
            method="Nelder-Mead",
            options={"xatol": 1e-3, "fatol": 1e-6, "maxfev": 160},
        )
        if best is None or found.fun < best[0]:
            best = (float(found.fun), found.x)
    assert best is not None
    return parameters(best[1])
