"""Which probes databases have passed, remembered between processes, so that each is asked once and not by every run.

A database is known by its name, what its executor says of it (version, settings, driver and place) and every text that
the probe sends and expects, all in one digest: whatever changes in one of them, it is asked anew. What is kept is an
empty file of this name in the user's own cache folder. It holds nothing of the database, and whoever deletes it has it
asked once more. A failure is never kept, and a folder that cannot be used, or that others may write to, keeps nothing.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path

from dpwindows.count.query.dialect import Dialect
from dpwindows.count.query.probe import probes, refused
from dpwindows.durable import require_private
from dpwindows.errors import InputError


def probe_key(dialect: Dialect, server: str) -> str:
    """What tells a database, as this version asks it, from all others."""
    asked = [(dialect.statement(probe.sql), probe.rows) for probe in probes(dialect)]
    text = repr((dialect.name, server, asked, list(refused(dialect))))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_passed(key: str) -> bool:
    """Whether a probe was passed before; False where nobody can know."""
    with suppress(OSError, RuntimeError, InputError):
        folder = _folder()
        require_private(folder, "cache")
        return (folder / key).is_file()
    return False


def keep_passed(key: str) -> None:
    """Remember that a probe was passed, where that can be done."""
    with suppress(OSError, RuntimeError):
        _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        (_folder() / key).touch(mode=0o600)


def _folder() -> Path:
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", ""))
        # By its specification a relative path is none.
        base = base if base.is_absolute() else Path.home() / ".cache"
    return base / "dpwindows" / "probes"
