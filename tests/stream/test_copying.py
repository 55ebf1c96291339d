"""A stream whose machine is lost goes on from its copy, whenever that happens, and no step gets two noises."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dpwindows as dw
from dpwindows import durable
from dpwindows.errors import EngineError, InputError
from dpwindows.ledger.ledger import Ledger
from dpwindows.stream import copying, publishing, recencies, records
from dpwindows.stream.parts import LocalFolder
from dpwindows.stream.store import items_folder
from dpwindows.stream.stream import Stream
from tests.end_to_end.command_line import run
from tests.stream.streams import LOG, PLAN, SETTINGS, STEP, copied, new_stream, plan_of, same, started, table_of


class Crash(BaseException):
    """The process ends here."""


@pytest.fixture(params=[True, False], ids=["ledger", "no ledger"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> dw.Ledger | None:
    """On a disk of its own."""
    if not request.param:
        return None
    return dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.ApproxDP(1.0, 1e-6), unit=dw.EventLevel())


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "elsewhere" / "copy"


def lose(state: Path) -> None:
    """The disk of a state is gone."""
    shutil.rmtree(items_folder(state))
    for beside in state.parent.glob(f"{state.name}*"):
        beside.unlink()


def moved_on(state: Path, copy: Path) -> Path:
    """The state's disk is lost, and the copy is put in its place by what any machine has."""
    lose(state)
    return copied(copy, state, mark=False)


def advance(state: Path, step: int, **where: Any) -> dw.Release:
    with Stream.open(state, settings=SETTINGS, **where) as stream:
        return stream.advance(table_of(LOG[step - 1]), step * STEP)


def test_a_machine_that_is_lost_between_any_two_calls(tmp_path: Path, ledger: dw.Ledger | None, copy: Path) -> None:
    state = tmp_path / "state"
    new_stream(state, plan_of(*PLAN), ledger=ledger, copy_to=copy).close()
    moved_on(state, copy)
    seen = []
    for step in (1, 2, 3):
        seen.append(advance(state, step))
        moved_on(state, copy)
        with Stream.open(state, settings=SETTINGS) as stream:
            assert stream.closed_steps == step
            assert all(same(stream.advance(through=(at + 1) * STEP), release) for at, release in enumerate(seen))
    if ledger is not None:
        assert ledger.book().entries[0].step == 3


def test_several_steps_at_once_are_in_the_copy_before_each_is_on_record(tmp_path: Path, copy: Path) -> None:
    ledger = dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.ApproxDP(1.0, 1e-6), unit=dw.EventLevel())
    state, recorded, own = tmp_path / "state", list[int](), Ledger.advance

    def advance_and_look(self: Ledger, *given: Any) -> None:
        own(self, *given)
        with Stream.open(copied(copy, tmp_path / "looked-at"), copy_to=tmp_path / "of-it", settings=SETTINGS) as there:
            recorded.append(there.closed_steps)
        lose(tmp_path / "looked-at")
        lose(tmp_path / "of-it")

    started(state, ledger=ledger, copy_to=copy)
    with pytest.MonkeyPatch.context() as patch, Stream.open(state, settings=SETTINGS) as stream:
        patch.setattr(Ledger, "advance", advance_and_look)
        stream.advance(table_of([*LOG[1], *LOG[2]]), 3 * STEP)
    assert recorded == [2, 3]


def test_items_are_dropped_once_ledger_and_copy_have_the_step_that_needs_none_of_them(
    tmp_path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then an earlier state may have to be put right again, and needs them."""
    ledger = dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.ApproxDP(1.0, 1e-6), unit=dw.EventLevel())
    state, dropped, own = tmp_path / "state", list[int](), LocalFolder.remove

    def remove_and_look(self: LocalFolder, name: str) -> None:
        step = ledger.book().entries[0].step
        with closing(sqlite3.connect(copy)) as there:
            assert there.execute("SELECT step, parts LIKE ? FROM position", (f"%{name}%",)).fetchone() == (step, 0)
        assert step is not None
        dropped.append(step)
        own(self, name)

    monkeypatch.setattr(recencies, "_MOST_PARTS", 2)
    monkeypatch.setattr(LocalFolder, "remove", remove_and_look)
    started(state, ledger=ledger, copy_to=copy)
    with Stream.open(state, settings=SETTINGS) as stream:
        stream.advance(table_of([*LOG[1], *LOG[2]]), 3 * STEP)
    # The part of the first step and that of the second, or what they were written as, and then those of the third.
    assert dropped == [2, 2, 3, 3]


def test_a_copy_that_another_process_made_is_on_disk_before_it_is_relied_upon(tmp_path: Path, copy: Path) -> None:
    """It was killed when the files had their names, and nobody knows whether the folders have."""
    state, synced = tmp_path / "state", list[Path]()
    started(state, copy_to=copy)
    (tmp_path / "state.mark").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copying, "sync_folder", synced.append)
        Stream.open(state, settings=SETTINGS).close()
    assert synced == [items_folder(copy), copy.parent]


def _points(patch: pytest.MonkeyPatch, act: Callable[[str], None]) -> None:
    """Do something before and after everything that makes a step durable, in order."""
    for place, name in (
        (records, "close"),
        (copying, "write_atomically"),
        (Ledger, "advance"),
        (publishing, "write_mark"),
    ):
        patch.setattr(place, name, _around(getattr(place, name), name, act))


def _around(own: Any, name: str, act: Callable[[str], None]) -> Any:
    def around(*given: Any, **more: Any) -> Any:
        act(f"before {name}")
        done = own(*given, **more)
        act(f"after {name}")
        return done

    return around


def test_a_machine_that_is_lost_within_a_call(tmp_path: Path, ledger: dw.Ledger | None, copy: Path) -> None:
    state = tmp_path / "state"
    with new_stream(state, plan_of(*PLAN), ledger=ledger, copy_to=copy) as stream:
        first = stream.advance(table_of(LOG[0]), STEP)
    aside = tmp_path / "aside"
    shutil.copytree(tmp_path, aside, ignore=lambda *_: ["aside"])
    passed: list[str] = []
    for last in itertools.count():
        for name in ("state", "state-items", "state.mark", "ledger", "elsewhere"):
            kept, now = aside / name, tmp_path / name
            shutil.rmtree(now) if now.is_dir() else now.unlink(missing_ok=True)
            if kept.exists():
                (shutil.copytree if kept.is_dir() else shutil.copy)(kept, now)
        passed.clear()

        def act(point: str) -> None:
            if len(passed) == last:  # noqa: B023
                raise Crash
            passed.append(point)

        with pytest.MonkeyPatch.context() as patch:
            _points(patch, act)
            try:
                advance(state, 2)
            except Crash:
                pass
            else:
                break
        moved_on(state, copy)
        second = advance(state, 2)
        moved_on(state, copy)
        assert same(advance(state, 2), second)
        with Stream.open(state, settings=SETTINGS) as stream:
            assert same(stream.advance(through=STEP), first)
        advance(state, 3)
    # A part, the state, and with a ledger its record: each on both sides.
    assert [point for point in passed if point.startswith("before")] == [
        "before close",
        *["before write_atomically"] * 2,
        *["before advance"] * (ledger is not None),
        "before write_mark",
    ]


def test_nothing_leaves_that_the_copy_lacks(tmp_path: Path, ledger: dw.Ledger | None, copy: Path) -> None:
    state = tmp_path / "state"
    started(state, ledger=ledger, copy_to=copy)
    copy.parent.rename(tmp_path / "unplugged")
    for _ in range(2):
        with pytest.raises(
            EngineError, match=r"the copy .* cannot be written: No such file .* did not leave: mend that"
        ):
            advance(state, 2)
    if ledger is not None:
        assert ledger.book().entries[0].step == 1
    (tmp_path / "unplugged").rename(copy.parent)
    second = advance(state, 2)
    # Another place from now on, which is as far at once.
    other = tmp_path / "other"
    with Stream.open(state, settings=SETTINGS, copy_to=other) as stream:
        assert stream.closed_steps == 2
    lose(state)
    assert same(advance(copied(other, state), 2), second)


def test_a_state_that_was_put_back_does_not_replace_the_copy(
    tmp_path: Path, ledger: dw.Ledger | None, copy: Path
) -> None:
    """With all that is beside it: without a ledger nothing but the copy tells."""
    state = tmp_path / "state"
    first = started(state, ledger=ledger, copy_to=copy)
    earlier = copied(state, tmp_path / "earlier")
    second = advance(state, 2)
    for step in (2, 3):
        copied(earlier, state)
        with pytest.raises(InputError, match=r"has another step 2|has step 2 on record"):
            advance(state, step)
        moved_on(state, copy)
        assert same(advance(state, 2), second)
    with Stream.open(state, settings=SETTINGS) as stream:
        assert same(stream.advance(through=STEP), first)
    # One that goes nowhere yet.
    copied(earlier, state, mark=False).with_name("state.mark").unlink()
    with pytest.raises(InputError, match=r"the state was put back to an earlier one|has step 2 on record"):
        Stream.open(state, settings=SETTINGS)


def test_what_is_no_copy_of_the_stream_stays(tmp_path: Path, copy: Path) -> None:
    state, other = tmp_path / "state", tmp_path / "other"
    started(state, copy_to=copy)
    started(other)
    found = other.read_bytes()
    with pytest.raises(InputError, match="is no copy of this stream"):
        advance(state, 2, copy_to=other)
    assert other.read_bytes() == found
    (tmp_path / "log").write_text("a log")
    items_folder(tmp_path / "log").mkdir(mode=0o700)
    with pytest.raises(InputError, match="is not the state of a stream"):
        advance(state, 2, copy_to=tmp_path / "log")
    with pytest.raises(InputError, match="cannot be the stream too"):
        advance(copy, 2)
    with pytest.raises(InputError, match="exists already"):
        new_stream(tmp_path / "another", plan_of(*PLAN), copy_to=copy)
    assert not (tmp_path / "another").exists()
    # Somebody goes on from it.
    went_on = copied(copy, tmp_path / "went-on")
    with (
        Stream.open(went_on, copy_to=tmp_path / "third", settings=SETTINGS),
        pytest.raises(EngineError, match="in use by another process"),
    ):
        advance(state, 2, copy_to=went_on)


def test_of_two_streams_that_begin_a_copy_at_one_place_one_does(tmp_path: Path, copy: Path) -> None:
    """Two copies of a stream without a ledger among them: whoever goes on from the copy must have what was seen."""
    state = tmp_path / "state"
    first = started(state)
    fork = copied(state, tmp_path / "fork")
    second, seen = advance(state, 2), list[str]()
    advance(fork, 2)
    started(tmp_path / "other")
    own = durable.write_atomically

    def fork_meanwhile(*given: Any, **more: Any) -> None:
        if not seen:
            for there in (fork, tmp_path / "other"):
                with pytest.raises(EngineError, match=r"elsewhere/copy is in use by another process") as refused:
                    Stream.open(there, copy_to=copy, settings=SETTINGS)
                seen.append(str(refused.value))
        own(*given, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copying, "write_atomically", fork_meanwhile)
        Stream.open(state, copy_to=copy, settings=SETTINGS).close()
    assert len(seen) == 2
    with pytest.raises(InputError, match="has another step 2 than the state"):
        Stream.open(fork, copy_to=copy, settings=SETTINGS)
    lose(state)
    copied(copy, state)
    assert same(advance(state, 2), second)
    assert same(advance(state, 1), first)


def test_items_of_others_beside_a_copy_that_is_to_be_are_left(tmp_path: Path, copy: Path) -> None:
    """A state may be away for a while, to be mended, and its items are all that there is of them."""
    state, other = tmp_path / "state", tmp_path / "other"
    started(state)
    started(other, copy_to=copy)
    copy.rename(tmp_path / "away")
    held = sorted(items_folder(copy).iterdir())
    with pytest.raises(InputError, match=r"copy-items holds items of another stream"):
        Stream.open(state, copy_to=copy, settings=SETTINGS)
    assert sorted(items_folder(copy).iterdir()) == held
    assert not copy.exists()


def test_a_first_copy_that_was_interrupted_goes_on(tmp_path: Path, copy: Path) -> None:
    state = tmp_path / "state"
    started(state)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copying, "_back_up", lambda state, draft: (_ for _ in ()).throw(Crash))
        with pytest.raises(Crash):
            Stream.open(state, copy_to=copy, settings=SETTINGS)
    assert list(items_folder(copy).iterdir())
    assert not copy.exists()
    Stream.open(state, copy_to=copy, settings=SETTINGS).close()
    assert copied(copy, tmp_path / "again").exists()


def test_a_copy_is_as_private_and_as_small_as_the_stream(
    tmp_path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    monkeypatch.setattr(recencies, "_MOST_PARTS", 2)
    old = os.umask(0)
    try:
        new_stream(state, plan_of(*PLAN), copy_to=copy).close()
        for step in (1, 2, 3):
            advance(state, step)
            held = {path.name: path.read_bytes() for path in items_folder(state).iterdir()}
            assert {path.name: path.read_bytes() for path in items_folder(copy).iterdir()} == held
    finally:
        os.umask(old)
    modes = {path.stat().st_mode & 0o777 for path in (copy, *items_folder(copy).iterdir())}
    assert (modes, items_folder(copy).stat().st_mode & 0o777) == ({0o600}, 0o700)
    assert sorted(path.name for path in copy.parent.iterdir()) == ["copy", "copy-items"]


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the page says it: the copy is on another disk, and is put in the place of what was lost."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("who,at\nann,2026-01-01\n")
    (tmp_path / "safe").mkdir()
    create = ["--item", "who", "--time", "at", "--start", "2026-01-01", "--step", "1d", "--window", "cumulative"]
    create += ["--unit", "event", "--epsilon", "1"]
    run("stream", "create", "visits.state", *create, "--copy-to", "safe/visits.state").must_work()
    run("stream", "create", "t", *create, "--copy-to", "safe/visits.state").must_refuse("exists already")
    night = ("log.csv", "--through", "2026-01-02", "-o")
    run("stream", "advance", "visits.state", *night, "first.json").must_work()
    moved_on(tmp_path / "visits.state", tmp_path / "safe" / "visits.state")
    run("stream", "advance", "visits.state", *night, "again.json").must_work()
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "again.json").read_bytes()
