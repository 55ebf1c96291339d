"""What all readers of maps have in common: moments of estimates, and decoders applied backwards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.integer_maps import CausalMap, Memory
from dpwindows.kernel.maps.integer_maps import FloatArray as FloatArray

# Explicit decoding matrices (for fourth moments) are formed up to this many positions.
_DENSE = 2048
# Numbers whose decoding is looked at together.
_CHUNK = 512


class SeriesReader(ABC):
    """Reads a whole series back from a map's measurement of it: a left inverse of the map's matrix."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """How many numbers were measured, and of how many positions."""

    @abstractmethod
    def decode(self, measured: FloatArray) -> FloatArray:
        """Estimates along the first axis: shape (rows, ...) to (length, ...)."""

    @abstractmethod
    def variance(self) -> FloatArray:
        """`sum c^2` over the weights c of each estimate on independent noise of unit variance, shape (length,)."""

    def fourth_moment(self) -> FloatArray | None:
        """`sum c^4`, or None where it is not worked out."""
        return dense_fourth_moment(self.decode, *self.shape)

    def moment(self, power: int) -> FloatArray | None:
        """`sum c^power`, for 2 or 4."""
        return self.variance() if power == 2 else self.fourth_moment()

    def transposed(self, wanted: FloatArray) -> FloatArray:
        """What combinations of estimates put on the numbers measured: shape (length, ...) to (rows, ...)."""
        return transposed_in_chunks(self.shape[0], self.decode, wanted)


class StepReader(ABC):
    """Reads a series back position by position, from what has been measured up to there."""

    map: CausalMap

    @abstractmethod
    def fresh(self, lanes: int) -> Memory:
        """The memory of estimates before the first position."""

    @abstractmethod
    def decode_step(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """Estimates (lanes,) from numbers (rows_at, lanes), and the memory after the position."""

    @abstractmethod
    def work_out(self, count: int, power: int) -> FloatArray:
        """`sum c^power` of the estimates at positions 1..count or more."""

    @cached_property
    def _known(self) -> dict[int, FloatArray]:
        return {}

    def moment(self, count: int, power: int) -> FloatArray:
        """`sum c^power` of the estimates at positions 1..count; kept, for it is asked for step by step."""
        known = self._known.get(power)
        if known is None or len(known) < count:
            known = self._known[power] = self.work_out(1 << (count - 1).bit_length(), power)
        return known[:count]

    def decode(self, measured: FloatArray) -> FloatArray:
        """Estimates at all positions, shape (positions, ...), from the numbers of one position after another."""
        numbers = measured.reshape(len(measured), -1)
        memory, estimates, place = self.fresh(numbers.shape[1]), list[FloatArray](), 0
        while place < len(numbers):
            count = self.map.rows_at(len(estimates) + 1)
            estimate, memory = self.decode_step(len(estimates) + 1, numbers[place : place + count], memory)
            place += count
            estimates.append(estimate)
        return np.stack(estimates).reshape(-1, *measured.shape[1:])

    def transposed(self, wanted: FloatArray) -> FloatArray:
        """What combinations of the estimates at positions 1..len(wanted) put on the numbers measured up to there."""
        rows = sum(self.map.rows_at(position) for position in range(1, len(wanted) + 1))
        return transposed_in_chunks(rows, self.decode, wanted)


@dataclass(frozen=True)
class StepsReader(SeriesReader):
    """A series of `length` positions whose estimates are those of its steps."""

    steps: StepReader
    length: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.steps.map.rows(self.length), self.length

    def decode(self, measured: FloatArray) -> FloatArray:
        return self.steps.decode(measured)

    def variance(self) -> FloatArray:
        return self.steps.moment(self.length, 2)

    def fourth_moment(self) -> FloatArray:
        return self.steps.moment(self.length, 4)

    def transposed(self, wanted: FloatArray) -> FloatArray:
        return self.steps.transposed(wanted)


def dense_fourth_moment(decode: Callable[[FloatArray], FloatArray], rows: int, length: int) -> FloatArray | None:
    """Sums of fourth powers of a decoder's rows, from its explicit matrix; None beyond 2,048 rows or positions."""
    if max(rows, length) > _DENSE:
        return None
    weights: FloatArray = decode(np.eye(rows))
    return np.asarray((weights**4).sum(axis=1), dtype=np.float64)


def transposed_in_chunks(rows: int, decode: Callable[[FloatArray], FloatArray], wanted: FloatArray) -> FloatArray:
    """`D' wanted` from a decoder D applied to unit vectors, many at a time."""
    return np.concatenate([np.tensordot(decode(units).T, wanted, axes=1) for units in _units(rows)])


def _units(rows: int) -> Iterator[FloatArray]:
    for first in range(0, rows, _CHUNK):
        count = min(_CHUNK, rows - first)
        units = np.zeros((rows, count))
        units[np.arange(first, first + count), np.arange(count)] = 1.0
        yield units
