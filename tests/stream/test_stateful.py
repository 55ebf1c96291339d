"""Streams, their copies, backups, crashes and ledger, against a model of a page.

The model is what the public may have seen: for each step one set of rows, for good. A state file is the line of draws
it holds, each with a number of its own; what is on record (in the ledger, or without one beside the state) is such a
line too. A file may go on if and only if the line on record is the beginning of its own, and then the record follows.
Whatever the file was copied from, restored from or robbed of, everything else follows from that one rule.

What is released is compared with the counts by `test_stream_property`; here only who may release it matters.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import dpwindows as dw
from dpwindows.errors import EngineError, InputError, OverBudgetError, StateBehindLedgerError
from dpwindows.ledger import store as ledger_store
from dpwindows.ledger.ledger import Ledger
from dpwindows.stream.store import StateFile
from dpwindows.stream.stream import Stream
from tests.ledger.requests import request
from tests.search import examples
from tests.stream.streams import STEP, Event, copied, new_stream, plan_of, table_of

WINDOWS = ("rolling:2", "cumulative")
TOTAL, SPENT_BY_STREAM = Fraction(2), Fraction(1)
MOST_FILES = 3
one_step = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3)), max_size=3, unique_by=lambda event: event[0])
pick = st.integers(0, 99)


class Crash(BaseException):
    """The process ends here."""


@dataclass(frozen=True)
class Made:
    """One finished call: its first step, the events it was given, and its policy for late ones."""

    first: int
    events: tuple[Event, ...]
    late: Any


@dataclass
class File:
    """A state file: the draws it holds, one a step, and the calls that closed them, by their last steps."""

    path: Path
    line: list[int] = field(default_factory=list)
    calls: dict[int, Made] = field(default_factory=dict)
    stream: Stream | None = None
    refused: bool = False

    @property
    def open(self) -> Stream:
        assert self.stream is not None
        return self.stream


@dataclass(frozen=True)
class Backup:
    """The bytes of a closed state, and what it held."""

    of: Path
    kept: Path
    line: tuple[int, ...]
    calls: dict[int, Made]


class PageMachine(RuleBasedStateMachine):
    """See the module."""

    @initialize(with_ledger=st.booleans())
    def begin(self, with_ledger: bool) -> None:
        self.resources = contextlib.ExitStack()
        self.folder = Path(self.resources.enter_context(tempfile.TemporaryDirectory()))
        self.resources.enter_context(pytest.MonkeyPatch.context()).setattr(ledger_store, "PATIENCE", 0.02)
        self.plan = plan_of(*WINDOWS, horizon=None)
        self.ledger: Ledger | None = None
        if with_ledger:
            total = dw.ApproxDP(float(TOTAL), 2e-6)
            self.ledger = Ledger.create(self.folder / "ledger", "log", budget=total, unit=dw.EventLevel())
        self.spent = SPENT_BY_STREAM
        self.draws, self.names = 0, 0
        self.record: list[int] = []
        self.published: dict[int, list[tuple[Any, ...]]] = {}
        self.backups: list[Backup] = []
        first = File(self.folder / "state")
        first.stream = new_stream(first.path, self.plan, ledger=self.ledger)
        self.state_id = first.stream.description["state_id"]
        self.files = [first]

    def teardown(self) -> None:
        if hasattr(self, "files"):
            for file in self.files:
                if file.stream is not None:
                    file.stream.close()
            self.resources.close()

    # --- The model ----------------------------------------------------------------------------------------------------

    def may_go_on(self, file: File) -> bool:
        return not file.refused and file.line[: len(self.record)] == self.record

    @property
    def behind(self) -> type[Exception]:
        """How a file that may not go on is refused: as wrong input under a ledger, as a failing disk without."""
        return EngineError if self.ledger is None else StateBehindLedgerError

    def leaves(self, file: File, released: dw.Release) -> None:
        """Rows have left: only what is on record, and each step as it was seen before."""
        self.record = list(file.line)
        table = released.to_arrow()
        rows: dict[int, list[tuple[Any, ...]]] = {}
        for row in table.to_pylist():
            rows.setdefault(row["last_step"], []).append(tuple(row.values()))
        for step, seen in rows.items():
            assert self.published.setdefault(step, seen) == seen, f"step {step} was published with two noises"
        if self.ledger is not None:
            assert self.ledger.position(self.state_id).step >= max(rows)

    def file(self, which: int) -> File:
        return self.files[which % len(self.files)]

    def closed(self, file: File) -> None:
        if file.stream is not None:
            file.stream.close()
            file.stream = None

    def opened(self, file: File) -> None:
        """Open it, if the model says that this is possible; a file that is refused is forgotten."""
        self.closed(file)
        if self.may_go_on(file):
            file.stream = Stream.open(file.path)
            assert file.stream.closed_steps == len(file.line)
            self.record = list(file.line)
            return
        with pytest.raises(self.behind):
            Stream.open(file.path)
        with pytest.raises(self.behind):
            Stream.open(file.path, read_only=True)
        file.refused = True
        self.files.remove(file)
        if not self.files:
            self.end_of_all()

    def end_of_all(self) -> None:
        """Nothing is left that may go on: with the record of a lost file nobody ever can."""
        lost = File(self.folder / f"new {self.names}")
        self.names += 1
        if self.ledger is not None:
            with pytest.raises(OverBudgetError):
                new_stream(lost.path, plan_of(*WINDOWS, horizon=None), ledger=self.dearer())
        # Another stream, which shares nothing with the one before.
        lost.stream = new_stream(lost.path, self.plan)
        self.ledger, self.state_id = None, lost.stream.description["state_id"]
        self.record, self.published, self.backups, self.files = [], {}, [], [lost]

    def dearer(self) -> Ledger:
        """The ledger, with less left than a stream costs."""
        assert self.ledger is not None
        if (left := TOTAL - self.spent) >= SPENT_BY_STREAM:
            self.ledger.spend(request(dw.PureDP(float(left)), count="times"))
            self.spent = TOTAL
        return self.ledger

    def events(self, first: int, fresh: list[list[tuple[str, int]]]) -> tuple[Event, ...]:
        return tuple((item, step, count) for step, happened in enumerate(fresh, first) for item, count in happened)

    def draw(self, steps: int) -> list[int]:
        self.draws += steps
        return list(range(self.draws - steps, self.draws))

    # --- Calls --------------------------------------------------------------------------------------------------------

    @rule(
        which=pick, fresh=st.lists(one_step, min_size=1, max_size=2), late=st.sampled_from(["refuse", "ignore", "move"])
    )
    def advance(self, which: int, fresh: list[list[tuple[str, int]]], late: Any) -> None:
        """One step or two, some with events that come late."""
        file = self.file(which)
        first, last = len(file.line) + 1, len(file.line) + len(fresh)
        given = self.events(first, fresh)
        tardy: tuple[Event, ...] = () if late == "refuse" or first == 1 else (("late", first - 1, 1),)
        if not self.may_go_on(file):
            self.must_stay_behind(file, lambda: file.open.advance(table_of([*given, *tardy]), last * STEP, late=late))
            return
        if first > 1:
            with pytest.raises(InputError, match="late events"):
                file.open.advance(table_of([*given, ("late", first - 1, 1)]), last * STEP)
        released = file.open.advance(table_of([*given, *tardy]), last * STEP, late=late)
        file.line += self.draw(len(fresh))
        file.calls[last] = Made(first, (*given, *tardy), late)
        self.leaves(file, released)
        assert set(released.to_arrow()["last_step"].to_pylist()) == set(range(first, last + 1))

    def must_stay_behind(self, file: File, call: Any) -> None:
        """A file that is behind is refused, and whatever is asked of it afterwards hands out nothing."""
        with pytest.raises(self.behind):
            call()
        file.refused = True
        with pytest.raises((InputError, EngineError)):
            file.open.show()
        with pytest.raises((InputError, EngineError)):
            call()

    @precondition(lambda self: any(file.calls for file in self.files))
    @rule(which=pick, call=pick, how=st.sampled_from(["none", "same", "less", "more"]))
    def again(self, which: int, call: int, how: str) -> None:
        """The same TIME again; also what becomes of an output that was lost."""
        file = [file for file in self.files if file.calls][which % sum(bool(file.calls) for file in self.files)]
        last = sorted(file.calls)[call % len(file.calls)]
        made = file.calls[last]
        own = [event for event in made.events if event[1] >= made.first]
        tardy = [event for event in made.events if event[1] < made.first]
        if how == "less" and not own:
            how = "more"
        handed = {
            "none": None,
            "same": [*tardy, *own],
            "less": [*own[1:], *tardy],
            "more": [*own, ("z", last, 1), *tardy],
        }
        given = handed[how]
        table = None if given is None else table_of(given)
        if not self.may_go_on(file):
            self.must_stay_behind(file, lambda: file.open.advance(table, last * STEP, late=made.late))
        elif how in ("none", "same"):
            released = file.open.advance(table, last * STEP, late=made.late)
            assert set(released.to_arrow()["last_step"].to_pylist()) == set(range(made.first, last + 1))
            self.leaves(file, released)
        else:
            with pytest.raises(InputError, match="not the ones"):
                file.open.advance(table, last * STEP, late=made.late)

    @rule(which=pick, time=pick)
    def ask_for_no_call(self, which: int, time: int) -> None:
        """An earlier TIME at which no call ended, one off a boundary, and none at all."""
        file = self.file(which)
        step = time % (len(file.line) + 1)
        for through in (step * STEP + 1, None, *([step * STEP] if step and step not in file.calls else [])):
            with pytest.raises(InputError):
                file.open.advance(None, through)

    @rule(which=pick, how=st.sampled_from(["open", "fresh", "read only"]))
    def show(self, which: int, how: str) -> None:
        """Everything so far, by one of the ways rows can leave."""
        file = self.file(which)
        if how == "fresh":
            self.opened(file)
            if file.refused:
                return
        elif how == "read only":
            self.closed(file)
            with contextlib.suppress(self.behind), Stream.open(file.path, read_only=True) as stream:
                assert self.may_go_on(file)
                if file.line:
                    self.leaves(file, stream.show())
            self.opened(file)
            return
        if not file.line:
            with pytest.raises(InputError):
                file.open.show()
        elif self.may_go_on(file):
            self.leaves(file, file.open.show())
        else:
            # It may not, and has not been told so yet. Rows that are on record may be shown; no others.
            with contextlib.suppress(self.behind):
                before = dict(self.published)
                shown, record = file.open.show(), self.record
                self.leaves(file, shown)
                assert self.published == before
                self.record = record

    # --- What becomes of files ----------------------------------------------------------------------------------------

    @rule(which=pick)
    def reopen(self, which: int) -> None:
        self.opened(self.file(which))

    @precondition(lambda self: self.ledger is not None and len(self.files) < MOST_FILES)
    @rule(which=pick, with_mark=st.booleans())
    def copy(self, which: int, with_mark: bool) -> None:
        """A second file that knows the same; both are open at once, and either may get ahead."""
        file = self.file(which)
        self.closed(file)
        other = File(self.folder / f"copy {self.names}", list(file.line), dict(file.calls))
        self.names += 1
        copied(file.path, other.path, mark=with_mark)
        self.files.append(other)
        self.opened(other)
        self.opened(file)

    @rule(which=pick)
    def back_up(self, which: int) -> None:
        file = self.file(which)
        if not self.may_go_on(file):
            return
        self.closed(file)
        kept = self.folder / f"backup {len(self.backups)} {self.names}"
        self.names += 1
        shutil.copy(file.path, kept)
        self.backups.append(Backup(file.path, kept, tuple(file.line), dict(file.calls)))
        self.opened(file)

    @precondition(lambda self: self.backups)
    @rule(which=pick)
    def restore(self, which: int) -> None:
        """An older file in place of the state; what lies beside it stays."""
        backup = self.backups[which % len(self.backups)]
        file = next((file for file in self.files if file.path == backup.of), None)
        if file is None:
            return
        self.closed(file)
        shutil.copy(backup.kept, file.path)
        file.line, file.calls, file.refused = list(backup.line), dict(backup.calls), False
        self.opened(file)

    @rule(
        which=pick,
        happened=one_step,
        at=st.sampled_from(["idle", "before", "after"]),
        journal=st.sampled_from(["whole", "deleted", "cut"]),
        bytes_cut=st.integers(1, 60),
    )
    def kill(self, which: int, happened: list[tuple[str, int]], at: str, journal: str, bytes_cut: int) -> None:
        """The process ends, idle or before or after it commits a step; a journal of unwritten pages is no loss."""
        file = self.file(which)
        if not self.may_go_on(file):
            return
        last = len(file.line) + 1
        events = self.events(last, [happened])
        if at != "idle":
            with self.crashing(at), pytest.raises(Crash):
                file.open.advance(table_of(events), last * STEP)
        if at == "after":
            file.line += self.draw(1)
            file.calls[last] = Made(last, events, "refuse")
        left = self.as_it_lies(file)
        if journal != "whole" and left.exists():
            left.write_bytes(left.read_bytes()[:-bytes_cut]) if journal == "cut" else left.unlink()
        self.opened(file)
        assert not file.refused

    def as_it_lies(self, file: File) -> Path:
        """Leave the files as they are at this moment: closing them in order would undo what was not committed."""
        kept = copied(file.path, self.folder / "as it lies")
        self.closed(file)
        copied(kept, file.path)
        return file.path.with_name(file.path.name + "-journal")

    @contextlib.contextmanager
    def crashing(self, when: str) -> Iterator[None]:
        original = StateFile.commit

        def commit(state: StateFile) -> None:
            if when == "after":
                original(state)
            raise Crash

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StateFile, "commit", commit)
            yield

    # --- The ledger ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.ledger is not None)
    @rule(which=pick, happened=one_step, how=st.sampled_from(["locked", "away"]))
    def without_its_ledger(self, which: int, happened: list[tuple[str, int]], how: str) -> None:
        """No new row leaves while the ledger cannot be asked; afterwards the same call goes on."""
        file = self.file(which)
        if not self.may_go_on(file):
            return
        last = len(file.line) + 1
        events = self.events(last, [happened])
        with self.unusable_ledger(how):
            with pytest.raises((InputError, EngineError)) as refusal:
                file.open.advance(table_of(events), last * STEP)
            assert not isinstance(refusal.value, StateBehindLedgerError)
            if how == "locked":
                assert isinstance(refusal.value, EngineError)
            with contextlib.suppress(InputError, EngineError):
                shown = file.open.show().to_arrow()["last_step"].to_pylist()
                assert max(shown) <= len(self.record)
        if how == "away":
            self.closed(file)
            file.stream = Stream.open(file.path)
        file.line += self.draw(1)
        file.calls[last] = Made(last, events, "refuse")
        self.leaves(file, file.open.advance(table_of(events), last * STEP))

    @contextlib.contextmanager
    def unusable_ledger(self, how: str) -> Iterator[None]:
        assert self.ledger is not None
        path = Path(self.ledger.path)
        if how == "away":
            away = path.with_name("ledger elsewhere")
            path.rename(away)
            yield
            away.rename(path)
            return
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")
        connection.close()

    @precondition(lambda self: self.ledger is not None)
    @rule(thousandths=st.integers(1, 700))
    def spend_elsewhere(self, thousandths: int) -> None:
        """Others spend from the same total; a stream that was paid for does not mind, and a new one may be refused."""
        assert self.ledger is not None
        cost = Fraction(thousandths, 1000)
        asked = request(dw.PureDP(thousandths / 1000), count="times")
        before = self.ledger.book().to_dict()
        if self.spent + cost <= TOTAL:
            self.ledger.spend(asked)
            self.spent += cost
        else:
            with pytest.raises(OverBudgetError):
                self.ledger.spend(asked)
            assert self.ledger.book().to_dict() == before
        if self.spent + SPENT_BY_STREAM > TOTAL:
            before = self.ledger.book().to_dict()
            listed = sorted(self.folder.iterdir())
            with pytest.raises(OverBudgetError):
                new_stream(self.folder / "too dear", self.plan, ledger=self.ledger)
            assert (self.ledger.book().to_dict(), sorted(self.folder.iterdir())) == (before, listed)

    @invariant()
    def the_ledger_agrees(self) -> None:
        """The position on record is never before what was published, and the total holds to the last digit."""
        if getattr(self, "ledger", None) is None:
            return
        assert self.ledger is not None
        assert self.ledger.position(self.state_id).step == len(self.record) >= max(self.published, default=0)
        spent = self.ledger.book().to_dict()["spent"]["epsilon"]
        assert spent == float(self.spent) <= float(TOTAL)


TestPage = pytest.mark.slow(PageMachine.TestCase)
TestPage.settings = examples(12, steps=12)
