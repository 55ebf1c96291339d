"""Quantiles of noise on whole numbers: exact for one number or a few, bounded for others through smoothed noise.

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
  million at s = 2, 1 in 100 million from s = 5.

*Sums.* With the weights of a sum X on what smooths each number there is a V, independent of X, such that `Y = X + V` is
a sum of continuous noise. V is symmetric, so for every s >= 0 `P(|Y| > h - s) >= P(|X| > h) P(V >= -s)`, and

    P(|X| > h)  <=  P(|Y| > h - s) / (1 - p)    with    p = P(V < -s).

For V of standard deviation v or less, `p <= 1/2` at s = 0; V is unimodal, so `p <= 2 v^2 / (9 s^2)` from `s = 2 v /
sqrt(3)` on (Gauss's inequality); and as a sum of variables that are uniform, nearer to 0 than the difference of two
such, or normal it is sub-Gaussian, so `p <= exp(-s^2 / (2 v^2))`. The s of `_SHIFTS` that gives the least h is taken.
Where each number has a standard deviation of 4,096 steps or more, s is one step of one number of all the weight, and
p is left out: that loses less than 0.05 points of coverage (s = 4 v has p < 0.0004, and is 4 such steps or less).

Gaussian noise of a scale s below 2 is not smoothed. Sums of it have Chernoff's bound of the normal law, for
`E exp(t z) = exp(s^2 t^2 / 2) sum_z exp(-(z - s^2 t)^2 / (2 s^2)) / sum_z exp(-z^2 / (2 s^2))`, and of all shifted
lattices the one through 0 has the largest sum (Poisson).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpwindows.kernel.accounting import CUBE, GAUSSIAN, JOINT, LAPLACE, RANGE, Law
from dpwindows.reading.moments import FloatArray
from dpwindows.reading.noise_moments import noise_variance, radius_weights

# The standard deviation of one number, in lattice units, from here on makes a step below 1/4096 of it.
_FINE = 4096.0
# Beyond this many scales, or deviations, lies less than a floating-point number can tell.
_SCALES, _DEVIATIONS = 45, 10
# How far (in standard deviations of V) h is moved, and the p that is left then.
_SHIFTS = ((0.0, 1 / 2), (2 / math.sqrt(3), 1 / 6), (2.0, 1 / 18), (3.0, math.exp(-4.5)), (4.0, math.exp(-8.0)))
# The variance of what is added to smooth a number.
_ADDED = {LAPLACE: 1 / 6, CUBE: 1 / 12, RANGE: 1 / 6, GAUSSIAN: 1.0}


@dataclass(frozen=True)
class Noise:
    """The noise of one number: its law, its scale in lattice units, and how many numbers are drawn with it."""

    law: Law
    scale: float
    size: int = 1

    @cached_property
    def deviation(self) -> float:
        """Standard deviation of one number, in lattice units."""
        return math.sqrt(noise_variance(self.law, self.scale, self.size))

    @property
    def fine(self) -> bool:
        """Whether its steps are too small to matter."""
        return self.deviation >= _FINE

    @property
    def smooth(self) -> bool:
        """Whether it can be smoothed as the module says."""
        return self.law != GAUSSIAN or self.scale >= 2

    @property
    def added(self) -> float:
        """Standard deviation (or a bound, in the sense of the module) of what smooths it, over its own."""
        return math.sqrt(_ADDED[self.law]) / self.deviation

    @property
    def smoothed(self) -> float:
        """Standard deviation of the smoothed number over its own."""
        if self.law == LAPLACE:
            return math.sqrt(2) * self.scale / self.deviation
        return math.sqrt(1 + self.added**2)


@lru_cache(maxsize=1024)
def lattice_quantile(noise: Noise, draws: int, confidence: float, *, paired: bool = False) -> int:
    """The least whole number that a sum of independent numbers is within, in size, with this probability or more.

    Args:
        noise: of each number; not a fine one.
        draws: how many are added.
        confidence: strictly between 0 and 1.
        paired: whether each is the difference of two numbers of one vector of a joint law.
    """
    probabilities = _probabilities(noise, paired)
    if draws > 1:
        probabilities = _add_up(probabilities, draws)
    tails = 2 * np.cumsum(probabilities[:0:-1])[::-1]
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
    """P(z = 0), P(z = 1), ... for z uniform on L places, or the difference of two of these, over all radii L."""
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


def _add_up(one: FloatArray, draws: int) -> FloatArray:
    """P(z = 0), P(z = 1), ... for the sum of `draws` independent numbers with the probabilities `one`."""
    deviation = math.sqrt(2 * float(one @ np.arange(len(one)) ** 2.0))
    reach = min(draws * len(one), len(one) + math.ceil(_DEVIATIONS * deviation * math.sqrt(draws)))
    length = 1 << (2 * reach + 1).bit_length()
    circle = np.zeros(length)
    circle[: len(one)] = one
    circle[1 - len(one) :] += one[:0:-1]
    return np.asarray(np.fft.irfft(np.fft.rfft(circle) ** draws, length)[: reach + 1].clip(0.0))


@dataclass(frozen=True)
class Sums:
    """The facts about sums of noise that their quantiles are bounded from.

    Attributes:
        kinds: of all numbers that are summed; none is always 0.
        smoothed: standard deviation of each sum when its numbers are smoothed, over its own.
        added: standard deviation (or a bound, in the sense of the module) of what smooths each sum, over its own.
        kurtosis: excess kurtosis of each sum when smoothed, where all of it is Laplace noise; None where unknown.
    """

    kinds: Collection[Noise]
    smoothed: FloatArray
    added: FloatArray
    kurtosis: FloatArray | None

    @staticmethod
    def of(noise: Noise, kurtosis: FloatArray | None = None) -> Sums:
        """Sums of one kind of noise."""
        return Sums({noise}, np.array([noise.smoothed]), np.array([noise.added]), kurtosis)


def shifted(quantile: Callable[[float], FloatArray], sums: Sums, tail: float) -> FloatArray:
    """Quantiles of sums from those of smoothed sums, in their standard deviations, by the probability beyond them."""
    if not all(noise.smooth for noise in sums.kinds):
        return np.array([max(_chernoff(noise, tail) for noise in sums.kinds)])
    if all(noise.fine for noise in sums.kinds):
        return np.asarray(quantile(tail) * sums.smoothed + max(1 / noise.deviation for noise in sums.kinds))
    moved = [quantile(tail * (1 - lost)) * sums.smoothed + shift * sums.added for shift, lost in _SHIFTS]
    return np.asarray(np.min(moved, axis=0))


def _chernoff(noise: Noise, tail: float) -> float:
    """A quantile of Gaussian noise that is not smoothed, by Chernoff's bound."""
    return math.sqrt(2 * math.log(2 / tail)) * noise.scale / noise.deviation
