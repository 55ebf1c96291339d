"""Filters along one axis, and every value by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.integer_maps import (
    FloatArray,
    IntArray,
    KnownMoments,
    Memory,
    weighted_sum,
    widen,
)

# Variances are worked out up to this position; beyond, a stable filter's are at their limit.
_SETTLED = 1 << 15


def convolve_exactly(taps: IntArray, exact: IntArray) -> IntArray:
    """`y_t = sum_j taps_j x_{t-j}` along the first axis, in exact integers (shape kept)."""
    weights = [int(tap) for tap in taps]
    series = widen(exact, sum(map(abs, weights)))
    result = np.zeros_like(series)
    for lag, weight in enumerate(weights[: len(series)]):
        if weight:
            result[lag:] += weight * series[: len(series) - lag]
    return result


def invert_filter(taps: Sequence[int], filtered: FloatArray) -> FloatArray:
    """The series whose filtered version is `filtered`, along the first axis, in floating point (shape kept)."""
    # Imported here: loading it takes a second, which planning and refusals of bad requests need not wait for.
    from scipy import signal

    return np.asarray(signal.lfilter([1.0], np.array(taps, dtype=np.float64), filtered, axis=0))


def inverse_taps(taps: Sequence[int], count: int) -> FloatArray:
    """The first `count` taps of the inverse filter, in floating point."""
    first, *rest = (float(tap) for tap in taps)
    # Backwards, so that each step is one product of two stretches.
    later = -np.array(rest[::-1]) / first
    inverse = np.zeros(count)
    inverse[0] = 1 / first
    for t in range(1, count if rest else 1):
        seen = min(t, len(later))
        inverse[t] = later[len(later) - seen :] @ inverse[t - seen : t]
    return inverse


def pushed(newest: np.ndarray, past: np.ndarray) -> np.ndarray:
    """The past, newest first, with one more value in front and the oldest gone."""
    return np.concatenate([newest[None], past[:-1]]) if len(past) else past


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
class Filter:
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

    def decode(self, measured: FloatArray) -> FloatArray:
        return invert_filter(self.taps, measured)

    @cached_property
    def _inverse(self) -> FloatArray:
        return inverse_taps(self.taps, self.length)

    def variance(self) -> FloatArray:
        """Running sums of the squared inverse taps."""
        return np.cumsum(self._inverse**2)

    def fourth_moment(self) -> FloatArray:
        return np.cumsum(self._inverse**4)


@dataclass(frozen=True)
class CausalFilter(KnownMoments):
    """`y_t = sum_j taps_j x_{t-j}`, integer taps: the causal side of `Filter`, with the same estimates."""

    taps: tuple[int, ...]

    @cached_property
    def _tail(self) -> IntArray:
        return np.array(self.taps[1:], dtype=np.int64)

    def rows_at(self, position: int) -> int:
        return 1

    def fresh(self, lanes: int) -> Memory:
        """Nothing but zeros before the first position."""
        past = len(self.taps) - 1
        return {"exact": np.zeros((past, lanes), dtype=np.int64), "decoded": np.zeros((past, lanes))}

    def encode(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        weights = np.array(self.taps, dtype=np.int64)
        return weighted_sum(weights, np.concatenate([exact[None], memory["exact"]]))[None]

    def decode(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        past = memory["decoded"]
        estimate = (measured[0] - self._tail.astype(np.float64) @ past) / self.taps[0]
        return estimate, {"decoded": pushed(estimate, past)}

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        return {"exact": pushed(exact.astype(np.int64), memory["exact"])}

    def _worked_out(self, count: int, power: int) -> FloatArray:
        """Running sums of powers of the inverse taps, taken as settled after 32,768 positions."""
        impulse = np.zeros(min(count, _SETTLED))
        impulse[0] = 1.0
        sums = np.cumsum(invert_filter(self.taps, impulse) ** power)
        return np.concatenate([sums, np.full(count - len(sums), sums[-1])])
