"""Excel workbooks: the cells of one sheet, each turned into text by itself, where openpyxl is installed to read them.

The first row names the columns. A whole number becomes its digits, also where it is stored as 13085.0; a date or a time
ISO 8601 text; an empty cell is null. A formula counts as the value that Excel saved with it.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpwindows.count.events import EventColumns
from dpwindows.count.sources.names import chosen_table, require_columns
from dpwindows.errors import InputError


def sheet_rows(file: Path, sheet: str | None) -> Iterator[list[str | None]]:
    """The rows of a sheet as texts, that of the names first; `sheet` may be None where there is one only.

    Raises:
        InputError: nothing is installed that reads workbooks, the file is none, or there is no such sheet.
    """
    try:
        reader: Any = import_module("openpyxl")
    except ImportError:
        raise InputError(
            f"{file} is a workbook of Excel: to read it, install openpyxl (pip install openpyxl), or save the sheet as "
            "CSV UTF-8 and give that"
        ) from None
    try:
        with warnings.catch_warnings(action="ignore"):
            book = reader.load_workbook(file, read_only=True, data_only=True)
            try:
                sheets = [(one.title, one.title) for one in book.worksheets]
                name = chosen_table(sheets, [title for title, _ in sheets], sheet, str(file))[1]
                book[name].reset_dimensions()
                for row in book[name].iter_rows(values_only=True):
                    yield [_text(cell) for cell in row]
            finally:
                book.close()
    except (InputError, GeneratorExit):
        raise
    except Exception as error:  # a damaged file may make it raise anything
        raise InputError(f"{file} cannot be read as a workbook of Excel ({type(error).__name__}: {error})") from None


def sheet_table(file: Path, columns: EventColumns, sheet: str | None) -> pa.Table:
    """Our columns of a sheet as text, under the names of their roles.

    Raises:
        InputError: as `sheet_rows`, or a column is missing.
    """
    rows = sheet_rows(file, sheet)
    names = [name or "" for name in next(rows, [])]
    require_columns(columns, names, str(file))
    places = {role: names.index(name) for role, name in columns.roles}
    found: dict[str, list[str | None]] = {role: [] for role in places}
    for row in rows:
        # Rows end with their last cell that is not empty; one without any is no row.
        if any(cell is not None for cell in row):
            for role, place in places.items():
                found[role].append(row[place] if place < len(row) else None)
    return pa.table({role: pa.array(values, pa.string()) for role, values in found.items()})


def _text(cell: object) -> str | None:
    match cell:
        case None | "":
            return None
        case bool():
            return str(cell).lower()
        case float() if cell.is_integer() and abs(cell) < 2**53:
            return str(int(cell))
        case dt.datetime() | dt.date() | dt.time():
            return cell.isoformat()
        case _:
            return str(cell)
