"""How exact an estimate is: its variance, and the half width of its interval from the noise that really is in it.

An estimate's error is a weighted sum of independent noise values. Under Gaussian noise it is Gaussian. Under Laplace
noise its tails lie between those of one Laplace variable and the Gaussian; where, follows from the excess kurtosis
`3 sum c^4 / (sum c^2)^2`. The quantile used is that of a sum of m independent Laplace variables of equal scale, with m
(real) chosen to match the kurtosis: exact for one variable, for m equal weights and in the Gaussian limit, and within
a fraction of a percent between.

Noise of a joint law is uniform given a radius that all its numbers share (`dpwindows.kernel.joint_noise`), and the
radius is all but gamma distributed. One number then has a uniform law (cube) or that of a triangle (range), mixed over
radii, and its quantile is that. Sums of several such numbers lie between these two and the Gaussian, mixed alike: they
get the widest quantile of the three.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np
import scipy

from dpwindows.ask.queries import Measure
from dpwindows.kernel.accounting import CUBE, GAUSSIAN, JOINT, Law
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.measure import Measurement
from dpwindows.kernel.untrusted.joint_moments import radius_shape
from dpwindows.kernel.untrusted.noise_scales import noise_variance

_GRID = np.linspace(0.0, 3.0, 13)


def half_width_factors(kurtosis: FloatArray | None, confidence: float, count: int) -> FloatArray:
    """For each of `count` estimates, its two-sided half width in standard errors.

    Args:
        kurtosis: excess kurtosis in [0, 3] of each estimate (0 throughout for Gaussian noise), or None where it is
            unknown: the larger of the two extremes is taken.
        confidence: coverage of each interval by itself, strictly between 0 and 1.
        count: number of estimates.
    """
    if kurtosis is None:
        return np.full(count, max(_factor(0.0, confidence), _factor(3.0, confidence)))
    if not kurtosis.any():
        return np.full(count, _factor(0.0, confidence))
    known = np.array([_factor(float(value), confidence) for value in _GRID])
    return np.asarray(np.interp(np.clip(kurtosis, 0.0, 3.0), _GRID, known))


def estimate_variance(measurement: Measurement, measure: Measure, squares: FloatArray) -> FloatArray:
    """Variance of estimates of one measure, in squared counts: those of a release, or of one step of a stream.

    Args:
        measurement: the noise they are made with.
        measure: what is estimated; an exact count is the difference of two independent estimates.
        squares: sum of squares of the weights that each estimate of one threshold puts on the noise.
    """
    each = noise_variance(measurement.law, measurement.scale, measurement.design.rows)
    return squares * each * len(measure.thresholds)


def half_widths(
    measurement: Measurement,
    measure: Measure,
    squares: FloatArray,
    fourths: Callable[[], FloatArray | None],
    confidence: float,
) -> FloatArray:
    """Half width of the interval of each of these estimates, in counts: a quantile of the noise that is in it.

    Args:
        measurement: as for `estimate_variance`.
        measure: as for `estimate_variance`.
        squares: as for `estimate_variance`.
        fourths: gives the sums of fourth powers of the same weights, or None where they are unknown.
        confidence: coverage of each interval by itself, strictly between 0 and 1.
    """
    std_errors = np.sqrt(estimate_variance(measurement, measure, squares))
    if measurement.law == GAUSSIAN:
        return _factor(0.0, confidence) * std_errors
    if measurement.law in JOINT:
        size = measurement.design.rows
        return joint_factor(measurement.law, size, confidence, alone=len(measure.thresholds) == 1) * std_errors
    known = fourths()
    # Independent estimates of equal law divide the kurtosis of their sum or difference.
    parts = len(measure.thresholds)
    kurtosis = None if known is None else 3 * known / np.maximum(squares, 1e-300) ** 2 / parts
    return half_width_factors(kurtosis, confidence, len(squares)) * std_errors


@lru_cache(maxsize=256)
def joint_factor(law: Law, size: int, confidence: float, *, alone: bool) -> float:
    """The half width, in standard errors, of one number of a vector of `size` under a joint law, or of sums of them."""
    single = _uniform if law == CUBE else _triangular
    shape = radius_shape(law, size)
    nodes, weights = _quadrature()
    # Radii over the root of their mean square.
    radii = scipy.special.gammaincinv(shape, nodes) / math.sqrt(shape * (shape + 1))
    found = []
    for inside in (single,) if alone else (_uniform, _triangular, _gaussian):

        def excess(x: float, inside: Callable[[FloatArray], FloatArray] = inside) -> float:
            return float(weights @ inside(x / radii)) - confidence

        found.append(float(scipy.optimize.brentq(excess, 0.0, _furthest(confidence), xtol=1e-9)))
    return max(found)


def _uniform(x: FloatArray) -> FloatArray:
    """P(|X| <= x) of a uniform number of variance 1."""
    return np.minimum(x / math.sqrt(3), 1.0)


def _triangular(x: FloatArray) -> FloatArray:
    """The same of the difference of two uniform numbers."""
    return np.asarray(1 - np.maximum(1 - x / math.sqrt(6), 0.0) ** 2)


def _gaussian(x: FloatArray) -> FloatArray:
    return np.asarray(scipy.special.erf(x / math.sqrt(2)))


def _furthest(confidence: float) -> float:
    """Beyond the half width of every law that has one here: a Laplace variable's, and more."""
    return float(-np.log1p(-confidence) / math.sqrt(2)) + _two_sided(confidence) + 1


@lru_cache(maxsize=256)
def _factor(kurtosis: float, confidence: float) -> float:
    if kurtosis == 0.0:
        return _two_sided(confidence)
    if kurtosis == 3.0:
        return float(-np.log1p(-confidence) / np.sqrt(2))
    # A sum of m Laplace variables is a Gaussian whose variance is drawn from a gamma law of shape m and mean 1.
    shape = 3.0 / kurtosis
    nodes, weights = _quadrature()
    variances = scipy.special.gammaincinv(shape, nodes) / shape

    def excess(x: float) -> float:
        return float(weights @ scipy.special.erf(x / np.sqrt(2 * variances))) - confidence

    return float(scipy.optimize.brentq(excess, 0.0, _furthest(confidence), xtol=1e-7))


def _two_sided(confidence: float) -> float:
    """The half width of an interval under the standard normal law."""
    # scipy.special would take longer to load than most commands.
    return -NormalDist().inv_cdf((1 - confidence) / 2)


@cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on (0, 1)."""
    nodes, weights = scipy.special.roots_legendre(128)
    return (nodes + 1) / 2, weights / 2
