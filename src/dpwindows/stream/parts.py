"""A private folder beside the state: parts as Parquet files; DuckDB reads, joins and writes, and keeps nothing.

A file is written once, under a name that holds its step and a random token, and never changed. (The name does not end
in `.parquet`: whoever reads a folder of events takes no items for events.) A file counts if the manifest of the state
names it, with its size and checksum; what no manifest names is garbage, of an attempt that was interrupted or of a step
before the last compaction. It is removed after the next commit, and never before: until then an earlier state may have
to be put right again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dpwindows.count.dialects.duckdb import DIALECT
from dpwindows.count.events import EngineSettings
from dpwindows.count.query.dialect import quote_text
from dpwindows.durable import sync_file, sync_folder
from dpwindows.errors import EngineError
from dpwindows.stream.engine import Engine
from dpwindows.stream.given_events import Given, Handed, hand_over, sql_type_of
from dpwindows.stream.place import Manifest, Name, Part
from dpwindows.stream.store import damaged, disk_error

_FORMAT = "FORMAT parquet, COMPRESSION snappy, USE_TMP_FILE false"


class LocalFolder:
    """The place (`place.Place`) of a stream whose items lie beside its state."""

    dialect, handed, shared = DIALECT, "handed", False

    def __init__(self, state: Path, folder: Path, settings: EngineSettings) -> None:
        self._state, self._folder, self._settings = state, folder, settings
        self._engine = Engine(state, settings)
        self._whole: set[Part] = set()

    def item_type(self, kind: str) -> str:
        """As `Place` says."""
        return sql_type_of(kind)

    def hand_over(self, given: Given) -> Handed:
        """As `Place` says."""
        return hand_over(self._engine, given, self._settings)

    def keep(self, name: Name, step: int, query: str) -> Part | None:
        """As `Place` says. Raises `EngineError` where the disk fails."""
        path = self._folder / str(name)
        try:
            # The engine writes into a file that only its owner may read, and would make one that others may.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with self._engine.guarded() as connection:
                copied = connection.execute(f"COPY ({query}) TO {quote_text(str(path))} ({_FORMAT})").fetchall()
            part = Part(str(name), step, int(copied[0][0]), *_seen(path))
        except (EngineError, OSError) as error:
            # A disk may be full of it.
            with suppress(OSError):
                path.unlink(missing_ok=True)
            if isinstance(error, EngineError):
                raise
            raise disk_error(self._state, f"{error.strerror or error} in {self._folder}") from None
        if part.rows == 0:
            path.unlink()
            return None
        self._whole.add(part)
        return part

    def rows(self, part: Part) -> str:
        """As `Place` says, once its bytes are known to be those that were written. Raises `EngineError` if not."""
        path = self._folder / part.name
        if part not in self._whole:
            try:
                whole = (part.size, part.digest) == _seen(path)
            except FileNotFoundError:
                raise damaged(
                    self._state, f"{path} is missing, which holds items. Put the folder of this state back as it was"
                ) from None
            except OSError as error:
                raise EngineError(f"{path} cannot be read: {error.strerror or error}") from None
            if not whole:
                raise damaged(self._state, f"{path} is not as it was written")
            self._whole.add(part)
        return f"SELECT * FROM read_parquet({quote_text(str(path))})"

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """As `Place` says."""
        with self._engine.guarded() as connection:
            return connection.execute(query).fetchall()

    def settle(self, parts: Manifest) -> None:
        """As `Place` says: on disk. Raises `EngineError` where it fails."""
        try:
            for part in parts:
                sync_file(self._folder / part.name)
            if parts:
                sync_folder(self._folder)
        except OSError as error:
            raise disk_error(self._state, f"{error.strerror or error} in {self._folder}") from None

    def names(self) -> Iterable[str]:
        """As `Place` says."""
        with suppress(OSError):
            return [path.name for path in self._folder.iterdir()]
        return []

    def remove(self, name: str) -> None:
        """As `Place` says."""
        with suppress(OSError):
            (self._folder / name).unlink(missing_ok=True)

    def forget(self) -> None:
        """As `Place` says."""
        self._engine.forget()

    def close(self) -> None:
        """As `Place` says."""
        self._engine.close()


def _seen(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return os.fstat(file.fileno()).st_size, digest
