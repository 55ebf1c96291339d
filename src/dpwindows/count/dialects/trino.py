"""Trino. Written from its documentation, and never run here."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from dpwindows.count.query.dialect import Column, Dialect, Kind


class Trino(Dialect):
    """Trino's spelling. Columns of CHAR are refused, for it pads them; so are times of more than nine digits."""

    name = "trino"
    kinds: ClassVar = {
        Kind.INTEGER: ("bigint", "integer", "int", "smallint", "tinyint"),
        Kind.DECIMAL: ("decimal",),
        Kind.TEXT: ("varchar",),
        Kind.WALL: ("timestamp",),
        Kind.INSTANT: ("timestamp with time zone",),
        Kind.DATE: ("date",),
        Kind.EXACT: ("boolean", "varbinary", "uuid", "ipaddress", "time"),
        Kind.FLOAT: ("double", "real"),
        Kind.NESTED: ("array", "map", "row", "json"),
    }
    samples: ClassVar = {
        "DATE": "DATE '{day}'",
        "TIMESTAMP(6)": "TIMESTAMP '{micro}'",
        "TIMESTAMP(9)": "TIMESTAMP '{nano}'",
        "TIMESTAMP(6) WITH TIME ZONE": "TIMESTAMP '{micro} UTC'",
    }
    instant = "TIMESTAMP '{}'"
    # $ would let a line end follow.
    matching, anchored = "regexp_like({}, {})", r"^({})\z"
    numeral = "TRY_CAST(regexp_extract({}, '[+-]?[0-9]+') AS BIGINT)"
    materialized = ""

    def column_of(self, type_name: str) -> Column:
        column = super().column_of(type_name)
        return replace(column, kind=Kind.OTHER) if re.search(r"timestamp\(1[0-2]\)", type_name.lower()) else column

    def microseconds(self, column: Column, about: str) -> str:
        if column.kind is Kind.DATE:
            return "date_diff('day', DATE '1970-01-01', time) * 86400000000"
        clock = "CAST(time AT TIME ZONE 'UTC' AS TIMESTAMP(9))" if column.kind is Kind.INSTANT else "time"
        seconds = f"date_diff('second', TIMESTAMP '1970-01-01 00:00:00', date_trunc('second', {clock}))"
        digits = f"coalesce(regexp_extract(CAST({clock} AS VARCHAR), '[.]([0-9]+)', 1), '')"
        return f"{seconds} * 1000000 + CAST(substr({digits} || '000000', 1, 6) AS BIGINT)"


DIALECT = Trino()
