"""The formats of what is written to be read again, each declared here and nowhere else.

Each kind has a number of its own. It is raised when a reader of today could not read what is written from then on, or
would take it for something else. Whatever a version of dpwindows wrote, all later ones read; a newer format is refused
in words. `docs/stability.md` says which changes need a new number, and `tests/golden` holds files of each format.
"""

from __future__ import annotations

import re

from dpwindows.errors import InputError

RELEASE = 1
"""Release files, and the metadata that statements, reports and ledgers take from them."""
PLAN = 1
"""Plan files, and the values of `Plan.to_dict`."""
EXPORT = 1
"""The matrices of a plan, as `dpwindows plan --export` writes them."""
STREAM = 1
"""The state of a stream with its items and its mark."""
LEDGER = 1
"""A ledger, in a file or on a server."""
COUNTS = 1
"""The result of a query that `dpwindows sql` printed."""
TABLES = 1
"""The two tables that `dpwindows publish` writes."""


def require_known(found: object, known: int, what: str) -> None:
    """Check that something is of the format that this version reads; `what` begins the message: "the release is".

    Raises:
        InputError: it is of another one.
    """
    if type(found) is int and found == known:
        return
    newer = type(found) is int and found > known
    mend = "use a newer dpwindows" if newer else "no dpwindows writes that, so use an unchanged copy"
    raise InputError(f"{what} of format {repr(found)[:40]}, and this dpwindows reads format {known}: {mend}")


def mark_of(kind: str, number: int) -> str:
    """The comment by which tables in a database are known as ours, and of which format."""
    return f"dpwindows: {kind}, format {number}"


def is_marked(comment: object, kind: str, known: int, what: str) -> bool:
    """True for the comment of the format that this version reads, False for one that is none of ours.

    Raises:
        InputError: it is ours, and of another format; the message begins with `what`.
    """
    found = re.fullmatch(re.escape(mark_of(kind, 0)[:-1]) + "([0-9]{1,9})", str(comment))
    if found is not None:
        require_known(int(found[1]), known, what)
    return found is not None
