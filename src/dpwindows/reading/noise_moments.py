"""Moments of noise: its variance, and for joint laws (`dpwindows.kernel.joint_noise`) what the numbers share.

Given its radius a vector is uniform. Under the cube law its numbers are independent, each uniform on 2r+1 integers.
Under the range law each is a difference of two uniform numbers on r+1 integers, and one of the two is common to all.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy

from dpwindows.kernel.accounting import JOINT, LAPLACE, RANGE, Law
from dpwindows.reading.moments import FloatArray

# Radii that are summed over, at most; how many standard deviations to either side, and how many scales beyond.
_SUMMED, _DEVIATIONS, _SCALES = 1 << 20, 40, 60


def common_share(law: Law) -> float:
    """The share of the variance of a number that is common to all numbers of its vector."""
    return 0.5 if law == RANGE else 0.0


def radius_shape(law: Law, size: int) -> int:
    """The shape of the gamma law that the radius of a vector of `size` numbers has where the scale is large."""
    return size + 2 if law == RANGE else size + 1


def _radii(shape: int, scale: float) -> FloatArray | None:
    """All radii that matter, None where they are too many to be summed over."""
    mean, deviation = shape * scale, scale * math.sqrt(shape)
    low = max(0, math.floor(mean - _DEVIATIONS * deviation))
    high = math.ceil(mean + _DEVIATIONS * deviation + _SCALES * scale) + 2
    return None if high - low > _SUMMED else np.arange(low, high, dtype=np.float64)


def radius_weights(law: Law, scale: float, size: int) -> tuple[FloatArray, FloatArray] | None:
    """All radii that matter, in ascending order, with their probabilities; None where they are too many."""
    shape, radii = radius_shape(law, size), _radii(radius_shape(law, size), scale)
    if radii is None:
        return None
    logs = (shape - 1) * np.log(radii + (1.0 if law == RANGE else 0.5)) - radii / scale
    weights = np.exp(logs - logs.max())
    return radii, weights / weights.sum()


@lru_cache(maxsize=256)
def joint_variance(law: Law, scale: float, size: int) -> float:
    """The variance of one number of a vector of `size`, in squared lattice units.

    It is `E[(r+1)^2 - 1] / 6` under the range law and `E[(r+1/2)^2 - 1/4] / 3` under the cube law, where r+1 or r+1/2
    is m with `P(m) ~ m^(s-1) e^(-m/b)`, s the `radius_shape`. Over the integers (or halves) `E[m^2]` is that of the
    gamma law, `s (s+1) b^2`, up to a relative `(2 pi b)^-s`, by Poisson summation; where that may matter it is summed.
    """
    shape, (least, parts) = radius_shape(law, size), (1.0, 6) if law == RANGE else (0.5, 3)
    known = radius_weights(law, scale, size)
    if known is None:
        return (shape * (shape + 1) * scale**2 - least**2) / parts
    radii, weights = known
    return float((weights * radii * (radii + 2 * least)).sum()) / parts


@lru_cache(maxsize=256)
def log_normaliser(law: Law, scale: float, size: int) -> float:
    """The logarithm of the sum of `e^(-N(z)/b)` over all vectors z of `size` whole numbers, N the norm of the law."""
    shape, least, power = radius_shape(law, size), 1.0 if law == RANGE else 0.5, 2 if law == RANGE else 1
    # Over m = r + 1 or 2 (r + 1/2), with weights of the radius (dpwindows.kernel.joint_noise).
    radii = _radii(shape, scale)
    if radii is None:
        total = math.lgamma(shape) + shape * math.log(scale)
    else:
        total = float(scipy.special.logsumexp((shape - 1) * np.log(radii + least) - (radii + least) / scale))
    doubled = 0.0 if law == RANGE else (shape - 1) * math.log(2)
    return total + doubled + least / scale + power * math.log(-math.expm1(-1 / scale))


def noise_variance(law: Law, scale: float, size: int = 1) -> float:
    """The variance of one number, in squared lattice units (an upper bound, tight beyond scale 1, for the Gaussian).

    Args:
        law: of the noise.
        scale: of the noise, in lattice units.
        size: of a joint law, how many numbers are drawn together.
    """
    if law in JOINT:
        return joint_variance(law, scale, size)
    if law == LAPLACE:
        shrink = math.exp(-1 / scale) if scale > 1e-3 else 0.0
        return 2 * shrink / math.expm1(-1 / scale) ** 2
    if scale >= 3:
        return scale**2
    weights = [(z, math.exp(-(z**2) / (2 * scale**2))) for z in range(1, 64)] if scale > 1e-2 else []
    return 2 * sum(z**2 * weight for z, weight in weights) / (1 + 2 * sum(weight for _, weight in weights))
