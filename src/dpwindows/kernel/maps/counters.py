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
from dpwindows.kernel.untrusted.decoding.counters import (
    CausalCounterDecoding,
    OffsetDecoding,
    OffsetMoments,
    TriangularDecoding,
    WeightedDecoding,
)


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


@dataclass(frozen=True, eq=False)
class OffsetRows(OffsetMoments):
    """A filter whose noise has a common offset, entry by entry.

    With `s_m = taps_0 + ... + taps_(m-1)` that on the values is, rounded to the nearest integer,

        M_tj = (weights_t taps_(t-j) - offsets_t s_(t-j)) / 2^shift  for j <= t.

    So row t is `weights_t` times the newest number of the filter, less `offsets_t` times all earlier ones.
    """

    taps: tuple[int, ...]
    weights: IntArray
    offsets: IntArray
    shift: int
    stationary = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", fixed(self.weights))
        object.__setattr__(self, "offsets", fixed(self.offsets))

    @property
    def longest(self) -> int:
        return min(len(self.weights), len(self.offsets))

    def row(self, position: int) -> IntArray:
        return np.asarray(np.cumsum(self.entries(position))[::-1])

    def entries(self, position: int) -> IntArray:
        """The row on the values, from the newest to the first."""
        weight, offset = int(self.weights[position - 1]), int(self.offsets[position - 1])
        taps, sums = (known[:position] for known in self._filter)
        return np.asarray((weight * taps - offset * sums + (1 << self.shift >> 1)) >> self.shift)

    @cached_property
    def _filter(self) -> tuple[IntArray, IntArray]:
        """The taps and their sums, as many as there are rows, in a type that holds every entry."""
        taps = np.zeros(self.longest, dtype=object)
        taps[: len(self.taps)] = self.taps[: self.longest]
        sums = np.concatenate([np.zeros(1, dtype=object), np.cumsum(taps)[:-1]])
        narrow = self._most(abs(taps).max(), abs(sums).max()) << self.shift < 1 << 61
        return (taps.astype(np.int64), sums.astype(np.int64)) if narrow else (taps, sums)

    @cached_property
    def largest_row(self) -> int:
        """No row's entries add up to more, whatever their signs."""
        taps, sums = (abs(known.astype(object)).sum() for known in self._filter)
        return self._most(taps, sums) + self.longest

    def _most(self, tap: int, known: int) -> int:
        """The largest `|weights_t tap| + |offsets_t known|`, in parts of `2^shift`, rounded up."""
        weight, offset = (int(abs(part.astype(object)).max()) for part in (self.weights, self.offsets))
        return 1 + (weight * int(tap) + offset * int(known) >> self.shift)


@dataclass(frozen=True, eq=False)
class OffsetFilter(OffsetDecoding):
    """`M` of `OffsetRows`, on the values of a series."""

    matrix: OffsetRows

    @property
    def length(self) -> int:
        return self.matrix.longest

    @property
    def rows(self) -> int:
        return self.matrix.longest

    def encode(self, exact: IntArray) -> IntArray:
        """One row after another, exact: in 64-bit integers that cannot wrap, or in Python's."""
        series = widen(exact, self.matrix.largest_row)
        result = np.zeros_like(series)
        for place in range(len(series)):
            row = self.matrix.entries(place + 1).astype(series.dtype)
            result[place] = np.tensordot(row, series[place::-1], axes=1)
        return result


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
