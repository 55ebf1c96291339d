"""Integer linear maps along one axis: what is measured, and how a noisy measurement is read back.

A measurement is `y = M x + z` with an integer matrix `M`. Each class here is one shape of `M` acting on the first
axis of an array:

- `encode` applies `M` to exact integers in exact integer arithmetic. It is part of the trusted kernel: the certified
  sensitivity (`dpwindows.kernel.bounds.sensitivity`) is computed from the very integers it multiplies by.
- `decode` applies a left inverse of the same integer `M` in floating point. It is post-processing: a mistake there
  costs accuracy, never privacy. A map inherits it from its base in `dpwindows.kernel.untrusted.decoding`, which a test
  keeps from replacing anything that stands here.
- `variance` and `fourth_moment` give, for each decoded position, `sum c^2` and `sum c^4` over the weights `c` that
  `decode` puts on independent noise of unit variance.

A `CausalMap` is the same matrix evaluated one position at a time, where no row needs anything after the position at
which it is measured. It keeps a *memory* of fixed shape (exact integers and decoded numbers of earlier positions), so
that a stream can run for ever; it acts on several series at once, its *lanes*. Positions are numbered from 1.

Each family has a file, a batch map beside its causal twin. Maps never depend on the data; their parameters are fixed
by what is asked and by the budget.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[Any]
FloatArray = NDArray[np.float64]
Memory = dict[str, np.ndarray]

# A bound on absolute values below which a 64-bit sum cannot wrap, with one bit to spare.
_SAFE = 1 << 62


class IntegerMap(Protocol):
    """One integer matrix `M` with `length` columns and `rows` rows, and a left inverse of it."""

    @property
    def length(self) -> int:
        """Number of columns of `M`: positions of the exact series."""
        ...

    @property
    def rows(self) -> int:
        """Number of rows of `M`: numbers measured."""
        ...

    def encode(self, exact: IntArray) -> IntArray:
        """`M x` along the first axis: shape (length, ...) to (rows, ...), exact integers."""
        ...

    def decode(self, measured: FloatArray) -> FloatArray:
        """The left inverse of `M` along the first axis: shape (rows, ...) to (length, ...)."""
        ...

    def variance(self) -> FloatArray:
        """`sum c^2` per decoded position, shape (length,)."""
        ...

    def fourth_moment(self) -> FloatArray | None:
        """`sum c^4` per decoded position, shape (length,), or None where it is not computed."""
        ...


def read_back(
    decode: Callable[[Memory], tuple[FloatArray, Memory]], memory: Memory, kept: Memory
) -> tuple[FloatArray, Memory]:
    """One step of a decoder, which is not trusted: it sees nothing exact, and changes nothing that is encoded later.

    Args:
        decode: the estimates and the decoder's new memory, of its old memory.
        memory: what encoder and decoder remembered up to the step.
        kept: what the encoder is to remember after it (`remember`), with every name that it remembers anything by.

    Returns:
        The estimates, and the memory of both: under a name of the encoder's stands what the encoder keeps.
    """
    estimates, decoded = decode({name: values for name, values in memory.items() if name not in kept})
    return estimates, kept | decoded | kept


class CausalMap(Protocol):
    """One causal integer map, for any number of lanes."""

    def rows_at(self, position: int) -> int:
        """How many numbers are measured at a position, for each lane."""
        ...

    def fresh(self, lanes: int) -> Memory:
        """The memory before the first position, of so many lanes."""
        ...

    def encode(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        """The exact integers measured at a position: values of shape (lanes,) to (rows_at, lanes)."""
        ...

    def decode(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """Estimates (lanes,) from numbers (rows_at, lanes), and what `decode` is to remember."""
        ...

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        """What `encode` is to remember after a position: of its values, shape (lanes,), and what it remembered."""
        ...

    def variance(self, count: int) -> FloatArray:
        """`sum c^2` of the estimates at positions 1..count, shape (count,)."""
        ...

    def fourth_moment(self, count: int) -> FloatArray:
        """`sum c^4` of the estimates at positions 1..count, shape (count,)."""
        ...


def fixed(values: IntArray) -> IntArray:
    """A copy that stays as it is: what was certified is what is applied, whatever becomes of the array handed in."""
    own = np.array(values)
    own.flags.writeable = False
    return own


def widen(exact: IntArray, growth: int) -> IntArray:
    """The same integers in a type wide enough: sums of them with total weight `growth` cannot wrap.

    64-bit integers where `growth * max|x| < 2^62`, Python integers of any size otherwise.
    """
    largest = max(1, abs(int(exact.min())), abs(int(exact.max()))) if exact.size else 1
    return exact.astype(np.int64 if largest * growth < _SAFE else object)


def weighted_sum(weights: IntArray, values: IntArray) -> IntArray:
    """`sum_j weights_j values_j` along the first axis, in exact integers."""
    wide = widen(values, int(sum(abs(int(weight)) for weight in weights)))
    return np.asarray(np.tensordot(weights.astype(wide.dtype), wide, axes=1))


def pushed(newest: np.ndarray, past: np.ndarray) -> np.ndarray:
    """The past, newest first, with one more value in front and the oldest gone."""
    return np.concatenate([newest[None], past[:-1]]) if len(past) else past


class Rows(Protocol):
    """The rows of a lower-triangular integer matrix on increments, its diagonal positive."""

    @property
    def longest(self) -> int:
        """How many rows there are."""
        ...

    @property
    def stationary(self) -> bool:
        """Whether every row is the one before, shifted by one."""
        ...

    def row(self, position: int) -> IntArray:
        """Entries 1..position of a row."""
        ...
