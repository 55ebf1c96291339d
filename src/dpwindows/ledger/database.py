"""An SQLite file of ours, a ledger or the state of a stream: never made by opening it, and known before it is read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dpwindows.ask.formats import require_known
from dpwindows.errors import EngineError, InputError

DURABLE = "PRAGMA synchronous = EXTRA"


class Kind(NamedTuple):
    """A kind of file: what messages call it, and its mark, its format and its tables."""

    name: str
    mark: int
    format: int
    tables: tuple[str, ...]


def opened(path: Path, patience: float) -> sqlite3.Connection:
    """A connection to a file that is there, for any thread; it waits `patience` seconds for a lock."""
    address = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=patience, check_same_thread=False)


def make_tables(connection: sqlite3.Connection, kind: Kind) -> None:
    """Make an empty file one of a kind, inside a transaction."""
    for table in kind.tables:
        connection.execute(table)
    connection.execute(f"PRAGMA application_id = {kind.mark}")
    connection.execute(f"PRAGMA user_version = {kind.format}")


def header(connection: sqlite3.Connection) -> tuple[int, int]:
    """The mark and the format of a file."""
    mark, version = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    return mark, version


def require_kind(
    connection: sqlite3.Connection, path: Path, kind: Kind, damaged: Callable[[Path, str], EngineError]
) -> None:
    """Check that a file is of a kind, with its tables as they were made, before anything is read from it.

    Raises:
        InputError: it is something else, or of a newer format.
        EngineError: `damaged`, if it was of this kind and is not any more.
    """
    mark, version = header(connection)
    whole = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")} == set(
        kind.tables
    )
    if mark != kind.mark and not whole:
        raise InputError(f"{str(path)!r} is not {kind.name}: it is empty or of another kind, and was not touched")
    if mark == kind.mark and version > kind.format:
        require_known(version, kind.format, f"{str(path)!r} is {kind.name}")
    if (mark, version) != (kind.mark, kind.format) or not whole:
        raise damaged(path, "its tables are not as they were made")
