"""How exact an estimate is: its variance, and the half width of its interval from the noise that really is in it.

An estimate's error X is a weighted sum of noise on whole numbers. For one such number, and for few of one weight, the
half width is the exact quantile (`dpwindows.reading.lattice_noise`). For other sums it is a bound, from the sums of the
squares and of the fourth powers of the weights alone: the half width of the sum Y, where every number is smoothed,
moved outwards by what smoothing may hide (same file). Y is continuous.

*The quantile of Y under Laplace noise.* Y is Gaussian given its variance, a weighted sum of exponential variables.
Only its variance and its excess kurtosis `3 sum c^4 / (sum c^2)^2` are known, and the wider is taken of two laws of
that kurtosis: the sum of m (real) Laplace variables of one weight, and one Laplace variable beside a Gaussian. Between
them, to 0.06 points of coverage or less, lie the sums of other weights (found by a search over sums of two weights and
a Gaussian, which `tests/plan/test_intervals.py` repeats; no proof).

*Under a joint law* Y is, given the radius, a sum of uniform variables on intervals of one length. Its tail is taken as
the largest, at every place, of those of one such variable, of the difference of two and of the Gaussian of the same
variance (searched and tested likewise), over the law of the radius.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np
import scipy

from dpwindows.ask.queries import Measure
from dpwindows.kernel.accounting import CUBE, GAUSSIAN, JOINT, LAPLACE
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.measure import Measurement
from dpwindows.reading.lattice_noise import Noise, Sums, lattice_quantile, shifted
from dpwindows.reading.noise_moments import noise_variance, radius_shape, radius_weights

# Excess kurtoses at which quantiles are worked out; those of few weights change fastest near 0.
_GRID = 3.0 * np.linspace(0.0, 1.0, 25) ** 2
# Where laws of variance 1 are inverted: between minus and plus half of this, in so many cells.
_PERIOD, _CELLS = 64.0, 2**15
# Scales of joint noise below which its radii are summed over; above, their law is that of a gamma variable.
_SUMMED = 4.0
# How near to that of one number a kurtosis is, for rounding; and what rounding may add to a sum of weights that are no
# powers of 2, as a share of their quantile.
_SINGLE, _OUTWARDS = 1e-13, 1e-6


def estimate_variance(measurement: Measurement, measure: Measure, squares: FloatArray) -> FloatArray:
    """Variance of estimates of one measure, in squared counts: those of a release, or of one step of a stream.

    `squares` are the sums of squares of the weights that each estimate of one threshold puts on the noise; an exact
    count is the difference of two independent estimates.
    """
    noise = noise_of(measurement)
    return squares * noise_variance(noise.law, noise.scale, noise.size) * len(measure.thresholds)


def noise_of(measurement: Measurement) -> Noise:
    """The noise in each number of a measurement; those of a stream are counted over all its steps only if need be."""
    size = measurement.design.rows if measurement.law in JOINT else 1
    return Noise(measurement.law, measurement.scale, size)


def half_widths(
    measurement: Measurement,
    measure: Measure,
    squares: FloatArray,
    fourths: Callable[[], FloatArray | None],
    confidence: float,
) -> FloatArray:
    """Half width of the interval of each of these estimates, in counts: a quantile of the noise that is in it.

    Arguments are those of `estimate_variance`; `fourths` gives the sums of fourth powers of the same weights, None if
    they are unknown, and `confidence` is the coverage of each interval by itself, strictly between 0 and 1.
    """
    std_errors = np.sqrt(estimate_variance(measurement, measure, squares))
    noise, parts = noise_of(measurement), len(measure.thresholds)
    if noise.deviation == 0.0:
        return std_errors
    known = None if noise.fine and noise.law != LAPLACE else fourths()
    # Independent estimates of equal law divide the kurtosis of their sum or difference.
    kurtosis = None if known is None else 3 * known / np.maximum(squares, 1e-300) ** 2 / parts
    single = np.zeros(len(squares), dtype=bool)
    if kurtosis is not None and not noise.fine:
        single = abs(kurtosis * parts - 3) <= 3 * _SINGLE
    if single.all() and len(single):
        return lattice_half_width(np.sqrt(squares), noise, parts, confidence)
    # Numbers of a joint law are measured as they are.
    widths = half_width_factors(Sums.of(noise, kurtosis), confidence, alone=parts == 1) * std_errors
    if single.any():
        widths[single] = lattice_half_width(np.sqrt(squares[single]), noise, parts, confidence)
    return widths


def lattice_half_width(
    weights: FloatArray, noise: Noise, draws: int, confidence: float, *, paired: bool = False
) -> FloatArray:
    """The half width, in counts, of sums of `draws` independent numbers (`lattice_quantile`) of one weight each."""
    # The errors of an interval's ends must not exclude what lies on them.
    exact = np.frexp(weights)[0] == 0.5
    outwards = np.where(exact, 1.0, 1.0 + _OUTWARDS)
    return np.asarray(weights * outwards * lattice_quantile(noise, draws, confidence, paired=paired))


def half_width_factors(sums: Sums, confidence: float, *, alone: bool = False) -> FloatArray:
    """Half widths of intervals, in standard errors of these sums: a bound (module docstring).

    `confidence` is that of each interval by itself; `alone` tells whether numbers of a joint law are not summed.
    """

    def quantile(tail: float) -> FloatArray:
        each = (_quantile(noise, sums.kurtosis, 1 - tail, alone) for noise in sums.kinds)
        return np.asarray(np.max(np.broadcast_arrays(*each), axis=0))

    if len(sums.kinds) > 1 and not all(noise.smooth for noise in sums.kinds):
        # Each kind by itself, with its part of the tail: n standard errors sum to at most sqrt(n) times their root.
        share = 1 - (1 - confidence) / len(sums.kinds)
        apart = [half_width_factors(Sums.of(noise), share).max() for noise in sums.kinds]
        return np.array([max(apart) * math.sqrt(len(sums.kinds))])
    return shifted(quantile, sums, 1 - confidence)


def _quantile(noise: Noise, kurtosis: FloatArray | None, confidence: float, alone: bool) -> FloatArray:
    """The half width, in standard errors, of a sum of smoothed noise."""
    if noise.law == GAUSSIAN:
        return np.array([_two_sided(confidence)])
    if noise.law in JOINT:
        return np.array([joint_factor(noise, confidence, alone=alone)])
    known = _laplace_factors(confidence)
    return known.max(keepdims=True) if kurtosis is None else np.interp(kurtosis, _GRID, known)


@lru_cache(maxsize=256)
def joint_factor(noise: Noise, confidence: float, *, alone: bool) -> float:
    """Half width over standard error, of one number of a vector under a joint law, or of sums of them."""
    insides = (_uniform if noise.law == CUBE else _triangular,) if alone else (_uniform, _triangular, _gaussian)
    radii, weights = _radii(noise)

    def excess(x: float) -> float:
        return float(weights @ np.minimum.reduce([inside(x / radii) for inside in insides])) - confidence

    return float(scipy.optimize.brentq(excess, 0.0, 2 * _furthest(confidence), xtol=1e-9))


def _radii(noise: Noise) -> tuple[FloatArray, FloatArray]:
    """Lengths of intervals over the root of their mean square, and their weights."""
    shape = radius_shape(noise.law, noise.size)
    known = radius_weights(noise.law, noise.scale, noise.size) if noise.scale < _SUMMED else None
    if known is None:
        nodes, weights = scipy.special.roots_legendre(128)
        return scipy.special.gammaincinv(shape, (nodes + 1) / 2) / math.sqrt(shape * (shape + 1)), weights / 2
    lengths, weights = known[0] + (0.5 if noise.law == CUBE else 1.0), known[1]
    return lengths / math.sqrt(float(weights @ lengths**2)), weights


def _uniform(x: FloatArray) -> FloatArray:
    """P(|X| <= x) of a uniform number of variance 1."""
    return np.minimum(x / math.sqrt(3), 1.0)


def _triangular(x: FloatArray) -> FloatArray:
    """P(|X| <= x) of the difference of two uniform numbers, of variance 1."""
    return np.asarray(1 - np.maximum(1 - x / math.sqrt(6), 0.0) ** 2)


def _gaussian(x: FloatArray) -> FloatArray:
    return np.asarray(scipy.special.erf(x / math.sqrt(2)))


def _furthest(confidence: float) -> float:
    """Beyond the half width of every law that has one here: a Laplace variable's, and more."""
    return float(-np.log1p(-confidence) / math.sqrt(2)) + _two_sided(confidence) + 1


@lru_cache(maxsize=256)
def _laplace_factors(confidence: float) -> FloatArray:
    """The half width, in standard errors, of sums of Laplace noise of each kurtosis of the grid.

    Rounding makes them at most 0.03 % too short where 1e-12 is left beyond them, and less before.
    """
    ends = _PERIOD / _CELLS * (np.arange(_CELLS // 2) + 0.5)
    bounds = np.max([[np.interp(confidence, one, ends) for one in law] for law in _laplace_coverage()], axis=0)
    # One variable alone has a formula.
    return np.array([_two_sided(confidence), *bounds[:-1], -np.log1p(-confidence) / math.sqrt(2)])


@cache
def _laplace_coverage() -> FloatArray:
    """P(|X| <= x) of such sums of variance 1, x the end of a cell: shape (2 laws, kurtoses above 0, cells)."""
    share = np.sqrt(_GRID[1:, None] / 3)
    square = (2 * math.pi / _PERIOD * np.arange(_CELLS // 2 + 1)) ** 2
    # Characteristic functions of m equal variables, and of one beside a Gaussian, where each has the variance 1.
    equal = (1 + square * share**2 / 2) ** -(share**-2)
    beside = np.exp((share - 1) * square / 2) / (1 + share * square / 2)
    # Probabilities of cells, and of the intervals around 0 that end with a cell.
    cells = np.fft.irfft(np.stack([equal, beside]) * np.sinc(np.arange(_CELLS // 2 + 1) / _CELLS), _CELLS)
    return np.asarray(2 * cells[..., : _CELLS // 2].cumsum(axis=-1) - cells[..., :1])


def _two_sided(confidence: float) -> float:
    """The half width of an interval under the standard normal law."""
    # scipy.special would take longer to load than most commands.
    return -NormalDist().inv_cdf((1 - confidence) / 2)
