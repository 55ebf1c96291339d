"""One map for each of several stretches of a series, every stretch by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import IntArray, IntegerMap, require_length


@dataclass(frozen=True)
class Repeated:
    """`M` is block-diagonal: one map, applied to consecutive stretches of the series.

    The map is as long as the longest stretch; others are continued by their last value. With a `causal` map, which has
    a row for each position and needs nothing after it, rows beyond the end of a stretch are left out.

    Attributes:
        map: what is applied to each stretch.
        lengths: how many positions each stretch has.
        causal: leave out the rows beyond the end of a stretch.
    """

    map: IntegerMap
    lengths: tuple[int, ...]
    causal: bool

    @property
    def longest(self) -> int:
        """The positions of the longest stretch."""
        return max(self.lengths)

    def rows(self, length: int) -> int:
        require_length(sum(self.lengths), length)
        return int(self.measured.sum())

    @cached_property
    def exists(self) -> NDArray[np.bool_]:
        """Marks the positions that each stretch has, shape (stretches, longest)."""
        return np.arange(self.longest) < np.array(self.lengths)[:, None]

    @cached_property
    def measured(self) -> NDArray[np.bool_]:
        """Marks the rows that are measured of each stretch, shape (stretches, rows of the map)."""
        rows = self.map.rows(self.longest)
        return self.exists if self.causal else np.ones((len(self.lengths), rows), dtype=np.bool_)

    def encode(self, exact: IntArray) -> IntArray:
        ends = np.cumsum(self.lengths)[:, None]
        begins = ends - np.array(self.lengths)[:, None]
        places = np.minimum(begins + np.arange(self.longest), ends - 1)
        return np.asarray(apply_along_each(self.map.encode, exact[places])[self.measured])


def apply_along_each(apply: Callable[[IntArray], IntArray], stretches: IntArray) -> IntArray:
    """A function of columns, shape (n, columns), applied along the second axis of stretches."""
    columns = np.moveaxis(stretches, 1, 0)
    applied = apply(columns.reshape(len(columns), -1))
    return np.moveaxis(applied.reshape(len(applied), *columns.shape[1:]), 0, 1)
