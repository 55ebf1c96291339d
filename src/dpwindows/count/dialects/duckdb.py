"""DuckDB, and what is read by it: files, data frames, SQLite."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from dpwindows.count.query.dialect import TIME_TEXT, Column, Dialect, Kind, quote_text, shown
from dpwindows.count.time_formats import has_offset, short_year

WIDER_THAN_BIGINT = ("ubigint", "hugeint", "uhugeint")
TEXT = Column(Kind.TEXT, "VARCHAR")
# Instants in the old form of Parquet files that Spark still writes; the engine takes them for times without a zone.
INT96 = Column(Kind.INSTANT, "TIMESTAMP")


def patterned_sql(text: str, pattern: str) -> str:
    """The time that a text of a pattern of strptime is, null where it is none.

    The engine's own reader takes words such as epoch for times too, and a year of two digits for one of four.
    """
    short = short_year(pattern)
    whole = "" if short is None else f" AND NOT regexp_matches({text}, {quote_text(short)})"
    read = f"try_strptime({text}, {quote_text(pattern)})"
    return f"CASE WHEN regexp_matches({text}, '[0-9]'){whole} THEN {read} END"


class DuckDB(Dialect):
    """DuckDB's spelling; a column's `type_name` is the engine's identifier of its type in capitals."""

    name = "duckdb"
    kinds: ClassVar = {
        Kind.INTEGER: (
            *("tinyint", "smallint", "integer", "bigint", "hugeint"),
            *("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"),
        ),
        Kind.DECIMAL: ("decimal",),
        Kind.TEXT: ("varchar",),
        Kind.WALL: ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"),
        Kind.INSTANT: ("timestamp with time zone", "timestamptz_ns"),
        Kind.DATE: ("date",),
        Kind.EXACT: ("boolean", "blob", "uuid", "enum", "bit", "bignum", "time", "time_ns"),
        Kind.FLOAT: ("float", "double"),
        Kind.NESTED: ("list", "struct", "map", "array", "union", "variant"),
        Kind.NULL: ("null", "sqlnull"),
    }
    samples: ClassVar = {
        "DATE": "DATE '{day}'",
        "TIMESTAMP": "TIMESTAMP '{micro}'",
        "TIMESTAMP_NS": "TIMESTAMP_NS '{nano}'",
        "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ '{micro}+00:00'",
    }
    divide = "{} // {}"
    matching, anchored = "regexp_full_match({}, {})", "{}"
    numeral = "TRY_CAST(trim({}) AS HUGEINT)"

    def microseconds(self, column: Column, about: str) -> str:
        if column.type_name in ("TIMESTAMP_NS", "TIMESTAMPTZ_NS"):
            # The engine's own division rounds towards zero.
            return "(epoch_ns(time) - ((epoch_ns(time) % 1000) + 1000) % 1000) // 1000"
        return "epoch_us(time)" if column.kind is Kind.INSTANT else "epoch_us(TRY_CAST(time AS TIMESTAMP))"

    def between(self, column: Column, low: datetime, high: datetime) -> str:
        if column.type_name not in ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"):
            return "TRUE"
        return super().between(Column(Kind.WALL, "TIMESTAMP") if column == INT96 else column, low, high)

    def exact(self, role: str, name: str, column: Column) -> str:
        """Text is compared by its bytes, whatever collation its column, its view or the engine has for it.

        A collation is part of a column's type, and GROUP BY, PARTITION BY and = go by it wherever the column is handed
        on. Naming another one changes the type alone: nothing is computed. It can be named for plain text only: the
        cast turns JSON, and types that a user made of text, into that, and does nothing else.
        """
        return f'CAST({name} AS VARCHAR) COLLATE "binary"' if column.kind is Kind.TEXT else name

    def whole(self, number: str) -> str:
        # A decimal of 38 digits has no room for what it is compared with, a HUGEINT has.
        return f"CAST({super().whole(number)} AS HUGEINT)"

    def text_times(self, relation: str) -> str:
        """The engine's own reader, which takes half the time and cuts fractions as well."""
        # Beyond the date come the hours, with a colon; a sign or a Z after it is an offset.
        zoned = "regexp_matches(time, ':.*(Z|[+-])')"
        instant, local = (f"epoch_us(TRY_CAST(time AS {name}))" for name in ("TIMESTAMPTZ", "TIMESTAMP"))
        read = f"CASE WHEN {zoned} THEN {instant} ELSE {local} END"
        wall = f"CASE WHEN {self.matches('time', TIME_TEXT)} THEN {read} END"
        return f"SELECT *, {wall} AS wall, CASE WHEN {zoned} THEN 0 END AS ahead FROM ({relation}) AS texts"

    def whole_float(self, number: str, beyond: int) -> str:
        within = f"{number} > -{beyond} AND {number} < {beyond}"
        return f"CASE WHEN {within} AND floor({number}) = {number} THEN CAST({number} AS BIGINT) END"

    def whole_items(self, column: Column, beyond: int) -> str | None:
        """All as BIGINT, so that files of several types go together, but for integers that may not fit."""
        match column.kind:
            case Kind.INTEGER if column.type_name.lower() not in WIDER_THAN_BIGINT:
                return "CAST(item AS BIGINT)"
            case Kind.FLOAT:
                return self.whole_float("item", beyond)
            case Kind.DECIMAL:
                return "CASE WHEN floor(item) = ceil(item) THEN TRY_CAST(floor(item) AS BIGINT) END"
            case Kind.TEXT:
                number = "TRY_CAST(regexp_extract(item, '[+-]?[0-9]+') AS BIGINT)"
                exact = f"contains(item, '.') AND NOT {number} BETWEEN {1 - beyond} AND {beyond - 1}"
                pattern = "[ \t\n\r]*[+-]?[0-9]+([.]0*)?[ \t\n\r]*"
                return f"CASE WHEN {exact} THEN NULL WHEN {self.matches('item', pattern)} THEN {number} END"
            case _:
                return super().whole_items(column, beyond)

    def patterned_times(self, relation: str, pattern: str) -> str:
        wall = f"epoch_us({patterned_sql('CAST(time AS VARCHAR)', pattern)})"
        ahead = "CAST(0 AS BIGINT)" if has_offset(pattern) else "CAST(NULL AS BIGINT)"
        return f"SELECT *, {wall} AS wall, {ahead} AS ahead FROM ({relation}) AS texts"

    def failure(self, message: str, column: str, value: str) -> str:
        return f"CAST(error({quote_text(message)} || {shown(f'CAST({column} AS VARCHAR)')}) AS BIGINT)"


DIALECT = DuckDB()
