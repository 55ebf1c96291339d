"""ClickHouse, version 26 or newer.

Its times are instants, whatever zone they are shown in. Without a setting it takes a value that is not there for 0, in
`lag` for instance, so all columns are read as nullable ones, and casts keep them so. What it may be set to leave out,
such as groups beyond a limit, fails instead.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import ClassVar

from dpwindows.count.query.dialect import BLANKS, Column, Dialect, Kind, quote_name, quote_text

_WIDE = ("UINT64", "INT128")
_OVERFLOWS = ("distinct", "group_by", "join", "read", "result", "set", "sort", "timeout", "transfer")
_SETTINGS = {
    "cast_keep_nullable": "1",
    "group_by_use_nulls": "1",
    "join_use_nulls": "1",
    "aggregate_functions_null_for_empty": "0",
    "force_grouping_standard_compatibility": "1",
    "empty_result_for_aggregation_by_empty_set": "0",
    "enable_shared_storage_snapshot_in_query": "1",
    "short_circuit_function_evaluation": "'enable'",
    "skip_unavailable_shards": "0",
    "apply_deleted_mask": "1",
    "use_query_cache": "0",
    "extremes": "0",
    "limit": "0",
    "offset": "0",
    "max_rows_to_group_by": "0",
    "ignore_cold_parts_seconds": "0",
    "partial_result_on_first_cancel": "0",
    **{f"{what}_overflow_mode": "'throw'" for what in _OVERFLOWS},
    **{f"{what}_overflow_mode_leaf": "'throw'" for what in ("read", "timeout")},
}


class ClickHouse(Dialect):
    """ClickHouse's spelling."""

    name = "clickhouse"
    kinds: ClassVar = {
        Kind.INTEGER: ("int8", "int16", "int32", "int64", "int128", "uint8", "uint16", "uint32", "uint64"),
        Kind.DECIMAL: ("decimal",),
        Kind.TEXT: ("string",),
        Kind.INSTANT: ("datetime", "datetime64"),
        Kind.DATE: ("date", "date32"),
        Kind.EXACT: (
            *("uuid", "ipv4", "ipv6", "fixedstring", "enum8", "enum16", "boolean"),
            *("uint128", "uint256", "int256"),
        ),
        Kind.FLOAT: ("float32", "float64", "bfloat16"),
        Kind.NESTED: ("array", "tuple", "map", "nested", "json", "variant", "dynamic", "object"),
        Kind.NULL: ("nothing",),
    }
    samples: ClassVar = {
        "Date32": "toDate32('{day}')",
        "DateTime": "toDateTime('{second}', 'UTC')",
        "DateTime64(6, 'America/New_York')": "toTimeZone(toDateTime64('{micro}', 6, 'UTC'), 'America/New_York')",
        "DateTime64(9, 'UTC')": "toDateTime64('{nano}', 9, 'UTC')",
    }
    divide = "intDiv({}, {})"
    matching = "match({}, {})"
    numeral = f"toInt64OrNull(trim(BOTH '{BLANKS}' FROM {{}}))"
    version = "SELECT version(), (SELECT toString(groupArray((name, value))) FROM system.settings WHERE changed)"
    materialized = ""

    def column_of(self, type_name: str) -> Column:
        """What wraps a type does not change its values."""
        while wrapped := re.fullmatch(r"(?:Nullable|LowCardinality)\((.*)\)", type_name):
            type_name = wrapped[1]
        return super().column_of("boolean" if type_name == "Bool" else type_name)

    def exact(self, role: str, name: str, column: Column) -> str:
        kind = {Kind.TEXT: "String", Kind.DATE: "Date32"}.get(column.kind)
        kind = "Int128" if column.type_name in _WIDE and role != "item" else kind
        return f"CAST({name} AS Nullable({kind}))" if kind else f"toNullable({name})"

    def identifier(self, name: str) -> str:
        return quote_name(name.replace("\\", "\\\\"))

    def literal(self, text: str) -> str:
        return quote_text(text.replace("\\", "\\\\"))

    def microseconds(self, column: Column, about: str) -> str:
        if column.kind is Kind.DATE:
            return "toInt64(time) * 86400000000"
        digits = re.search(r"DATETIME64\((\d)", column.type_name)
        if digits is None:
            return "toInt64(time) * 1000000"
        if int(digits[1]) <= 6:
            return "toUnixTimestamp64Micro(time)"
        # Division rounds towards zero.
        nanoseconds = "toUnixTimestamp64Nano(time)"
        return f"intDiv({nanoseconds} - positiveModulo({nanoseconds}, 1000), 1000)"

    def between(self, column: Column, low: datetime, high: datetime) -> str:
        # A literal beyond what its type holds becomes another time.
        if low.year < 1971 or high.year > 2105:
            return "TRUE"
        if column.kind is Kind.DATE:
            return f"time >= toDate32('{low.date()}') AND time < toDate32('{high.date()}')"
        return f"time >= toDateTime64('{low}', 0, 'UTC') AND time < toDateTime64('{high}', 0, 'UTC')"

    def failure(self, message: str, column: str, value: str) -> str:
        return f"toInt64(throwIf({column} IS NOT NULL AND ({value}) IS NULL, {quote_text(message)}))"

    def statement(self, query: str) -> str:
        return f"{query}\nSETTINGS {', '.join(f'{name} = {value}' for name, value in _SETTINGS.items())}"


DIALECT = ClickHouse()
