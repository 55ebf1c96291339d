"""Mechanisms as plain values and integer arrays, and back: what a stream keeps of its plan for as long as it runs.

A stream must measure with the same integers at every step, in whatever version of the library. So the integers
themselves are stored, not how they were found.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from dpwindows.ask.queries import WindowFamily, parse_window
from dpwindows.kernel.maps.counters import CausalCounter, ListedRows, WeightedRows
from dpwindows.kernel.maps.differences import CausalAnchors
from dpwindows.kernel.maps.endless_counter import LogarithmicRows
from dpwindows.kernel.maps.filters import CausalFilter, CausalIdentity, Filter, Identity
from dpwindows.kernel.maps.matrix_filters import MatrixFilter
from dpwindows.kernel.maps.trees import CausalTree, Tree
from dpwindows.kernel.shapes.causal import BlocksShape, SeriesShape
from dpwindows.kernel.shapes.nested import NestedShape
from dpwindows.kernel.shapes.periods import PeriodShape
from dpwindows.kernel.shapes.thresholds import ThresholdsShape
from dpwindows.kernel.shapes.together import TogetherShape

Arrays = dict[str, np.ndarray]

_CLASSES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(BlocksShape, NestedShape, PeriodShape, SeriesShape, ThresholdsShape, TogetherShape),
        *(MatrixFilter, Filter, Identity, Tree),
        *(CausalAnchors, CausalCounter, CausalFilter, CausalIdentity, CausalTree),
        *(ListedRows, WeightedRows, LogarithmicRows),
    )
}


def stored(value: Any, arrays: Arrays, name: str) -> Any:
    """A value as JSON; tuples and arrays of integers go to `arrays` under names that begin with `name`.

    Raises:
        TypeError: a state holds no such value.
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
        # Windows without weights are stored as before there were any: older versions know the rest.
        given = {field.name: getattr(value, field.name) for field in fields(value)}
        if isinstance(value, NestedShape) and not value.weights:
            del given["weights"]
        kept = {own: stored(one, arrays, f"{name}.{own}") for own, one in given.items()}
        return {"kind": type(value).__name__, **kept}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise TypeError(f"{name} cannot be stored: {type(value).__name__}")


def restored(value: Any, arrays: Arrays) -> Any:
    """What `stored` was given.

    Raises:
        ValueError: the values name something this version does not know.
    """
    if not isinstance(value, dict):
        return value
    if "window" in value and "kind" not in value:
        return parse_window(value["window"])
    if "each" in value:
        return tuple(restored(one, arrays) for one in value["each"])
    if "array" in value:
        array = arrays[value["array"]]
        return tuple(int(entry) for entry in array) if value["tuple"] else array
    kind = _CLASSES.get(value["kind"])
    if kind is None:
        raise ValueError(f"this version of dpwindows knows no {value['kind']!r}")
    return kind(**{name: restored(kept, arrays) for name, kept in value.items() if name != "kind"})
