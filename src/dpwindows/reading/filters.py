"""The reader of filters: the inverse filter of integer taps, in floating point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.filters import Filter, Identity, OffsetFilter
from dpwindows.kernel.maps.integer_maps import Memory
from dpwindows.reading.moments import FloatArray, SeriesReader, StepReader

# Variances are worked out up to this position; beyond, a stable filter's are at their limit.
_SETTLED = 1 << 15


def pushed(newest: np.ndarray, past: np.ndarray) -> np.ndarray:
    """The past, newest first, with one more value in front and the oldest gone."""
    return np.concatenate([newest[None], past[:-1]]) if len(past) else past


def invert_filter(taps: Sequence[int], filtered: FloatArray) -> FloatArray:
    """The series whose filtered version is `filtered`, along the first axis, in floating point (shape kept)."""
    # scipy.signal has a function for this, and takes longer to load than most series to be read.
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


@dataclass(frozen=True)
class IdentityReader(SeriesReader):
    """Every number over the lattice units of a count, in a series of `length` positions."""

    map: Identity
    length: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.length, self.length

    def decode(self, measured: FloatArray) -> FloatArray:
        return measured / self.map.unit

    def variance(self) -> FloatArray:
        return np.full(self.length, float(self.map.unit) ** -2)

    def fourth_moment(self) -> FloatArray:
        return np.full(self.length, float(self.map.unit) ** -4)

    def transposed(self, wanted: FloatArray) -> FloatArray:
        return wanted / self.map.unit


@dataclass(frozen=True)
class IdentityStepReader(StepReader):
    """Every number over the lattice units of a count, as it comes."""

    map: Identity

    def fresh(self, lanes: int) -> Memory:
        return {}

    def decode_step(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        return measured[0] / self.map.unit, {}

    def work_out(self, count: int, power: int) -> FloatArray:
        return np.full(count, float(self.map.unit) ** -power)

    def transposed(self, wanted: FloatArray) -> FloatArray:
        return wanted / self.map.unit


@dataclass(frozen=True)
class FilterReader(SeriesReader):
    """The inverse filter along a series of `length` positions."""

    map: Filter
    length: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.length, self.length

    def decode(self, measured: FloatArray) -> FloatArray:
        return invert_filter(self.map.taps, measured)

    @cached_property
    def _inverse(self) -> FloatArray:
        return inverse_taps(self.map.taps, self.length)

    def variance(self) -> FloatArray:
        """Running sums of the squared inverse taps."""
        return np.cumsum(self._inverse**2)

    def fourth_moment(self) -> FloatArray:
        return np.cumsum(self._inverse**4)

    def transposed(self, wanted: FloatArray) -> FloatArray:
        return invert_backwards(self.map.taps, wanted)


@dataclass(frozen=True)
class FilterStepReader(StepReader):
    """The inverse filter, one position at a time."""

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

    def work_out(self, count: int, power: int) -> FloatArray:
        """Running sums of powers of the inverse taps, taken as settled after 32,768 positions."""
        sums = np.cumsum(inverse_taps(self.map.taps, min(count, _SETTLED)) ** power)
        return np.concatenate([sums, np.full(count - len(sums), sums[-1])])

    def transposed(self, wanted: FloatArray) -> FloatArray:
        return invert_backwards(self.map.taps, wanted)


def invert_backwards(taps: Sequence[int], wanted: FloatArray) -> FloatArray:
    """The inverse filter from the last position to the first: the transpose of `invert_filter`."""
    return invert_filter(taps, wanted[::-1])[::-1]


# --- Filters with a common offset -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OffsetFilterReader(SeriesReader):
    """Values by substitution, from the first to the last, for a whole series."""

    map: OffsetFilter

    @property
    def shape(self) -> tuple[int, int]:
        return self.map.length, self.map.length

    def decode(self, measured: FloatArray) -> FloatArray:
        values = np.zeros(measured.shape)
        for place in range(len(measured)):
            row = self.map.row(place + 1).astype(np.float64)
            values[place] = (measured[place] - np.tensordot(row[:-1], values[:place], axes=1)) / row[-1]
        return values

    def variance(self) -> FloatArray:
        return self._moments[2]

    def fourth_moment(self) -> FloatArray:
        return self._moments[4]

    @cached_property
    def _moments(self) -> dict[int, FloatArray]:
        """Sums of powers of the decoder's rows, in O(length^2), but for what rounding the matrix adds.

        Noise of 1 in row s moves the filter's number s by `1 / a_s`, and each later one by a factor `b / a` of the sum
        of all before it, which so grows by a factor `1 + b / a`.
        """
        unit, length = 2.0**-self.map.shift, self.map.length
        weights, offsets = (np.array(part, dtype=np.float64) * unit for part in (self.map.weights, self.map.offsets))
        grown = np.cumprod(1 + offsets / weights)
        rises = grown / (1 + offsets / weights) * offsets / weights
        inverse = inverse_taps(self.map.taps, length)
        # What the rises of all later numbers make of each value.
        later = np.zeros(length)
        total = {power: np.zeros(length) for power in (2, 4)}
        for place in reversed(range(length)):
            own = inverse[: length - place]
            squares = ((own + later[place:] / grown[place]) / weights[place]) ** 2
            total[2][place:] += squares
            total[4][place:] += squares**2
            later[place:] += own * rises[place]
        return total

    def transposed(self, wanted: FloatArray) -> FloatArray:
        """Substitution from the last to the first; `wanted` may be of the first positions only."""
        left, solved = wanted.astype(np.float64), np.zeros(wanted.shape)
        for place in reversed(range(len(wanted))):
            row = self.map.row(place + 1).astype(np.float64)
            solved[place] = left[place] / row[-1]
            left[:place] -= np.multiply.outer(row[:-1], solved[place])
        return solved


@dataclass(frozen=True, eq=False)
class OffsetFilterStepReader(StepReader):
    """The newest value by substitution."""

    map: OffsetFilter

    def fresh(self, lanes: int) -> Memory:
        return {"decoded": np.zeros((0, lanes))}

    def decode_step(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        row = self.map.row(position).astype(np.float64)
        value = (measured[0] - row[:-1] @ memory["decoded"]) / row[-1]
        return value, {"decoded": np.concatenate([memory["decoded"], value[None]])}

    def work_out(self, count: int, power: int) -> FloatArray:
        return self._whole.variance() if power == 2 else self._whole.fourth_moment()

    @cached_property
    def _whole(self) -> OffsetFilterReader:
        return OffsetFilterReader(self.map)

    def transposed(self, wanted: FloatArray) -> FloatArray:
        return self._whole.transposed(wanted)
