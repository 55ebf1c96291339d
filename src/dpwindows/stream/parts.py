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
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from dpwindows.count.dialects.duckdb import DIALECT
from dpwindows.count.engines.duckdb import open_events, private_engine, progress_bar
from dpwindows.count.events import EngineSettings
from dpwindows.count.query.dialect import quote_text
from dpwindows.durable import sync_file, sync_folder
from dpwindows.errors import EngineError
from dpwindows.stream.given_events import MOST, Given, Handed, fingerprint_sql, fingerprints_of
from dpwindows.stream.place import Manifest, Name, Part
from dpwindows.stream.store import damaged, disk_error

_FORMAT = "FORMAT parquet, COMPRESSION snappy, USE_TMP_FILE false"
_SIGNED = ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger")
_TEXTS = ("varchar", "enum")
_DISK = {
    "No space left": "the disk is full",
    "File too large": "the file may not grow any more",
    "quota": "the disk quota is used up",
    "Read-only file system": "the disk is read-only",
    "Permission denied": "permission denied",
    "Input/output error": "the disk fails",
}


class LocalFolder:
    """The place (`place.Place`) of a stream whose items lie beside its state."""

    dialect, handed, shared = DIALECT, "handed", False

    def __init__(self, state: Path, folder: Path, settings: EngineSettings) -> None:
        self._state, self._folder, self._settings = state, folder, settings
        self._begun = ExitStack()
        self._used: duckdb.DuckDBPyConnection | None = None
        self._whole: set[Part] = set()

    def item_type(self, kind: str) -> str:
        return "BIGINT" if kind == "integer" else "VARCHAR"

    def hand_over(self, given: Given) -> Handed:
        """As `Place` says: by the engine and the rules of a batch release."""
        source, columns, timeline = given.source, given.columns, given.timeline
        settings, later = self._settings, given.later
        with open_events(
            source, columns, timeline, cap=MOST, table=given.table, settings=settings, later=later
        ) as events:
            reader = events.connection
            reader.execute("SET TimeZone = 'UTC'")
            item_type = reader.sql(events.sql).types[0]
            kind = kind_of(item_type.id, str(item_type))
            # Read and grouped before it leaves that engine, so that whatever is wrong with the events shows there.
            with progress_bar(reader, "reading events", shown=settings.progress):
                item = "hex(item)" if kind == "BLOB" else f"CAST(item AS {self.item_type(kind)})"
                reader.execute(f"CREATE TEMP TABLE grouped AS {given.grouped_sql(DIALECT, events.sql, item)}")
            self._lay_out(reader.table("grouped").to_arrow_reader(), grouped=columns.grouping is not None)
        high, low = (f"CAST(CAST('0x' || substr(hash, {at}, 16) AS UBIGINT) AS HUGEINT)" for at in (1, 17))
        hashed = f"sha256({given.text_of_row(quote_text(given.key))} || item)"
        fingerprints = fingerprints_of(self.ask(fingerprint_sql(self.handed, hashed, high, low, "VARCHAR")))
        if fingerprints:
            given.require_kind(kind)
        return Handed(kind if fingerprints else None, fingerprints)

    def keep(self, name: Name, step: int, query: str) -> Part | None:
        """As `Place` says. Raises `EngineError` where the disk fails."""
        path = self._folder / str(name)
        try:
            # The engine writes into a file that only its owner may read, and would make one that others may.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with self._guarded() as connection:
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
        with self._guarded() as connection:
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
        with suppress(OSError):
            return [path.name for path in self._folder.iterdir()]
        return []

    def remove(self, name: str) -> None:
        with suppress(OSError):
            (self._folder / name).unlink(missing_ok=True)

    def forget(self) -> None:
        if self._used is not None:
            with self._guarded() as connection:
                connection.execute(f"DROP TABLE IF EXISTS {self.handed}")

    def close(self) -> None:
        """As `Place` says; what the engine spilled is removed."""
        self._begun.close()
        self._used = None

    # --- DuckDB -------------------------------------------------------------------------------------------------------

    def _lay_out(self, rows: pa.RecordBatchReader, *, grouped: bool) -> None:
        with self._guarded() as connection:
            connection.register("arriving", rows)
            try:
                # In order of steps, so that reading one step skips the others.
                columns = f"{'cell, ' * grouped}item, step, total"
                connection.execute(
                    f"CREATE OR REPLACE TEMP TABLE {self.handed} AS SELECT {columns} FROM arriving ORDER BY step"
                )
            finally:
                connection.unregister("arriving")

    @contextmanager
    def _guarded(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The engine; its failures become ours, without their text, which may quote contents."""
        try:
            if self._used is None:
                self._used = self._begun.enter_context(private_engine(self._settings))
            yield self._used
        except duckdb.Error as error:
            raise self._as_ours(error) from None

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


def _seen(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return os.fstat(file.fileno()).st_size, digest


def kind_of(type_id: str, type_name: str) -> str:
    """The kind of a column of the engine's type; equal kinds have equal values for equal items.

    Whole decimals are of one kind, as they are the same text however wide their type.
    """
    if type_id in _SIGNED:
        return "integer"
    whole = re.fullmatch(r"DECIMAL\([0-9]+, ?0\)", type_name) is not None
    return "text" if type_id in _TEXTS else "DECIMAL(38,0)" if whole else type_name
