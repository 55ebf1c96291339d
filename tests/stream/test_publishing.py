"""What leaves a stream was on disk and on record before, and is never drawn again."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dpwindows as dw
from dpwindows.ledger import store as ledger_store
from dpwindows.stream import closing as closing_module
from dpwindows.stream import publishing, records
from dpwindows.stream import stream as stream_module
from dpwindows.stream.closing import close_step
from dpwindows.stream.mark import HiddenMarkError, mark_path, write_mark
from dpwindows.stream.store import StateFile, journal_of
from dpwindows.stream.stream import Stream
from tests.end_to_end.command_line import run
from tests.ledger.requests import make
from tests.patience import PATIENCE
from tests.stream.streams import LOG, PLAN, SETTINGS, STEP, copied, new_stream, plan_of, same, spied, started, table_of


class Crash(BaseException):
    """The process ends here."""


@pytest.fixture
def ledger(tmp_path: Path) -> dw.Ledger:
    return dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.ApproxDP(1.0, 1e-6), unit=dw.EventLevel())


# --- Under a ledger ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_twelve_copies_of_a_state_give_one_noise(
    tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them close the step before the ledger hears of any."""
    started(tmp_path / "state", ledger=ledger)
    copies = [copied(tmp_path / "state", tmp_path / f"copy-{number}") for number in range(12)]
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
            patch.setattr(dw.Ledger if failing == "ledger" else publishing, WRITES[failing], fail)
            for _ in range(2):
                with pytest.raises(dw.EngineError, match="disk is full"):
                    stream.advance(table_of(LOG[0]), STEP)
                with pytest.raises(dw.EngineError, match="disk is full"):
                    stream.show()
        assert list(seen) == [1]
        stored = records.read_released(stream._state, records.read_steps(stream._state, 1, 1), grouped=False)
        with spied(monkeypatch) as again:
            released = stream.advance(table_of(LOG[0]), STEP)
        assert again == {}
        assert released.table["estimate"].to_pylist() == stored["estimate"].to_pylist()
        assert same(stream.advance(through=STEP), released)


def test_no_step_stands_on_one_that_the_ledger_does_not_have(
    tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call for three steps, whose ledger cannot be written: one step is closed, and is recorded before the next."""

    def fail(*arguments: Any) -> None:
        raise dw.EngineError("the disk is full")

    with new_stream(tmp_path / "state", plan_of(*PLAN), ledger=ledger) as stream:
        events = table_of([event for step in LOG for event in step])
        with monkeypatch.context() as patch:
            patch.setattr(dw.Ledger, "advance", fail)
            with pytest.raises(dw.EngineError, match="disk is full"):
                stream.advance(events, 3 * STEP)
        assert stream.closed_steps == 1
        assert ledger.position(stream.description["state_id"]).step == 0
        recorded = list[int]()
        original = dw.Ledger.advance

        def watched(self: dw.Ledger, *arguments: Any) -> None:
            recorded.append(arguments[3])
            original(self, *arguments)

        monkeypatch.setattr(dw.Ledger, "advance", watched)
        stream.advance(events, 3 * STEP)
    assert recorded == [1, 2, 3]


# --- Without a ledger: what a crash leaves ----------------------------------------------------------------------------

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


@pytest.mark.slow
def test_what_was_published_is_in_two_places_and_nowhere_else(tmp_path: Path) -> None:
    """A process publishes and is killed: its state and items alone, without the mark, give the same again."""
    path, out = tmp_path / "state", tmp_path / "2.json"
    started(path)
    command = [sys.executable, "-c", _PUBLISH_AND_DIE, str(path), str(out)]
    assert subprocess.run(command, cwd=Path(__file__).parents[2], check=False).returncode == 9
    published = dw.Release.load(out)
    assert not journal_of(path).exists()
    with Stream.open(copied(path, tmp_path / "moved", mark=False)) as stream:
        assert same(stream.advance(table_of(LOG[1]), 2 * STEP), published), "another noise for a published step"
        stream.advance(table_of(LOG[2]), 3 * STEP)


def left_by_a_crash(path: Path, monkeypatch: pytest.MonkeyPatch) -> dw.Release:
    """A stream whose first step was published and whose second was committed by a process that then ended."""
    first = started(path)
    original = StateFile.commit

    def commit(state: StateFile) -> None:
        original(state)
        raise Crash

    with Stream.open(path, settings=SETTINGS) as stream, monkeypatch.context() as patch:
        patch.setattr(StateFile, "commit", commit)
        with pytest.raises(Crash):
            stream.advance(table_of(LOG[1]), 2 * STEP)
    return first


def test_a_step_that_nobody_saw_is_published_as_it_was_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    first = left_by_a_crash(path, monkeypatch)
    with spied(monkeypatch) as seen:
        with Stream.open(path, read_only=True) as stream:
            assert stream.closed_steps == 2
            shown = stream.show()
        with Stream.open(path) as stream:
            second = stream.advance(table_of(LOG[1]), 2 * STEP)
            assert same(stream.advance(through=STEP), first)
    assert seen == {}
    assert shown.table.slice(first.table.num_rows).equals(second.table)


def test_no_reader_shows_a_step_that_it_cannot_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk that is read-only: were the state put back, the step would be drawn again, and the mark agree."""
    path = tmp_path / "state"
    left_by_a_crash(path, monkeypatch)

    def refuse(*arguments: Any) -> None:
        raise dw.EngineError("the mark cannot be written: Read-only file system") from OSError(errno.EROFS, "")

    monkeypatch.setattr(publishing, "write_mark", refuse)
    with pytest.raises(dw.EngineError, match="Read-only file system"):
        Stream.open(path, read_only=True)
    with Stream.open(copied(path, tmp_path / "moved", mark=False), read_only=True) as stream:
        assert stream.show().table["last_step"].to_pylist()[-1] == 2, "without a mark nothing can tell"


@pytest.mark.parametrize("with_ledger", [False, True])
def test_whoever_may_not_read_the_mark_sees_only_what_a_ledger_knows(
    tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch, with_ledger: bool
) -> None:
    """The last step may have been committed and never marked: were the state put back, it would be drawn again."""
    path, known = tmp_path / "state", ledger if with_ledger else None
    started(path, ledger=known)

    def hidden(state: Path) -> None:
        raise HiddenMarkError("permission denied")

    monkeypatch.setattr(publishing, "read_mark", hidden)
    if with_ledger:
        with Stream.open(path, known, read_only=True) as stream:
            assert stream.show().table.num_rows
    else:
        with pytest.raises(dw.EngineError, match="permission denied"):
            Stream.open(path, read_only=True)


def hot(path: Path) -> None:
    """Leave the journal of a transaction that wrote half of its pages, as a process does that is killed."""
    journal = journal_of(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE position SET working = zeroblob(100000)")
        connection.execute("UPDATE steps SET token = 'torn'")
        kept = path.read_bytes(), journal.read_bytes()
        connection.execute("ROLLBACK")
    for file, content in zip((path, journal), kept, strict=True):
        file.touch(mode=0o600)
        file.write_bytes(content)


def test_what_was_not_committed_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    first = started(path)
    before = path.read_bytes()
    hot(path)
    assert path.read_bytes() != before
    with Stream.open(path) as stream:
        assert same(stream.advance(through=STEP), first)
        stream.advance(table_of(LOG[1]), 2 * STEP)
    assert not journal_of(path).exists()


def test_a_journal_of_an_earlier_state_undoes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state"
    started(path)
    hot(path)
    old = journal_of(path).read_bytes()
    for step in (2, 3):
        with Stream.open(path) as stream:
            stream.advance(table_of(LOG[step - 1]), step * STEP)
    journal_of(path).touch(mode=0o600)
    journal_of(path).write_bytes(old)
    newest = path.read_bytes()
    with pytest.raises(dw.EngineError, match="was written since state-journal was left beside it"):
        Stream.open(path)
    assert path.read_bytes() == newest


def test_the_journal_of_the_last_step_is_noticed_by_the_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what a crash in the middle of that step would have left, so that it is undone; but its rows have left."""
    path, kept = tmp_path / "state", list[bytes]()
    started(path)
    original = StateFile.commit

    def commit(state: StateFile) -> None:
        state._connection.execute("PRAGMA cache_spill = 1")
        state._connection.execute("PRAGMA cache_size = 1")
        state._connection.execute("UPDATE creation SET facts = facts")
        kept.append(journal_of(path).read_bytes())
        original(state)

    with Stream.open(path) as stream, monkeypatch.context() as patch:
        patch.setattr(StateFile, "commit", commit)
        stream.advance(table_of(LOG[1]), 2 * STEP)
    journal_of(path).touch(mode=0o600)
    journal_of(path).write_bytes(kept[0])
    with (
        spied(monkeypatch) as seen,
        pytest.raises(dw.EngineError, match="published, up to step 2 where it is at step 1"),
    ):
        Stream.open(path)
    assert seen == {}


def test_a_journal_that_others_may_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    started(path)
    hot(path)
    journal_of(path).chmod(0o666)
    with pytest.raises(dw.InputError, match="others may write the journal of a stream"):
        Stream.open(path)


def test_a_second_name_is_refused(tmp_path: Path) -> None:
    """What a crash leaves is found under one name of a file."""
    started(tmp_path / "state")
    (tmp_path / "other").hardlink_to(tmp_path / "state")
    with pytest.raises(dw.InputError, match="2 names"):
        Stream.open(tmp_path / "state")


# --- Items that are not those of the state ----------------------------------------------------------------------------


def test_a_state_without_its_items_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    started(path)
    shutil.copy(path, tmp_path / "alone")
    with pytest.raises(dw.EngineError, match=r"alone-items is missing.*copied and moved together"):
        Stream.open(tmp_path / "alone")
    (tmp_path / "alone-items").mkdir(mode=0o700)
    with Stream.open(tmp_path / "alone") as stream:
        stream.show()
        with pytest.raises(dw.EngineError, match="is missing, which holds items"):
            stream.advance(table_of(LOG[1]), 2 * STEP)
        assert stream.closed_steps == 1
    # Nothing was drawn or removed: once the items are there, it goes on.
    (tmp_path / "alone-items").rmdir()
    shutil.copytree(tmp_path / "state-items", tmp_path / "alone-items")
    with Stream.open(tmp_path / "alone") as stream:
        stream.advance(table_of(LOG[1]), 2 * STEP)


def test_items_of_an_earlier_or_later_state_are_not_taken_for_its_own(tmp_path: Path) -> None:
    path = tmp_path / "state"
    started(path)
    before = copied(path, tmp_path / "before", mark=False)
    with Stream.open(path) as stream:
        stream.advance(table_of(LOG[1]), 2 * STEP)
    after = copied(path, tmp_path / "after", mark=False)
    shutil.rmtree(after.with_name("after-items"))
    shutil.copytree(before.with_name("before-items"), after.with_name("after-items"))
    with Stream.open(after) as stream, pytest.raises(dw.EngineError, match="is missing, which holds items"):
        stream.advance(table_of(LOG[2]), 3 * STEP)
    # The other way round all parts are there, and one more that nothing names: without mark and ledger nobody can tell.
    with Stream.open(before) as stream:
        assert stream.closed_steps == 1


@pytest.mark.parametrize("read_only", [False, True])
def test_a_ledger_that_was_put_back_is_refused(tmp_path: Path, read_only: bool) -> None:
    """It would let a copy of the state publish steps that were published, with other noise."""
    path, ledger = tmp_path / "state", make(tmp_path / "ledger.db", dw.ApproxDP(1.0, 1e-6))
    started(path, ledger=ledger)
    earlier = (tmp_path / "ledger.db").read_bytes()
    with Stream.open(path) as stream:
        stream.advance(table_of(LOG[1]), 2 * STEP)
    (tmp_path / "ledger.db").write_bytes(earlier)
    for _ in range(2):
        with pytest.raises(dw.StateBehindLedgerError, match=r"has step 1 on record .* at step 2.*\(or the ledger\)"):
            Stream.open(path, read_only=read_only)
    assert ledger.book().entries[0].step == 1


def test_a_mark_is_made_for_a_record_that_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever recorded the step may have been killed before that: a mark ahead of its ledger ends a stream."""
    path, ledger = tmp_path / "state", make(tmp_path / "books.db", dw.ApproxDP(1.0, 1e-6))
    started(path, ledger=ledger)
    mark_path(path).unlink()
    happened: list[str] = []
    monkeypatch.setattr(ledger_store, "sync_folder", lambda folder: happened.append("ledger on disk"))
    monkeypatch.setattr(publishing, "write_mark", lambda *arguments: happened.append("mark"))
    Stream.open(path).close()
    assert happened == ["ledger on disk", "mark"]


# --- Without a ledger: states that are put back -----------------------------------------------------------------------


def test_a_state_that_was_rolled_back_where_it_lies_is_refused(tmp_path: Path) -> None:
    path, backup = tmp_path / "state", tmp_path / "backup"
    started(path)
    copied(path, backup)
    with Stream.open(path) as stream:
        stream.advance(table_of(LOG[1]), 2 * STEP)
    newest = copied(path, tmp_path / "newest")
    copied(backup, path, mark=False)
    for read_only in (False, True):
        with pytest.raises(dw.EngineError, match="lost steps that were published, up to step 2 where it is at step 1"):
            Stream.open(path, read_only=read_only)
    for arguments in (("advance", path, "--empty", "--through", str(2 * STEP)), ("show", path)):
        run("stream", *arguments).must_fail("lost steps")
    copied(newest, path, mark=False)
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
    path.with_name("state-items").rename(elsewhere.with_name("moved-items"))
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
    """What happens to which file, in order: our syncs, commits, the ledger's record, the mark, rows that leave."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.seen = folder, list[str]()
        monkeypatch.setattr(os, "fsync", self._before(os.fsync, self._sync))
        monkeypatch.setattr(StateFile, "commit", self._before(StateFile.commit, lambda *_: "commit"))
        monkeypatch.setattr(dw.Ledger, "advance", self._before(dw.Ledger.advance, lambda *_: "ledger"))
        monkeypatch.setattr(publishing, "write_mark", self._before(write_mark, lambda *_: "mark"))
        out = self._before(records.read_released, lambda *_: "rows")
        monkeypatch.setattr(records, "read_released", out)

    def _before(self, original: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            self.seen.append(name(*arguments))
            return original(*arguments, **options)

        return watched

    def _sync(self, handle: int) -> str:
        found = os.fstat(handle)
        for path in (self.folder, *self.folder.rglob("*")):
            if os.path.samestat(found, path.stat()):
                return "sync folder" if path == self.folder else f"sync {path.name.split('=')[0].split('.')[-1]}"
        return "sync something"

    def count(self, sort: str) -> int:
        return sum(event.startswith(sort) for event in self.seen)


def test_parts_state_ledger_mark_and_rows_follow_each_other(
    tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "streams"
    folder.mkdir()
    with new_stream(folder / "state", plan_of(*PLAN), ledger=ledger) as stream:
        watch = Watch(folder, monkeypatch)
        stream.advance(table_of(LOG[0]), STEP)
    own = [event for event in watch.seen if event != "sync something"]
    parts, committed, rest = ["sync step", "sync state-items"], ["commit", "ledger", "mark"], own[5:]
    assert own[:5] == [*parts, *committed]
    assert rest == ["sync part", "sync folder", "rows"], "the mark and its name, and only then does a row leave"


@pytest.mark.parametrize("with_ledger", [False, True])
def test_a_step_syncs_and_asks_the_ledger_no_more_than_it_must(
    tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch, with_ledger: bool
) -> None:
    """What SQLite syncs for a commit of the state, and for one of the ledger, comes on top."""
    started(tmp_path / "state", **({"ledger": ledger} if with_ledger else {}))
    watch, opened = Watch(tmp_path, monkeypatch), list[str]()
    connect = sqlite3.connect

    def counted(path: Any, *arguments: Any, **options: Any) -> Any:
        opened.extend(["ledger"] * ("ledger" in str(path)))
        return connect(path, *arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", counted)
    with Stream.open(tmp_path / "state", settings=SETTINGS) as stream:
        stream.advance(table_of(LOG[1]), 2 * STEP)
    assert watch.count("sync") <= 5
    assert len(opened) == with_ledger


def test_what_another_process_committed_is_on_disk_before_anyone_relies_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_by_a_crash(tmp_path / "state", monkeypatch)
    watch = Watch(tmp_path, monkeypatch)
    with Stream.open(tmp_path / "state") as stream:
        assert watch.seen[:2] == ["sync folder", "mark"]
        watch.seen.clear()
        stream.show()
    assert watch.seen == ["rows"]


def test_a_mark_that_another_process_wrote_is_on_disk_before_rows_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been killed before it synced the folder: were the mark lost, no rollback would be noticed."""
    started(tmp_path / "state")
    watch = Watch(tmp_path, monkeypatch)
    with Stream.open(tmp_path / "state") as stream:
        stream.show()
        stream.show()
    assert watch.seen == ["sync folder", "rows", "rows"]


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
        read = closing_module.progress_at

        def interrupted(*given: Any) -> Any:
            progress = read(*given)
            monkeypatch.setattr(closing_module, "progress_at", read)
            other.start()
            other.join(0.5)
            assert not found, "the other thread went on"
            return progress

        monkeypatch.setattr(closing_module, "progress_at", interrupted)
        first = stream.advance(table_of(LOG[1]), 2 * STEP)
        other.join()
        assert same(found[0], first)
        assert stream.closed_steps == 2
