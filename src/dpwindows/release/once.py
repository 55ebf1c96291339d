"""One batch release under a ledger: refused before data are read, found again, or spent for, drawn and stored.

The order of things is what the guarantee rests on:

1. a request that does not fit is refused before any data is read, unless the same request was paid for before (then
   the data must be read to see whether they are the same);
2. the exact answers are counted, and under the ledger's turn, which one process holds at a time,
3. the stored release of the same request on the same answers is returned, if there is one; or else
4. the budget is spent, then noise is drawn, then the release is stored, then it is returned.

**A retry costs nothing.** If an entry was recorded for the same request on the same answers, and its release was never
stored, because a process or a connection ended in between, 4 goes on with that entry and spends nothing. Its first
draw, if there was one, was seen by nobody (but for who reads what a server logs: docs/ledger.md). Of several draws for
one entry the first that is stored is kept, and all return it. *Proof that one charge pays for it:* which draw is kept
is decided by when processes and connections end, and never by the numbers: between drawing and storing they are decoded
and made to agree, and where the latter fails they are stored without (`run._agreed`). So what is kept has the law of
one draw.
(How long a draw takes may depend on its noise. Whoever kills by the clock, again and again, is the operator, who has
the log.)

**Durable before visible.** Each of spending and storing is on disk when it returns, and so is a stored release before
it is returned (`ledger.store`): whatever anybody sees can be had again after a loss of power, to the last bit.

**Of two processes with the same request at once** one draws; the other waits for its turn and finds what was stored. A
turn that was lost with its connection does no harm: both go on with one entry.

**Exit 2 means that nothing was spent.** An `InputError` leaves this module from steps 1 to 3 and from a refusal to
spend; whatever goes wrong after the budget was recorded is an `EngineError` that says so.

Whoever writes the release to a file claims the file's name before step 1 and writes after step 4: the same command
writes it again if that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpwindows.errors import EngineError, InputError, OverBudgetError
from dpwindows.ledger.ledger import Ledger
from dpwindows.ledger.request import Request
from dpwindows.plan.description import asked_of
from dpwindows.release import files as release_files
from dpwindows.release.release import Release

if TYPE_CHECKING:
    from dpwindows.count.answers import ExactAnswers
    from dpwindows.count.events import EventColumns
    from dpwindows.count.groups import GroupedAnswers
    from dpwindows.plan.planned import Planned


@dataclass(frozen=True)
class Outcome:
    """A release, and whether it was stored already, so that nothing was spent."""

    release: Release
    stored: bool


def release_once(
    ledger: Ledger,
    request: Request,
    read: Callable[[], ExactAnswers | GroupedAnswers],
    draw: Callable[[ExactAnswers | GroupedAnswers, dict[str, Any]], Release],
) -> Outcome:
    """Release under a ledger; see the module. `draw` adds noise to what `read` counts, and its dictionary to metadata.

    Raises:
        OverBudgetError: the request does not fit what is left.
        InputError: the dataset does not admit it, or what `read` raises.
        EngineError: the ledger cannot be written, or what `read` raises.
    """
    _require_room(ledger, request)
    answers = read()
    fingerprint = ledger.fingerprint(answers)
    with ledger.turn():
        found = ledger.stored(request, fingerprint)
        if found is not None:
            return Outcome(Release(*release_files.from_bytes(found)), stored=True)
        number = ledger.spend(request, fingerprint=fingerprint)
        try:
            release = draw(answers, {"ledger": {"dataset": ledger.dataset, "entry": number}})
            content = release_files.to_bytes(release.table, release.metadata)
            kept = ledger.store(number, release.metadata["release_id"], content)
            return Outcome(Release(*release_files.from_bytes(kept)), stored=kept != content)
        except (InputError, EngineError) as error:
            raise EngineError(
                f"{error}. The budget of entry {number} is spent, the numbers drawn for it were discarded and nothing "
                "was published. Run the same again: it draws for that entry, and spends nothing more"
            ) from error


def _require_room(ledger: Ledger, request: Request) -> None:
    """Check that a request fits what is left or was paid for, before a log is read for it; raises as `release_once`."""
    try:
        ledger.require_room(request)
    except OverBudgetError:
        # Whether it was paid for on these data, only the data tell.
        if not ledger.holds(request):
            raise


def batch_request(plan: Planned, columns: EventColumns) -> Request:
    """The request of one batch release of a plan, from a log whose rows are read so."""
    return Request("release", asked_of(plan), plan.budget, plan.unit, plan.timeline, columns, plan.singleton)
