"""The query engine of an open stream: DuckDB in memory, which reads and joins, and keeps nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import duckdb

from dpwindows.count.engines.duckdb import private_engine
from dpwindows.count.events import EngineSettings
from dpwindows.errors import EngineError
from dpwindows.stream.store import disk_error

_DISK = {
    "No space left": "the disk is full",
    "File too large": "the file may not grow any more",
    "quota": "the disk quota is used up",
    "Read-only file system": "the disk is read-only",
    "Permission denied": "permission denied",
    "Input/output error": "the disk fails",
}


class Engine:
    """The engine of one open state, begun when it is first used. Close it."""

    def __init__(self, state: Path, settings: EngineSettings) -> None:
        self._state, self._settings = state, settings
        self._begun = ExitStack()
        self._connection: duckdb.DuckDBPyConnection | None = None

    @contextmanager
    def guarded(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Use the engine; its failures become ours, without their text, which may quote contents.

        Raises:
            EngineError: the engine failed.
        """
        try:
            if self._connection is None:
                self._connection = self._begun.enter_context(private_engine(self._settings))
            yield self._connection
        except duckdb.Error as error:
            raise self._as_ours(error) from None

    def forget(self) -> None:
        """Drop the events of a call."""
        if self._connection is not None:
            with self.guarded() as connection:
                connection.execute("DROP TABLE IF EXISTS handed")

    def close(self) -> None:
        """End the engine and remove what it spilled."""
        self._begun.close()
        self._connection = None

    def _as_ours(self, error: duckdb.Error) -> EngineError:
        text = str(error)
        for sign, meaning in _DISK.items():
            if sign in text:
                return disk_error(self._state, meaning)
        if isinstance(error, duckdb.OutOfMemoryException):
            return EngineError(
                "the engine ran out of memory: raise memory_limit, or give a spill_directory with more room"
            )
        return EngineError(f"the engine failed on the items of {self._state} ({type(error).__name__})")
