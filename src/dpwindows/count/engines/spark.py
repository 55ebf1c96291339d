"""Spark SQL, version 4 or newer: files, tables and data frames of Spark, counted by its executors.

The driver gets the small table, as Arrow. How to distribute the work is left to Spark and its adaptive execution.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from dpwindows.count.engines.spark_session import running, session_for
from dpwindows.count.query.dialect import TIME_TEXT, Column, Dialect, Kind, quote_text
from dpwindows.count.query.relation import counting_sql, unreadable
from dpwindows.count.request import CountRequest
from dpwindows.count.sources.names import require_columns
from dpwindows.count.sources.spark import open_frame
from dpwindows.count.sources.spark_csv import malformed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KINDS = {
    Kind.INTEGER: ("tinyint", "smallint", "int", "bigint"),
    Kind.DECIMAL: ("decimal",),
    Kind.WALL: ("timestamp_ntz",),
    Kind.INSTANT: ("timestamp",),
    Kind.DATE: ("date",),
    Kind.EXACT: ("boolean", "binary", "time"),
    Kind.FLOAT: ("float", "double"),
    Kind.NESTED: ("array", "map", "struct", "variant"),
    Kind.TEXT: ("string", "char", "varchar"),
    Kind.NULL: ("void",),
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}


class _Spark(Dialect):
    """Spark's spelling. Nothing here reads the time zone of the session."""

    name = "spark"
    divide = "div"
    wall, instant = "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"
    materialized = ""

    def microseconds(self, column: Column, about: str) -> str:
        if column.kind is Kind.INSTANT:
            return "unix_micros(time)"
        day = "CAST(unix_date(CAST(time AS DATE)) AS BIGINT) * 86400000000"
        if column.kind is Kind.DATE:
            return day
        # Not integers but bigints: outside ANSI mode, Spark's integers wrap.
        clock = "CAST(hour(time) AS BIGINT) * 3600000000 + CAST(minute(time) AS BIGINT) * 60000000"
        return f"{day} + {clock} + CAST(date_part('SECOND', time) * 1000000 AS BIGINT)"

    def exact(self, role: str, name: str, column: Column) -> str:
        if " COLLATE " not in column.type_name:
            return name
        return f"CAST({name} AS BINARY)" if role == "item" else f"CAST(CAST({name} AS BINARY) AS STRING)"

    def matches(self, text: str, pattern: str) -> str:
        # $ would let a line end follow.
        return rf"{text} RLIKE r'^({pattern})\z'"

    def number(self, text: str) -> str:
        return f"try_cast({text} AS DECIMAL(38, 0))"

    def text_literal(self, text: str) -> str:
        # In a plain literal a backslash is an escape, or not, by the settings of the session.
        return f"CAST(X'{text.encode().hex()}' AS STRING)"

    def text_times(self, relation: str) -> str:
        """Spark's own reader, which takes every offset into account and cuts fractions as well.

        A generator is the one expression that Spark neither repeats nor moves.
        """
        # Spark wants seconds before a zone.
        whole = (
            "CASE WHEN length(time) = 10 THEN concat(time, 'T00:00:00') WHEN substr(time, 17, 1) = ':' THEN time "
            "ELSE concat(left(time, 16), ':00', substr(time, 17)) END"
        )
        zoned = "time RLIKE ':.*(Z|[+-])'"
        # 24:00 is the end of a day, which Spark does not read.
        late = "substr(time, 12, 5) = '24:00' AND NOT time RLIKE '^.{16}:?[0-9.]*[1-9]'"
        early = f"CASE WHEN {late} THEN overlay({whole} PLACING '00' FROM 12) ELSE {whole} END"
        text = f"CASE WHEN {zoned} THEN {early} ELSE concat({early}, 'Z') END"
        wall = f"unix_micros(try_cast({text} AS TIMESTAMP)) + CASE WHEN {late} THEN 86400000000 ELSE 0 END"
        read = f"named_struct('wall', {wall}, 'ahead', CASE WHEN {zoned} THEN CAST(0 AS BIGINT) END)"
        checked = f"CASE WHEN {self.matches('time', TIME_TEXT)} THEN {read} END"
        return (
            f"SELECT texts.*, read.wall AS wall, read.ahead AS ahead FROM ({relation}) AS texts "
            f"LATERAL VIEW explode(array({checked})) AS read"
        )

    def failure(self, message: str, column: str) -> str:
        return f"CAST(raise_error(concat({quote_text(message)}, left(CAST({column} AS STRING), 0))) AS BIGINT)"


def signed_counts(request: CountRequest) -> pa.Table:
    """See `Engine.signed_counts`: counts what Spark reads.

    The source is a Spark data frame, a Spark session (with `table`), a path to Parquet or CSV files, or the name of a
    table. A session that runs in this process is used and left running; otherwise one is started, and stopped at the
    end.
    """
    columns = request.columns
    with (
        running(lambda message: malformed(message) or unreadable(message, columns)),
        session_for(request.source, request.settings) as session,
        open_frame(session, request.source, columns, request.table) as frame,
    ):
        require_columns(columns, frame.columns, "the Spark relation")
        with _view(session, frame) as view:
            places = {role: frame.columns.index(name) for role, name in columns.roles}
            types = {role: _column(frame.schema[place].dataType.simpleString()) for role, place in places.items()}
            names = {role: f"c{place}" for role, place in places.items()}
            return session.sql(counting_sql(_Spark(), request, view, names, types)).toArrow()


@contextmanager
def _view(session: SparkSession, frame: DataFrame) -> Iterator[str]:
    """A name for a frame within its session, with the columns c0, c1, ... in place of names that need quoting."""
    name = f"dpwindows_{uuid4().hex}"
    frame.toDF(*(f"c{place}" for place in range(len(frame.columns)))).createTempView(name)
    try:
        yield name
    finally:
        session.catalog.dropTempView(name)


def _column(shown: str) -> Column:
    """A column by the name of its type; whole decimals are how Spark reads unsigned 64-bit integers."""
    name = shown.split("(")[0].split("<")[0].split(" ")[0]
    whole = name == "decimal" and shown.endswith(",0)")
    return Column(Kind.INTEGER if whole else _KIND_OF.get(name, Kind.OTHER), shown.upper())
