"""SQLite logs: what is read, what is refused, and that nothing is written."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy

import dpwindows as dw
from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.sources import sqlite
from dpwindows.count.sources.sqlite import _arrow, _open
from dpwindows.count.sources.sqlite_files import immutable_while_unchanged
from dpwindows.errors import EngineError, InputError
from tests.counting import in_steps
from tests.end_to_end.command_line import run

STEPS = Timeline.of_steps(2)
DAYS = Timeline("2013-01-01", "2013-01-06")
COLUMNS = EventColumns("id", "at")
WEIGHTED = EventColumns("id", "at", "n")
Rows = list[tuple[Any, ...]]


def written(path: Path, rows: Rows, columns: str = "id, at, n", name: str = "log") -> Path:
    """A file with one table of these rows."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(f'CREATE TABLE "{name}" ({columns})')
        connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns.split(",")))})', rows)
    connection.close()
    return path


def counted(source: object, columns: EventColumns = COLUMNS, timeline: Timeline = STEPS, **options: Any) -> list[int]:
    return in_steps(source, columns, timeline, **options)


# --- items, times and counts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("collation", ["BINARY", "NOCASE", "RTRIM"])
def test_items_are_told_apart_whatever_the_collation(tmp_path: Path, collation: str) -> None:
    items = ["a", "A", "a ", "ä", "Ä", "7", "07", "7.0", ""]
    path = written(tmp_path / "l.db", [(item, 0, 1) for item in items * 2], f"id TEXT COLLATE {collation}, at, n")
    assert counted(path) == [len(items), 0]
    assert counted(path, WEIGHTED, k=2) == [len(items), 0]


@pytest.mark.parametrize("items", [[1, 2, 2**63 - 1, 2**63 - 2], [b"\x00", b"\x00\x00", b"a", b"A"]], ids=str)
def test_items_of_one_type(tmp_path: Path, items: list[Any]) -> None:
    assert counted(written(tmp_path / "l.db", [(item, 0, 1) for item in [*items, None]])) == [4, 0]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([1.5, 2.5], "item column 'id' is of type DOUBLE, and floating-point numbers do not identify items"),
        ([1, 2.5], "item column 'id' is of type INTEGER and REAL, such as 1 and 2.5: which of them are equal"),
        ([7, "it's"], "of type INTEGER and TEXT, such as 7 and 'it''s': which"),
        ([b"a", "a"], "of type BLOB and TEXT, such as X'61' and 'a': which"),
    ],
)
def test_items_that_are_refused(tmp_path: Path, items: list[Any], message: str) -> None:
    """Types are found among all rows: the last one is far outside the range."""
    path = written(tmp_path / "l.db", [(item, 10 * place, 1) for place, item in enumerate(items)])
    with pytest.raises(InputError, match=message):
        counted(path)


@pytest.mark.parametrize(("role", "name"), [("time", "at"), ("count", "n")])
@pytest.mark.parametrize("values", [[0, 1.0], [0, "1"], ["0", b"1"]], ids=str)
def test_times_and_counts_of_several_types_are_refused(tmp_path: Path, role: str, name: str, values: list[Any]) -> None:
    rows: Rows = [("a", value if role == "time" else 0, value if role == "count" else 1) for value in values]
    with pytest.raises(InputError, match=f"the {role} column '{name}' is of type [A-Z]+ and [A-Z]+, such as"):
        counted(written(tmp_path / "l.db", rows), WEIGHTED)


def test_a_value_of_another_type_than_the_first_pass_saw_is_refused(tmp_path: Path) -> None:
    """A view may say something else each time that it is read."""
    path = written(tmp_path / "l.db", [(place, 0, 1) for place in range(50)])
    execute(
        path, "CREATE VIEW odd AS SELECT CASE WHEN random() % 2 THEN id ELSE CAST(id AS TEXT) END AS id, at FROM log"
    )
    with pytest.raises(InputError, match="of type INTEGER and TEXT"):
        counted(path, table="odd")
    text = sqlite._TYPES["text"]
    for other in (b"a", 7, 7.0, True):
        with pytest.raises(InputError, match=f"the item column 'id' is of type .*{type(other).__name__.upper()}"):
            _arrow([("a",), (None,), (other,)], {"item": text}, COLUMNS)
    assert _arrow([("a",), (None,)], {"item": text}, COLUMNS)["item"].to_pylist() == ["a", None]


def test_text_is_its_bytes_whatever_the_encoding_of_the_file(tmp_path: Path) -> None:
    items = ["a", "a\0", "a\0b", "a\0c", "\0", "", "é", "e\u0301", "\U0001f600"]
    path = written(tmp_path / "l.db", [(item, 0, 1) for item in items * 2])
    assert counted(path) == [len(items), 0]
    wide = tmp_path / "wide.db"
    execute(wide, "PRAGMA encoding = 'UTF-16'")
    with closing(sqlite3.connect(wide)) as connection, connection:
        connection.execute("PRAGMA encoding = 'UTF-16'")
        connection.execute("CREATE TABLE log (id, at, n)")
        connection.executemany("INSERT INTO log VALUES (?, 0, 1)", [(item,) for item in items * 2])
    assert b"a\0" in wide.read_bytes()
    assert counted(wide) == [len(items), 0]


def test_text_that_is_not_utf_8_is_refused_and_shown(tmp_path: Path) -> None:
    path = written(tmp_path / "l.db", [("a", 0, 1)])
    execute(path, "INSERT INTO log VALUES (CAST(X'62FF' AS TEXT), 10, 1)")
    with pytest.raises(InputError, match="the item column 'id' holds text that is not UTF-8, such as 'b\ufffd'"):
        counted(path)
    execute(path, "CREATE VIEW mended AS SELECT CAST(id AS BLOB) AS id, at FROM log")
    assert counted(path, table="mended") == [1, 0]


@pytest.mark.parametrize("rows_at_once", [1, 2, 7, 100])
def test_rows_come_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int) -> None:
    monkeypatch.setattr(sqlite, "_ROWS_AT_ONCE", rows_at_once)
    path = written(tmp_path / "l.db", [(None if place < 5 else place % 4, place % 2, 1) for place in range(14)])
    assert counted(path) == [2, 2]


@pytest.mark.parametrize(
    ("time", "timeline", "message"),
    [
        (2456293.5, DAYS, "of type DOUBLE; steps of 1d need"),
        (b"x", STEPS, "of type BLOB, but the timeline has integer steps"),
        ("soon", DAYS, "the time column 'at' is text and not all of it can be read, such as 'soon'; expected ISO 8601"),
    ],
)
def test_times_that_do_not_fit(tmp_path: Path, time: Any, timeline: Timeline, message: str) -> None:
    path = written(tmp_path / "l.db", [("a", time, 1)])
    with pytest.raises(InputError, match=message) as caught:
        counted(path, timeline=timeline)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_counts(tmp_path: Path) -> None:
    huge = 2**63 - 1
    rows: Rows = [("a", 0, huge), ("a", 0, huge), ("b", 0, 1), ("b", 0, 1), ("c", 0, 0), ("d", 0, -5), ("e", 0, None)]
    assert [counted(written(tmp_path / f"{k}.db", rows), WEIGHTED, k=k)[0] for k in (1, 2, 3)] == [2, 2, 1]
    rows = [(item, time, None if n is None else str(n)) for item, time, n in rows]
    rows += [("f", 0, "9" * 60), ("g", 0, "-" + "9" * 60), ("h", 0, "\t+2 \n"), ("i", 0, "\t-" + "9" * 60)]
    assert [counted(written(tmp_path / f"t{k}.db", rows), WEIGHTED, k=k)[0] for k in (1, 2, 3)] == [4, 4, 2]
    for bad in ("", "+", "1.5", "--1", "1 2", "secret"):
        path = written(tmp_path / f"bad{bad}.db", [("a", 0, bad)])
        with pytest.raises(InputError, match=r"the count column 'n' is text and not all .* expected whole numbers"):
            counted(path, WEIGHTED)
    with pytest.raises(InputError, match="of type DOUBLE; counts must be of an integer type"):
        counted(written(tmp_path / "real.db", [("a", 0, 1.5)]), WEIGHTED)


# --- files, tables and names ---------------------------------------------------------------------------------------


def test_paths_addresses_and_engines(tmp_path: Path) -> None:
    path = written(tmp_path / "a log%41?#.db", [("a", 0, 1)])
    assert counted(path) == counted(str(path)) == counted(path, settings=EngineSettings(engine="duckdb")) == [1, 0]
    plain = path.rename(tmp_path / "a log.db")
    engine = sqlalchemy.create_engine(f"sqlite:///{plain}")
    assert counted(f"sqlite:///{plain}") == counted(engine) == [1, 0]
    engine.dispose()
    shutil.copy(plain, tmp_path / "other.db")
    for source, message in (
        (tmp_path / "none.db", "there is no file or directory"),
        (f"sqlite:///{tmp_path}/none.db", "there is no SQLite file"),
        ("sqlite://", "there is no SQLite file"),
        (f"{tmp_path}/*.db", "names 2 SQLite databases; give one"),
    ):
        with pytest.raises(InputError, match=message):
            counted(source)


def test_an_engine_that_converts_values_and_makes_other_rows_is_read_as_the_file_is(tmp_path: Path) -> None:
    """And is left as it was."""
    path = written(tmp_path / "l.db", [("a", "2013-01-01 10:00:00", 1)], "id TEXT, at TIMESTAMP, n")
    options = {"detect_types": sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES}
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", connect_args=options, poolclass=sqlalchemy.StaticPool)
    with engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
    driver.text_factory = bytes
    driver.row_factory = lambda cursor, row: dict.fromkeys(("same", "keys"), row)
    assert counted(engine, timeline=DAYS) == [1, 0, 0, 0, 0]
    assert driver.text_factory is bytes
    assert driver.row_factory is not None
    assert not driver.in_transaction
    engine.dispose()


def test_a_name_that_is_shown_and_not_held_makes_no_item(tmp_path: Path) -> None:
    """SQLite takes a name in double quotes that no column has for a text: each row would be the same item."""
    path = written(tmp_path / "l.db", [("a", 0, 1), ("b", 0, 1)], '"id [x]", at, n')
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", connect_args={"detect_types": sqlite3.PARSE_COLNAMES})
    for source in (engine, path):
        with pytest.raises((EngineError, InputError)):
            counted(source)
    engine.dispose()


def test_a_stream_reads_a_file(tmp_path: Path) -> None:
    """And knows its items again in a log of another kind."""
    plan = dw.StreamPlan([dw.Cumulative()], unit=dw.EventLevel(), budget=dw.PureDP(1e9))
    options: dict[str, Any] = {"item": "id", "time": "at", "start": 0, "step": 1}
    with dw.Stream.create(tmp_path / "s.state", plan, **options) as stream:
        stream.advance(written(tmp_path / "l.db", [("a", 0, 1), ("b", 0, 1), ("a", 0, 1)]), 1)
        released = stream.advance(pa.table({"id": ["b", "c"], "at": [1, 1]}), 2)
    assert [round(row["estimate"]) for row in released.to_arrow().to_pylist()] == [3]


@pytest.mark.parametrize("name", ['x"; DROP TABLE log; --', "it's", "100%", "%s", ":name", "a.b", "count", "Ünï"])
def test_any_name_is_only_a_name(tmp_path: Path, name: str) -> None:
    quoted = name.replace('"', '""')
    path = written(tmp_path / "l.db", [("a", 0)], f'"{quoted}", at', quoted)
    assert counted(path, EventColumns(name, "at"), table=name) == [1, 0]


def test_tables_and_views(tmp_path: Path) -> None:
    path = written(tmp_path / "l.db", [("a", 0, 1), ("b", 1, 1)])
    connection = sqlite3.connect(path)
    connection.execute("CREATE VIEW shown AS SELECT id, at FROM log WHERE at = 1")
    connection.close()
    assert counted(path, table="shown") == [0, 1]
    with pytest.raises(InputError, match="the SQLite file has 2 tables, name one of them: log, shown"):
        counted(path)
    with pytest.raises(InputError, match=r"has no table 'logs' \(did you mean 'log'\?\)"):
        counted(path, table="logs")
    with pytest.raises(InputError, match=r"table log has no column 'Id' for the item \(did you mean 'id'\?\)"):
        counted(path, EventColumns("Id", "at"), table="log")


def test_nothing_is_written(tmp_path: Path) -> None:
    path = written(tmp_path / "l.db", [("a", 0, 1)])
    path.chmod(0o444)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    said: list[str] = []
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    sqlalchemy.event.listen(engine, "connect", lambda driver, _: driver.set_trace_callback(said.append))
    assert counted(path) == counted(engine) == [1, 0]
    assert {statement.split()[0] for statement in said} == {"BEGIN", "SELECT", "ROLLBACK"}
    read = [statement for statement in said if 'FROM "log"' in statement and "LIMIT 0" not in statement]
    assert len(read) == 2, "a pass for the types and one for the rows"
    engine.dispose()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [file.name for file in tmp_path.iterdir()] == ["l.db"]
    path.chmod(0o644)
    with closing(_open(path, immutable=False)) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("DELETE FROM log")


def test_a_log_that_is_written_to_meanwhile(tmp_path: Path) -> None:
    """In write-ahead mode the last committed state is counted; a lock is the environment's fault."""
    path = written(tmp_path / "l.db", [("a", 0, 1)])
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO log VALUES ('b', 0, 1)")
    assert counted(path) == [1, 0]
    writer.execute("COMMIT")
    assert counted(path) == [2, 0]
    writer.execute("PRAGMA journal_mode = DELETE")
    writer.execute("BEGIN EXCLUSIVE")
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", connect_args={"timeout": 0.05})
    with pytest.raises(EngineError, match="locked by a process that writes to it"):
        counted(engine)
    engine.dispose()
    writer.close()


# --- files in write-ahead mode ---------------------------------------------------------------------------------------

LATE = "INSERT INTO log VALUES ('late', 0, 1)"


def alone(path: Path, rows: Rows, seconds_ago: float = 60) -> Path:
    """A file in write-ahead mode that nobody has open, written to some time ago, in a folder of its own."""
    path.parent.mkdir()
    written(path, rows)
    execute(path, "PRAGMA journal_mode = WAL", "PRAGMA user_version = 1")
    assert beside(path) == {""}
    assert path.read_bytes()[18:20] == b"\x02\x02"
    os.utime(path, (time.time() - seconds_ago,) * 2)
    return path


def execute(path: Path, *statements: str) -> None:
    """What another program does that has the file open for a moment."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement).fetchall()


def beside(path: Path) -> set[str]:
    """How the names in a file's folder go on after its own."""
    return {file.name.removeprefix(path.name) for file in path.parent.iterdir()}


def test_nothing_appears_beside_a_file_in_write_ahead_mode(tmp_path: Path) -> None:
    path = alone(tmp_path / "w" / "l.db", [("a", 0, 1), ("b", 1, 1)])
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    for source in (path, str(path), f"sqlite:///{path}"):
        assert counted(source) == [1, 1]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert beside(path) == {""}


def test_a_file_written_a_moment_ago_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a write would show in its time of modification; a file written to meanwhile is opened as any other."""
    waited: list[float] = []
    path, clock = alone(tmp_path / "w" / "l.db", [("a", 0, 1)]), [time.time()]
    os.utime(path, (clock[0] - 1,) * 2)
    # However long this process is kept from working.
    monkeypatch.setattr(time, "time", lambda: clock[0])

    slept = time.sleep

    def sleep(seconds: float) -> None:
        if threading.current_thread() is not threading.main_thread():
            slept(seconds)
            return
        waited.append(seconds)
        clock[0] += seconds + 0.01

    monkeypatch.setattr(time, "sleep", sleep)
    assert counted(path) == [1, 0]
    assert waited == [pytest.approx(1.1)]
    assert beside(path) == {""}
    # A fraction earlier: a float in seconds is rounded on its way into a time of nanoseconds, at times to later.
    os.utime(path, (clock[0] - 0.5,) * 2)
    monkeypatch.setattr(time, "sleep", lambda seconds: execute(path, LATE))
    assert counted(path) == [2, 0]


def test_a_time_ahead_of_the_clock_says_nothing(tmp_path: Path) -> None:
    path = alone(tmp_path / "w" / "l.db", [("a", 0, 1)], seconds_ago=-3600)
    with immutable_while_unchanged(path) as immutable:
        assert not immutable
    assert counted(path) == [1, 0]


@pytest.mark.parametrize("way", ["counted", "damaged", "replaced", "removed"])
def test_a_file_that_is_written_to_meanwhile_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Whatever was read, and whether or not it could be read at all."""
    path = alone(tmp_path / "w" / "l.db", [(f"item {place}", 0, 1) for place in range(5000)])
    other = written(tmp_path / "other.db", [("a", 0, 1)])

    def meanwhile(*arguments: Any) -> Any:
        if way == "replaced":
            other.replace(path)
        elif way == "removed":
            path.unlink()
        else:
            execute(path, LATE)
        if way == "damaged":
            raise sqlite3.DatabaseError("database disk image is malformed")
        return _arrow(*arguments)

    monkeypatch.setattr(sqlite, "_arrow", meanwhile)
    with pytest.raises(
        EngineError, match=r"l\.db was written to while it was counted, and no count was made"
    ) as caught:
        counted(path)
    assert caught.value.__suppress_context__
    monkeypatch.undo()
    if way in ("counted", "damaged"):
        assert counted(path) == [5001, 0]


def test_other_errors_are_told_where_nothing_was_written(tmp_path: Path) -> None:
    path = alone(tmp_path / "w" / "l.db", [("a", "secret", 1)])
    with pytest.raises(InputError, match="the time column 'at' is text and not all of it can be read"):
        counted(path)
    assert beside(path) == {""}


def test_a_commit_that_is_only_in_the_log_is_counted(tmp_path: Path) -> None:
    """That of a program that has the file open, by any name of the file, and what a crash or a copy has left."""
    path = alone(tmp_path / "w" / "l.db", [("a", 0, 1)])
    link, copies = tmp_path / "link.db", tmp_path / "copies"
    link.symlink_to(path)
    copies.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute(LATE)
        os.utime(path, (0, 0))
        assert counted(path) == counted(link) == counted(f"sqlite:///{link}") == [2, 0]
        writer.execute("BEGIN IMMEDIATE")
        writer.execute(LATE.replace("late", "never"))
        assert counted(path) == [2, 0]
        for ending in ("", "-wal"):
            shutil.copy2(f"{path}{ending}", f"{copies}/l.db{ending}")
    assert counted(copies / "l.db") == [2, 0]


def test_a_file_in_another_mode_is_locked_while_it_is_read(tmp_path: Path) -> None:
    for path, expected in ((written(tmp_path / "l.db", []), False), (alone(tmp_path / "w" / "l.db", []), True)):
        os.utime(path, (0, 0))
        with immutable_while_unchanged(path) as immutable:
            assert immutable is expected


# A whole page of it, and one byte of the header: the number of the format of what it declares.
@pytest.mark.parametrize("damage", [slice(100, 8192), slice(47, 48)], ids=["page", "format"])
def test_a_damaged_file(tmp_path: Path, damage: slice) -> None:
    path = written(tmp_path / "l.db", [(f"item-{i}", i % 2, 1) for i in range(5000)])
    content = bytearray(path.read_bytes())
    content[damage] = b"\xff" * (damage.stop - damage.start)
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="damaged"):
        counted(path)


def test_a_file_that_is_cut_within_a_page(tmp_path: Path) -> None:
    """SQLite reads what is missing of a last page as nulls, and rows without an item are no events."""
    path = written(tmp_path / "l.db", [(f"item-{i}" * 20, i % 2, 1) for i in range(50)])
    content = path.read_bytes()
    for missing in (1, 100, 1000):
        path.write_bytes(content[:-missing])
        with pytest.raises(InputError, match="cut off within a page"):
            counted(path)
    path.write_bytes(content)
    assert counted(path) == [25, 25]


def test_what_is_looked_at_is_what_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that is turned in between leads nowhere else."""
    first, other, link = alone(tmp_path / "a" / "l.db", [(1, 0, 1)]), tmp_path / "b" / "l.db", tmp_path / "link.db"
    alone(other, [(item, 0, 1) for item in range(5)])
    link.symlink_to(first)

    def turned(path: Path, *, immutable: bool) -> sqlite3.Connection:
        link.unlink()
        link.symlink_to(other)
        return _open(path, immutable=immutable)

    monkeypatch.setattr(sqlite, "_open", turned)
    assert counted(link) == [1, 0]


@pytest.mark.parametrize("what", ["table", "column"])
def test_names_that_are_not_text(tmp_path: Path, what: str) -> None:
    path = written(tmp_path / "l.db", [("a", 0, 1)], "id, at, zzzq", "yyyq")
    name = b"yyyq" if what == "table" else b"zzzq"
    path.write_bytes(path.read_bytes().replace(name, b"\xff" + name[1:]))
    with pytest.raises(InputError, match="not UTF-8"):
        counted(path)


# --- from the command line -------------------------------------------------------------------------------------------


def test_a_release_of_a_file(tmp_path: Path) -> None:
    path = written(tmp_path / "l.db", [("ann", "2013-01-01 10:00:00", 1), ("bob", "2013-01-03", 1)])
    out = tmp_path / "release.json"
    asked = ("--item", "id", "--time", "at", "--start", "2013-01-01", "--end", "2013-01-05", "--window", "cumulative")
    for source in (path, f"sqlite:///{path}"):
        outcome = run("release", source, *asked, "--unit", "event", "--epsilon", "1e9", "-o", out, "--force")
        assert outcome.code == 0, outcome.err
        assert [round(row["estimate"]) for row in json.loads(out.read_text())["rows"]] == [1, 1, 2, 2]


def test_a_check_of_a_file(tmp_path: Path) -> None:
    rows: Rows = [("ann", "2013-01-01 10:00:00", 1), ("bob", "2013-01-03 11:00:00", 2), ("ann", "soon", 3)]
    path = written(tmp_path / "l.db", rows)
    asked = ("--item", "id", "--time", "at", "--json")
    for source in (path, f"sqlite:///{path}"):
        outcome = run("check", source, *asked).must_refuse()
        found = json.loads(outcome.out)
        assert (found["rows"], found["items"], found["null_items"], found["bad_rows"]) == (3, 2, 0, 1)
        assert "such as 'soon' in the time column 'at'" in found["problems"][0]
        assert any("carry no zone" in note for note in found["notes"])
    clean = written(tmp_path / "clean.db", rows[:2])
    for source in (clean, f"sqlite:///{clean}"):
        found = json.loads(run("check", source, "--json").out)
        assert (found["guessed"], found["rows"]) == ({"--item": "id", "--time": "at"}, 2)
    # In a column that is not read.
    execute(clean, "UPDATE log SET n = CAST(X'62FF' AS TEXT)")
    assert run("check", clean).code == 0
