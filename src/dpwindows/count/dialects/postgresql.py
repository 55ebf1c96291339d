"""PostgreSQL, version 14 or newer: `extract` is exact from there on."""

from __future__ import annotations

from typing import ClassVar

from dpwindows.count.query.dialect import TIME_TEXT, Column, Dialect, Kind, quote_text


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

    def microseconds(self, column: Column, about: str) -> str:
        # Dates run to the year 5874897, which as microseconds would not fit.
        if column.kind is Kind.DATE:
            return f"CASE WHEN {about} THEN CAST(time - DATE '1970-01-01' AS bigint) * 86400000000 END"
        return f"CASE WHEN {about} THEN CAST(extract(epoch FROM time) * 1000000 AS bigint) END"

    def exact(self, role: str, name: str, column: Column) -> str:
        if role == "item" and column.type_name == "CHARACTER":
            return f"bpcharsend({name})"  # as text it would lose its trailing spaces
        return f'CAST({name} AS text) COLLATE "C"' if column.kind is Kind.TEXT else name

    def matches(self, text: str, pattern: str) -> str:
        return f"{text} ~ {quote_text(f'^({pattern})$')}"

    def number(self, text: str) -> str:
        return f"CAST({text} AS numeric)"

    def whole(self, number: str) -> str:
        # Infinity is its own floor; divided, it leaves NaN, which is not 0.
        return f"CASE WHEN {number} % 1 = 0 THEN {number} END"

    def text_literal(self, text: str) -> str:
        # Said outright: a server may be set to take a backslash in plain quotes for an escape.
        return "CAST(E" + quote_text(text.replace("\\", "\\\\")) + ' AS text) COLLATE "C"'

    def text_times(self, relation: str) -> str:
        """The server's own reader, once fractions are cut, which it would round, and offsets, of which it knows few.

        A day or an hour that there is not makes the query fail. OFFSET keeps the planner from putting expressions in
        place of the columns they make, over and over.
        """
        # Second 60 would be the next minute.
        is_time = f"{self.matches('time', TIME_TEXT)} AND NOT time ~ '^.{{16}}:60'"
        iso = f"SELECT *, CASE WHEN {is_time} THEN time END AS iso FROM ({relation}) AS texts OFFSET 0"
        cut = (
            f"SELECT *, left(iso, 26) AS digits, substring(substr(iso, 12) FROM '[Z+-].*') AS zone FROM ({iso}) AS isos"
        )
        clock = "CAST(regexp_replace(digits, '(?<=:.*)[Z+-].*', '') AS timestamp)"
        wall = f"CAST(extract(epoch FROM {clock}) * 1000000 AS bigint)"
        offset = "CAST(extract(epoch FROM CAST(substr(zone, 2) || ':00' AS interval)) * 1000000 AS bigint)"
        ahead = f"CASE left(zone, 1) WHEN 'Z' THEN CAST(0 AS bigint) WHEN '-' THEN -{offset} WHEN '+' THEN {offset} END"
        return f"SELECT *, {wall} AS wall, {ahead} AS ahead FROM ({cut} OFFSET 0) AS cut OFFSET 0"


DIALECT = PostgreSQL()
