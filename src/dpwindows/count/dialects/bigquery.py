"""BigQuery. Written from its documentation, and never run here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dpwindows.count.query.dialect import BLANKS, Column, Dialect, Kind

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


class BigQuery(Dialect):
    """BigQuery's spelling, of GoogleSQL."""

    name = "bigquery"
    kinds: ClassVar = {
        Kind.INTEGER: ("int64", "integer", "bigint", "int"),
        Kind.DECIMAL: ("numeric", "bignumeric", "decimal", "bigdecimal"),
        Kind.TEXT: ("string",),
        Kind.WALL: ("datetime",),
        Kind.INSTANT: ("timestamp",),
        Kind.DATE: ("date",),
        Kind.EXACT: ("boolean", "bool", "bytes", "time"),
        Kind.FLOAT: ("float64", "float"),
        Kind.NESTED: ("array", "struct", "record", "json", "geography", "range"),
    }
    samples: ClassVar = {
        "DATE": "DATE '{day}'",
        "DATETIME": "DATETIME '{micro}'",
        "TIMESTAMP": "TIMESTAMP '{micro}+00:00'",
    }
    divide, remainder = "DIV({}, {})", "MOD({}, {})"
    numeral = f"SAFE_CAST(TRIM({{}}, '{BLANKS.translate(_ESCAPES)}') AS INT64)"
    wall, instant = "DATETIME '{}'", "TIMESTAMP '{}'"
    materialized = ""
    version = "SELECT 'BigQuery'"

    def identifier(self, name: str) -> str:
        return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"

    def exact(self, role: str, name: str, column: Column) -> str:
        return f"COLLATE(CAST({name} AS STRING), '')" if column.kind is Kind.TEXT else name

    def literal(self, text: str) -> str:
        return f"'{text.translate(_ESCAPES)}'"

    def listed(self, literals: Sequence[str]) -> str:
        rows = ", ".join(f"STRUCT({literal} AS listed, {place} AS place)" for place, literal in enumerate(literals))
        return f"SELECT listed, place FROM UNNEST([{rows}])"

    def microseconds(self, column: Column, about: str) -> str:
        if column.kind is Kind.DATE:
            return "UNIX_DATE(time) * 86400000000"
        if column.kind is Kind.INSTANT:
            return "UNIX_MICROS(time)"
        return "DATETIME_DIFF(time, DATETIME '1970-01-01 00:00:00', MICROSECOND)"

    def matches(self, text: str, pattern: str) -> str:
        return f"REGEXP_CONTAINS({text}, {self.literal(f'^({pattern})$')})"


DIALECT = BigQuery()
