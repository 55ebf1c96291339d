"""Messages between a stream and its ledger: the budget, once, and each position before its rows are handed out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpwindows.ask.timeline import Timeline
from dpwindows.errors import InputError
from dpwindows.plan.stream_plan import StreamPlan
from dpwindows.stream.records import Creation

if TYPE_CHECKING:
    from dpwindows.ledger.ledger import Ledger, Position


def spend(ledger: Ledger, plan: StreamPlan, creation: Creation) -> None:
    """Pay for a whole stream, before its state can be used.

    Raises:
        OverBudgetError: the dataset's total would be exceeded; nothing was spent.
        InputError: the dataset does not admit the stream.
        EngineError: the ledger cannot be written.
    """
    ledger.spend(request(plan, creation), state=creation.state_id, token=creation.token)


def request(plan: StreamPlan, creation: Creation) -> Any:
    """The stream as a ledger sees it."""
    from dpwindows.ledger.request import Request
    from dpwindows.plan.description import asked_of

    timeline = Timeline.of_length(creation.start, plan.horizon or 1, creation.step, creation.time_zone)
    asked, columns = asked_of(plan), creation.columns
    return Request("stream", asked, plan.budget, plan.unit, timeline, columns, endless=plan.horizon is None)


def ledger_of(creation: Creation, given: Ledger | None) -> Ledger | None:
    """The ledger of a stream: the one given, or else the one it was created with, at the path it had then.

    Raises:
        InputError: there is no such ledger, or one was given for a stream that was created without.
    """
    if given is not None:
        if creation.ledger is None:
            raise InputError("this stream was created without a ledger: its budget is not on record there")
        return given
    if creation.ledger is None:
        return None
    from dpwindows.ledger.ledger import Ledger

    try:
        return Ledger.open(*creation.ledger)
    except InputError as error:
        raise InputError(
            f"the ledger that this stream was paid from cannot be used ({error}): without it nobody can tell this "
            "state from a copy. If it was moved, say where it is"
        ) from None


def require_ours(ledger: Ledger, state_id: str, closed: int, token_of: Callable[[int], str]) -> Position:
    """The position on record, once it is clear that this state is the one that went on.

    It must be one that this state has been at, with its token. If it is not, the state is a backup or a copy, and the
    steps after it were released by another file: with other noise than it would draw.

    Args:
        ledger: the ledger.
        state_id: of the stream.
        closed: the last step that the state has closed.
        token_of: the token of the position after a step that is closed.

    Raises:
        StateBehindLedgerError: it is such a state.
        InputError: the ledger has no such stream.
        EngineError: the ledger cannot be read.
    """
    from dpwindows.errors import StateBehindLedgerError

    recorded = ledger.position(state_id)
    if recorded.step > closed or token_of(recorded.step) != recorded.token:
        raise StateBehindLedgerError(state_id, recorded_step=recorded.step, known_step=closed)
    return recorded


def is_on_record(ledger: Ledger, state_id: str) -> bool:
    """Whether a stream was paid for.

    Raises:
        InputError: the ledger is damaged.
        EngineError: it cannot be read.
    """
    return any(entry.state == state_id for entry in ledger.book().entries)
