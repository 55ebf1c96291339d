"""Fractional-difference filters: their taps, and the search for the best two parameters.

The filter `(1 - lambda B)^alpha`, B the shift by one step, has taps `1, -alpha lambda, ...` and inverse taps
`1, alpha lambda, ...`, all of one sign after the first; between no filter (alpha = 0) and plain differences
(alpha = 1) lies the best trade of sensitivity against error. Rounded towards zero its taps keep the signs that the
proofs in `dpwindows.kernel.families.runs` ask for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.strategies.search.choice import Place, best_of, descend

# Filters are cut to this many taps, and searched for over this many steps; longer ones gain next to nothing.
LONGEST = 4096
# The grid that filters are searched on: parts of a first tap, of an octave of memory, the longest memory; strides.
_PARTS, _PER_OCTAVE, _OCTAVES, _STRIDES = 200, 8, (-4, 23), (16, 8, 4, 2, 1)
# The largest alpha: 1 is for plain differences.
_LARGEST = 0.9975


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
    return as_integers(np.trunc(real_taps(alpha, decay, min(count, LONGEST)) * 2.0**bits))


def as_integers(taps: FloatArray) -> tuple[int, ...]:
    """Taps that are whole numbers, as Python's integers; trailing zeros dropped."""
    whole = [int(tap) for tap in taps]
    while len(whole) > 1 and not whole[-1]:
        whole.pop()
    return tuple(whole)


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

    By Newton's iteration: where x is the inverse of a in its first n taps, `x (2 - a x)` is in its first 2n.
    """
    inverse = 1 / taps[:1]
    while len(inverse) < count:
        size = min(2 * len(inverse), count)
        width = 1 << (4 * size - 1).bit_length()
        product = np.fft.rfft(inverse, width) ** 2 * np.fft.rfft(taps[:size], width)
        inverse = 2 * np.pad(inverse, (0, size - len(inverse))) - np.fft.irfft(product, width)[:size]
    return inverse[:count]


def search(error: Callable[[float, float], float], scale: int) -> tuple[float, float]:
    """The (alpha, decay) of least `error(alpha, decay)`, for changes that last about `scale` steps; from two starts."""

    def at(place: Place) -> float:
        return error(*filter_at(*place))

    memory = round(_PER_OCTAVE * math.log2(2 + scale))
    low, high = (0, _OCTAVES[0] * _PER_OCTAVE), (_PARTS - 1, _OCTAVES[1] * _PER_OCTAVE)
    starts = ((_PARTS // 2, memory), (_PARTS * 2 // 3, memory + 3 * _PER_OCTAVE))
    ends = [descend(at, start, low, high, _STRIDES) for start in starts]
    return filter_at(*best_of(ends, at))


def filter_at(first: int, memory: int) -> tuple[float, float]:
    """The (alpha, decay) at a point of the grid, in few digits.

    Args:
        first: the magnitude of the first tap, `alpha decay`, in parts of 1: about the same for the best filters of
            many memories.
        memory: how many steps a filter remembers, in parts of an octave.
    """
    decay = decay_at(memory / _PER_OCTAVE)
    return min(round(first / _PARTS / decay, 4), _LARGEST), decay


def decay_at(octaves: float) -> float:
    """The decay of a memory of about `2^octaves` steps, in few digits."""
    return round(1 - float(f"{1 / (1 + 2.0**octaves):.3g}"), 12)
