"""Counters: every number measured is a weighted sum of all increments of a series so far."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.integer_maps import IntArray, RowByRow, fixed, require_length, widen


@dataclass(frozen=True, eq=False)
class MatrixCounter(RowByRow):
    """`M = E D`, with `D` the first differences (`x_0 = 0`) and `E` lower-triangular integers, its diagonal positive.

    Raises:
        ValueError: they are not of this form.
    """

    weights: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", fixed(self.weights))
        if np.triu(self.weights, 1).any() or not (np.diagonal(self.weights) > 0).all():
            raise ValueError("the weights of a matrix counter must be lower-triangular with a positive diagonal")

    @property
    def length(self) -> int:
        """For how many positions there are rows."""
        return len(self.weights)

    def rows(self, length: int) -> int:
        require_length(self.length, length)
        return length

    def encode(self, exact: IntArray) -> IntArray:
        """`E` times the increments, exact: in 64-bit integers that cannot wrap, or in Python's."""
        # An increment is at most twice the largest value.
        increments = np.diff(widen(exact, 2 * self._largest_row), axis=0, prepend=0)
        return np.asarray(self.weights.astype(increments.dtype) @ increments)

    @cached_property
    def _largest_row(self) -> int:
        return max(sum(abs(int(weight)) for weight in row) for row in self.weights)

    def row(self, position: int) -> IntArray:
        """Entries 1..position of a row of `E D`, in Python's integers."""
        return -np.diff(self.weights[position - 1, :position].astype(object), append=0)
