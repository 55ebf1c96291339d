"""The only way out for a stream's rows: each is handed out after its step is on disk and on record.

What a stream and its ledger tell each other is here as well: the budget, once, and each position before its rows leave.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import Int64Array
from dpwindows.errors import EngineError, InputError, StateBehindLedgerError
from dpwindows.ledger.store import Kept
from dpwindows.plan.stream_plan import StreamPlan
from dpwindows.release.checks import columns_of
from dpwindows.release.groups import group_columns
from dpwindows.release.release import Release
from dpwindows.stream import records
from dpwindows.stream.copying import copy_state
from dpwindows.stream.mark import HiddenMarkError, Mark, mark_path, read_mark, write_mark
from dpwindows.stream.records import Creation, Position
from dpwindows.stream.store import StateFile, damaged

if TYPE_CHECKING:
    from dpwindows.ledger.ledger import Ledger
    from dpwindows.ledger.ledger import Position as Recorded

_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
# Rules of time zones that change move the end of a step by less, in microseconds: even a day left out is one day.
_RULES_MOVE = 2 * 86_400_000_000


class Gate:
    """Stands between a state and everybody else; see `let_out`."""

    def __init__(
        self, state: StateFile, creation: Creation, ledger: Ledger | None, copy_to: Path | None = None
    ) -> None:
        """For one open state; `ledger` and `copy_to` say where these are now, if they were moved. Close it.

        Raises:
            InputError: there is no such ledger, or one was given for a stream that was created without.
        """
        self._state, self._creation, self._kept = state, creation, Kept()
        self._ledger = _ledger_of(creation, ledger, self._kept)
        self._refusal: InputError | None = None
        self._mark_hidden = False
        # The mark as it is, once it was read: nobody else writes that of a state that is open here.
        self._mark: Mark | None = None
        kept = creation.copy_to
        self._copy_to = copy_to if copy_to is not None or kept is None else Path(kept)
        # The token that the copy has; a copy that was moved to where nobody looked is looked at first.
        self._copied: str | None = None
        self._copy_moved = copy_to is not None
        # What the ledger had on record when it was asked last.
        self._recorded: Recorded | None = None

    def let_out(self, position: Position, first: int, last: int) -> Release:
        """The release of some closed steps, read back from the state.

        Invariant: a row leaves only when its step is on disk, the ledger, if there is one, has the state's position on
        record by its random token, and the mark beside the state says that it may have left. So what somebody saw is
        never drawn again: not after a crash or a power failure; not by a state that was put back where it lies; and
        under a ledger not by any copy.

        Raises:
            StateBehindLedgerError, InputError: the ledger does not know this state at this position. It never will,
                so that whatever else is asked of this gate is refused with the same error.
            EngineError: the state lost steps that were published, or something cannot be written. Nothing left.
        """
        self.clear(position, leaving=True)
        return _release_of(self._state, self._creation, first, last)

    def clear(self, position: Position, *, leaving: bool = False) -> None:
        """Establish the invariant for all closed steps, or raise, as `let_out` says.

        Where no row leaves and no mark is made, it is enough to look at the ledger: what it has on record need not be
        on disk.
        """
        reached = Mark.of(self._creation.state_id, position.step, position.token)
        with self._refused_for_good():
            marked = self._mark or self._marked(reached)
            # A mark that is about to be made must not outlive what it stands for: the step, and its record.
            acting = leaving or marked != reached
            if acting:
                # Another process may have committed the last step, or marked it, and not lived to see it on disk.
                self._state.settle()
            self._require_recorded(position, acting=acting)
            self._require_no_loss(marked, position)
            if marked != reached or self._copy_moved:
                self._copy(position)
            self.record(position)
        if marked != reached:
            self._raise_mark(reached, before=marked)
        self._mark = reached

    def record(self, position: Position) -> None:
        """Put a step on record before the next one is closed: no step stands on one that its ledger does not have.

        Raises:
            StateBehindLedgerError, InputError, EngineError: as `let_out`.
        """
        with self._refused_for_good():
            # If the position that was there last still is.
            if self._ledger is not None and self._recorded is not None and self._recorded.step < position.step:
                self._copy(position)
                self._ledger.advance(self._creation.state_id, *self._recorded, position.step, position.token)
                self._recorded = self._recorded._replace(step=position.step, token=position.token)

    def _copy(self, position: Position) -> None:
        """Bring the copy to a position, so that it is never behind the ledger, the mark or what left."""
        if self._copy_to is not None and self._copied != position.token:
            copy_state(self._state, self._creation, position, lambda step: self._token(position, step), self._copy_to)
            self._copied = position.token

    def close(self) -> None:
        """Let the ledger go."""
        self._kept.close()

    @contextmanager
    def _refused_for_good(self) -> Iterator[None]:
        """Whatever the ledger refuses once is refused from there on."""
        if self._refusal is not None:
            raise self._refusal
        try:
            yield
        except InputError as refusal:
            self._refusal = refusal
            raise

    def _require_recorded(self, position: Position, *, acting: bool) -> None:
        """Check that the position on record is one that this state has been at, with its token.

        If it is not, the state is a backup or a copy, and the steps after it were released by another file: with other
        noise than it would draw. Where a step is about to be recorded, `record` finds that out.
        """
        if self._ledger is None or (acting and self._recorded is not None and self._recorded.step < position.step):
            return
        state_id = self._creation.state_id
        recorded = self._ledger.position(state_id, to_act=acting)
        if recorded.step > position.step or self._token(position, recorded.step) != recorded.token:
            raise StateBehindLedgerError(state_id, recorded_step=recorded.step, known_step=position.step)
        self._recorded = recorded

    def _token(self, position: Position, step: int) -> str:
        """The token of a position that the state has been at."""
        if step in (0, position.step):
            return self._creation.token if step == 0 else position.token
        closed = records.read_step(self._state, step)
        if closed is None:
            raise damaged(self._state.path)
        return closed.token

    def _marked(self, reached: Mark) -> Mark | None:
        try:
            return read_mark(self._state.path)
        except HiddenMarkError:
            # Without a ledger nothing but the mark tells which steps may be seen.
            if not self._state.read_only or self._ledger is None:
                raise
            # Whoever may read the state and not its mark cannot go on with it, and draws nothing.
            self._state.settle()
            self._mark_hidden = True
            return reached

    def _require_no_loss(self, marked: Mark | None, position: Position) -> None:
        """Check that the state, and the ledger, have been where the mark is; that of another stream says nothing.

        A mark is made once its step is on record: a ledger that is behind it was put back, and would let a copy of the
        state publish steps that were published.
        """
        if marked is None or marked.state_id != self._creation.state_id:
            return
        if self._recorded is not None and self._recorded.step < marked.step and not self._mark_hidden:
            raise StateBehindLedgerError(marked.state_id, recorded_step=self._recorded.step, known_step=marked.step)
        behind = marked.step > position.step
        if behind or marked != Mark.of(marked.state_id, marked.step, self._token(position, marked.step)):
            raise EngineError(
                f"the state {self._state.path} is damaged, or was put back to an earlier one: it does not agree with "
                f"its checksums in {mark_path(self._state.path)}. It lost steps that were published, up to step "
                f"{marked.step} where it is at step {position.step}, and would publish them again with other noise. "
                "Put the newest state back; if it is lost, create a new stream, which spends its own budget"
            )

    def _raise_mark(self, mark: Mark, before: Mark | None) -> None:
        try:
            write_mark(self._state.path, mark)
        except EngineError as error:
            # A reader may lie on a disk that cannot be written. It draws nothing, and what it reads is on disk; but a
            # step that neither the ledger nor the mark knows of must not be seen by anyone.
            unseen = before is not None and self._ledger is None
            if unseen or not (self._state.read_only and getattr(error.__cause__, "errno", None) in _UNWRITABLE):
                raise


# --- The budget, once -------------------------------------------------------------------------------------------------


def spend(ledger: Ledger, plan: StreamPlan, creation: Creation) -> None:
    """Pay for a whole stream, before its state can be used.

    Raises:
        OverBudgetError: the dataset's total would be exceeded; nothing was spent.
        InputError: the dataset does not admit the stream.
        EngineError: the ledger cannot be written.
    """
    from dpwindows.ledger.request import Request
    from dpwindows.plan.description import asked_of

    timeline, endless = creation.timeline(plan.horizon or 1), plan.horizon is None
    columns, asked = creation.event_columns, asked_of(plan)
    request = Request("stream", asked, plan.budget, plan.unit, timeline, columns, endless=endless)
    ledger.spend(request, state=creation.state_id, token=creation.token)


def _ledger_of(creation: Creation, given: Ledger | None, kept: Kept) -> Ledger | None:
    """The ledger of a stream: the one given, or else the one it was created with, at the path it had then.

    It is asked on one connection, `kept`, which is the caller's to close.
    """
    if given is not None:
        if creation.ledger is None:
            raise InputError("this stream was created without a ledger: its budget is not on record there")
        return type(given)(given.path, given.dataset, kept=kept)
    if creation.ledger is None:
        return None
    from dpwindows.ledger.ledger import Ledger

    try:
        return Ledger(*creation.ledger, kept=kept)
    except InputError as error:
        raise InputError(
            f"the ledger that this stream was paid from cannot be used ({error}): without it nobody can tell this "
            "state from a copy, and a new one does not know the stream. Put it back, or say where it is, with "
            "--ledger FILE --dataset NAME at every call"
        ) from None


# --- The release of stored rows -----------------------------------------------------------------------------------


def _release_of(state: StateFile, creation: Creation, first: int, last: int) -> Release:
    """The rows of steps `first` to `last` as a release: the same to the last bit, whenever they are asked for."""
    steps = records.read_steps(state, first, last)
    if len(steps) != last - first + 1:
        raise damaged(state.path)
    rows = records.read_released(state, steps, grouped=creation.grouping is not None)
    dated = _dated(creation, rows, _ends(state, creation.timeline(last)))
    metadata = {
        "release_id": records.release_id(creation, steps),
        "released_at": steps[-1].released_at,
        **creation.metadata(last),
        "numbers": dated.num_rows,
        "stream": {"state_id": creation.state_id, "first_step": first, "last_step": last},
        "versions": json.loads(steps[-1].versions),
    }
    return Release(dated.select(columns_of(metadata)), metadata)


def _ends(state: StateFile, timeline: Timeline) -> Int64Array:
    """When the steps of a timeline ended by the rules of its zone when they were closed, shape (T,)."""
    ends, expected = records.read_ends(state, timeline.steps), timeline.boundary_values[1:]
    moved = 0 if timeline.is_integer else _RULES_MOVE
    if len(ends) != len(expected) or ((ends < expected - moved) | (ends > expected + moved)).any():
        raise damaged(state.path)
    return ends


def _dated(creation: Creation, rows: pa.Table, ends: Int64Array) -> pa.Table:
    """The rows with the times of their windows, in the columns of a release."""
    bounds = np.concatenate([[creation.begins], ends])
    integer = isinstance(creation.step, int)
    kind = pa.int64() if integer else pa.timestamp("us", tz=creation.time_zone)
    # Around pa.array, which would import pandas.
    boundaries = pa.Array.from_buffers(kind, len(bounds), [None, pa.py_buffer(bounds)])
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    columns |= {
        "start": boundaries.take(pc.subtract(columns["first_step"], 1)),
        "end": boundaries.take(columns["last_step"]),
        "consistent": pa.nulls(rows.num_rows, pa.int64()),
    }
    if (grouping := creation.grouping) is not None:
        columns |= group_columns(grouping, columns[records.CELL])
    return pa.table(columns)
