"""Prefix counters: rows over all increments so far."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import linalg

from dpwindows.kernel.maps.filters import convolve_exactly, inverse_taps, invert_filter
from dpwindows.kernel.maps.integer_maps import (
    FloatArray,
    IntArray,
    KnownMoments,
    Memory,
    weighted_sum,
    widen,
)

# Inverse taps worked out one after the other, in time that grows like the square of their number.
_TERM_BY_TERM = 1 << 13


@dataclass(frozen=True)
class WeightedCounter:
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

    def decode(self, measured: FloatArray) -> FloatArray:
        """Inverse filter, unweighted, summed up again."""
        weights = np.array(self.weights, dtype=np.float64).reshape((-1,) + (1,) * (measured.ndim - 1))
        return np.asarray(np.cumsum(invert_filter(self.taps, measured) / weights, axis=0))

    def _moment(self, power: int) -> FloatArray:
        # Row t of the decoder puts sum_{i=j..t} inverse_{i-j} / weights_i on noise j: a running sum over t for each j.
        inverse = inverse_taps(self.taps, self.length)
        weights = np.array(self.weights, dtype=np.float64)
        total = np.zeros(self.length)
        for j in range(self.length):
            total[j:] += np.cumsum(inverse[: self.length - j] / weights[j:]) ** power
        return total

    def variance(self) -> FloatArray:
        """Sums of squares of the decoder's rows, in O(length^2)."""
        return self._moment(2)

    def fourth_moment(self) -> FloatArray:
        """Sums of fourth powers of the decoder's rows, in O(length^2)."""
        return self._moment(4)


@dataclass(frozen=True, eq=False)
class TriangularCounter:
    """`M = E D`, with `D` the first differences (`x_0 = 0`) and `E` lower-triangular integers, its diagonal positive.

    Row t needs nothing after step t, so it is a continual mechanism too. Decoded by substitution and a running sum.

    Raises:
        ValueError: they are not of this form.
    """

    weights: IntArray

    def __post_init__(self) -> None:
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

    def decode(self, measured: FloatArray) -> FloatArray:
        """Increments by substitution, then their running sum."""
        increments = linalg.solve_triangular(self.weights.astype(np.float64), measured, lower=True)
        return np.asarray(np.cumsum(increments, axis=0))

    @cached_property
    def _decoder(self) -> FloatArray:
        return self.decode(np.eye(self.rows))

    def variance(self) -> FloatArray:
        return np.asarray((self._decoder**2).sum(axis=1))

    def fourth_moment(self) -> FloatArray:
        return np.asarray((self._decoder**4).sum(axis=1))


class Rows(Protocol):
    """The rows of a lower-triangular integer matrix on increments, its diagonal positive."""

    @property
    def longest(self) -> int:
        """How many rows there are."""
        ...

    @property
    def stationary(self) -> bool:
        """Whether every row is the one before, shifted by one."""
        ...

    def row(self, position: int) -> IntArray:
        """Entries 1..position of a row."""
        ...


@dataclass(frozen=True, eq=False)
class ListedRows:
    """A lower-triangular matrix, entry by entry."""

    matrix: IntArray
    stationary = False

    @property
    def longest(self) -> int:
        return len(self.matrix)

    def row(self, position: int) -> IntArray:
        return np.asarray(self.matrix[position - 1, :position])


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Row t has the entries `taps_{t-j} weights_j`, for as many rows as there are weights."""

    taps: IntArray
    weights: IntArray
    stationary = False

    @property
    def longest(self) -> int:
        return len(self.weights)

    def row(self, position: int) -> IntArray:
        return np.asarray(self.taps[:position][::-1] * self.weights[:position])


@dataclass(frozen=True)
class CausalCounter(KnownMoments):
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

    def decode(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The newest increment by substitution, added to the sum of the earlier ones."""
        row = self.rows.row(position).astype(np.float64)
        increment = (measured[0] - row[:-1] @ memory["decoded"]) / row[-1]
        estimate = memory["sum"] + increment
        return estimate, {"decoded": np.concatenate([memory["decoded"], increment[None]]), "sum": estimate}

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        """The increments with the newest one after them, and the value that the next is taken from."""
        value = exact.astype(np.int64)
        return {"exact": np.concatenate([memory["exact"], (value - memory["last"])[None]]), "last": value}

    def _worked_out(self, count: int, power: int) -> FloatArray:
        if self.rows.stationary:
            # Every position responds alike to noise at an earlier one.
            response = np.cumsum(_inverse(self.rows.row(count)[::-1]))
            return np.cumsum(response**power)
        count = min(count, self.rows.longest)
        matrix = np.zeros((count, count))
        for position in range(1, count + 1):
            matrix[position - 1, :position] = self.rows.row(position)
        increments = linalg.solve_triangular(matrix, np.eye(count), lower=True)
        return np.asarray((np.cumsum(increments, axis=0) ** power).sum(axis=1))


def _inverse(taps: IntArray) -> FloatArray:
    """The inverse taps: term by term, and for very many by Newton's doubling on power series."""
    impulse = np.zeros(min(len(taps), _TERM_BY_TERM))
    impulse[0] = 1.0
    inverse = invert_filter([int(tap) for tap in taps[: len(impulse)]], impulse)
    while len(inverse) < len(taps):
        from scipy import signal

        longer = min(2 * len(inverse), len(taps))
        residual = -signal.fftconvolve(taps[:longer].astype(np.float64), inverse)[:longer]
        residual[0] += 2.0
        inverse = signal.fftconvolve(inverse, residual)[:longer]
    return np.asarray(inverse)
