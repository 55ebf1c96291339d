"""Files are told by their first bytes, and a database that is open in this process goes on as if nobody had looked."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EventColumns
from dpwindows.count.sources import files
from dpwindows.count.sources.files import first_bytes
from dpwindows.errors import EngineError, InputError
from tests.counting import count_events
from tests.patience import PATIENCE


def elsewhere(program: str, path: Path) -> str:
    """What another process says, given the file as `path`."""
    command = [sys.executable, "-c", f"path = {str(path)!r}\n{program}"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return found.stdout.strip()


@pytest.mark.parametrize("address", ["{}", "sqlite:///{}"])
def test_a_sqlite_file_that_is_open_here_stays_locked(tmp_path: Path, address: str) -> None:
    """If it did not, another process would remove the log as the last one to have it, and commits into it with it."""
    path = tmp_path / "app.db"
    use = "import sqlite3; connection = sqlite3.connect(path, isolation_level=None); "
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE log (id, at)")
        connection.execute("INSERT INTO log VALUES ('ours', 0)")
        answers = count_events(address.format(path), EventColumns("id", "at"), Timeline.of_steps(1), [1])
        assert answers.cumulative(1).tolist() == [1]
        elsewhere(use + "connection.execute(\"INSERT INTO log VALUES ('theirs', 0)\"); connection.close()", path)
        connection.execute("INSERT INTO log VALUES ('later', 0)")
        assert elsewhere(use + "print(connection.execute('SELECT count(*) FROM log').fetchone()[0])", path) == "3"


def test_a_sqlite_file_that_is_read_here_stays_locked(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE log (id, at)")
        connection.execute("BEGIN")
        assert connection.execute("SELECT count(*) FROM log").fetchone() == (0,)
        count_events(path, EventColumns("id", "at"), Timeline.of_steps(1), [1])
        write = """
import sqlite3
try:
    sqlite3.connect(path, timeout=0, isolation_level=None).execute("INSERT INTO log VALUES ('theirs', 0)")
except sqlite3.OperationalError as error:
    print(error)"""
        assert elsewhere(write, path) == "database is locked"


def test_a_duckdb_database_that_is_open_here_stays_locked(tmp_path: Path) -> None:
    path = tmp_path / "app.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE log (id INTEGER, day INTEGER)")
        with pytest.raises(EngineError, match="is open in this process"):
            count_events(path, EventColumns("id", "day"), Timeline.of_steps(1), [1])
        write = """
import duckdb
try:
    duckdb.connect(path)
except duckdb.IOException as error:
    print("Could not set lock" in str(error))"""
        assert elsewhere(write, path) == "True"


def test_first_bytes_with_and_without_a_handle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert first_bytes(path, 4) == b"0123"
    with path.open("rb") as handle:
        handle.seek(7)
        assert first_bytes(path, 20) == b"0123456789"
        assert handle.read() == b"789"
    with path.open("ab") as handle:
        assert first_bytes(path, 4) == b"0123"
    with path.open("rb") as handle:
        (tmp_path / "other").write_bytes(b"other")
        (tmp_path / "other").replace(path)
        assert first_bytes(path, 4) == b"othe", "the handle is of the file that was there before"
        monkeypatch.setattr(os, "pread", lambda *arguments: pytest.fail("a handle of another file was read"))
        assert first_bytes(path, 4) == b"othe"
    monkeypatch.setattr(files, "_handles_of", lambda path: iter(()))
    assert first_bytes(path, 4) == b"othe"
    with pytest.raises(FileNotFoundError):
        first_bytes(tmp_path / "none", 4)
    with pytest.raises(InputError, match="there is no file or directory"):
        count_events(tmp_path / "none", EventColumns("id", "at"), Timeline.of_steps(1), [1])
