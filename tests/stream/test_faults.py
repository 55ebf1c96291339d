"""Streams on failing machines and with wrong files: a clear message, and nothing lost or doubled."""

from __future__ import annotations

import errno
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dpwindows as dw
from dpwindows.stream import parts, store
from dpwindows.stream.mark import mark_path
from dpwindows.stream.store import StateFile
from dpwindows.stream.stream import Stream
from tests.end_to_end.command_line import run
from tests.forked_commands import shown_as
from tests.stream.streams import LOG, PLAN, STEP, copied, plan_of, require_exact, same, spied, started, table_of


def require_whole(path: Path, first: dw.Release, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step is as it was, and the stream goes on as if nothing had happened."""
    with spied(monkeypatch) as seen, Stream.open(path) as stream:
        assert same(stream.advance(through=STEP), first)
        stream.advance(table_of(LOG[1]), 2 * STEP)
        stream.advance(table_of(LOG[2]), 3 * STEP)
    require_exact(seen[3], [event for events in LOG for event in events], plan_of(*PLAN))


# --- The disk ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def python(tmp_path: Path, forking: Path) -> Path:
    """Python that has loaded the libraries, in a process of its own each time."""
    command = tmp_path / "bin" / "python"
    shown_as(command, forking)
    return command


def ran(python: Path, code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    told = f"import sys\nsys.argv[1:] = {[*map(str, arguments)]}\n{code}"
    return subprocess.run([python, "-c", told], capture_output=True, text=True, check=False)


# Here files may grow by so many bytes beyond the state's size.
_SHORT_OF_DISK = """
import resource
from pathlib import Path
sys.dont_write_bytecode = True  # it would be cut, and kept
from dpwindows.cli import main
state, more, *arguments = sys.argv[1:]
limit = Path(state).stat().st_size + int(more)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.argv = ["dpwindows", *arguments]
main()
"""


@pytest.mark.slow
def test_a_full_disk_loses_nothing(tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The items of a step do not fit: first not at all, then in part."""
    path, events = tmp_path / "state", tmp_path / "events.csv"
    first = started(path)
    size = path.stat().st_size
    many = [f"item-{i},{STEP + i % STEP},1" for i in range(200_000)]
    events.write_text("who,at,times\n" + "\n".join(many) + "\n")
    for more in (4096 - size, 100_000 - size, 400_000 - size):
        command = ("stream", "advance", path, events, "--through", str(2 * STEP))
        done = ran(python, _SHORT_OF_DISK, path, str(more), *command)
        assert done.returncode == 1, done.stderr
        assert "may not grow any more" in done.stderr or "too large" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
        with Stream.open(path) as stream:
            assert stream.closed_steps == 1
    require_whole(path, first, monkeypatch)
    assert {part.name for part in (tmp_path / "state-items").iterdir()} == named(path)


def named(path: Path) -> set[str]:
    """The parts that a state's manifest names."""
    with Stream.open(path) as stream:
        return {part.name for part in stream._position.parts}


@pytest.mark.parametrize("committed", [False, True])
def test_a_failed_commit_is_found_out_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """Whether the engine fails before or after the commit is on disk, the same call again gives the step once."""
    path = tmp_path / "state"
    first = started(path)

    def commit(state: StateFile) -> None:
        if committed:
            original(state)
        failure = sqlite3.OperationalError("database or disk is full")
        failure.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise failure

    original = StateFile.commit
    with Stream.open(path) as stream, monkeypatch.context() as patch:
        patch.setattr(StateFile, "commit", commit)
        with pytest.raises(dw.EngineError, match=r"the disk is full\. Nothing that was committed is lost"):
            stream.advance(table_of(LOG[1]), 2 * STEP)
        with pytest.raises(dw.EngineError, match="open it again"):
            stream.advance(table_of(LOG[1]), 2 * STEP)
    with Stream.open(path) as stream:
        assert stream.closed_steps == 1 + committed
    require_whole(path, first, monkeypatch)


@pytest.mark.parametrize("failing", ["sync_file", "sync_folder"])
def test_a_failed_sync_of_the_items_closes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "state"
    first = started(path)

    def fail(path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with Stream.open(path) as stream, monkeypatch.context() as patch:
        patch.setattr(parts, failing, fail)
        with pytest.raises(dw.EngineError, match="Input/output error"):
            stream.advance(table_of(LOG[1]), 2 * STEP)
        assert stream.closed_steps == 1
    require_whole(path, first, monkeypatch)


def test_a_failed_sync_of_the_folder_publishes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another process committed is not relied upon, as long as it may not be on disk."""
    path = tmp_path / "state"
    first = started(path)
    mark_path(path).unlink()

    def fail(path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(store, "sync_folder", fail)
        with pytest.raises(dw.EngineError, match="Input/output error"):
            Stream.open(path)
    require_whole(path, first, monkeypatch)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter: root would not notice that a disk is read-only."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


# Runs a command twice: in a copy of the folder, which imports everything, and then in the folder itself, as a user who
# may not write there and need not be able to read Python's own files either.
_AS_NOBODY = """
import contextlib, io, os, shutil, tempfile
from dpwindows.cli import main
folder, *arguments = sys.argv[1:]
with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
        shutil.copytree(folder, scratch, dirs_exist_ok=True)
        os.chmod(scratch, 0o755)
        os.chmod(scratch + "/state", 0o600)
        os.chmod(scratch + "/state-items", 0o700)
        main([argument.replace(folder, scratch) for argument in arguments])
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
main(arguments)
"""


@pytest.mark.slow
def test_a_read_only_disk_can_be_shown_and_nothing_else(
    open_folder: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, events = open_folder / "state", open_folder / "events.csv"
    first = started(path)
    events.write_text(f"who,at,times\na,{STEP},1\n")
    path.chmod(0o444)
    mark_path(path).chmod(0o444)
    path.with_name("state-items").chmod(0o555)
    open_folder.chmod(0o555)
    asked = ("--item", "a", "--time", "b", "--start", "0", "--step", "1", "--window", "cumulative", "--unit", "event")
    calls: list[tuple[tuple[str | Path, ...], int]] = [
        (("show", path), 0),
        (("advance", path, events, "--through", str(2 * STEP)), 1),
        (("create", open_folder / "new", *asked, "--epsilon", "1"), 1),
    ]
    for arguments, code in calls:
        done = ran(python, _AS_NOBODY, open_folder, "stream", *arguments)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        if code:
            assert "denied" in done.stderr or "cannot be written" in done.stderr or "read-only" in done.stderr
    open_folder.chmod(0o755)
    path.with_name("state-items").chmod(0o700)
    path.chmod(0o600)
    require_whole(path, first, monkeypatch)


# --- Wrong and damaged files ------------------------------------------------------------------------------------------


def test_what_is_no_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with pytest.raises(dw.InputError, match="there is no stream"):
        Stream.open(path)
    with pytest.raises(dw.InputError, match="is a folder"):
        Stream.open(tmp_path)
    (tmp_path / "state-items").mkdir()
    for content in (b"", b"short", b"SQLite format 3\x00" + bytes(5000), b"who,at\na,1\n" * 900):
        path.write_bytes(content)
        with pytest.raises(dw.InputError, match="not the state of a stream"):
            Stream.open(path)
        assert path.read_bytes() == content
    path.unlink()
    sqlite3.connect(path).execute("CREATE TABLE creation (facts TEXT)").connection.close()
    with pytest.raises(dw.InputError, match="not the state of a stream"):
        Stream.open(path)


def test_a_truncated_or_damaged_state_says_so(tmp_path: Path) -> None:
    path, broken = tmp_path / "state", tmp_path / "broken"
    first = started(path)
    content = path.read_bytes()
    for size in (4096, 13_000, len(content) // 2, len(content) - 4096):
        copied(path, broken, mark=False).write_bytes(content[:size])
        with pytest.raises(dw.EngineError, match="damaged"), Stream.open(broken) as stream:
            stream.advance(table_of(LOG[1]), 2 * STEP)
    for at in range(100, len(content), 512):
        flipped = bytearray(content)
        flipped[at : at + 64] = bytes(byte ^ 255 for byte in flipped[at : at + 64])
        copied(path, broken, mark=False).write_bytes(bytes(flipped))
        assert outcome_of(broken, first) in ("whole", "damaged"), "what was hit may not be in use"


def outcome_of(path: Path, first: dw.Release) -> str:
    """What comes of using a state that may be damaged."""
    try:
        with Stream.open(path) as stream:
            whole = same(stream.advance(through=STEP), first)
            stream.advance(table_of(LOG[1]), 2 * STEP)
    except dw.EngineError as error:
        return "damaged" if "damaged" in str(error) else str(error)
    return "whole" if whole else "changed"


# --- Versions ---------------------------------------------------------------------------------------------------------


def test_a_newer_state_asks_for_a_newer_library(tmp_path: Path) -> None:
    path = tmp_path / "state"
    started(path)
    for mark, version, said in (
        (store.KIND.mark, 2, "format 2, and this dpwindows reads format 1: use a newer"),
        (store.KIND.mark, 0, "is damaged: its tables"),
        (0, 1, "is damaged: its tables"),
    ):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
            connection.execute(f"PRAGMA application_id = {mark}")
        with pytest.raises(dw.InputError if version == 2 else dw.EngineError, match=said):
            Stream.open(path)


# --- Several at once --------------------------------------------------------------------------------------------------

_HOLD = """
import sys
from dpwindows.stream.stream import Stream
with Stream.open(sys.argv[1]):
    print("open", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.slow
def test_of_two_processes_one_wins_and_the_other_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    first = started(path)
    command = [sys.executable, "-c", _HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        for arguments in (("advance", path, "--empty", "--through", "20"), ("show", path)):
            run("stream", *arguments).must_fail("in use by another process")
        holder.communicate("\n")
    require_whole(path, first, monkeypatch)


@pytest.mark.slow
def test_of_two_in_one_process_as_well(tmp_path: Path) -> None:
    path = tmp_path / "state"
    started(path)
    (tmp_path / "link").symlink_to(path)
    with Stream.open(path) as stream:
        for name in ("state", "link"):
            with pytest.raises(dw.EngineError, match="in use by another process or stream object"):
                Stream.open(tmp_path / name)
        # And the failed attempt has not given the engine's lock away.
        done = subprocess.run(
            [sys.executable, "-c", _HOLD, str(path)], input="", capture_output=True, text=True, check=False
        )
        assert "in use" in done.stderr
        stream.advance(table_of(LOG[1]), 2 * STEP)
    with Stream.open(tmp_path / "link") as stream:
        assert stream.closed_steps == 2


# --- Backups and copies, under a ledger -------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path: Path) -> dw.Ledger:
    return dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.ApproxDP(1.5, 2e-6), unit=dw.EventLevel())


def test_a_backup_is_refused_once_the_stream_went_on(tmp_path: Path, ledger: dw.Ledger) -> None:
    path, backup = tmp_path / "state", tmp_path / "backup"
    first = started(path, ledger=ledger)
    copied(path, backup, mark=False)
    with Stream.open(backup) as stream:  # it is still where the ledger is
        assert same(stream.advance(through=STEP), first)
    with Stream.open(path) as stream:
        stream.advance(table_of(LOG[1]), 2 * STEP)
    for read_only in (False, True):
        with pytest.raises(dw.StateBehindLedgerError, match="step 2 on record"):
            Stream.open(backup, read_only=read_only)
    with Stream.open(path) as stream:
        stream.advance(table_of(LOG[2]), 3 * STEP)


def test_a_step_committed_but_not_on_record_goes_on_record_when_opened(
    tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    first = started(path, ledger=ledger)

    def fail(*arguments: Any) -> None:
        raise dw.EngineError("the ledger is locked")

    with Stream.open(path) as stream, monkeypatch.context() as patch:
        state_id = stream.description["state_id"]
        patch.setattr(dw.Ledger, "advance", fail)
        with pytest.raises(dw.EngineError, match="ledger is locked"):
            stream.advance(table_of(LOG[1]), 2 * STEP)
    assert ledger.position(state_id).step == 1
    with Stream.open(path, read_only=True) as stream:
        stream.show()
    assert ledger.position(state_id).step == 2
    require_whole(path, first, monkeypatch)


def test_a_ledger_that_is_gone_or_was_never_there(tmp_path: Path, ledger: dw.Ledger) -> None:
    started(tmp_path / "state", ledger=ledger)
    started(tmp_path / "without")
    with pytest.raises(dw.InputError, match="created without a ledger"):
        Stream.open(tmp_path / "without", ledger)
    moved = tmp_path / "moved"
    Path(ledger.path).rename(moved)
    with pytest.raises(dw.InputError, match="say where it is, with --ledger FILE"):
        Stream.open(tmp_path / "state")
    with Stream.open(tmp_path / "state", dw.Ledger.open(moved, "log")) as stream:
        assert stream.closed_steps == 1
