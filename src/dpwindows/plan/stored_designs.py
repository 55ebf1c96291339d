"""Designs as plain values and integer arrays, and back: what a release and a stream keep of what they were measured by.

A number that was released must be read, and a stream go on, by the very integers that were applied, on whatever machine
and in whatever version of the library. So the integers themselves are kept, not how they were found: nothing that was
measured is searched for again.
"""

from __future__ import annotations

import base64
import lzma
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from dpwindows.ask.queries import ToDate, Tumbling, WindowFamily, parse_window
from dpwindows.kernel.maps.counters import (
    CausalCounter,
    ListedRows,
    OffsetFilter,
    OffsetRows,
    TriangularCounter,
    WeightedCounter,
    WeightedRows,
)
from dpwindows.kernel.maps.differences import AnchoredDifferences, CausalAnchors
from dpwindows.kernel.maps.endless_counter import LogarithmicRows
from dpwindows.kernel.maps.filters import CausalFilter, CausalIdentity, Filter, Identity
from dpwindows.kernel.maps.gaps import GapFilter
from dpwindows.kernel.maps.matrix_filters import MatrixFilter
from dpwindows.kernel.maps.repeated import Repeated
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree, Tree
from dpwindows.kernel.paper.range_tree import RangeTree
from dpwindows.kernel.paper.shapes import (
    CompressedTrees,
    CumulativeTree,
    FixedWindowTrees,
    TimeWindowTrees,
    TreeForEveryStart,
)
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.blocks import BlocksDesign
from dpwindows.kernel.shapes.causal import BlocksShape, SeriesShape, StepDesign
from dpwindows.kernel.shapes.counters import CountersDesign
from dpwindows.kernel.shapes.crossed import CrossedDesign
from dpwindows.kernel.shapes.design import Design
from dpwindows.kernel.shapes.gaps import GapDesign
from dpwindows.kernel.shapes.grouped import CompressedDesign
from dpwindows.kernel.shapes.nested import ExtendedDesign, NestedDesign, NestedShape
from dpwindows.kernel.shapes.periods import PeriodShape
from dpwindows.kernel.shapes.series import SeriesDesign
from dpwindows.kernel.shapes.thresholds import StepThresholds, ThresholdsDesign, ThresholdsShape
from dpwindows.kernel.shapes.together import TogetherShape
from dpwindows.strategies.compressed import grouped_problem

Arrays = dict[str, np.ndarray]

_DESIGNS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(BlocksDesign, CountersDesign, CrossedDesign, ExtendedDesign, GapDesign, NestedDesign, SeriesDesign),
        *(StepDesign, StepThresholds, ThresholdsDesign, CompressedDesign),
        *(CompressedTrees, CumulativeTree, FixedWindowTrees, TimeWindowTrees, TreeForEveryStart),
    )
}
_PARTS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(BlocksShape, NestedShape, PeriodShape, SeriesShape, ThresholdsShape, TogetherShape),
        *(AnchoredDifferences, Filter, GapFilter, Identity, MatrixFilter, RangeTree, Repeated, TentTree, Tree),
        *(OffsetFilter, TriangularCounter, WeightedCounter),
        *(CausalAnchors, CausalCounter, CausalFilter, CausalIdentity, CausalTree),
        *(ListedRows, OffsetRows, WeightedRows, LogarithmicRows),
    )
}
# What a design is for and what it is called are said beside it.
_BESIDE = {"problem", "strategy", "parameters"}
# How often squares of numbers are differenced along their diagonals: filters differ little from row to row.
_DIFFERENCED = 2


# --- Designs in metadata ----------------------------------------------------------------------------------------------


def design_to_dict(design: Design) -> dict[str, Any]:
    """A design as values for JSON, without its problem, its strategy's name and its parameters."""
    arrays: Arrays = {}
    kept = stored(design, arrays, "")
    return {**kept, "arrays": {name: _array_to_json(array) for name, array in arrays.items()}}


def design_from_dict(
    values: Mapping[str, Any], problem: Problem, strategy: str, parameters: Mapping[str, Any]
) -> Design:
    """The design that `design_to_dict` was given, of the integers that it had.

    Args:
        values: what that returned.
        problem: what the design measures; of its noise the law.
        strategy: its name.
        parameters: what was chosen, for metadata.

    Raises:
        ValueError, KeyError, TypeError: the values describe no design that this version knows.
    """
    arrays = {name: _array_from_json(array) for name, array in values["arrays"].items()}
    return _design(values, arrays, problem, strategy, parameters)


def _design(
    values: Mapping[str, Any], arrays: Arrays, problem: Problem, strategy: str, parameters: Mapping[str, Any]
) -> Design:
    kind = _DESIGNS.get(values["kind"])
    if kind is None:
        raise ValueError(f"this version of dpwindows knows no {values['kind']!r}")
    given = {name: values[name] for name in values if name not in ("kind", "arrays")}
    if issubclass(kind, CompressedDesign):
        within = grouped_problem(problem, given["size"])
        inner_strategy = strategy.removeprefix("compressed(").removesuffix(")")
        inner = _design(given["inner"], arrays, within, inner_strategy, parameters)
        compressed: Design = kind(problem=problem, size=given["size"], inner=inner)
        return compressed
    own = {name: restored(value, arrays) for name, value in given.items()}
    shape = own.get("shape")
    if isinstance(shape, PeriodShape):
        own["shape"] = in_calendar(shape, problem.window)
    found: Design = kind(problem=problem, strategy=strategy, parameters=parameters, **own)
    return found


def in_calendar(shape: PeriodShape, window: WindowFamily) -> PeriodShape:
    """A shape for periods with their place in the calendar, which the text of a window does not say."""
    return replace(shape, window=window) if isinstance(window, (Tumbling, ToDate)) else shape


def _array_to_json(array: np.ndarray) -> Any:
    """A list, or a square differenced along its diagonals and compressed (docs/release-files.md)."""
    if array.ndim == 1:
        return array.tolist()
    shape = array.shape
    for _ in range(_DIFFERENCED):
        array = array - np.pad(array, ((1, 0), (1, 0)))[:-1, :-1]
    content = lzma.compress(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return {"shape": list(shape), "xz": base64.b64encode(content).decode()}


def _array_from_json(values: Any) -> np.ndarray:
    if isinstance(values, list):
        return np.array(values, dtype=np.int64)
    rows, columns = values["shape"]
    found = np.frombuffer(lzma.decompress(base64.b64decode(values["xz"])), dtype="<i8").reshape(rows, columns)
    found = found.astype(np.int64)
    for _ in range(_DIFFERENCED):
        for row in range(1, rows):
            found[row, 1:] += found[row - 1, :-1]
    return found


# --- Parts of designs -------------------------------------------------------------------------------------------------


def stored(value: Any, arrays: Arrays, name: str) -> Any:
    """A value as JSON; tuples and arrays of integers go to `arrays` under names that begin with `name`.

    Raises:
        TypeError: there is no such value in a design that is kept.
    """
    if isinstance(value, WindowFamily):
        return {"window": value.text}
    if isinstance(value, LogarithmicRows):
        return {"kind": "LogarithmicRows", "bits": value.bits}
    if isinstance(value, tuple) and any(map(is_dataclass, value)):
        return {"each": [stored(one, arrays, f"{name}.{place}") for place, one in enumerate(value)]}
    if isinstance(value, (tuple, np.ndarray)):
        arrays[name] = np.array(value, dtype=np.int64)
        return {"array": name, "tuple": isinstance(value, tuple)}
    if is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in fields(value)}
        if isinstance(value, Design):
            given = {own: one for own, one in given.items() if own not in _BESIDE}
        kept = {own: stored(one, arrays, f"{name}.{own}".lstrip(".")) for own, one in given.items()}
        return {"kind": type(value).__name__, **kept}
    if isinstance(value, float):
        return {"float": value.hex()}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise TypeError(f"{name} cannot be stored: {type(value).__name__}")


def restored(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """What `stored` was given, of a part of a design.

    Raises:
        ValueError: the values name something this version does not know.
    """
    if not isinstance(value, dict):
        return value
    if "kind" not in value:
        if "window" in value:
            return parse_window(value["window"])
        if "float" in value:
            return float.fromhex(value["float"])
        if "each" in value:
            return tuple(restored(one, arrays) for one in value["each"])
        array = arrays[value["array"]]
        return tuple(int(entry) for entry in array) if value["tuple"] else array
    kind = _PARTS.get(value["kind"])
    if kind is None:
        raise ValueError(f"this version of dpwindows knows no {value['kind']!r}")
    return kind(**{name: restored(kept, arrays) for name, kept in value.items() if name != "kind"})
