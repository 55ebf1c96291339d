"""Prefix counters: rows over all increments so far."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.filters import convolve_exactly
from dpwindows.kernel.maps.integer_maps import (
    IntArray,
    Memory,
    Rows,
    fixed,
    weighted_sum,
    widen,
)
from dpwindows.kernel.untrusted.decoding.counters import CausalCounterDecoding, TriangularDecoding, WeightedDecoding


@dataclass(frozen=True)
class WeightedCounter(WeightedDecoding):
    """A prefix counter: `M = C diag(weights) D`, with `D` the first differences and `C` Toeplitz from `taps`.

    The increments of the series are weighted, then filtered: `y_t = sum_{j<=t} taps_{t-j} weights_j (x_j - x_{j-1})`,
    with `x_0 = 0`.
    """

    length: int
    taps: tuple[int, ...]
    weights: tuple[int, ...]

    @property
    def rows(self) -> int:
        return self.length

    def encode(self, exact: IntArray) -> IntArray:
        """Weighted increments, filtered; exact."""
        increments = np.diff(widen(exact, 2 * max(self.weights)), axis=0, prepend=0)
        weights = np.array(self.weights, dtype=object if increments.dtype == object else np.int64)
        return convolve_exactly(
            np.array(self.taps, dtype=object), increments * weights.reshape((-1,) + (1,) * (exact.ndim - 1))
        )


@dataclass(frozen=True, eq=False)
class TriangularCounter(TriangularDecoding):
    """`M = E D`, with `D` the first differences (`x_0 = 0`) and `E` lower-triangular integers, its diagonal positive.

    Row t needs nothing after step t, so it is a continual mechanism too. Decoded by substitution and a running sum.

    Raises:
        ValueError: they are not of this form.
    """

    weights: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", fixed(self.weights))
        if np.triu(self.weights, 1).any() or not (np.diagonal(self.weights) > 0).all():
            raise ValueError("the weights of a triangular counter must be lower-triangular with a positive diagonal")

    @property
    def length(self) -> int:
        return len(self.weights)

    @property
    def rows(self) -> int:
        return len(self.weights)

    def encode(self, exact: IntArray) -> IntArray:
        """`E` times the increments, exact: in 64-bit integers that cannot wrap, or in Python's."""
        # An increment is at most twice the largest value.
        increments = np.diff(widen(exact, 2 * self._largest_row), axis=0, prepend=0)
        return np.asarray(self.weights.astype(increments.dtype) @ increments)

    @cached_property
    def _largest_row(self) -> int:
        return max(sum(abs(int(weight)) for weight in row) for row in self.weights)


@dataclass(frozen=True, eq=False)
class ListedRows:
    """A lower-triangular matrix, entry by entry."""

    matrix: IntArray
    stationary = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", fixed(self.matrix))

    @property
    def longest(self) -> int:
        return len(self.matrix)

    def row(self, position: int) -> IntArray:
        return np.asarray(self.matrix[position - 1, :position])


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Row t has the entries `taps_{t-j} weights_j`, for as many rows as there are taps and weights."""

    taps: IntArray
    weights: IntArray
    stationary = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "taps", fixed(self.taps))
        object.__setattr__(self, "weights", fixed(self.weights))

    @property
    def longest(self) -> int:
        return min(len(self.taps), len(self.weights))

    def row(self, position: int) -> IntArray:
        return np.asarray(self.taps[:position][::-1] * self.weights[:position])


@dataclass(frozen=True)
class CausalCounter(CausalCounterDecoding):
    """`y_t = sum_{j<=t} row_tj (x_j - x_{j-1})`, `x_0 = 0`: decoded by substitution and a running sum.

    The memory grows with the position: every increment stays in it.
    """

    rows: Rows

    def rows_at(self, position: int) -> int:
        return 1

    def fresh(self, lanes: int) -> Memory:
        """No increments yet: arrays of shape (0, lanes), and running values of shape (lanes,)."""
        return {
            "exact": np.zeros((0, lanes), dtype=np.int64),
            "last": np.zeros(lanes, dtype=np.int64),
            "decoded": np.zeros((0, lanes)),
            "sum": np.zeros(lanes),
        }

    def encode(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        """The row times all increments."""
        increments = np.concatenate([memory["exact"], (exact - memory["last"])[None]])
        return weighted_sum(self.rows.row(position), increments)[None]

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        """The increments with the newest one after them, and the value that the next is taken from."""
        value = exact.astype(np.int64)
        return {"exact": np.concatenate([memory["exact"], (value - memory["last"])[None]]), "last": value}
