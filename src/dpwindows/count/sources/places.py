"""Finds the place of a bad value in its source, for the message that refuses it, once it is known that there is one.

Messages are for the screen of whoever may read the log anyway, and go nowhere else.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from dpwindows.count.events import SPACES, EventColumns
from dpwindows.count.query.dialect import SHOWN, quote_name
from dpwindows.count.sources.batches import in_batches
from dpwindows.count.sources.csv_files import read_header
from dpwindows.count.sources.duckdb import file_list, frame_table
from dpwindows.count.sources.excel import sheet_rows
from dpwindows.count.sources.files import files_of, kind_of, text_of
from dpwindows.count.sources.json_lines import objects_of
from dpwindows.errors import InputError

_LONGEST_FIELD = min(sys.maxsize, 2**31 - 1)


def place_of(source: object, columns: EventColumns, role: str, text: str) -> str:
    """The first place of a value, such as "line 7 of log.csv"; empty where it is not found or places have no names.

    `role` says which column holds the value (item, time or count); a longer `text` is cut to SHOWN characters.
    """
    values = _values_of(source, columns, dict(columns.roles)[role], text)
    return _first(place for place, value in values if value[:SHOWN] == text)


def place_of_line(source: object, start: str) -> str:
    """The first line of CSV files that begins so; empty where there is none."""
    return _first(place for place, text in _lines_of(source) if text.startswith(start))


def place_of_no_object(source: object) -> str:
    """The first line of JSON Lines that is no object, or one with a name twice; empty where there is none."""
    return _first(place for place, text in _lines_of(source) if text.strip() and not _is_object(text))


def _first(places: Iterator[str]) -> str:
    with suppress(InputError, OSError, UnicodeError, ValueError, csv.Error, duckdb.Error, pa.ArrowException):
        return next(places, "")
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


def _values_of(source: object, columns: EventColumns, name: str, text: str) -> Iterator[tuple[str, str]]:
    """The values of a column, each after its place; of columns with types, only the first that reads as `text`."""
    if isinstance(source, str | Path):
        files = files_of(str(source))
        kind = kind_of(files, str(source), csv=columns.layout is not None)
        for file in files:
            if kind == "Parquet":
                with duckdb.connect() as connection:
                    relation = f"read_parquet({file_list([file])}, file_row_number=true)"
                    rows = f"SELECT {quote_name(name)} AS value, file_row_number AS row FROM {relation}"
                    yield from ((f"{place} of {file}", text) for place in _row_with(connection, rows, text))
            elif kind == "Excel":
                sheet = sheet_rows(file, None)
                column = next(sheet).index(name)
                whole = ((number, row[column]) for number, row in enumerate(sheet, 2) if column < len(row))
                yield from ((f"row {number:,} of {file}", value) for number, value in whole if value)
            elif kind in ("CSV", "JSON Lines"):
                fields = _csv_fields(file, columns, name) if kind == "CSV" else _json_fields(file, name)
                yield from ((f"line {line:,} of {file}", value) for line, value in fields)
    elif not isinstance(source, duckdb.DuckDBPyRelation) and in_batches(source) is None:
        with duckdb.connect() as connection:
            connection.register("frame", pa.table({"value": frame_table(source, EventColumns(name, name))[name]}))
            rows = "SELECT value, row_number() OVER () - 1 AS row FROM frame"
            yield from ((place, text) for place in _row_with(connection, rows, text))


def _row_with(connection: duckdb.DuckDBPyConnection, rows: str, text: str) -> Iterator[str]:
    """The least row number of a value that reads so, in a query with the columns value and row."""
    found = f"SELECT min(row) FROM ({rows}) WHERE left(CAST(value AS VARCHAR), {SHOWN}) = ?"
    for (row,) in connection.execute(found, [text]).fetchall():
        if row is not None:
            yield f"row {row:,} (counted from 0)"


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
