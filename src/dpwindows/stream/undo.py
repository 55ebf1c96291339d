"""Keeps, beside a state, the blocks that the engine overwrites while it folds in the log, until it is done.

The engine (DuckDB) writes a checkpoint to free blocks, syncs them, and then one of two headers, synced as well, that
leads to them: up to there the old header leads to the old blocks. Of one kind of block this is not so. Blocks of
metadata hold 64 parts each; the parts that are free are used in a checkpoint, and then the block is written *in place*,
256 KiB under one checksum. If the process is killed in the middle of this write, or the power fails before it is synced
and only some of its sectors arrive, the checksum is wrong, and the old header leads to a block that cannot be read: the
stream would be lost, steps that were published with it.

So `keep` copies the headers and the blocks of metadata to a file beside the state (`.undo`), synced with its name,
before a checkpoint begins; `forget` removes it afterwards; and `take_back` puts the blocks back before anything opens
the state, if the checkpoint did not get as far as its header.

*Why this is sound.* It is an undo log: under the same headers, the bytes of before are right wherever they are put. If
the headers are those that were kept, then no header was written since, the state is what it was before the checkpoint,
and the log, which is removed after the header is synced, is still there. If they are others, a header was written. If
it is whole, all that it leads to was synced before, and what was kept is of no use. If it was cut short itself, as its
checksum tells, the checkpoint did not get as far as its sync, the log is still there, and headers and blocks are put
back. Either way it does not matter how often, or how far, that is done: what was kept stays until all of it is on disk.
A file of kept blocks that is not whole was never relied upon, since it gets its name after its content is on disk, and
nothing is overwritten before.

*What it costs.* The blocks of metadata, and not the file: one for a new state, and about one more for each 100 MB.
"""

from __future__ import annotations

import errno
import hashlib
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from functools import reduce
from operator import xor
from pathlib import Path
from typing import BinaryIO

from dpwindows.durable import require_private, write_atomically
from dpwindows.errors import EngineError

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

# The engine's file: a header of the file, two of the database (one counts), and blocks from there on.
_HEADER = 4096
_HEADERS = 3 * _HEADER
# The engine's checksum of a header: its first word tells what the others add up to.
_SEED, _FACTOR, _WORDS = 5381, 0xBF58476D1CE4E5B9, struct.Struct(f"<{_HEADER // 8}Q")
_MAGIC = b"dpwindows undo 1\n"
_PLACE = struct.Struct("<QQ")
_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


def undo_path(path: Path) -> Path:
    """Where the old blocks of a state are kept during a checkpoint."""
    return path.with_name(path.name + ".undo")


def keep(path: Path, handle: int, blocks: Iterable[int], block_bytes: int) -> None:
    """Keep the headers and these blocks of a state; they are on disk, and so is their file's name, when this returns.

    Args:
        path: the state.
        handle: an open handle of it, which stays open.
        blocks: numbers of the blocks that may be written in place.
        block_bytes: length of a block.

    Raises:
        EngineError: they cannot be read or written.
    """
    places = [(0, _HEADERS), *((_HEADERS + block * block_bytes, block_bytes) for block in sorted(set(blocks)))]
    try:
        content = _packed([(at, _read(handle, at, length)) for at, length in places])
    except OSError as error:
        raise EngineError(f"the state {path} cannot be read: {error.strerror or error}") from error
    write_atomically(undo_path(path), lambda file: Path(file).write_bytes(content), replace=True, private=True)


def forget(path: Path) -> None:
    """Remove what was kept, after the checkpoint is on disk; where it comes back, its headers are old ones."""
    with suppress(OSError):
        undo_path(path).unlink(missing_ok=True)


def take_back(path: Path) -> None:
    """Undo a checkpoint that did not get as far as its header. Nothing else in this process may have the state open.

    A state that another process has open is left alone.

    Raises:
        InputError: others may write what was kept.
        OSError: something cannot be read or written; what was kept stays.
    """
    beside = undo_path(path)
    if not beside.exists():
        return
    require_private(beside, "undo log of a stream")
    try:
        file = path.open("r+b")
    except OSError as error:
        if error.errno in _UNWRITABLE and not _is_needed(path):
            return
        raise
    with file:
        # The engine's own lock, so that nobody is in the middle of a checkpoint.
        if not _locked(file):
            return
        with suppress(FileNotFoundError):
            for at, old in _to_put_back(file, beside):
                _put_back(file, at, old)
            file.flush()
            # Also where a new header was found: as long as it is not on disk, the old one may come back.
            os.fsync(file.fileno())
            beside.unlink()


def _is_needed(path: Path) -> bool:
    with path.open("rb") as file:
        return any(_holds(file, at, len(old)) != old for at, old in _to_put_back(file, undo_path(path)))


def _to_put_back(file: BinaryIO, beside: Path) -> list[tuple[int, bytes]]:
    """The blocks that were kept, if no header was written since; the headers too, if one that was written is torn."""
    kept = _unpacked(beside.read_bytes())
    if not kept:
        return []
    (_, before), now = kept[0], _holds(file, 0, _HEADERS)
    if now == before:
        return kept[1:]
    # An engine whose checksums are others may have written what looks torn from here: then the old ones look so too.
    known = all(map(_is_whole, _headers_of(before)))
    return [*kept[1:], kept[0]] if known and not all(map(_is_whole, _headers_of(now))) else []


def _headers_of(content: bytes) -> list[bytes]:
    return [content[at : at + _HEADER] for at in range(0, _HEADERS, _HEADER)]


def _is_whole(header: bytes) -> bool:
    """Whether a header agrees with the checksum that it begins with."""
    if len(header) < _HEADER:
        return False
    stated, *words = _WORDS.unpack(header)
    return bool(stated == reduce(xor, (word * _FACTOR % (1 << 64) for word in words), _SEED))


def _holds(file: BinaryIO, at: int, length: int) -> bytes:
    file.seek(at)
    return file.read(length)


def _put_back(file: BinaryIO, at: int, old: bytes) -> None:
    if _holds(file, at, len(old)) != old:
        file.seek(at)
        file.write(old)


def _locked(file: BinaryIO) -> bool:
    if fcntl is None:  # pragma: no cover - such systems do not open a file that the engine has open
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _NO_LOCKS
    return True


def _read(handle: int, at: int, length: int) -> bytes:
    """Bytes of an open file; it may end within them."""
    found = bytearray()
    while len(found) < length:
        piece = os.pread(handle, length - len(found), at + len(found))
        if not piece:
            break
        found += piece
    return bytes(found)


def _packed(pieces: list[tuple[int, bytes]]) -> bytes:
    content = b"".join([_MAGIC, *(_PLACE.pack(at, len(piece)) + piece for at, piece in pieces)])
    return content + hashlib.sha256(content).digest()


def _unpacked(content: bytes) -> list[tuple[int, bytes]]:
    """The pieces of a file that is whole; none of one that is not."""
    body, digest = content[:-32], content[-32:]
    if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
        return []
    pieces, at = [], len(_MAGIC)
    while at < len(body):
        place, length = _PLACE.unpack_from(body, at)
        at += _PLACE.size
        pieces.append((place, body[at : at + length]))
        at += length
    return pieces
