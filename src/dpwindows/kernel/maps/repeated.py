"""One map for each of several stretches of a series, every stretch by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, IntegerMap


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
    def length(self) -> int:
        return sum(self.lengths)

    @property
    def rows(self) -> int:
        return int(self._measured.sum())

    @cached_property
    def _exists(self) -> NDArray[np.bool_]:
        """Which positions each stretch has, shape (stretches, longest)."""
        return np.arange(self.map.length) < np.array(self.lengths)[:, None]

    @cached_property
    def _measured(self) -> NDArray[np.bool_]:
        """Which rows are measured of each stretch, shape (stretches, rows of the map)."""
        return self._exists if self.causal else np.ones((len(self.lengths), self.map.rows), dtype=np.bool_)

    def encode(self, exact: IntArray) -> IntArray:
        ends = np.cumsum(self.lengths)[:, None]
        begins = ends - np.array(self.lengths)[:, None]
        places = np.minimum(begins + np.arange(self.map.length), ends - 1)
        return np.asarray(_along_each(self.map.encode, exact[places])[self._measured])

    def decode(self, measured: FloatArray) -> FloatArray:
        """The map's left inverse for each stretch; what was not measured is taken as 0, which no estimate needs."""
        full = np.zeros((*self._measured.shape, *measured.shape[1:]))
        full[self._measured] = measured
        return np.asarray(_along_each(self.map.decode, full)[self._exists])

    def variance(self) -> FloatArray:
        """Those of the map, stretch after stretch."""
        return self._of_each(self.map.variance())

    def fourth_moment(self) -> FloatArray | None:
        """Those of the map, stretch after stretch."""
        moment = self.map.fourth_moment()
        return None if moment is None else self._of_each(moment)

    def _of_each(self, moment: FloatArray) -> FloatArray:
        return np.concatenate([moment[:length] for length in self.lengths])


def _along_each(apply: Callable[[IntArray], IntArray], stretches: IntArray) -> IntArray:
    """A function of columns, shape (n, columns), applied along the second axis of stretches."""
    columns = np.moveaxis(stretches, 1, 0)
    found = apply(columns.reshape(len(columns), -1))
    return np.moveaxis(found.reshape(len(found), *columns.shape[1:]), 0, 1)
