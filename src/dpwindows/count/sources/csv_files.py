"""The first line of a CSV file: what delimits its fields, and what its columns are called.

Every engine reads CSV by the same rules. Text is UTF-8. Lines end as the first one does, with a line feed, or with a
carriage return and a line feed. A field with a delimiter, a quote or a line end in it stands in double quotes, where a
quote is written twice. Every line has as many fields as the first one, and empty lines are passed over. All fields are
text, byte for byte: one that is empty is null, and "" is a text of no characters. A line whose columns of ours hold
their own names is the line of names, there or repeated where files were joined, and is no event.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from dpwindows.count.events import SPACES, EventColumns
from dpwindows.count.sources.files import first_text
from dpwindows.count.sources.names import listed, require_columns
from dpwindows.errors import InputError, counted, near

DELIMITERS = (",", ";", "\t", "|")
_LONGEST_HEADER, _LONGEST_ROW = 1 << 20, 1 << 16


@dataclass(frozen=True)
class CsvHeader:
    """How the fields and the lines of a file end, the names of its columns, and whether its first line has them."""

    delimiter: str
    names: tuple[str, ...]
    line_end: str = "\n"
    named: bool = True

    def places(self, columns: EventColumns) -> dict[str, int]:
        """Where the column of each role stands, from 0."""
        return {role: self.names.index(name) for role, name in columns.roles}


def read_header(file: Path, columns: EventColumns) -> CsvHeader:
    """The header of a file, compressed or not.

    Raises:
        InputError: the file cannot be read, or its first line lacks one of our columns; or, where there is no line of
            names, has not as many fields as there are names, or holds them.
    """
    layout = columns.layout
    line = first_text(file, _LONGEST_HEADER).partition("\n")[0]
    if layout is None or layout.names is None:
        return parse_header(line, columns, str(file))
    header, line = CsvHeader(layout.delimiter or ",", layout.names, named=False), line.rstrip("\r")
    if not line.strip() or '"' in line or len(line) > _LONGEST_ROW:
        return header  # left to the engine
    fields = _names(line, header.delimiter)
    if len(fields) != len(header.names):
        raise InputError(
            f"line 1 of {file} has {counted(len(fields), 'field')} where it is cut at {header.delimiter!r}, and "
            f"--columns names {len(header.names)} ({', '.join(header.names)}): name all columns, from left to right, "
            "or say what delimits them (--delimiter)"
        )
    if all(fields[place] == header.names[place] for place in header.places(columns).values()):
        raise InputError(
            f"line 1 of {file} holds the names of the columns, and the file is read as one without (--no-header): take "
            "that line out, or leave out --no-header and --columns (of a stream, when it is created)"
        )
    return header


def parse_header(line: str, columns: EventColumns, what: str) -> CsvHeader:
    """The header that stands before the first line feed.

    Raises:
        InputError: it lacks one of our columns. A line that has none of them is not repeated: it may be a row.
    """
    line_end = "\r\n" if line.endswith("\r") else "\n"
    line = line.partition("\r")[0]
    if not line.strip():
        raise InputError(f"{what} is empty; a CSV file begins with a line of column names")
    wanted, asked = {name for _, name in columns.roles}, ", ".join(repr(name) for _, name in columns.roles)
    mark = (columns.layout and columns.layout.delimiter) or delimiter_of(line)
    header = CsvHeader(mark, tuple(_names(line, mark)), line_end)
    if not wanted <= set(header.names):
        if (other := next((other for other in DELIMITERS if wanted <= set(_names(line, other))), None)) is not None:
            raise InputError(
                f"the first line of {what} names the columns {asked} where it is cut at {other!r}, and not where it is "
                f"cut at {mark!r}: give --delimiter {other!r}"
            )
        # A first line that is like one of the names asked for, or has them all in it, is of names, and no row.
        there = wanted & set(header.names) or wanted <= set(re.findall(r"\w+", line))
        if not there and not any(near(name, header.names) for name in wanted):
            raise InputError(
                f"the first line of {what} names none of the columns {asked}: is the line of names missing? Then give "
                f"--no-header --columns NAME,NAME,...; if it is there, is it delimited by something else (--delimiter)?"
            )
        if len(header.names) == 1:
            raise one_column(what, header)
    require_columns(columns, header.names, what)
    return header


def one_column(what: str, header: CsvHeader) -> InputError:
    """The error for a file with one column, whose first line is cut at what is not in it."""
    return InputError(
        f"{what}, cut at {header.delimiter!r}, has one column, {listed(header.names)}: if it has more, say with "
        f"--delimiter what delimits them"
    )


def delimiter_of(line: str) -> str:
    """What a line of names is delimited by where nobody says it: by what makes most names of it, first by a comma.

    Which columns are asked for is no part of it: beside another one, a column of the same name could be another.
    """
    return max(DELIMITERS, key=lambda mark: len(_names(line, mark)))


def _names(line: str, delimiter: str) -> list[str]:
    return re.findall(r"[^ \t]+", line) if delimiter == SPACES else next(csv.reader([line], delimiter=delimiter))
