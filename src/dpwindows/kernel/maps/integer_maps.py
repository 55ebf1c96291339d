"""Integer linear maps along one axis: what is measured of a series of exact counts.

A measurement is `y = M x + z` with an integer matrix `M`. Each class of this folder is one shape of `M` acting on the
first axis of an array, in exact integer arithmetic: certificates are computed from the very integers that it multiplies
by. How a noisy `y` is read back is no business of the kernel (`dpwindows.reading`).

A causal map applies one matrix in two ways: to a whole series (`encode`), and one position after another
(`encode_step`), where no row needs anything after the position at which it is measured. Step by step it keeps a
*memory* of exact integers of earlier positions and acts on several series at once, its *lanes*. Positions are numbered
from 1.

Maps never depend on the data; their parameters are fixed by what is asked and by the budget.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[Any]
FloatArray = NDArray[np.float64]
Memory = dict[str, np.ndarray]

# A bound on absolute values below which a 64-bit sum cannot wrap, with one bit to spare.
_SAFE = 1 << 62


class IntegerMap(Protocol):
    """One integer matrix `M` on a series."""

    def __hash__(self) -> int:
        """Maps stay as they are."""
        ...

    def rows(self, length: int) -> int:
        """How many numbers are measured of a series of `length` positions.

        Raises:
            ValueError: the matrix is for series of another length.
        """
        ...

    def encode(self, exact: IntArray) -> IntArray:
        """`M x` along the first axis: shape (length, ...) to (rows, ...), exact integers."""
        ...


class CausalMap(IntegerMap, Protocol):
    """One integer matrix that can be applied position by position, for any number of lanes."""

    def rows_at(self, position: int) -> int:
        """How many numbers are measured at a position, for each lane."""
        ...

    def fresh(self, lanes: int) -> Memory:
        """The memory before the first position, for this number of lanes."""
        ...

    def encode_step(self, position: int, exact: IntArray, memory: Memory) -> tuple[IntArray, Memory]:
        """The exact integers of a position, values of shape (lanes,) to (rows_at, lanes), and the memory after it."""
        ...


class RowByRow(ABC):
    """A lower-triangular matrix applied step by step, one row after another: every value stays in memory."""

    @abstractmethod
    def row(self, position: int) -> IntArray:
        """Entries 1..position of a row, on the values of the series."""

    def rows_at(self, position: int) -> int:
        return 1

    def fresh(self, lanes: int) -> Memory:
        """No values yet, shape (0, lanes)."""
        return {"exact": np.zeros((0, lanes), dtype=np.int64)}

    def encode_step(self, position: int, exact: IntArray, memory: Memory) -> tuple[IntArray, Memory]:
        """The row of the position times all values, which are remembered with the newest one after them."""
        series = np.concatenate([memory["exact"], exact[None].astype(np.int64)])
        return weighted_sum(self.row(position), series)[None], {"exact": series}


def fixed(values: IntArray) -> IntArray:
    """A copy that stays as it is: what was certified is what is applied, whatever becomes of the array handed in."""
    own = np.array(values)
    own.flags.writeable = False
    return own


def widen(exact: IntArray, growth: int) -> IntArray:
    """Integers in a type that is wide enough for sums of them with total weight `growth`: none can wrap.

    64-bit integers where `growth * max|x| < 2^62`, Python integers of any size otherwise.
    """
    largest = max(1, abs(int(exact.min())), abs(int(exact.max()))) if exact.size else 1
    return exact.astype(np.int64 if largest * growth < _SAFE else object)


def weighted_sum(weights: IntArray, values: IntArray) -> IntArray:
    """`sum_j weights_j values_j` along the first axis, in exact integers."""
    wide = widen(values, int(sum(abs(int(weight)) for weight in weights)))
    return np.asarray(np.tensordot(weights.astype(wide.dtype), wide, axes=1))


def require_positive(what: str, *numbers: int) -> None:
    """Refuse a number below 1.

    Raises:
        ValueError: there is one.
    """
    if min(numbers) < 1:
        raise ValueError(f"{what} must be positive, got {numbers}")


def require_length(map_length: int, length: int) -> None:
    """Refuse a series that a map is not for.

    Raises:
        ValueError: it has another length.
    """
    if map_length != length:
        raise ValueError(f"a map for {map_length} positions was applied to a series of {length}")
