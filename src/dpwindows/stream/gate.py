"""The only way out for a stream's rows: each is handed out after its step is on disk and on record."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pyarrow as pa

from dpwindows.errors import EngineError, InputError
from dpwindows.stream import records, stream_ledger
from dpwindows.stream.mark import HiddenMarkError, Mark, mark_path, read_mark, write_mark
from dpwindows.stream.records import Creation
from dpwindows.stream.state_file import StateFile

if TYPE_CHECKING:
    from dpwindows.ledger.ledger import Ledger, Position

_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)


class Gate:
    """Stands between a state and everybody else; see `let_out`."""

    def __init__(self, state: StateFile, creation: Creation, ledger: Ledger | None) -> None:
        """For one open state and the ledger that it was paid from."""
        self._state, self._creation, self._ledger = state, creation, ledger
        self._refusal: InputError | None = None

    def let_out(self, first: int, last: int) -> pa.Table:
        """The stored rows of some closed steps.

        Invariant: a row leaves only when its step is in the state file itself and on disk, the mark beside it, on disk
        too, says that it may have left, and the ledger, if there is one, has the state's position on record by its
        random token. So what somebody saw is never drawn again: not after a crash or a power failure, whatever becomes
        of the log; not by a state that was rolled back where it lies; and under a ledger not by any copy.

        Raises:
            StateBehindLedgerError, InputError: the ledger does not know this state at this position. It never will,
                so that whatever else is asked of this gate is refused with the same error.
            EngineError: the state lost steps that were published, or something cannot be written. Nothing left.
        """
        self.clear()
        return records.read_released(self._state, first, last)

    def clear(self) -> None:
        """Establish the invariant for all closed steps, or raise, as `let_out` says."""
        if self._refusal is not None:
            raise self._refusal
        self._state.settle()
        closed = records.last_step(self._state)
        reached = Mark.of(self._creation.state_id, closed, self._token(closed))
        marked = self._marked(reached)
        try:
            recorded = self._position(closed)
            self._require_no_loss(marked, closed)
            if self._ledger is not None and recorded is not None and recorded.step < closed:
                self._ledger.advance(reached.state_id, recorded.step, recorded.token, closed, self._token(closed))
        except InputError as refusal:
            self._refusal = refusal
            raise
        if marked != reached:
            self._raise_mark(reached)

    def _position(self, closed: int) -> Position | None:
        if self._ledger is None:
            return None
        return stream_ledger.require_ours(self._ledger, self._creation.state_id, closed, self._token)

    def _marked(self, reached: Mark) -> Mark | None:
        try:
            return read_mark(self._state.path)
        except HiddenMarkError:
            if not self._state.read_only:
                raise
            # Whoever may read the state and not its mark cannot go on with it, and draws nothing.
            return reached

    def _token(self, step: int) -> str:
        return records.token_of(self._state, self._creation, step)

    def _require_no_loss(self, marked: Mark | None, closed: int) -> None:
        """Check that the state has been where the mark beside it is."""
        if not covers(self._state, self._creation, marked):
            assert marked is not None, "no mark is covered"
            raise EngineError(
                f"the state {self._state.path} is damaged, or was put back to an earlier one: it does not agree with "
                f"its checksums in {mark_path(self._state.path)}. It lost steps that were published, up to step "
                f"{marked.step} where it is at step {closed}, and would publish them again with other noise. Put the "
                "newest state back; if it is lost, create a new stream, which spends its own budget"
            )

    def _raise_mark(self, mark: Mark) -> None:
        try:
            write_mark(self._state.path, mark)
        except EngineError as error:
            # A reader may lie on a disk that cannot be written. It draws nothing, and what it reads is on disk.
            if not (self._state.read_only and getattr(error.__cause__, "errno", None) in _UNWRITABLE):
                raise


def covers(state: StateFile, creation: Creation, marked: Mark | None) -> bool:
    """True if a state has been where a mark is; a mark of another stream, and none at all, say nothing of it."""
    if marked is None or marked.state_id != creation.state_id:
        return True
    if marked.step > records.last_step(state):
        return False
    return marked == Mark.of(creation.state_id, marked.step, records.token_of(state, creation, marked.step))
