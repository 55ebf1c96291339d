"""The file a ledger is kept in: one small SQLite database, shared by all who release the same data.

*Why SQLite and not DuckDB*, which the counting uses: several processes must write at once, a row each, and a DuckDB
file admits one process at a time. SQLite comes with Python.

*Durable before anything is drawn.* Every change is one transaction with a rollback journal and `synchronous = EXTRA`:
when it returns, the file is on disk, and so is the folder's record that the journal is gone. (With `FULL` a journal
that comes back after a power failure would roll a spend back.) Writers queue up for the lock.

*Durable before it is relied upon.* A process that was killed between committing and the sync of the folder leaves a
record that others can read, and that a power failure could still take back. So whoever acts on a record it did not
write itself syncs the folder first.

*One journal.* What a crash leaves undone is found beside the file, by its name. A ledger with several names is refused,
and so is one beside the journal of an earlier state (`ledger.journal`).

*Private.* The file is created with mode 0600, not made so afterwards, and SQLite gives its journal the same mode. A
file that others can write or replace is refused.

*Ours.* The header carries our mark and a version; anything else is refused and not touched. Rows are sealed
(`ledger.rows`), so that a damaged, edited or missing record is noticed. It is no protection against whoever can write
the file: the key is in it.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dpwindows.ask.formats import LEDGER
from dpwindows.durable import require_private, require_private_folder, sync_folder
from dpwindows.errors import EngineError, InputError
from dpwindows.ledger.database import DURABLE, Kind, header, make_tables, opened, require_kind
from dpwindows.ledger.journal import require_current_journal, require_one_name
from dpwindows.ledger.places import Connection, damaged

T = TypeVar("T")

# Seconds to wait for another process that writes; a transaction takes milliseconds.
PATIENCE = 30.0

_TABLES = (
    """CREATE TABLE datasets (
        name TEXT PRIMARY KEY, facts TEXT NOT NULL, secret BLOB NOT NULL, entries INTEGER NOT NULL,
        last_seal TEXT NOT NULL, seal TEXT NOT NULL)""",
    """CREATE TABLE entries (
        dataset TEXT NOT NULL REFERENCES datasets, number INTEGER NOT NULL,
        request_key TEXT NOT NULL, fingerprint TEXT, state TEXT, facts TEXT NOT NULL, seal TEXT NOT NULL,
        PRIMARY KEY (dataset, number))""",
    """CREATE TABLE releases (
        dataset TEXT NOT NULL, number INTEGER NOT NULL, release_id TEXT NOT NULL, digest TEXT NOT NULL,
        seal TEXT NOT NULL, content BLOB NOT NULL,
        PRIMARY KEY (dataset, number), FOREIGN KEY (dataset, number) REFERENCES entries)""",
    """CREATE TABLE positions (
        state TEXT PRIMARY KEY, dataset TEXT NOT NULL REFERENCES datasets, step INTEGER NOT NULL, token TEXT NOT NULL,
        known_step INTEGER NOT NULL, known_token TEXT NOT NULL, seal TEXT NOT NULL)""",
)
# "dpwl" in the header's field for the application.
KIND = Kind("a ledger", 0x6470776C, LEDGER, _TABLES)
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Kept:
    """A connection that is opened when it is first used, and used again as long as the file is the same. Close it."""

    def __init__(self) -> None:
        self.connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    def to(self, path: Path) -> sqlite3.Connection:
        """The connection to a ledger, from whichever thread."""
        seen = path.stat()
        if self.connection is None or self._file != (seen.st_dev, seen.st_ino):
            self.close()
            self.connection, self._file = opened(path, PATIENCE), (seen.st_dev, seen.st_ino)
        return self.connection

    def close(self) -> None:
        """Let the file go."""
        if self.connection is not None:
            self.connection.close()
        self.connection = None


@dataclass(frozen=True)
class FileStore:
    """A ledger in a file, as `ledger.places.Store`; `kept` is the connection of whoever asks more than once."""

    place: Path
    kept: Kept | None = None

    def create(self) -> None:
        """Make an empty ledger, or leave the one that is there.

        Raises:
            InputError: there is something else, or no such folder.
            EngineError: the file cannot be written.
        """
        path = self.place
        if path.parent.is_dir():
            require_private_folder(path, "ledger")
        _make_private(path)
        require_current_journal(path)
        with _connected(path) as connection:
            connection.execute(DURABLE)
            connection.execute("BEGIN IMMEDIATE")
            if _is_blank(connection):
                _require_private(path)
                make_tables(connection, KIND)
            require_kind(connection, path, KIND, damaged)
            connection.execute("COMMIT")
        _settle(path)

    def require_trusted(self) -> None:
        """Check that a ledger is there, under one name, and that nobody else can change or replace it.

        Raises:
            InputError: it is not there, has several names, or somebody can.
        """
        _require_there(self.place)
        require_private(self.place, "ledger")
        require_one_name(self.place)

    def write(self, act: Callable[[Connection], T]) -> T:
        """What `act` returns, in one transaction: all of it is durable then, and so is what it found; or none of it.

        Raises:
            InputError: the file is missing, no ledger of this version, or not private.
            EngineError: it is damaged, locked, or cannot be written.
        """
        self.require_trusted()
        with self._transaction("BEGIN IMMEDIATE") as connection:
            before = connection.total_changes
            result = act(connection)
            # A commit that changes something syncs the folder itself, before and after it does.
            if connection.total_changes == before:
                _settle(self.place)
        return result

    def read(self, act: Callable[[Connection], T], *, to_act: bool = False) -> T:
        """What `act` returns of one consistent state; raises as `write` does, but anybody's file may be looked at.

        With `to_act`, by which noise is drawn or numbers are published, the file must be nobody else's, and on disk.
        """
        if to_act:
            self.require_trusted()
        with self._transaction("BEGIN") as connection:
            if to_act:
                _settle(self.place)
            return act(connection)

    @contextmanager
    def turn(self, patience: float) -> Iterator[None]:
        """Hold the right to draw noise for this ledger's releases; one process, or thread, holds it at a time.

        It is a lock on an empty file beside the ledger, which the system lets go of when the process ends, however it
        ends: whoever holds it knows that nobody else is between spending and storing.

        Raises:
            EngineError: another holds it for longer than `patience` seconds, or the file cannot be made.
        """
        # One lock, whatever links lead to the ledger.
        beside = self.place.resolve()
        beside = beside.with_name(beside.name + ".lock")
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
                            f"another release that uses the ledger {str(self.place)!r} has been at work for "
                            f"{patience:g} seconds: run this one again when it has ended; nothing was spent"
                        ) from None
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        _require_there(self.place)
        require_current_journal(self.place)
        with _connected(self.place, kept=self.kept) as connection:
            connection.execute(DURABLE)
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(begin)
            require_kind(connection, self.place, KIND, damaged)
            yield connection
            connection.execute("COMMIT")


def _require_there(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"there is no ledger {str(path)!r}: make one with 'dpwindows ledger create'")


@contextmanager
def _connected(path: Path, patience: float | None = None, kept: Kept | None = None) -> Iterator[sqlite3.Connection]:
    """A connection that never makes a file; what was not committed is undone, and errors become ours."""
    connection = None
    try:
        connection = opened(path, PATIENCE if patience is None else patience) if kept is None else kept.to(path)
        yield connection
    except UnicodeDecodeError:
        # The library's own message quotes what it could not read.
        raise damaged(path, "a text in it is none") from None
    except sqlite3.Error as error:
        raise _as_ours(error, path) from error
    finally:
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.rollback()
            if kept is None:
                connection.close()


def _settle(path: Path) -> None:
    """Return when the folder's record of the file, and of a journal that is gone, is on disk."""
    folder = path.resolve().parent
    try:
        sync_folder(folder)
    except OSError as error:
        raise EngineError(
            f"the folder of the ledger {str(path)!r} cannot be written to disk: {error.strerror or error}. Whatever "
            "was about to be spent counts as spent only if 'dpwindows ledger show' lists it"
        ) from error


def _as_ours(error: sqlite3.Error, path: Path) -> InputError | EngineError:
    # Text that is none comes without a code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return InputError(f"{str(path)!r} is not a ledger, or its first bytes are damaged ({error})")
    if code == sqlite3.SQLITE_CORRUPT:
        return damaged(path, error)
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
    return bool(tables == 0) and header(connection) == (0, 0)
