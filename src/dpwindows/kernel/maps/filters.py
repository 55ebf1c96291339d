"""Filters along one axis, and every value by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpwindows.kernel.maps.integer_maps import IntArray, Memory, pushed, weighted_sum, widen

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
    """`M` is `unit` times the unit matrix: every number is measured directly, on a lattice of `unit` to a count."""

    unit: int = 1

    def rows(self, length: int) -> int:
        return length

    def encode(self, exact: IntArray) -> IntArray:
        return widen(exact, self.unit) * self.unit

    def rows_at(self, position: int) -> int:
        return 1

    def fresh(self, lanes: int) -> Memory:
        return {}

    def encode_step(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        return self.encode(exact)[None]

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        return {}


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

    def encode_step(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        weights = np.array(self.taps, dtype=np.int64)
        return weighted_sum(weights, np.concatenate([exact[None], memory["exact"]]))[None]

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        return {"exact": pushed(exact.astype(np.int64), memory["exact"])}
