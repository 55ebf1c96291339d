"""A stream against a simple model, driven through random calls, refusals, crashes and reopenings.

The model is a few lists: which occurrences were counted in which step, and which calls were made. It knows nothing of
recencies, fingerprints, transactions or noise. After every call the exact answers given to the mechanism are those of
brute force over the counted occurrences, and everything released earlier is still there to the last bit.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import dpwindows as dw
from dpwindows.kernel.designs import StepAnswers
from dpwindows.stream import recencies
from dpwindows.stream.store import StateFile
from dpwindows.stream.stream import Stream
from tests.search import examples
from tests.stream.streams import STEP, Event, new_stream, plan_of, require_exact, same, spied, table_of

PLANS = (
    ("rolling:2", "any:3", "cumulative"),
    ("rolling:3",),
)
one_step = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 4), max_size=4)
late_events = st.lists(st.tuples(st.sampled_from("abcxyz"), st.integers(0, 50), st.integers(1, 3)), max_size=2)


class Crash(BaseException):
    """The process ends here."""


class StreamMachine(RuleBasedStateMachine):
    """See the module."""

    @initialize(
        plan=st.sampled_from(PLANS),
        with_ledger=st.booleans(),
    )
    def begin(self, plan: tuple[str, ...], with_ledger: bool) -> None:
        self.resources = contextlib.ExitStack()
        folder = Path(self.resources.enter_context(tempfile.TemporaryDirectory()))
        patch = self.resources.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(recencies, "_RARELY", 3)
        self.exact: dict[int, StepAnswers] = self.resources.enter_context(spied(patch))
        self.plan, self.path, ledger = plan_of(*plan, horizon=None), folder / "state", None
        if with_ledger:
            ledger = dw.Ledger.create(folder / "ledger", "log", budget=dw.ApproxDP(1.0, 1e-6), unit=dw.EventLevel())
        self.stream = new_stream(self.path, self.plan, ledger=ledger)
        self.closed = 0
        self.own: dict[int, Counter[str]] = {}  # what was handed over for each closed step, by its own time
        self.counted: list[Event] = []
        self.calls: dict[int, tuple[int, list[Event]]] = {}  # end of each finished call: first step, what it moved
        self.pending: tuple[int, list[Event]] | None = None  # the same of one that was interrupted
        self.results: dict[int, dw.Release] = {}

    def teardown(self) -> None:
        if hasattr(self, "resources"):
            self.stream.close()
            self.resources.close()

    # --- The model --------------------------------------------------------------------------------------------------

    def close_by_model(self, first: int, last: int, steps: list[Counter[str]], moved: list[Event]) -> None:
        """Close the steps after `self.closed` up to `last`; `steps` are those of the call, from `first` on."""
        for step in range(self.closed + 1, last + 1):
            self.own[step] = steps[step - first]
            self.counted += [(item, step, count) for item, count in self.own[step].items()]
            if step == first:
                self.counted += [(item, step, count) for item, _, count in moved]
            require_exact(self.exact[step], self.counted, self.plan)
        self.closed = max(self.closed, last)

    def events(self, first: int, steps: list[Counter[str]]) -> list[Event]:
        return [(item, step, count) for step, happened in enumerate(steps, first) for item, count in happened.items()]

    def steps_of(self, first: int, last: int) -> list[Counter[str]]:
        return [self.own[step] for step in range(first, last + 1)]

    def finish_by_model(self, first: int, last: int, moved: list[Event], released: dw.Release) -> None:
        self.calls[last], self.pending, self.results[last] = (first, moved), None, released
        made = released.metadata["stream"]
        assert (made["first_step"], made["last_step"]) == (first, last)
        assert set(released.table["last_step"].to_pylist()) == set(range(first, last + 1))

    def reopen_stream(self) -> None:
        self.stream.close()
        self.stream = Stream.open(self.path)

    def refused(self, why: str, *arguments: Any, **options: Any) -> None:
        with pytest.raises(dw.InputError, match=why):
            self.stream.advance(*arguments, **options)

    # --- Calls --------------------------------------------------------------------------------------------------------

    @rule(
        fresh=st.lists(one_step, min_size=1, max_size=3),
        late=late_events,
        policy=st.sampled_from(["refuse", "ignore", "move"]),
        ahead=st.booleans(),
        crash=st.sampled_from([None, None, "before", "after"]),
        at=st.integers(1, 3),
    )
    def advance(
        self,
        fresh: list[dict[str, int]],
        late: list[tuple[str, int, int]],
        policy: Any,
        ahead: bool,
        crash: str | None,
        at: int,
    ) -> None:
        """Close some steps, after those of an interrupted call if there is one; the process may end meanwhile."""
        first, moved = self.pending or (self.closed + 1, [])
        steps = self.steps_of(first, self.closed) + [Counter(happened) for happened in fresh]
        last = first + len(steps) - 1
        if self.pending:
            late_ones, policy = moved, "move" if moved else policy
        else:
            late_ones = [(item, 1 + at % (first - 1), count) for item, at, count in late] if first > 1 else []
        ahead = ahead and policy != "move"
        later: Any = "ignore" if ahead else "refuse"
        handed = table_of([*self.events(first, steps), *late_ones, *([("a", last + 1, 1)] if ahead else [])])
        if late_ones and policy == "refuse" and not self.repeats(late_ones):
            self.refused("late events", handed, last * STEP, late=policy, later=later)
            return
        moved = late_ones if policy == "move" else []
        before = self.closed
        with self.crashing(crash, at) as crashed:
            released = self.stream.advance(handed, last * STEP, late=policy, later=later)
        if not crashed:
            self.close_by_model(first, last, steps, moved)
            self.finish_by_model(first, last, moved, released)
            return
        reached = before + at - (crash == "before")
        if reached == last:  # closed, and only the caller never saw it
            self.close_by_model(first, last, steps, moved)
            self.calls[last], self.pending = (first, moved), None
        elif reached > before:
            self.close_by_model(first, reached, steps, moved)
            self.pending = (first, moved)
        self.reopen_stream()
        assert self.stream.closed_steps == self.closed

    def repeats(self, late: list[Event]) -> bool:
        """Whether late events repeat each step they lie in exactly."""
        given: dict[int, Counter[str]] = {}
        for item, step, count in late:
            given.setdefault(step, Counter())[item] += count
        return all(self.own[step] == happened for step, happened in given.items())

    @contextlib.contextmanager
    def crashing(self, when: str | None, at: int) -> Any:
        """End the process before or after the commit of the at-th step from now; what is yielded tells if it did."""
        done: list[int] = []
        crashed: list[bool] = []
        original = StateFile.commit

        def commit(state: StateFile) -> None:
            done.append(1)
            if len(done) == at and when == "before":
                raise Crash
            original(state)
            if len(done) == at and when == "after":
                raise Crash

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StateFile, "commit", commit)
            try:
                yield crashed
            except Crash:
                crashed.append(True)

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), how=st.sampled_from(["none", "same", "split", "different"]))
    def repeat(self, data: st.DataObject, how: str) -> None:
        """An earlier call again."""
        last = data.draw(st.sampled_from(sorted(self.calls)))
        first, moved = self.calls[last]
        events = [*self.events(first, self.steps_of(first, last)), *moved]
        policy: Any = "move" if moved else "refuse"
        if how == "different":
            changed = data.draw(st.integers(0, len(events)))
            new = ("z", last, 1)
            events = [*events[:changed], *events[changed + 1 :]] if changed < len(events) else [*events, new]
            self.refused("not the ones", table_of(events), last * STEP, late=policy)
            return
        if how == "split":
            events = [(item, step, 1) for item, step, count in reversed(events) for _ in range(count)]
        handed = None if how == "none" else table_of(events)
        released = self.stream.advance(handed, last * STEP, late=policy)
        assert same(released, self.results.setdefault(last, released))

    @precondition(lambda self: self.closed > 1)
    @rule(data=st.data())
    def ask_for_no_call(self, data: st.DataObject) -> None:
        """A time before the last closed step at which no call ended."""
        step = data.draw(st.integers(1, self.closed))
        if step not in self.calls and not (step == self.closed and self.pending is None):
            self.refused("no call ended", None, step * STEP)

    @rule(off=st.integers(1, STEP - 1))
    def ask_amiss(self, off: int) -> None:
        """Times off a boundary, events beyond the time, and no events for new steps."""
        target = (self.closed + 1) * STEP
        self.refused("whole number of steps", None, target + off)
        self.refused("at or after", table_of([("a", self.closed + 2, 1)]), target)
        self.refused("not all closed", None, target)

    @rule()
    def reopen(self) -> None:
        self.reopen_stream()

    @invariant()
    def everything_released_is_still_there(self) -> None:
        if getattr(self, "closed", 0) == 0:
            return
        shown = self.stream.show().table
        assert sorted(set(shown["last_step"].to_pylist())) == list(range(1, self.closed + 1))
        for released in self.results.values():
            made = released.metadata["stream"]
            steps = shown["last_step"].to_numpy()
            chosen = (steps >= made["first_step"]) & (steps <= made["last_step"])
            assert shown.filter(chosen).equals(released.table)


TestStream = pytest.mark.slow(StreamMachine.TestCase)
TestStream.settings = examples(8, steps=12)
