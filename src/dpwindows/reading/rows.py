"""The reader of lower-triangular matrices applied row by row: values by substitution, in floating point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.endless_counter import EndlessCounter
from dpwindows.kernel.maps.filters import OffsetFilter
from dpwindows.kernel.maps.integer_maps import IntArray, Memory
from dpwindows.reading.filters import inverse_taps
from dpwindows.reading.moments import FloatArray, StepReader

# Inverse taps worked out one after the other, in time that grows like the square of their number.
_TERM_BY_TERM = 1 << 13
# Maps of no more rows have them kept.
_FEW = 1 << 10


@dataclass(frozen=True, eq=False)
class RowReader(StepReader):
    """Each value from the number of its row, less what earlier values put into it."""

    map: MatrixCounter | EndlessCounter | OffsetFilter

    def fresh(self, lanes: int) -> Memory:
        return {"decoded": np.zeros((0, lanes))}

    def decode_step(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        value = self._value(position, measured[0], memory["decoded"])
        return value, {"decoded": np.concatenate([memory["decoded"], value[None]])}

    def decode(self, measured: FloatArray) -> FloatArray:
        values = np.zeros(measured.shape)
        for place, number in enumerate(measured):
            values[place] = self._value(place + 1, number, values[:place])
        return values

    def _value(self, position: int, number: FloatArray, earlier: FloatArray) -> FloatArray:
        row = self._row(position)
        return np.asarray((number - row[:-1] @ earlier) / row[-1])

    def _row(self, position: int) -> FloatArray:
        known = self._of_few
        return known[position - 1] if known else self.map.row(position).astype(np.float64)

    @cached_property
    def _of_few(self) -> list[FloatArray]:
        """All rows of a map that has few; of what has many, or one for every position, none."""
        if isinstance(self.map, EndlessCounter) or self.map.length > _FEW:
            return []
        return [self.map.row(place + 1).astype(np.float64) for place in range(self.map.length)]

    def transposed(self, wanted: FloatArray) -> FloatArray:
        """Substitution from the last to the first."""
        left, solved = wanted.astype(np.float64), np.zeros(wanted.shape)
        for place in reversed(range(len(wanted))):
            row = self._row(place + 1)
            solved[place] = left[place] / row[-1]
            left[:place] -= np.multiply.outer(row[:-1], solved[place])
        return solved

    def work_out(self, count: int, power: int) -> FloatArray:
        match self.map:
            case EndlessCounter():
                # Every position responds alike to noise at an earlier one.
                return np.cumsum(np.cumsum(_inverse(self.map.taps(count))) ** power)
            case OffsetFilter():
                return _offset_moment(self.map, power)
        increments = scipy.linalg.solve_triangular(
            self.map.weights.astype(np.float64), np.eye(self.map.length), lower=True
        )
        return np.asarray((np.cumsum(increments, axis=0) ** power).sum(axis=1))


def _inverse(taps: IntArray) -> FloatArray:
    """The inverse taps: term by term, and for very many by Newton's doubling on power series."""
    inverse = inverse_taps([int(tap) for tap in taps[:_TERM_BY_TERM]], min(len(taps), _TERM_BY_TERM))
    while len(inverse) < len(taps):
        longer = min(2 * len(inverse), len(taps))
        residual = -scipy.signal.fftconvolve(taps[:longer].astype(np.float64), inverse)[:longer]
        residual[0] += 2.0
        inverse = scipy.signal.fftconvolve(inverse, residual)[:longer]
    return np.asarray(inverse)


def _offset_moment(measured: OffsetFilter, power: int) -> FloatArray:
    """Sums of powers of the decoder's rows, in O(length^2), but for what rounding the matrix adds.

    Noise of 1 in row s moves the filter's number s by `1 / a_s`, and each later one by a factor `b / a` of the sum of
    all before it, which so grows by a factor `1 + b / a`.
    """
    unit, length = 2.0**-measured.shift, measured.length
    weights, offsets = (np.array(part, dtype=np.float64) * unit for part in (measured.weights, measured.offsets))
    grown = np.cumprod(1 + offsets / weights)
    rises = grown / (1 + offsets / weights) * offsets / weights
    inverse = inverse_taps(measured.taps, length)
    # What the rises of all later numbers make of each value.
    later, total = np.zeros(length), np.zeros(length)
    for place in reversed(range(length)):
        own = inverse[: length - place]
        total[place:] += ((own + later[place:] / grown[place]) / weights[place]) ** power
        later[place:] += own * rises[place]
    return total
