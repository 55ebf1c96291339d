"""What leaves a stream was on disk and on record before, and is never drawn again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpwindows as dw
from dpwindows.stream import gate, recovery, state_file
from dpwindows.stream import stream as stream_module
from dpwindows.stream.close_step import close_step, read_progress
from dpwindows.stream.mark import mark_path, write_mark
from dpwindows.stream.state_file import StateFile
from dpwindows.stream.stream import Stream
from tests.end_to_end.command_line import run
from tests.patience import PATIENCE
from tests.stream.streams import STEP, Event, new_stream, plan_of, same, spied, table_of

pytestmark = pytest.mark.usefixtures("one_engine")

PLAN = ("rolling:2", "cumulative")
LOG: list[list[Event]] = [[("a", 1, 1), ("b", 1, 3)], [("a", 2, 2)], [("b", 3, 1), ("c", 3, 1)]]
SETTINGS = dw.EngineSettings(threads=1, progress=False)


class Crash(BaseException):
    """The process ends here."""


@pytest.fixture
def ledger(tmp_path: Path) -> dw.Ledger:
    return dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.ApproxDP(1.0, 1e-6), unit=dw.EventLevel())


def started(path: Path, **options: Any) -> dw.Release:
    """Make a stream with its first step closed."""
    with new_stream(path, plan_of(*PLAN), **options) as stream:
        return stream.advance(table_of(LOG[0]), STEP)


def copied(path: Path, to: Path) -> Path:
    """A state with all that is beside it, elsewhere."""
    to.mkdir()
    for found in path.parent.glob(f"{path.name}*"):
        shutil.copy(found, to / found.name)
    return to / path.name


# --- Under a ledger ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_twelve_copies_of_a_state_give_one_noise(
    tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them close the step before the ledger hears of any."""
    started(tmp_path / "state", ledger=ledger)
    copies = [copied(tmp_path / "state", tmp_path / str(number)) for number in range(12)]
    together = threading.Barrier(len(copies))

    def close_and_wait(*arguments: Any, **options: Any) -> Any:
        progress = close_step(*arguments, **options)
        together.wait(PATIENCE)
        return progress

    monkeypatch.setattr(stream_module, "close_step", close_and_wait)
    streams = [Stream.open(copy, settings=SETTINGS) for copy in copies]
    drawn: list[dw.Release] = []
    refused: list[Stream] = []

    def go_on(stream: Stream) -> None:
        try:
            drawn.append(stream.advance(table_of(LOG[1]), 2 * STEP))
        except dw.StateBehindLedgerError:
            refused.append(stream)

    threads = [threading.Thread(target=go_on, args=(stream,)) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(drawn), len(refused)) == (1, 11)
    ways_out: list[Callable[[Stream], Any]] = [
        lambda stream: stream.show(),
        lambda stream: stream.advance(through=2 * STEP),
        lambda stream: stream.advance(table_of(LOG[1]), 2 * STEP),
        lambda stream: stream.advance(through=STEP),
        lambda stream: stream.advance(table_of(LOG[2]), 3 * STEP),
    ]
    for stream in refused:
        assert stream.closed_steps == 2, "the noise was drawn"
        for way_out in ways_out:
            with pytest.raises(dw.StateBehindLedgerError):
                way_out(stream)
    for stream in streams:
        stream.close()
    for copy in copies:
        if not any(stream._state.path == copy.resolve() for stream in refused):
            continue
        for read_only in (False, True):
            with pytest.raises(dw.StateBehindLedgerError):
                Stream.open(copy, read_only=read_only)
        assert run("stream", "show", copy, "-o", tmp_path / "out.csv").code == 2
        assert not (tmp_path / "out.csv").exists()


def test_a_copy_is_refused_before_it_draws(tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    started(tmp_path / "state", ledger=ledger)
    copy = copied(tmp_path / "state", tmp_path / "elsewhere")
    with Stream.open(tmp_path / "state") as one, Stream.open(copy) as other:
        one.advance(table_of(LOG[1]), 2 * STEP)
        with spied(monkeypatch) as seen:
            with pytest.raises(dw.StateBehindLedgerError):
                other.advance(table_of(LOG[1]), 2 * STEP)
            with pytest.raises(dw.StateBehindLedgerError):
                other.show()
        assert seen == {}


WRITES = {"ledger": "advance", "mark": "write_mark"}


@pytest.mark.parametrize("failing", sorted(WRITES))
def test_a_stream_that_met_a_failing_disk_may_try_again(
    tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """Nothing leaves as long as the ledger or the mark cannot be written, and then what was drawn at first."""

    def fail(*arguments: Any) -> None:
        raise dw.EngineError("the disk is full")

    with new_stream(tmp_path / "state", plan_of(*PLAN), ledger=ledger) as stream:
        with spied(monkeypatch) as seen, monkeypatch.context() as patch:
            patch.setattr(dw.Ledger if failing == "ledger" else gate, WRITES[failing], fail)
            for _ in range(2):
                with pytest.raises(dw.EngineError, match="disk is full"):
                    stream.advance(table_of(LOG[0]), STEP)
                with pytest.raises(dw.EngineError, match="disk is full"):
                    stream.show()
        assert list(seen) == [1]
        stored = stream._state.connection.execute("SELECT estimate FROM released ORDER BY place").fetchall()
        with spied(monkeypatch) as again:
            released = stream.advance(table_of(LOG[0]), STEP)
        assert again == {}
        assert released.table["estimate"].to_pylist() == [estimate for (estimate,) in stored]
        assert same(stream.advance(through=STEP), released)


# --- Without a ledger: logs that are lost -----------------------------------------------------------------------------

_PUBLISH_AND_DIE = """
import os, sys
from pathlib import Path
import dpwindows as dw
from dpwindows.stream.stream import Stream
from tests.stream.streams import STEP, table_of
stream = Stream.open(sys.argv[1], settings=dw.EngineSettings(threads=1, progress=False))
stream.advance(table_of([("a", 2, 2)]), 2 * STEP).save(sys.argv[2])
os._exit(9)
"""


def require_same_again(path: Path, published: dw.Release) -> None:
    """The second step is what was published, or is refused for good."""
    with Stream.open(path) as stream:
        again = stream.advance(table_of(LOG[1]), 2 * STEP)
        assert same(again, published), "another noise for a published step"
        stream.advance(table_of(LOG[2]), 3 * STEP)


@pytest.mark.slow
def test_no_step_that_was_published_is_lost_with_the_log(tmp_path: Path) -> None:
    """A process publishes and is killed; then the log is cut, deleted or overwritten."""
    path, out = tmp_path / "state", tmp_path / "2.json"
    started(path)
    command = [sys.executable, "-c", _PUBLISH_AND_DIE, str(path), str(out)]
    assert subprocess.run(command, cwd=Path(__file__).parents[2], check=False).returncode == 9
    published = dw.Release.load(out)
    log = path.with_name("state.wal")
    content = log.read_bytes() if log.exists() else b""
    damages = [b"", content[:-5], content[: len(content) // 2], content[:-3] + bytes(3)] if content else [b""]
    for number, damage in enumerate(damages):
        copy = copied(path, tmp_path / str(number))
        copy.with_name("state.wal").write_bytes(damage)
        require_same_again(copy, published)
    alone = tmp_path / "moved"
    shutil.copy(path, alone)
    require_same_again(alone, published)


def left_in_the_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> dw.Release:
    """A stream whose first step was published and whose second was committed by a process that then ended."""
    first = started(path)
    original = StateFile.commit

    def commit(state: StateFile) -> None:
        original(state)
        raise Crash

    stream = Stream.open(path, settings=SETTINGS)
    with monkeypatch.context() as patch:
        patch.setattr(StateFile, "commit", commit)
        with pytest.raises(Crash):
            stream.advance(table_of(LOG[1]), 2 * STEP)
    kept = copied(path, path.parent / "kept")
    stream.close()
    for found in kept.parent.iterdir():
        shutil.copy(found, path.parent / found.name)
    return first


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "whole": lambda log: log,
    "empty": lambda log: b"",
    "cut": lambda log: log[:-5],
    "cut in its head": lambda log: log[:7],
    "half": lambda log: log[: len(log) // 2],
    "last page lost": lambda log: log[: len(log) - len(log) % 4096] + bytes(len(log) % 4096),
    "first page lost": lambda log: bytes(4096) + log[4096:],
    "end turned": lambda log: log[:-3] + bytes(byte ^ 255 for byte in log[-3:]),
    "a page in between lost": lambda log: log[:4096] + bytes(min(4096, len(log) - 4096)) + log[8192:],
    "zeros": lambda log: bytes(len(log)),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_a_torn_log_costs_no_published_step_and_no_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """Pages that a power failure takes from an unsynced log: what it held was seen by nobody."""
    path = tmp_path / "state"
    first = left_in_the_log(path, monkeypatch)
    log = path.with_name("state.wal")
    content = log.read_bytes()
    assert len(content) > 4096
    log.write_bytes(DAMAGES[damage](content))
    with Stream.open(path, read_only=True) as stream:
        assert same(stream.advance(through=STEP), first)
        assert stream.closed_steps == (2 if damage == "whole" else 1)
    with Stream.open(path) as stream:
        second = stream.advance(table_of(LOG[1]), 2 * STEP)
        assert same(stream.advance(through=STEP), first)
    with Stream.open(path) as stream:
        assert same(stream.advance(through=2 * STEP), second)


def test_a_torn_log_is_not_given_up_where_it_may_hold_a_published_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    left_in_the_log(path, monkeypatch)
    log = path.with_name("state.wal")
    torn = DAMAGES["end turned"](log.read_bytes())
    log.write_bytes(torn)
    mark_path(path).unlink()
    for read_only in (False, True):
        with pytest.raises(dw.EngineError, match="log beside the state"):
            Stream.open(path, read_only=read_only)
    assert log.read_bytes() == torn


def test_what_is_only_in_the_log_is_not_shown_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    left_in_the_log(path, monkeypatch)
    monkeypatch.setattr(recovery, "logs_left", lambda path: [])  # as if the log came when this was looked at
    with pytest.raises(dw.EngineError, match="could not be folded"):
        Stream.open(path, read_only=True)


# --- Without a ledger: states that are put back -----------------------------------------------------------------------


def test_a_state_that_was_rolled_back_where_it_lies_is_refused(tmp_path: Path) -> None:
    path, backup = tmp_path / "state", tmp_path / "backup"
    started(path)
    shutil.copy(path, backup)
    with Stream.open(path) as stream:
        stream.advance(table_of(LOG[1]), 2 * STEP)
    newest = path.read_bytes()
    shutil.copy(backup, path)
    for read_only in (False, True):
        with pytest.raises(dw.EngineError, match="lost steps that were published, up to step 2 where it is at step 1"):
            Stream.open(path, read_only=read_only)
    for arguments in (("advance", path, "--empty", "--through", str(2 * STEP)), ("show", path)):
        outcome = run("stream", *arguments)
        assert outcome.code == 1
        assert "lost steps" in outcome.err
    path.write_bytes(newest)
    with Stream.open(path) as stream:
        assert stream.closed_steps == 2
        stream.advance(table_of(LOG[2]), 3 * STEP)


def test_another_noise_has_another_release_id(tmp_path: Path) -> None:
    """Where nothing can tell that the state and its mark were put back, at least the releases do not pass for one."""
    path = tmp_path / "state"
    started(path)
    backup = copied(path, tmp_path / "backup")
    outcomes = []
    for state in (path, backup):
        with Stream.open(state) as stream:
            outcomes.append((stream.advance(table_of(LOG[1]), 2 * STEP), stream.show()))
    for one, other in zip(*outcomes, strict=True):
        assert not one.table.equals(other.table)
        assert one.metadata["release_id"] != other.metadata["release_id"]
    with Stream.open(path) as one, Stream.open(backup) as other:
        assert same(one.advance(through=STEP), other.advance(through=STEP)), "the first step was drawn once"


def test_a_state_moves_without_its_mark(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "state", tmp_path / "moved"
    first = started(path)
    path.rename(elsewhere)
    with Stream.open(elsewhere) as stream:
        assert same(stream.advance(through=STEP), first)
        stream.advance(table_of(LOG[1]), 2 * STEP)
    assert mark_path(elsewhere).exists()
    # A mark of another stream, which was there before, is none of this one's.
    started(path)
    with Stream.open(path) as stream:
        assert stream.closed_steps == 1


@pytest.mark.parametrize("content", [b"", b"{}", b"null", b"\xff\xfe", b'{"step": 1}', "edited"])
def test_a_damaged_mark_is_not_taken_for_none(tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "state"
    started(path)
    mark = mark_path(path)
    mark.write_bytes(mark.read_bytes().replace(b'"step": 1', b'"step": 0') if isinstance(content, str) else content)
    with pytest.raises(dw.EngineError, match=r"state\.mark is damaged.*delete it only if"):
        Stream.open(path)
    mark.unlink()
    with Stream.open(path) as stream:
        assert stream.closed_steps == 1


# --- The order of things ----------------------------------------------------------------------------------------------


class Watch:
    """What happens to which file, in order: syncs, the ledger's record, the engine's opening."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.seen = folder, list[str]()
        monkeypatch.setattr(os, "fsync", self._before(os.fsync, self._sync))
        monkeypatch.setattr(state_file, "attached", self._before(state_file.attached, lambda *_: "attach"))
        monkeypatch.setattr(dw.Ledger, "advance", self._before(dw.Ledger.advance, lambda *_: "ledger"))
        monkeypatch.setattr(gate, "write_mark", self._before(write_mark, lambda *_: "mark"))

    def _before(self, original: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            self.seen.append(name(*arguments))
            return original(*arguments, **options)

        return watched

    def _sync(self, handle: int) -> str:
        found = os.fstat(handle)
        for path in (self.folder, *self.folder.iterdir()):
            if os.path.samestat(found, path.stat()):
                return f"sync {'folder' if path == self.folder else path.name}"
        return "sync something"

    def after(self, event: str) -> list[str]:
        """What happened after the last event of that name."""
        return self.seen[len(self.seen) - self.seen[::-1].index(event) :]


def test_what_recovery_reads_is_on_disk_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "streams"
    folder.mkdir()
    left_in_the_log(folder / "state", monkeypatch)
    watch = Watch(folder, monkeypatch)
    Stream.open(folder / "state").close()
    before = watch.seen[: watch.seen.index("attach")]
    assert {"sync state", "sync state.wal", "sync folder"} <= set(before)
    # And what was folded in, before anything is recorded.
    recorded = watch.seen[watch.seen.index("attach") : watch.seen.index("mark")]
    assert {"sync state", "sync folder"} <= set(recorded)


def test_a_step_is_on_disk_before_the_ledger_and_the_mark_know_it(
    tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "streams"
    folder.mkdir()
    with new_stream(folder / "state", plan_of(*PLAN), ledger=ledger) as stream:
        watch = Watch(folder, monkeypatch)
        stream.advance(table_of(LOG[0]), STEP)
        assert not state_file.logs_left(folder / "state")
    before, after = watch.seen[: watch.seen.index("ledger")], watch.after("ledger")
    assert {"sync state", "sync folder"} <= set(before)
    assert "mark" not in before
    assert "mark" in after
    written = watch.after("mark")
    assert any(event.startswith("sync .state.mark.") for event in written)
    assert written[-1] == "sync folder", "and only then does a row leave"


# --- One process, and one thread at a time ----------------------------------------------------------------------------


def test_a_forked_copy_of_the_process_hands_out_nothing(tmp_path: Path) -> None:
    """The engine's lock and its pages are the parent's: both would close the step, each with noise of its own."""
    started(path := tmp_path / "s.state")
    with Stream.open(path, settings=SETTINGS) as stream:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            said = []
            for act in (lambda: stream.advance(table_of(LOG[1]), 2 * STEP), stream.show, lambda: stream.closed_steps):
                try:
                    act()
                    said.append("done")
                except dw.EngineError as error:
                    said.append("refused" if "in use by another process" in str(error) else str(error))
            stream.close()
            os.write(writing, ",".join(said).encode())
            os._exit(0)
        os.close(writing)
        assert os.read(reading, 4096).decode() == "refused,refused,refused"
        os.waitpid(child, 0)
        os.close(reading)
        first = stream.advance(table_of(LOG[1]), 2 * STEP)
    with Stream.open(path, settings=SETTINGS) as stream:
        assert same(stream.advance(through=2 * STEP), first)


def test_threads_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread that closes the same step waits, and gets the rows of the first."""
    started(path := tmp_path / "s.state")
    found: list[dw.Release] = []
    with Stream.open(path, settings=SETTINGS) as stream:
        other = threading.Thread(target=lambda: found.append(stream.advance(table_of(LOG[1]), 2 * STEP)))
        read = read_progress

        def interrupted(*given: Any) -> Any:
            progress = read(*given)
            monkeypatch.setattr(stream_module, "read_progress", read)
            other.start()
            other.join(0.5)
            assert not found, "the other thread went on"
            return progress

        monkeypatch.setattr(stream_module, "read_progress", interrupted)
        first = stream.advance(table_of(LOG[1]), 2 * STEP)
        other.join()
        assert same(found[0], first)
        assert stream.closed_steps == 2
