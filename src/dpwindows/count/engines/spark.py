"""Spark SQL, version 4 or newer: files, tables and data frames of Spark, counted by its executors.

The driver gets the small table, as Arrow. How to distribute the work is left to Spark and its adaptive execution. What
Spark says while it fails may quote rows, so none of it is repeated but the name of the condition.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from dpwindows.count.dialects import dialect_named
from dpwindows.count.events import EngineSettings
from dpwindows.count.query.relation import counting_sql, unreadable
from dpwindows.count.request import CountRequest
from dpwindows.count.sources.names import require_columns
from dpwindows.count.sources.spark import malformed, open_frame
from dpwindows.errors import EngineError, InputError
from dpwindows.progress import watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LEAST_MEMORY_MIB = 512
_UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}
# Conditions that the caller can mend; the first part of each is enough to know.
_MENDABLE = (
    *("TABLE_OR_VIEW_NOT_FOUND", "PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "COLUMN_ALREADY_EXISTS"),
    *("FAILED_READ_FILE", "CANNOT_READ_FILE", "CONFLICTING_PARTITION_COLUMN_NAMES", "CONFLICTING_DIRECTORY_STRUCTURES"),
    *("INVALID_IDENTIFIER", "PARSE_SYNTAX_ERROR", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND", "INSUFFICIENT_PERMISSIONS"),
    "REQUIRES_SINGLE_PART_NAMESPACE",
)
_PARQUET = "what is at an address is read as Parquet, unless the address ends as those of CSV files do"
_NO_CONNECTOR = "it has no connector for such addresses; Spark's configuration names its package (spark.jars.packages)"
_REASONS = {
    "TABLE_OR_VIEW_NOT_FOUND": "there is no table or view of this name",
    "PATH_NOT_FOUND": "there is nothing at this address",
    "UNABLE_TO_INFER_SCHEMA": f"there is no Parquet file, and {_PARQUET}",
    "CANNOT_READ_FILE_FOOTER": f"there is a file that is not Parquet, and {_PARQUET}",
    "UNSUPPORTED_FILE_SYSTEM": "files cannot be listed at such addresses",
    "ClassNotFoundException: Class org.apache.hadoop.fs.": _NO_CONNECTOR,
    "No FileSystem for scheme": _NO_CONNECTOR,
    "UnknownHostException": "the host in the address is not known",
    "ConnectException": "nothing answers at the address",
    "AccessDenied": "access is denied; credentials are in Spark's own configuration",
    "AccessControlException": "access is denied; credentials are in Spark's own configuration",
}
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def signed_counts(request: CountRequest) -> pa.Table:
    """As `engines.signed_counts` says: counts what Spark reads.

    The source is a Spark data frame, a Spark session (with `table`), a path to Parquet or CSV files, or the name of a
    table. A session that runs in this process is used and left running; otherwise one is started, and stopped at the
    end.
    """
    columns, dialect = request.columns, dialect_named("spark")
    with (
        running(lambda message: malformed(message) or unreadable(message, columns)),
        session_for(request.source, request.settings) as session,
        open_frame(session, request.source, columns, request.table) as frame,
    ):
        require_columns(columns, frame.columns, "the Spark relation")
        with view_of(session, frame) as view:
            places = {role: frame.columns.index(name) for role, name in columns.roles}
            types = {
                role: dialect.column_of(frame.schema[place].dataType.simpleString()) for role, place in places.items()
            }
            names = {role: f"c{place}" for role, place in places.items()}
            return session.sql(counting_sql(dialect, request, view, names, types)).toArrow()


@contextmanager
def view_of(session: SparkSession, frame: DataFrame) -> Iterator[str]:
    """A name for a frame within its session, with the columns c0, c1, ... in place of names that need quoting."""
    name = f"dpwindows_{uuid4().hex}"
    frame.toDF(*(f"c{place}" for place in range(len(frame.columns)))).createTempView(name)
    try:
        yield name
    finally:
        session.catalog.dropTempView(name)


# --- the session: the caller's own, the one that runs in this process, or one started for the occasion ----------------


@contextmanager
def running(refusal: Callable[[str], InputError | None]) -> Iterator[None]:
    """Turn what Spark raises into our two kinds of errors; `refusal` knows the messages that our query fails with."""
    try:
        import pyspark
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
    except ImportError:
        raise InputError("to count with Spark, install PySpark: pip install 'dpwindows[spark]'") from None
    if int(pyspark.__version__.split(".")[0]) < 4:
        raise InputError(f"counting with Spark needs PySpark 4 or newer, this is {pyspark.__version__}")
    try:
        with _quiet():
            yield
    except (PySparkException, Py4JError) as error:
        raise refusal(str(error)) or _explained(error) from None


def _explained(error: Exception) -> InputError | EngineError:
    text = str(error)
    condition = re.search(r"(?:^|: )\[([A-Z0-9_.]+)\]", text.strip())
    name = condition[1] if condition else type(error).__name__
    if name == "JAVA_GATEWAY_EXITED":
        return EngineError("Spark did not start: it needs Java 17 or newer, found by JAVA_HOME or on the search path")
    reason = next((f": {why}" for sign, why in _REASONS.items() if sign in text), "")
    if name.startswith(_MENDABLE):
        return InputError(f"Spark cannot read the events ({name}){reason}")
    if "OutOfMemoryError" in text:
        return EngineError("Spark ran out of memory; raise memory_limit, or the memory of its executors")
    return EngineError(f"Spark failed ({name}){reason}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings and the JSON logs that repeat what PySpark raises."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            for logger in loggers:
                logger.disabled = True
            yield
        finally:
            for logger, disabled in zip(loggers, before, strict=True):
                logger.disabled = disabled


@contextmanager
def session_for(source: object, settings: EngineSettings) -> Iterator[SparkSession]:
    """The session of a source. Raises `InputError` where settings are given that a running session cannot take."""
    from pyspark.sql import SparkSession

    settings.refuse(
        "spark", password_file="the credentials of a cluster and its files are in Spark's own configuration"
    )
    session = session_of(source) or SparkSession.getActiveSession()
    if session is not None:
        why = "a Spark session is running already, and its own configuration holds"
        settings.refuse("spark", memory_limit=why, spill_directory=why, threads=why, spark_master=why)
        yield session
        return
    name = f"dpwindows-{uuid4().hex}"
    session = _builder(settings).appName(name).getOrCreate()
    try:
        yield session
    finally:
        # A session of another thread may have been handed out: that one is not ours to stop.
        if session.sparkContext.appName == name:
            session.stop()


def session_of(source: object) -> SparkSession | None:
    """The session that a Spark object is or belongs to."""
    if hasattr(source, "sparkSession"):
        return source.sparkSession  # type: ignore[no-any-return]
    return source if hasattr(source, "catalog") else None  # type: ignore[return-value]


def _builder(settings: EngineSettings) -> SparkSession.Builder:
    """How a session of our own is set up; all else is in Spark's configuration files."""
    from pyspark.sql import SparkSession

    shown = settings.progress and watched()
    builder = SparkSession.builder.config("spark.log.level", "OFF").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", str(shown).lower())
    builder = builder.config("spark.sql.caseSensitive", "true")
    if settings.spark_master is not None and not settings.spark_master.startswith("local"):
        why = "the executors of a cluster are configured there"
        settings.refuse("spark", memory_limit=why, spill_directory=why, threads=why)
        return builder.master(settings.spark_master)
    if settings.spark_master is not None:
        settings.refuse("spark", threads='a local master names them, as in "local[4]"')
    # Nobody but this process talks to a local Spark.
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.master(settings.spark_master or f"local[{settings.threads or '*'}]")
    if settings.spill_directory is not None:
        builder = builder.config("spark.local.dir", str(settings.spill_directory))
    if settings.memory_limit is not None:
        builder = builder.config("spark.driver.memory", f"{_mebibytes(settings.memory_limit)}m")
    return builder


def _mebibytes(limit: str) -> int:
    """A memory limit such as "2GB" or "1.5GiB" in whole MiB. Raises `InputError` if Spark would not start with it."""
    found = re.fullmatch(r"([0-9.]+)\s*([KMGT])(i?)B", limit.strip(), re.IGNORECASE)
    assert found is not None, "checked by the settings"
    power = _UNITS[found[2].upper()]
    unit = 2**power if found[3] else 10 ** (power // 10 * 3)
    mebibytes = int(float(found[1]) * unit) >> 20
    if mebibytes < _LEAST_MEMORY_MIB:
        raise InputError(f"memory_limit must be at least {_LEAST_MEMORY_MIB}MiB for Spark, got {limit}")
    return mebibytes
