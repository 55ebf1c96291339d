"""The reader of windows that were measured with those inside them: estimates and their errors.

Values of windows come by length and start (`kernel/families/nested.py`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpwindows.kernel.families.nested import Nested, index_by_end, index_by_start
from dpwindows.reading.filters import inverse_taps, invert_backwards, invert_filter
from dpwindows.reading.moments import FloatArray


def nested_estimates(taps: tuple[int, ...], by_start: FloatArray) -> FloatArray:
    """The windows' values: the inverse filter along lengths, for windows with one start and for those with one end."""
    return index_by_start(invert_filter(taps, index_by_end(invert_filter(taps, by_start))))


def nested_weights(taps: tuple[int, ...], by_start: FloatArray) -> FloatArray:
    """What a combination of estimates puts on the numbers measured: `nested_estimates`, transposed."""
    by_end = index_by_end(invert_backwards(taps, by_start))
    return index_by_start(invert_backwards(taps, by_end))


@lru_cache(maxsize=16)
def nested_moments(shape: Nested, power: int) -> FloatArray:
    """Second or fourth moments of the weights of a window's estimate, by length: shape (longest,).

    With c the inverse taps the weight of the number of a + i..b - j is `c_i c_j`, for i + j less than the length, over
    what that number itself is weighed with.
    """
    longest = shape.longest
    powers = inverse_taps(shape.taps, longest) ** power
    return np.convolve(np.convolve(powers, powers)[:longest], real_weights(shape.weights, longest) ** -power)[:longest]


def real_weights(weights: tuple[int, ...], longest: int) -> FloatArray:
    """By length, shape (longest,): 1 where there are none."""
    return np.array(weights[:longest], dtype=np.float64) if weights else np.ones(longest)
