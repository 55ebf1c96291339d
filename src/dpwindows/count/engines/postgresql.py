"""PostgreSQL, version 14 or newer, reached through SQLAlchemy: the server counts, and its answer is the small table.

One transaction, read only and REPEATABLE READ, so that one snapshot is counted; plain SELECTs, no temporary tables, no
privilege but SELECT on the three columns. Text is compared byte for byte, whatever the collation of its column.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpwindows.count.engines.sql import Relation
from dpwindows.count.engines.sql_alchemy import SqlAlchemy, engine_of
from dpwindows.count.events import EventColumns
from dpwindows.count.query.dialect import Column, Dialect, Kind, quote_name
from dpwindows.count.query.relation import unreadable
from dpwindows.count.request import CountRequest
from dpwindows.count.sources.database import translated
from dpwindows.count.sources.names import chosen_table, require_columns
from dpwindows.errors import EngineError, InputError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_OLDEST = (14,)  # extract() is exact from there on
_NESTED = ("c", "r", "m")  # composite types, ranges and multiranges
_SERVER = "The settings of the server apply"
_REASONS = {
    "40001": "a standby stopped the query to apply changes (max_standby_streaming_delay); try again later",
    "53100": "its disk is full",
    "53200": "it ran out of memory; lower its work_mem",
    "53400": "the query needs more temporary files than temp_file_limit allows",
    "55000": "a materialized view was never filled, or a foreign table cannot be read",
    "57014": "it stopped the query: statement_timeout ran out, or somebody cancelled it",
    "57P01": "it was shut down",
}


class Server(SqlAlchemy):
    """An executor on a connection that holds one snapshot."""

    def relation(self, columns: EventColumns, table: str | None) -> Relation:
        """A table or view that the role may know of."""
        tables = self.ask(
            "SELECT nspname, relname, pg_table_is_visible(c.oid), array_agg(CAST(attname AS text) ORDER BY attnum) "
            "FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace JOIN pg_attribute ON attrelid = c.oid "
            "WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND attnum > 0 AND NOT attisdropped AND nspname NOT IN "
            "('pg_catalog', 'information_schema', 'pg_toast') GROUP BY 1, 2, c.oid ORDER BY 3 DESC, 1, 2"
        )
        shown = [name if visible else f"{schema}.{name}" for schema, name, visible, _ in tables]
        own = {(schema, name): columns for schema, name, _, columns in tables}
        schema, name = chosen_table(list(own), shown, table, "the database")
        require_columns(columns, own[schema, name], f"table {name}")
        relation = f"{quote_name(schema)}.{quote_name(name)}"
        names = {role: quote_name(name) for role, name in columns.roles}
        return Relation(relation, names, self._types(relation, names))

    def _types(self, relation: str, names: dict[str, str]) -> dict[str, Column]:
        """The types of our columns; those of domains are the types below them."""
        result = self.execute(f"SELECT {', '.join(names.values())} FROM {relation} LIMIT 0")
        assert result.cursor is not None, "a SELECT has a cursor"
        type_ids = [str(column[1]) for column in result.cursor.description]
        result.close()
        query = f"""SELECT CAST(oid AS text), typtype, typcategory, format_type(oid, NULL) FROM pg_type
            WHERE oid IN ({", ".join(type_ids)})"""
        described = {row[0]: row[1:] for row in self.ask(query)}
        return {role: self._column(*described[type_id]) for role, type_id in zip(names, type_ids, strict=True)}

    def _column(self, sort: str, category: str, name: str) -> Column:
        """A column by its type's sort and category in the catalogue, and its name."""
        column = self._dialect.column_of(name)
        if sort == "e":
            return replace(column, kind=Kind.EXACT)
        return replace(column, kind=Kind.NESTED) if sort in _NESTED or category == "A" else column


@contextmanager
def opened(request: CountRequest, dialect: Dialect) -> Iterator[Server]:
    """The executor of a connection address without a password, or of a SQLAlchemy engine."""
    engine = engine_of(
        request.source,
        request.settings,
        dialect.name,
        memory_limit=f"{_SERVER} (work_mem)",
        spill_directory=f"{_SERVER} (temp_tablespaces)",
        threads=f"{_SERVER} (max_parallel_workers_per_gather)",
    )
    with translated(lambda error: explained(error, request.columns)), _snapshot(engine) as connection:
        yield Server(connection, dialect)


@contextmanager
def _snapshot(engine: Engine) -> Iterator[Connection]:
    """A connection in one transaction that reads one snapshot and can write nothing."""
    options: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    try:
        connected = engine.connect()
    except AssertionError:  # how SQLAlchemy takes an answer that is not PostgreSQL's
        raise InputError("the server does not say that it is PostgreSQL") from None
    with connected.execution_options(**options) as connection:
        version = engine.dialect.server_version_info or (0,)
        if version < _OLDEST:
            raise InputError(f"the server is PostgreSQL {version[0]}, and its times are exact only from 14 on")
        yield connection


def explained(error: BaseException | None, columns: EventColumns) -> InputError | EngineError:
    """What the server says of a failure, as one of our two kinds of errors; rows that it may quote are not repeated."""
    state = str(getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or "")
    message = str(error)
    if refusal := unreadable(message, columns):
        return refusal
    if state == "42501":
        needed = "USAGE on their schema" if "for schema" in message else "SELECT on the columns read"
        return InputError(f"the database refuses: {first_line(message)}; the role needs {needed}")
    if not state and "connection option" in message:
        return InputError(f"the connection address cannot be read: {first_line(message)}")
    if state[:2] in ("", "08", "28", "3D"):
        return EngineError(f"the database cannot be reached: {first_line(message)}")
    reason = f": {_REASONS[state]}" if state in _REASONS else ""
    return EngineError(f"the database failed with SQLSTATE {state} ({type(error).__name__}){reason}")


def first_line(message: str) -> str:
    """The first line of a message that says something."""
    return next((line.strip() for line in message.splitlines() if line.strip()), "no reason given")
