"""A result of a database is used only if it says that it is whole."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from dpwindows.count.engines.sql import whole
from dpwindows.count.query.closing import closed_sql
from dpwindows.errors import EngineError

ROWS = [(1, 1, 1, 3), (1, 2, 1, -2), (1, 2, 2, 5), (2, 2, 1, 1), (2, 2, 1, 1)]


def closed(rows: list[tuple[int, int, int, int]]) -> pa.Table:
    values = ", ".join(map(str, rows or [(0, 0, 0, 0)]))
    query = f"SELECT * FROM (VALUES {values}) AS rows(k, step, recency, delta) WHERE k > 0"
    return duckdb.connect().sql(closed_sql(query)).to_arrow_table()


@pytest.mark.parametrize("rows", [ROWS, []])
def test_a_whole_result_is_what_the_query_gives(rows: list[tuple[int, int, int, int]]) -> None:
    found = {tuple(row.values()) for row in whole(closed(rows)).to_pylist()}
    assert found == ({*ROWS[:3], (2, 2, 1, 2)} if rows else set())


def test_a_result_without_any_of_its_rows_is_refused() -> None:
    table = closed(ROWS)
    others = [table.take([row for row in range(len(table)) if row != left_out]) for left_out in range(len(table))]
    twice = pa.concat_tables([table, table.slice(0, 1)])
    changed = table.set_column(
        3, "delta", pa.array([value + (place == 0) for place, value in enumerate(table["delta"].to_pylist())])
    )
    for wrong in (*others, table.slice(0, 0), twice, changed):
        with pytest.raises(EngineError, match=f"gave {len(wrong)} rows, which are not all of its result"):
            whole(wrong)
