"""Streams, their copies, backups, crashes and ledger, against a model of a page.

The model is what the public may have seen: for each step one set of rows, for good. A state file is the line of draws
it holds, each with a number of its own; what is on record (in the ledger, or without one beside the state) is such a
line too. A file may go on if and only if the line on record is the beginning of its own, and then the record follows.
Whatever the file was copied from, restored from or robbed of, everything else follows from that one rule.

The model knows nothing of recencies, fingerprints, transactions or noise. Beside its line a file has what was counted
in which step, and by which calls: the exact answers given to the mechanism are those of brute force over that.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import dpwindows as dw
from dpwindows.errors import EngineError, InputError, OverBudgetError, StateBehindLedgerError
from dpwindows.kernel.designs import StepAnswers
from dpwindows.ledger import store as ledger_store
from dpwindows.ledger.ledger import Ledger
from dpwindows.stream import recencies
from dpwindows.stream.store import StateFile
from dpwindows.stream.stream import Stream
from tests.ledger.requests import request
from tests.search import examples
from tests.stream.streams import STEP, Event, copied, new_stream, plan_of, require_exact, same, spied, table_of

PLANS = (("rolling:2", "any:3", "cumulative"), ("rolling:3",))
TOTAL, SPENT_BY_STREAM = Fraction(2), Fraction(1)
MOST_FILES = 3

Step = dict[str, int]
one_step = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 4), max_size=4)
some_steps = st.lists(one_step, min_size=1, max_size=3)
late_events = st.lists(st.tuples(st.sampled_from("abcxyz"), st.integers(0, 50), st.integers(1, 3)), max_size=2)
pick = st.integers(0, 99)


class Crash(BaseException):
    """The process ends here."""


@dataclass(frozen=True)
class Call:
    """What a call is given: its steps, by the time of their events, and late events with the policy for these."""

    first: int
    steps: tuple[Step, ...]
    late: tuple[Event, ...]
    policy: Any

    @property
    def last(self) -> int:
        return self.first + len(self.steps) - 1

    @property
    def moved(self) -> tuple[Event, ...]:
        return self.late if self.policy == "move" else ()

    def events(self, first: int, last: int) -> list[Event]:
        """Those of some of its steps."""
        return [
            (item, step, count)
            for step in range(first, last + 1)
            for item, count in self.steps[step - self.first].items()
        ]

    def table(self, *more: Event) -> pa.Table:
        return table_of([*self.events(self.first, self.last), *self.late, *more])


@dataclass
class File:
    """A state file: the draws it holds, one a step; the calls that closed them, by their last steps; and what counts.

    `pending` is as much of a call as was done when it was interrupted.
    """

    path: Path
    line: list[int] = field(default_factory=list)
    calls: dict[int, Call] = field(default_factory=dict)
    own: dict[int, Step] = field(default_factory=dict)
    counted: list[Event] = field(default_factory=list)
    pending: Call | None = None
    stream: Stream | None = None
    refused: bool = False

    @property
    def open(self) -> Stream:
        assert self.stream is not None
        return self.stream

    def at(self, path: Path) -> File:
        """The same elsewhere, closed."""
        return File(path, [*self.line], dict(self.calls), dict(self.own), [*self.counted], self.pending)

    def next_call(self, fresh: list[Step], late: list[tuple[str, int, int]], policy: Any) -> Call:
        """A call for some steps more: an interrupted one goes on with the events that it had."""
        if self.pending:
            before = self.pending
            return replace(before, steps=(*before.steps, *fresh), policy="move" if before.late else policy)
        first = len(self.line) + 1
        tardy = [(item, 1 + at % (first - 1), count) for item, at, count in late] if first > 1 else []
        return Call(first, tuple(fresh), tuple(tardy), policy)

    def repeats(self, late: tuple[Event, ...]) -> bool:
        """Whether late events repeat each step they lie in exactly."""
        given: dict[int, Counter[str]] = {}
        for item, step, count in late:
            given.setdefault(step, Counter())[item] += count
        return all(self.own[step] == happened for step, happened in given.items())


class PageMachine(RuleBasedStateMachine):
    """See the module."""

    @initialize(plan=st.sampled_from(PLANS), with_ledger=st.booleans(), fresh=some_steps)
    def begin(self, plan: tuple[str, ...], with_ledger: bool, fresh: list[Step]) -> None:
        self.resources = contextlib.ExitStack()
        self.folder = Path(self.resources.enter_context(tempfile.TemporaryDirectory()))
        patch = self.resources.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(ledger_store, "PATIENCE", 0.02)
        patch.setattr(recencies, "_RARELY", 3)
        self.exact: dict[int, StepAnswers] = self.resources.enter_context(spied(patch))
        self.plan = plan_of(*plan, horizon=None)
        self.ledger: Ledger | None = None
        if with_ledger:
            total = dw.ApproxDP(float(TOTAL), 2e-6)
            self.ledger = Ledger.create(self.folder / "ledger", "log", budget=total, unit=dw.EventLevel())
        self.spent = SPENT_BY_STREAM
        self.draws, self.names = 0, 0
        first = File(self.folder / "state")
        first.stream = new_stream(first.path, self.plan, ledger=self.ledger)
        self.begin_page(first)
        self.close_more(first, first.next_call(fresh, [], "refuse"))

    def begin_page(self, first: File) -> None:
        self.record: list[int] = []
        self.published: dict[int, list[tuple[Any, ...]]] = {}
        self.returned: dict[int, dw.Release] = {}  # by the last step of a call
        self.state_id = first.open.description["state_id"]
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

    def close_steps(self, file: File, call: Call, last: int) -> None:
        """A call closed steps up to one, and measured the exact counts of all that was counted."""
        if last == len(file.line):
            return
        for step in range(len(file.line) + 1, last + 1):
            file.own[step] = call.steps[step - call.first]
            file.counted += call.events(step, step)
            if step == call.first:
                file.counted += [(item, step, count) for item, _, count in call.moved]
            require_exact(self.exact[step], file.counted, self.plan)
            file.line.append(self.draws)
            self.draws += 1
        if last == call.last:
            file.calls[last], file.pending = call, None
        else:
            file.pending = Call(call.first, call.steps[: last - call.first + 1], call.moved, call.policy)

    def leaves(self, file: File, released: dw.Release, first: int = 1) -> None:
        """Rows have left, from a step on: only what is on record, and each step as it was seen before."""
        self.record = list(file.line)
        table = released.to_arrow()
        rows: dict[int, list[tuple[Any, ...]]] = {}
        for row in table.to_pylist():
            rows.setdefault(row["last_step"], []).append(tuple(row.values()))
        made = released.metadata["stream"]
        assert sorted(rows) == list(range(first, made["last_step"] + 1))
        assert made["first_step"] == first
        for step, seen in rows.items():
            assert self.published.setdefault(step, seen) == seen, f"step {step} was published with two noises"
        if self.ledger is not None:
            assert self.ledger.position(self.state_id).step >= max(rows)

    def returns(self, file: File, call: Call, released: dw.Release) -> None:
        """The rows of a call left, once and whenever it is made again."""
        self.leaves(file, released, call.first)
        assert same(self.returned.setdefault(call.last, released), released)

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
            if file.line:
                self.leaves(file, file.stream.show())
            return
        for read_only in (False, True):
            with pytest.raises(self.behind):
                Stream.open(file.path, read_only=read_only)
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
                new_stream(lost.path, self.plan, ledger=self.dearer())
        # Another stream, which shares nothing with the one before.
        lost.stream = new_stream(lost.path, self.plan)
        self.ledger = None
        self.begin_page(lost)

    def dearer(self) -> Ledger:
        """The ledger, with less left than a stream costs."""
        assert self.ledger is not None
        if (left := TOTAL - self.spent) >= SPENT_BY_STREAM:
            self.ledger.spend(request(dw.PureDP(float(left)), count="times"))
            self.spent = TOTAL
        return self.ledger

    # --- Calls --------------------------------------------------------------------------------------------------------

    @rule(
        which=pick,
        fresh=some_steps,
        late=late_events,
        policy=st.sampled_from(["refuse", "ignore", "move"]),
        ahead=st.booleans(),
    )
    def advance(
        self, which: int, fresh: list[Step], late: list[tuple[str, int, int]], policy: Any, ahead: bool
    ) -> None:
        """Some steps more, some with events that come late, or are for a later call."""
        file = self.file(which)
        call = file.next_call(fresh, late, policy)
        if not self.may_go_on(file):
            table = replace(call, late=()).table()
            self.must_stay_behind(file, lambda: file.open.advance(table, call.last * STEP, late=call.policy))
        elif call.late and call.policy == "refuse" and not file.repeats(call.late):
            with pytest.raises(InputError, match="late events"):
                file.open.advance(call.table(), call.last * STEP)
        else:
            self.close_more(file, call, ahead=ahead and call.policy != "move")

    def close_more(self, file: File, call: Call, *, ahead: bool = False) -> None:
        handed = call.table(*([("a", call.last + 1, 1)] if ahead else []))
        later: Any = "ignore" if ahead else "refuse"
        released = file.open.advance(handed, call.last * STEP, late=call.policy, later=later)
        self.close_steps(file, call, call.last)
        self.returns(file, call, released)

    @rule(
        which=pick,
        fresh=some_steps,
        late=late_events,
        policy=st.sampled_from(["ignore", "move"]),
        when=st.sampled_from(["before", "after"]),
        at=st.integers(0, 2),
        journal=st.sampled_from(["whole", "deleted", "cut"]),
        bytes_cut=st.integers(1, 60),
    )
    def kill(
        self,
        which: int,
        fresh: list[Step],
        late: list[tuple[str, int, int]],
        policy: Any,
        when: str,
        at: int,
        journal: str,
        bytes_cut: int,
    ) -> None:
        """The process ends before or after it commits one of the steps; a journal of unwritten pages is no loss."""
        file = self.file(which)
        call, place = file.next_call(fresh, late, policy), at % len(fresh)
        if not self.may_go_on(file):
            return
        with self.crashing(when, place), pytest.raises(Crash):
            file.open.advance(call.table(), call.last * STEP, late=call.policy)
        self.close_steps(file, call, len(file.line) + place + (when == "after"))
        self.end_process(file, journal, bytes_cut)

    @contextlib.contextmanager
    def crashing(self, when: str, at: int) -> Iterator[None]:
        """End the process before or after one of the commits from now on."""
        done: list[int] = []
        original = StateFile.commit

        def commit(state: StateFile) -> None:
            done.append(1)
            if len(done) <= at or when == "after":
                original(state)
            if len(done) > at:
                raise Crash

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StateFile, "commit", commit)
            yield

    def end_process(self, file: File, journal: str, bytes_cut: int) -> None:
        """Open the files as they are at this moment: closing them in order would undo what was not committed."""
        kept = copied(file.path, self.folder / "as it lies")
        self.closed(file)
        left = copied(kept, file.path).with_name(file.path.name + "-journal")
        if journal != "whole" and left.exists():
            left.write_bytes(left.read_bytes()[:-bytes_cut]) if journal == "cut" else left.unlink()
        self.opened(file)
        assert not file.refused

    def must_stay_behind(self, file: File, call: Any) -> None:
        """A file that is behind is refused, and whatever is asked of it afterwards hands out nothing."""
        with pytest.raises(self.behind):
            call()
        file.refused = True
        for asked in (file.open.show, call):
            with pytest.raises((InputError, EngineError)):
                asked()

    @precondition(lambda self: any(file.calls for file in self.files))
    @rule(which=pick, call=pick, how=st.sampled_from(["none", "same", "split", "different"]), place=pick)
    def again(self, which: int, call: int, how: str, place: int) -> None:
        """The same TIME again; also what becomes of an output that was lost."""
        file = [file for file in self.files if file.calls][which % sum(bool(file.calls) for file in self.files)]
        made = file.calls[sorted(file.calls)[call % len(file.calls)]]
        events = [*made.events(made.first, made.last), *made.moved]
        if how == "different" and (place := place % (len(events) + 1)) < len(events):
            events = [*events[:place], *events[place + 1 :]]
        elif how == "different":
            events = [*events, ("z", made.last, 1)]
        elif how == "split":
            events = [(item, step, 1) for item, step, count in reversed(events) for _ in range(count)]
        elif made.policy == "ignore":
            events = [*made.late, *events]
        table = None if how == "none" else table_of(events)
        if not self.may_go_on(file):
            self.must_stay_behind(file, lambda: file.open.advance(table, made.last * STEP, late=made.policy))
        elif how == "different":
            with pytest.raises(InputError, match="not the ones"):
                file.open.advance(table, made.last * STEP, late=made.policy)
        else:
            self.returns(file, made, file.open.advance(table, made.last * STEP, late=made.policy))

    @rule(which=pick, time=pick, off=st.integers(1, STEP - 1))
    def ask_amiss(self, which: int, time: int, off: int) -> None:
        """No TIME, one off a boundary, or an earlier one at which no call ended; events beyond it, or none at all."""
        file = self.file(which)
        step, target = time % (len(file.line) + 1), (len(file.line) + 1) * STEP
        beyond = table_of([("a", len(file.line) + 2, 1)])
        asked = [(None, None, "needed"), (None, target + off, "whole number of steps")]
        asked += [(beyond, target, "at or after"), (None, target, "not all closed")]
        if step and step not in file.calls:
            asked.append((None, step * STEP, "no call ended"))
        for events, through, said in asked:
            with pytest.raises(InputError, match=said if self.may_go_on(file) else None):
                file.open.advance(events, through)

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

    @rule(which=pick, killed=st.booleans())
    def reopen(self, which: int, killed: bool) -> None:
        file = self.file(which)
        if killed and self.may_go_on(file):
            self.end_process(file, "whole", 0)
        else:
            self.opened(file)

    @precondition(lambda self: self.ledger is not None and len(self.files) < MOST_FILES)
    @rule(which=pick, with_mark=st.booleans())
    def copy(self, which: int, with_mark: bool) -> None:
        """A second file that knows the same; both are open at once, and either may get ahead."""
        file = self.file(which)
        self.closed(file)
        other = file.at(self.folder / f"copy {self.names}")
        self.names += 1
        copied(file.path, other.path, mark=with_mark)
        self.files.append(other)
        self.opened(other)
        self.opened(file)

    @rule(which=pick, fresh=some_steps)
    def put_back(self, which: int, fresh: list[Step]) -> None:
        """An older file in place of the state, which went on meanwhile; what lies beside it stays."""
        file = self.file(which)
        if not self.may_go_on(file):
            return
        self.closed(file)
        older, kept = file.at(file.path), self.folder / "backup"
        shutil.copy(file.path, kept)
        self.opened(file)
        self.close_more(file, file.next_call(fresh, [], "refuse"))
        self.closed(file)
        shutil.copy(kept, file.path)
        self.files = [older if one is file else one for one in self.files]
        self.opened(older)

    # --- The ledger ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.ledger is not None)
    @rule(which=pick, happened=one_step, how=st.sampled_from(["locked", "away"]))
    def without_its_ledger(self, which: int, happened: Step, how: str) -> None:
        """No new row leaves while the ledger cannot be asked; afterwards the same call goes on."""
        file = self.file(which)
        if not self.may_go_on(file):
            return
        call = file.next_call([happened], [], "refuse")
        with self.unusable_ledger(how):
            with pytest.raises((InputError, EngineError)) as refusal:
                file.open.advance(call.table(), call.last * STEP, late=call.policy)
            assert not isinstance(refusal.value, StateBehindLedgerError)
            if how == "locked":
                assert isinstance(refusal.value, EngineError)
            with contextlib.suppress(InputError, EngineError):
                shown = file.open.show().to_arrow()["last_step"].to_pylist()
                assert max(shown) <= len(self.record)
        if how == "away":
            self.closed(file)
            file.stream = Stream.open(file.path)
        released = file.open.advance(call.table(), call.last * STEP, late=call.policy)
        self.close_steps(file, call, call.last)
        self.returns(file, call, released)

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
TestPage.settings = examples(20, steps=16)
