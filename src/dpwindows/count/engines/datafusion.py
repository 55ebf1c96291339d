"""DataFusion, in this process: tables that a session has been told of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from dpwindows.count.engines.sql import Relation
from dpwindows.count.events import EventColumns
from dpwindows.count.query.dialect import Dialect
from dpwindows.count.query.relation import unreadable
from dpwindows.count.request import CountRequest
from dpwindows.count.sources.database import module_roots
from dpwindows.count.sources.names import chosen_table, require_columns
from dpwindows.errors import EngineError, InputError


class _DataFusion:
    """An executor on a session."""

    def __init__(self, session: Any, columns: EventColumns, dialect: Dialect) -> None:
        self._session, self._columns, self._dialect = session, columns, dialect

    def relation(self, columns: EventColumns, table: str | None) -> Relation:
        catalogue = self._session.catalog()
        tables = [(schema, name) for schema in catalogue.names() for name in sorted(catalogue.schema(schema).names())]
        shown = [name if schema == "public" else f"{schema}.{name}" for schema, name in tables]
        relation = ".".join(map(self._dialect.identifier, chosen_table(tables, shown, table, "the session")))
        schema = self._session.table(relation).schema()
        require_columns(columns, schema.names, f"table {table}")
        return Relation(
            relation,
            {role: self._dialect.identifier(name) for role, name in columns.roles},
            {role: self._dialect.column_of(str(schema.field(name).type)) for role, name in columns.roles},
        )

    def run(self, query: str) -> pa.Table:
        try:
            return self._session.sql(query).to_arrow_table()
        # Its errors are Exception itself.
        except Exception as error:
            raise _explain(error, self._columns) from None

    def server(self) -> str:
        import datafusion

        # A session shows its settings only where it was told to when it was made.
        open_session = datafusion.SessionContext(self._session.copied_config().with_information_schema(True))
        settings = open_session.sql("SHOW ALL").to_pydict()
        return str((datafusion.__version__, sorted(zip(settings["name"], settings["value"], strict=True), key=str)))


@contextmanager
def opened(request: CountRequest, dialect: Dialect) -> Iterator[_DataFusion]:
    """The executor of a session. Raises `InputError` if the source is none."""
    if "datafusion" not in module_roots(request.source) or not hasattr(request.source, "catalog"):
        raise InputError("the engine datafusion reads a table that is named with table, of a datafusion.SessionContext")
    why = "a session of DataFusion runs with its own settings"
    request.settings.refuse(dialect.name, memory_limit=why, spill_directory=why, threads=why, password_file=why)
    request.settings.refuse(dialect.name, spark_master="it is for Spark")
    yield _DataFusion(request.source, request.columns, dialect)


def _explain(error: Exception, columns: EventColumns) -> InputError | EngineError:
    """What DataFusion says of an error may quote a row, and is not repeated."""
    if refusal := unreadable(str(error), columns):
        return refusal
    memory = ": it ran out of memory" if "Resources exhausted" in str(error) else ""
    return EngineError(f"DataFusion failed ({type(error).__name__}){memory}")
