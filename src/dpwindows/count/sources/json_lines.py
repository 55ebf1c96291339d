"""JSON Lines in DuckDB: one object a line, whose fields of ours are read as text, each value by itself.

Nothing is inferred from values. A string is its text and a number the digits it is written with, so that 13085 and
"13085" are one item; times and counts are read from there by the rules for text. A field that is null or not there is
null. `true`, `false`, objects and lists are refused in a field that is read, and so are items with a fraction or an
exponent, unless items are whole numbers (`--item-type integer`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dpwindows.count.events import EventColumns
from dpwindows.count.query.dialect import Place, quote_name, quote_text, shown, such_as
from dpwindows.count.sources.files import first_text
from dpwindows.count.sources.names import require_columns
from dpwindows.errors import InputError

_LOOKED_AT = 1 << 20
MARK = "dpwindows cannot read a field of JSON: "


def json_lines_sql(file_list: str, columns: EventColumns) -> str:
    """The query for item, time[, count], all of them text, of files that an SQL list names."""
    fields = ", ".join(f"{quote_text(name)}: 'JSON'" for name in dict.fromkeys(name for _, name in columns.roles))
    relation = (
        f"read_json({file_list}, columns={{{fields}}}, format='newline_delimited', auto_detect=false, "
        f"ignore_errors=false, hive_partitioning=false)"
    )
    chosen = ", ".join(f"{_text(name, role, columns)} AS {role}" for role, name in columns.roles)
    return f"SELECT {chosen} FROM {relation}"


def _text(name: str, role: str, columns: EventColumns) -> str:
    field = quote_name(name)
    written = f"CAST({field} AS VARCHAR)"
    fractions = role != "item" or columns.item_type is not None
    number = "-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?" if fractions else "-?[0-9]+"
    failure = f"CAST(error({quote_text(MARK + role)} || {shown(written)}) AS VARCHAR)"
    return (
        f"CASE WHEN {field} IS NULL OR {written} = 'null' THEN NULL "
        f"WHEN starts_with({written}, '\"') THEN {field} ->> '$' "
        f"WHEN regexp_full_match({written}, {quote_text(number)}) THEN {written} ELSE {failure} END"
    )


def unreadable_field(message: str, columns: EventColumns, place: Place) -> InputError | None:
    """The error for a field that is no text and no number, if an engine's message is about such."""
    found = re.search(f"{MARK}([a-z]+(?:_[0-9]+)?)(.*)", message, re.DOTALL)
    if found is None:
        return None
    role, example = found[1], such_as(found[2], found[1], place)
    advice = "; items with a fraction or exponent need --item-type integer" if role == "item" else ""
    title = columns.title(role)
    return InputError(f"{title} of JSON Lines holds more than strings, numbers and nulls{example}{advice}")


def require_fields(files: Sequence[Path], columns: EventColumns) -> None:
    """Check that the fields that are read occur: one that is misspelled would be null in every row.

    Raises:
        InputError: a file cannot be read, or none of the objects that the files begin with has such a field.
    """
    fields: dict[str, None] = {}
    for file in files:
        for _, _, read in objects_of(first_text(file, _LOOKED_AT).split("\n")):
            fields |= dict.fromkeys(read)
        if all(name in fields for _, name in columns.roles):
            return
    require_columns(columns, list(fields), str(files[0]))


def objects_of(lines: Iterable[str]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Each line that is an object of JSON: its number from 1, the line, and the object, with numbers as text."""
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line, parse_int=str, parse_float=str)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield number, line, row
