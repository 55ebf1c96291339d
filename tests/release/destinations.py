"""Places that releases are published to, for tests: as publishers name them, and as readers see them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from psycopg.rows import dict_row
from pyiceberg.catalog import load_catalog

from tests.lakes import NAME, NAMESPACE

if TYPE_CHECKING:
    from tests.count.engines.servers import PostgreSQL


class Destination(ABC):
    """A place, and what a reader of it finds in a table; None where there is no such table."""

    @property
    @abstractmethod
    def address(self) -> str:
        """What it is called in a command."""

    @abstractmethod
    def read(self, table: str) -> pa.Table | None: ...

    @abstractmethod
    def write_foreign(self, table: str, rows: pa.Table) -> None:
        """Make a table of somebody else's."""

    def joined(self, table: str) -> pa.Table | None:
        """What a reader who joins with the commits sees."""
        rows, commits = self.read(table), self.read(f"{table}_releases")
        if rows is None or commits is None:
            return None
        ids = commits["release_id"].to_pylist()
        assert len(set(ids)) == len(ids), "committed twice"
        return rows.filter(pc.is_in(rows["release_id"], pa.array(ids, pa.string())))


class InDuckDB(Destination):
    def __init__(self, folder: Path) -> None:
        self.path = folder / "reports.duckdb"

    @property
    def address(self) -> str:
        return str(self.path)

    def read(self, table: str) -> pa.Table | None:
        if not self.path.exists():
            return None
        with duckdb.connect(self.path) as connection:
            if not connection.execute(f"FROM duckdb_tables() WHERE table_name = '{table}'").fetchall():
                return None
            return connection.sql(f'FROM "{table}"').to_arrow_table()

    def write_foreign(self, table: str, rows: pa.Table) -> None:
        with duckdb.connect(self.path) as connection:
            connection.register("foreign_rows", rows)
            connection.execute(f'CREATE TABLE "{table}" AS FROM foreign_rows')


class InPostgreSQL(Destination):
    def __init__(self, server: PostgreSQL) -> None:
        self.server = server

    @property
    def address(self) -> str:
        return self.server.address("owner")

    def read(self, table: str) -> pa.Table | None:
        with self.server.connect() as connection, connection.cursor(row_factory=dict_row) as cursor:
            try:
                rows = cursor.execute(f'SELECT * FROM "{table}"'.encode()).fetchall()
            except psycopg.errors.UndefinedTable:
                return None
            assert cursor.description is not None
            names = [column.name for column in cursor.description]
        return pa.table({name: [row[name] for row in rows] for name in names})

    def write_foreign(self, table: str, rows: pa.Table) -> None:
        with self.server.connect() as connection:
            kinds = {"string": "text", "int64": "bigint", "double": "double precision", "bool": "boolean"}
            columns = ", ".join(f'"{field.name}" {kinds.get(str(field.type), "timestamptz")}' for field in rows.schema)
            connection.execute(f'CREATE TABLE "{table}" ({columns})'.encode())
            with connection.cursor().copy(f'COPY "{table}" FROM STDIN'.encode()) as copy:
                for row in rows.to_pylist():
                    copy.write_row(list(row.values()))


class InDelta(Destination):
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tables"

    @property
    def address(self) -> str:
        return str(self.folder)

    def read(self, table: str) -> pa.Table | None:
        if not DeltaTable.is_deltatable(str(self.folder / table)):
            return None
        return DeltaTable(self.folder / table).to_pyarrow_table()

    def write_foreign(self, table: str, rows: pa.Table) -> None:
        write_deltalake(self.folder / table, rows)


class InIceberg(Destination):
    """The namespace of the catalogue that is configured (`tests.lakes`)."""

    @property
    def address(self) -> str:
        return f"iceberg:{NAME}.{NAMESPACE}"

    def read(self, table: str) -> pa.Table | None:
        catalog = load_catalog(NAME)
        if not catalog.table_exists(f"{NAMESPACE}.{table}"):
            return None
        return catalog.load_table(f"{NAMESPACE}.{table}").scan().to_arrow()

    def write_foreign(self, table: str, rows: pa.Table) -> None:
        load_catalog(NAME).create_table(f"{NAMESPACE}.{table}", rows.schema).append(rows)
