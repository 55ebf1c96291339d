"""Prefix counters undone: increments by substitution, then their running sum, in floating point."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, Memory, Rows
from dpwindows.kernel.untrusted.decoding.filters import inverse_taps, invert_filter
from dpwindows.kernel.untrusted.decoding.moments import KnownMoments

# Inverse taps worked out one after the other, in time that grows like the square of their number.
_TERM_BY_TERM = 1 << 13


class WeightedDecoding:
    """How `WeightedCounter` is decoded."""

    length: int
    taps: tuple[int, ...]
    weights: tuple[int, ...]

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


class TriangularDecoding:
    """How `TriangularCounter` is decoded."""

    weights: IntArray

    if TYPE_CHECKING:

        @property
        def rows(self) -> int: ...

    def decode(self, measured: FloatArray) -> FloatArray:
        """Increments by substitution, then their running sum."""
        increments = scipy.linalg.solve_triangular(self.weights.astype(np.float64), measured, lower=True)
        return np.asarray(np.cumsum(increments, axis=0))

    @cached_property
    def _decoder(self) -> FloatArray:
        return self.decode(np.eye(self.rows))

    def variance(self) -> FloatArray:
        return np.asarray((self._decoder**2).sum(axis=1))

    def fourth_moment(self) -> FloatArray:
        return np.asarray((self._decoder**4).sum(axis=1))


class OffsetMoments:
    """How exact estimates are that undo `OffsetRows`."""

    taps: tuple[int, ...]
    weights: IntArray
    offsets: IntArray
    shift: int

    def moment(self, count: int, power: int) -> FloatArray:
        """Sums of powers of the decoder's rows, in O(count^2).

        Noise of 1 in row s moves the filter's number s by `1 / a_s` and each later one by a factor `b / a` of the sum
        of all before it; these factors grow so that all later ones are moved alike, but for rounding.
        """
        unit = 2.0**-self.shift
        weights, offsets = (part[:count].astype(np.float64) * unit for part in (self.weights, self.offsets))
        count = len(weights)
        grown = np.cumprod(1 + offsets / weights)
        later = np.diff(grown).mean() / (grown * weights) if count > 1 else weights
        inverse = inverse_taps(self.taps, count)
        sums = np.concatenate([[0.0], np.cumsum(inverse)[:-1]])
        total = np.zeros(count)
        for place in range(count):
            left = count - place
            total[place:] += (inverse[:left] / weights[place] + later[place] * sums[:left]) ** power
        return total


class OffsetDecoding:
    """How `OffsetFilter` is decoded: value by value, the noise's moments those of its matrix."""

    matrix: Any

    def decode(self, measured: FloatArray) -> FloatArray:
        """Values by substitution, from the first to the last."""
        found = np.zeros(measured.shape)
        for position in range(1, len(measured) + 1):
            entries = self.matrix.entries(position).astype(np.float64)
            earlier = np.tensordot(entries[1:], found[: position - 1][::-1], axes=1)
            found[position - 1] = (measured[position - 1] - earlier) / entries[0]
        return found

    @cached_property
    def _moments(self) -> dict[int, FloatArray]:
        return {power: self.matrix.moment(self.matrix.longest, power) for power in (2, 4)}

    def variance(self) -> FloatArray:
        return self._moments[2]

    def fourth_moment(self) -> FloatArray:
        return self._moments[4]


class CausalCounterDecoding(KnownMoments):
    """How `CausalCounter` is decoded."""

    rows: Rows

    def decode(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The newest increment by substitution, added to the sum of the earlier ones."""
        row = self.rows.row(position).astype(np.float64)
        increment = (measured[0] - row[:-1] @ memory["decoded"]) / row[-1]
        estimate = memory["sum"] + increment
        return estimate, {"decoded": np.concatenate([memory["decoded"], increment[None]]), "sum": estimate}

    def _worked_out(self, count: int, power: int) -> FloatArray:
        if isinstance(self.rows, OffsetMoments):
            return self.rows.moment(count, power)
        if self.rows.stationary:
            # Every position responds alike to noise at an earlier one.
            response = np.cumsum(_inverse(self.rows.row(count)[::-1]))
            return np.cumsum(response**power)
        count = min(count, self.rows.longest)
        matrix = np.zeros((count, count))
        for position in range(1, count + 1):
            matrix[position - 1, :position] = self.rows.row(position)
        increments = scipy.linalg.solve_triangular(matrix, np.eye(count), lower=True)
        return np.asarray((np.cumsum(increments, axis=0) ** power).sum(axis=1))


def _inverse(taps: IntArray) -> FloatArray:
    """The inverse taps: term by term, and for very many by Newton's doubling on power series."""
    impulse = np.zeros(min(len(taps), _TERM_BY_TERM))
    impulse[0] = 1.0
    inverse = invert_filter([int(tap) for tap in taps[: len(impulse)]], impulse)
    while len(inverse) < len(taps):
        longer = min(2 * len(inverse), len(taps))
        residual = -scipy.signal.fftconvolve(taps[:longer].astype(np.float64), inverse)[:longer]
        residual[0] += 2.0
        inverse = scipy.signal.fftconvolve(inverse, residual)[:longer]
    return np.asarray(inverse)
