"""Where releases go: two tables in DuckDB, PostgreSQL, a folder of Delta tables or a catalogue of Iceberg.

Each is a `Place`: opened, looked at, and written to only if nothing changed since (`ConflictError`).

**Durable before visible.** The rows of a Delta or Iceberg table on this machine are on disk before the row that commits
them is written; databases see to that themselves.

**A destination is never a source.** Both tables carry a mark (their comment or description) and exactly our columns.
A table without them is somebody else's, and is not written to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.ask.formats import TABLES, is_marked, mark_of
from dpwindows.count.engines.sql_alchemy import engine_of
from dpwindows.count.events import EngineSettings
from dpwindows.count.query.dialect import quote_name, quote_text
from dpwindows.count.sources.batches import ICEBERG, iceberg_catalog, local_folder, reading
from dpwindows.count.sources.database import database_of, translated
from dpwindows.count.sources.files import at_home, first_bytes
from dpwindows.durable import sync_file, sync_folder
from dpwindows.errors import EngineError, InputError
from dpwindows.release.checks import CHECKSUM

if TYPE_CHECKING:
    import sqlalchemy
    from deltalake import DeltaTable
    from pyiceberg.table import Table as IcebergTable

_KIND = "releases"
MARK = mark_of(_KIND, TABLES)
"""What tells our tables from others."""
ID = "release_id"
UTC_TIME = pa.timestamp("us", "UTC")
COMMITS = pa.schema(
    [
        (ID, pa.string()),
        ("released_at", UTC_TIME),
        ("guarantee", pa.string()),
        ("numbers", pa.int64()),
        (CHECKSUM, pa.string()),
        ("metadata", pa.string()),
    ]
)
_DUCKDB_ENDINGS = (".duckdb", ".ddb", ".db")
# Why a release cannot be there once and whole, whatever is interrupted and however many publish at once.
_REFUSED = {
    "bigquery": "it enforces no key, so that two publishers at once would both commit",
    "clickhouse": "it has no transactions and enforces no key, so that two publishers at once would both commit",
    "databricks": "it enforces no key, so that two publishers at once would both commit",
    "redshift": "it enforces no key, so that two publishers at once would both commit",
    "snowflake": "it enforces no key, so that two publishers at once would both commit",
    "sqlite": "its tables have no comments, by which ours are told from others",
    "trino": "what it enforces and commits is up to the connector behind it",
}
_ROWS_AT_ONCE = 10_000
# PostgreSQL cuts longer names.
_LONGEST_NAME = 63
# A key, a table or a type that another transaction made first; and what PostgreSQL itself says to try again.
_CONFLICTS = ("23505", "42P07", "42710", "40001", "40P01")


class ConflictError(EngineError):
    """Somebody else wrote meanwhile, or is writing: nothing was written, and all is to be looked at anew."""


class Place(ABC):
    """Two tables at a destination, ROWS and COMMITS, from one look at them to what is written after it."""

    @abstractmethod
    def prepare(self, rows: pa.Table) -> None:
        """Make what is missing of the tables for such rows, once both were looked at.

        Raises:
            InputError: one is not ours or has other columns, or the place cannot hold the rows. Nothing was made.
        """

    @abstractmethod
    def found(self, release_id: str, *, commit: bool) -> pa.Table:
        """The rows under an id of one of the tables, in any order."""

    @abstractmethod
    def add(self, what: pa.Table, release_id: str, *, commit: bool) -> None:
        """Write rows, or with `commit` the row that commits them, all or none of it."""

    def checksums(self, release_id: str) -> list[str]:
        """The checksums of the releases with this id that are committed."""
        return [str(one) for one in self.found(release_id, commit=True)[CHECKSUM].to_pylist()]

    def rows(self, release_id: str, schema: pa.Schema) -> pa.Table:
        """The rows under this id, in any order."""
        return self.found(release_id, commit=False).cast(schema)

    def settle(self) -> None:
        """Return when what was written is on disk, or will be before it can be seen, as in databases."""
        return


def place_opener(
    destination: object, table: str, settings: EngineSettings
) -> Callable[[], AbstractContextManager[Place]]:
    """What opens the tables of a destination, anew for each try.

    Raises:
        InputError: it is no destination.
    """
    database = database_of(destination)
    if database == "postgresql":
        engine = engine_of(destination, settings, database)
        return lambda: _postgresql(engine, table)
    settings.refuse("of this destination", password_file="only an address of PostgreSQL has a password")
    if database is not None:
        why = _REFUSED.get(database, "that a release is there once and whole was never shown for it")
        raise InputError(
            f"{database} is no destination: {why}. Publish to DuckDB, PostgreSQL, Delta or Iceberg, or load the file "
            f"there by other means"
        )
    if not isinstance(destination, str | Path):
        raise InputError(
            f"a release is published to the path of a DuckDB database, an address or SQLAlchemy engine of PostgreSQL, "
            f"a folder for Delta tables, or {ICEBERG}CATALOG.NAMESPACE, got {type(destination).__name__}"
        )
    if str(destination).startswith(ICEBERG):
        catalog, _, namespace = str(destination).removeprefix(ICEBERG).partition(".")
        if not (catalog and namespace) or "." in table:
            raise InputError(f"a destination of Iceberg is written {ICEBERG}CATALOG.NAMESPACE, with --table NAME")
        return lambda: _iceberg(catalog, namespace, table)
    path = at_home(str(destination))
    if path.is_file() or (not path.exists() and path.suffix.lower() in _DUCKDB_ENDINGS):
        if path.exists() and path.stat().st_size and first_bytes(path, 16)[8:12] != b"DUCK":
            raise InputError(f"{path} is no DuckDB database, and nothing else that a release is published to")
        return lambda: _duckdb(path, table)
    if path.suffix and not path.exists():
        raise InputError(
            f"{path} has the ending {path.suffix}, which says nothing: a DuckDB database has one of "
            f"{', '.join(_DUCKDB_ENDINGS)}, and a new folder of Delta tables has none (make the folder first if its "
            f"name is to have a dot)"
        )
    if (path / "_delta_log").is_dir():
        raise InputError(f"{path} is a Delta table: give the folder that it is in, and name tables with --table")
    if "." in table:
        raise InputError(f"tables in a folder have no schema: give --table NAME, got {table!r}")
    return lambda: _delta(path, table)


def _not_ours(name: str, why: str) -> InputError:
    return InputError(
        f"the table {name} {why}, and publishing writes to no such table: name another one with --table, which is made"
    )


def _require_ours(name: str, mark: object, found: list[tuple[str, str]], wanted: list[tuple[str, str]]) -> None:
    """Check a table that is there: its mark, and its columns with their types."""
    if not is_marked(mark, _KIND, TABLES, f"the table {name} holds releases"):
        raise _not_ours(name, "was not made by dpwindows")
    if found != wanted:
        columns = ", ".join(" ".join(column) for column in found)
        raise _not_ours(name, f"holds releases with other columns or other types ({columns})")


# --- DuckDB ----------------------------------------------------------------------------------------------------------


@contextmanager
def _duckdb(path: Path, table: str) -> Iterator[Place]:
    if not path.parent.is_dir():
        raise InputError(f"the folder of the database does not exist: {path.parent}")
    with _translated_duckdb(path):
        with closing(duckdb.connect(str(path))) as connection:
            connection.execute("BEGIN")
            yield _DuckDB(connection, table)
            connection.execute("COMMIT")
        # The last one to close it wrote its log into it.
        for file in (path, path.with_name(f"{path.name}.wal")):
            if file.exists():
                sync_file(file)
        sync_folder(path.parent)


@contextmanager
def _translated_duckdb(path: Path) -> Iterator[None]:
    try:
        yield
    except (duckdb.TransactionException, duckdb.ConstraintException):
        raise ConflictError from None
    except duckdb.Error as error:
        first = str(error).splitlines()[0]
        # Another process has it open, or a thread of this one is about to open or to close it.
        if "lock on file" in first or "file handle conflict" in first:
            raise ConflictError from None
        if isinstance(error, duckdb.ConnectionException):
            raise EngineError(f"{path} is open in this process in another way: close that connection") from None
        if isinstance(error, duckdb.CatalogException):
            raise InputError(f"{path} does not take the tables: {first}") from None
        raise EngineError(f"{path} cannot be written ({type(error).__name__}): {first}") from None
    except OSError as error:
        raise EngineError(f"{path} cannot be written: {error.strerror or error}") from None


_DUCKDB_TYPES = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    UTC_TIME: "TIMESTAMP WITH TIME ZONE",
}


class _DuckDB(Place):
    """A DuckDB file, in one transaction."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str) -> None:
        self._connection = connection
        schema, _, name = table.rpartition(".")
        self._schema, self._names = schema or "main", (name, f"{name}_releases")

    def _table(self, *, commit: bool) -> str:
        return f"{quote_name(self._schema)}.{quote_name(self._names[commit])}"

    def prepare(self, rows: pa.Table) -> None:
        for commit, schema in ((False, rows.schema), (True, COMMITS)):
            table, of = self._table(commit=commit), [self._schema, self._names[commit]]
            wanted = [(field.name, _DUCKDB_TYPES[field.type]) for field in schema]
            here = "schema_name = ? AND table_name = ? AND database_name = current_database()"
            columns = f"SELECT column_name, data_type FROM duckdb_columns() WHERE {here} ORDER BY column_index"
            if found := self._connection.execute(columns, of).fetchall():
                mark = self._connection.execute(f"SELECT comment FROM duckdb_tables() WHERE {here}", of).fetchone()
                _require_ours(self._names[commit], mark and mark[0], found, wanted)
                continue
            described = ", ".join(f"{quote_name(name)} {kind}" for name, kind in wanted)
            unique = f", PRIMARY KEY ({ID})" if commit else ""
            self._connection.execute(f"CREATE TABLE {table} ({described}{unique})")
            self._connection.execute(f"COMMENT ON TABLE {table} IS {quote_text(MARK)}")
        # What was asked last has an answer that nobody read, and nothing else is asked before that.
        self._connection.execute("SELECT 1").fetchall()

    def found(self, release_id: str, *, commit: bool) -> pa.Table:
        query = f"SELECT * FROM {self._table(commit=commit)} WHERE {ID} = ?"
        return self._connection.sql(query, params=[release_id]).to_arrow_table()

    def add(self, what: pa.Table, release_id: str, *, commit: bool) -> None:
        self._connection.register("dpwindows_added", what)
        self._connection.execute(f"INSERT INTO {self._table(commit=commit)} SELECT * FROM dpwindows_added")
        self._connection.unregister("dpwindows_added")


# --- PostgreSQL ------------------------------------------------------------------------------------------------------


@contextmanager
def _postgresql(engine: sqlalchemy.Engine, table: str) -> Iterator[Place]:
    with translated(_explained), engine.begin() as connection:
        # Whatever the role is set to: what can be seen is on disk.
        connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
        yield _PostgreSQL(connection, table)


def _explained(error: BaseException | None) -> InputError | EngineError:
    state = str(getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or "")
    if state in _CONFLICTS:
        return ConflictError()
    if state == "42501":
        return InputError(
            "the database refuses: the role must own both tables or may INSERT into and SELECT from them, and to make "
            "them it needs CREATE and USAGE on their schema"
        )
    if state == "3F000":
        return InputError("the database has no schema of this name: make it, or name the table without one")
    if state[:2] in ("", "08", "28", "3D") or state.startswith("57P"):
        return EngineError(
            f"the database cannot be reached{f' (SQLSTATE {state})' if state else ''}: look at host, port, database, "
            f"user and password"
        )
    return EngineError(f"the database failed with SQLSTATE {state} ({type(error).__name__})")


class _PostgreSQL(Place):
    """A database of PostgreSQL, in one transaction."""

    def __init__(self, connection: sqlalchemy.Connection, table: str) -> None:
        schema, _, name = table.rpartition(".")
        self._connection, self._schema, self._name = connection, schema or None, name
        self._tables: list[sqlalchemy.Table] = []
        self._schemas = (COMMITS, COMMITS)

    def prepare(self, rows: pa.Table) -> None:
        import sqlalchemy as sa

        types: dict[pa.DataType, Any] = {
            pa.string(): sa.Text(),
            pa.int64(): sa.BigInteger(),
            pa.float64(): sa.Double(),
            pa.bool_(): sa.Boolean(),
            UTC_TIME: sa.TIMESTAMP(timezone=True),
        }
        if long := next((name for name in rows.column_names if len(name.encode()) > _LONGEST_NAME), None):
            raise InputError(f"PostgreSQL cuts names of more than {_LONGEST_NAME} bytes, such as the column {long!r}")
        if (null := _null_character(rows)) is not None:
            raise InputError(
                f"PostgreSQL holds no null character (\\x00), and there is one in {null}: publish to DuckDB, Delta or "
                f"Iceberg, or release with other values of --values"
            )
        inspector, dialect = sa.inspect(self._connection), self._connection.dialect
        self._schemas = (rows.schema, COMMITS)
        for name, schema in zip((self._name, f"{self._name}_releases"), self._schemas, strict=True):
            columns = [
                sa.Column(field.name, types[field.type], primary_key=schema is COMMITS and field.name == ID)
                for field in schema
            ]
            table = sa.Table(name, sa.MetaData(), *columns, schema=self._schema, comment=MARK)
            self._tables.append(table)
            if not inspector.has_table(name, self._schema):
                table.create(self._connection)
                continue
            described = inspector.get_columns(name, self._schema)
            found = [(column["name"], column["type"].compile(dialect)) for column in described]
            wanted = [(column.name, column.type.compile(dialect)) for column in columns]
            is_table = name in inspector.get_table_names(self._schema)
            mark = inspector.get_table_comment(name, self._schema)["text"] if is_table else "a view"
            _require_ours(name, mark, found, wanted)

    def found(self, release_id: str, *, commit: bool) -> pa.Table:
        table = self._tables[commit]
        listed = self._connection.execute(table.select().where(table.c[ID] == release_id)).mappings()
        return pa.Table.from_pylist([dict(row) for row in listed], self._schemas[commit])

    def add(self, what: pa.Table, release_id: str, *, commit: bool) -> None:
        for begin in range(0, what.num_rows, _ROWS_AT_ONCE):
            self._connection.execute(self._tables[commit].insert(), what.slice(begin, _ROWS_AT_ONCE).to_pylist())


def _null_character(rows: pa.Table) -> str | None:
    """Where a table has a null character: in a name, or a text of a column."""
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if "\0" in name:
            return f"the name of the column {name!r}"
        if pa.types.is_string(column.type) and pc.any(pc.match_substring(column, "\0")).as_py():
            return f"a value of the column {name!r}"
    return None


# --- Delta -----------------------------------------------------------------------------------------------------------


@contextmanager
def _delta(folder: Path, table: str) -> Iterator[Place]:
    if not folder.parent.is_dir():
        raise InputError(f"the folder {folder.parent}, in which {folder.name} is to be, does not exist")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise EngineError(f"the folder {folder} cannot be made: {error.strerror or error}") from None
    with reading(f"the Delta tables in {folder}"):
        from deltalake.exceptions import CommitFailedError

        try:
            yield _Delta(folder, table)
        except CommitFailedError:
            raise ConflictError from None


class _Delta(Place):
    """Two Delta tables in a folder."""

    def __init__(self, folder: Path, table: str) -> None:
        self._folders = (folder / table, folder / f"{table}_releases")
        self._tables: list[DeltaTable] = []

    def prepare(self, rows: pa.Table) -> None:
        wanted = list(zip(self._folders, (rows.schema, COMMITS), strict=True))
        there = [self._there(folder, schema) for folder, schema in wanted]
        self._tables = [table or self._made(*one) for table, one in zip(there, wanted, strict=True)]

    @staticmethod
    def _there(folder: Path, schema: pa.Schema) -> DeltaTable | None:
        from deltalake import DeltaTable

        if not DeltaTable.is_deltatable(str(folder)):
            # Of a table that a killed publisher began there may be an empty log.
            if folder.exists() and any(one.name != "_delta_log" for one in folder.iterdir()):
                raise _not_ours(folder.name, "is a folder with other files in it")
            return None
        table = DeltaTable(folder)
        found = [(field.name, str(field.type)) for field in pa.schema(table.schema().to_arrow())]
        _require_ours(folder.name, table.metadata().description, found, [(f.name, str(f.type)) for f in schema])
        return table

    @staticmethod
    def _made(folder: Path, schema: pa.Schema) -> DeltaTable:
        from deltalake import DeltaTable

        try:
            return DeltaTable.create(folder, schema, description=MARK)
        except Exception:
            # Another one was faster, and then there is a table.
            if DeltaTable.is_deltatable(str(folder)):
                raise ConflictError from None
            raise

    def found(self, release_id: str, *, commit: bool) -> pa.Table:
        return pa.table(self._tables[commit].scan(predicate=f"{ID} = {quote_text(release_id)}"))

    def add(self, what: pa.Table, release_id: str, *, commit: bool) -> None:
        from deltalake import CommitProperties, Transaction, write_deltalake

        once = CommitProperties({ID: release_id}, app_transactions=[Transaction(f"dpwindows:{release_id}", 1)])
        write_deltalake(self._tables[commit], what, mode="append", commit_properties=once)

    def settle(self) -> None:
        _sync_all(*self._folders)


# --- Iceberg ---------------------------------------------------------------------------------------------------------


@contextmanager
def _iceberg(catalog: str, namespace: str, table: str) -> Iterator[Place]:
    opened = iceberg_catalog(catalog)
    with reading(f"the Iceberg catalogue {catalog!r}"):
        from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, TableAlreadyExistsError

        try:
            yield _Iceberg(opened, namespace, table)
        except (CommitFailedException, TableAlreadyExistsError):
            raise ConflictError from None
        except NoSuchNamespaceError:
            raise InputError(f"the catalogue {catalog!r} has no namespace {namespace!r}: make it first") from None


# It must not append again by itself what another one was faster than: that one may have written the same.
_PROPERTIES = {"comment": MARK, "commit.retry.num-retries": "0"}


class _Iceberg(Place):
    """Two tables of a catalogue of Iceberg."""

    def __init__(self, catalog: Any, namespace: str, table: str) -> None:
        self._catalog, self._names = catalog, (f"{namespace}.{table}", f"{namespace}.{table}_releases")
        self._tables: list[IcebergTable] = []

    def prepare(self, rows: pa.Table) -> None:
        wanted = list(zip(self._names, (rows.schema, COMMITS), strict=True))
        there = [self._there(name, schema) for name, schema in wanted]
        self._tables = [
            table or self._catalog.create_table(name, schema, properties=_PROPERTIES)
            for table, (name, schema) in zip(there, wanted, strict=True)
        ]

    def _there(self, name: str, schema: pa.Schema) -> IcebergTable | None:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        if not self._catalog.table_exists(name):
            return None
        table: IcebergTable = self._catalog.load_table(name)
        own = schema_to_pyarrow(table.schema(), include_field_ids=False)
        found = [(field.name, str(field.type).removeprefix("large_")) for field in own]
        ours = all(table.properties.get(key) == value for key, value in _PROPERTIES.items())
        _require_ours(name, MARK if ours else None, found, [(field.name, str(field.type)) for field in schema])
        return table

    def found(self, release_id: str, *, commit: bool) -> pa.Table:
        from pyiceberg.expressions import EqualTo

        # Its plugin for mypy knows only how the fields are called.
        wanted = EqualTo(ID, release_id)  # type: ignore[call-arg, arg-type]
        return self._tables[commit].scan(row_filter=wanted).to_arrow()

    def add(self, what: pa.Table, release_id: str, *, commit: bool) -> None:
        self._tables[commit].append(what, snapshot_properties={f"dpwindows.{ID}": release_id})

    def settle(self) -> None:
        _sync_all(*(Path(folder) for table in self._tables if (folder := local_folder(table.location()))))


def _sync_all(*folders: Path) -> None:
    """Return when all that is in folders, and their names, is on disk."""
    try:
        for top in folders:
            for path in (*top.rglob("*"), top, top.parent, top.parent.parent):
                # What is gone since it was listed is a draft of another publisher, or what it wrote in vain.
                with suppress(FileNotFoundError):
                    (sync_folder if path.is_dir() else sync_file)(path)
    except OSError as error:
        raise EngineError(f"the tables cannot be written to disk: {error.strerror or error}") from None
