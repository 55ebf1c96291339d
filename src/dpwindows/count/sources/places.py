"""Finds the place of a bad value in its source, for the message that refuses it, once it is known that there is one.

Messages are for the screen of whoever may read the log anyway, and go nowhere else.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from dpwindows.count.events import SPACES, EventColumns
from dpwindows.count.query.dialect import SHOWN, quote_name
from dpwindows.count.sources.csv_files import read_header
from dpwindows.count.sources.duckdb import file_list, frame_table
from dpwindows.count.sources.files import files_of, kind_of
from dpwindows.count.sources.text_files import objects_of, text_of
from dpwindows.errors import InputError

_LONGEST_FIELD = min(sys.maxsize, 2**31 - 1)


def place_of(source: object, columns: EventColumns, role: str, text: str) -> str:
    """The first place of a value, such as "line 7 of log.csv"; empty where it is not found or places have no names.

    Args:
        source: what was read.
        columns: the columns that are read.
        role: which of them holds the value: item, time or count.
        text: the value as text; of a longer one its first SHOWN characters.
    """
    name = dict(columns.roles)[role]
    with suppress(InputError, OSError, UnicodeError, ValueError, csv.Error, duckdb.Error, pa.ArrowException):
        if not isinstance(source, str | Path):
            return _row_of_frame(source, name, text)
        files = files_of(str(source))
        match kind_of(files, str(source), csv=columns.layout is not None):
            case "CSV":
                return _line_of(files, text, lambda file: _csv_fields(file, columns, name))
            case "JSON Lines":
                return _line_of(files, text, lambda file: _json_fields(file, name))
            case "Parquet":
                return _row_of_parquet(files, name, text)
    return ""


def place_of_line(source: object, start: str) -> str:
    """The first line of CSV files that begins so; empty where there is none."""
    with suppress(InputError, OSError, UnicodeError, pa.ArrowException):
        return next((place for place, text in _lines_of(source) if text.startswith(start)), "")
    return ""


def place_of_no_object(source: object) -> str:
    """The first line of JSON Lines that is no object, or one with a name twice; empty where there is none."""
    with suppress(InputError, OSError, UnicodeError, pa.ArrowException):
        return next((place for place, text in _lines_of(source) if text.strip() and not _is_object(text)), "")
    return ""


def _is_object(text: str) -> bool:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        return isinstance(json.loads(text, object_pairs_hook=once), dict)
    except (ValueError, RecursionError):
        return False


def _lines_of(source: object) -> Iterator[tuple[str, str]]:
    """Each line of files of text, after its place."""
    for file in files_of(str(source)):
        with text_of(file) as stream:
            for line, text in enumerate(stream, 1):
                yield f"line {line:,} of {file}", text


def _line_of(files: Sequence[Path], text: str, fields: Any) -> str:
    for file in files:
        for line, field in fields(file):
            if field[:SHOWN] == text:
                return f"line {line:,} of {file}"
    return ""


def _csv_fields(file: Path, columns: EventColumns, name: str) -> Iterator[tuple[int, str]]:
    header = read_header(file, columns)
    place = header.names.index(name)
    with text_of(file) as stream:
        if header.delimiter == SPACES:
            rows: Iterator[tuple[int, list[str]]] = ((line, row.split()) for line, row in enumerate(stream, 1))
        else:
            csv.field_size_limit(_LONGEST_FIELD)
            reader = csv.reader(stream, delimiter=header.delimiter)
            rows = ((reader.line_num, row) for row in reader)
        yield from ((line, row[place]) for line, row in rows if place < len(row))


def _json_fields(file: Path, name: str) -> Iterator[tuple[int, str]]:
    with text_of(file) as stream:
        for line, text, row in objects_of(stream):
            value = row.get(name)
            if isinstance(value, dict | list):
                # With blanks or without: as the line has them, the engine shows them.
                whole = json.loads(text)[name]
                yield from ((line, json.dumps(whole, separators=marks)) for marks in ((",", ":"), (", ", ": ")))
            elif value is not None:
                yield line, value if isinstance(value, str) else json.dumps(value)


def _row_of_parquet(files: Sequence[Path], name: str, text: str) -> str:
    for file in files:
        with duckdb.connect() as connection:
            relation = f"read_parquet({file_list([file])}, file_row_number=true)"
            rows = f"SELECT {quote_name(name)} AS value, file_row_number AS row FROM {relation}"
            row = _first_row(connection, rows, text)
        if row is not None:
            return f"row {row:,} (counted from 0) of {file}"
    return ""


def _row_of_frame(source: object, name: str, text: str) -> str:
    if isinstance(source, duckdb.DuckDBPyRelation | pa.RecordBatchReader):
        return ""
    column = frame_table(source, EventColumns(name, name))[name]
    with duckdb.connect() as connection:
        connection.register("frame", pa.table({"value": column}))
        row = _first_row(connection, "SELECT value, row_number() OVER () - 1 AS row FROM frame", text)
    return "" if row is None else f"row {row:,} (counted from 0)"


def _first_row(connection: duckdb.DuckDBPyConnection, rows: str, text: str) -> int | None:
    """The least row number of a value that reads so, in a query with the columns value and row."""
    shown = f"left(CAST(value AS VARCHAR), {SHOWN})"
    found = connection.execute(f"SELECT min(row) FROM ({rows}) WHERE {shown} = ?", [text]).fetchall()
    return None if found[0][0] is None else int(found[0][0])
