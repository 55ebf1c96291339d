"""Checks on a release file before it is read: statements of the right kind, possible rows, one checksum over both.

**The checksum** is SHA-256 over the metadata in a canonical form (sorted names, numbers to the last bit) and over the
values of the rows, whatever file they are in: so a release has the same checksum as Parquet, CSV and JSON. It stops
accidents and careless edits: a number, or a guarantee, that was changed in the file is noticed. It is no signature:
whoever wants to forge a release can compute it anew.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.ask.groups import COLUMNS_AFTER, COLUMNS_BEFORE, GroupColumn
from dpwindows.ask.timeline import Timeline
from dpwindows.errors import InputError
from dpwindows.plan.description import FORMAT, INTEGERS
from dpwindows.release.groups import columns_of_groups, group_type

CHECKSUM = "checksum"
_ALGORITHM = "sha256"
COLUMNS = (*COLUMNS_BEFORE, *COLUMNS_AFTER)
_NULLABLE = ("consistent",)
_FLOATS = ("estimate", "std_error", "bias_bound", "lower", "upper")
# Rows that are looked at at a time.
_ROWS = 1 << 16

# A shape is a test of one value; names with the shapes of their values; or, in a list of one, the shape of each entry.
Shape = Callable[[Any], bool] | dict[str, Any] | list[Any]


class _Optional(NamedTuple):
    """The shape of a value that may be missing or null."""

    shape: Shape


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _number(value: Any) -> bool:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer that no floating-point number reaches
        return False


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _text_or_number(value: Any) -> bool:
    return _text(value) or _number(value)


def _names(value: Any) -> bool:
    return isinstance(value, dict)


_MEASURE = {"measure": _text, "k": _whole}
_COUNTING = {"distinct_steps": _Optional(_flag), "max_occurrences": _Optional(_whole), "max_runs": _Optional(_whole)}
_MEASUREMENT: dict[str, Any] = {
    "window": _text,
    "thresholds": [_whole],
    "strategy": _text,
    "parameters": _names,
    "noise": {"law": _text, "scale": _number, "unit": _text},
    "sensitivity": {"norm": _text, "value": _number, "proof": _text, "proved_in": _text},
    "numbers_measured": _whole,
    "budget_share": _number,
    "together": _Optional([_text]),
    INTEGERS: _names,
}
# What every release says about itself, with everything that reads it here: more may be said.
_STATED: dict[str, Any] = {
    "release_id": _text,
    "released_at": _text,
    "guarantee": _text,
    "unit": {"name": _text, "promise": _text},
    "budget": {
        "kind": _text,
        "epsilon": _Optional(_text_or_number),
        "delta": _Optional(_text_or_number),
        "rho": _Optional(_text_or_number),
    },
    "singleton": _flag,
    "counting": _Optional(_COUNTING),
    "timeline": {
        "start": _text_or_number,
        "end": _text_or_number,
        "step": _text_or_number,
        "time_zone": _text,
        "steps": _whole,
    },
    "queries": [{"window": _text, "measures": [_MEASURE], "counts": _Optional(_text)}],
    "notes": [_text],
    "strategy": _text,
    "criterion": _text,
    "confidence": lambda value: _number(value) and 0 < value < 1,
    "measurements": [_MEASUREMENT],
    "forecast": [
        {
            **_MEASURE,
            "window": _text,
            "strategy": _text,
            "rms": _number,
            "max": _number,
            "half_width": _number,
            "limit": _Optional(_number),
            "ratio_to_limit": _Optional(_number),
        }
    ],
    "loss": _Optional(
        {**_MEASUREMENT, "of": _text, **dict.fromkeys(("estimate", "std_error", "lower", "upper"), _number)}
    ),
    "stream": _Optional({"state_id": _text, "first_step": _whole, "last_step": _whole}),
    "ledger": _Optional({"dataset": _text, "entry": _whole}),
    "horizon": _Optional(_text_or_number),
    "groups": _Optional({"columns": [{"name": _text, "values": [_text_or_number]}], "group_of": _text}),
    "versions": _names,
    CHECKSUM: _text,
}


def parse_json(text: str | bytes) -> Any:
    """A JSON document; raises `ValueError` where it holds numbers that JSON does not have, or is too deep."""

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is no number of JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def checked_metadata(metadata: Any) -> dict[str, Any]:
    """Metadata as read from a file, if they say everything that a release must say, in values of the right kind.

    Raises:
        InputError: they are of another format.
        ValueError: they do not.
    """
    if not isinstance(metadata, dict) or "format" not in metadata:
        raise ValueError("its metadata carry no format")
    if metadata["format"] != FORMAT:
        raise InputError(
            f"the release is of format {str(metadata['format'])[:40]!r}, and this version reads format {FORMAT}: use a "
            "newer dpwindows"
        )
    _require_shape(metadata, _STATED, "")
    _require_groups(metadata)
    try:
        Timeline.from_dict(metadata["timeline"])
    except InputError as error:
        raise ValueError(f"its timeline cannot be read: {error}") from None
    return metadata


def _require_groups(metadata: dict[str, Any]) -> None:
    """Check that what is said of groups makes columns."""
    try:
        for column in columns_of_groups(metadata):
            GroupColumn(column["name"], tuple(column["values"]))
    except InputError as error:
        raise ValueError(f"its groups cannot be read: {error}") from None


def _require_shape(value: Any, shape: Any, name: str) -> None:
    if isinstance(shape, _Optional):
        if value is None:
            return
        shape = shape.shape
    if isinstance(shape, dict) and isinstance(value, dict):
        for key, inner in shape.items():
            _require_shape(value.get(key), inner, f"{name}.{key}" if name else key)
    elif isinstance(shape, list) and isinstance(value, list):
        for at, entry in enumerate(value):
            _require_shape(entry, shape[0], f"{name}[{at}]")
    elif isinstance(shape, (dict, list)) or not shape(value):
        raise ValueError(f"its metadata lack {name!r}, or it is of the wrong type")


def columns_of(metadata: dict[str, Any]) -> tuple[str, ...]:
    """The columns of a release: with groups one more for each column that makes them."""
    return (*COLUMNS_BEFORE, *_groups_of(metadata), *COLUMNS_AFTER)


def _groups_of(metadata: dict[str, Any]) -> dict[str, pa.DataType]:
    return {column["name"]: group_type(column["values"]) for column in columns_of_groups(metadata)}


def schema_of(metadata: dict[str, Any]) -> pa.Schema:
    """The columns and their types."""
    timeline = metadata["timeline"]
    time = pa.int64() if isinstance(timeline["step"], int) else pa.timestamp("us", tz=timeline["time_zone"])
    texts, numbers = pa.string(), pa.float64()
    before = [texts, texts, pa.int64()]
    after = [*[pa.int64()] * 2, time, time, pa.bool_(), *[numbers] * 5, pa.int64()]
    kinds = [*before, *_groups_of(metadata).values(), *after]
    return pa.schema(list(zip(columns_of(metadata), kinds, strict=True)))


def checked_rows(table: pa.Table, metadata: dict[str, Any]) -> pa.Table:
    """Rows as read from a file, if every value that must be there is, and is one that a release can hold.

    Raises:
        ValueError: one is not.
    """
    groups = columns_of_groups(metadata)
    nullable = (*_NULLABLE, *(column["name"] for column in groups))
    for name in table.column_names:
        if name not in nullable and table.column(name).null_count:
            raise ValueError(f"its column {name!r} has missing values")
    possible = {
        **{one["name"]: pc.is_in(table[one["name"]], _listed(one["values"])) for one in groups},
        **{name: pc.is_finite(table[name]) for name in _FLOATS},
        "measure": pc.is_in(table["measure"], pa.array(["at_least", "exactly"])),
        "k": pc.greater_equal(table["k"], 1),
        "first_step": pc.greater_equal(table["first_step"], 1),
        "last_step": pc.greater_equal(table["last_step"], table["first_step"]),
        "start": _in_calendar(table["start"]),
        "end": pc.and_(pc.greater_equal(table["end"], table["start"]), _in_calendar(table["end"])),
    }
    for name, holds in possible.items():
        if not pc.all(holds, min_count=0).as_py():
            raise ValueError(f"its column {name!r} has a value that no release has")
    if table.num_rows and min(pc.min(table[name]).as_py() for name in ("std_error", "bias_bound")) < 0:
        raise ValueError("it has an error below 0")
    return table


def _listed(values: list[Any]) -> pa.Array:
    """The values that a column of groups may hold; null stands for all of them."""
    return pa.array([*values, None], group_type(values))


def _in_calendar(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """True for times of the years that a release may lie in, with room for zones; integer times lie anywhere."""
    if not pa.types.is_timestamp(times.type):
        return pc.is_valid(times)
    first, last = (pa.scalar(datetime(year, 1, 1, tzinfo=UTC), pa.timestamp("us", "UTC")) for year in (999, 9002))
    instants = times.cast(pa.timestamp("us", "UTC"))
    return pc.and_(pc.greater_equal(instants, first), pc.less(instants, last))


def checksum_of(table: pa.Table, metadata: dict[str, Any]) -> str:
    """The checksum of a release; metadata without one in them.

    Raises:
        ValueError: the metadata are no plain values.
    """
    stated = json.dumps(metadata, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    digest = hashlib.sha256(b"dpwindows release\n")
    digest.update(stated.encode("utf-8", "surrogatepass"))
    digest.update(b"\n" + _rows_digest(table.select(columns_of(metadata)).cast(schema_of(metadata))))
    return f"{_ALGORITHM}:{digest.hexdigest()}"


def without_checksum(table: pa.Table, metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata as they are stated, after the checksum that was stored with them was compared.

    Raises:
        InputError: its rows or its metadata are not what was written.
    """
    stated = {name: value for name, value in metadata.items() if name != CHECKSUM}
    if metadata[CHECKSUM] != checksum_of(table, stated):
        raise InputError(
            "the release does not agree with its checksum: a number, or something it says about itself, was changed "
            "after it was written. Use an unchanged copy"
        )
    return stated


def _rows_digest(table: pa.Table) -> bytes:
    """A digest of the values of rows, to the last bit, the same for every file that holds them."""
    digest = hashlib.sha256(table.num_rows.to_bytes(8, "little"))
    # Some rows at a time: there may be millions, and one chunk may stand for many that hold the same.
    for column in table.columns:
        if pa.types.is_string(column.type):
            column = column.dictionary_encode().unify_dictionaries()
            listed = column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
            texts = json.dumps(listed, ensure_ascii=True).encode()
            digest.update(len(texts).to_bytes(8, "little") + texts)
        kind = "<f8" if pa.types.is_floating(column.type) else "<i8"
        for rows in _pieces(column):
            digest.update(_numbers(pc.cast(pc.is_null(rows), pa.int8()), "<i1"))
        for rows in _pieces(column):
            digest.update(_numbers(_as_numbers(rows), kind))
    return digest.digest()


def _pieces(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    for chunk in column.chunks:
        yield from (chunk.slice(begin, _ROWS) for begin in range(0, len(chunk), _ROWS))


def _as_numbers(column: pa.Array) -> pa.Array:
    if pa.types.is_floating(column.type):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.indices
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return pc.fill_null(column.cast(pa.int64()), 0)


def _numbers(column: pa.Array, kind: str) -> memoryview:
    # By DLPack: to_numpy would import pandas.
    values = np.from_dlpack(column).astype(np.dtype(kind), copy=False) if len(column) else np.zeros(0)
    return values.data
