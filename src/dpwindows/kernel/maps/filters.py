"""Filters along one axis, and every value by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpwindows.kernel.maps.integer_maps import (
    FloatArray,
    IntArray,
    Memory,
    pushed,
    weighted_sum,
    widen,
)
from dpwindows.kernel.untrusted.decoding.filters import CausalFilterDecoding, FilterDecoding

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
        found = np.zeros_like(some)
        for lag, weight in enumerate(weights):
            if weight:
                found[:, lag:] += weight * some[:, : length - lag]
        into[:, first : first + lanes] = found.T
    return result


@dataclass(frozen=True)
class Identity:
    """`M` is `unit` times the unit matrix: every number is measured directly, on a lattice of `unit` to a count."""

    length: int
    unit: int = 1

    @property
    def rows(self) -> int:
        return self.length

    def encode(self, exact: IntArray) -> IntArray:
        return widen(exact, self.unit) * self.unit

    def decode(self, measured: FloatArray) -> FloatArray:
        return measured / self.unit

    def variance(self) -> FloatArray:
        return np.full(self.length, float(self.unit) ** -2)

    def fourth_moment(self) -> FloatArray:
        return np.full(self.length, float(self.unit) ** -4)


@dataclass(frozen=True)
class CausalIdentity:
    """Every value measured directly, on a lattice of `unit` to a count."""

    unit: int = 1

    def rows_at(self, position: int) -> int:
        return 1

    def fresh(self, lanes: int) -> Memory:
        return {}

    def encode(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        return (widen(exact, self.unit) * self.unit)[None]

    def decode(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        return measured[0] / self.unit, {}

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        return {}

    def variance(self, count: int) -> FloatArray:
        return np.full(count, float(self.unit) ** -2)

    def fourth_moment(self, count: int) -> FloatArray:
        return np.full(count, float(self.unit) ** -4)


@dataclass(frozen=True)
class Filter(FilterDecoding):
    """`M` is lower-triangular Toeplitz: `y_t = sum_j taps_j x_{t-j}`, integer `taps`, the first one positive.

    Being causal, it is batch and continual mechanism alike. Decoding is the inverse filter of the integer taps.
    """

    length: int
    taps: tuple[int, ...]

    @property
    def rows(self) -> int:
        return self.length

    def encode(self, exact: IntArray) -> IntArray:
        return convolve_exactly(np.array(self.taps, dtype=object), exact)


@dataclass(frozen=True)
class CausalFilter(CausalFilterDecoding):
    """`y_t = sum_j taps_j x_{t-j}`, integer taps: the causal side of `Filter`, with the same estimates."""

    taps: tuple[int, ...]

    def rows_at(self, position: int) -> int:
        return 1

    def fresh(self, lanes: int) -> Memory:
        """Nothing but zeros before the first position."""
        past = len(self.taps) - 1
        return {"exact": np.zeros((past, lanes), dtype=np.int64), "decoded": np.zeros((past, lanes))}

    def encode(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        weights = np.array(self.taps, dtype=np.int64)
        return weighted_sum(weights, np.concatenate([exact[None], memory["exact"]]))[None]

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        return {"exact": pushed(exact.astype(np.int64), memory["exact"])}
