"""Keeps one process from opening the file of a state twice.

The engine's lock keeps out other processes, but not this one in every version. A file is claimed before it is opened,
because closing any handle of a file gives up the process's lock on it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpwindows.errors import EngineError, InputError

# Device and inode of a file.
Claim = tuple[int, int]

_lock = threading.Lock()
_claims: set[Claim] = set()


def claimed(path: Path) -> Claim:
    """This process's only use of a file.

    Raises:
        InputError: there is no such file.
        EngineError: it is in use, or cannot be read.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        raise InputError(f"there is no stream {str(path)!r}: make it with 'dpwindows stream create'") from None
    except OSError as error:
        raise EngineError(f"the state {path} cannot be read: {error.strerror or error}") from None
    claim = (found.st_dev, found.st_ino)
    with _lock:
        if claim in _claims:
            raise in_use(path)
        _claims.add(claim)
    return claim


def give_up(claim: Claim) -> None:
    """Let others have the file."""
    _claims.discard(claim)


def let_go(claim: Claim, handle: int) -> None:
    """Close the file, and let others have it."""
    os.close(handle)
    give_up(claim)


@contextmanager
def set_aside(path: Path) -> Iterator[None]:
    """Meanwhile nothing else in this process has the file open, so that it may be read without the engine.

    Raises:
        InputError, EngineError: as `claimed`.
    """
    claim = claimed(path)
    try:
        yield
    finally:
        give_up(claim)


def in_use(path: Path) -> EngineError:
    """The error for a state that someone else has open."""
    return EngineError(f"the stream {path} is in use by another process or stream object: try again when it is done")
