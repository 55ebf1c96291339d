"""The file of a stream on a system that refuses it something: one message, and what was committed is still there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from dpwindows.errors import EngineError, InputError
from dpwindows.stream import state_file, undo
from dpwindows.stream.records import last_step, read_creation, token_of
from dpwindows.stream.store import DamagedError, StateFile, TornLogError, log_of, state_error, usable_path
from tests.stream.streams import STEP, new_stream, plan_of, table_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database of the engine's with one number in it."""
    path = tmp_path / "state"
    duckdb.connect(str(path)).execute("CREATE TABLE kept AS SELECT 1 AS number").close()
    path.chmod(0o600)
    return path


def numbers(path: Path) -> list[int]:
    """What the file holds; that it can be opened says that nothing in this process has it open."""
    state = StateFile(path)
    with state.guarded() as connection:
        found = [number for (number,) in connection.execute("SELECT number FROM kept ORDER BY number").fetchall()]
    state.close()
    return found


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


def with_two(path: Path) -> StateFile:
    """The state with a second number committed, in the log only."""
    state = StateFile(path)
    with state.transaction() as connection:
        connection.execute("INSERT INTO kept VALUES (2)")
    return state


def in_use_elsewhere(path: Path) -> Path:
    """A copy of the state and its log, as a process leaves them that is killed."""
    state, copy = with_two(path), path.with_name("copy")
    for name, other in ((path, copy), (log_of(path), log_of(copy))):
        other.write_bytes(name.read_bytes())
        other.chmod(0o600)
    state.close()
    return copy


def failing(code: int) -> object:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("more", [0, 1])
def test_a_state_that_cannot_be_opened_is_not_taken_to_be_in_use(path: Path, more: int) -> None:
    with open_files(more), pytest.raises(EngineError, match="cannot be read: Too many open files"):
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


def test_a_log_that_others_may_write_is_refused(path: Path) -> None:
    """Whoever can write it can have published steps forgotten, and drawn again."""
    copy = in_use_elsewhere(path)
    log_of(copy).chmod(0o666)
    with pytest.raises(InputError, match="others may write the log of a stream"):
        StateFile(copy)
    log_of(copy).chmod(0o600)
    assert numbers(copy) == [1, 2]


def test_a_log_that_is_folded_in_meanwhile_is_not_missed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(state_file, "logs_left", lambda state: [log_of(state)])
        state = StateFile(path)
    state.close()
    assert numbers(path) == [1]


def test_a_file_that_cannot_be_synced_is_not_relied_upon(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(errno.EIO))
        with pytest.raises(EngineError, match="cannot be written to disk: Input/output error") as refused:
            StateFile(path)
    # Also while somebody still looks at the error, which knows the file.
    assert numbers(path) == [1]
    assert "mend that, and run the same again" in str(refused.value)


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_syncs_nothing_can_be_used(path: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(code))
    assert numbers(path) == [1]


def test_nothing_is_committed_where_the_log_cannot_be_made(path: Path) -> None:
    state = StateFile(path)
    said = r"log cannot be written: Too many open files\. Nothing that was committed is lost"
    with pytest.raises(EngineError, match=said), open_files(0), state.transaction() as connection:
        connection.execute("INSERT INTO kept VALUES (2)")
    with pytest.raises(EngineError, match="closed after a failure: open it again"), state.guarded():
        pass
    state.close()
    assert numbers(path) == [1]


def test_a_long_log_is_folded_in_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file, "_LONGEST_LOG", 0)
    state = with_two(path)
    assert not state_file.logs_left(path)
    state.close()
    assert numbers(path) == [1, 2]


def test_nothing_is_folded_in_that_could_not_be_had_back(path: Path) -> None:
    """What a checkpoint overwrites has no place beside the state: the log stays, and holds what was committed."""
    undo.undo_path(path).mkdir()
    with_two(path).close()
    assert state_file.logs_left(path)
    state = StateFile(path)
    with pytest.raises(EngineError, match="cannot be written"):
        state.settle()
    with pytest.raises(EngineError, match="closed after a failure"), state.guarded():
        pass
    state.close()
    assert state_file.logs_left(path)
    undo.undo_path(path).rmdir()
    assert numbers(path) == [1, 2]


def test_what_is_settled_is_not_settled_again_before_something_is_committed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = with_two(path)
    state.settle()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(errno.EIO))
        state.settle()
    with state.transaction() as connection:
        connection.execute("INSERT INTO kept VALUES (3)")
    state.settle()
    assert not state_file.logs_left(path)
    state.close()
    assert numbers(path) == [1, 2, 3]


def test_what_cannot_be_settled_is_not_gone_on_with(path: Path) -> None:
    copy = in_use_elsewhere(path)
    state = StateFile(copy, read_only=True)
    with pytest.raises(TornLogError, match="could not be folded into it"):
        state.settle()
    with pytest.raises(EngineError, match="open it again"), state.guarded():
        pass
    state.close()
    assert numbers(copy) == [1, 2]


def test_closing_never_fails_and_is_for_good(path: Path) -> None:
    state = with_two(path)
    state.connection.close()  # the engine's own failure
    state.close()
    with pytest.raises(EngineError, match="open it again"), state.guarded():
        pass
    assert numbers(path) == [1, 2]


# What DuckDB 1.4 and 1.5 say.
SAYINGS = [
    (duckdb.IOException("Could not set lock on file"), EngineError, "is in use"),
    (duckdb.OutOfMemoryException("failed to allocate data"), EngineError, "raise memory_limit"),
    (duckdb.OutOfMemoryException("No space left on device"), EngineError, "the disk is full"),
    (duckdb.IOException("Trying to read a file of storage version 99"), EngineError, "install a newer one"),
    (duckdb.IOException("created with a newer version of DuckDB"), EngineError, "install a newer one"),
    (duckdb.IOException("Failure while replaying WAL file"), TornLogError, "the log beside"),
    (duckdb.IOException("Corrupt database file: checksum 17 does not match"), DamagedError, "is damaged"),
    (duckdb.SerializationException("of any text"), DamagedError, "is damaged"),
    (duckdb.BinderException("Ann came on Monday"), EngineError, r"failed on the state .*\(BinderException\)$"),
]


@pytest.mark.parametrize(("error", "kind", "said"), SAYINGS, ids=lambda value: None)
def test_what_the_engine_says_becomes_what_to_do(error: duckdb.Error, kind: type[EngineError], said: str) -> None:
    with pytest.raises(kind, match=said) as raised:
        raise state_error(Path("/states/visits"), error)
    assert type(raised.value) is kind
    assert "Ann" not in str(raised.value)


def test_a_step_that_is_not_closed_has_no_token(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with new_stream(path, plan_of("cumulative")) as stream:
        stream.advance(table_of([("a", 1, 1), ("b", 2, 1)]), through=2 * STEP)
    state = StateFile(path)
    creation, last = read_creation(state)[0], last_step(state)
    tokens = {token_of(state, creation, step) for step in range(last + 1)}
    assert len(tokens) == last + 1 == 3
    with pytest.raises(DamagedError, match="does not agree with its checksums"):
        token_of(state, creation, last + 1)
    state.close()
