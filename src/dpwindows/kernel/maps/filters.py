"""Filters: each number measured is a weighted sum of a value and those before it; or of the value alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.integer_maps import (
    IntArray,
    Memory,
    RowByRow,
    require_length,
    require_positive,
    weighted_sum,
    widen,
)

# Numbers that are filtered at a time.
_AT_ONCE = 1 << 15


def convolve_exactly(taps: IntArray, exact: IntArray) -> IntArray:
    """`y_t = sum_j taps_j x_{t-j}` along the first axis, in exact integers (shape kept)."""
    weights = [int(tap) for tap in taps[: len(exact)]]
    series = widen(exact, sum(map(abs, weights)))
    result = np.zeros(series.shape, dtype=series.dtype)
    if not series.size:
        return result
    length = len(series)
    # The result lies row by row, so what is made of it here is the same memory.
    columns, into = (values.reshape(length, -1) for values in (series, result))
    lanes = max(1, _AT_ONCE // length)
    for first in range(0, columns.shape[1], lanes):
        # One series after another, so few that they stay in a processor's cache.
        some = np.ascontiguousarray(columns[:, first : first + lanes].T)
        filtered = np.zeros_like(some)
        for lag, weight in enumerate(weights):
            if weight:
                filtered[:, lag:] += weight * some[:, : length - lag]
        into[:, first : first + lanes] = filtered.T
    return result


@dataclass(frozen=True)
class Identity:
    """`M` is `unit` times the unit matrix: every number is measured directly, on a lattice of `unit` to a count.

    Raises:
        ValueError: the unit is not positive.
    """

    unit: int = 1

    def __post_init__(self) -> None:
        require_positive("the unit of a lattice", self.unit)

    def rows(self, length: int) -> int:
        return length

    def encode(self, exact: IntArray) -> IntArray:
        return widen(exact, self.unit) * self.unit

    def rows_at(self, position: int) -> int:
        return 1

    def fresh(self, lanes: int) -> Memory:
        return {}

    def encode_step(self, position: int, exact: IntArray, memory: Memory) -> tuple[IntArray, Memory]:
        return self.encode(exact)[None], {}


@dataclass(frozen=True)
class Filter:
    """`M` is lower-triangular Toeplitz: `y_t = sum_j taps_j x_{t-j}`, integer `taps`, the first one positive."""

    taps: tuple[int, ...]

    def rows(self, length: int) -> int:
        return length

    def encode(self, exact: IntArray) -> IntArray:
        return convolve_exactly(np.array(self.taps, dtype=object), exact)

    def rows_at(self, position: int) -> int:
        return 1

    def fresh(self, lanes: int) -> Memory:
        """Nothing but zeros before the first position."""
        return {"exact": np.zeros((len(self.taps) - 1, lanes), dtype=np.int64)}

    def encode_step(self, position: int, exact: IntArray, memory: Memory) -> tuple[IntArray, Memory]:
        newest_first = np.concatenate([exact[None], memory["exact"]])
        weights = np.array(self.taps, dtype=np.int64)
        return weighted_sum(weights, newest_first)[None], {"exact": newest_first[:-1].astype(np.int64)}


@dataclass(frozen=True)
class OffsetFilter(RowByRow):
    """A filter less a part of the sum of all that it has measured before, as if its noise had a common offset.

    With `s_m = taps_0 + ... + taps_(m-1)` the matrix is, each entry rounded to the nearest integer,

        M_tj = (weights_t taps_(t-j) - offsets_t s_(t-j)) / 2^shift  for j <= t.

    So row t is `weights_t` times the newest number of the filter, less `offsets_t` times all earlier ones. A few
    integers for each position take the place of a row of them.

    Raises:
        ValueError: there are no taps, there is no weight and offset for each position, or the shift is negative.
    """

    taps: tuple[int, ...]
    weights: tuple[int, ...]
    offsets: tuple[int, ...]
    shift: int

    def __post_init__(self) -> None:
        listed = len(self.taps) > 0 and len(self.offsets) == len(self.weights) > 0
        if not listed or self.shift < 0:
            raise ValueError("a filter with an offset has taps, a weight and an offset for each position, and a shift")

    @property
    def length(self) -> int:
        """For how many positions there are rows."""
        return len(self.weights)

    def rows(self, length: int) -> int:
        require_length(self.length, length)
        return length

    def encode(self, exact: IntArray) -> IntArray:
        """One row after another, exact: in 64-bit integers that cannot wrap, or in Python's."""
        require_length(self.length, len(exact))
        series = widen(exact, self._largest_row)
        result = np.zeros_like(series)
        for place in range(len(series)):
            row = self.row(place + 1).astype(series.dtype)
            result[place] = np.tensordot(row, series[: place + 1], axes=1)
        return result

    def row(self, position: int) -> IntArray:
        """Entries 1..position of a row."""
        weight, offset = self.weights[position - 1], self.offsets[position - 1]
        taps, sums = (known[:position] for known in self._filter)
        return np.asarray((weight * taps - offset * sums + (1 << self.shift >> 1)) >> self.shift)[::-1]

    @cached_property
    def _filter(self) -> tuple[IntArray, IntArray]:
        """The taps and their sums, as many as there are rows, in a type that holds every entry before it is divided."""
        taps = np.zeros(self.length, dtype=object)
        taps[: len(self.taps)] = self.taps[: self.length]
        sums = np.concatenate([np.zeros(1, dtype=object), np.cumsum(taps)[:-1]])
        narrow = self._most(abs(taps).max(), abs(sums).max()) << self.shift < 1 << 61
        return (taps.astype(np.int64), sums.astype(np.int64)) if narrow else (taps, sums)

    @cached_property
    def _largest_row(self) -> int:
        """No row's entries add up to more, whatever their signs."""
        taps, sums = (abs(known.astype(object)).sum() for known in self._filter)
        return self._most(taps, sums) + self.length

    def _most(self, tap: int, known: int) -> int:
        """The largest `|weights_t| tap + |offsets_t| known` of any rows, in parts of `2^shift`, rounded up."""
        return 1 + (max(map(abs, self.weights)) * tap + max(map(abs, self.offsets)) * known >> self.shift)
