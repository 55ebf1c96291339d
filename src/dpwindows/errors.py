"""The two ways a call can fail without being a bug in dpwindows, and what many messages share."""

import difflib
import math
from collections.abc import Sequence
from decimal import Decimal


class InputError(ValueError):
    """What the caller asked for or handed over is wrong; nothing was spent or written.

    The message says what was wrong, what was got and what to do. The command line prints it and exits 2.
    """


class EngineError(RuntimeError):
    """The surroundings failed (disk, lock, engine); nothing was written.

    The command line prints the message and exits 1.
    """


class OverBudgetError(InputError):
    """A dataset's ledger does not hold what was asked for; nothing was read, drawn or recorded."""


class StateBehindLedgerError(InputError):
    """A stream's state is not the one whose last step the ledger recorded: a restored backup, or a copy."""

    def __init__(self, state_id: str, *, recorded_step: int, known_step: int) -> None:
        """Say where the ledger and the state stand."""
        super().__init__(
            f"the ledger has step {recorded_step} on record as the last one of stream {state_id}, and this state, at "
            f"step {known_step}, is not the one it was recorded for: the state (or the ledger) is a restored backup or "
            "a copy, and going on from it would publish steps again with fresh noise. Use the file that the stream "
            "went on in; if it is lost, create a new stream, which spends its own budget"
        )


def near(name: str, available: Sequence[str]) -> str:
    """A question for what is most like a name that is not there, in parentheses; empty if nothing is."""
    folded = {other.lower(): other for other in available}
    close = difflib.get_close_matches(name.lower(), folded, n=1)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""


def percent(share: float, figures: int = 3) -> str:
    """A share such as `12.3%`, with more figures where it would round to all and is not, but for floating errors."""
    shown = format(Decimal(f"{100 * share:.{figures}g}"), "f")
    rounded = shown == "100" and not math.isclose(share, 1.0, rel_tol=1e-12)
    return percent(share, figures + 1) if rounded else f"{shown}%"


def counted(number: int, what: str) -> str:
    """So many of what is named in the singular: `1 row`, `3,000 rows`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def time_text(seconds: float) -> str:
    """About how long something takes, such as `40 s` or `3 hours`."""
    for size, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{max(1, round(seconds)):,} s"
