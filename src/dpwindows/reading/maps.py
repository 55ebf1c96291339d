"""Readers of integer maps: each reads back a whole series, or one position after another."""

from __future__ import annotations

from functools import lru_cache

from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.endless_counter import EndlessCounter
from dpwindows.kernel.maps.filters import Filter, Identity, OffsetFilter
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.reading.differences import AnchoredReader, AnchoredStepReader
from dpwindows.reading.filters import FilterReader, IdentityReader
from dpwindows.reading.moments import SeriesReader, StepReader, StepsReader
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
    return StepsReader(step_reader(measured), length)


@lru_cache(maxsize=_KEPT)
def step_reader(measured: CausalMap) -> StepReader:
    """The reader of a map's measurement, position by position; raises `TypeError` if the map needs what comes later."""
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
