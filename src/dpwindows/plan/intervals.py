"""Half widths of pointwise intervals: quantiles of the noise that really is in an estimate.

An estimate's error is a weighted sum of independent noise values. Under Gaussian noise it is Gaussian. Under Laplace
noise its tails lie between those of one Laplace variable and the Gaussian; how far is told by the excess kurtosis
`3 sum c^4 / (sum c^2)^2`. The quantile used is that of a sum of m independent Laplace variables of equal scale, with m
(real) chosen to match the kurtosis: exact for one variable, for m equal weights and in the Gaussian limit, and within
a fraction of a percent between.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from scipy import optimize, special

from dpwindows.kernel.maps.integer_maps import FloatArray

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


def half_widths(
    std_errors: FloatArray, variance: FloatArray, fourth_moment: FloatArray | None, parts: int, confidence: float
) -> FloatArray:
    """Half widths of intervals under Laplace noise, in the unit of the standard errors.

    Args:
        std_errors: of the estimates.
        variance: sum of squares of the weights each estimate puts on the noise.
        fourth_moment: sum of their fourth powers, or None where it is unknown.
        parts: how many independent estimates each is the sum or difference of, which divides the kurtosis.
        confidence: coverage of each interval by itself.
    """
    kurtosis = None
    if fourth_moment is not None:
        kurtosis = 3 * fourth_moment / np.maximum(variance, 1e-300) ** 2 / parts
    return half_width_factors(kurtosis, confidence, len(std_errors)) * std_errors


@lru_cache(maxsize=256)
def _factor(kurtosis: float, confidence: float) -> float:
    if kurtosis == 0.0:
        return float(special.ndtri((1 + confidence) / 2))
    if kurtosis == 3.0:
        return float(-np.log1p(-confidence) / np.sqrt(2))
    # A sum of m Laplace variables is a Gaussian whose variance is drawn from a gamma law of shape m and mean 1.
    shape = 3.0 / kurtosis
    nodes, weights = _quadrature()
    variances = special.gammaincinv(shape, nodes) / shape

    def excess(x: float) -> float:
        return float(weights @ special.erf(x / np.sqrt(2 * variances))) - confidence

    upper = -np.log1p(-confidence) / np.sqrt(2) + special.ndtri((1 + confidence) / 2) + 1
    return float(optimize.brentq(excess, 0.0, upper, xtol=1e-7))


@cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on (0, 1)."""
    nodes, weights = special.roots_legendre(128)
    return (nodes + 1) / 2, weights / 2
