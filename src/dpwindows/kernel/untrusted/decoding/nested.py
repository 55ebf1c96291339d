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

# Rows and columns of the blocks that large matrices are multiplied in.
_BLOCK = 256


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


def _blocks(places: int) -> list[slice]:
    return [slice(begin, min(begin + _BLOCK, places)) for begin in range(0, places, _BLOCK)]


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

    @cached_property
    def _weights(self) -> FloatArray:
        """The taps, as many as there are places in the extended range."""
        return np.array(self.taps[: self.steps + self.beyond], dtype=np.float64)

    @property
    def _gram(self) -> FloatArray:
        """`A'A`, from running sums of the products of taps: of whole numbers, so exactly."""
        places, weights = self.steps + self.beyond, self._weights
        found = np.zeros((self.steps, self.steps))
        for lag in range(min(self.steps, len(weights))):
            sums = np.cumsum(weights[: len(weights) - lag] * weights[lag:])
            along = sums[np.minimum(places - 1 - np.arange(lag, self.steps), len(sums) - 1)]
            for side in (found[lag:], found[:, lag:].T):
                np.einsum("ii->i", side[:, : len(along)])[:] = along
        return found

    @cached_property
    def _inverse(self) -> FloatArray:
        """`C^-1`, lower-triangular."""
        # Cholesky's factor of the matrix with rows and columns reversed, reversed: lower-triangular, C'C = A'A.
        lower = np.linalg.cholesky(self._gram[::-1, ::-1])
        inverse, _ = scipy.linalg.lapack.dtrtri(lower[::-1, ::-1], lower=0)
        return np.asarray(inverse).T

    @property
    def _turned(self) -> FloatArray:
        """`C'^-1 A'`, upper-triangular: large for long ranges, and quickly worked out."""
        inverse, weights, places = self._inverse, self._weights, self.steps + self.beyond
        found = np.zeros((self.steps, places))
        for some in _blocks(places):
            # The columns of A' that these rows of A are have no weights but on the starts so many taps before.
            near = slice(max(0, some.start - len(weights) + 1), min(some.stop, self.steps))
            lags = np.arange(some.start, some.stop)[:, None] - np.arange(near.start, near.stop)
            axis = np.where((lags >= 0) & (lags < len(weights)), weights[np.clip(lags, 0, len(weights) - 1)], 0.0)
            found[: near.stop, some] = inverse[near, : near.stop].T @ axis.T
        return found

    def exist(self, beyond: int = 0) -> NDArray[np.bool_]:
        """Which cells of the square, with so many places beyond it, stand for windows."""
        places = np.arange(self.steps + beyond)
        return np.asarray(places[:, None] + places >= self.steps - 1)

    def decode(self, measured: FloatArray) -> FloatArray:
        """Estimates in the square, from what was measured row by row; for windows that do not exist, whatever.

        Every factor is a triangle, and so is what stands for windows. So matrices are multiplied block by block, blocks
        of nothing are left out, and each product takes the place of what it is made of: the order of blocks is such
        that none is needed once it is replaced.
        """
        inverse, turned, steps = self._inverse, self._turned, self.steps
        found = np.zeros((turned.shape[1], turned.shape[1]))
        found[self.exist(self.beyond)] = measured
        every, starts = _blocks(len(found)), _blocks(steps)
        for ends in every:
            since = max(0, steps - ends.stop)
            for some in starts:
                if some.stop > since:
                    inner = slice(max(some.start, since), None)
                    found[some, ends] = turned[some, inner] @ found[inner, ends]
        for some in starts:
            for ends in starts:
                if some.stop + ends.stop > steps:
                    found[some, ends] = found[some, ends.start :] @ turned[ends, ends.start :].T
        del turned
        found = found[:steps, :steps]
        found[~self.exist()] = 0.0
        for ends in starts:
            inner_first = max(0, steps - ends.stop)
            for some in reversed(starts):
                if some.stop > inner_first:
                    inner = slice(inner_first, some.stop)
                    found[some, ends] = inverse[some, inner] @ found[inner, ends]
        for some in starts:
            inner_first = max(0, steps - some.stop)
            for ends in reversed(starts):
                if ends.stop > inner_first:
                    inner = slice(inner_first, ends.stop)
                    found[some, ends] = found[some, inner] @ inverse[ends, inner].T
        return found

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
