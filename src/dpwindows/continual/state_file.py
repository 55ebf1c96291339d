"""The file a stream lives in: one DuckDB database, readable by its owner only, open in one process at a time.

- *Private from its creation*: files are made under a umask that leaves mode 0600, not changed to it afterwards.
- *Whole or not there*: a new state is filled under another name, and its own name appears when it can be used.
- *Durable*: when `transaction` returns, what it did is on disk, and so is the folder's record of the log it is in.
  Whatever happens before leaves the state as it was.
- *One at a time*: the engine locks the file; another process, or this one again, is told so.

DuckDB keeps a checksum of every block and of every record of its log; the format is that of version 1.4 and later.
Messages name the file and what is wrong with it, never what is in it.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from dpwindows.engines.dialect import quote_text
from dpwindows.errors import EngineError, InputError
from dpwindows.events import EngineSettings

_STORAGE = "v1.4.0"
_SCHEMA = "dpwindows_state"
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


class StateFile:
    """An open state file. Make it with `create_state`, open it with `StateFile(path)`, and close it.

    Raises:
        InputError: there is no such file, or it is no DuckDB database.
        EngineError: it is in use, damaged or cannot be read or written.
    """

    def __init__(self, path: Path, *, read_only: bool = False, settings: EngineSettings | None = None) -> None:
        # By its real name: the engine's log is found beside it.
        self.path, self.read_only = path.resolve(), read_only
        self._failed = False
        self._release = weakref.finalize(self, _claims.discard, _claimed(self.path))
        try:
            _require_database(self.path)
            mode = "READ_ONLY" if read_only else "READ_WRITE"
            self._connection, self._scratch = _attached(self.path, mode, settings or EngineSettings())
        except BaseException:
            self._release()
            raise

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The engine, with the state as its default database.

        Raises:
            EngineError: an earlier failure left it unusable.
        """
        if self._failed:
            raise EngineError(f"the state {self.path} was closed after a failure: open it again")
        return self._connection

    @contextmanager
    def guarded(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Use the engine; turn its failures into our errors, and leave the state alone after one."""
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
        """End a transaction; separate so that tests can interrupt it."""
        with _private_files():
            self._connection.execute("COMMIT")
        try:
            _settle_folder(self.path)
        except OSError as error:
            self._failed = True
            raise EngineError(
                f"the folder of {self.path} cannot be written to disk: {error.strerror or error}. Nothing that was "
                "committed is lost: mend that, and run the same again"
            ) from None

    def _shorten_log(self, connection: duckdb.DuckDBPyConnection) -> None:
        log = _log_of(self.path)
        if log.exists() and log.stat().st_size > _LONGEST_LOG:
            with _private_files():
                connection.execute("CHECKPOINT")

    def close(self) -> None:
        """Fold the log into the file and let it go. A failure here loses nothing: the log stays."""
        with suppress(duckdb.Error, OSError), _private_files():
            if not (self._failed or self.read_only):
                self._connection.execute("CHECKPOINT")
        with suppress(duckdb.Error, OSError), _private_files():
            self._connection.close()
        self._failed = True
        self._scratch.cleanup()
        self._release()


def create_state(path: Path, fill: Callable[[duckdb.DuckDBPyConnection], None], before_use: Callable[[], None]) -> None:
    """Make a new state file.

    Args:
        path: where; nothing may be there.
        fill: writes what belongs into it, in one transaction.
        before_use: called when the content is on disk, before the file gets its name; if it fails there is no file.

    Raises:
        InputError: something is there already, or there is no such folder.
        EngineError: the file cannot be written.
    """
    require_new(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        _fill(draft, path, fill)
        before_use()
        _name(draft, path)
    finally:
        for leftover in (draft, _log_of(draft)):
            leftover.unlink(missing_ok=True)


def require_new(path: Path) -> None:
    """Check that a state may be made at a path.

    Raises:
        InputError: something is there already, or there is no such folder.
        EngineError: the folder cannot be written to.
    """
    if not path.name:
        raise InputError(f"{path} is a folder; the state of a stream is a file")
    if not path.parent.is_dir():
        raise InputError(f"the folder of the state does not exist: {path.parent}")
    for existing in (path, _log_of(path)):
        if existing.exists() or existing.is_symlink():
            raise InputError(f"{existing} exists already: a stream is created once; name another state")
    if not os.access(path.parent, os.W_OK):
        raise EngineError(f"the folder of the state cannot be written to: {path.parent}")


def _fill(draft: Path, path: Path, fill: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
    try:
        connection, scratch = _attached(draft, f"STORAGE_VERSION '{_STORAGE}'", EngineSettings())
        with scratch, connection:
            connection.execute("BEGIN")
            fill(connection)
            with _private_files():
                connection.execute("COMMIT")
                connection.execute("CHECKPOINT")
        with draft.open("rb") as file:
            os.fsync(file.fileno())
    except duckdb.Error as error:
        raise state_error(path, error) from None
    except OSError as error:
        raise EngineError(f"the state {path} cannot be written: {error.strerror or error}") from None


def _name(draft: Path, path: Path) -> None:
    """Give the draft its name, unless something else has it by now."""
    try:
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            raise InputError(f"{path} exists already: a stream is created once; name another state") from None
        except OSError:  # a file system without hard links
            require_new(path)
            draft.replace(path)
        _settle_folder(path)
    except OSError as error:
        raise EngineError(f"the state {path} cannot be written: {error.strerror or error}") from None


def _require_database(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(12)
    except OSError as error:
        raise EngineError(f"the state {path} cannot be read: {error.strerror or error}") from None
    if head[8:] != b"DUCK":
        raise InputError(f"{path} is not the state of a stream: it is empty or of another kind")


def _attached(
    path: Path, mode: str, settings: EngineSettings
) -> tuple[duckdb.DuckDBPyConnection, tempfile.TemporaryDirectory[str]]:
    """An engine in memory with the file as its default database, and the private directory that it spills to."""
    try:
        scratch = tempfile.TemporaryDirectory(prefix="dpwindows-", dir=settings.spill_directory)
    except OSError as error:
        raise EngineError(f"no directory to spill to can be made: {error.strerror or error}") from None
    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": scratch.name,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "python_enable_replacements": False,
    }
    if settings.memory_limit is not None:
        config["memory_limit"] = settings.memory_limit.strip()
    if settings.threads is not None:
        config["threads"] = settings.threads
    try:
        connection = duckdb.connect(":memory:", config=config)
        with _private_files():
            connection.execute(f"ATTACH {quote_text(str(path))} AS {_SCHEMA} (TYPE duckdb, {mode})")
        connection.execute(f"USE {_SCHEMA}")
        # Commits write to the log only; it is folded in where we say so.
        connection.execute("SET wal_autocheckpoint = '1TB'")
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
    if any(sign in text for sign in _DAMAGE) or isinstance(error, duckdb.SerializationException):
        return EngineError(
            f"the state {path} is damaged or cut short: a backup may go on where it is the last step that the ledger "
            "has on record; otherwise create a new stream"
        )
    return EngineError(f"the engine failed on the state {path} ({type(error).__name__})")


def in_use(path: Path) -> EngineError:
    """The error for a state that someone else has open."""
    return EngineError(f"the stream {path} is in use by another process or stream object: try again when it is done")


# --- what a process may do but once -------------------------------------------------------------------------------

_lock = threading.Lock()
_claims: set[tuple[int, int]] = set()
_masked = 0
_mask = 0


def _claimed(path: Path) -> tuple[int, int]:
    """This process's only use of a file; the engine's lock keeps out other processes, and not in every version ours.

    It is claimed before it is opened: closing any handle of a file gives up the process's lock on it.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; the state of a stream is a file")
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


@contextmanager
def _private_files() -> Iterator[None]:
    """Files made meanwhile, by any thread, are for their owner only; the last to leave restores the umask."""
    global _masked, _mask
    with _lock:
        if _masked == 0:
            _mask = os.umask(0o077)
        _masked += 1
    try:
        yield
    finally:
        with _lock:
            _masked -= 1
            if _masked == 0:
                os.umask(_mask)


def _log_of(path: Path) -> Path:
    """The engine's write-ahead log."""
    return path.with_name(path.name + ".wal")


def _settle_folder(path: Path) -> None:
    """Make the folder's record of new files durable."""
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
