"""A dense integer map for short horizons: any lower-triangular matrix on the increments of a series."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, widen


@dataclass(frozen=True, eq=False)
class TriangularCounter:
    """`M = E D`, with `D` the first differences (`x_0 = 0`) and `E` lower-triangular integers, its diagonal positive.

    Row t needs nothing after step t, so it is a continual mechanism too. Decoded by substitution and a running sum.
    """

    weights: IntArray

    def __post_init__(self) -> None:
        if np.triu(self.weights, 1).any() or not (np.diagonal(self.weights) > 0).all():
            raise ValueError("the weights of a triangular counter must be lower-triangular with a positive diagonal")

    @property
    def length(self) -> int:
        """Columns of `E`."""
        return len(self.weights)

    @property
    def rows(self) -> int:
        """How many numbers are measured: one for each position."""
        return len(self.weights)

    def encode(self, exact: IntArray) -> IntArray:
        """`E` times the increments, exact: in 64-bit integers that cannot wrap, or in Python's."""
        # An increment is at most twice the largest value.
        increments = np.diff(widen(exact, 2 * self._largest_row), axis=0, prepend=0)
        return np.asarray(self.weights.astype(increments.dtype) @ increments)

    @cached_property
    def _largest_row(self) -> int:
        return max(sum(abs(int(weight)) for weight in row) for row in self.weights)

    def decode(self, measured: FloatArray) -> FloatArray:
        """Increments by substitution, then their running sum."""
        increments = linalg.solve_triangular(self.weights.astype(np.float64), measured, lower=True)
        return np.asarray(np.cumsum(increments, axis=0))

    @cached_property
    def _decoder(self) -> FloatArray:
        return self.decode(np.eye(self.rows))

    def variance(self) -> FloatArray:
        """Sums of squares of the decoder's rows."""
        return np.asarray((self._decoder**2).sum(axis=1))

    def fourth_moment(self) -> FloatArray:
        """Sums of fourth powers of the decoder's rows."""
        return np.asarray((self._decoder**4).sum(axis=1))
