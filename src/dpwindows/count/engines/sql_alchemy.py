"""Databases reached by SQLAlchemy, each through the driver that its makers publish."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dpwindows.count.engines.sql import Relation
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.query.dialect import Dialect
from dpwindows.count.query.probe import PROBED_COLUMNS
from dpwindows.count.query.relation import unreadable
from dpwindows.count.request import CountRequest
from dpwindows.count.sources.database import (
    database_of,
    engine_at,
    own_engine,
    parse_address,
    translated,
    with_password,
)
from dpwindows.count.sources.names import chosen_table, require_columns
from dpwindows.errors import EngineError, InputError

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult, Engine

_ROWS_AT_ONCE = 100_000
_CATALOGUES = ("information_schema", "pg_catalog", "pg_internal", "system")
_WHY = "the settings of the database apply"


class SqlAlchemy:
    """An executor on a connection."""

    def __init__(self, connection: Connection, dialect: Dialect) -> None:
        self._connection, self._dialect = connection, dialect

    def relation(self, columns: EventColumns, table: str | None) -> Relation:
        """A table or view as the driver describes it."""
        import sqlalchemy

        inspector = sqlalchemy.inspect(self._connection)
        own = inspector.default_schema_name or ""
        tables = [
            (schema, name)
            for schema in dict.fromkeys([own, *inspector.get_schema_names()])
            if schema.lower() not in _CATALOGUES
            for name in sorted({*inspector.get_table_names(schema), *inspector.get_view_names(schema)})
        ]
        shown = [name if schema == own else f"{schema}.{name}" for schema, name in tables]
        schema, name = chosen_table(tables, shown, table, "the database")
        held = {column["name"]: column["type"] for column in inspector.get_columns(name, schema)}
        require_columns(columns, list(held), f"table {name}")
        identifier = self._dialect.identifier
        return Relation(
            ".".join(map(identifier, filter(None, (schema, name)))),
            {role: identifier(column) for role, column in columns.roles},
            {role: self._dialect.column_of(self._type_name(held[column])) for role, column in columns.roles},
        )

    def _type_name(self, type_: Any) -> str:
        return str(type_.compile(dialect=self._connection.dialect))

    def execute(self, query: str) -> CursorResult[Any]:
        """Run a query without parameters, where a percent sign or a colon is only itself."""
        return self._connection.exec_driver_sql(query, execution_options={"no_parameters": True})

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return [tuple(row) for row in self.execute(query)]

    def run(self, query: str) -> pa.Table:
        """The result of a query all of whose columns are whole numbers."""
        rows = self.execute(query)
        schema = pa.schema([(name, pa.int64()) for name in rows.keys()])  # noqa: SIM118
        batches = [
            pa.record_batch([pa.array(column, pa.int64()) for column in zip(*some, strict=True)], schema=schema)
            for some in rows.partitions(_ROWS_AT_ONCE)
        ]
        return pa.Table.from_batches(batches, schema)

    def server(self) -> str:
        """What the dialect asks for, the driver, and where the database is; nothing secret."""
        url, own = self._connection.engine.url, self._connection.dialect
        place = (url.drivername, url.username, url.host, url.port, url.database)
        return str((self.ask(self._dialect.version), own.driver, getattr(own.dbapi, "__version__", None), place))


@contextmanager
def opened(request: CountRequest, dialect: Dialect) -> Iterator[SqlAlchemy]:
    """The executor of a connection address without a password, or of a SQLAlchemy engine."""
    why = dict.fromkeys(("memory_limit", "spill_directory", "threads"), _WHY)
    engine = engine_of(request.source, request.settings, dialect.name, **why)
    with translated(lambda error: _explain(error, request.columns)), _connected(engine) as connection:
        yield SqlAlchemy(connection, dialect)


def _connected(engine: Engine) -> Connection:
    """A connection. What drivers raise of their own, of credentials that they do not find for instance, may hold some.

    Raises:
        EngineError: the driver fails otherwise than drivers do.
    """
    import sqlalchemy

    try:
        return engine.connect()
    except sqlalchemy.exc.SQLAlchemyError:
        raise
    except Exception as error:
        raise EngineError(f"the database cannot be reached ({type(error).__name__})") from None


def engine_of(source: object, settings: EngineSettings, name: str, **refused: str) -> Engine:
    """The SQLAlchemy engine that reaches a database; `refused` are settings that mean nothing to it, and why.

    Raises:
        InputError: the source is of no such database, a setting is refused, or a driver is not installed.
    """
    settings.refuse(name, **refused, spark_master="it is for Spark")
    if isinstance(source, str) and "://" in source and database_of(source) == name:
        return engine_at(with_password(parse_address(source, name), settings))
    settings.refuse(name, password_file="a SQLAlchemy engine brings its own password")
    if (own := own_engine(source, name)) is not None:
        return own
    raise InputError(
        f"the engine {name} reads a table that is named with --table, at a connection address such as "
        f"{name}://user@host/database, or through a SQLAlchemy engine for it"
    )


def _explain(error: BaseException | None, columns: EventColumns) -> InputError | EngineError:
    """What a database says of an error may quote a row, and is not repeated, but for the literal rows of the probe."""
    said = f": {str(error)[:300]}" if columns is PROBED_COLUMNS else ""
    return unreadable(str(error), columns) or EngineError(f"the database failed ({type(error).__name__}){said}")
