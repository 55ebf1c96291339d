"""What a column of DuckDB's can serve as."""

from __future__ import annotations

from dpwindows.count.query.dialect import Column, Kind

_KINDS = {
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
_KIND_OF = {type_id: kind for kind, type_ids in _KINDS.items() for type_id in type_ids}
TEXT = Column(Kind.TEXT, "VARCHAR")
# Instants in the old form of Parquet files that Spark still writes; the engine takes them for times without a zone.
INT96 = Column(Kind.INSTANT, "TIMESTAMP")


def column_of(type_id: str) -> Column:
    """What a column can serve as, by the engine's identifier of its type."""
    return Column(_KIND_OF.get(type_id, Kind.OTHER), type_id.upper())
