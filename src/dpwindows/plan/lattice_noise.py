"""Noise as it is drawn, on whole numbers: how far a number lies from 0, exactly, and how much smoother noise is made.

*Quantiles.* One number of every law, and a sum of few independent ones, has probabilities that can be added up: by
their formulas, over all radii of a joint law, and for sums by one Fourier transform.

*Smoothing.* To each number z a small one, v, can be added that does not depend on it and makes a continuous law of it:

- discrete Laplace: what an exponential variable is beyond its whole part does not depend on that part, and z is the
  difference of two such whole parts. With v the difference of the two rests `z + v` is a Laplace variable of the same
  scale. v is symmetric, unimodal, within +-1 and nearer to 0 than the difference of two uniform ones, of variance 1/6;
- joint laws: given its radius, z is made of uniform whole numbers on L places (one in a cube, the difference of two in
  a range), and each with a uniform number in +-1/2 is uniform on an interval of length L;
- discrete Gaussian of a scale s of 2 or more: v is normal of variance 1. By Poisson summation the density of `z + v` is
  that of the normal law of variance `s^2 + 1` but for a factor within `1 +- 2 exp(-2 pi^2 s^2 / (s^2 + 1))`: 3 in 10
  million at s = 2, 3 in a billion from s = 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpwindows.kernel.accounting import CUBE, GAUSSIAN, JOINT, LAPLACE, RANGE, Law
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.measure import Measurement
from dpwindows.kernel.untrusted.joint_moments import radius_weights
from dpwindows.kernel.untrusted.noise_scales import noise_variance

# Standard deviations of one number, in lattice units, from which a step is below 1/4096 of them.
_FINE = 4096.0
# Beyond so many scales lies less than a floating-point number can tell.
_SCALES, _DEVIATIONS = 45, 10
# The variance of what is added to smooth a number.
_ADDED = {LAPLACE: 1 / 6, CUBE: 1 / 12, RANGE: 1 / 6, GAUSSIAN: 1.0}


@dataclass(frozen=True)
class Noise:
    """The noise of one number: its law, its scale in lattice units, and how many numbers are drawn with it."""

    law: Law
    scale: float
    size: int = 1

    @cached_property
    def spread(self) -> float:
        """Standard deviation of one number, in lattice units."""
        return math.sqrt(noise_variance(self.law, self.scale, self.size))

    @property
    def fine(self) -> bool:
        """Whether its steps are too small to matter."""
        return self.spread >= _FINE

    @property
    def smooth(self) -> bool:
        """Whether it can be smoothed as the module says."""
        return self.law != GAUSSIAN or self.scale >= 2

    @property
    def added(self) -> float:
        """Standard deviation (or a bound, in the sense of the module) of what smooths it, over its own."""
        return math.sqrt(_ADDED[self.law]) / self.spread

    @property
    def smoothed(self) -> float:
        """Standard deviation of the smoothed number over its own."""
        if self.law == LAPLACE:
            return math.sqrt(2) * self.scale / self.spread
        return math.sqrt(1 + self.added**2)


def noise_of(measurement: Measurement) -> Noise:
    """The noise in each number of a measurement."""
    size = measurement.design.rows if measurement.law in JOINT else 1
    return Noise(measurement.law, measurement.scale, size)


@lru_cache(maxsize=1024)
def lattice_quantile(noise: Noise, draws: int, confidence: float, *, paired: bool = False) -> int:
    """The least whole number that a sum of independent numbers is within, in size, with this probability or more.

    Args:
        noise: of each number; not a fine one.
        draws: how many are added.
        confidence: strictly between 0 and 1.
        paired: whether each is the difference of two numbers of one vector of a joint law.
    """
    found = _probabilities(noise, paired)
    if draws > 1:
        found = _added_up(found, draws)
    tails = 2 * np.cumsum(found[:0:-1])[::-1]
    # A share of a billionth is left to rounding.
    return int(np.count_nonzero(np.maximum.accumulate(tails[::-1]) > (1 - confidence) * (1 - 1e-9)))


def _probabilities(noise: Noise, paired: bool) -> FloatArray:
    """P(z = 0), P(z = 1), ..., until there is nothing left."""
    if noise.law in JOINT:
        return _of_radii(noise, paired or noise.law == RANGE)
    if noise.law == LAPLACE:
        ends = np.arange(math.ceil(_SCALES * noise.scale) + 2, dtype=np.float64)
        logs = -ends / noise.scale
    else:
        ends = np.arange(math.ceil(_DEVIATIONS * noise.scale) + 2, dtype=np.float64)
        logs = -((ends / noise.scale) ** 2) / 2
    weights = np.exp(logs)
    return np.asarray(weights / (2 * weights.sum() - 1))


def _of_radii(noise: Noise, paired: bool) -> FloatArray:
    """The same of one uniform whole number on L places, or of the difference of two, over all radii."""
    known = radius_weights(noise.law, noise.scale, noise.size)
    assert known is not None, "a law that is not fine has radii that can be summed over"
    radii, weights = known
    places = radii.astype(np.int64) * (2 if noise.law == CUBE else 1) + 1
    shares = np.zeros(int(places[-1]) + 1)
    shares[places] = weights / places.astype(np.float64) ** (2 if paired else 1)
    if paired:
        # P(z = j | L) = (L - j) / L^2, so P(z = j) = sum_{i >= j} sum_{L > i} P(L) / L^2.
        return np.asarray(_from_above(_from_above(shares)[1:]))
    # P(z = j | L) = 1/L for L > 2 j.
    return np.asarray(_from_above(shares)[1::2])


def _from_above(values: FloatArray) -> FloatArray:
    return np.cumsum(values[::-1])[::-1]


def _added_up(one: FloatArray, draws: int) -> FloatArray:
    """The same of the sum of so many independent numbers with these probabilities."""
    deviation = math.sqrt(2 * float(one @ np.arange(len(one)) ** 2.0))
    reach = min(draws * len(one), len(one) + math.ceil(_DEVIATIONS * deviation * math.sqrt(draws)))
    length = 1 << (2 * reach + 1).bit_length()
    circle = np.zeros(length)
    circle[: len(one)] = one
    circle[1 - len(one) :] += one[:0:-1]
    return np.asarray(np.fft.irfft(np.fft.rfft(circle) ** draws, length)[: reach + 1].clip(0.0))
