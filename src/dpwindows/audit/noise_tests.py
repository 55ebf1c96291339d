r"""Tests of integers against the law that they are said to be drawn from, each with a bound on its false alarms.

**Noise as uniform numbers.** A draw z of a law with the distribution function F is replaced by a number that is uniform
between F(z - 1) and F(z). Draws are of the law and independent exactly if these numbers are independent and uniform on
[0, 1], whatever the law and its scale. A vector z of a joint law is uniform among all vectors of its norm N, where
`P(z) ~ a^N(z)`. A radius is drawn for it as it would have been: of the range law `r = N + g + g'` with g, g' geometric,
and u_0 uniform among the places that hold z; of the cube law `r = N + g`. Then z_i + u_0 or z_i are independent and
uniform up to r, and with a fraction uniform on [0, 1]. `radius_chance` tests the norm, of which that tells nothing.

**The tests.** Every function returns a bound on the probability with which honest noise gives a result as bad as the
one at hand or worse. The bounds hold for every number of draws and every scale, and none is asymptotic:

- `scale_chance`: a sum of exponential numbers, or for Gaussian noise of squared normal ones, is of a gamma law;
- `shape_chance`: the relative entropy of the frequencies of k ranges to their probabilities. Its moment generating
  function is at most that of a gamma law of shape k - 1 and rate n (Agrawal 2020, arXiv 1904.02291), so
  `P(n KL >= t) <= e^{-t} (e t / (k-1))^{k-1}` for t > k - 1;
- `pair_chance`: the same of the sixteen ranges that pairs of draws lie in, which should be independent;
- `recurrence_chance`: how many stretches of draws come again. Whatever came before, the t-th does with probability at
  most (t - 1) p, p that of the commonest stretch, so with `m = p n (n-1) / 2` at least x of them do with probability at
  most `e^{-m} (e m / x)^x`;
- `radius_chance`: the norm is the statistic of an exponential family. With KL the relative entropy of the member whose
  mean norm is t to the stated one, Chernoff's bound for the mean norm of m vectors is `e^{-m KL}`, to either side.
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.audit.losses import norms
from dpwindows.audit.neighbours import Ints
from dpwindows.kernel.accounting import GAUSSIAN, JOINT, LAPLACE, RANGE, Law
from dpwindows.reading.noise_moments import log_normaliser

Floats = NDArray[np.float64]
# Gaussian probabilities are summed up to this scale; beyond, see `_at_most`.
_SUMMED = 4096.0
# Beyond this many scales a Gaussian has less than e^-800.
_FURTHEST = 40
# Where the uniform numbers are cut for the shape, beside the tails.
_CUTS = (0.01, *(share / 16 for share in range(1, 16)), 0.99)
# Draws expected in each tail.
_IN_TAIL = 50
# Ranges of either number of a pair.
_QUARTERS = 4
# The least number of pairs worth a test.
FEWEST_PAIRS = 40
# The chance that an honest stretch of draws comes again, where calls are long enough for several of them.
_RARE = 1e-12
# Members of a family of joint laws that a radius is compared with: up to so many scales to either side.
_FACTOR = 1e3
_SURE = 0.99


# --- Noise as uniform numbers -----------------------------------------------------------------------------------------


def uniforms(law: Law, scale: float, noise: Ints, rng: np.random.Generator) -> Floats:
    """Numbers that are independent and uniform on [0, 1] if the noise is of this law and scale; in its shape.

    Noise is integers; of a joint law the last axis is a vector drawn at once. `rng` makes numbers between them.
    """
    if law in JOINT:
        shares = _shares(law, scale, noise.reshape(-1, noise.shape[-1]), rng).reshape(noise.shape)
    else:
        below, up_to = distribution(law, scale, noise - 1), distribution(law, scale, noise)
        shares = below + rng.random(noise.shape) * (up_to - below)
    # The logarithm and the quantile of every number are finite.
    return np.clip(shares, 1e-300, 1 - 2.0**-53)


def distribution(law: Law, scale: float, points: Ints) -> Floats:
    """P(z <= m) of independent noise, for integers m.

    Gaussian probabilities are sums up to a scale of 4096. Beyond, `sum e^{-z^2/2s^2} = s sqrt(2 pi)` up to a factor of
    `1 + 2 e^{-2 pi^2 s^2}` (Poisson summation), and a distribution function is, by the midpoint formula of Euler and
    Maclaurin, `Phi(x/s) + x phi(x/s) / (24 s^3)` at x = m + 1/2, off by less than `1 / s^4`.
    """
    if law == LAPLACE:
        low = points < 0
        tail = np.exp(-np.where(low, -points, points + 1.0) / scale) / (1 + math.exp(-1 / scale))
        return np.asarray(np.where(low, tail, 1 - tail))
    if scale <= _SUMMED:
        most = math.ceil(_FURTHEST * scale) + 1
        with np.errstate(over="ignore"):
            weights = np.exp(-((np.arange(-most, most + 1) / scale) ** 2) / 2)
        return np.asarray((np.cumsum(weights) / weights.sum())[np.clip(points + most, 0, 2 * most)] * (points >= -most))
    x = (points + 0.5) / scale
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return np.asarray(scipy.special.ndtr(x) + x * density / (24 * scale**2))


def _shares(law: Law, scale: float, vectors: Ints, rng: np.random.Generator) -> Floats:
    """Vectors of a joint law, shape (vectors, numbers), as shares of radii drawn for them."""
    found, norm, ratio = vectors.astype(np.float64), norms(law, vectors), -math.expm1(-1 / scale)
    if law == RANGE:
        beyond = rng.negative_binomial(2, ratio, size=len(vectors))
        first = np.floor(rng.random(len(vectors)) * (beyond + 1)) - np.minimum(found.min(axis=1), 0)
        found, count = found + first[:, None], norm + beyond + 1
    else:
        beyond = rng.negative_binomial(1, ratio, size=len(vectors))
        found, count = found + (norm + beyond)[:, None], 2 * (norm + beyond) + 1
    return np.asarray((found + rng.random(found.shape)) / count[:, None])


# --- Of draws in any order --------------------------------------------------------------------------------------------


def law_chances(law: Law, shares: Floats) -> dict[str, float]:
    """Tests of draws of a law as uniform numbers, whatever their order: by their scale and their shape."""
    return {"scale": scale_chance(law, shares), "shape": shape_chance(shares)}


def scale_chance(law: Law, shares: Floats) -> float:
    """The probability of a mean size as far from what the stated scale gives, to either side."""
    sizes = scipy.special.ndtri(shares) ** 2 / 2 if law == GAUSSIAN else -np.log(2 * np.minimum(shares, 1 - shares))
    total = scipy.stats.gamma(shares.size * _freedom(law))
    return float(min(1.0, 2 * min(total.cdf(sizes.sum()), total.sf(sizes.sum()))))


def _freedom(law: Law) -> float:
    """The shape of the gamma law of one number's statistic."""
    return 0.5 if law == GAUSSIAN else 1.0


def shape_chance(shares: Floats, cuts: Floats | None = None) -> float:
    """The probability of frequencies as far from uniform ones in the ranges between cuts.

    Without cuts these are sixteenths, the hundredth at either end, and the tails in which fifty draws are expected.
    """
    tail = min(0.01, _IN_TAIL / shares.size)
    edges = np.unique([0.0, *((tail, *_CUTS, 1 - tail) if cuts is None else cuts), 1.0])
    seen, expected = np.histogram(shares, edges)[0], np.diff(edges)
    total = float(scipy.special.xlogy(seen, seen / shares.size / expected).sum())
    free = len(expected) - 1
    return 1.0 if total <= free else min(1.0, math.exp(free - total + free * math.log(total / free)))


# --- Of their order ---------------------------------------------------------------------------------------------------


def pair_chance(one: Floats, other: Floats) -> float:
    """The probability that pairs of two equally long vectors of uniform numbers have as much in common."""
    cells = _QUARTERS * np.floor(_QUARTERS * one) + np.floor(_QUARTERS * other)
    of = _QUARTERS**2
    return shape_chance((cells + 0.5) / of, np.arange(1, of) / of)


def recurrence_chance(law: Law, scale: float, calls: Ints) -> float:
    """The probability that as many stretches of draws come again: whole calls, and parts of long ones.

    Calls have the shape (calls, draws of one call); of a joint law each is a vector.
    """
    length = per_call = calls.shape[1]
    if law in JOINT:
        # No vector is likelier than that of zeros.
        commonest = -log_normaliser(law, scale, per_call)
    else:
        one = math.log(min(1.0, 1 / (scale * math.sqrt(2 * math.pi)))) if law == GAUSSIAN else 0.0
        one = math.log(math.tanh(0.5 / scale)) if law == LAPLACE else one
        enough = max(1, math.ceil(math.log(_RARE / calls.size**2) / one)) if one < -1e-9 else per_call
        length = enough if per_call >= 2 * enough else per_call
        commonest = length * one
    stretches = calls[:, : per_call // length * length].reshape(-1, length)
    count = len(stretches)
    repeated = count - len(np.unique(stretches, axis=0))
    expected = math.exp(commonest) * count * (count - 1) / 2
    if repeated <= expected or expected == 0:
        return 1.0 if repeated <= expected else 0.0
    return math.exp(repeated - expected + repeated * math.log(expected / repeated))


def radius_chance(law: Law, scale: float, vectors: Ints) -> float:
    """A bound on the probability of a mean norm as far from what the stated scale of a joint law gives, to either side.

    Vectors have the shape (vectors, numbers).
    """
    size, mean = vectors.shape[1], float(norms(law, vectors).mean())

    def entropy(log_factor: float) -> float:
        """The bound for the member of this scale where its mean norm is the one seen, and less for all others."""
        other = scale * math.exp(log_factor)
        return (1 / scale - 1 / other) * mean + log_normaliser(law, scale, size) - log_normaliser(law, other, size)

    reach = math.log(_FACTOR)
    best = scipy.optimize.minimize_scalar(lambda at: -entropy(at), bounds=(-reach, reach), method="bounded")
    return min(1.0, 2 * math.exp(min(0.0, len(vectors) * float(best.fun))))


# --- Power ------------------------------------------------------------------------------------------------------------


def detectable_scales(law: Law, draws: int, least_chance: float) -> tuple[float, float]:
    """The scales, as a share of the stated one below 1 and one above, that `scale_chance` finds with probability 0.99.

    It finds a scale if its chance is below `least_chance`. For scales of at least 1, where the lattice hardly matters.
    """
    total = scipy.stats.gamma(draws * _freedom(law))
    power = 0.5 if law == GAUSSIAN else 1.0
    low, high = total.ppf(least_chance / 2) / total.ppf(_SURE), total.isf(least_chance / 2) / total.isf(_SURE)
    return float(low**power), float(high**power)
