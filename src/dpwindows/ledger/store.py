"""The file a ledger is kept in: one small SQLite database, shared by all who release the same data.

*Why SQLite and not DuckDB*, which the counting uses: several processes must write at once, a row each, and a DuckDB
file admits one process at a time. SQLite comes with Python.

*Durable before anything is drawn.* Every change is one transaction with a rollback journal and `synchronous = EXTRA`:
when it returns, the file is on disk, and so is the folder's record that the journal is gone. (With `FULL` a journal
that comes back after a power failure would roll a spend back.) Writers queue up for the lock.

*Private.* The file is created with mode 0600, not made so afterwards, and SQLite gives its journal the same mode.

*Ours.* The header carries our mark and the version of the tables; anything else is refused and not touched. Rows are
sealed with a keyed hash over all their values and the seal of the row before, so that a damaged or edited record is
noticed. It is no protection against whoever can write the file: the key is in it.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpwindows.errors import EngineError, InputError

# "dpwl" in the header's field for the application, and the version of the tables.
MARK, VERSION = 0x6470776C, 1
# Seconds to wait for another process that writes; a transaction takes milliseconds.
PATIENCE = 30.0

_TABLES = (
    """CREATE TABLE datasets (
        name TEXT PRIMARY KEY, facts TEXT NOT NULL, secret BLOB NOT NULL, entries INTEGER NOT NULL,
        last_seal TEXT NOT NULL, seal TEXT NOT NULL)""",
    """CREATE TABLE entries (
        id INTEGER PRIMARY KEY, dataset TEXT NOT NULL REFERENCES datasets, number INTEGER NOT NULL,
        request_key TEXT NOT NULL, fingerprint TEXT, state TEXT, facts TEXT NOT NULL, seal TEXT NOT NULL,
        UNIQUE (dataset, number))""",
    "CREATE INDEX entries_by_request ON entries (dataset, request_key)",
    """CREATE TABLE releases (
        entry INTEGER PRIMARY KEY REFERENCES entries, release_id TEXT NOT NULL, digest TEXT NOT NULL,
        seal TEXT NOT NULL, content BLOB NOT NULL)""",
    """CREATE TABLE positions (
        state TEXT PRIMARY KEY, dataset TEXT NOT NULL REFERENCES datasets, step INTEGER NOT NULL, token TEXT NOT NULL,
        known_step INTEGER NOT NULL, known_token TEXT NOT NULL, seal TEXT NOT NULL)""",
)
_DURABLE = "PRAGMA synchronous = EXTRA"
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def create_file(path: Path) -> None:
    """Make an empty ledger, or leave the one that is there.

    Raises:
        InputError: there is something else, or no such folder.
        EngineError: the file cannot be written.
    """
    _make_private(path)
    with _connected(path) as connection:
        connection.execute(_DURABLE)
        connection.execute("BEGIN IMMEDIATE")
        if _is_blank(connection):
            _require_private(path)
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {MARK}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        _require_ours(connection, path)
        connection.execute("COMMIT")


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """One transaction that may write: all of it is durable when the block ends, none of it if the block raises.

    Raises:
        InputError: the file is missing, damaged, or no ledger of this version.
        EngineError: it is locked or cannot be written.
    """
    with _transaction(path, "BEGIN IMMEDIATE") as connection:
        yield connection


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """One transaction that reads a consistent state; raises as `writing` does."""
    with _transaction(path, "BEGIN") as connection:
        yield connection


@contextmanager
def turn(path: Path, patience: float) -> Iterator[None]:
    """Hold the right to draw noise for this ledger's releases; one process, or thread, holds it at a time.

    It is a lock on an empty file beside the ledger, which the system lets go of when the process ends, however it
    ends: whoever holds it knows that nobody else is between spending and storing.

    Raises:
        EngineError: another holds it for longer than `patience` seconds, or the file cannot be made.
    """
    beside = path.with_name(path.name + ".lock")
    _make_private(beside)
    deadline = time.monotonic() + patience
    with _connected(beside, patience=0.1) as connection:
        # The first statement to touch the file: anything before it would fail at once where it should wait.
        while True:
            try:
                connection.execute("BEGIN EXCLUSIVE")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _LOCKED:
                    raise
                if time.monotonic() > deadline:
                    raise EngineError(
                        f"another release that uses the ledger {str(path)!r} has been at work for {patience:g} "
                        "seconds: run this one again when it has ended; nothing was spent"
                    ) from None
        yield


@contextmanager
def _transaction(path: Path, begin: str) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise InputError(f"there is no ledger {str(path)!r}: make one with 'dpwindows ledger create'")
    with _connected(path) as connection:
        connection.execute(_DURABLE)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(begin)
        _require_ours(connection, path)
        yield connection
        connection.execute("COMMIT")


@contextmanager
def _connected(path: Path, patience: float | None = None) -> Iterator[sqlite3.Connection]:
    """A connection that never makes a file; what was not committed is undone, and errors become ours."""
    connection = None
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            isolation_level=None,
            timeout=PATIENCE if patience is None else patience,
        )
        yield connection
    except sqlite3.Error as error:
        raise _as_ours(error, path) from error
    finally:
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.rollback()
            connection.close()


def _as_ours(error: sqlite3.Error, path: Path) -> InputError | EngineError:
    # Text that is none comes without a code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in _DAMAGED:
        return InputError(f"{str(path)!r} is not a ledger, or it is damaged ({error})")
    if code in _LOCKED:
        return EngineError(
            f"the ledger {str(path)!r} is locked by another process: try again when that has ended; nothing was spent"
        )
    return EngineError(
        f"the ledger {str(path)!r} cannot be used: {error}. Whatever was about to be spent counts as spent only if "
        "'dpwindows ledger show' lists it"
    )


def _make_private(path: Path) -> None:
    """Make an empty file that only its owner may read; one that is there is not opened, which could drop its locks."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if not path.is_file():
            raise InputError(f"{str(path)!r} is not a file") from None
    except FileNotFoundError:
        raise InputError(f"the folder of {str(path)!r} does not exist") from None
    except OSError as error:
        raise EngineError(f"{str(path)!r} cannot be written: {error.strerror or error}") from error


def _require_private(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        raise InputError(
            f"{str(path)!r} is an empty file that others may read (mode {mode:04o}), and a ledger holds secrets: "
            "remove it, and it is made anew with mode 0600"
        )


def _is_blank(connection: sqlite3.Connection) -> bool:
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    return bool(tables == 0) and _header(connection) == (0, 0)


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    mark, version = _header(connection)
    if mark != MARK:
        raise InputError(f"{str(path)!r} is not a dpwindows ledger: name another file; it was not touched")
    if version != VERSION:
        raise InputError(
            f"the ledger {str(path)!r} is of version {version}, and this dpwindows reads version {VERSION}: "
            "use a newer dpwindows"
        )


def _header(connection: sqlite3.Connection) -> tuple[int, int]:
    mark, version = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    return mark, version
