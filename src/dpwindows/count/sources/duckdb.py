"""Sources of events as SQL with the columns item, time[, count]: files, databases in files and data frames.

A source becomes one or more *parts*: queries over one connection, each with its own column types. Files that differ
in the type of a column are separate parts, so that nothing is converted silently. Nothing here looks at a value, and
nothing is written to a source. Messages name columns, types and files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import pyarrow as pa

from dpwindows.count.dialects.duckdb import DIALECT, INT96, TEXT
from dpwindows.count.events import SPACES, EventColumns
from dpwindows.count.query.dialect import Column, Kind, quote_name, quote_text, shown
from dpwindows.count.sources.batches import Batches, in_batches
from dpwindows.count.sources.csv_files import CsvHeader, read_header
from dpwindows.count.sources.database import database_of
from dpwindows.count.sources.excel import sheet_table
from dpwindows.count.sources.files import files_of, folder_keys, kind_of, require_one_place
from dpwindows.count.sources.json_lines import json_lines_sql, require_fields
from dpwindows.count.sources.names import chosen_table, require_columns, require_told_apart
from dpwindows.count.sources.sqlite import copy_rows
from dpwindows.count.sources.typed_columns import typed_table
from dpwindows.errors import EngineError, InputError

_FRAME = "dpwindows_frame"
_DATABASE = "dpwindows_source"
_ROWS = "dpwindows_rows"
# Arrow has no exact counterpart of these; as text they stay distinct values.
_NO_ARROW_TYPE = ("hugeint", "uhugeint", "uuid", "bit", "bignum")


@dataclass(frozen=True)
class Part:
    """Rows of one shape: a query with the columns item, time[, count], and what these columns can serve as.

    Parts go together if their items are `of` one type: equal values are the same item, and no other ones are. Decimals
    of different scales are not, as what has room for both may have to round one. `again` says whether the query may be
    run more than once.
    """

    sql: str
    types: dict[str, Column]
    of: str
    again: bool = True


@contextmanager
def translated(what: str, explain: Callable[[duckdb.Error], InputError | EngineError]) -> Iterator[None]:
    """Turn what the engine says into our two kinds of errors; `explain` does so where its memory sufficed.

    Raises:
        InputError: `what` is a view that reads other files than that of its database; or as explained.
        EngineError: memory ran out, be it to open a file; or as explained.
    """
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise EngineError(
            "the engine ran out of memory or of disk to spill to; raise memory_limit, take fewer threads, "
            "or give a spill_directory with more room"
        ) from None
    except duckdb.Error as error:
        if isinstance(error, duckdb.PermissionException) and "disabled by configuration" in str(error):
            raise InputError(
                f"{what} cannot be read: it is a view that reads files outside of its database, such as "
                f"read_csv('...') or an attached database, and a database that is handed over reads nothing else on "
                f"this machine; make it a table, or give the files themselves"
            ) from None
        raise explain(error) from None


def reading(what: str) -> AbstractContextManager[None]:
    """Turn what the engine says while a source is opened into our two kinds of errors.

    Raises:
        InputError: the source cannot be read.
        EngineError: it is in use elsewhere, or memory ran out.
    """

    def explained(error: duckdb.Error) -> InputError | EngineError:
        text = str(error)
        if "already attached" in text or "file handle conflict" in text:
            return EngineError(f"{what} is open in this process; close that connection or pass a relation made from it")
        if "lock on file" in text:
            return EngineError(f"{what} is locked by another process that writes to it; try again later")
        # Later lines may quote rows.
        return InputError(f"{what} cannot be read: {text.splitlines()[0] if text else type(error).__name__}")

    return translated(what, explained)


def find_parts(
    connection: duckdb.DuckDBPyConnection, source: object, columns: EventColumns, table: str | None
) -> list[Part]:
    """Open any source on `connection`.

    Raises:
        InputError: it is missing, unreadable or lacks a column.
        EngineError: it is in use elsewhere, or memory ran out.
    """
    address = database_of(source) == "sqlite"
    batches = in_batches(source)
    if batches is None and isinstance(source, str | Path) and not address:
        return _path_parts(connection, str(source), columns, table)
    if columns.layout is not None:
        raise columns.layout.refuse("a data frame, a relation, a database or a table has columns with names")
    if address:
        return _sqlite_parts(connection, source, columns, table)
    if table is not None:
        raise InputError(
            f"table names a table of a database file; it does not go with {batches or 'a data frame or relation'}"
        )
    return _frame_parts(connection, source if batches is None else batches, columns)


# --- paths -----------------------------------------------------------------------------------------------------


def _path_parts(
    connection: duckdb.DuckDBPyConnection, text: str, columns: EventColumns, table: str | None
) -> list[Part]:
    files = files_of(text)
    kind = kind_of(files, text, csv=columns.layout is not None)
    if kind != "CSV" and columns.layout is not None:
        raise columns.layout.refuse(f"{text} is {kind}")
    if kind in ("DuckDB", "SQLite"):
        if len(files) > 1:
            raise InputError(f"{text} names {len(files)} {kind} databases; give one")
        if kind == "SQLite":
            return _sqlite_parts(connection, files[0], columns, table)
        relation, name = database_table(connection, files[0], table)
        with reading(f"table {name} of {files[0]}"):
            return [_part(connection, relation, columns, f"table {name}")]
    if kind == "Excel":
        return [_sheet_part(connection, place, file, columns, table) for place, file in enumerate(files)]
    if table is not None:
        raise InputError(f"table goes with a database file or a workbook; {text} is {kind}")
    if kind == "JSON Lines":
        require_fields(files, columns)
        types = {role: TEXT for role, _ in columns.roles}
        return [Part(json_lines_sql(file_list(files), columns), types, "varchar")]
    if kind == "Parquet":
        return _parquet_parts(connection, files, columns)
    headers: dict[CsvHeader, list[Path]] = {}
    for file in files:
        headers.setdefault(read_header(file, columns), []).append(file)
    return [_csv_part(header, members, columns) for header, members in headers.items()]


def _parquet_parts(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], columns: EventColumns) -> list[Part]:
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Path]] = {}
    for file in files:
        groups.setdefault(_parquet_signature(connection, file, columns), []).append(file)
    parts = []
    for (types, keys), members in groups.items():
        # Said outright: left to itself the engine decides by the names of all files together.
        in_folders = "true, hive_types_autocast=false" if keys else "false"
        relation = f"read_parquet({file_list(members)}, hive_partitioning={in_folders})"
        named = str(members[0]) if len(members) == 1 else f"one of {len(members)} files such as {members[0]}"
        with reading(named):
            part = _part(connection, relation, columns, named)
        # The second role is the time.
        part.types["time"] = INT96 if types[1].startswith("INT96") else part.types["time"]
        parts.append(part)
    return parts


def _parquet_signature(
    connection: duckdb.DuckDBPyConnection, file: Path, columns: EventColumns
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The types of our columns in one file; and, if one comes from names of folders, the keys of all that have one."""
    with reading(str(file)):
        described = connection.sql(
            f"SELECT column_id, name, num_children, concat_ws(' ', type, converted_type, logical_type, precision, "
            f"scale, num_children, CASE repetition_type WHEN 'REPEATED' THEN 'REPEATED' END) "
            f"FROM parquet_schema({file_list([file])})"
        ).fetchall()
    # Sorted here: the engine takes more memory for it than it may have been given.
    own = _columns_of([field[1:] for field in sorted(described)])
    keys, types = folder_keys(file.parts[:-1]), dict(own)
    require_told_apart(columns, [name for name, _ in own] + sorted(set(keys) - set(types)), str(file))
    require_one_place(columns, types, keys, str(file))
    in_folders = any(name in keys for _, name in columns.roles)
    return tuple(types.get(name, "") for _, name in columns.roles), keys if in_folders else ()


def _columns_of(schema: Sequence[tuple[str, int | None, str]]) -> list[tuple[str, str]]:
    """The names and types of a file's columns: in its tree of fields (name, fields within, type), those under the root.

    The tree is written with the root first and every field before those within it.
    """
    found: list[tuple[str, str]] = []
    within = 0  # fields that are still to come and lie within another one
    for name, children, kind in schema[1:]:
        if within:
            within -= 1
        else:
            found.append((name, kind))
        within += children or 0
    return found


def _sheet_part(
    connection: duckdb.DuckDBPyConnection, place: int, file: Path, columns: EventColumns, sheet: str | None
) -> Part:
    name = f"dpwindows_sheet_{place}"
    connection.register(name, sheet_table(file, columns, sheet))
    return Part(f"SELECT * FROM {name}", {role: TEXT for role, _ in columns.roles}, "varchar")


def _csv_part(header: CsvHeader, files: Sequence[Path], columns: EventColumns) -> Part:
    """Every column is read as text, under a name of ours: nothing is sniffed, ids keep their bytes.

    The line of names, where there is one, is left out wherever it is repeated. Lines that are cut at runs of spaces and
    tabs are read whole, by a delimiter that no text has.
    """
    chosen = {role: f"c{place}" for role, place in header.places(columns).items()}
    if header.delimiter == SPACES:
        lines = _csv_reader(files, ["line"], header="false", delim="\x01\x02", quote="", escape="")
        cut = f"SELECT line, string_split_regex(trim(line, ' \t\r'), '[ \t]+') AS cut FROM {lines}"
        failure = f"CAST(error('CSV: another number of fields' || {shown('line')}) AS VARCHAR[])"
        # An empty line is passed over.
        fields = f"CASE WHEN len(cut) = {len(header.names)} THEN cut WHEN cut <> [''] THEN {failure} END"
        chosen = {role: f"fields[{place + 1}]" for role, place in header.places(columns).items()}
        relation = (
            f"(SELECT * FROM (SELECT {fields} AS fields FROM ({cut}) AS lines) WHERE fields IS NOT NULL) AS spaced"
        )
    else:
        quotes = {"delim": header.delimiter, "quote": '"', "escape": '"'}
        names = [f"c{place}" for place in range(len(header.names))]
        relation = _csv_reader(files, names, header=str(header.named).lower(), **quotes)
    repeated = " AND ".join(f"{chosen[role]} = {quote_text(name)}" for role, name in columns.roles)
    events = f" WHERE ({repeated}) IS NOT TRUE" if header.named else ""
    return Part(_select(chosen, relation) + events, dict.fromkeys(chosen, TEXT), "varchar")


def _csv_reader(files: Sequence[Path], names: Sequence[str], *, header: str, **marks: str) -> str:
    texts = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    cut = ", ".join(f"{name}={quote_text(mark)}" for name, mark in marks.items())
    return (
        f"read_csv({file_list(files)}, columns={{{texts}}}, auto_detect=false, header={header}, skip=0, {cut}, "
        f"nullstr='', allow_quoted_nulls=false, comment='', strict_mode=true, null_padding=false, "
        f"ignore_errors=false, hive_partitioning=false)"
    )


def file_list(files: Sequence[Path]) -> str:
    """An SQL list of paths that are no patterns: [x] is the set that holds only x."""
    return "[" + ", ".join(quote_text(re.sub(r"([*?\[])", r"[\1]", str(file))) for file in files) + "]"


# --- databases in files --------------------------------------------------------------------------------------------


def _sqlite_parts(
    connection: duckdb.DuckDBPyConnection, source: object, columns: EventColumns, table: str | None
) -> list[Part]:
    with reading("the SQLite database"):
        types = copy_rows(connection, _ROWS, source, columns, table)
    kinds = {role: DIALECT.column_of(type_id) for role, type_id in types.items()}
    return [Part(f"SELECT {', '.join(types)} FROM {_ROWS}", kinds, types["item"])]


def database_table(connection: duckdb.DuckDBPyConnection, path: Path, table: str | None) -> tuple[str, str]:
    """A table of a database file, attached for reading only: as a relation, and its name."""
    with reading(str(path)):
        connection.execute(f"ATTACH {quote_text(str(path))} AS {_DATABASE} (TYPE duckdb, READ_ONLY)")
        # From here on nothing but this file, and what spills, can be opened: a view may name any file of this machine,
        # and whoever made the database is not always who may read that file. It cannot be taken back.
        connection.execute("SET enable_external_access = false")
        tables: list[tuple[str, str]] = connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = ? ORDER BY ALL",
            [_DATABASE],
        ).fetchall()
    shown = [name if schema == "main" else f"{schema}.{name}" for schema, name in tables]
    schema, name = chosen_table(tables, shown, table, str(path))
    return f"{_DATABASE}.{quote_name(schema)}.{quote_name(name)}", name


# --- data frames ---------------------------------------------------------------------------------------------------


def _frame_parts(connection: duckdb.DuckDBPyConnection, source: object, columns: EventColumns) -> list[Part]:
    what, again = "the data frame", True
    if isinstance(source, Batches):
        what, again = source.what, source.again
        require_columns(columns, source.schema.names, what)
        require_told_apart(columns, source.schema.names, what)
        frame: Any = source.chosen(list(dict.fromkeys(name for _, name in columns.roles)))
    elif isinstance(source, duckdb.DuckDBPyRelation):
        frame, again = _relation_reader(source, columns), False
    else:
        frame = frame_table(source, columns)
        require_told_apart(columns, frame.column_names, what)
    with reading(what):
        connection.register(_FRAME, frame)
        return [replace(_part(connection, _FRAME, columns, what), again=again)]


def _relation_reader(relation: duckdb.DuckDBPyRelation, columns: EventColumns) -> pa.RecordBatchReader:
    """A stream of our columns out of the caller's own connection."""
    require_columns(columns, relation.columns, "the relation")
    require_told_apart(columns, relation.columns, "the relation")
    kinds = dict(zip(relation.columns, (kind.id for kind in relation.types), strict=True))
    wanted = {name: quote_name(name) for _, name in columns.roles}
    if kinds[columns.item] in _NO_ARROW_TYPE:
        wanted[columns.item] = f"CAST({quote_name(columns.item)} AS VARCHAR) AS {quote_name(columns.item)}"
    with reading("the relation"):
        return relation.select(*map(duckdb.SQLExpression, wanted.values())).to_arrow_reader()


def frame_table(source: object, columns: EventColumns) -> pa.Table:
    """Our columns of any data frame as Arrow.

    Raises:
        InputError: it is no data frame, a column is missing, or its values are of mixed types.
    """
    names = list(dict.fromkeys(name for _, name in columns.roles))
    try:
        frame = nw.from_native(source, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            require_columns(columns, frame.collect_schema().names(), "the data frame")
            frame = frame.select(*names).collect()
        if isinstance(frame, nw.DataFrame):
            require_columns(columns, frame.columns, "the data frame")
            return typed_table(frame, columns)
    except InputError:
        raise
    except Exception as error:  # any data frame library may raise anything of its own
        raise InputError(
            f"the data frame cannot be turned into Arrow ({type(error).__name__}): "
            f"give each column one type, such as text or integer for the item"
        ) from None
    raise InputError(
        f"events must be a path, a pandas, Polars or Arrow table, a table of a lake, an Arrow dataset or stream, or a "
        f"DuckDB relation, got {type(source).__name__}"
    )


# --- columns -------------------------------------------------------------------------------------------------------


def _part(connection: duckdb.DuckDBPyConnection, relation: str, columns: EventColumns, what: str) -> Part:
    """Our columns of a relation, once it is known to have them; of text, one is equal to another if its bytes are."""
    require_columns(columns, connection.sql(f"SELECT * FROM {relation}").columns, what)
    chosen = {role: quote_name(name) for role, name in columns.roles}
    selected = connection.sql(_select(chosen, relation))
    types = dict(zip(selected.columns, selected.types, strict=True))
    kinds = {role: DIALECT.column_of(type_.id) for role, type_ in types.items()}
    compared = {role: DIALECT.exact(role, name, kinds[role]) for role, name in chosen.items()}
    item = str(types["item"]).lower() if kinds["item"].kind is Kind.DECIMAL else types["item"].id
    return Part(_select(compared, relation), kinds, item)


def _select(chosen: dict[str, str], relation: str) -> str:
    return f"SELECT {', '.join(f'{name} AS {quote_name(role)}' for role, name in chosen.items())} FROM {relation}"
