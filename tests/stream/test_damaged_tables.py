"""A state whose tables are not as they were made is damaged, and says so before anything is read from them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.stream import schema
from dpwindows.stream.mark import mark_path
from dpwindows.stream.state_file import log_of
from dpwindows.stream.stream import Stream
from tests.end_to_end.command_line import run
from tests.stream.streams import STEP, new_stream, plan_of, table_of

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


def edited(made: Path, path: Path, *edits: str) -> Path:
    """A copy of a state with its tables changed."""
    shutil.copy(made, path)
    with duckdb.connect(str(path)) as connection:
        for edit in edits:
            connection.execute(edit)
    return path


def changes() -> Iterator[tuple[str, str]]:
    """Tables with a column renamed, of another type, that may be null, or with one more or one less; by table."""
    for table, columns in schema.COLUMNS.items():
        name, kind = list(columns.items())[-1]
        yield table, f'ALTER TABLE {table} RENAME COLUMN "{name}" TO other'
        yield table, f'ALTER TABLE {table} ALTER COLUMN "{name}" DROP NOT NULL'
        yield table, f"ALTER TABLE {table} ADD COLUMN other INTEGER"
        other, value = ("BLOB", "'x'") if kind == "VARCHAR" else ("VARCHAR", f'CAST("{name}" AS VARCHAR)')
        yield table, f'ALTER TABLE {table} ALTER COLUMN "{name}" TYPE {other} USING {value}'
        if len(columns) > 1:
            yield table, f'ALTER TABLE {table} DROP COLUMN "{name}"'
        if table not in ("state_schema", "creation"):  # without these it is another database
            yield table, f"DROP TABLE {table}"


def open_and_show(path: Path) -> None:
    with Stream.open(path) as stream:
        stream.show()


@pytest.mark.slow
def test_a_changed_table_is_refused_before_it_is_read(made: Path, tmp_path: Path) -> None:
    for number, (table, edit) in enumerate(changes()):
        path = edited(made, tmp_path / f"state-{number}", edit)
        content = path.read_bytes()
        with pytest.raises(dw.EngineError, match=f"is damaged: its table {table} is not as it was made"):
            open_and_show(path)
        assert path.read_bytes() == content, edit


def test_a_view_in_place_of_a_table_is_refused_and_not_opened(made: Path, tmp_path: Path) -> None:
    """What it reads from is gone: whoever opened it would fail otherwise."""
    log = tmp_path / "log.csv"
    log.write_text("step,ends\n1,10\n")
    view = f"CREATE VIEW steps AS SELECT * FROM read_csv('{log}')"
    path = edited(made, tmp_path / "state", "ALTER TABLE steps RENAME TO kept", view)
    log.unlink()
    with pytest.raises(dw.EngineError, match="is damaged: its table steps is not as it was made"):
        open_and_show(path)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_version_that_never_was_is_refused(made: Path, tmp_path: Path, read_only: bool) -> None:
    path = edited(made, tmp_path / "state", "UPDATE state_schema SET version = 0")
    with pytest.raises(dw.EngineError, match="is damaged: there never was a version 0 of its tables"):
        Stream.open(path, read_only=read_only)


def test_two_columns_that_changed_places_are_noticed(made: Path, tmp_path: Path) -> None:
    names = [*schema.COLUMNS["calls"]]
    path = edited(made, tmp_path / "state", *(
        f"ALTER TABLE calls RENAME COLUMN {old} TO {new}"
        for old, new in ((names[0], "x"), (names[1], names[0]), ("x", names[1]))
    ))  # fmt: skip
    with pytest.raises(dw.EngineError, match="its table calls is not as it was made"):
        open_and_show(path)


def test_the_command_line_says_so_in_one_message(made: Path, tmp_path: Path) -> None:
    path = edited(made, tmp_path / "state", 'ALTER TABLE released DROP COLUMN "bias_bound"')
    outcome = run("stream", "show", path)
    assert outcome.code == 1
    assert outcome.err.count("Error: ") == 1
    assert "is damaged: its table released is not as it was made" in outcome.err.replace("\n", " ")


@pytest.mark.parametrize("edit", [
    "ALTER TABLE released DROP COLUMN cell",
    "ALTER TABLE released ALTER COLUMN cell TYPE VARCHAR",
    f"UPDATE state_schema SET version = {schema.VERSION}",
])  # fmt: skip
def test_the_column_of_groups_is_looked_at_too(grouped: Path, tmp_path: Path, edit: str) -> None:
    open_and_show(grouped)
    with pytest.raises(dw.EngineError, match="is damaged: its table released is not as it was made"):
        open_and_show(edited(grouped, tmp_path / "state", edit))


def test_a_number_without_its_group_is_noticed(grouped: Path, tmp_path: Path) -> None:
    path = edited(grouped, tmp_path / "state", "UPDATE released SET cell = NULL WHERE place = 0")
    with pytest.raises(dw.EngineError, match="does not agree with its checksums"):
        open_and_show(path)


@pytest.mark.parametrize("edit", [
    "ALTER TABLE items DROP COLUMN r3",
    "ALTER TABLE items RENAME COLUMN r1 TO r9",
    "ALTER TABLE items ADD COLUMN had BIGINT",
    "ALTER TABLE items ALTER COLUMN r2 TYPE BIGINT",
    "ALTER TABLE items ALTER COLUMN item TYPE BLOB",
    "UPDATE item_kind SET kind = 'integer'",
    "DROP TABLE items",
    "DELETE FROM item_kind",
    "INSERT INTO item_kind SELECT * FROM item_kind",
])  # fmt: skip
def test_a_changed_table_of_items_is_refused(made: Path, tmp_path: Path, edit: str) -> None:
    with pytest.raises(dw.EngineError, match="is damaged: its table item"):
        open_and_show(edited(made, tmp_path / "state", edit))


def test_an_item_seen_in_a_step_to_come_is_noticed(made: Path, tmp_path: Path) -> None:
    path = edited(made, tmp_path / "state", "UPDATE items SET r1 = 2147483647")
    with Stream.open(path) as stream:
        with pytest.raises(dw.EngineError, match="does not agree with its checksums"):
            stream.advance(table_of([("a", 2, 1)]), 2 * STEP)
        assert stream.closed_steps == 1


def test_the_items_of_groups_are_looked_at_too(grouped: Path, tmp_path: Path) -> None:
    open_and_show(grouped)
    with pytest.raises(dw.EngineError, match="is damaged: its table items is not as it was made"):
        open_and_show(edited(grouped, tmp_path / "state", "ALTER TABLE items ALTER COLUMN item TYPE VARCHAR"))


@pytest.mark.parametrize("edit", [
    "UPDATE steps SET ends = ends + 1",
    "UPDATE steps SET ends = 9223372036854775807",
    "UPDATE steps SET ends = -9223372036854775808",
    "INSERT INTO steps SELECT * FROM steps",
])  # fmt: skip
def test_a_step_that_ended_at_no_such_time_is_noticed(made: Path, tmp_path: Path, edit: str) -> None:
    with pytest.raises(dw.EngineError, match="does not agree with its checksums"):
        open_and_show(edited(made, tmp_path / "state", edit))


@pytest.mark.parametrize("moved", ["ends + 3600000000", "ends - 3 * 86400000000", "9223372036854775807"])
def test_days_may_end_as_the_rules_of_the_zone_then_were_and_no_other_time(tmp_path: Path, moved: str) -> None:
    """What was released names the times that were right then; rules of zones that change move them by hours."""
    path = tmp_path / "state"
    asked = ("--start", "2013-01-01", "--window", "rolling:2", "--unit", "event", "--epsilon", "1")
    assert run("stream", "create", path, "--item", "who", "--time", "at", *asked).code == 0
    assert run("stream", "advance", path, "--empty", "--through", "2013-01-03").code == 0
    outcome = run("stream", "show", edited(path, tmp_path / "other", f"UPDATE steps SET ends = {moved} WHERE step = 1"))
    assert outcome.code == (0 if "3600" in moved else 1), outcome.err
    assert ("is damaged" in outcome.err.replace("\n", " ")) == (outcome.code == 1)


def test_a_torn_log_is_not_given_up_for_a_damaged_file(made: Path, tmp_path: Path) -> None:
    """What is beside the log is read to see if it is whole; `arrays` as text would have been a TypeError."""
    path = edited(made, tmp_path / "state", "ALTER TABLE creation ALTER COLUMN arrays TYPE VARCHAR USING 'x'")
    shutil.copy(mark_path(made), mark_path(path))
    log_of(path).write_bytes(b"torn")
    log_of(path).chmod(0o600)
    with pytest.raises(dw.EngineError, match="damaged"):
        Stream.open(path)
    assert log_of(path).exists()
