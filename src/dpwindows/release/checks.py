"""Checks on a release file before it is read: statements of the right kind, possible rows, one checksum over both.

**The checksum** is SHA-256 over the metadata in a canonical form (sorted names, numbers to the last bit) and over the
values of the rows, whatever file they are in: so a release has the same checksum as Parquet, CSV and JSON. It stops
accidents and careless edits: a number, or a guarantee, that was changed in the file is noticed. It is no signature:
whoever wants to forge a release can compute it anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.ask import formats
from dpwindows.ask.groups import COLUMNS_AFTER, COLUMNS_BEFORE
from dpwindows.ask.queries import MeasureKind
from dpwindows.ask.shapes import read_shape
from dpwindows.ask.timeline import Timeline
from dpwindows.errors import InputError
from dpwindows.plan.shapes import Metadata
from dpwindows.release.groups import columns_of_groups, group_type

CHECKSUM = "checksum"
_ALGORITHM = "sha256"
_NULLABLE = ("k", "consistent")
_FLOATS = ("estimate", "std_error", "bias_bound", "lower", "upper")
# Rows that are looked at at a time.
_ROWS = 1 << 16


def checked_metadata(metadata: Any) -> dict[str, Any]:
    """Metadata as read from a file, if they say everything that a release must say, in values of the right kind.

    Raises:
        InputError: they are of another format.
        ValueError: they do not.
    """
    if not isinstance(metadata, dict) or "format" not in metadata:
        raise ValueError("its metadata carry no format")
    formats.require_known(metadata["format"], formats.RELEASE, "the release is")
    try:
        read = read_shape(metadata, Metadata)
        if Timeline.from_dict(metadata["timeline"]).steps != metadata["timeline"]["steps"]:
            raise ValueError("'timeline' has another number of steps than its ends")
        # Rules and groups are classes of their own, which put in what is left out: a release leaves nothing out.
        for name, part in (("counting", read.counting), ("groups", read.groups)):
            if part is not None and part.to_dict() != metadata[name]:
                raise ValueError(f"{name!r} leaves something out, or says more than this version knows")
    except ValueError as error:
        raise ValueError(f"its metadata cannot be read: {error}") from None
    return metadata


def schema_of(metadata: dict[str, Any]) -> pa.Schema:
    """The columns of a release and their types: with groups one more for each column that makes them."""
    timeline = metadata["timeline"]
    time = pa.int64() if isinstance(timeline["step"], int) else pa.timestamp("us", tz=timeline["time_zone"])
    groups = [(column["name"], group_type(column["values"])) for column in columns_of_groups(metadata)]
    before = zip(COLUMNS_BEFORE, (pa.string(), pa.string(), pa.int64()), strict=True)
    kinds = (*[pa.int64()] * 2, time, time, pa.bool_(), *[pa.float64()] * 5, pa.int64())
    return pa.schema([*before, *groups, *zip(COLUMNS_AFTER, kinds, strict=True)])


def columns_of(metadata: dict[str, Any]) -> tuple[str, ...]:
    """The names of the columns of a release."""
    return tuple(schema_of(metadata).names)


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
        **{
            one["name"]: pc.is_in(table[one["name"]], pa.array([*one["values"], None], group_type(one["values"])))
            for one in groups
        },
        **{name: pc.is_finite(table[name]) for name in _FLOATS},
        "measure": pc.is_in(table["measure"], pa.array(get_args(MeasureKind))),
        "k": pc.if_else(
            pc.equal(table["measure"], "occurrences"),
            pc.is_null(table["k"]),
            pc.fill_null(pc.greater_equal(table["k"], 1), False),
        ),
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
    schema = schema_of(metadata)
    digest.update(b"\n" + _rows_digest(table.select(schema.names).cast(schema)))
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
