"""The file that a stream's small state lives in: one SQLite database, readable by its owner only, open in one place.

- *Private from its creation*: the file and its journal are made with mode 0600, not changed to it afterwards, and the
  folder of the items with mode 0700. A file that others may write, or that is somebody else's, is refused.
- *Durable*: a rollback journal and `synchronous = EXTRA`. When `transaction` returns, what it did is on disk, and so is
  the folder's record that the journal is gone. Whatever happens before leaves the state as it was.
- *Durable before it is relied upon*: a process that was killed between committing and the sync of the folder leaves a
  step, or a mark, that others can read and that a power failure could still take back. `settle` syncs the folder.
- *One at a time*: the folder of the items is locked for as long as the state is open; another process, or this one
  again, is told so. So is a process that was forked from the one that opened it. Threads take turns (`turn`).
- *One journal*: what a crash leaves undone is found beside the file, by its name. A state with several names is
  refused, and so is one beside the journal of an earlier state (`dpwindows.ledger.journal`).

All of this rests on what SQLite documents. Messages name the file and what is wrong with it, never what is in it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpwindows.ask.formats import STREAM
from dpwindows.durable import Lock, require_private, sync_folder, try_lock, unlock
from dpwindows.errors import EngineError, InputError
from dpwindows.ledger.database import DURABLE, Kind, opened, require_kind
from dpwindows.ledger.journal import require_current_journal, require_one_name

_TABLES = (
    "CREATE TABLE creation (facts TEXT NOT NULL, digest TEXT NOT NULL)",
    """CREATE TABLE position (
        step INTEGER NOT NULL, token TEXT NOT NULL, kind TEXT, parts TEXT NOT NULL, working BLOB NOT NULL,
        digest TEXT NOT NULL)""",
    """CREATE TABLE steps (
        step INTEGER PRIMARY KEY, ends INTEGER NOT NULL, fingerprint TEXT NOT NULL, token TEXT NOT NULL,
        released_at TEXT NOT NULL, versions TEXT NOT NULL, call_first INTEGER NOT NULL, call_last INTEGER NOT NULL,
        moved TEXT NOT NULL, rows_digest TEXT NOT NULL, digest TEXT NOT NULL)""",
    "CREATE TABLE released (step INTEGER PRIMARY KEY, rows BLOB NOT NULL)",
)
# "dpws" in the header's field for the application.
_SQLITE = b"SQLite format 3\0"
KIND = Kind("the state of a stream", 0x64707773, STREAM, _TABLES)
BACKUP = "a backup may go on where it is the last step that the ledger has on record; otherwise create a new stream"
_KEPT = "Nothing that was committed is lost: mend that, and run the same again"
_DISK = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only",
    sqlite3.SQLITE_IOERR: "the disk fails, or a file may not grow any more",
    sqlite3.SQLITE_CANTOPEN: "the file, or the journal beside it, cannot be opened or written: permission denied",
    sqlite3.SQLITE_PERM: "permission denied",
}


class DamagedError(EngineError):
    """The file of a state, or a part of its items, is damaged, cut short or missing."""


class StateFile:
    """An open state file; see the module. Close it.

    Raises:
        InputError: there is no such file, it is no state of this version, or others may write it.
        EngineError: it is in use, damaged, without its folder of items, or cannot be read or written.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        # By its real name: the journal is found beside it.
        self.path, self.read_only = path.resolve(), read_only
        self.folder = items_folder(self.path)
        self._failed = self._settled = False
        self._process, self._turn = os.getpid(), threading.RLock()
        try:
            self.path.stat()
        except FileNotFoundError:
            raise InputError(f"there is no stream {str(path)!r}: make it with 'dpwindows stream create'") from None
        except OSError as error:
            raise EngineError(f"the state {path} cannot be read: {error.strerror or error}") from None
        # Also where nobody closes it.
        self._unlock = weakref.finalize(self, _unlock, _locked(self.folder, self.path), self._process)
        try:
            require_private(self.folder, "folder of a stream's items")
            require_one_name(self.path, "state")
            self._connection = connected(self.path)
        except BaseException:
            self._unlock()
            raise

    def _require_original(self) -> None:
        if os.getpid() != self._process:
            raise in_use(self.path)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Meanwhile no other thread reads the state and acts on it; a copy of the process that opened it never may.

        Raises:
            EngineError: it is a copy of the process, or a file of the stream is no longer where it was.
        """
        self._require_original()
        for part in (self.path, self.folder):
            if not part.exists():
                raise EngineError(
                    f"{part} was moved or deleted while the stream was open: put it back and open the stream again, or "
                    "move both the state and the folder of its items and open it there. Nothing was changed"
                )
        with self._turn:
            yield

    @contextmanager
    def guarded(self) -> Iterator[sqlite3.Connection]:
        """Use the database; raises `EngineError` where it fails, and from then on: the state is left alone."""
        self._require_original()
        if self._failed:
            raise EngineError(f"the state {self.path} was closed after a failure: open it again")
        try:
            yield self._connection
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._failed = True
            raise state_error(self.path, error) from None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything done inside is on disk when this returns, or none of it ever was."""
        with self.guarded() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            self.commit()

    def commit(self) -> None:
        """End a transaction; separate so that tests can interrupt it."""
        self._connection.execute("COMMIT")
        self._settled = True

    def settle(self) -> None:
        """Return when what other processes committed is on disk, too: the folder knows no journal, and the mark.

        Raises:
            EngineError: the folder cannot be written to disk.
        """
        if self._settled:
            return
        try:
            sync_folder(self.path.parent)
            self._settled = True
        except OSError as error:
            self._failed = True
            raise EngineError(
                f"the folder of {self.path} cannot be written to disk: {error.strerror or error}. {_KEPT}"
            ) from None

    def close(self) -> None:
        """Let the file go; twice is once. A copy of the process that opened it leaves all as it is."""
        if os.getpid() != self._process:
            return
        self._failed = True
        with suppress(sqlite3.Error):
            self._connection.close()
        self._unlock()


def _unlock(lock: int, process: int) -> None:
    """Unlock a folder, also for processes that were forked with it; these leave it alone."""
    if os.getpid() == process:
        unlock(lock)
        os.close(lock)


def items_folder(path: Path) -> Path:
    """Where the items of a state are kept."""
    return path.with_name(path.name + "-items")


def connected(path: Path) -> sqlite3.Connection:
    """A connection to a state, whose journal is undone if a crash left one, and whose tables are as they were made.

    Raises:
        InputError: the file is no state of a stream, of a newer version, or others may write it.
        EngineError: it is damaged, or cannot be read.
    """
    _require_trusted(path)
    connection = None
    try:
        # The database falls back to reading where it may not write.
        connection = opened(path, patience=0)
        connection.execute(DURABLE)
        require_kind(connection, path, KIND, damaged)
        # Another tool may have left it in another mode, which lasts.
        if connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0] != "delete":
            raise EngineError(f"the state {path} is in another journal mode than ours, and cannot be put back to it")
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, (sqlite3.Error, UnicodeDecodeError)):
            raise state_error(path, error) from None
        raise
    return connection


def _require_trusted(path: Path) -> None:
    try:
        require_private(path, "state of a stream")
        journal = journal_of(path)
        with suppress(FileNotFoundError):
            require_private(journal, "journal of a stream")
        require_current_journal(path, "state")
    except OSError as error:
        raise EngineError(f"the state {path} cannot be read: {error.strerror or error}") from None


def _locked(folder: Path, path: Path) -> int:
    """An open handle of the folder, locked until it is closed."""
    try:
        folder.stat()
        # Other systems do not open folders; there the database's own lock tells two writers apart (`records.close`).
        handle = os.open(folder if os.name == "posix" else os.devnull, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except FileNotFoundError:
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) != _SQLITE:
                raise InputError(f"{path} is not the state of a stream, or its first bytes are damaged") from None
        raise DamagedError(
            f"the folder of items {folder} is missing, and the state {path} cannot go on without it: put it back. A "
            "stream is its state and that folder, copied and moved together"
        ) from None
    except OSError as error:
        raise EngineError(f"the folder of items {folder} cannot be read: {error.strerror or error}") from None
    if try_lock(handle) is Lock.ANOTHERS:
        os.close(handle)
        raise in_use(path)
    return handle


def journal_of(path: Path) -> Path:
    """What SQLite keeps beside a file while it writes it."""
    return path.with_name(path.name + "-journal")


def in_use(path: Path) -> EngineError:
    """The error for a state that someone else has open."""
    return EngineError(f"the stream {path} is in use by another process or stream object: try again when it is done")


def damaged(path: Path, how: str = "what it holds does not agree with its checksums") -> DamagedError:
    """The error for a state whose tables, records or parts are not as they were written."""
    return DamagedError(f"the state {path} is damaged: {how}; {BACKUP}")


def state_error(path: Path, error: Exception) -> InputError | EngineError:
    """What the database's failure means for whoever runs the stream; nothing of its text, which may quote contents."""
    # Text that is none comes without a code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return in_use(path)
    if code == sqlite3.SQLITE_NOTADB:
        return InputError(f"{path} is not the state of a stream, or its first bytes are damaged")
    if code == sqlite3.SQLITE_CORRUPT:
        return DamagedError(f"the state {path} is damaged or cut short: {BACKUP}")
    if code in _DISK:
        return disk_error(path, _DISK[code])
    return EngineError(f"the database failed on the state {path} ({getattr(error, 'sqlite_errorname', 'unknown')})")


def disk_error(path: Path, what: str) -> EngineError:
    """The error for a disk that takes no more, or gives nothing back."""
    return EngineError(f"the state {path} cannot be used: {what}. {_KEPT}")


def usable_path(path: str | Path) -> Path:
    """The real path of a state.

    Raises:
        InputError: it names a folder, or lies in none, or is no text or a loop of links.
        EngineError: it cannot be looked at.
    """
    try:
        str(path).encode()
        real = Path(path).resolve()
        # From Python 3.13 on what cannot be resolved is given back; before, resolving it is an error.
        if real.is_symlink():
            raise ValueError("its links lead in a circle")
        folder = not real.name or real.is_dir()
    except UnicodeEncodeError:
        raise InputError(f"the path of a state must be UTF-8 text, which {str(path)!r} is not: name another") from None
    except (ValueError, RuntimeError) as error:
        raise InputError(f"{str(path)!r} is no path of a state: {error}") from None
    except OSError as error:
        raise EngineError(f"the state {path} cannot be read: {error.strerror or error}") from None
    if folder:
        raise InputError(f"{path} is a folder; the state of a stream is a file")
    if not real.parent.is_dir():
        raise InputError(f"the folder of the state does not exist: {real.parent}")
    return real
