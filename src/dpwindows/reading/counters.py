"""Prefix counters undone: increments by substitution, then their running sum, in floating point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.endless_counter import EndlessCounter
from dpwindows.kernel.maps.integer_maps import IntArray, Memory
from dpwindows.reading.filters import inverse_taps
from dpwindows.reading.moments import FloatArray, SeriesReader, StepReader

# Inverse taps worked out one after the other, in time that grows like the square of their number.
_TERM_BY_TERM = 1 << 13


@dataclass(frozen=True, eq=False)
class MatrixCounterReader(SeriesReader):
    """Increments by substitution, then their running sum, for a whole series."""

    map: MatrixCounter

    @property
    def shape(self) -> tuple[int, int]:
        return self.map.length, self.map.length

    def decode(self, measured: FloatArray) -> FloatArray:
        increments = scipy.linalg.solve_triangular(self.map.weights.astype(np.float64), measured, lower=True)
        return np.asarray(np.cumsum(increments, axis=0))

    @cached_property
    def _decoder(self) -> FloatArray:
        return self.decode(np.eye(self.map.length))

    def variance(self) -> FloatArray:
        return np.asarray((self._decoder**2).sum(axis=1))

    def fourth_moment(self) -> FloatArray:
        return np.asarray((self._decoder**4).sum(axis=1))

    def transposed(self, wanted: FloatArray) -> FloatArray:
        return np.tensordot(self._decoder.T, wanted, axes=1)


@dataclass(frozen=True, eq=False)
class CounterStepReader(StepReader):
    """The newest increment by substitution, added to the sum of the earlier ones."""

    map: MatrixCounter | EndlessCounter

    def fresh(self, lanes: int) -> Memory:
        return {"decoded": np.zeros((0, lanes)), "sum": np.zeros(lanes)}

    def decode_step(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        row = self.map.row(position).astype(np.float64)
        increment = (measured[0] - row[:-1] @ memory["decoded"]) / row[-1]
        estimate = memory["sum"] + increment
        return estimate, {"decoded": np.concatenate([memory["decoded"], increment[None]]), "sum": estimate}

    def work_out(self, count: int, power: int) -> FloatArray:
        if isinstance(self.map, EndlessCounter):
            # Every position responds alike to noise at an earlier one.
            response = np.cumsum(_inverse(self.map.taps(count)))
            return np.cumsum(response**power)
        reader = MatrixCounterReader(self.map)
        return reader.variance() if power == 2 else reader.fourth_moment()


def _inverse(taps: IntArray) -> FloatArray:
    """The inverse taps: term by term, and for very many by Newton's doubling on power series."""
    inverse = inverse_taps([int(tap) for tap in taps[:_TERM_BY_TERM]], min(len(taps), _TERM_BY_TERM))
    while len(inverse) < len(taps):
        longer = min(2 * len(inverse), len(taps))
        residual = -scipy.signal.fftconvolve(taps[:longer].astype(np.float64), inverse)[:longer]
        residual[0] += 2.0
        inverse = scipy.signal.fftconvolve(inverse, residual)[:longer]
    return np.asarray(inverse)
