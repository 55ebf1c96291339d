"""Refuses a journal that is older than its ledger, for such a journal would undo what was spent since.

The state of a stream, which is such a file too, is looked at in the same way.

Before a transaction changes pages, SQLite writes them to a journal beside the file. Whoever opens the file after a
crash finds the journal and puts these pages back. SQLite goes by the name alone. So a ledger that was moved away
without its journal, written, and moved back would silently be put back to its older state, and so would a ledger with
two names (a hard link, a mounted file) if only one has the journal. Charges made in between would be gone, and their
noise would be drawn again.

Every transaction raises a counter in the first page by 1, and so journals that page. So the counter in the file is that
of the journalled page, or 1 more if the transaction came that far. If it is 2 more, others wrote since. (Every release
writes twice, once to be charged and once to be stored.)

The formats are those of SQLite's documentation ("Database File Format", sections 1.3 and 3).
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from dpwindows.errors import EngineError, InputError

_MAGIC = bytes.fromhex("d9d505f920a163d7")
# The fields of `_Header`, big-endian.
_HEADER = struct.Struct(">5I")
_ALL_THAT_FOLLOW = 0xFFFFFFFF
# Where the first page has its counter, and behind it how many pages the file has.
_COUNTER = struct.Struct(">2I")
_COUNTER_AT = 24
_WRAP = 1 << 32
_MOUNTS = Path("/proc/self/mountinfo")
# Which command shows what a file has on record.
_SHOWN = {"ledger": "ledger", "state": "stream"}

# Files that were looked at, by device and inode, for as long as the process lives: to close one would give up the locks
# that the engine has on it for another thread.
_open: dict[tuple[int, int], int] = {}


def require_one_name(path: Path, what: str = "ledger") -> None:
    """Check that a ledger, or another such file, is found under one name only, as its journal is.

    Raises:
        InputError: it has several, or is a file mounted by itself.
    """
    links = path.stat().st_nlink
    if links > 1:
        raise InputError(
            f"the {what} {str(path)!r} has {links} names (hard links), and what is left of an interrupted write is "
            "found under one of them only: remove all names but one, or use a symbolic link"
        )
    with suppress(OSError):
        mounted = {_unescaped(line.split()[4]) for line in _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()}
        if str(path.resolve()) in mounted:
            raise InputError(
                f"the {what} {str(path)!r} is mounted as a single file, and what is left of an interrupted write lies "
                "beside it, where the other side does not see it: mount its folder instead"
            )


def require_current_journal(path: Path, what: str = "ledger") -> None:
    """Check that a journal beside a ledger, or another such file, was left by the last that wrote it.

    Raises:
        EngineError: it is of an earlier state.
    """
    # SQLite looks beside the file itself, wherever links to it are.
    path = path.resolve()
    journal = path.with_name(path.name + "-journal")
    if not journal.exists():
        return
    try:
        # The file first: while others write, the journal is of the state that was read here, or of a later one.
        head = os.pread(_opened(path), _COUNTER.size, _COUNTER_AT)
        with journal.open("rb") as file:
            found = _before(file)
    except FileNotFoundError:
        return
    except OSError as error:
        raise EngineError(
            f"the {what} {str(path)!r}, or the journal beside it, cannot be read: {error.strerror or error}"
        ) from None
    if found is None:
        return
    (counter, pages), (counter_before, pages_before) = _COUNTER.unpack(head.ljust(_COUNTER.size, b"\0")), found
    ahead = pages - pages_before if counter_before is None else _signed(counter - counter_before) - 1
    if ahead > 0:
        raise EngineError(
            f"the {what} {str(path)!r} was written since {journal.name} was left beside it, which would undo all of "
            "that: it was moved without the journal, or used under another name. Nothing is spent or drawn from it. "
            f"Remove the journal only if 'dpwindows {_SHOWN[what]} show' of a copy without it lists all that was "
            "recorded"
        )


class _Header(NamedTuple):
    """What stands before a stretch of records: how many follow, and the file and the journal they are of."""

    records: int
    nonce: int
    pages_before: int
    sector: int
    page: int


def _header_at(file: BinaryIO, at: int) -> _Header | None:
    file.seek(at)
    head = file.read(len(_MAGIC) + _HEADER.size)
    if len(head) < len(_MAGIC) + _HEADER.size or not head.startswith(_MAGIC):
        return None
    return _Header(*_HEADER.unpack(head[len(_MAGIC) :]))


def _before(file: BinaryIO) -> tuple[int | None, int] | None:
    """The counter before the transaction, if its page is in the journal, and the number of pages.

    None where SQLite takes it for no journal: that of a transaction that ended, or has not begun to write.
    """
    head = _header_at(file, 0)
    if head is None or not (512 <= head.sector <= 1 << 16 and 512 <= head.page <= 1 << 16):
        return None
    for number, content in _records(file, head):
        if number == 1:
            counter, _ = _COUNTER.unpack_from(content, _COUNTER_AT)
            return counter, head.pages_before
    return None if head.pages_before == 0 else (None, head.pages_before)


def _records(file: BinaryIO, first: _Header) -> Iterator[tuple[int, bytes]]:
    """The pages of a journal as they were, with their numbers: each header says how many follow before the next."""
    at, size = 0, first.page + 8
    head: _Header | None = first
    while head:
        file.seek(at := at + first.sector)
        read = 0
        while head.records == _ALL_THAT_FOLLOW or read < head.records:
            record = file.read(size)
            if len(record) < size:
                return
            read += 1
            yield int.from_bytes(record[:4], "big"), record[4:-4]
        at = -(-(at + read * size) // first.sector) * first.sector
        head = _header_at(file, at)


def _signed(difference: int) -> int:
    """The difference of two counters that begin again at 0."""
    return (difference + _WRAP // 2) % _WRAP - _WRAP // 2


def _opened(path: Path) -> int:
    found = path.stat()
    known = found.st_dev, found.st_ino
    if known not in _open:
        _open[known] = os.open(path, os.O_RDONLY)
    return _open[known]


def _unescaped(path: str) -> str:
    """A path as the system lists it, with spaces and such as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)
