"""Parts of recencies as Parquet files in a private folder beside the state; DuckDB is asked, and keeps nothing.

A file is written once, under a name that holds its step and a random token, and never changed. (The name does not end
in `.parquet`: whoever reads a folder of events takes no items for events.) A file counts if the manifest of the state
names it, with its size and checksum; what no manifest names is garbage, of an attempt that was interrupted or of a step
before the last compaction. It is removed after the next commit, and never before: until then an earlier state may have
to be put right again.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

from dpwindows.count.query.dialect import quote_text
from dpwindows.durable import sync_file, sync_folder
from dpwindows.errors import EngineError
from dpwindows.stream.engine import Engine
from dpwindows.stream.recencies import Manifest, Part, Shape
from dpwindows.stream.step_counts import Change
from dpwindows.stream.store import damaged, disk_error

_FORMAT = "FORMAT parquet, COMPRESSION snappy, USE_TMP_FILE false"
_NAMED = re.compile(r"step=[0-9]+-token=[0-9a-f]+(-base)?\.items")


class LocalParts:
    """The parts of one state (`recencies.Recencies`), read and written by an engine in memory."""

    def __init__(self, state: Path, folder: Path, engine: Engine, shape: Shape) -> None:
        self._state, self._folder, self._engine, self._shape = state, folder, engine, shape
        self._whole: set[Part] = set()

    def write(self, known: Manifest, step: int, token: str, occurrences: str) -> Part | None:
        """As `Recencies` says; raises `EngineError` where parts cannot be read or written."""
        query = self._shape.step(self._union(known), occurrences, step, once=len(known) < 2)
        return self._written(query, step, f"step={step}-token={token}.items")

    def changes(self, part: Part, oldest: int) -> list[Change]:
        """As `Recencies` says; raises `EngineError` where parts cannot be read or written."""
        query = self._shape.changes(self._read(part), oldest)
        with self._engine.guarded() as connection:
            return [Change(*row) for row in connection.execute(query).fetchall()]

    def compact(self, parts: Manifest, step: int, token: str) -> Manifest:
        """As `Recencies` says; raises `EngineError` where parts cannot be read or written."""
        oldest = self._shape.oldest_after(step)
        if not self._shape.stays:
            parts = tuple(part for part in parts if part.step >= oldest)
        if not self._shape.is_due(parts, step):
            return parts
        others = self._union(parts[1:]) if len(parts) > 1 else None
        query = self._shape.compacted(self._read(parts[0]), others, oldest)
        base = self._written(query, max(part.step for part in parts), f"step={step}-token={token}-base.items")
        return () if base is None else (base,)

    def settle(self, parts: Manifest) -> None:
        """As `Recencies` says; raises `EngineError` where parts cannot be read or written."""
        try:
            for part in parts:
                sync_file(self._folder / part.name)
            if parts:
                sync_folder(self._folder)
        except OSError as error:
            raise disk_error(self._state, f"{error.strerror or error} in {self._folder}") from None

    def drop(self, named: Manifest) -> None:
        """As `Recencies` says; what cannot be removed now is removed another time."""
        names = {part.name for part in named}
        with suppress(OSError):
            for path in self._folder.iterdir():
                if path.name not in names and _NAMED.fullmatch(path.name):
                    path.unlink(missing_ok=True)

    def _written(self, query: str, step: int, name: str) -> Part | None:
        path = self._folder / name
        try:
            # The engine writes into a file that only its owner may read, and would make one that others may.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with self._engine.guarded() as connection:
                copied = connection.execute(f"COPY ({query}) TO {quote_text(str(path))} ({_FORMAT})").fetchall()
            part = Part(name, step, int(copied[0][0]), *_seen(path))
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

    def _union(self, parts: Manifest) -> str:
        """The rows of several parts, in the columns that all parts have."""
        names = ", ".join(self._shape.columns)
        queries = [f"SELECT {names} FROM ({self._read(part)}) AS part" for part in parts]
        return " UNION ALL ".join(queries) if queries else self._shape.nothing()

    def _read(self, part: Part) -> str:
        """The query of a part's rows, once its bytes are known to be those that were written."""
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


def _seen(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return os.fstat(file.fileno()).st_size, digest
