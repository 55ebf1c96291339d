"""Readers of integer maps: each reads back a whole series, or one position after another."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.endless_counter import EndlessCounter
from dpwindows.kernel.maps.filters import Filter, Identity, OffsetFilter
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap
from dpwindows.kernel.maps.repeated import Repeated, apply_along_each
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.reading.differences import AnchoredReader, AnchoredStepReader
from dpwindows.reading.filters import FilterReader, IdentityReader
from dpwindows.reading.moments import FloatArray, SeriesReader, StepReader, StepsReader
from dpwindows.reading.rows import RowReader
from dpwindows.reading.tent_tree import TentReader
from dpwindows.reading.trees import TreeStepReader

# Readers that are kept: what they have worked out may be large.
_KEPT = 64


@lru_cache(maxsize=_KEPT)
def series_reader(measured: IntegerMap, length: int) -> SeriesReader:
    """The reader of a whole series of `length` positions: by its steps, where nothing better is known of the map."""
    match measured:
        case AnchoredDifferences():
            return AnchoredReader(measured, length)
        case TentTree():
            return TentReader(measured)
        case Repeated():
            return RepeatedReader(measured)
    return StepsReader(step_reader(measured), length)  # type: ignore[arg-type]  # the others are causal


@lru_cache(maxsize=_KEPT)
def step_reader(measured: CausalMap) -> StepReader:
    """The reader of a map's measurement, position by position.

    Raises:
        TypeError: the map needs what comes later.
    """
    match measured:
        case Identity():
            return IdentityReader(measured)
        case Filter():
            return FilterReader(measured)
        case OffsetFilter() | MatrixCounter() | EndlessCounter():
            return RowReader(measured)
        case AnchoredDifferences():
            return AnchoredStepReader(measured)
        case CausalTree():
            return TreeStepReader(measured)
    raise TypeError(f"{type(measured).__name__} has no reader of single steps")


class RepeatedReader(SeriesReader):
    """Each stretch by itself; what was not measured is taken as 0, which no estimate needs."""

    def __init__(self, measured: Repeated) -> None:
        self._map = measured
        self._each = series_reader(measured.map, measured.longest)

    @property
    def shape(self) -> tuple[int, int]:
        length = sum(self._map.lengths)
        return self._map.rows(length), length

    def decode(self, measured: FloatArray) -> FloatArray:
        full = np.zeros((*self._map.measured.shape, *measured.shape[1:]))
        full[self._map.measured] = measured
        return np.asarray(apply_along_each(self._each.decode, full)[self._map.exists])

    def variance(self) -> FloatArray:
        """The variances of the map, stretch after stretch."""
        return self._stretched(self._each.variance())

    def fourth_moment(self) -> FloatArray | None:
        """The fourth moments of the map, stretch after stretch."""
        moment = self._each.fourth_moment()
        return None if moment is None else self._stretched(moment)

    def _stretched(self, moment: NDArray[np.float64]) -> FloatArray:
        return np.concatenate([moment[:length] for length in self._map.lengths])

    def by_stretch(self, wanted: FloatArray) -> dict[Hashable, FloatArray]:
        """What a combination puts on the numbers of each stretch; rows beyond its end hold no noise of any estimate."""
        stretches = np.split(wanted, np.cumsum(self._map.lengths)[:-1])
        longest = self._map.longest
        return {
            at: self._each.transposed(np.pad(stretch, (0, longest - len(stretch))))
            for at, stretch in enumerate(stretches)
            if stretch.any()
        }
