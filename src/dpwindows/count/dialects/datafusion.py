"""DataFusion; its types are called as Arrow calls them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import ClassVar

from dpwindows.count.query.dialect import BLANKS, Column, Dialect, Kind

_PER_SECOND = {"S": 1, "MS": 10**3, "US": 10**6, "NS": 10**9}


class DataFusion(Dialect):
    """DataFusion's spelling."""

    name = "datafusion"
    kinds: ClassVar = {
        Kind.INTEGER: ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        Kind.DECIMAL: ("decimal32", "decimal64", "decimal128", "decimal256"),
        Kind.TEXT: ("string", "large_string", "string_view"),
        Kind.DATE: ("date32", "date64"),
        Kind.EXACT: ("bool", "binary", "large_binary", "binary_view", "fixed_size_binary", "time32", "time64"),
        Kind.FLOAT: ("halffloat", "float", "double"),
        Kind.NESTED: ("list", "large_list", "fixed_size_list", "struct", "map"),
        Kind.NULL: ("null",),
    }
    samples: ClassVar = {
        "date32[day]": "CAST('{day}' AS DATE)",
        "timestamp[us]": "arrow_cast('{micro}', 'Timestamp(Microsecond, None)')",
        "timestamp[us, tz=America/New_York]": (
            "arrow_cast(arrow_cast('{micro}Z', 'Timestamp(Microsecond, Some(\"UTC\"))'), "
            "'Timestamp(Microsecond, Some(\"America/New_York\"))')"
        ),
        "timestamp[ns]": "arrow_cast('{nano}', 'Timestamp(Nanosecond, None)')",
    }
    matching = "regexp_like({}, {})"
    numeral = f"TRY_CAST(btrim({{}}, '{BLANKS}') AS BIGINT)"
    materialized = ""
    fence = f" LIMIT {2**63 - 1}"

    def column_of(self, type_name: str) -> Column:
        # What is listed in a dictionary is what it lists.
        plain = re.sub(r"dictionary<values=(\w+),.*", r"\1", type_name)
        kind = super().column_of(plain.split("[")[0]).kind
        # Without its unit a number says nothing.
        if plain.lower().startswith("timestamp["):
            kind = Kind.INSTANT if "tz=" in plain else Kind.WALL
        name = "BOOLEAN" if plain == "bool" else plain.upper()
        return Column(kind, name)

    def exact(self, role: str, name: str, column: Column) -> str:
        if column.kind is Kind.TEXT:
            return f"CAST({name} AS VARCHAR)"
        # Beside numbers with a sign it would lose its last digits, or become one.
        return f"CAST({name} AS DECIMAL(20, 0))" if column.type_name == "UINT64" and role != "item" else name

    def microseconds(self, column: Column, about: str) -> str:
        if column.kind is Kind.DATE:
            moment = "CAST(CAST(CAST(time AS DATE) AS INT) AS BIGINT) * 86400000000"
        else:
            moment, unit = "CAST(time AS BIGINT)", _unit(column)
            if unit <= 10**6:
                moment = f"{moment} * {10**6 // unit}"
            else:  # division rounds towards zero
                moment = f"({moment} - ({moment} % 1000 + 1000) % 1000) / 1000"
        return f"CASE WHEN {about} THEN {moment} END"

    def between(self, column: Column, low: datetime, high: datetime) -> str:
        # Literals of times are nanoseconds, and none is before 1677 or after 2262.
        if column.kind is Kind.DATE:
            return super().between(column, low, high)
        bounds = (int(time.replace(tzinfo=UTC).timestamp()) * _unit(column) for time in (low, high))
        first, last = (max(-(2**63), min(bound, 2**63 - 1)) for bound in bounds)
        return f"CAST(time AS BIGINT) >= {first} AND CAST(time AS BIGINT) < {last}"

    def whole(self, number: str) -> str:
        # What it rounds down is a floating-point number, and x % 1 it takes for 0 where x is never null.
        return f"CASE WHEN {number} % 2 IN (-1, 0, 1) THEN {number} END"


def _unit(column: Column) -> int:
    """How many of a column's units of time make a second."""
    found = re.search(r"\[(\w+)", column.type_name)
    assert found is not None, "without one it is no type of times"
    return _PER_SECOND[found[1]]


DIALECT = DataFusion()
