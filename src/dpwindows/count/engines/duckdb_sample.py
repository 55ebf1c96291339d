"""The first rows of a source, and whether its times carry a zone, to tell an operator. No release depends on it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import duckdb

from dpwindows.count.engines import engine_name
from dpwindows.count.engines.duckdb import private_engine, running
from dpwindows.count.events import SPACES, CsvLayout, EngineSettings, EventColumns
from dpwindows.count.query.dialect import Kind, quote_name
from dpwindows.count.sources.csv_files import DELIMITERS, delimiter_of
from dpwindows.count.sources.database import database_of
from dpwindows.count.sources.duckdb import database_table, file_list, find_parts
from dpwindows.count.sources.duckdb_types import column_of
from dpwindows.count.sources.files import files_of, kind_of
from dpwindows.count.sources.sqlite import first_rows
from dpwindows.count.sources.text_files import first_text, objects_of, text_of
from dpwindows.count.time_formats import EPOCHS, has_clock, has_offset
from dpwindows.errors import EngineError, InputError

_ROWS, _TIMES, _CHARACTERS = 1_000, 200, 1 << 20
_CLOCK, _ZONED = re.compile(r"[0-9]:[0-9]"), re.compile(r":.*(Z|[+-])")
_PYTHON_KINDS = {int: Kind.INTEGER, float: Kind.FLOAT, str: Kind.TEXT, bytes: Kind.EXACT}
_NO_NAME = re.compile(r"\s*|[+-]?[0-9.,:/ -]+([eE][+-]?[0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}.*")


@dataclass(frozen=True)
class Sample:
    """The columns of a source, and their values in its first rows.

    `values[name]` are texts, None where there is no value; `kinds[name]` is what the column's type says, TEXT for files
    of text. `layout` says how CSV files are laid out, as told or else as their first lines suggest; None where nothing
    need be said.
    """

    values: dict[str, list[str | None]]
    kinds: dict[str, Kind]
    layout: CsvLayout | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.values)


def sample_of(source: str, layout: CsvLayout | None, table: str | None) -> Sample:
    """The first rows of a file, a directory or a database in a file.

    Raises:
        InputError: there is none, or it cannot be read.
    """
    if database_of(source) == "sqlite":
        return _sqlite_sample(source, table)
    files = files_of(source)
    kind = kind_of(files, source, csv=layout is not None)
    if kind == "CSV":
        return _csv_sample(files[0], layout)
    if kind == "JSON Lines":
        return _json_sample(files)
    if kind == "SQLite":
        return _sqlite_sample(files[0], table)
    with private_engine(EngineSettings()) as connection, running(EventColumns("item", "time"), source):
        relation = f"read_parquet({file_list(files[:1])})"
        if kind == "DuckDB":
            relation, _ = database_table(connection, files[0], table)
        return _typed_sample(connection, relation)


def _typed_sample(connection: duckdb.DuckDBPyConnection, relation: str) -> Sample:
    described = connection.sql(f"SELECT * FROM {relation}")
    kinds = {name: column_of(kind.id).kind for name, kind in zip(described.columns, described.types, strict=True)}
    texts = ", ".join(f"CAST({quote_name(name)} AS VARCHAR)" for name in kinds)
    rows = connection.execute(f"SELECT {texts} FROM {relation} LIMIT {_ROWS}").fetchall()
    return Sample({name: [row[place] for row in rows] for place, name in enumerate(kinds)}, kinds)


def _sqlite_sample(source: str | Path, table: str | None) -> Sample:
    names, rows = first_rows(source, table, _ROWS)
    values: dict[str, list[str | None]] = {}
    kinds = {}
    for place, name in enumerate(names):
        column = [row[place] for row in rows]
        held = {type(value) for value in column} - {type(None)}
        kinds[name] = _PYTHON_KINDS.get(held.pop(), Kind.OTHER) if len(held) == 1 else Kind.OTHER
        values[name] = [None if value is None else str(value) for value in column]
    return Sample(values, kinds)


def _json_sample(files: Sequence[Path]) -> Sample:
    values: dict[str, list[str | None]] = {}
    rows = 0
    with text_of(files[0]) as stream:
        for _, _, row in objects_of(islice(stream, _ROWS)):
            for name in row:
                values.setdefault(name, [None] * rows)
            for name, found in values.items():
                value = row.get(name)
                found.append(value if value is None or isinstance(value, str) else json.dumps(value))
            rows += 1
    return Sample(values, dict.fromkeys(values, Kind.TEXT))


def _csv_sample(file: Path, told: CsvLayout | None) -> Sample:
    stream = io.StringIO(first_text(file, _CHARACTERS), newline="")
    lines = [line for line in islice(stream, _ROWS) if line.strip()]
    if not lines:
        raise InputError(f"{file} is empty: there is nothing to count, and a release of it would be noise")
    delimiter = told.delimiter if told and told.delimiter else _delimiter(lines)
    rows = _cut(lines, delimiter)
    layout = told or (CsvLayout(delimiter) if delimiter != delimiter_of(lines[0].rstrip("\r\n")) else None)
    if told is not None and told.names is not None:
        names = list(told.names)
    elif any(_NO_NAME.fullmatch(field) for field in rows[0]):
        # A line of names has no numbers and no times in it.
        names = [f"c{place}" for place in range(1, len(rows[0]) + 1)]
        layout = CsvLayout(None if delimiter == "," else delimiter, tuple(names))
    else:
        names, rows = rows[0], rows[1:]
    columns: list[list[str | None]] = [
        [row[place] or None for row in rows if len(row) == len(names)] for place in range(len(names))
    ]
    return Sample(dict(zip(names, columns, strict=True)), dict.fromkeys(names, Kind.TEXT), layout)


def _cut(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    if delimiter == SPACES:
        return [line.split() for line in lines]
    return list(csv.reader(lines, delimiter=delimiter))


def _delimiter(lines: Sequence[str]) -> str:
    """What cuts most lines into as many fields, of at least two; a comma where nothing does."""

    def score(mark: str) -> tuple[int, int]:
        try:
            width, often = Counter(len(row) for row in _cut(lines, mark)).most_common(1)[0]
        except csv.Error:
            return 0, 0
        return (often, width) if width > 1 else (0, 0)

    best = max(DELIMITERS, key=score)
    # Blanks are in many texts: they delimit only what nothing else does.
    return best if score(best)[0] > len(lines) // 2 or not score(SPACES)[0] else SPACES


def remark_on_zones(source: str, columns: EventColumns, table: str | None, settings: EngineSettings) -> str | None:
    """What to say where times were read in UTC because neither they nor the operator name a zone; else None.

    Dates carry no zone and need none. A source that is not read here, or not at all, is left to whoever reads it.
    """
    try:
        here = engine_name(source, settings) == "duckdb"
        # What is read from a pipe is gone.
        if not here or not (database_of(source) or all(file.is_file() for file in files_of(source))):
            return None
        naive = _are_naive(source, columns, table)
    except (InputError, EngineError, OSError, duckdb.Error):
        return None
    said = f"times in the column {columns.time!r} carry no zone and are read as UTC"
    return f"{said}: if they are local, name their zone with --time-zone" if naive else None


def _are_naive(source: str, columns: EventColumns, table: str | None) -> bool:
    pattern = columns.time_format
    if pattern is not None:
        return pattern not in EPOCHS and has_clock(pattern) and not has_offset(pattern)
    with private_engine(EngineSettings(progress=False)) as connection:
        for part in find_parts(connection, source, columns, table, copied=_TIMES):
            kind = part.types["time"].kind
            if kind is Kind.WALL:
                return True
            if kind is Kind.TEXT:
                rows = connection.execute(f"SELECT time FROM ({part.sql}) AS source LIMIT {_TIMES}").fetchall()
                if any(_CLOCK.search(text or "") and not _ZONED.search(text) for (text,) in rows):
                    return True
    return False
