"""The release made of rows that a stream has stored: the times of their windows, and what the stream promises."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import Int64Array
from dpwindows.release.checks import columns_of
from dpwindows.release.groups import group_columns
from dpwindows.release.release import Release
from dpwindows.stream import records
from dpwindows.stream.records import Creation
from dpwindows.stream.state_file import StateFile

# Rules of time zones that change move the end of a step by less, in microseconds: even a day left out is one day.
_RULES_MOVE = 2 * 86_400_000_000


def release_of(state: StateFile, creation: Creation, rows: pa.Table, first: int, last: int) -> Release:
    """The rows of steps `first` to `last` as a release: the same to the last bit, whenever they are asked for.

    Args:
        state: where the closed steps are on record.
        creation: what is fixed for the life of the stream.
        rows: what the gate has let out of these steps.
        first: the first of these steps.
        last: the last, which is closed.

    Raises:
        EngineError: the state is damaged.
    """
    closed = records.read_step(state, last)
    assert closed is not None, "the steps are closed"
    timeline = Timeline.of_length(creation.start, last, creation.step, creation.time_zone)
    dated = _dated(creation, rows, _ends(state, timeline))
    described = {name: value for name, value in creation.described.items() if name != "versions"}
    try:
        versions = json.loads(closed.versions)
    except ValueError:
        raise records.damaged(state) from None
    metadata = {
        "release_id": records.release_id(state, creation, first, last),
        "released_at": closed.released_at,
        **described,
        "timeline": {
            "start": creation.start,
            "end": timeline.to_dict()["end"],
            "step": creation.step,
            "time_zone": creation.time_zone,
            "steps": last,
        },
        "stream": {"state_id": creation.state_id, "first_step": first, "last_step": last},
        "versions": versions,
    }
    return Release(dated.select(columns_of(metadata)), metadata)


def _ends(state: StateFile, timeline: Timeline) -> Int64Array:
    """When the steps of a timeline ended by the rules of its zone when they were closed, shape (T,)."""
    ends, expected = records.read_ends(state, timeline.steps), timeline.boundary_values[1:]
    moved = 0 if timeline.is_integer else _RULES_MOVE
    if len(ends) != len(expected) or ((ends < expected - moved) | (ends > expected + moved)).any():
        raise records.damaged(state)
    return ends


def _dated(creation: Creation, rows: pa.Table, ends: Int64Array) -> pa.Table:
    """The rows with the times of their windows, in the columns of a release."""
    bounds = np.concatenate([[creation.begins], ends])
    integer = isinstance(creation.step, int)
    kind = pa.int64() if integer else pa.timestamp("us", tz=creation.time_zone)
    # Around pa.array, which would import pandas.
    boundaries = pa.Array.from_buffers(kind, len(bounds), [None, pa.py_buffer(bounds)])
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    columns |= {
        "start": boundaries.take(pc.subtract(columns["first_step"], 1)),
        "end": boundaries.take(columns["last_step"]),
        "consistent": pa.nulls(rows.num_rows, pa.int64()),
    }
    if creation.columns.grouping is not None:
        columns |= group_columns(creation.columns.grouping, columns[records.CELL])
    return pa.table(columns)
