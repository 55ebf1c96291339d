"""The file of a stream on a system that refuses it something: one message, and what was committed is still there."""

from __future__ import annotations

import errno
import gc
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dpwindows.durable import Lock
from dpwindows.errors import EngineError, InputError
from dpwindows.ledger.database import make_tables
from dpwindows.stream import store
from dpwindows.stream.store import DamagedError, StateFile, items_folder, state_error, usable_path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A state in which nothing is recorded but one byte in place of a digest."""
    path = tmp_path / "state"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        make_tables(connection, store.KIND)
        connection.execute("INSERT INTO creation VALUES ('', x'01')")
        connection.execute("COMMIT")
    path.chmod(0o600)
    items_folder(path).mkdir(mode=0o700)
    return path


def numbers(path: Path) -> list[int]:
    """What the file holds; that it can be opened says that nothing in this process has it open."""
    state = StateFile(path)
    with state.guarded() as connection:
        found = connection.execute("SELECT digest FROM creation ORDER BY digest").fetchall()
    state.close()
    return [content[0] for (content,) in found]


def add_two(state: StateFile) -> None:
    with state.transaction() as connection:
        connection.execute("INSERT INTO creation VALUES ('', x'02')")


@contextmanager
def open_files(more: int) -> Iterator[None]:
    """This process may open so many files more."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def failing(code: int) -> object:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("more", [0, 1])
def test_a_state_that_cannot_be_opened_is_not_taken_to_be_in_use(path: Path, more: int) -> None:
    with open_files(more), pytest.raises(EngineError, match=r"cannot be (read|used)"):
        StateFile(path)
    assert numbers(path) == [1]


def test_a_path_that_cannot_be_looked_at_is_no_missing_stream(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 300)
    with pytest.raises(EngineError, match="cannot be read: File name too long"):
        StateFile(path)
    with pytest.raises(EngineError, match="cannot be read: File name too long"):
        StateFile(usable_path(path))


def test_a_path_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be UTF-8 text"):
        usable_path(f"{tmp_path}/\udcff")


def test_a_state_that_was_refused_can_be_opened_once_it_is_private(path: Path) -> None:
    path.chmod(0o666)
    with pytest.raises(InputError, match="others may write the state of a stream"):
        StateFile(path)
    path.chmod(0o600)
    assert numbers(path) == [1]


def test_a_folder_of_items_that_others_may_write_is_refused(path: Path) -> None:
    items_folder(path).chmod(0o777)
    with pytest.raises(InputError, match="others may write the folder of a stream's items"):
        StateFile(path)
    items_folder(path).chmod(0o700)
    assert numbers(path) == [1]


def test_a_folder_of_items_that_is_none_is_refused(path: Path) -> None:
    items_folder(path).rmdir()
    items_folder(path).write_bytes(b"")
    with pytest.raises(EngineError, match="state-items cannot be read: Not a directory"):
        StateFile(path)


def test_a_folder_that_cannot_be_synced_is_not_relied_upon(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = StateFile(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(errno.EIO))
        with pytest.raises(EngineError, match="cannot be written to disk: Input/output error") as refused:
            state.settle()
    with pytest.raises(EngineError, match="closed after a failure: open it again"), state.guarded():
        pass
    state.close()
    assert numbers(path) == [1]
    assert "mend that, and run the same again" in str(refused.value)


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_syncs_no_folder_can_be_used(path: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(code))
    state = StateFile(path)
    state.settle()
    state.close()


def insert_and_fail(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO creation VALUES ('', x'03', '')")
    connection.execute("INSERT INTO nothing VALUES (1)")


def test_all_of_a_transaction_is_done_or_none_of_it(path: Path) -> None:
    state = StateFile(path)
    add_two(state)
    with pytest.raises(EngineError, match="failed on the state"), state.transaction() as connection:
        insert_and_fail(connection)
    state.close()
    state = StateFile(path)
    add_two(state)
    state.close()
    assert numbers(path) == [1, 2, 2]


def test_a_commit_waits_for_the_disk_three_times(path: Path) -> None:
    """Journal, file, and the folder that knows the journal no more: EXTRA, which is 3, in a rollback journal."""
    state = StateFile(path)
    with state.guarded() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    state.close()


def test_a_state_that_cannot_be_written_is_left_alone(path: Path) -> None:
    state = StateFile(path)
    with pytest.raises(EngineError, match="cannot be used"), open_files(0):
        add_two(state)
    with pytest.raises(EngineError, match="closed after a failure: open it again"), state.guarded():
        pass
    state.close()
    assert numbers(path) == [1]


def test_closing_never_fails_and_is_for_good(path: Path) -> None:
    state = StateFile(path)
    state._connection.close()  # the database's own failure
    state.close()
    state.close()
    with pytest.raises(EngineError, match="open it again"), state.guarded():
        pass
    assert numbers(path) == [1]


def test_a_state_that_nobody_closed_is_let_go(path: Path) -> None:
    state = StateFile(path)
    add_two(state)
    del state
    gc.collect()
    assert numbers(path) == [1, 2]


def test_a_forked_process_that_lives_on_keeps_no_lock(path: Path) -> None:
    state, (reading, writing) = StateFile(path), os.pipe()
    if (child := os.fork()) == 0:
        os.read(reading, 1)
        os._exit(0)
    state.close()
    assert numbers(path) == [1]
    os.write(writing, b".")
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)


def said_by(code: int, text: str = "Ann came on Monday") -> sqlite3.Error:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode, error.sqlite_errorname = code, "SQLITE_ERROR"
    return error


SAYINGS = [
    (said_by(sqlite3.SQLITE_BUSY), EngineError, "is in use"),
    (said_by(sqlite3.SQLITE_FULL), EngineError, "the disk is full"),
    (said_by(sqlite3.SQLITE_IOERR_FSYNC), EngineError, "the disk fails"),
    (said_by(sqlite3.SQLITE_READONLY), EngineError, "read-only"),
    (said_by(sqlite3.SQLITE_CANTOPEN), EngineError, "permission denied"),
    (said_by(sqlite3.SQLITE_NOTADB), InputError, "is not the state of a stream"),
    (said_by(sqlite3.SQLITE_CORRUPT), DamagedError, "is damaged"),
    (sqlite3.OperationalError("of any text"), DamagedError, "is damaged"),
    (said_by(sqlite3.SQLITE_ERROR), EngineError, r"failed on the state .*\(SQLITE_ERROR\)$"),
]


@pytest.mark.parametrize(("error", "kind", "said"), SAYINGS, ids=lambda value: None)
def test_what_the_database_says_becomes_what_to_do(error: Exception, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said) as raised:
        raise state_error(Path("/states/visits"), error)
    assert type(raised.value) is kind
    assert "Ann" not in str(raised.value)


def test_a_state_without_a_lock_has_one_that_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where folders cannot be locked, the database is; and `records.close` goes on only from where it was."""
    monkeypatch.setattr(store, "try_lock", lambda handle: Lock.NOT_KNOWN_HERE)
    one, other = StateFile(path), StateFile(path)
    with one.transaction() as connection:
        connection.execute("DELETE FROM creation")
        with pytest.raises(EngineError, match="is in use"), other.transaction():
            pass
    one.close()
    other.close()


def test_a_state_that_another_tool_put_into_another_mode_is_put_back(path: Path) -> None:
    """Its journal is the one that everything here is said of."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    state = StateFile(path)
    add_two(state)
    state.close()
    assert sorted(found.name for found in path.parent.iterdir()) == ["state", "state-items"]
    assert numbers(path) == [1, 2]


@pytest.mark.parametrize("moved", [lambda path: path, items_folder], ids=["state", "items"])
def test_an_open_stream_whose_files_are_moved_away_says_so(path: Path, moved: Callable[[Path], Path]) -> None:
    with closing(StateFile(path)) as state:
        moved(path).rename(path.parent / "elsewhere")
        with (
            pytest.raises(EngineError, match="was moved or deleted while the stream was open: put it back"),
            state.turn(),
        ):
            pass
        (path.parent / "elsewhere").rename(moved(path))
        with state.turn():
            pass
