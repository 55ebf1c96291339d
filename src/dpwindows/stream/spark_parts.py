"""A folder that Spark writes: the events are read, joined and counted by Spark, and no item leaves it.

A part is a folder of Parquet files, written by one job and never changed. Spark's commit protocol decides which files
of doubled tasks stay. It is not relied upon: as the rows pass into the files Spark counts them and adds up their
hashes, and both must be what is then read back. From there on a part is the files that were listed, by names and
lengths: these are read, whatever else comes to lie beside them, and one more or less stops the call.

The events of a call are laid out as such a folder too, so that steps, fingerprints and repeated tasks read the same
rows, however the log goes on meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpwindows.count.dialects.spark import DIALECT
from dpwindows.count.engines.spark import running, session_for, session_of, view_of
from dpwindows.count.events import EngineSettings
from dpwindows.count.query.relation import events_sql, unreadable
from dpwindows.count.sources.names import require_columns
from dpwindows.count.sources.spark import malformed, open_frame
from dpwindows.durable import sync_file, sync_folder
from dpwindows.errors import EngineError, InputError
from dpwindows.stream.given_events import (
    MOST,
    Given,
    Handed,
    fingerprint_sql,
    fingerprints_of,
    kind_elsewhere,
)
from dpwindows.stream.place import Manifest, Name, Part
from dpwindows.stream.store import damaged, disk_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CALL = re.compile(r"call-[0-9a-f]{24}")
_ITEM_TYPES = {"integer": "BIGINT", "text": "BINARY"}


class SparkFolder:
    """The place (`place.Place`) of a stream whose items Spark keeps under an address."""

    dialect, shared = DIALECT, True

    def __init__(self, state: Path, root: str, settings: EngineSettings) -> None:
        self._state, self._root, self._settings = state, root, settings
        self._begun = ExitStack()
        self._used: SparkSession | None = None
        self._views: dict[Part, str] = {}
        self.handed = f"dpwindows_{secrets.token_hex(12)}"

    def item_type(self, kind: str) -> str:
        """As `Place` says; text is kept as its bytes."""
        return _ITEM_TYPES[kind]

    def hand_over(self, given: Given) -> Handed:
        """As `Place` says: what Spark reads, a path, the name of a table, or a frame of it."""
        columns = given.columns
        with running(lambda message: malformed(message) or unreadable(message, columns)):
            session = self._session(given.source)
            self.forget()
            with open_frame(session, given.source, columns, given.table) as frame:
                require_columns(columns, frame.columns, "the Spark relation")
                places = {role: frame.columns.index(name) for role, name in columns.roles}
                types = {
                    role: DIALECT.column_of(frame.schema[place].dataType.simpleString())
                    for role, place in places.items()
                }
                kind = kind_elsewhere(types["item"], columns)
                with view_of(session, frame) as view:
                    names = {role: f"c{place}" for role, place in places.items()}
                    place = columns, given.timeline, view, names, types
                    events = events_sql(DIALECT, *place, cap=MOST, later=given.later)
                    grouped = given.grouped_sql(DIALECT, events, f"CAST(item AS {_ITEM_TYPES[kind]})")
                    folder = f"{self._root}/call-{secrets.token_hex(12)}"
                    rows, files = self._written(session, folder, grouped)
        if not rows:
            return Handed(None, {})
        given.require_kind(kind)
        with self._guarded() as session:
            self._read(session, files).createOrReplaceTempView(self.handed)
        item = "item" if kind == "text" else "CAST(CAST(item AS STRING) AS BINARY)"
        high, low = (f"CAST(conv(substr(hash, {at}, 16), 16, 10) AS DECIMAL(20, 0))" for at in (1, 17))
        # A row, and not a literal, which plans, the pages of Spark and its logs of events would show.
        with (
            self._guarded() as session,
            view_of(session, session.createDataFrame([(given.key,)], "key STRING")) as key,
        ):
            row = given.text_of_row(f"(SELECT c0 FROM {key})")
            hashed = f"sha2(concat(CAST({row} AS BINARY), {item}), 256)"
            found = self.ask(fingerprint_sql(self.handed, hashed, high, low, "STRING"))
        return Handed(kind, fingerprints_of(found))

    def keep(self, name: Name, step: int, query: str) -> Part | None:
        folder = f"{self._root}/{name}"
        with self._guarded() as session:
            rows, files = self._written(session, folder, query)
            if not rows:
                self.remove(str(name))
                return None
            return Part(str(name), step, rows, *_digest(files))

    def rows(self, part: Part) -> str:
        """As `Place` says: of the files that it was written in. Raises `DamagedError` if one is not as it was."""
        folder = f"{self._root}/{part.name}"
        with self._guarded() as session:
            files = self._files(session, folder)
            if not files:
                raise damaged(self._state, f"{folder} is missing, which holds items. Put it back as it was")
            if (part.size, part.digest) != _digest(files):
                raise damaged(self._state, f"the files of {folder} are not those that were written")
            if part not in self._views:
                view = f"dpwindows_{secrets.token_hex(12)}"
                self._read(session, files).createOrReplaceTempView(view)
                self._views[part] = view
        return f"SELECT * FROM {self._views[part]}"

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with self._guarded() as session:
            return [tuple(row) for row in session.sql(query).collect()]

    def settle(self, parts: Manifest) -> None:
        """As `Place` says: files on this machine are synced, and others are as durable as their store makes them.

        Raises `EngineError` where a disk fails.
        """
        root = _local(self._root)
        if root is None or not parts:
            return
        try:
            for part in parts:
                for file in (root / part.name).iterdir():
                    sync_file(file)
                sync_folder(root / part.name)
            sync_folder(root)
            sync_folder(root.parent)
        except OSError as error:
            raise disk_error(self._state, f"{error.strerror or error} in {root}") from None

    def names(self) -> Iterable[str]:
        with self._guarded() as session:
            path, system = self._system(session, self._root)
            return (
                [str(status.getPath().getName()) for status in system.listStatus(path)] if system.exists(path) else []
            )

    def remove(self, name: str) -> None:
        with suppress(EngineError), self._guarded() as session:
            path, system = self._system(session, f"{self._root}/{name}")
            system.delete(path, True)

    def forget(self) -> None:
        """As `Place` says; also of calls that were interrupted."""
        if self._used is not None:
            self._used.catalog.dropTempView(self.handed)
            for name in self.names():
                if _CALL.fullmatch(name):
                    self.remove(name)

    def close(self) -> None:
        """As `Place` says; a session of somebody else runs on."""
        if self._used is not None:
            with suppress(Exception):
                for view in (self.handed, *self._views.values()):
                    self._used.catalog.dropTempView(view)
        self._views, self._used = {}, None
        self._begun.close()

    # --- Spark --------------------------------------------------------------------------------------------------------

    def _session(self, source: object = None) -> SparkSession:
        if self._used is None:
            self._used = self._begun.enter_context(session_for(source, self._settings))
            if not hasattr(self._used, "_jvm"):
                raise InputError(
                    "a session of Spark Connect cannot delete files: run the stream where Spark's driver is"
                )
            if self._used.conf.get("spark.sql.ansi.enabled") != "true":
                # Integers that do not fit would wrap: two items become one, and counts fall below 0.
                raise InputError("the stream needs a session of Spark with spark.sql.ansi.enabled set to true")
            if (root := _local(self._root)) is not None:
                root.parent.mkdir(parents=True, exist_ok=True)
                root.mkdir(mode=0o700, exist_ok=True)
        elif session_of(source) not in (None, self._used):
            raise InputError("the events are of another Spark session than the stream's: close and open the stream")
        return self._used

    @contextmanager
    def _guarded(self) -> Iterator[SparkSession]:
        """The session; its failures become ours, and none is the fault of who hands over events."""
        try:
            with running(lambda message: None):
                yield self._session()
        except InputError as error:
            raise EngineError(f"the items at {self._root} cannot be read or written: {error}") from None

    def _written(self, session: SparkSession, folder: str, query: str) -> tuple[int, dict[str, int]]:
        """Write a query's rows: how many, and their files with lengths, once what is in these is what went in."""
        from pyspark.sql import Observation

        frame, passed = session.sql(query), Observation()
        try:
            frame.observe(passed, *_sums(frame)).write.parquet(folder, compression="snappy")
            went_in = dict(passed.get)
            files = self._files(session, folder)
            found = self._read(session, files).select(*_sums(frame)).collect()[0].asDict() if files else {"rows": 0}
        except BaseException:
            with suppress(Exception):
                self.remove(folder.rpartition("/")[2])
            raise
        if went_in["rows"] != found["rows"] or (went_in["rows"] and went_in != found):
            self.remove(folder.rpartition("/")[2])
            raise EngineError(
                f"Spark wrote {went_in['rows']:,} rows, and {found['rows']:,}, or others, are in its files: a task was "
                "doubled or lost. Nothing was released; run the same again"
            )
        return int(went_in["rows"]), files

    def _read(self, session: SparkSession, files: dict[str, int]) -> DataFrame:
        # A file that is damaged or missing must stop the query, whatever the session of somebody else makes of one.
        strict = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
        return session.read.options(**strict).parquet(*files)

    def _files(self, session: SparkSession, folder: str) -> dict[str, int]:
        """The files of rows in a folder, as addresses, and their lengths."""
        path, system = self._system(session, folder)
        if not system.exists(path):
            return {}
        listed = [(status.getPath(), status.getLen()) for status in system.listStatus(path)]
        kept = [(file, length) for file, length in listed if not str(file.getName()).startswith(("_", "."))]
        return {str(file.toString()): int(length) for file, length in sorted(kept, key=lambda pair: str(pair[0]))}

    def _system(self, session: SparkSession, address: str) -> tuple[Any, Any]:
        """An address as Hadoop names it, and its file system, since Spark itself deletes nothing."""
        path = session._jvm.org.apache.hadoop.fs.Path(address)  # type: ignore[union-attr]
        return path, path.getFileSystem(session._jsc.hadoopConfiguration())


def _sums(frame: DataFrame) -> list[Any]:
    """How many rows there are, and the sum of a hash of each."""
    from pyspark.sql import functions

    total = functions.sum(functions.xxhash64(*frame.columns).cast("decimal(38, 0)"))
    return [functions.count(functions.lit(1)).alias("rows"), total.alias("total")]


def _digest(files: dict[str, int]) -> tuple[int, str]:
    """The bytes of files together, and a digest of their names and lengths."""
    listed = sorted((name.rpartition("/")[2], length) for name, length in files.items())
    return sum(files.values()), hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def _local(root: str) -> Path | None:
    """The folder of this machine that an address names, None for others."""
    return Path(root.removeprefix("file://")) if root.startswith("file:///") else None
