"""The high-water mark beside a state: the last step that was cleared to be published, by its token.

A state that was put back to an earlier one would draw fresh noise for published steps. A ledger notices this; without
one, this small file does. It is written, whole and synced, before any row of its step leaves, and whoever opens the
state compares the two.

It is no part of the state: a state that was moved or copied without its mark goes on and gets a new one. So it notices
a state that was rolled back where it lies, and not a restored backup of both files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from dpwindows.durable import write_atomically
from dpwindows.errors import EngineError
from dpwindows.stream.records import digest

_LONGEST = 4096


class HiddenMarkError(EngineError):
    """There is a mark that this user may not read."""


class Mark(NamedTuple):
    """Where a stream is: its id, its last step, and a digest of that step's random token."""

    state_id: str
    step: int
    token_digest: str

    @classmethod
    def of(cls, state_id: str, step: int, token: str) -> Mark:
        """The mark of a position."""
        return cls(state_id, step, digest(state_id, step, token))


def mark_path(path: Path) -> Path:
    """Where the mark of a state is kept."""
    return path.with_name(path.name + ".mark")


def read_mark(path: Path) -> Mark | None:
    """The mark beside a state, None if there is none.

    Raises:
        HiddenMarkError: this user may not read it.
        EngineError: it is damaged or cannot be read.
    """
    beside = mark_path(path)
    try:
        with beside.open("rb") as file:
            values = json.loads(file.read(_LONGEST))
        mark = Mark(str(values["state_id"]), int(values["step"]), str(values["token_digest"]))
        if values["checksum"] == digest(*mark):
            return mark
    except FileNotFoundError:
        return None
    except PermissionError:
        raise HiddenMarkError(
            f"{beside} cannot be read: permission denied. It holds nothing secret: let whoever reads the state "
            "read it, too"
        ) from None
    except OSError as error:
        raise EngineError(f"{beside} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError):
        pass
    raise EngineError(
        f"{beside} is damaged. It says how far the stream was published: delete it only if you know that the state "
        "beside it is the newest"
    )


def write_mark(path: Path, mark: Mark) -> None:
    """Put a mark beside a state; it is on disk, and so is its name, when this returns.

    Raises:
        EngineError: it cannot be written.
    """
    text = json.dumps(mark._asdict() | {"checksum": digest(*mark)}) + "\n"
    write_atomically(mark_path(path), lambda file: Path(file).write_text(text), replace=True, private=True)
