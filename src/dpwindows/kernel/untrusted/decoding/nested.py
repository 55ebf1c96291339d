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


def nested_moments(taps: tuple[int, ...], longest: int, power: int, weights: tuple[int, ...] = ()) -> FloatArray:
    """Second or fourth moments of the weights of a window's estimate, for lengths 1..longest.

    With c the inverse taps the weight of the number of a + i..b - j is `c_i c_j`, for i + j less than the length, over
    what that number itself is weighed with.
    """
    powers = inverse_taps(taps, longest) ** power
    return np.convolve(np.convolve(powers, powers)[:longest], real_weights(weights, longest) ** -power)[:longest]


def real_weights(weights: tuple[int, ...], longest: int) -> FloatArray:
    """By length, shape (longest,): 1 where there are none."""
    return np.array(weights[:longest], dtype=np.float64) if weights else np.ones(longest)


def _blocks(places: int, first: int = 0) -> list[slice]:
    return [slice(begin, min(begin + _BLOCK, places)) for begin in range(first, places, _BLOCK)]


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

    def _gram_reversed(self) -> FloatArray:
        """The lower half of `A'A`, its rows and columns reversed: sums of products of taps, whole numbers, so exact."""
        weights, found = self._weights, np.zeros((self.steps, self.steps), order="F")
        for lag in range(min(self.steps, len(weights))):
            sums = np.cumsum(weights[: len(weights) - lag] * weights[lag:])
            reach = np.minimum(self.beyond + np.arange(self.steps - lag), len(sums) - 1)
            np.einsum("ii->i", found[lag:, : self.steps - lag])[:] = sums[reach]
        return found

    @cached_property
    def _inverse(self) -> FloatArray:
        """`C^-1`, lower-triangular."""
        # Cholesky's factor of the matrix with rows and columns reversed, reversed: lower-triangular, C'C = A'A.
        lower = np.linalg.cholesky(self._gram_reversed())
        inverse, _ = scipy.linalg.lapack.dtrtri(lower[::-1, ::-1], lower=0)
        return np.asarray(inverse).T

    def _turned(self, starts: slice) -> FloatArray:
        """Some rows of `C'^-1 A'`, which is upper-triangular, from the place of the first of them on."""
        inverse, weights, places = self._inverse, self._weights, self.steps + self.beyond
        found = np.zeros((starts.stop - starts.start, places - starts.start))
        for ends in _blocks(places, starts.start):
            # Columns of A' have no weights but on so many starts before.
            near = slice(max(starts.start, ends.start - len(weights) + 1), min(ends.stop, self.steps))
            if near.start < near.stop:
                lags = np.arange(ends.start, ends.stop)[:, None] - np.arange(near.start, near.stop)
                axis = np.where((lags >= 0) & (lags < len(weights)), weights[np.clip(lags, 0, len(weights) - 1)], 0.0)
                found[:, ends.start - starts.start : ends.stop - starts.start] = inverse[near, starts].T @ axis.T
        return found

    def exist(self, beyond: int = 0) -> NDArray[np.bool_]:
        """Which cells of the square, with so many places beyond it, stand for windows."""
        places = np.arange(self.steps + beyond)
        return np.asarray(places[:, None] + places >= self.steps - 1)

    def decode(self, measured: FloatArray) -> FloatArray:
        """Estimates in the square, from what was measured row by row; for windows that do not exist, 0.

        Every factor is a triangle, and so is what stands for windows. So matrices are multiplied block by block, and
        blocks of zeros are left out. Each product takes the place of what it is made of, in an order in which that is
        not needed any more: two squares are held.
        """
        _ = self._inverse  # what takes more memory while it is found is found first
        found = np.zeros((self.steps + self.beyond, self.steps + self.beyond))
        found[self.exist(self.beyond)] = measured
        self._turn(found)
        self._turn(found[: self.steps].T)
        found = found[: self.steps, : self.steps]
        found[~self.exist()] = 0.0
        self._undo(found)
        self._undo(found.T)
        return found

    def _turn(self, square: FloatArray) -> None:
        """Multiply by `C'^-1 A'` from the left, in place, where windows exist."""
        for starts in _blocks(self.steps):
            turned = self._turned(starts)
            for ends in _blocks(square.shape[1]):
                if starts.stop + ends.stop > self.steps:
                    since = max(starts.start, self.steps - ends.stop)
                    square[starts, ends] = turned[:, since - starts.start :] @ square[since:, ends]

    def _undo(self, square: FloatArray) -> None:
        """Multiply what stands for windows, and is 0 elsewhere, by `C^-1` from the left, in place."""
        for starts in reversed(_blocks(self.steps)):
            for ends in _blocks(self.steps):
                if starts.stop + ends.stop > self.steps:
                    inner = slice(max(0, self.steps - ends.stop), starts.stop)
                    square[starts, ends] = self._inverse[starts, inner] @ square[inner, ends]

    def weights(self, combination: FloatArray) -> FloatArray:
        """What a combination, in the square, puts on each number measured: `decode`, transposed."""
        inverse, turned = self._inverse, self._turned(slice(0, self.steps))
        fitted = np.where(self.exist(), inverse.T @ combination @ inverse, 0.0)
        return np.asarray((turned.T @ fitted @ turned)[self.exist(self.beyond)])

    def variance(self) -> FloatArray:
        """Sums of squares over the windows that exist, in the square."""
        squares = self._inverse**2
        # For each start and end: the sum over all starts with which that end makes a window.
        return np.asarray(np.cumsum(squares[:, ::-1], axis=1) @ squares.T)
