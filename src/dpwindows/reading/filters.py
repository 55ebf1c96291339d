"""The reader of filters: the inverse filter of integer taps, in floating point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.maps.integer_maps import Memory
from dpwindows.reading.moments import FloatArray, StepReader

# Variances are worked out up to this position; beyond, a stable filter's are at their limit.
_SETTLED = 1 << 17


def pushed(newest: np.ndarray, past: np.ndarray) -> np.ndarray:
    """The past, newest first, with one more value in front and the oldest gone."""
    return np.concatenate([newest[None], past[:-1]]) if len(past) else past


def invert_filter(taps: Sequence[int], filtered: FloatArray) -> FloatArray:
    """The series whose filtered version is `filtered`, along the first axis, in floating point (shape kept)."""
    series = np.array(filtered.reshape(len(filtered), -1), dtype=np.float64)
    invert_in_place(taps, series)
    return series.reshape(filtered.shape)


def invert_in_place(taps: Sequence[int], series: FloatArray) -> None:
    """Put in place of numbers, shape (length, lanes), those whose filtered version they are, along the first axis."""
    # scipy.signal has a function for this, and takes longer to load than most series to be read.
    known = np.array(taps[: len(series)], dtype=np.float64)
    # Backwards, so that each step is one product of two stretches.
    later = -known[:0:-1] / known[0]
    series /= known[0]
    for t in range(1, len(series) if len(later) else 1):
        seen = min(t, len(later))
        series[t] += later[len(later) - seen :] @ series[t - seen : t]


def inverse_taps(taps: Sequence[int], count: int) -> FloatArray:
    """The first `count` taps of the inverse filter, in floating point."""
    impulse = np.zeros(count)
    impulse[0] = 1.0
    return invert_filter(taps, impulse)


@dataclass(frozen=True)
class IdentityReader(StepReader):
    """Every number over the lattice units of a count."""

    map: Identity

    def fresh(self, lanes: int) -> Memory:
        return {}

    def decode_step(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        return self.decode(measured[0]), {}

    def decode(self, measured: FloatArray) -> FloatArray:
        return measured / self.map.unit

    def work_out(self, count: int, power: int) -> FloatArray:
        return np.full(count, float(self.map.unit) ** -power)

    def transposed(self, wanted: FloatArray) -> FloatArray:
        return wanted / self.map.unit


@dataclass(frozen=True)
class FilterReader(StepReader):
    """The inverse filter."""

    map: Filter

    @cached_property
    def _later(self) -> FloatArray:
        return np.array(self.map.taps[1:], dtype=np.float64)

    def fresh(self, lanes: int) -> Memory:
        return {"decoded": np.zeros((len(self.map.taps) - 1, lanes))}

    def decode_step(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        past = memory["decoded"]
        estimate = (measured[0] - self._later @ past) / self.map.taps[0]
        return estimate, {"decoded": pushed(estimate, past)}

    def decode(self, measured: FloatArray) -> FloatArray:
        return invert_filter(self.map.taps, measured)

    def work_out(self, count: int, power: int) -> FloatArray:
        """Running sums of powers of the inverse taps, taken as settled after 131,072 positions."""
        sums = np.cumsum(inverse_taps(self.map.taps, min(count, _SETTLED)) ** power)
        return np.concatenate([sums, np.full(count - len(sums), sums[-1])])

    def transposed(self, wanted: FloatArray) -> FloatArray:
        return invert_backwards(self.map.taps, wanted)


def invert_backwards(taps: Sequence[int], wanted: FloatArray) -> FloatArray:
    """The inverse filter from the last position to the first: the transpose of `invert_filter`."""
    return invert_filter(taps, wanted[::-1])[::-1]
