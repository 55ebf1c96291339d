"""A stream: window counts released step by step, for years, across crashes, retries and upgrades.

    plan = dw.StreamPlan([dw.Rolling(28), dw.Cumulative()], unit=dw.EventLevel(), budget=dw.ApproxDP(1.0, 1e-6))
    dw.Stream.create("users.state", plan, item="user", time="time", start="2026-01-01", step="1d").close()

    with dw.Stream.open("users.state") as stream:
        release = stream.advance("events/2026-01-01.parquet", through="2026-01-02")

**Order of things.** The items of a step are written first, as a part that nothing names yet. Then one transaction
closes the step: it names the part, and holds the exact counts, the mechanism's memory, the noisy rows, the fingerprint
of the events and a random token. Then the ledger, if there is one, records the token; then the rows are handed out,
read back from the state. So what was handed out is on disk and on record, and what is not on disk was never seen: if a
call fails or the machine does, the same call again returns the stored rows, or closes what was left. `publishing` has
the one function that rows leave through.

`records` says where state, position and token stand, and why; `calls` what a repeated call returns, what becomes of
late events, and why the guarantee covers them.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dpwindows import __version__
from dpwindows.ask.calendar import Calendar
from dpwindows.ask.queries import PeriodFamily
from dpwindows.ask.timeline import Timeline, TimePoint
from dpwindows.ask.whole_numbers import MOST_STEPS_A_CALL
from dpwindows.count.events import EngineSettings, EventColumns, csv_layout, role_name
from dpwindows.errors import EngineError, InputError
from dpwindows.kernel.accounting import BudgetExceededError
from dpwindows.kernel.measure import require_sampler
from dpwindows.plan.stored_designs import BAD_VALUES
from dpwindows.plan.stream_plan import StreamPlan
from dpwindows.release.release import Release
from dpwindows.stream import creating, records
from dpwindows.stream.calls import (
    GapPolicy,
    LatePolicy,
    LaterPolicy,
    Task,
    find_task,
    moved_fingerprint,
    remarks_on_steps,
    require_few,
    require_passed,
    require_policies,
)
from dpwindows.stream.closing import close_step
from dpwindows.stream.given_events import EMPTY, NOTHING, Given, Handed
from dpwindows.stream.mechanism import Mechanism
from dpwindows.stream.places import kind_of_place, open_place, place_text, require_settings
from dpwindows.stream.publishing import Gate
from dpwindows.stream.recencies import drop_garbage
from dpwindows.stream.records import Call, Creation
from dpwindows.stream.store import StateFile, damaged, usable_path

if TYPE_CHECKING:
    from dpwindows.ledger.ledger import Ledger


class Stream:
    """An open stream. Make one with `create`, open it with `open`, and close it: it is open in one place at a time.

    The state file and the folder beside it (its name and `-items`) hold the data that later steps need: items and when
    they last occurred, exact counts and noise. Only their owner may read them; keep them as private as the log, and
    copy, move and back up both together.
    `notes` are remarks on the last `advance`, for its operator only: on steps without an event.
    """

    def __init__(
        self,
        state: StateFile,
        creation: Creation,
        mechanism: Mechanism,
        ledger: Ledger | None,
        settings: EngineSettings,
        copy_to: Path | None = None,
    ) -> None:
        """Use `Stream.create` or `Stream.open`."""
        self._state, self._creation, self._mechanism = state, creation, mechanism
        self._place = open_place(state, creation.items_at, creation.state_id, settings)
        self._position, self._gate = records.read_position(state), Gate(state, creation, ledger, copy_to)
        self.notes: tuple[str, ...] = ()

    @classmethod
    def create(
        cls,
        path: str | Path,
        plan: StreamPlan,
        *,
        item: str,
        time: str,
        start: TimePoint,
        step: str | int,
        time_zone: str = "UTC",
        count: str | None = None,
        time_format: str | None = None,
        item_type: str | None = None,
        delimiter: str | None = None,
        columns: Sequence[str] | None = None,
        ledger: Ledger | None = None,
        copy_to: str | Path | None = None,
        items_at: str | Path | None = None,
        settings: EngineSettings | None = None,
    ) -> Stream:
        """Make a new stream, before any data is seen, and open it.

        Args:
            path: the state file to make; nothing may be there.
            plan: what is released at every step, for whom and under which budget.
            item: name of the column that identifies items.
            time: name of the column of times (timestamp, date or integer).
            start: first moment of the first step; events before it are left out.
            step: length of a step, as in `Timeline`.
            time_zone: zone of days, weeks and months and of times that carry none.
            count: name of an optional column of multiplicities; an event is one occurrence, not one row.
            time_format: what times are whose type does not say it, as in `Plan.run`, for the life of the stream.
            item_type: `integer` if items are the whole numbers that values stand for, as in `Plan.run`.
            delimiter: of CSV files, as in `Plan.run`, for the life of the stream.
            columns: the names of all columns of CSV files without a line of names, as in `Plan.run`, for its life too.
            ledger: the dataset whose total the whole budget of the stream is spent from, now.
            copy_to: a path on another disk, where a copy of the state and its folder is kept: each step is there before
                the ledger records it and before its rows leave. The stream goes on from it if this disk is lost.
            items_at: where the items are kept, by the engine that reads the events there: a folder that Spark writes,
                or `postgresql://user@host/database#prefix`, without a password. None: a folder beside the state.
            settings: memory limit, spill directory, threads and progress of the engine; for a place elsewhere also its
                password file, or the address of the Spark cluster.

        Raises:
            InputError: an argument is not legal, or there is something at the path.
            OverBudgetError: the ledger does not hold the budget; nothing was made.
            EngineError: the state or the ledger cannot be written. The same call again goes on from there and pays
                once.
        """
        if not isinstance(plan, StreamPlan):
            raise InputError(f"plan must be a StreamPlan, got {type(plan).__name__}: a Plan is for one batch release")
        target, copy = usable_path(path), None if copy_to is None else usable_path(copy_to)
        if copy is not None:
            if copy == target:
                raise InputError(f"copy_to (--copy-to) is the stream itself, {target}: name a place on another disk")
            creating.require_new(copy)
        timeline = Timeline.of_length(start, plan.horizon or 1, step, time_zone)
        _require_calendar(plan, timeline)
        creation = Creation(
            state_id=secrets.token_hex(16),
            secret=secrets.token_hex(16),
            token=secrets.token_hex(16),
            described=plan.describe(),
            columns=EventColumns(item, time, count, time_format, csv_layout(delimiter, columns), item_type),
            start=timeline.to_dict()["start"],
            begins=int(timeline.boundary_values[0]),
            step=timeline.to_dict()["step"],
            time_zone=time_zone,
            ledger=None if ledger is None else (ledger.address, ledger.dataset),
            copy_to=None if copy is None else str(copy),
            items_at=None if items_at is None else place_text(str(items_at)),
        )
        # A stream that could not be opened must not be paid for.
        require_sampler(plan.noise)
        require_settings(creation.items_at, settings or EngineSettings())
        Mechanism.of(creation.metadata(1))
        creating.create_state(target, creation, plan, ledger)
        try:
            return cls.open(target, ledger, settings=settings)
        except InputError as error:
            # An InputError says that nothing was spent.
            raise EngineError(
                f"the stream {target} is made, and paid for where it has a ledger, but cannot be opened as asked: "
                f"{error}. Do not create it again: open it with other settings, or another place for its copy"
            ) from None

    @classmethod
    def open(
        cls,
        path: str | Path,
        ledger: Ledger | None = None,
        *,
        read_only: bool = False,
        copy_to: str | Path | None = None,
        settings: EngineSettings | None = None,
    ) -> Stream:
        """Open a stream.

        Args:
            path: its state file.
            ledger: where its budget is on record; by default the ledger it was created with, where that was then.
            read_only: only `show` is wanted; the state may lie on a disk that cannot be written.
            copy_to: where its copy is kept from now on in this object; by default where it was created with.
            settings: memory limit, spill directory, threads and progress of the engine.

        Raises:
            InputError: there is no such stream, it is of a newer version, or its ledger is missing.
            StateBehindLedgerError: the state is a restored backup or a copy; going on would release steps again.
            EngineError: it is open elsewhere, damaged, rolled back, or cannot be read or written.
        """
        settings, target = settings or EngineSettings(), usable_path(path)
        creating.forget_draft(target)
        with ExitStack() as refused:
            state = StateFile(target, read_only=read_only)
            refused.callback(state.close)
            copy = None if copy_to is None else usable_path(copy_to)
            stream = cls(state, *_restored(state), ledger, settings, copy)
            refused.callback(stream.close)
            stream._gate.clear(stream._position)
            refused.pop_all()
        return stream

    def advance(
        self,
        events: Any = None,
        through: TimePoint | None = None,
        *,
        empty: bool = False,
        late: LatePolicy = "refuse",
        later: LaterPolicy = "refuse",
        table: str | None = None,
        gaps: GapPolicy = "accept",
        max_steps: int = MOST_STEPS_A_CALL,
        allow_future: bool = False,
    ) -> Release:
        """Close every step up to a time and release the windows that end at them; or return what was released then.

        Guarantee: the releases of all steps of the stream together satisfy the plan's budget for its unit of privacy,
        also where later events depend on earlier releases. Each step is released once, with fresh noise; the same
        call again returns the stored rows.

        Args:
            events: a path (file, glob, directory or DuckDB database), table of a lake, data frame, Arrow table, dataset
                or stream, or DuckDB relation with the events of these steps, read as was fixed when the stream was
                created. None: to have the rows of an earlier call again.
            through: the end of the last step to close, exclusive; a step boundary. Public: never read from the data.
            empty: say that the steps had no events, in place of `events`.
            late: what to do with events of steps that are closed already: `refuse` them all, `ignore` them, or `move`
                them to the first step that this call closes (`dpwindows.stream.calls` has the proof).
            later: what to do with events at or after `through`: `refuse` them all, or `ignore` them, for a later call.
            table: table to read where `events` is a DuckDB database.
            gaps: what to do if a step has no event among those handed over: `accept` it with a remark, or `refuse` the
                call, which then closes no step.
            max_steps: the most steps to close in this call; more are refused before anything is read.
            allow_future: close steps that end later than now, too; what happens in them from then on is late.

        Returns:
            The rows of the steps that this call closes, or closed when it was first made.

        Raises:
            InputError: the time is no step boundary, later than now, or earlier than the last one and not a call's;
                events lie at or after it, differ from those of a closed step, are late, are missing where gaps are
                refused, or cannot be read. Nothing changed.
            EngineError: the state cannot be written, or the engine failed; the same call again goes on or returns what
                is stored.
            StateBehindLedgerError: another copy of the state went on meanwhile; nothing was handed out, and this one
                never hands out anything again.
        """
        if through is None:
            raise InputError("through is needed: the end of the last step to close, exclusive")
        if empty and events is not None:
            raise InputError("give the events, or say that there were none (empty), and not both")
        with self._state.turn():
            self.notes = ()
            timeline = self._timeline_to(through)
            require_policies(late, later, gaps, self._mechanism.unit)
            self._gate.clear(self._position)
            task = self._task(timeline)
            require_few(task.last - task.closed, max_steps)
            if not task.finished and not allow_future:
                require_passed(timeline, datetime.now(UTC))
            if events is None and not empty and not task.finished:
                raise InputError(
                    f"the steps up to {timeline.end} are not all closed: give their events, or say that there were "
                    "none (--empty; in Python empty=True)"
                )
            if events is not None or empty:
                handed = EMPTY if events is None else self._hand_over(events, timeline, table, later)
                moved = moved_fingerprint(task, handed, self._fingerprint, late, self._named, self._mechanism.unit)
                closed = range(task.closed + 1, task.last + 1)
                if closed:
                    require_sampler(self._mechanism.noise)
                # Late events that are moved are counted in the first of them.
                given = tuple(closed) if empty else (*handed.steps, *([task.first] if moved != NOTHING else []))
                notes = remarks_on_steps(closed, given, self._named, refused=gaps == "refuse")
                self._close(task, timeline, handed, moved)
                self._place.forget()
                self.notes = notes
            released = self._gate.let_out(self._position, task.first, task.last)
            if not task.finished:
                self._drop_garbage()
            return released

    def show(self) -> Release:
        """Everything released so far: the rows of all closed steps.

        Raises:
            InputError: no step is closed yet.
            StateBehindLedgerError: another copy of the state went on meanwhile.
            EngineError: the state cannot be read or is damaged.
        """
        with self._state.turn():
            closed = self.closed_steps
            if closed == 0:
                raise InputError("nothing has been released yet: no step of the stream is closed")
            return self._gate.let_out(self._position, 1, closed)

    @property
    def closed_steps(self) -> int:
        """How many steps are closed."""
        with self._state.turn():
            return self._position.step

    @property
    def through(self) -> str | int:
        """The end of the last closed step; the start of the stream if none is."""
        return self._creation.end_of(self.closed_steps)

    @property
    def description(self) -> dict[str, Any]:
        """How the stream was created, in plain public values: as in the metadata of its releases, and its timeline."""
        creation = self._creation
        timeline = {"start": creation.start, "step": creation.step, "time_zone": creation.time_zone}
        read = [(role_name(role), name) for role, name in creation.event_columns.roles]
        own = {"state_id": creation.state_id, "horizon": creation.horizon, "timeline": timeline, "columns": read}
        own["items_at"] = kind_of_place(creation.items_at)
        return {**creation.described, **own}

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts that hold the items after the last closed step; for the operator only.

        Whoever reads items by hand reads these and no others: beside them lies what attempts left.
        """
        with self._state.turn():
            return tuple(part.name for part in self._position.parts)

    @property
    def paid_from(self) -> tuple[str, str] | None:
        """The path and the dataset of the ledger that the stream was created with, None without one."""
        return self._creation.ledger

    def _repr_html_(self) -> str:
        """A notebook shows what was released so far, or, before that, the errors to expect."""
        from dpwindows.report.notebook import forecast_html

        if self.closed_steps:
            return self.show()._repr_html_()
        facts = self.description
        said = f"No step is closed yet. {facts['guarantee']}"
        return forecast_html(facts["forecast"], float(facts["confidence"]), said=said)

    def close(self) -> None:
        """Close the state file; twice is once."""
        self._place.close()
        self._gate.close()
        self._state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- The parts of a call ------------------------------------------------------------------------------------------

    def _timeline_to(self, through: TimePoint) -> Timeline:
        """The timeline from the start of the stream to a time."""
        creation = self._creation
        try:
            timeline = Timeline(creation.start, through, creation.step, creation.time_zone)
        except InputError as error:
            said = re.sub(r"\bend\b", "through", str(error))  # The timeline calls it its end.
            raise InputError(f"the stream cannot be closed up to {through}: {said}") from None
        if creation.horizon is not None and timeline.steps > creation.horizon:
            raise InputError(
                f"the stream ends at {creation.end_of(creation.horizon)}, after {creation.horizon} steps, and cannot "
                f"be closed up to {timeline.end}: create a new stream for what comes after"
            )
        return timeline

    def _task(self, timeline: Timeline) -> Task:
        """What a call is to do; the position is known, since nobody else writes the state."""
        closed = self._position.step
        newest = records.read_step(self._state, closed)
        asked = newest if timeline.steps >= closed else records.read_step(self._state, timeline.steps)
        if asked is not None and asked.ends != int(timeline.boundary_values[asked.step]):
            raise InputError(
                f"by the time zone rules installed here, step {asked.step} of the stream ends at another moment than "
                "when it was closed: install the rules (tzdata) it was closed with"
            )
        # A call that went on to a later time than it was made for first did not end here.
        ended = asked is not None and asked.step == asked.call.last == timeline.steps
        ending = asked.call if asked is not None and ended else None
        return find_task(timeline.steps, closed, None if newest is None else newest.call, ending, self._named)

    def _hand_over(self, events: Any, timeline: Timeline, table: str | None, later: LaterPolicy) -> Handed:
        creation = self._creation
        read = creation.event_columns, timeline, creation.secret, self._position.kind
        return self._place.hand_over(Given(events, *read, later == "refuse", table))

    def _close(self, task: Task, timeline: Timeline, handed: Handed, moved: str) -> None:
        """Close what is left of a call, step by step."""
        if task.finished:
            return
        call = Call(task.first, task.last, moved)
        for step in range(task.closed + 1, task.last + 1):
            self._gate.record(self._position)
            self._drop_garbage()
            ends, given = int(timeline.boundary_values[step]), (self._state, self._place, self._mechanism)
            self._position = close_step(*given, self._position, ends=ends, call=call, handed=handed)

    def _drop_garbage(self) -> None:
        """Remove items that the position on record does not need: not before, for another file may be there instead."""
        if self._position.kind is not None:
            drop_garbage(self._place, self._position.parts, self._position.step)

    def _fingerprint(self, step: int) -> str:
        found = records.read_step(self._state, step)
        return NOTHING if found is None else found.fingerprint

    def _named(self, step: int) -> str:
        return str(self._creation.end_of(step))


def _require_calendar(plan: StreamPlan, timeline: Timeline) -> None:
    """Check that a plan counts weeks, months, quarters and years by the clock of the stream."""
    for query in plan.queries:
        window = query.window
        if isinstance(window, PeriodFamily) and window.calendar not in (None, found := Calendar.of(timeline)):
            raise InputError(
                f"the plan has {window} by the calendar of {window.calendar}, and the stream that of {found}: give "
                "StreamPlan the start, step and time_zone that the stream is created with"
            )


def _restored(state: StateFile) -> tuple[Creation, Mechanism]:
    try:
        with state.guarded() as connection:
            creation = records.read_creation(connection)
    except ValueError:
        raise damaged(state.path) from None
    try:
        return creation, Mechanism.of(creation.metadata(1))
    except (*BAD_VALUES, ValueError, BudgetExceededError) as error:
        raise InputError(
            f"this version of dpwindows ({__version__}) cannot go on with the stream {state.path}, made with "
            f"{creation.described.get('versions', {}).get('dpwindows', 'another version')}: {error}"
        ) from error
