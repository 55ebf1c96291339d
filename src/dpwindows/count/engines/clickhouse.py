"""ClickHouse inside this process, by chdb; a server is reached by SQLAlchemy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from dpwindows.count.engines import sql_alchemy
from dpwindows.count.engines.sql import Executor, Relation
from dpwindows.count.events import EventColumns
from dpwindows.count.query.dialect import Dialect
from dpwindows.count.query.relation import unreadable
from dpwindows.count.request import CountRequest
from dpwindows.count.sources.database import module_roots
from dpwindows.count.sources.names import chosen_table, require_columns
from dpwindows.errors import EngineError, InputError

_OWN = "('system', 'information_schema', 'INFORMATION_SCHEMA')"
_REASONS = {
    "MEMORY_LIMIT_EXCEEDED": "it ran out of memory; raise max_memory_usage, or let it spill "
    "(max_bytes_before_external_group_by, max_bytes_before_external_sort)",
    "TIMEOUT_EXCEEDED": "it stopped the query: max_execution_time ran out",
    "NOT_ENOUGH_SPACE": "its disk is full",
    "READONLY": "the role may set nothing, not even for a query of its own: give it readonly = 2",
}


class _Chdb:
    """An executor on a session or connection of chdb."""

    def __init__(self, source: Any, columns: EventColumns, dialect: Dialect) -> None:
        self._source, self._columns, self._dialect = source, columns, dialect

    def relation(self, columns: EventColumns, table: str | None) -> Relation:
        tables = self._ask(
            f"SELECT database, name, database = currentDatabase() FROM system.tables WHERE database NOT IN {_OWN} "
            f"ORDER BY 3 DESC, 1, 2"
        )
        shown = [name if here else f"{database}.{name}" for database, name, here in tables]
        pairs = [(database, name) for database, name, _ in tables]
        database, name = chosen_table(pairs, shown, table, "ClickHouse")
        held = self._ask(
            f"SELECT name, type FROM system.columns WHERE database = {self._dialect.literal(database)} "
            f"AND table = {self._dialect.literal(name)} ORDER BY position"
        )
        require_columns(columns, [column for column, _ in held], f"table {name}")
        identifier, types = self._dialect.identifier, dict(held)
        return Relation(
            f"{identifier(database)}.{identifier(name)}",
            {role: identifier(column) for role, column in columns.roles},
            {role: self._dialect.column_of(types[column]) for role, column in columns.roles},
        )

    def run(self, query: str) -> pa.Table:
        # What a query leaves behind that failed, chdb puts before the result of the next one.
        self._source.query("SELECT 1", "TSV")
        try:
            result = self._source.query(query, "ArrowStream")
        except (RuntimeError, UnicodeDecodeError) as error:  # what it says of an error may be no text
            raise _explain(str(error), self._columns) from None
        with pa.ipc.open_stream(result.bytes()) as reader:
            return reader.read_all()

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.run(query).to_pylist()]

    def server(self) -> str:
        return str(self._ask(self._dialect.version))


@contextmanager
def opened(request: CountRequest, dialect: Dialect) -> Iterator[Executor]:
    """The executor of a session or connection of chdb, an address of a server, or a SQLAlchemy engine."""
    if "chdb" not in module_roots(request.source):
        with sql_alchemy.opened(request, dialect) as executor:
            yield executor
        return
    why = "the caller's own chdb runs with its own settings"
    request.settings.refuse("clickhouse", memory_limit=why, spill_directory=why, threads=why, password_file=why)
    request.settings.refuse("clickhouse", spark_master="it is for Spark")
    yield _Chdb(request.source, request.columns, dialect)


def _explain(message: str, columns: EventColumns) -> InputError | EngineError:
    """What ClickHouse says may quote a row: the name of the error is all that is repeated."""
    if refusal := unreadable(message, columns):
        return refusal
    found = re.search(r"\(([A-Z][A-Z0-9_]+)\)\s*(\(version [^()]*\)+)?\s*$", message)
    name = found[1] if found else "unknown error"
    reason = f": {_REASONS[name]}" if name in _REASONS else ""
    return EngineError(f"ClickHouse failed ({name}){reason}")
