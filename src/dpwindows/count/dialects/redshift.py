"""Redshift. Written from its documentation, and never run here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dpwindows.count.query.dialect import BLANKS, Column, Dialect, Kind, quote_text


class Redshift(Dialect):
    """Redshift's spelling. It takes no notice of blanks at the end of a text, so one more character ends each."""

    name = "redshift"
    kinds: ClassVar = {
        Kind.INTEGER: ("bigint", "integer", "smallint"),
        Kind.DECIMAL: ("numeric", "decimal"),
        Kind.TEXT: ("varchar", "character varying", "text"),
        Kind.WALL: ("timestamp without time zone", "timestamp"),
        Kind.INSTANT: ("timestamp with time zone", "timestamptz"),
        Kind.DATE: ("date",),
        Kind.EXACT: ("boolean",),
        Kind.FLOAT: ("double precision", "real"),
        Kind.NESTED: ("super",),
    }
    samples: ClassVar = {
        "DATE": "DATE '{day}'",
        "TIMESTAMP": "TIMESTAMP '{micro}'",
        "TIMESTAMPTZ": "TIMESTAMPTZ '{micro}+00:00'",
    }
    matching = "{} ~ {}"
    numeral = f"TRY_CAST(BTRIM({{}}, '{BLANKS}') AS BIGINT)"
    materialized = ""
    ranges = False

    def exact(self, role: str, name: str, column: Column) -> str:
        if column.kind is not Kind.TEXT:
            return name
        text = f"COLLATE(CAST({name} AS VARCHAR(65534)), 'case_sensitive')"
        return text if role in ("time", "count") else f"({text} || '.')"

    def literal(self, text: str) -> str:
        return f"CAST({quote_text(text.replace(chr(92), chr(92) * 2))} AS VARCHAR(65534))"

    def text_literal(self, text: str) -> str:
        return f"({self.literal(text)} || '.')"

    def listed(self, literals: Sequence[str]) -> str:
        rows = (f"SELECT {literal} AS listed, {place} AS place" for place, literal in enumerate(literals))
        return " UNION ALL ".join(rows)

    def microseconds(self, column: Column, about: str) -> str:
        if column.kind is Kind.DATE:
            return "CAST(DATEDIFF(day, DATE '1970-01-01', time) AS BIGINT) * 86400000000"
        clock = "time AT TIME ZONE 'UTC'" if column.kind is Kind.INSTANT else "time"
        return f"DATEDIFF(microsecond, TIMESTAMP '1970-01-01 00:00:00', {clock})"


DIALECT = Redshift()
