"""SQLite as a source: our columns of a table or view, copied in batches into a temporary table of the engine.

SQLite types values, not columns. A first pass finds which types the columns hold, and a column that mixes them is
refused, since 7 and '7' may be one item or two. The second pass copies the rows, in the same transaction and so of the
same state, and checks the exact type of every value. So a column has one type, that of each value in it, and what a
row means is a function of the row, by the rule of `typed_columns`.

Files are opened read-only and left alone (`sqlite_files`).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from dpwindows.count.events import EventColumns
from dpwindows.count.query.dialect import SHOWN, quote_name, quote_text
from dpwindows.count.sources.database import own_engine, parse_address, translated
from dpwindows.count.sources.files import absent, at_home
from dpwindows.count.sources.names import chosen_table, require_columns
from dpwindows.count.sources.sqlite_files import immutable_while_unchanged, require_whole
from dpwindows.errors import EngineError, InputError

if TYPE_CHECKING:
    import duckdb

_Explain = Callable[[BaseException | None], InputError | EngineError]
_ROWS_AT_ONCE = 2_048
_BATCH = "dpwindows_batch"


class _Type(NamedTuple):
    """A type of SQLite's values: in Python, in Arrow and in the engine."""

    python: type
    arrow: pa.DataType
    engine: str


_TYPES = {
    "integer": _Type(int, pa.int64(), "bigint"),
    "real": _Type(float, pa.float64(), "double"),
    "text": _Type(str, pa.large_string(), "varchar"),
    "blob": _Type(bytes, pa.large_binary(), "blob"),
    "null": _Type(type(None), pa.null(), "null"),
}


def copy_rows(
    engine: duckdb.DuckDBPyConnection, name: str, source: object, columns: EventColumns, table: str | None
) -> dict[str, str]:
    """Copy the columns item, time[, count] of a table or view into the engine's temporary table `name`.

    The source is the path of a SQLite file, an address such as sqlite:///path, or a SQLAlchemy engine. Returns the
    engine's identifier of each column's type.

    Raises:
        InputError: the file, the table or a column is missing or damaged, or a column mixes types.
        EngineError: the file is locked, or was written to meanwhile.
    """
    with _opened(source, columns) as connection:
        relation = _chosen(connection, columns, table)
        types = _types(connection, relation, columns)
        described = ", ".join(f"{role} {quote_name(type_.engine)}" for role, type_ in types.items())
        engine.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({described})")
        # A cursor left open in the middle keeps the file locked, beyond the end of its transaction and connection.
        with closing(connection.execute(relation)) as rows:
            while batch := rows.fetchmany(_ROWS_AT_ONCE):
                engine.register(_BATCH, _arrow(batch, types, columns))
                engine.execute(f"INSERT INTO {name} FROM {_BATCH}")
                engine.unregister(_BATCH)
    return {role: type_.engine for role, type_ in types.items()}


def first_rows(source: object, table: str | None, rows: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of all columns of a table or view, and its first rows, to show; raises as `copy_rows`."""
    with _opened(source, EventColumns("item", "time")) as connection:
        connection.text_factory = lambda text: text.decode(errors="replace")
        relation = quote_name(_table(connection, table))
        found = connection.execute(f"SELECT * FROM {relation} LIMIT {rows}")
        return [described[0] for described in found.description], [tuple(row) for row in found]


def _chosen(connection: sqlite3.Connection, columns: EventColumns, table: str | None) -> str:
    """The query for our columns under the names of their roles."""
    name = _table(connection, table)
    relation = quote_name(name)
    described = connection.execute(f"SELECT * FROM {relation} LIMIT 0").description
    require_columns(columns, [column[0] for column in described], f"table {name}")
    # The plus changes no value, and takes the declared type away, by which a connection may be set to convert values.
    # A name in double quotes that no column has is a text to SQLite, unless the table stands before it.
    chosen = ", ".join(f"+{relation}.{quote_name(name)} AS {role}" for role, name in columns.roles)
    return f"SELECT {chosen} FROM {relation}"


def _table(connection: sqlite3.Connection, table: str | None) -> str:
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
    names = [name for (name,) in connection.execute(query) if not name.startswith("sqlite_")]
    return chosen_table([("main", name) for name in names], names, table, "the SQLite file")[1]


def _types(connection: sqlite3.Connection, relation: str, columns: EventColumns) -> dict[str, _Type]:
    """The one type of each column, from a pass over all rows: which types occur, and nothing of the values."""
    kinds = ", ".join(f"typeof({role})" for role, _ in columns.roles)
    rows = connection.execute(f"SELECT DISTINCT {kinds} FROM ({relation})").fetchall()
    types = {}
    for place, (role, _) in enumerate(columns.roles):
        held = sorted({row[place] for row in rows} - {"null"})
        if len(held) > 1:
            query = f"SELECT quote({role}) FROM ({relation}) WHERE typeof({role}) = "
            examples = [connection.execute(f"{query}{quote_text(kind)} LIMIT 1").fetchone()[0] for kind in held]
            raise _mixed(columns, role, held, examples)
        types[role] = _TYPES[held[0] if held else "null"]
    return types


def _mixed(columns: EventColumns, role: str, held: list[str], examples: list[str]) -> InputError:
    shown = " and ".join(example[:SHOWN] for example in examples)
    return InputError(
        f"{columns.title(role)} is of type {' and '.join(map(str.upper, held))}, such as {shown}: "
        f"which of them are equal, nothing says; write it with one type, in a view for example"
    )


def _arrow(batch: list[Any], types: Mapping[str, _Type], columns: EventColumns) -> pa.Table:
    """Rows as Arrow, each value of exactly the type that its column has."""
    arrays = {}
    for (role, type_), values in zip(types.items(), zip(*batch, strict=True), strict=True):
        if other := set(map(type, values)) - {type_.python, type(None)}:
            held = sorted({type_.python.__name__, *(kind.__name__ for kind in other)})
            raise _mixed(columns, role, held, [repr(next(v for v in values if type(v) in other))])
        arrays[role] = pa.array(values, type_.arrow)
    return pa.table(arrays)


@contextmanager
def _opened(source: object, columns: EventColumns) -> Iterator[sqlite3.Connection]:
    """A connection in one transaction that reads, and is rolled back."""
    explain = partial(_explained, columns)
    connected = _file_connection(source) if isinstance(source, str | Path) else _engine_connection(source, explain)
    try:
        with connected as connection:
            factories = connection.text_factory, connection.row_factory
            connection.text_factory, connection.row_factory = str, None
            try:
                if not connection.in_transaction:
                    connection.execute("BEGIN")
                yield connection
            finally:
                connection.rollback()
                connection.text_factory, connection.row_factory = factories
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise explain(error) from None


@contextmanager
def _file_connection(source: str | Path) -> Iterator[sqlite3.Connection]:
    path = _path(source)
    with immutable_while_unchanged(path) as immutable, closing(_open(path, immutable=immutable)) as connection:
        yield connection


def _path(source: str | Path) -> Path:
    """The file that a source is, or that an address stands for."""
    text = str(source)
    path = at_home((parse_address(text, "SQLite").database or "") if "://" in text else text)
    if not path.is_file():
        raise absent("SQLite file", str(path))
    # What is looked at is what is opened, whatever becomes of a link to it.
    path = path.resolve()
    require_whole(path)
    return path


def _open(path: Path, *, immutable: bool) -> sqlite3.Connection:
    """A file opened for reading only; immutable: without locks, and files beside it."""
    options = "mode=ro&immutable=1" if immutable else "mode=ro"
    return sqlite3.connect(f"file:{quote(str(path.absolute()))}?{options}", uri=True, isolation_level=None)


@contextmanager
def _engine_connection(source: object, explain: _Explain) -> Iterator[sqlite3.Connection]:
    """A connection of a SQLAlchemy engine."""
    engine = own_engine(source, "sqlite")
    if engine is None:
        raise InputError(
            f"events in SQLite must be a path, an address or a SQLAlchemy engine, got {type(source).__name__}"
        )
    with translated(explain), engine.connect() as connected:
        driver = connected.connection.driver_connection
        if not isinstance(driver, sqlite3.Connection):
            raise InputError(f"the driver {engine.driver} is not supported; use sqlite+pysqlite, which is the default")
        yield driver


def _explained(columns: EventColumns, error: BaseException | None) -> InputError | EngineError:
    text = str(error)
    if isinstance(error, UnicodeDecodeError):
        return InputError(
            "the name of a column of the SQLite file is not UTF-8: name it otherwise, in a view for example"
        )
    if undecoded := re.search("Could not decode to UTF-8 column '([a-z_0-9]+)' with text '(.*)'", text, re.DOTALL):
        role, value = undecoded[1], undecoded[2][:SHOWN]
        if role not in dict(columns.roles):
            return InputError(f"a name in the SQLite file is not UTF-8, such as {value!r}")
        return InputError(
            f"{columns.title(role)} holds text that is not UTF-8, such "
            f"as {value!r}; mend it, or take its bytes, CAST(... AS BLOB) in a view for example"
        )
    if "locked" in text:
        return EngineError("the SQLite file is locked by a process that writes to it; try again later")
    # A number in the header that no version writes has no code of its own.
    unknown = "unsupported file format" in text
    if isinstance(error, sqlite3.DatabaseError) and (unknown or not isinstance(error, sqlite3.OperationalError)):
        return InputError("the SQLite file cannot be read: it is damaged, or it is no SQLite file")
    known = ("disk is full", "disk I/O error", "unable to open database file", "out of memory")
    hint = next((f": {hint}" for hint in known if hint in text), f" ({type(error).__name__})")
    return EngineError(f"SQLite failed{hint}")
