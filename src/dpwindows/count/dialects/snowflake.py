"""Snowflake. Written from its documentation, and never run here."""

from __future__ import annotations

from typing import ClassVar

from dpwindows.count.query.dialect import BLANKS, Column, Dialect, Kind, quote_text


class Snowflake(Dialect):
    """Snowflake's spelling."""

    name = "snowflake"
    kinds: ClassVar = {
        Kind.INTEGER: ("bigint", "integer", "int", "smallint", "tinyint", "byteint"),
        Kind.DECIMAL: ("decimal", "number", "numeric"),
        Kind.TEXT: ("varchar", "text", "string", "char", "character"),
        Kind.WALL: ("timestamp_ntz", "datetime"),
        Kind.INSTANT: ("timestamp_tz", "timestamp_ltz"),
        Kind.DATE: ("date",),
        Kind.EXACT: ("boolean", "binary", "varbinary", "time"),
        Kind.FLOAT: ("float", "double", "real"),
        Kind.NESTED: ("variant", "object", "array", "map", "vector"),
    }
    samples: ClassVar = {
        "DATE": "DATE '{day}'",
        "TIMESTAMP_NTZ": "TO_TIMESTAMP_NTZ('{nano}')",
        "TIMESTAMP_TZ": "TO_TIMESTAMP_TZ('{nano} +00:00')",
    }
    # Rounded quotients of six digits would do no harm: this one has none behind the point.
    divide = "({0} - MOD({0}, {1})) / {1}"
    remainder = "MOD({}, {})"
    # All of the text has to match.
    matching, anchored = "REGEXP_LIKE({}, {})", "{}"
    numeral = f"TRY_TO_NUMBER(TRIM({{}}, '{BLANKS}'), 38, 0)"
    wall, instant = "TO_TIMESTAMP_NTZ('{}')", "TO_TIMESTAMP_TZ('{}')"
    materialized = ""
    version = "SELECT current_version()"

    def exact(self, role: str, name: str, column: Column) -> str:
        return f"COLLATE(CAST({name} AS VARCHAR), 'utf8')" if column.kind is Kind.TEXT else name

    def literal(self, text: str) -> str:
        return quote_text(text.replace("\\", "\\\\"))

    def microseconds(self, column: Column, about: str) -> str:
        if column.kind is Kind.DATE:
            return "DATEDIFF(day, DATE '1970-01-01', time) * 86400000000"
        return "FLOOR(DATE_PART(epoch_nanosecond, time) / 1000)"


DIALECT = Snowflake()
