"""Designs as plain values and integer arrays, and back: what a release and a stream keep of what they were measured by.

A number that was released must be read, and a stream go on, by the very integers that were applied, on whatever machine
and in whatever version of the library. So the integers themselves are kept, not how they were found: nothing that was
measured is searched for again.
"""

from __future__ import annotations

import base64
import lzma
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from dpwindows.kernel.designs import Design, Shape, StepDesign, StepShape
from dpwindows.kernel.families.blocks import Blocks
from dpwindows.kernel.families.chains_of_runs import SeriesByThreshold
from dpwindows.kernel.families.crossed import Crossed
from dpwindows.kernel.families.gaps import Gaps
from dpwindows.kernel.families.grouped_steps import GroupedSteps
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.families.periods import SeriesInPeriods
from dpwindows.kernel.families.series import FromTotals, Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.families.together import Together
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.endless_counter import EndlessCounter
from dpwindows.kernel.maps.filters import Filter, Identity, OffsetFilter
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.compressed import grouped_problem, inner_strategy
from dpwindows.strategies.paper.range_tree import RangeTree
from dpwindows.strategies.paper.shapes import ADMITTED

Arrays = dict[str, np.ndarray]

_KINDS: tuple[Any, ...] = (
    *(Blocks, Crossed, FromTotals, Gaps, GroupedSteps, Nested, Series, SeriesByThreshold, Starts),
    *(SeriesInPeriods, Together, *ADMITTED),
    *(AnchoredDifferences, CausalTree, EndlessCounter, Filter, Identity, MatrixCounter),
    *(OffsetFilter, RangeTree, TentTree),
)
_PARTS: dict[str, Any] = {kind.__name__: kind for kind in _KINDS}
# How often squares of numbers are differenced along their diagonals: filters differ little from row to row.
_DIFFERENCED = 2

# What comes of values that were cut short, or written by somebody else.
BAD_VALUES = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    StopIteration,
    TypeError,
    lzma.LZMAError,
)


# --- Designs in metadata ----------------------------------------------------------------------------------------------


def design_to_dict(design: Design) -> dict[str, Any]:
    """A design as values for JSON, without its problem, its strategy's name and its parameters."""
    arrays: Arrays = {}
    kept = _kept(design, arrays, "")
    return {**kept, "arrays": {name: _array_to_json(array) for name, array in arrays.items()}}


def _kept(design: Design, arrays: Arrays, name: str) -> dict[str, Any]:
    steps = {"horizon": design.horizon} if isinstance(design, StepDesign) else {}
    witness = {"witness": {key: list(one) for key, one in design.witness.items()}} if design.witness else {}
    if not isinstance(design.shape, GroupedSteps):
        return {"shape": stored(design.shape, arrays, name), **steps, **witness}
    inner = _kept(design.shape.inner, arrays, name)
    return {"kind": type(design.shape).__name__, "size": design.shape.size, "inner": inner}


def design_from_dict(
    values: Mapping[str, Any], problem: Problem, strategy: str, parameters: Mapping[str, Any]
) -> Design:
    """The design that `design_to_dict` was given, of the integers that it had.

    Of the problem's noise it is given the law; the strategy's name and parameters are for metadata.

    Raises:
        ValueError: the values describe no design that this version knows.
    """
    try:
        arrays = {name: _array_from_json(array) for name, array in values["arrays"].items()}
        return _design(values, arrays, problem, strategy, parameters)
    except BAD_VALUES as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _design(
    values: Mapping[str, Any], arrays: Arrays, problem: Problem, strategy: str, parameters: Mapping[str, Any]
) -> Design:
    if "inner" in values:
        size, of_inner = values["size"], {name: one for name, one in parameters.items() if name != "steps_per_group"}
        inner = _design(values["inner"], arrays, grouped_problem(problem, size), inner_strategy(strategy), of_inner)
        return Design(problem, _kind(values["kind"])(size, inner), strategy, parameters)
    shape = restored(values["shape"], arrays)
    if not isinstance(shape, Shape):
        raise ValueError(f"a design measures no {type(shape).__name__}")
    # The kernel checks every number of it.
    witness = {key: tuple(answer) for key, answer in values.get("witness", {}).items()}
    if "horizon" not in values:
        return Design(problem, shape, strategy, parameters, witness=witness)
    if not isinstance(shape, StepShape):
        raise ValueError(f"{type(shape).__name__} is not measured step by step")
    return StepDesign(problem, shape, strategy, parameters, witness=witness, horizon=values["horizon"])


def _kind(name: str) -> Any:
    if name not in _PARTS:
        raise ValueError(f"this version of dpwindows knows no {name!r}")
    return _PARTS[name]


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
    rows_of = np.frombuffer(lzma.decompress(base64.b64decode(values["xz"])), dtype="<i8").reshape(rows, columns)
    rows_of = rows_of.astype(np.int64)
    for _ in range(_DIFFERENCED):
        for row in range(1, rows):
            rows_of[row, 1:] += rows_of[row - 1, :-1]
    return rows_of


# --- Parts of designs -------------------------------------------------------------------------------------------------


def stored(value: Any, arrays: Arrays, name: str) -> Any:
    """A value as JSON; tuples and arrays of integers go to `arrays` under names that begin with `name`.

    Raises:
        TypeError: there is no such value in a design that is kept.
    """
    if isinstance(value, tuple) and any(map(is_dataclass, value)):
        return {"each": [stored(one, arrays, f"{name}.{place}") for place, one in enumerate(value)]}
    if isinstance(value, (tuple, np.ndarray)):
        arrays[name] = np.array(value, dtype=np.int64)
        return {"array": name, "tuple": isinstance(value, tuple)}
    if is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in fields(value)}
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
        if "float" in value:
            return float.fromhex(value["float"])
        if "each" in value:
            return tuple(restored(one, arrays) for one in value["each"])
        array = arrays[value["array"]]
        return tuple(int(entry) for entry in array) if value["tuple"] else array
    given = {name: restored(kept, arrays) for name, kept in value.items() if name != "kind"}
    return _kind(value["kind"])(**given)
