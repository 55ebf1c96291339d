"""The reader of crossed counters: least squares from every row and every column of a block, in floating point.

With the names of `dpwindows.kernel.families.crossed` the Gram matrix is a sum of two products,

    M'M = (J L'L J) x diag(c^2) + diag(r^2) x (L'L).

With `U' diag(r^2) U = 1`, `U' J L'L J U = diag(mu)` and `V' diag(c^2) V = 1`, `V' L'L V = diag(nu)` (two symmetric
eigenproblems of the sizes of the axes) its inverse is `(U x V) W (U x V)'` with W diagonal, `W_ij = 1 / (mu_i + nu_j)`:
least squares is a few products of matrices of those sizes, and its covariance is that inverse.

Windows with a > b hold nothing, and their counts are known to be 0. Telling that to least squares for those next to
the diagonal, a = b + 1, is nearly as good as telling it for all. With S the covariance of these estimates alone, least
squares given that they are 0 is the estimate less `Cov(., pinned) S^-1 (pinned estimates)`, and its variance is less
by the diagonal of `Cov(., pinned) S^-1 Cov(pinned, .)`. Covariances come from W in few terms, its singular values s_r
falling geometrically, `W = sum_r s_r p_r q_r'`:

    Cov((a, b), (a', b')) = sum_r s_r (U diag(p_r) U')[a, a'] (V diag(q_r) V')[b, b'].

Pinning keeps the estimates unbiased whatever S is taken to be. It is done where it does not take too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.kernel.families.crossed import CrossedFilters
from dpwindows.reading.moments import FloatArray

# Fourth moments are formed from the explicit decoder for blocks of up to this many windows.
_DENSE = 1024
# Zeros are pinned where their variance takes no more multiplications than this: about a second.
_PINNED = 12 * 10**9
# Axes beyond this many positions are factored the faster way.
_LONG = 768
# Starts whose covariances with the pinned windows are held at a time.
_CHUNK = 16
# Singular values of W are kept down to this part of the largest.
_KEPT = 1e-10


def filter_matrix(taps: Sequence[int], size: int) -> FloatArray:
    """The filter of an axis as a matrix, shape (size, size)."""
    column = np.zeros(size)
    kept = taps[:size]
    column[: len(kept)] = kept
    return np.asarray(scipy.linalg.toeplitz(column, np.zeros(size)))


@dataclass(frozen=True)
class CrossedReader:
    """Reads `CrossedFilters`."""

    map: CrossedFilters

    @property
    def rows(self) -> int:
        """How many numbers are measured."""
        return self.map.rows

    def decode(self, measured: FloatArray) -> FloatArray:
        """Least squares, the pinned windows known to be 0: shape (rows,) to (starts, ends)."""
        along_ends, along_starts = measured.reshape(2, *self.map.shape)
        starts, ends = self.map.shape
        right = (self._start_weights[:, None] * along_ends) @ filter_matrix(self.map.taps, ends)
        right += (filter_matrix(self.map.taps, starts).T @ along_starts)[::-1] * self._end_weights
        estimate = self._solve(right)
        if self._pins:
            pinned = np.arange(self._pins)
            excess = np.zeros(self.map.shape)
            excess[pinned + 1, pinned] = scipy.linalg.cho_solve((self._root, True), estimate[pinned + 1, pinned])
            estimate -= self._solve(excess)
        return estimate

    def _solve(self, right: FloatArray) -> FloatArray:
        """`(M'M)^-1` applied to an array of shape (starts, ends)."""
        by_start, by_end, eigenvalues = self._factors
        return np.asarray(by_start @ ((by_start.T @ right @ by_end) / eigenvalues) @ by_end.T)

    def moment(self, power: int) -> FloatArray | None:
        """Second or fourth moments of the weights of the estimates, shape (starts, ends)."""
        return self.variance() if power == 2 else self.fourth_moment()

    def variance(self) -> FloatArray:
        """Variance of the estimates asked for, shape (starts, ends); 0 for the rest."""
        by_start, by_end, eigenvalues = self._factors
        variance = self._asked * (by_start**2 @ (1 / eigenvalues) @ (by_end**2).T)
        if not self._pins:
            return variance
        along_starts, along_ends, _ = self._pinning
        starts, ends = self.map.shape
        # A block that looks the same read backwards is worked out for a + b < ends only.
        half = self._symmetric
        for first in range(0, (starts + 1) // 2 if half else starts, _CHUNK):
            last = min(first + _CHUNK, starts)
            until = min(last + self._reach - 1, ends - first if half else ends)
            covariance = along_starts[:, :, first:last].transpose(0, 2, 1) @ along_ends[:, :, first:until]
            by_pin = covariance.reshape(self._pins, -1)
            parts = _even_and_odd(by_pin) if half else (by_pin,)
            explained = sum(_squared_solution(root, part) for root, part in zip(self._roots, parts, strict=True))
            less = np.reshape(explained, (last - first, -1))
            variance[first:last, first:until] -= less * self._asked[first:last, first:until]
        if not half:
            return variance
        return np.where(np.add.outer(np.arange(ends), np.arange(ends)) < ends, variance, variance[::-1, ::-1].T)

    def fourth_moment(self) -> FloatArray | None:
        """From the explicit decoder for up to 1,024 windows, None beyond."""
        if self.map.rows > 2 * _DENSE:
            return None
        total = np.zeros(self.map.shape)
        for unit in np.eye(self.map.rows):
            total += self.decode(unit) ** 4
        return total

    def decoder(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """U, V, W, and Cholesky's factor of S (empty where nothing is pinned): all that decoding needs."""
        by_start, by_end, eigenvalues = self._factors
        return by_start, by_end, 1 / eigenvalues, self._root if self._pins else np.zeros((0, 0))

    def transposed(self, square: FloatArray) -> FloatArray:
        """What a combination of estimates puts on each number measured: pins, least squares, filters and weights."""
        if self._pins:
            pinned = np.arange(self._pins)
            square = square.copy()
            square[pinned + 1, pinned] -= scipy.linalg.cho_solve(
                (self._root, True), self._solve(square)[pinned + 1, pinned]
            )
        solved = self._solve(square)
        starts, ends = solved.shape
        along_ends = self._start_weights[:, None] * (solved @ filter_matrix(self.map.taps, ends).T)
        weighed = (solved * self._end_weights)[::-1]
        return np.concatenate([along_ends.ravel(), (filter_matrix(self.map.taps, starts) @ weighed).ravel()])

    @property
    def _start_weights(self) -> FloatArray:
        return np.array(self.map.start_weights, dtype=np.float64)

    @property
    def _end_weights(self) -> FloatArray:
        return np.array(self.map.end_weights, dtype=np.float64)

    @property
    def _symmetric(self) -> bool:
        """Whether the block looks the same read backwards, ends for starts."""
        return self.map.start_weights == self.map.end_weights[::-1]

    @property
    def _reach(self) -> int:
        return min(self.map.longest or len(self.map.end_weights), len(self.map.end_weights))

    @property
    def _asked(self) -> NDArray[np.bool_]:
        starts, ends = self.map.shape
        spans = np.arange(ends)[None, :] - np.arange(starts)[:, None]
        return (spans >= 0) & (spans < self._reach)

    @property
    def _pins(self) -> int:
        """How many windows next to the diagonal are pinned: start c + 1 and end c, for c = 0..pins-1."""
        starts, ends = self.map.shape
        pins = min(starts - 1, ends)
        windows = starts * min(self._reach, ends / 2) / (2 if self._symmetric else 1)
        return pins if pins**2 * windows <= _PINNED else 0

    @cached_property
    def _factors(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """U, V, and the array of all `mu_i + nu_j`."""
        nu, by_end = _modes(filter_matrix(self.map.taps, len(self.map.end_weights)), self._end_weights)
        if self._symmetric:
            # The same eigenproblem, its axis reversed.
            return by_end[::-1], by_end, nu[:, None] + nu[None, :]
        mu, reversed_start = _modes(
            filter_matrix(self.map.taps, len(self.map.start_weights)), self._start_weights[::-1]
        )
        return reversed_start[::-1], by_end, mu[:, None] + nu[None, :]

    @cached_property
    def _pinning(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The two factors of all covariances with each pinned window, and S."""
        by_start, by_end, eigenvalues = self._factors
        left, values, right = scipy.linalg.svd(1 / eigenvalues, full_matrices=False)
        kept = values > _KEPT * values[0]
        pins, size = self._pins, values[kept, None]
        # With pins first, covariances with all windows are products of small matrices, one for each pin.
        along_starts = _along(by_start[1 : pins + 1], left.T[kept] * size, by_start)
        # Read backwards, a start of a block that looks the same is an end of it.
        mirrored = along_starts[::-1, :, ::-1] / size if self._symmetric else None
        along_ends = _along(by_end[:pins], right[kept], by_end) if mirrored is None else mirrored
        covariance = np.einsum("crd,crd->cd", along_starts[:, :, 1 : pins + 1], along_ends[:, :, :pins])
        return along_starts, along_ends, (covariance + covariance.T) / 2

    @cached_property
    def _root(self) -> FloatArray:
        """Cholesky's factor of S."""
        return np.asarray(scipy.linalg.cholesky(self._pinning[2], lower=True))

    @cached_property
    def _roots(self) -> tuple[FloatArray, ...]:
        """Factors of S's even and odd part, for a block that looks the same read backwards: S has no other part."""
        if not self._symmetric:
            return (self._root,)
        even, odd = _even_and_odd(self._pinning[2])
        parts = _even_and_odd(even.T)[0], _even_and_odd(odd.T)[1]
        return tuple(np.asarray(scipy.linalg.cholesky((part + part.T) / 2, lower=True)) for part in parts)


def _along(pinned: FloatArray, terms: FloatArray, axis: FloatArray) -> FloatArray:
    """`sum_i pinned_ci terms_ri axis_ai`, shape (pins, terms, positions), as one product of matrices."""
    both = (pinned[:, None, :] * terms).reshape(-1, terms.shape[1])
    return np.asarray(both @ axis.T).reshape(len(pinned), len(terms), len(axis))


def _even_and_odd(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The even and the odd part of values along the first axis: one is itself read backwards, one minus itself.

    Sums of squares are kept: each part is half of itself, times the root of 2.
    """
    half = len(values) // 2
    one, other = values[:half] / 2**0.5, values[::-1][:half] / 2**0.5
    return np.concatenate([one + other, values[half : len(values) - half]]), one - other


def _squared_solution(root: FloatArray, right: FloatArray) -> FloatArray:
    """The sums of squares of `root^-1 right` along the first axis, root being lower-triangular."""
    # From the right, on the transposed: the array is as the library wants it, and need not be copied.
    solved = scipy.linalg.blas.dtrsm(1.0, root, right.T, side=1, lower=1, trans_a=1, overwrite_b=1)
    return np.asarray(np.einsum("wc,wc->w", solved, solved))


def _modes(filtering: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and vectors V with `V' diag(weights^2) V = 1` and `V' L'L V = diag(eigenvalues)`.

    From the singular values of L, which keeps the small eigenvalues as exact as they come; of long axes from L'L, in a
    third of the time and to ten digits.
    """
    scaled = filtering / weights
    if len(weights) > _LONG:
        eigenvalues, vectors = scipy.linalg.eigh(scaled.T @ scaled)
        return eigenvalues, vectors / weights[:, None]
    _, singular, rows = scipy.linalg.svd(scaled)
    return singular**2, rows.T / weights[:, None]
