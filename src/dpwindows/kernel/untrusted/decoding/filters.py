"""Filters undone: the inverse filter of integer taps, in floating point."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, Memory, pushed
from dpwindows.kernel.untrusted.decoding.moments import KnownMoments

# Variances are worked out up to this position; beyond, a stable filter's are at their limit.
_SETTLED = 1 << 15


def invert_filter(taps: Sequence[int], filtered: FloatArray) -> FloatArray:
    """The series whose filtered version is `filtered`, along the first axis, in floating point (shape kept)."""
    # scipy.signal has a function for this, and takes longer to load than most series to be found.
    known = np.array(taps[: len(filtered)], dtype=np.float64)
    # Backwards, so that each step is one product of two stretches.
    later = -known[:0:-1] / known[0]
    series = filtered.reshape(len(filtered), -1) / known[0]
    for t in range(1, len(series) if len(later) else 1):
        seen = min(t, len(later))
        series[t] += later[len(later) - seen :] @ series[t - seen : t]
    return np.asarray(series.reshape(filtered.shape))


def inverse_taps(taps: Sequence[int], count: int) -> FloatArray:
    """The first `count` taps of the inverse filter, in floating point."""
    impulse = np.zeros(count)
    impulse[0] = 1.0
    return invert_filter(taps, impulse)


class FilterDecoding:
    """How `Filter` is decoded: the inverse filter of the integer taps."""

    length: int
    taps: tuple[int, ...]

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


class CausalFilterDecoding(KnownMoments):
    """How `CausalFilter` is decoded: as `FilterDecoding`, one position at a time."""

    taps: tuple[int, ...]

    @cached_property
    def _tail(self) -> IntArray:
        return np.array(self.taps[1:], dtype=np.int64)

    def decode(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        past = memory["decoded"]
        estimate = (measured[0] - self._tail.astype(np.float64) @ past) / self.taps[0]
        return estimate, {"decoded": pushed(estimate, past)}

    def _worked_out(self, count: int, power: int) -> FloatArray:
        """Running sums of powers of the inverse taps, taken as settled after 32,768 positions."""
        impulse = np.zeros(min(count, _SETTLED))
        impulse[0] = 1.0
        sums = np.cumsum(invert_filter(self.taps, impulse) ** power)
        return np.concatenate([sums, np.full(count - len(sums), sums[-1])])
