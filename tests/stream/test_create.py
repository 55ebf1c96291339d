"""Making a stream: paid for once, whatever happens meanwhile; and calls that are refused before they cost anything."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpwindows as dw
from dpwindows.ask.whole_numbers import MOST_STEPS_A_CALL
from dpwindows.errors import EngineError, InputError
from dpwindows.stream import creating, publishing
from dpwindows.stream.creating import draft_path
from dpwindows.stream.store import StateFile, journal_of
from dpwindows.stream.stream import Stream
from tests.end_to_end.command_line import run, run_process
from tests.patience import PATIENCE
from tests.stream.streams import STEP, new_stream, plan_of, spied, table_of

PLAN = ("rolling:2", "cumulative")
PRIVACY = ("--unit", "event", "--epsilon", "1", "--delta", "1e-6")
ASKED = ("--item", "who", "--time", "at", "--start", "0", "--step", "10", "--window", "rolling:2", *PRIVACY)


@pytest.fixture
def ledger(tmp_path: Path) -> dw.Ledger:
    return dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.ApproxDP(5.0, 5e-6), unit=dw.EventLevel())


def spent(ledger: dw.Ledger) -> float:
    return float(ledger.book().to_dict()["spent"]["epsilon"])


def left(folder: Path) -> list[str]:
    return sorted(found.name for found in folder.iterdir())


# --- Paid for once ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_whoever_comes_while_a_stream_is_paid_for_pays_nothing(
    tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one comes at the worst moment: between the first look at the name and the payment."""
    state, in_ledger = tmp_path / "state", ("--ledger", tmp_path / "ledger", "--dataset", "log")
    original, outcomes = publishing.spend, []

    def spend(*arguments: Any) -> None:
        outcomes.append(run_process("stream", "create", state, *ASKED, *in_ledger))
        assert spent(ledger) == 0.0
        original(*arguments)

    monkeypatch.setattr(publishing, "spend", spend)
    assert run("stream", "create", state, *ASKED, *in_ledger).code == 0
    assert [outcome.code for outcome in outcomes] == [2]
    assert "another process" in outcomes[0].err
    assert spent(ledger) == 1.0
    assert left(tmp_path) == ["ledger", "state", "state-items", "state.mark"]


def test_of_several_at_once_one_pays(tmp_path: Path, ledger: dw.Ledger) -> None:
    for number in range(4):
        path = tmp_path / str(number)
        together, made, refused = threading.Barrier(4), list[str](), list[str]()

        def make(path: Path, together: threading.Barrier, made: list[str], refused: list[str]) -> None:
            together.wait(PATIENCE)
            try:
                made.append(new_stream(path, plan_of(*PLAN), ledger=ledger).description["state_id"])
            except dw.InputError as error:
                refused.append(str(error))

        threads = [threading.Thread(target=make, args=(path, together, made, refused)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(made), len(refused)) == (1, 3), refused
        assert [entry.state for entry in ledger.book().entries][number:] == made
    assert spent(ledger) == 4.0


def fail_to_name(path: Path, monkeypatch: pytest.MonkeyPatch, ledger: dw.Ledger | None) -> None:
    """The disk fails when a stream has been paid for."""

    def hardlink_to(self: Path, target: Path) -> None:
        raise OSError(5, "Input/output error")

    def replace(self: Path, target: Path) -> Path:
        if target == path:
            raise OSError(5, "Input/output error")
        return original(self, target)

    original = Path.replace
    with monkeypatch.context() as patch:
        patch.setattr(Path, "hardlink_to", hardlink_to)
        patch.setattr(Path, "replace", replace)
        with pytest.raises(dw.EngineError, match=r"Input/output error.*it pays once"):
            new_stream(path, plan_of(*PLAN), ledger=ledger)
    assert not path.exists()


def test_what_was_paid_for_and_not_named_is_named_by_the_next_call(
    tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_to_name(tmp_path / "state", monkeypatch, ledger)
    assert spent(ledger) == 1.0
    with new_stream(tmp_path / "state", plan_of(*PLAN), ledger=ledger) as stream:
        assert [entry.state for entry in ledger.book().entries] == [stream.description["state_id"]]
        stream.advance(table_of([("a", 1, 1)]), STEP)
    assert spent(ledger) == 1.0
    assert left(tmp_path) == ["ledger", "state", "state-items", "state.mark"]


def test_a_payment_of_which_nothing_was_heard_is_not_made_again(
    tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger has it on record, or not, and says only that the disk failed."""
    original = dw.Ledger.spend
    for number, pays in enumerate((False, True)):

        def spend(self: dw.Ledger, *arguments: Any, pays: bool = pays, **options: Any) -> int:
            if pays:
                original(self, *arguments, **options)
            raise dw.EngineError("the ledger cannot be used: the disk failed")

        with monkeypatch.context() as patch:
            patch.setattr(dw.Ledger, "spend", spend)
            with pytest.raises(dw.EngineError, match="disk failed"):
                new_stream(tmp_path / str(number), plan_of(*PLAN), ledger=ledger)
        new_stream(tmp_path / str(number), plan_of(*PLAN), ledger=ledger).close()
        assert spent(ledger) == number + 1.0


def test_another_stream_does_not_take_the_place_of_one_that_was_paid_for(
    tmp_path: Path, ledger: dw.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    fail_to_name(path, monkeypatch, ledger)
    other = dw.Ledger.create(tmp_path / "other", "log", budget=dw.ApproxDP(5.0, 5e-6), unit=dw.EventLevel())
    for options, plan in (({"ledger": ledger}, plan_of("rolling:3")), ({"ledger": other}, plan_of(*PLAN))):
        with pytest.raises(dw.InputError, match="repeat it as it was"):
            new_stream(path, plan, **options)
    with pytest.raises(dw.InputError, match="repeat it as it was"):
        new_stream(path, plan_of(*PLAN))
    assert (spent(ledger), spent(other)) == (1.0, 0.0)
    draft_path(path).unlink()
    new_stream(path, plan_of("rolling:3"), ledger=ledger).close()
    assert spent(ledger) == 2.0


def test_a_refusal_leaves_nothing(tmp_path: Path, ledger: dw.Ledger) -> None:
    dear = dw.StreamPlan([dw.Rolling(2)], unit=dw.EventLevel(), budget=dw.ApproxDP(50.0, 1e-6))
    with pytest.raises(dw.OverBudgetError):
        new_stream(tmp_path / "state", dear, ledger=ledger)
    assert left(tmp_path) == ["ledger"]


def test_what_a_killed_process_leaves_is_removed_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    fail_to_name(path, monkeypatch, None)
    draft = draft_path(path)
    draft.with_name(draft.name + "-journal").write_bytes(b"cut")
    draft_path(tmp_path / "second").write_bytes(b"cut")
    (tmp_path / ".other.part").write_bytes(b"another's")
    (tmp_path / ".state.claim").write_bytes(b"")
    for place in (path, tmp_path / "second"):
        new_stream(place, plan_of(*PLAN)).close()
    assert left(tmp_path) == [
        ".other.part",
        *(name + end for name in ("second", "state") for end in ("", "-items", ".mark")),
    ]


def test_a_draft_that_got_its_name_is_forgotten(tmp_path: Path, ledger: dw.Ledger) -> None:
    """A process was killed between giving a state its name and taking the draft's away."""
    path = tmp_path / "state"
    new_stream(path, plan_of(*PLAN), ledger=ledger).close()
    draft_path(path).hardlink_to(path)
    with pytest.raises(dw.InputError, match="exists already"):
        new_stream(path, plan_of(*PLAN), ledger=ledger)
    Stream.open(path).close()
    assert left(tmp_path) == ["ledger", "state", "state-items", "state.mark"]
    # Whoever moved the stream away instead does not get it twice.
    draft_path(path).hardlink_to(path)
    path.rename(tmp_path / "moved")
    (tmp_path / "state-items").rename(tmp_path / "moved-items")
    with new_stream(path, plan_of(*PLAN), ledger=ledger) as one, Stream.open(tmp_path / "moved") as other:
        assert one.description["state_id"] != other.description["state_id"]
    assert spent(ledger) == 2.0


def test_create_says_what_holds_without_a_ledger(tmp_path: Path, ledger: dw.Ledger) -> None:
    without = run("stream", "create", tmp_path / "one", *ASKED)
    assert "Without --ledger" in without.err
    assert "backup" in without.err
    in_ledger = ("--ledger", tmp_path / "ledger", "--dataset", "log")
    assert "Without --ledger" not in run("stream", "create", tmp_path / "two", *ASKED, *in_ledger).err


# --- Files of others --------------------------------------------------------------------------------------------------


def test_the_umask_is_left_alone_and_files_are_private_under_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It belongs to the whole process: what other threads write meanwhile is none of ours."""
    before = os.umask(0)
    try:
        seen: set[int] = set()
        monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was set"))
        original, commit = creating.require_new, StateFile.commit

        def look() -> None:
            seen.update(stat.S_IMODE(found.stat().st_mode) for found in tmp_path.rglob("*"))

        def require_new(path: Path) -> None:
            original(path)
            look()

        def commit_and_look(state: StateFile) -> None:
            assert journal_of(state.path).exists()
            look()
            commit(state)

        monkeypatch.setattr(creating, "require_new", require_new)
        monkeypatch.setattr(StateFile, "commit", commit_and_look)
        with new_stream(tmp_path / "state", plan_of(*PLAN)) as stream:
            for step in (1, 2):
                stream.advance(table_of([("a", step, 1)]), step * STEP)
                look()
    finally:
        monkeypatch.undo()
        os.umask(before)
    assert seen == {0o600, 0o700}
    assert left(tmp_path) == ["state", "state-items", "state.mark"]


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_state_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "state"
    new_stream(path, plan_of(*PLAN)).close()
    path.chmod(mode)
    for arguments in (("advance", path, "--empty", "--through", "10"), ("show", path)):
        run("stream", *arguments).must_refuse("chmod")
    path.chmod(0o600)
    Stream.open(path).close()


# --- Names that are none ----------------------------------------------------------------------------------------------

BAD_NAMES: list[Callable[[Path], str]] = [
    lambda folder: "/",
    lambda folder: ".",
    lambda folder: "..",
    lambda folder: "~nouser/x",
    lambda folder: str(folder),
    lambda folder: str(folder / "loop"),
    lambda folder: str(folder / os.fsdecode(b"caf\xe9")),
    lambda folder: str(folder / "there.csv" / "x"),
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_is_none_is_refused_in_one_message(
    tmp_path: Path, ledger: dw.Ledger, name: Callable[[Path], str]
) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "there.csv").write_text("who,at\n")
    in_ledger = ("--ledger", tmp_path / "ledger", "--dataset", "log")
    state = name(tmp_path)
    for arguments in (
        ("create", state, *ASKED, *in_ledger),
        ("advance", state, "--empty", "--through", "10"),
        ("show", state),
    ):
        outcome = run("stream", *arguments).must_refuse()
        assert len(outcome.err.strip().splitlines()) <= 4, outcome.err
        assert "Error" in outcome.err
    assert spent(ledger) == 0.0


def test_no_path_at_all_is_refused_too(tmp_path: Path) -> None:
    with pytest.raises(dw.InputError, match="no path of a state"):
        new_stream(tmp_path / "a\0b", plan_of(*PLAN))
    with pytest.raises(dw.InputError, match="no path of a state"):
        Stream.open(tmp_path / "a\0b")


# --- Calls that close many steps --------------------------------------------------------------------------------------


def test_a_long_gap_is_refused_before_anything_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_STEPS_A_CALL < 5000
    with new_stream(tmp_path / "state", plan_of("rolling:2", horizon=None)) as stream, spied(monkeypatch) as seen:
        with pytest.raises(dw.InputError, match=r"would close 5,000 steps.*minutes.*--max-steps 5000"):
            stream.advance(through=5000 * STEP, empty=True)
        stream.advance(table_of([("a", 1, 1)]), STEP)
        with pytest.raises(dw.InputError, match=r"close 5 steps.* 1 s, and 1 s more"):
            stream.advance(table_of([("a", 6, 1)]), 6 * STEP, max_steps=4)
        assert list(seen) == [1]
        released = stream.advance(table_of([("a", 6, 1)]), 6 * STEP, max_steps=5)
        # What is closed is not closed again.
        assert stream.advance(through=6 * STEP, max_steps=1).table.equals(released.table)
        for most in (0, -1, True, 1.5):
            wrong: Any = most
            with pytest.raises(dw.InputError, match="max_steps"):
                stream.advance(through=7 * STEP, empty=True, max_steps=wrong)


def test_the_limit_is_raised_on_the_command_line(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert run("stream", "create", state, *ASKED).code == 0
    run("stream", "advance", state, "--empty", "--through", "50", "--max-steps", "4").must_refuse("--max-steps 5")
    assert run("stream", "advance", state, "--empty", "--through", "50", "--max-steps", "5").code == 0


@pytest.mark.parametrize("loose", ["folder", "items"])
def test_where_others_may_write_nothing_is_paid(tmp_path: Path, ledger: dw.Ledger, loose: str) -> None:
    """What would be refused once the state is opened is refused before it is paid for."""
    folder = tmp_path / "open"
    folder.mkdir()
    if loose == "items":
        (folder / "state-items").mkdir()
    (folder if loose == "folder" else folder / "state-items").chmod(0o777)
    with pytest.raises(dw.InputError, match=r"may (re)?(place|write)"):
        new_stream(folder / "state", plan_of(*PLAN), ledger=ledger)
    assert (spent(ledger), left(folder)) == (0.0, [])


def test_a_ledger_is_not_made_where_everybody_may_replace_it(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(dw.InputError, match="everybody may replace the ledger"):
        dw.Ledger.create(folder / "ledger", "log", budget=dw.PureDP(1.0), unit=dw.EventLevel())
    assert left(folder) == []


def test_what_a_stream_cannot_be_opened_with_is_refused_before_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("x")
    (tmp_path / "password").chmod(0o600)
    settings = dw.EngineSettings(password_file=tmp_path / "password", progress=False)
    with pytest.raises(InputError, match="no password"):
        new_stream(tmp_path / "state", plan_of(*PLAN), settings=settings)
    with pytest.raises(InputError, match="the stream itself"):
        new_stream(tmp_path / "other", plan_of(*PLAN), copy_to=tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["password"]


def test_what_refuses_a_stream_that_is_paid_for_is_no_usage_error(tmp_path: Path) -> None:
    """Whoever sees an InputError takes it that nothing was made, nor spent."""
    items = tmp_path / "copy" / "state-items"
    items.mkdir(parents=True)
    items.chmod(0o777)
    with pytest.raises(EngineError, match=r"is made, and paid for .* Do not create it again"):
        new_stream(tmp_path / "state", plan_of(*PLAN), copy_to=tmp_path / "copy" / "state")
    assert (tmp_path / "state").exists()
