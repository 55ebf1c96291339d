"""Trees whose nodes overlap: sums of increments under tents, an integer map for Laplace noise.

A tree measures the increments of a series and, on a few coarser levels, sums over blocks of them. Blocks begin and end
abruptly, and the values in the middle of one are read poorly. Here the nodes of a level are tents instead: weights
that rise and fall in a straight line, each tent beginning where the one before has its top. On every level the
weights of an increment still add up to the same number, so that a change costs no more than in a tree of blocks,
while least squares has an error lower by a tenth (by a fifth where two trees multiply).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import IntArray, require_length, widen

# Where the first tent of a level has its top, in spacings from the beginning; before it the weight is whole.
_FIRST_TOP = 0.7


@dataclass(frozen=True)
class TentTree:
    """Weighted increments, and weighted sums of them under overlapping tents on `len(tents)` coarser levels.

    Level l has `tents[l]` tents with tops at `s (0.7 + j)`, `j = 0, 1, ...`, with the spacing `s = length / (tents[l] +
    0.7)`: the last top is one spacing before the end. The weight of the increment in the middle of `(t, t + 1)` in a
    tent with top c is `unit max(0, 1 - |t + 1/2 - c| / s)`, rounded; `unit` to the left of the first top. Every
    increment `x_t - x_{t-1}` (`x_0 = 0`) is measured by itself too, with the weight that its tents leave of
    `column_total`.

    All weights are positive: before rounding those of an increment in the tents of one level add up to at most `unit`,
    in at most two tents, so after it to at most `unit + 1`, and at least `unit - len(tents)` is left, which must be
    more than 0. And those of one increment add up to `column_total`, whatever was rounded: a change of one increment
    by 1 changes the measurement by exactly that much in L1.

    Raises:
        ValueError: a level has as many tents as positions, or the unit is too small for that many levels.
    """

    length: int
    tents: tuple[int, ...]
    unit: int = 1 << 10

    def __post_init__(self) -> None:
        if not all(0 <= count < max(2, self.length) for count in self.tents):
            raise ValueError(f"a level needs fewer tents than the {self.length} positions, got {self.tents}")
        if self.unit <= len(self.tents):
            raise ValueError(f"weights of {self.unit} are too coarse for {len(self.tents)} levels of tents")

    @property
    def column_total(self) -> int:
        """What the weights of any one increment add up to."""
        return self.unit * (1 + len(self.tents))

    def rows(self, length: int) -> int:
        require_length(self.length, length)
        return length + sum(self.tents)

    @cached_property
    def tent_weights(self) -> Any:
        """The weights of the tents, finest level first: a sparse array of integers, shape (tents, length)."""
        middles = np.arange(self.length) + 0.5
        levels = []
        for count in self.tents:
            # Which tent's top is before each increment, and how far the increment is on the way to the next one.
            before, passed = np.divmod(middles * (count + _FIRST_TOP) / self.length - _FIRST_TOP, 1.0)
            falling = np.rint(self.unit * np.where(before < 0, 0.0, 1 - passed)).astype(np.int64)
            rising = np.rint(self.unit * np.where(before < 0, 1.0, passed)).astype(np.int64)
            position, top = np.arange(self.length), before.astype(np.int64)
            tent = np.concatenate([top, top + 1])
            weight = np.concatenate([falling, rising])
            kept = (tent >= 0) & (tent < count) & (weight > 0)
            where = (tent[kept], np.concatenate([position, position])[kept])
            levels.append(scipy.sparse.coo_array((weight[kept], where), shape=(count, self.length)))
        return (
            scipy.sparse.csr_array(scipy.sparse.vstack(levels))
            if levels
            else scipy.sparse.csr_array((0, self.length), dtype=np.int64)
        )

    @cached_property
    def leaf_weights(self) -> NDArray[np.int64]:
        """The weight of each increment by itself."""
        return np.asarray(self.column_total - self.tent_weights.sum(axis=0), dtype=np.int64)

    def encode(self, exact: IntArray) -> IntArray:
        """Weighted increments, then the sums under tents, level by level; exact."""
        largest = int(self.tent_weights.sum(axis=1).max(initial=self.column_total))
        increments = np.diff(widen(exact, 2 * largest), axis=0, prepend=0)
        kind = increments.dtype
        measured = np.empty((self.rows(len(exact)), *exact.shape[1:]), dtype=kind)
        measured[: self.length] = increments * self.leaf_weights.astype(kind).reshape((-1,) + (1,) * (exact.ndim - 1))
        bounds = self.tent_weights.indptr
        for tent in range(sum(self.tents)):
            inside = slice(bounds[tent], bounds[tent + 1])
            weights = self.tent_weights.data[inside].astype(kind)
            measured[self.length + tent] = weights @ increments[self.tent_weights.indices[inside]]
        return measured
