r"""The best constants known for cumulative counts under Gaussian noise, per unit of its scale, computed exactly.

A matrix mechanism measures `R x` for the increments x of the series and releases `L (R x + z)`, where `L R` is the
lower triangle of ones. The error at step t is the norm of row t of L, times the largest norm of what one neighbour
changes in `R x`. Neighbours differ in

- *one end*, an item added or removed: one increment changes by one, so the sensitivity is R's largest column norm;
- *two ends*, one event, or one item changed: one increment rises and another falls (or the end is beyond the horizon),
  so it is the largest norm of a column, or of a difference of two.

| | one end, max error | two ends, max error | source |
|---|---|---|---|
| square root | `1.0663 + ln(T)/pi` | `(sqrt(2)/pi) ln(T) + O(1)` | arXiv 2202.11205, 2211.05006 |
| normalised square root | `0.846 + ln(T)/pi` | at most sqrt(2) times that | arXiv 2509.14334 |
| limit | `0.7019 + ln(T)/pi` | `dpwindows.strategies.search.limits` | arXiv 2509.14334; below |

In the square root of the triangle, the filter `(1 - B)^(-1/2)`, one end costs `sum c_j^2` in squared norm, two ends up
to twice that: that is the price of event level, and calibrating for one end where there are two would be a bug.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from dpwindows.ask.privacy import EventLevel, ItemAddRemove
from dpwindows.ask.queries import Cumulative
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.strategies.search.fractional import real_taps
from dpwindows.strategies.search.limits import limit

Ends = Literal[1, 2]


@dataclass(frozen=True)
class Multiplier:
    """Standard error per unit of Gaussian noise: root mean square over the steps, and largest."""

    rms: float
    max: float


def square_root(steps: int, ends: Ends) -> Multiplier:
    """The square root of the triangle on both sides (arXiv 2202.11205).

    R = L is the Toeplitz matrix with first column `c_j = binomial(2j, j) / 4^j`: the series of `(1 - B)^(-1/2)`,
    whose square `1/(1 - B)` is the triangle. Row t of L and column T - t + 1 of R have squared norm
    `sum_{j<t} c_j^2`. So for one end the largest error is `sum_{j<T} c_j^2`, which tends to
    `(ln T + gamma + 4 ln 2)/pi = ln(T)/pi + 1.0663` (`c_j^2` is `1/(pi j) + O(1/j^2)`).
    """
    root = real_taps(-0.5, 1.0, steps)
    variances = np.cumsum(root**2)
    return _multiplier(variances, _sensitivity(_triangle(root), ends))


def normalised_square_root(steps: int, ends: Ends) -> Multiplier:
    """The square root with columns of R scaled to norm 1 (arXiv 2509.14334): no increment is charged more than another.

    `R = C D^-1` with C the square root and D its column norms, so `L = A R^-1 = A D C^-1` for the triangle A = C C.
    For one end the sensitivity is 1. For two ends it is at most sqrt(2): inner products of columns are >= 0.
    """
    root = real_taps(-0.5, 1.0, steps)
    norms = np.sqrt(np.cumsum(root**2))[::-1]
    inverse = _triangle(real_taps(0.5, 1.0, steps))
    left = np.cumsum(norms[:, None] * inverse, axis=0)
    return _multiplier((left**2).sum(axis=1), _sensitivity(_triangle(root) / norms, ends))


def gaussian_limit(steps: int, ends: Ends) -> float:
    """A lower bound on the rms error (hence on the largest) of any Gaussian noise, whatever its covariance.

    `dpwindows.strategies.search.limits` on all suffixes (one end) or all intervals (two ends), and for one end also
    `mean_singular_value`: equal weights, which long horizons need no search for.
    """
    found = limit(Cumulative(), 1, ItemAddRemove() if ends == 1 else EventLevel(), steps)
    assert found is not None
    return max(found, mean_singular_value(steps)) if ends == 1 else found


def mean_singular_value(steps: int) -> float:
    """`(1/T) sum_{j<=T} 1/(2 sin((2j-1) pi / (4T+2)))`, which tends to `ln(T)/pi + 0.7019`: a limit for one end.

    Proof. The duality of `dpwindows.strategies.search.dual` with equal weights 1/T on the changes 1 on [x, T]: `X = A
    A'/T` for the triangle A, so `sqrt(tr C / T) >= tr X^(1/2) / sqrt(T) = tr (A A')^(1/2) / T`, the mean of A's
    singular values, in closed form. The constant is `(gamma + ln(16/pi))/pi`. QED.
    """
    angles = (2 * np.arange(1, steps + 1) - 1) * (math.pi / (4 * steps + 2))
    return float((0.5 / np.sin(angles)).mean())


def _triangle(first_column: FloatArray) -> FloatArray:
    return np.asarray(scipy.linalg.toeplitz(first_column, np.zeros(len(first_column))))


def _sensitivity(right: FloatArray, ends: Ends) -> float:
    gram = right.T @ right
    squares = np.diagonal(gram)
    if ends == 1:
        return math.sqrt(squares.max())
    differences = squares[:, None] + squares[None, :] - 2 * gram
    return math.sqrt(max(squares.max(), differences.max()))


def _multiplier(variances: FloatArray, sensitivity: float) -> Multiplier:
    return Multiplier(math.sqrt(variances.mean()) * sensitivity, math.sqrt(variances.max()) * sensitivity)
