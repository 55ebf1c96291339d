"""Reads SQLite files in write-ahead mode so that nothing appears beside them.

Opening such a file through SQLite, even for reading only, makes the files `-wal` and `-shm` beside it, and a reader
without the right to write leaves them there. A file that nobody has open can be read without them, as immutable. SQLite
then takes no locks and looks for no changes, so it could miss a write meanwhile, or see a part of it. So this is done
only where this module would notice the write.

*What is read is one committed state.* Let the file be looked at (its identity, size and times), then found to have no
`-wal`, `-shm` or `-journal` beside it, then be read, then looked at again with the same result. SQLite removes a
`-wal` only once all of it is in the file and on disk, and keeps it while any of it is not: at the moment when there
was none, the file was the last committed state. Every write (SQLite maps files for reading only) sets
the file's time of modification to the present, in steps of at most two seconds, which the coarsest clock of a file
system takes. When it was first looked at, that time lay further back, so no write leaves it as it was, and none was
made between the two looks. All that was read is of that state; what was committed later lay in a `-wal` and was not
read.

Every other file is opened as SQLite opens it, with its locks and its log: one that is in use, that has a log left by a
crash or copied along, or whose time of modification is ahead of the clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpwindows.count.sources.files import first_bytes
from dpwindows.durable import SQLITE
from dpwindows.errors import EngineError, InputError

_COARSEST_CLOCK = 2.1  # seconds, and a little more
_Look = tuple[int, ...]


@contextmanager
def immutable_while_unchanged(path: Path) -> Iterator[bool]:
    """Whether a file is to be read as immutable meanwhile; if so, what was read counts only if this ends without error.

    It waits until a file that was written a moment ago, and is alone, can be told from one that is written to later.

    Raises:
        EngineError: the file was written to meanwhile. It takes the place of any other error.
        InputError: the file cannot be read.
    """
    # The log lies beside the file itself, wherever links to it lie.
    path = path.resolve()
    try:
        before = _look_at_settled(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    if before is None:
        yield False
        return
    try:
        yield True
    except Exception:
        _require_unchanged(path, before)
        raise
    _require_unchanged(path, before)


def require_whole(path: Path) -> None:
    """Refuse a file that is cut off within its last page: SQLite reads what is missing there as nulls.

    Raises:
        InputError: its size is no whole number of pages.
    """
    try:
        header, size = first_bytes(path, 18), path.stat().st_size
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    page = int.from_bytes(header[16:18], "big") if header.startswith(SQLITE) else 0
    page = 1 << 16 if page == 1 else page
    if page and size % page:
        raise InputError(f"the SQLite file {path} is cut off within a page of {page} bytes: copy it again, whole")


def _require_unchanged(path: Path, before: _Look) -> None:
    if _look(path) != before:
        raise EngineError(
            f"{path} was written to while it was counted, and no count was made: run the same again, when nobody "
            "writes to it or while its writer has it open, or count a copy"
        ) from None


def _look_at_settled(path: Path) -> _Look | None:
    """How the file looks, if no write can leave that as it is and nobody has it open; None if it is not so."""
    if os.name != "posix" or not _is_alone(path):
        return None
    age = _age(path)
    if 0 <= age < _COARSEST_CLOCK:
        time.sleep(_COARSEST_CLOCK - age)
    before = _look(path)
    return before if _is_alone(path) and _age(path) >= _COARSEST_CLOCK else None


def _look(path: Path) -> _Look | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _age(path: Path) -> float:
    """How long ago the file was written to, in seconds."""
    return time.time() - path.stat().st_mtime


def _is_alone(path: Path) -> bool:
    """Whether the file is in write-ahead mode and has none of SQLite's files beside it."""
    if any(os.path.lexists(f"{path}{ending}") for ending in ("-wal", "-shm", "-journal")):
        return False
    return 2 in first_bytes(path, 20)[18:]
