"""Spark SQL, version 4 or newer."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from dpwindows.count.query.dialect import TIME_TEXT, Column, Dialect, Kind, quote_text


class Spark(Dialect):
    """Spark's spelling. Nothing here reads the time zone of the session."""

    name = "spark"
    kinds: ClassVar = {
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
    samples: ClassVar = {
        "DATE": "DATE '{day}'",
        "TIMESTAMP_NTZ": "TIMESTAMP_NTZ '{micro}'",
        "TIMESTAMP": "TIMESTAMP_LTZ '{micro}+00:00'",
    }
    divide = "{} div {}"
    # $ would let a line end follow.
    matching, anchored = "{} RLIKE r{}", r"^({})\z"
    numeral = "try_cast({} AS DECIMAL(38, 0))"
    wall, instant = "TIMESTAMP_NTZ '{}'", "TIMESTAMP_LTZ '{}'"
    materialized = ""

    def column_of(self, type_name: str) -> Column:
        """Whole decimals are how Spark reads unsigned 64-bit integers."""
        plain = re.split("<| COLLATE ", type_name, flags=re.IGNORECASE)[0]
        return replace(super().column_of(plain), type_name=type_name.upper())

    def identifier(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

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
        # Whatever its collation: the catalogues of others do not always say it.
        if column.kind is not Kind.TEXT:
            return name
        return f"CAST({name} AS BINARY)" if role == "item" else f"CAST(CAST({name} AS BINARY) AS STRING)"

    def literal(self, text: str) -> str:
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

    def failure(self, message: str, column: str, value: str) -> str:
        return f"CAST(raise_error(concat({quote_text(message)}, left(CAST({column} AS STRING), 0))) AS BIGINT)"


DIALECT = Spark()
