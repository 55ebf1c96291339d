"""A state whose tables are not as they were made is damaged, and says so before anything is read from them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.stream import parts
from dpwindows.stream.records import digest
from dpwindows.stream.store import items_folder
from dpwindows.stream.stream import Stream
from tests.end_to_end.command_line import run
from tests.stream.streams import STEP, copied, new_stream, plan_of, table_of

LAST_COLUMNS = {"creation": "digest", "position": "digest", "steps": "digest", "released": "rows"}
EVENTS = [("a", 1, 1), ("b", 1, 3)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream with one step closed."""
    path = tmp_path_factory.mktemp("made") / "state"
    with new_stream(path, plan_of("rolling:2", "cumulative")) as stream:
        stream.advance(table_of(EVENTS), STEP)
    return path


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream by group with one step closed."""
    path = tmp_path_factory.mktemp("grouped") / "state"
    table = table_of(EVENTS).append_column("origin", pa.array(["EWR", "JFK"]))
    plan = dw.StreamPlan([dw.Rolling(2)], unit=dw.EventLevel(), budget=dw.PureDP(1.0), by={"origin": ["EWR", "JFK"]})
    with new_stream(path, plan) as stream:
        stream.advance(table, STEP)
    return path


def edited(made: Path, path: Path, edit: str) -> Path:
    """A copy of a state with its tables changed."""
    copied(made, path, mark=False)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(edit)
    return path


def changes() -> Iterator[str]:
    """A table with a column renamed, with one more or one less, or none; what stands in for one, or beside it."""
    for table, column in LAST_COLUMNS.items():
        yield f'ALTER TABLE {table} RENAME COLUMN "{column}" TO other'
        yield f"ALTER TABLE {table} ADD COLUMN other INTEGER"
        yield f'ALTER TABLE {table} DROP COLUMN "{column}"'
        yield f"DROP TABLE {table}"
    yield "ALTER TABLE steps RENAME TO kept; CREATE VIEW steps AS SELECT * FROM kept"
    # It could change what is written after it was sealed.
    yield "CREATE TRIGGER late AFTER INSERT ON steps BEGIN DELETE FROM released; END"


def open_and_show(path: Path) -> None:
    with Stream.open(path) as stream:
        stream.show()


@pytest.mark.parametrize("edit", list(changes()))
def test_a_changed_table_is_refused_before_it_is_read(made: Path, tmp_path: Path, edit: str) -> None:
    path = edited(made, tmp_path / "state", edit)
    content = path.read_bytes()
    with pytest.raises(dw.EngineError, match="is damaged: its tables are not as they were made"):
        open_and_show(path)
    assert path.read_bytes() == content
    run("stream", "show", path).must_fail()


@pytest.mark.parametrize("edit", [
    "UPDATE position SET parts = 7",
    "UPDATE position SET working = x'00'",
    "UPDATE steps SET token = 'other'",
    "UPDATE steps SET ends = ends + 1",
    "UPDATE steps SET ends = 9223372036854775807",
    "UPDATE steps SET ends = -9223372036854775808",
    "UPDATE creation SET facts = replace(facts, '0.95', '0.94')",
    "UPDATE released SET rows = 7",
])  # fmt: skip
def test_a_changed_value_is_noticed(made: Path, tmp_path: Path, edit: str) -> None:
    """Of each table; `test_records` has every column."""
    with pytest.raises(dw.EngineError, match="does not agree with its checksums"):
        open_and_show(edited(made, tmp_path / "state", edit))


def test_text_that_is_none_is_noticed(made: Path, tmp_path: Path) -> None:
    path = edited(made, tmp_path / "state", "UPDATE creation SET facts = CAST(x'ff' AS TEXT)")
    with pytest.raises(dw.EngineError, match="is damaged"):
        open_and_show(path)


@pytest.mark.parametrize("grouped_too", [False, True])
def test_an_item_seen_in_a_step_to_come_is_noticed(
    made: Path, grouped: Path, tmp_path: Path, grouped_too: bool
) -> None:
    """A part is written by its own checksum: whoever edits both is noticed by what the step makes of it."""
    path = copied(grouped if grouped_too else made, tmp_path / "state", mark=False)
    part = next(items_folder(path).iterdir())
    duckdb.execute(
        f"COPY (SELECT * REPLACE (2147483647 AS r1) FROM read_parquet('{part}')) TO '{part}' (FORMAT parquet)"
    )
    with pytest.MonkeyPatch.context() as patch, Stream.open(path) as stream:
        patch.setattr(parts, "_seen", lambda path: stream._position.parts[0][3:])
        table = table_of([("a", 2, 1), ("b", 2, 1)])
        if grouped_too:
            table = table.append_column("origin", pa.array(["EWR", "JFK"]))
        with pytest.raises(dw.EngineError, match="does not agree with its checksums"):
            stream.advance(table, 2 * STEP)
        assert stream.closed_steps == 1


@pytest.mark.parametrize("moved", ["ends + 3600000000", "ends - 3 * 86400000000", "9223372036854775807"])
def test_days_may_end_as_the_rules_of_the_zone_then_were_and_no_other_time(tmp_path: Path, moved: str) -> None:
    """What was released names the times that were right then; rules of zones that change move them by hours."""
    path = tmp_path / "state"
    asked = ("--start", "2013-01-01", "--window", "rolling:2", "--unit", "event", "--epsilon", "1")
    assert run("stream", "create", path, "--item", "who", "--time", "at", *asked).code == 0
    assert run("stream", "advance", path, "--empty", "--through", "2013-01-03").code == 0
    other = edited(path, tmp_path / "other", f"UPDATE steps SET ends = {moved} WHERE step = 1")
    with closing(sqlite3.connect(other, isolation_level=None)) as connection:
        *values, _ = connection.execute("SELECT * FROM steps WHERE step = 1").fetchone()
        connection.execute("UPDATE steps SET digest = ? WHERE step = 1", [digest(*values)])
    run("stream", "advance", other, "--through", "2013-01-02").must_refuse(
        "install the rules (tzdata) it was closed with"
    )
    outcome = run("stream", "show", other)
    assert outcome.code == (0 if "3600" in moved else 1), outcome.err
    assert ("is damaged" in outcome.err.replace("\n", " ")) == (outcome.code == 1)
