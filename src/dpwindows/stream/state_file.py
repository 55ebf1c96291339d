"""The file a stream lives in: one DuckDB database, readable by its owner only, open in one process at a time.

- *Private from its creation*: the file and its log are made with mode 0600, not changed to it afterwards, and a file
  that others may write, or that is somebody else's, is refused.
- *Read from the disk*: what recovery reads is synced before it is read. A process that was killed may have left pages
  that the system holds and the disk does not; nothing is decided by these.
- *Durable*: when `transaction` returns, what it did is on disk, and so is the folder's record of the log it is in.
  Whatever happens before leaves the state as it was.
- *Settled*: when `settle` returns, everything is in the file itself, and on disk. The engine drops the end of a log
  that was cut, without a word; after `settle` there is no log whose loss could matter.
- *Never half folded*: what the engine overwrites while it folds the log in is kept beside the file meanwhile (`undo`).
- *One at a time*: the engine locks the file; another process, or this one again, is told so. So is a process that was
  forked from the one that opened it, to which such a lock says nothing. Threads take turns (`turn`).

DuckDB keeps a checksum of every block and of every record of its log; the format is that of version 1.4 and later.
Messages name the file and what is wrong with it, never what is in it.
"""

from __future__ import annotations

import errno
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from dpwindows.count.engines.duckdb import isolated
from dpwindows.count.events import EngineSettings
from dpwindows.count.query.dialect import quote_text
from dpwindows.durable import require_private, sync_file, sync_folder
from dpwindows.errors import EngineError, InputError
from dpwindows.stream import undo
from dpwindows.stream.claims import claimed, give_up, in_use, let_go

STORAGE = "v1.4.0"
DATABASE = "dpwindows_state"
# The engine's log is folded into the file when it has grown to this, and when the state is closed.
_LONGEST_LOG = 64 << 20
_DISK = {
    "No space left": "the disk is full",
    "File too large": "the file may not grow any more",
    "quota": "the disk quota is used up",
    "Read-only file system": "the disk is read-only",
    "Permission denied": "permission denied",
    "read-only mode": "the file or its folder is read-only",
    "Input/output error": "the disk fails",
}
_DAMAGE = ("checksum", "Corrupt", "Could not read enough bytes", "not a valid DuckDB", "WAL", "deserialize")
_BACKUP = "a backup may go on where it is the last step that the ledger has on record; otherwise create a new stream"
# The engine's log, and what newer versions call it while it is folded into the file.
_LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
# What a file system that syncs nothing answers.
_UNSYNCED = (errno.EINVAL, errno.ENOTSUP)


class DamagedError(EngineError):
    """The file of a state is damaged or cut short."""


class TornLogError(EngineError):
    """The log beside a state cannot be read to its end; of the file itself that says nothing."""


class StateFile:
    """An open state file; see the module. Open it with `recovery.open_state`, and close it.

    Raises:
        InputError: there is no such file, it is no DuckDB database, or others may write it.
        DamagedError, TornLogError: it, or its log, is damaged.
        EngineError: it is in use, or cannot be read or written.
    """

    def __init__(self, path: Path, *, read_only: bool = False, settings: EngineSettings | None = None) -> None:
        # By its real name: the engine's log is found beside it.
        self.path, self.read_only = path.resolve(), read_only
        self._failed = False
        self._settled = False
        self._process, self._turn = os.getpid(), threading.RLock()
        claim = claimed(self.path)
        try:
            require_private(self.path, "state of a stream")
            # Kept open for as long as the engine has the file: closing any handle of it gives up the engine's lock.
            self._handle = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            give_up(claim)
            raise EngineError(f"the state {self.path} cannot be read: {error.strerror or error}") from None
        except BaseException:
            give_up(claim)
            raise
        self._release = weakref.finalize(self, let_go, claim, self._handle)
        try:
            _require_database(self.path)
            self._sync()
            mode = "READ_ONLY" if read_only else "READ_WRITE"
            self._connection, self._scratch = attached(self.path, mode, settings or EngineSettings())
        except BaseException:
            self._release()
            raise

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The engine, with the state as its default database.

        Raises:
            EngineError: an earlier failure left it unusable, or this process is a copy of the one that opened it.
        """
        if self._is_copy:
            raise in_use(self.path)
        if self._failed:
            raise EngineError(f"the state {self.path} was closed after a failure: open it again")
        return self._connection

    @property
    def _is_copy(self) -> bool:
        """True in a process that was forked since the file was opened."""
        return os.getpid() != self._process

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Meanwhile no other thread of this process begins anything that reads the state and acts on it.

        Raises:
            EngineError: this process is a copy of the one that opened the state.
        """
        if self._is_copy:
            raise in_use(self.path)
        with self._turn:
            yield

    @contextmanager
    def guarded(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Use the engine; turn its failures into our errors, and leave the state alone after one.

        Raises:
            EngineError: the engine failed, or did before.
        """
        connection = self.connection
        try:
            yield connection
        except duckdb.Error as error:
            self._failed = True
            raise state_error(self.path, error) from None

    @contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Everything done inside is on disk when this returns, or none of it ever was."""
        with self.guarded() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            except BaseException:
                with suppress(duckdb.Error):
                    connection.execute("ROLLBACK")
                raise
            self.commit()
        with self.guarded() as connection:
            self._shorten_log(connection)

    def commit(self) -> None:
        """End a transaction; separate so that tests can interrupt it.

        Raises:
            EngineError: the log cannot be written.
        """
        self._settled = False
        try:
            _make_private(log_of(self.path))
        except OSError as error:
            self._failed = True
            raise EngineError(
                f"the state {self.path} cannot be used: its log cannot be written: {error.strerror or error}. Nothing "
                "that was committed is lost: mend that, and run the same again"
            ) from None
        self._connection.execute("COMMIT")
        try:
            _settle_folder(self.path)
        except OSError as error:
            self._failed = True
            raise EngineError(
                f"the folder of {self.path} cannot be written to disk: {error.strerror or error}. Nothing that was "
                "committed is lost: mend that, and run the same again"
            ) from None

    def settle(self) -> None:
        """Return when everything committed is in the file itself, and on disk, and no log is left.

        Raises:
            TornLogError: the engine found nothing to read in the log, and leaves it.
            EngineError: it cannot be written; what was committed stays in the log, for whoever opens the state next.
        """
        if self._settled:
            return
        if logs_left(self.path):
            with self.guarded() as connection:
                if not self.read_only:
                    self._checkpoint(connection)
        if logs_left(self.path):
            self._failed = True
            raise TornLogError(f"the log beside the state {self.path} could not be folded into it: {_BACKUP}")
        self._sync()
        self._settled = True

    def _sync(self) -> None:
        """Put on disk what the system holds of the file, its log, and the folder's record of both."""
        try:
            _sync_open(self._handle)
            for log in logs_left(self.path):
                with suppress(FileNotFoundError):  # whoever has the state open folded it in meanwhile
                    require_private(log, "log of a stream")
                    sync_file(log)
            sync_folder(self.path.parent)
        except OSError as error:
            self._failed = True
            raise EngineError(
                f"the state {self.path} cannot be written to disk: {error.strerror or error}. Nothing that was "
                "committed is lost: mend that, and run the same again"
            ) from None

    def _shorten_log(self, connection: duckdb.DuckDBPyConnection) -> None:
        log = log_of(self.path)
        if log.exists() and log.stat().st_size > _LONGEST_LOG:
            self._checkpoint(connection)

    def _checkpoint(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Fold the log into the file, so that a file whose folding was cut short can be had back (`undo`)."""
        found = connection.execute(f"SELECT block_id FROM pragma_metadata_info('{DATABASE}')").fetchall()
        sizes = "SELECT block_size FROM pragma_database_size() WHERE database_name = ?"
        (block_bytes,) = connection.execute(sizes, [DATABASE]).fetchall()[0]
        try:
            undo.keep(self.path, self._handle, [block for (block,) in found], block_bytes)
        except EngineError:
            self._failed = True
            raise
        connection.execute("CHECKPOINT")
        undo.forget(self.path)

    def close(self) -> None:
        """Fold the log into the file and let it go. A failure here loses nothing: the log stays.

        A copy of the process that opened it leaves all as it is.
        """
        if self._is_copy:
            return
        with suppress(duckdb.Error, OSError, EngineError):
            if not (self._failed or self.read_only) and logs_left(self.path):
                self._checkpoint(self._connection)
        with suppress(duckdb.Error, OSError):
            self._connection.close()
        self._failed = True
        self._scratch.cleanup()
        self._release()


def usable_path(path: str | Path) -> Path:
    """The real path of a state, which the engine can open.

    Raises:
        InputError: it names a folder, or lies in none, or is no text or a loop of links.
        EngineError: it cannot be looked at.
    """
    try:
        str(path).encode()
        found = Path(path).resolve()
        # From Python 3.13 on what cannot be resolved is given back; before, resolving it is an error.
        if found.is_symlink():
            raise ValueError("its links lead in a circle")
        folder = not found.name or found.is_dir()
    except UnicodeEncodeError:
        raise InputError(f"the path of a state must be UTF-8 text, which {str(path)!r} is not: name another") from None
    except (ValueError, RuntimeError) as error:
        raise InputError(f"{str(path)!r} is no path of a state: {error}") from None
    except OSError as error:
        raise EngineError(f"the state {path} cannot be read: {error.strerror or error}") from None
    if folder:
        raise InputError(f"{path} is a folder; the state of a stream is a file")
    if not found.parent.is_dir():
        raise InputError(f"the folder of the state does not exist: {found.parent}")
    return found


def _require_database(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(12)
    except OSError as error:
        raise EngineError(f"the state {path} cannot be read: {error.strerror or error}") from None
    if head[8:] != b"DUCK":
        raise InputError(f"{path} is not the state of a stream: it is empty or of another kind")


def attached(
    path: Path, mode: str, settings: EngineSettings
) -> tuple[duckdb.DuckDBPyConnection, tempfile.TemporaryDirectory[str]]:
    """An engine in memory with the file as its default database, and the private directory that it spills to.

    Raises:
        InputError, EngineError: the file cannot be opened, or no directory to spill to can be made.
    """
    scratch, config = isolated(settings)
    try:
        connection = duckdb.connect(":memory:", config=config)
        # Commits write to the log only; it is folded in where we say so, and never by the engine when it is let go.
        connection.execute("SET wal_autocheckpoint = '1TB'")
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute(f"ATTACH {quote_text(str(path))} AS {DATABASE} (TYPE duckdb, {mode})")
        connection.execute(f"USE {DATABASE}")
        connection.execute("SET enable_progress_bar = false")
    except duckdb.Error as error:
        scratch.cleanup()
        raise state_error(path, error) from None
    return connection, scratch


def state_error(path: Path, error: duckdb.Error) -> EngineError:
    """What the engine's message means for whoever runs the stream; nothing of its text, which may quote contents."""
    text = str(error)
    if "lock on file" in text or "handle conflict" in text or "already attached" in text:
        return in_use(path)
    if isinstance(error, duckdb.OutOfMemoryException) and "No space" not in text:
        return EngineError("the engine ran out of memory: raise memory_limit, or give a spill_directory with more room")
    for sign, meaning in _DISK.items():
        if sign in text:
            return EngineError(
                f"the state {path} cannot be used: {meaning}. Nothing that was committed is lost: mend that, and run "
                "the same again"
            )
    if "newer version" in text or "storage version" in text:
        return EngineError(f"the state {path} was written with a newer DuckDB: install a newer one")
    if "WAL" in text:
        return TornLogError(f"the log beside the state {path} is damaged or cut short: {_BACKUP}")
    if any(sign in text for sign in _DAMAGE) or isinstance(error, duckdb.SerializationException):
        return DamagedError(f"the state {path} is damaged or cut short: {_BACKUP}")
    return EngineError(f"the engine failed on the state {path} ({type(error).__name__})")


def log_of(path: Path) -> Path:
    """The engine's write-ahead log."""
    return path.with_name(path.name + ".wal")


def logs_left(path: Path) -> list[Path]:
    """The logs beside a state that hold something."""
    found = []
    for ending in _LOGS:
        log = path.with_name(path.name + ending)
        with suppress(FileNotFoundError):
            if log.stat().st_size:
                found.append(log)
    return found


def _make_private(path: Path) -> None:
    """Make an empty file that only its owner may read, before the engine makes one that others may."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _sync_open(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _UNSYNCED:
            raise


def _settle_folder(path: Path) -> None:
    """Make the folder's record of new files durable."""
    sync_folder(path.parent)
