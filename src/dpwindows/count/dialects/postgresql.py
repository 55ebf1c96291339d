"""PostgreSQL, version 14 or newer: `extract` is exact from there on."""

from __future__ import annotations

from typing import ClassVar

from dpwindows.count.query.dialect import Column, Dialect, Kind, quote_text


class PostgreSQL(Dialect):
    """PostgreSQL's spelling. Text columns come as text of the collation "C"."""

    name = "postgresql"
    kinds: ClassVar = {
        Kind.INTEGER: ("smallint", "integer", "bigint"),
        Kind.DECIMAL: ("numeric",),
        Kind.TEXT: ("text", "character varying", "character", '"char"', "name", "citext"),
        Kind.WALL: ("timestamp without time zone",),
        Kind.INSTANT: ("timestamp with time zone",),
        Kind.DATE: ("date",),
        Kind.EXACT: (
            *("boolean", "bytea", "uuid", "bit", "bit varying", "time without time zone", "oid"),
            *("inet", "cidr", "macaddr", "macaddr8"),
        ),
        Kind.FLOAT: ("real", "double precision"),
        Kind.NESTED: ("json", "jsonb", "xml", "hstore", "record"),
    }
    samples: ClassVar = {
        "DATE": "DATE '{day}'",
        "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP '{micro}'",
        "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ '{micro}+00:00'",
    }

    fence = " OFFSET 0"
    matching, numeral = "{} ~ {}", "CAST({} AS numeric)"

    def microseconds(self, column: Column, about: str) -> str:
        # Dates run to the year 5874897, which as microseconds would not fit.
        if column.kind is Kind.DATE:
            return f"CASE WHEN {about} THEN CAST(time - DATE '1970-01-01' AS bigint) * 86400000000 END"
        return f"CASE WHEN {about} THEN CAST(extract(epoch FROM time) * 1000000 AS bigint) END"

    def exact(self, role: str, name: str, column: Column) -> str:
        if role == "item" and column.type_name == "CHARACTER":
            return f"bpcharsend({name})"  # as text it would lose its trailing spaces
        return f'CAST({name} AS text) COLLATE "C"' if column.kind is Kind.TEXT else name

    def whole(self, number: str) -> str:
        # Infinity is its own floor; divided, it leaves NaN, which is not 0.
        return f"CASE WHEN {number} % 1 = 0 THEN {number} END"

    def literal(self, text: str) -> str:
        # Said outright: a server may be set to take a backslash in plain quotes for an escape.
        return "E" + quote_text(text.replace("\\", "\\\\"))

    def text_literal(self, text: str) -> str:
        return f'CAST({self.literal(text)} AS text) COLLATE "C"'


DIALECT = PostgreSQL()
