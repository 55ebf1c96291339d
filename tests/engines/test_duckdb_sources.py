"""Which columns DuckDB is asked to read: those of the names asked for, and no others that it has names for."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpwindows.engines.duckdb_sources import _columns_of
from dpwindows.events import EventColumns
from dpwindows.recency import count_events
from dpwindows.timeline import Timeline


def counted(source: object, columns: EventColumns, timeline: Timeline) -> list[int]:
    """The distinct items of each step."""
    return [int(count) for count in count_events(source, columns, timeline, [1]).rolling(1, 1)]


@pytest.mark.parametrize(
    ("own", "within", "expected"),
    [(pa.timestamp("us"), pa.int64(), [1, 1]), (pa.date32(), pa.timestamp("us"), [0, 2])],
    ids=["an instant, with a number of its name", "a date, with an instant of its name"],
)
def test_a_field_within_a_column_is_no_column(
    tmp_path: Path, own: pa.DataType, within: pa.DataType, expected: list[int]
) -> None:
    """Timestamps of the old form (INT96) are instants, and dates and numbers are none, whatever a field is called."""
    times = pa.array([datetime(2013, 1, 1, 4), datetime(2013, 1, 1, 6)], pa.timestamp("us"))
    more = pa.StructArray.from_arrays([times.cast(within), pa.array([["a"], ["b"]])], ["when", "id"])
    rows = pa.table({"id": [1, 2], "when": times.cast(own), "more": more})
    pq.write_table(rows, tmp_path / "log.parquet", use_deprecated_int96_timestamps=True)
    days = Timeline("2012-12-31", "2013-01-02", time_zone="America/New_York")
    assert counted(tmp_path / "log.parquet", EventColumns("id", "when"), days) == expected


def test_the_columns_of_a_tree_of_fields() -> None:
    """Names are repeated at every level."""
    tree: list[tuple[str, int | None, str]] = [("root", 4, "")]
    tree += [("a", 2, "struct"), ("b", 1, "list"), ("list", 2, ""), ("a", None, "int"), ("c", None, "int")]
    tree += [("c", None, "int"), ("b", None, "text"), ("empty", 0, "struct"), ("c", 1, "list"), ("a", None, "int")]
    assert _columns_of(tree) == [("a", "struct"), ("b", "text"), ("empty", "struct"), ("c", "list")]
    assert _columns_of([("root", 0, "")]) == []
