"""Windows measured with those inside them read back, and with which error.

Values of windows come by length and start (`kernel/maps/lengths.py`), or by start from the last one back and by end
from the first one on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.maps.lengths import by_ends, by_starts
from dpwindows.kernel.untrusted.decoding.filters import inverse_taps, invert_filter


def nested_estimates(taps: tuple[int, ...], by_start: FloatArray) -> FloatArray:
    """The windows' values: the inverse filter along lengths, for windows with one start and for those with one end."""
    return by_starts(invert_filter(taps, by_ends(invert_filter(taps, by_start))))


def nested_weights(taps: tuple[int, ...], by_start: FloatArray) -> FloatArray:
    """What a combination of estimates puts on the numbers measured: `nested_estimates`, transposed."""
    by_end = by_ends(invert_filter(taps, by_start[::-1])[::-1])
    return by_starts(invert_filter(taps, by_end[::-1])[::-1])


def nested_moments(taps: tuple[int, ...], longest: int, power: int) -> FloatArray:
    """Second or fourth moments of the weights of a window's estimate, for lengths 1..longest.

    With c the inverse taps the weight of the window from a + i to b - j is `c_i c_j`, for i + j less than the length.
    """
    powers = inverse_taps(taps, longest) ** power
    return np.cumsum(np.convolve(powers, powers)[:longest])


@dataclass(frozen=True)
class ExtendedLeastSquares:
    """Least squares over the windows that exist, from them and those that reach beyond the range.

    Let A be the filter on one axis (steps + beyond rows), and C lower-triangular with `C'C = A'A`. Starts are taken
    last to first and ends first to last, so M = A x A (a tensor product) and C x C give each window weights on windows
    inside it alone: with D the cells of windows that do not exist and U the others, `(C x C)_DU = 0`. So the rows of M
    that are measured, which are all with weights on U, have on U the Gram matrix `(C x C)_UU' (C x C)_UU`, and least
    squares is `(C x C)_UU^-1 (C x C)_UU'^-1 (M'y)_U`. Both inverses are those of triangles: restricting `C^-1 x C^-1`
    to U gives the first, and its transpose the second. The covariance is `(C x C)_UU^-1 (C x C)_UU'^-1`, so variances
    are sums of squares of `C^-1 x C^-1` over U. Nothing is iterated.
    """

    taps: tuple[int, ...]
    steps: int
    beyond: int

    @property
    def _axis(self) -> FloatArray:
        """A."""
        column = np.zeros(self.steps + self.beyond)
        known = self.taps[: len(column)]
        column[: len(known)] = np.array(known, dtype=np.float64)
        return np.asarray(scipy.linalg.toeplitz(column, np.zeros(self.steps)))

    @cached_property
    def _inverse(self) -> FloatArray:
        """`C^-1`."""
        # Cholesky's factor of the matrix with rows and columns reversed, reversed: lower-triangular, C'C = A'A.
        axis = self._axis
        upper = np.linalg.cholesky((axis.T @ axis)[::-1, ::-1])[::-1, ::-1]
        inverse, _ = scipy.linalg.lapack.dtrtri(upper, lower=0)
        return np.asarray(inverse).T

    @property
    def _turned(self) -> FloatArray:
        """`C'^-1 A'`: large for long ranges, and quickly worked out."""
        return np.asarray(self._inverse.T @ self._axis.T)

    def exist(self, beyond: int = 0) -> NDArray[np.bool_]:
        """Which cells of the square, with so many places beyond it, stand for windows."""
        places = np.arange(self.steps + beyond)
        return np.asarray(places[:, None] + places >= self.steps - 1)

    def decode(self, measured: FloatArray) -> FloatArray:
        """Estimates in the square, from what was measured row by row."""
        inverse, turned = self._inverse, self._turned
        found = np.zeros((turned.shape[1], turned.shape[1]))
        found[self.exist(self.beyond)] = measured
        # Large for long ranges: no more than two are held at a time.
        found = turned @ found
        found = found @ turned.T
        del turned
        found[~self.exist()] = 0.0
        found = inverse @ found
        return np.asarray(found @ inverse.T)

    def weights(self, combination: FloatArray) -> FloatArray:
        """What a combination, in the square, puts on each number measured: `decode`, transposed."""
        inverse, turned = self._inverse, self._turned
        fitted = np.where(self.exist(), inverse.T @ combination @ inverse, 0.0)
        return np.asarray((turned.T @ fitted @ turned)[self.exist(self.beyond)])

    def variance(self) -> FloatArray:
        """Sums of squares over the windows that exist, in the square."""
        squares = self._inverse**2
        # For each start and end: the sum over all starts with which that end makes a window.
        return np.asarray(np.cumsum(squares[:, ::-1], axis=1) @ squares.T)
