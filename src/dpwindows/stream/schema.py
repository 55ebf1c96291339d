"""The tables of a state file, and their version.

| table | holds |
| --- | --- |
| `state_schema` | the version of these tables |
| `creation` | what was fixed when the stream was created: plan, mechanism, columns, timeline, identity |
| `item_kind` | the type of the items, once there were any |
| `items` | for every item known: the steps of its last occurrences, newest first; made with the first item |
| `working` | exact counts by recency and the mechanism's memory, after the last step |
| `steps` | a row for each closed step: its end, fingerprint of its events, token, time and versions of its release |
| `calls` | the steps that each call closed or was asked to close, and what it moved |
| `released` | the released rows; in a stream with groups with the code of the group |

A stream with groups has tables of a version of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import duckdb

from dpwindows.errors import InputError
from dpwindows.stream.records import damaged
from dpwindows.stream.state_file import DATABASE, StateFile


class Column(NamedTuple):
    """A column of a table: its name, its SQL type, and whether it may be null."""

    name: str
    kind: str
    nullable: bool


VERSION, GROUPED = 1, 2
# The columns of each table by their types, in their order; none may be null.
COLUMNS: dict[str, dict[str, str]] = {
    "state_schema": {"version": "INTEGER"},
    "creation": {"facts": "VARCHAR", "arrays": "BLOB", "digest": "VARCHAR"},
    "item_kind": {"kind": "VARCHAR"},
    "working": {"step": "INTEGER", "content": "BLOB", "digest": "VARCHAR"},
    "steps": {
        "step": "INTEGER", "ends": "BIGINT", "fingerprint": "VARCHAR", "token": "VARCHAR",
        "released_at": "VARCHAR", "versions": "VARCHAR", "rows_digest": "VARCHAR",
    },
    "calls": {"first": "INTEGER", "last": "INTEGER", "moved": "VARCHAR"},
    "released": {
        "step": "INTEGER", "place": "INTEGER", "window": "VARCHAR", "measure": "VARCHAR", "k": "BIGINT",
        "first_step": "BIGINT", "last_step": "BIGINT", "complete": "BOOLEAN", "estimate": "DOUBLE",
        "std_error": "DOUBLE", "bias_bound": "DOUBLE", "lower": "DOUBLE", "upper": "DOUBLE",
    },
}  # fmt: skip


def make_tables(connection: duckdb.DuckDBPyConnection, *, grouped: bool) -> None:
    """Make all tables of a new state, inside the caller's transaction."""
    for table, columns in COLUMNS.items():
        listed = ", ".join(f'"{name}" {kind} NOT NULL' for name, kind in columns.items())
        connection.execute(f"CREATE TABLE {table} ({listed})")
    connection.execute("INSERT INTO state_schema VALUES (?)", [GROUPED if grouped else VERSION])
    if grouped:
        connection.execute("ALTER TABLE released ADD COLUMN cell INTEGER")


def require_version(state: StateFile) -> None:
    """See that the tables are of this version.

    Raises:
        InputError: the file is no state of a stream, or is newer than this version.
        EngineError: the file is damaged.
    """
    version = _version(state)
    if version > max(VERSION, GROUPED):
        raise InputError(
            f"the state {state.path} is of version {version}, and this dpwindows knows versions up to "
            f"{max(VERSION, GROUPED)}: use a newer dpwindows"
        )
    if version not in (VERSION, GROUPED):
        raise damaged(state, f"there never was a version {version} of its tables")
    expected = {table: [Column(*column, False) for column in columns.items()] for table, columns in COLUMNS.items()}
    if version == GROUPED:
        expected["released"].append(Column("cell", "INTEGER", True))
    for table, columns in expected.items():
        require_table(state, table, columns)


def columns_of(state: StateFile, table: str) -> list[Column]:
    """The columns of a table in their order; none where there is no such table.

    The engine is asked by name: before it lists what there is, it makes a hundred views of its own.
    """
    with state.guarded() as connection:
        try:
            # Refused for a view: the next question would open the files that it reads from.
            connection.execute(f"SELECT 1 FROM pragma_storage_info('{DATABASE}.{table}') LIMIT 0")
        except duckdb.CatalogException:
            return []
        rows = connection.execute(f"PRAGMA table_info('{DATABASE}.{table}')").fetchall()
    return [Column(name, kind, not required) for _, name, kind, required, *_ in rows]


def require_table(state: StateFile, table: str, columns: list[Column]) -> None:
    """See that a table has these columns and no others, in this order; without columns, that there is no such table.

    Whatever reads a table, or adds a row to it, relies on that.

    Raises:
        EngineError: the state is damaged.
    """
    if columns_of(state, table) != columns:
        raise damaged(state, f"its table {table} is not as it was made")


def _version(state: StateFile) -> int:
    if not (columns_of(state, "state_schema") and columns_of(state, "creation")):
        raise _foreign(state.path)
    require_table(state, "state_schema", [Column("version", "INTEGER", False)])
    with state.guarded() as connection:
        rows = connection.execute("SELECT version FROM state_schema").fetchall()
    if len(rows) != 1:
        raise _foreign(state.path)
    return int(rows[0][0])


def _foreign(path: Path) -> InputError:
    return InputError(f"{path} is a DuckDB database, but not the state of a stream")
