"""The map of crossed counters: every line of a block of windows through one filter, decoded by least squares.

A block is an array `x` of shape (starts, ends). With `L` the causal filter of the integer taps (lower-triangular
Toeplitz, of the size of the axis), `J` the reversal of starts, and whole weights r on starts and c on ends, measured
are

    rows     y[a, :] = r_a L x[a, :]          for every start, along ends from the first to the last
    columns  z[:, b] = c_b L J x[:, b]        for every end, along starts from the last to the first

so the matrix M has twice as many rows as columns, and its Gram matrix is a sum of two products,

    M'M = (J L'L J) x diag(c^2) + diag(r^2) x (L'L).

With `U' diag(r^2) U = 1`, `U' J L'L J U = diag(mu)` and `V' diag(c^2) V = 1`, `V' L'L V = diag(nu)` (two symmetric
eigenproblems of the sizes of the axes) its inverse is `(U x V) diag(1 / (mu_i + nu_j)) (U x V)'`. Least squares and
its exact variance, the diagonal of that inverse, are a few products of matrices of those sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from dpwindows.integer_maps import FloatArray, IntArray, convolve_exactly, widen

# Fourth moments are formed from the explicit decoder for blocks of up to this many windows.
_DENSE = 1024


@dataclass(frozen=True)
class CrossedFilters:
    """The map for a block of `len(start_weights)` starts and `len(end_weights)` ends; taps[0] and weights positive."""

    taps: tuple[int, ...]
    start_weights: tuple[int, ...]
    end_weights: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Starts and ends."""
        return len(self.start_weights), len(self.end_weights)

    @property
    def rows(self) -> int:
        """Each window is in one row and in one column."""
        starts, ends = self.shape
        return 2 * starts * ends

    def encode(self, exact: IntArray) -> IntArray:
        """Weighted and filtered rows, then columns; exact integers of shape (rows,).

        Weighing comes first, in a type wide enough for it; `convolve_exactly` widens what it gets as it needs.
        """
        taps = np.array(self.taps, dtype=object)
        wide = widen(exact, max(*self.start_weights, *self.end_weights))
        by_start = wide * np.array(self.start_weights, dtype=wide.dtype)[:, None]
        by_end = wide * np.array(self.end_weights, dtype=wide.dtype)[None, :]
        along_ends = convolve_exactly(taps, by_start.T).T
        along_starts = convolve_exactly(taps, by_end[::-1])
        return np.concatenate([along_ends.ravel(), along_starts.ravel()])

    def decode(self, measured: FloatArray) -> FloatArray:
        """Least squares: shape (rows,) to (starts, ends)."""
        along_ends, along_starts = measured.reshape(2, *self.shape)
        starts, ends = self.shape
        right = (self._start_weights[:, None] * along_ends) @ self._filter(ends)
        right += (self._filter(starts).T @ along_starts)[::-1] * self._end_weights
        by_start, by_end, _ = self._factors
        solved = (by_start.T @ right @ by_end) / self._eigenvalues
        return np.asarray(by_start @ solved @ by_end.T)

    def variance(self) -> FloatArray:
        """The diagonal of `(M'M)^-1`, shape (starts, ends)."""
        by_start, by_end, _ = self._factors
        return np.asarray(by_start**2 @ (1 / self._eigenvalues) @ (by_end**2).T)

    def fourth_moment(self) -> FloatArray | None:
        """From the explicit decoder for up to 1,024 windows, None beyond."""
        if self.rows > 2 * _DENSE:
            return None
        total = np.zeros(self.shape)
        for unit in np.eye(self.rows):
            total += self.decode(unit) ** 4
        return total

    @property
    def _start_weights(self) -> FloatArray:
        return np.array(self.start_weights, dtype=np.float64)

    @property
    def _end_weights(self) -> FloatArray:
        return np.array(self.end_weights, dtype=np.float64)

    def _filter(self, size: int) -> FloatArray:
        column = np.zeros(size)
        kept = self.taps[:size]
        column[: len(kept)] = kept
        return np.asarray(linalg.toeplitz(column, np.zeros(size)))

    @cached_property
    def _factors(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """U, V, and the array of all `mu_i + nu_j`."""
        nu, by_end = _modes(self._filter(len(self.end_weights)), self._end_weights)
        if self.start_weights == self.end_weights[::-1]:
            # The same eigenproblem, its axis reversed.
            return by_end[::-1], by_end, nu[:, None] + nu[None, :]
        mu, reversed_start = _modes(self._filter(len(self.start_weights)), self._start_weights[::-1])
        return reversed_start[::-1], by_end, mu[:, None] + nu[None, :]

    @property
    def _eigenvalues(self) -> FloatArray:
        return self._factors[2]


def _modes(filtering: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and vectors V with `V' diag(weights^2) V = 1` and `V' L'L V = diag(eigenvalues)`.

    From the singular values of L, which keeps the small eigenvalues as exact as they come.
    """
    _, singular, vectors = linalg.svd(filtering / weights)
    return singular**2, vectors.T / weights[:, None]
