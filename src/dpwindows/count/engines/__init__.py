"""The engines that count: each reads events where they are and hands back the small table of signed counts.

An engine is one module with one function, `signed_counts`; that of `sql` serves every database that has a dialect. It
maps every time to its step, leaves out the rows that do not count, runs the query of `dpwindows.count.query.recency`
over what is left, and returns its result: at most steps^2 / 2 rows a threshold. Items never leave the engine, and
nothing is written where the events are.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from dpwindows.count.dialects import DIALECTS
from dpwindows.count.events import CountsFile, EngineSettings
from dpwindows.count.sources.database import database_of, module_roots
from dpwindows.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from dpwindows.count.request import CountRequest

_OF_THEIR_OWN = ("duckdb", "spark")
ENGINES = (*_OF_THEIR_OWN, *(name for name in DIALECTS if name not in _OF_THEIR_OWN))
"""The names of all engines: each has a dialect of its name."""
_COUNTS = "counts_file"
# Whose objects are handed over, and to which engine they belong.
_HOMES = {"pyspark": "spark", "chdb": "clickhouse", "datafusion": "datafusion"}
_UNCHECKED = "nothing has shown that it counts the same to the last integer"
_NO_GROUPING_SETS = "it has no GROUPING SETS, and by default it takes texts that differ in case or accents for equal"
_NO_RANGE_FRAMES = "it has no RANGE frames with offsets, and by default it takes texts that differ in case for equal"
_UNSUPPORTED = {
    "mysql": _NO_GROUPING_SETS,
    "mariadb": _NO_GROUPING_SETS,
    **dict.fromkeys(("mssql", "sqlserver"), _NO_RANGE_FRAMES),
    "oracle": "it takes an empty text for null",
    **dict.fromkeys(("cockroachdb", "presto", "hive", "athena", "awsathena"), _UNCHECKED),
    **dict.fromkeys(("teradatasql", "db2", "ibm_db_sa"), _UNCHECKED),
}


def signed_counts(request: CountRequest) -> pa.Table:
    """The signed counts that a request wants, in one reading of its source, by the engine that `engine_name` says.

    Rows with a null item or time, with a null count or one below 1, and events outside the timeline are left out, row
    by row. The source is not written to.

    Returns:
        A table of the integer columns k, step, recency and delta, in any order, as `recency_sql` defines them.

    Raises:
        InputError: the source or a column is missing, unreadable or of the wrong type.
        EngineError: the engine failed.
    """
    name, layout = engine_name(request.source, request.settings), request.columns.layout
    if layout is not None and name != "duckdb":
        raise layout.refuse(
            f"the engine {name} reads none, or only those with a line of names that says its delimiter; duckdb does"
        )
    if name in (*_OF_THEIR_OWN, _COUNTS):
        return import_module(f"dpwindows.count.engines.{name}").signed_counts(request)
    return import_module("dpwindows.count.engines.sql").signed_counts(request, name)


def engine_name(source: object, settings: EngineSettings) -> str:
    """Which engine counts a source: the one asked for, or the one that the source belongs to.

    A connection address or SQLAlchemy engine belongs to its database, an object of Spark, chdb or DataFusion to Spark,
    ClickHouse or DataFusion, counts in a file to what reads these, and everything else to DuckDB.

    Raises:
        InputError: no engine has the name asked for, or none reads what the source belongs to.
    """
    if isinstance(source, CountsFile):
        if settings.engine is not None:
            raise InputError(f"counts in a file leave nothing to count for {settings.engine}: leave engine out")
        return _COUNTS
    home = _home(source)
    if home in _UNSUPPORTED:
        raise InputError(f"{home} is not supported: {_UNSUPPORTED[home]}; the engines are {', '.join(ENGINES)}")
    name = settings.engine or home or "duckdb"
    if name not in ENGINES:
        raise InputError(f"there is no engine {name!r}; the engines are {', '.join(ENGINES)}")
    if home in ENGINES and name != home:
        raise InputError(f"the events belong to the engine {home}, and {name} does not read them; leave engine out")
    return name


def _home(source: object) -> str | None:
    """The engine, or the database without one, that a source belongs to; None if it says nothing."""
    for package in module_roots(source) & _HOMES.keys():
        return _HOMES[package]
    name = database_of(source)
    if name == "sqlite":
        return "duckdb"
    # An address that is of no database may be one of files: who reads these says what is wrong with it.
    return name if name in (*ENGINES, *_UNSUPPORTED) or not isinstance(source, str | Path) else None
