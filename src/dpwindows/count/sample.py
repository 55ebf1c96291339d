"""The first rows of a log, and what they suggest to its operator. No release depends on it.

A release never guesses: the caller says what a value means. Here are guesses to confirm: how a file is laid out, and
whether times carry a zone. `guess` has those of columns.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

import duckdb

from dpwindows.count.dialects.duckdb import DIALECT
from dpwindows.count.engines import engine_name
from dpwindows.count.engines.duckdb import private_engine, running
from dpwindows.count.events import SPACES, CsvLayout, EngineSettings, EventColumns
from dpwindows.count.query.dialect import Kind, quote_name
from dpwindows.count.sources.batches import Batches
from dpwindows.count.sources.csv_files import DELIMITERS, delimiter_of
from dpwindows.count.sources.database import database_of
from dpwindows.count.sources.duckdb import database_table, file_list
from dpwindows.count.sources.excel import sheet_rows
from dpwindows.count.sources.files import files_of, first_text, kind_of, text_of
from dpwindows.count.sources.json_lines import objects_of
from dpwindows.count.sources.sqlite import first_rows
from dpwindows.count.time_formats import EPOCHS, has_clock, has_offset
from dpwindows.errors import EngineError, InputError

_ROWS, _CHARACTERS = 1_000, 1 << 20
_CLOCK, _ZONED = re.compile(r"[0-9]:[0-9]"), re.compile(r":.*(Z|[+-])")
_PYTHON_KINDS = {int: Kind.INTEGER, float: Kind.FLOAT, str: Kind.TEXT, bytes: Kind.EXACT}
_NO_NAME = re.compile(r"[+-]?[0-9.,:/ -]+([eE][+-]?[0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}.*")


@dataclass(frozen=True)
class Sample:
    """The columns of a source, and their values in its first rows.

    `values[name]` are texts, None where there is no value; `kinds[name]` is what the column's type says, TEXT for files
    of text. `layout` says how CSV files are laid out, as given or else as their first lines suggest; None where nothing
    need be said. `delimiter` is what lines of CSV files were cut at.
    """

    values: dict[str, list[str | None]]
    kinds: dict[str, Kind]
    layout: CsvLayout | None = None
    delimiter: str | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.values)


@dataclass(frozen=True)
class Log:
    """What is looked at: a file, a glob, a directory, a database in a file or a table of a lake.

    `layout` is that of CSV files where it is given, `table` the one to read, and `settings` are those of the engine.
    """

    source: str | Batches
    layout: CsvLayout | None = None
    table: str | None = None
    settings: EngineSettings = field(default_factory=EngineSettings)

    @cached_property
    def sample(self) -> Sample:
        """The first rows, read once. Raises `InputError` if there is no such log, or it cannot be read."""
        return _sample_of(self.source, self.layout, self.table)

    @property
    def again(self) -> bool:
        """Whether it can be read more than once: what is read from a pipe is gone."""
        source = self.source
        return (
            isinstance(source, Batches)
            or database_of(source) is not None
            or all(file.is_file() for file in files_of(source))
        )


def _sample_of(source: str | Batches, layout: CsvLayout | None, table: str | None) -> Sample:
    if isinstance(source, Batches):
        with private_engine(EngineSettings()) as connection, running(EventColumns("item", "time")):
            connection.register("batches", source.chosen(source.schema.names))
            return _first_rows(connection, "batches", {})
    if database_of(source) == "sqlite":
        return _sqlite_sample(source, table)
    files = files_of(source)
    match kind_of(files, source, csv=layout is not None):
        case "CSV":
            return _csv_sample(files[0], layout)
        case "JSON Lines":
            return _json_sample(files[0])
        case "SQLite":
            return _sqlite_sample(files[0], table)
        case "Excel":
            return _excel_sample(files[0], table)
        case kind:
            return _typed_sample(files[0], table, database=kind == "DuckDB")


def _typed_sample(file: Path, table: str | None, *, database: bool) -> Sample:
    with private_engine(EngineSettings()) as connection, running(EventColumns("item", "time")):
        relation = database_table(connection, file, table)[0] if database else f"read_parquet({file_list([file])})"
        if database:
            return _first_rows(connection, relation, {})
        old = f"SELECT name FROM parquet_schema({file_list([file])}) WHERE type = 'INT96'"
        instants = connection.execute(old).fetchall()
        return _first_rows(connection, relation, {name: Kind.INSTANT for (name,) in instants})


def _first_rows(connection: duckdb.DuckDBPyConnection, relation: str, known: dict[str, Kind]) -> Sample:
    """The first rows of a relation; some kinds of columns may be known better than by their types."""
    described = connection.sql(f"SELECT * FROM {relation}")
    kinds = {
        name: known.get(name, DIALECT.column_of(kind.id).kind)
        for name, kind in zip(described.columns, described.types, strict=True)
    }
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


def _json_sample(file: Path) -> Sample:
    with text_of(file) as stream:
        rows = [row for _, _, row in objects_of(islice(stream, _ROWS))]
    names = dict.fromkeys(name for row in rows for name in row)
    texts = [
        {name: value if isinstance(value, str | None) else json.dumps(value) for name, value in row.items()}
        for row in rows
    ]
    return Sample({name: [row.get(name) for row in texts] for name in names}, dict.fromkeys(names, Kind.TEXT))


def _excel_sample(file: Path, sheet: str | None) -> Sample:
    rows = list(islice(sheet_rows(file, sheet), _ROWS))
    names = [name or "" for name in rows[0]] if rows else []
    columns = zip(*(row[: len(names)] + [None] * (len(names) - len(row)) for row in rows[1:]), strict=True)
    values = dict(zip(names, map(list, columns), strict=False)) or {name: [] for name in names}
    return Sample(values, dict.fromkeys(names, Kind.TEXT))


def _csv_sample(file: Path, layout: CsvLayout | None) -> Sample:
    stream = io.StringIO(first_text(file, _CHARACTERS), newline="")
    lines = [line for line in islice(stream, _ROWS) if line.strip()]
    if not lines:
        raise InputError(f"{file} is empty: there is nothing to count, and a release of it would be noise")
    delimiter = layout.delimiter if layout and layout.delimiter else _delimiter(lines)
    rows = _cut(lines, delimiter)
    if layout is not None and layout.names is not None:
        names = list(layout.names)
    elif any(_NO_NAME.fullmatch(field) for field in rows[0]):
        # A line of names has no numbers and no times in it.
        names = [f"c{place}" for place in range(1, len(rows[0]) + 1)]
        layout = CsvLayout(None if delimiter == "," else delimiter, tuple(names))
    else:
        names, rows = rows[0], rows[1:]
        plain = delimiter == delimiter_of(lines[0].rstrip("\r\n"))
        layout = layout or (None if plain else CsvLayout(delimiter))
    whole = [row for row in rows if len(row) == len(names)]
    values = {name: [row[place] or None for row in whole] for place, name in enumerate(names)}
    return Sample(values, dict.fromkeys(names, Kind.TEXT), layout, delimiter)


def _cut(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    return [line.split() for line in lines] if delimiter == SPACES else list(csv.reader(lines, delimiter=delimiter))


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


def remark_on_zones(log: Log, columns: EventColumns) -> str | None:
    """What to say where times were read in UTC because neither they nor the operator name a zone; else None.

    Dates carry no zone and need none. A source that is not read here, or not at all, is left to whoever reads it.
    """
    with suppress(InputError, EngineError, OSError, KeyError):
        if engine_name(log.source, log.settings) == "duckdb" and log.again and _are_naive(log, columns):
            return (
                f"times in the column {columns.time!r} carry no zone and are read as UTC: if they are local, name "
                f"their zone with --time-zone"
            )
    return None


def _are_naive(log: Log, columns: EventColumns) -> bool:
    pattern = columns.time_format
    if pattern is not None:
        return pattern not in EPOCHS and has_clock(pattern) and not has_offset(pattern)
    sample = log.sample
    texts = [text for text in sample.values[columns.time] if text is not None]
    unzoned = any(_CLOCK.search(text) and not _ZONED.search(text) for text in texts)
    return sample.kinds[columns.time] is Kind.WALL or (sample.kinds[columns.time] is Kind.TEXT and unzoned)
