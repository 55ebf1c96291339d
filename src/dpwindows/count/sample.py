"""The first rows of a log, and what they suggest to its operator. No release depends on it.

A release never guesses: the caller says what a value means. Here are guesses to confirm: how a file is laid out, which
columns hold items and times, how times are written, and whether they carry a zone.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from dpwindows.count.engines import engine_name
from dpwindows.count.engines.duckdb import private_engine, running
from dpwindows.count.events import SPACES, CsvLayout, EngineSettings, EventColumns
from dpwindows.count.query.dialect import TIME_TEXT, Kind, quote_name
from dpwindows.count.sources.csv_files import DELIMITERS, delimiter_of
from dpwindows.count.sources.database import database_of
from dpwindows.count.sources.duckdb import column_of, database_table, file_list
from dpwindows.count.sources.files import files_of, first_text, kind_of, text_of
from dpwindows.count.sources.json_lines import objects_of
from dpwindows.count.sources.sqlite import first_rows
from dpwindows.count.time_formats import EPOCHS, has_clock, has_offset
from dpwindows.errors import EngineError, InputError

_ROWS, _TIMES, _CHARACTERS = 1_000, 200, 1 << 20
_CLOCK, _ZONED = re.compile(r"[0-9]:[0-9]"), re.compile(r":.*(Z|[+-])")
_PYTHON_KINDS = {int: Kind.INTEGER, float: Kind.FLOAT, str: Kind.TEXT, bytes: Kind.EXACT}
_TIME_NAMES = re.compile(r"time|date|(^|_)(ts|at|day|when|moment|epoch)($|_)|timestamp|created|occurred", re.IGNORECASE)
_ITEM_NAMES = re.compile(
    r"user|item|visitor|customer|client|member|account|session|device|host|person|patient|player|driver|bike|mail|"
    r"tailnum|who|cookie|(^|_)(id|ip|uid|uuid)($|_)|id$",
    re.IGNORECASE,
)
_NATIVE = (Kind.WALL, Kind.INSTANT, Kind.DATE)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_DAYS = ("%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d")
_PATTERNS = (
    *(day + clock for day in _DAYS for clock in _CLOCKS),
    *("%Y%m%d", "%Y%m%d %H:%M:%S", "%Y%m%d%H%M%S", "%d/%b/%Y:%H:%M:%S %z", "%d %b %Y", "%b %d, %Y", "%d-%b-%Y"),
    *("%a %b %d %H:%M:%S %Y", "%d %b %Y %H:%M:%S"),
)
# Seconds since 1970 of the years 1990 to 2100.
_FIRST, _LAST = 631_152_000, 4_102_444_800
_NO_NAME = re.compile(r"\s*|[+-]?[0-9.,:/ -]+([eE][+-]?[0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}.*")


@dataclass(frozen=True)
class Sample:
    """The columns of a source, and their values in its first rows.

    `values[name]` are texts, None where there is no value; `kinds[name]` is what the column's type says, TEXT for files
    of text. `layout` says how CSV files are laid out, as given or else as their first lines suggest; None where nothing
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
    match kind_of(files, source, csv=layout is not None):
        case "CSV":
            return _csv_sample(files[0], layout)
        case "JSON Lines":
            return _json_sample(files[0])
        case "SQLite":
            return _sqlite_sample(files[0], table)
        case kind:
            return _typed_sample(files[0], table, database=kind == "DuckDB")


def _typed_sample(file: Path, table: str | None, *, database: bool) -> Sample:
    with private_engine(EngineSettings()) as connection, running(EventColumns("item", "time")):
        relation = database_table(connection, file, table)[0] if database else f"read_parquet({file_list([file])})"
        described = connection.sql(f"SELECT * FROM {relation}")
        kinds = {name: column_of(kind.id).kind for name, kind in zip(described.columns, described.types, strict=True)}
        if not database:
            old = f"SELECT name FROM parquet_schema({file_list([file])}) WHERE type = 'INT96'"
            kinds |= {name: Kind.INSTANT for (name,) in connection.execute(old).fetchall() if name in kinds}
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
    return Sample(values, dict.fromkeys(names, Kind.TEXT), layout)


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


def remark_on_zones(source: str, columns: EventColumns, table: str | None, settings: EngineSettings) -> str | None:
    """What to say where times were read in UTC because neither they nor the operator name a zone; else None.

    Dates carry no zone and need none. A source that is not read here, or not at all, is left to whoever reads it.
    """
    with suppress(InputError, EngineError, OSError, KeyError):
        here = engine_name(source, settings) == "duckdb"
        # What is read from a pipe is gone.
        there = database_of(source) or all(file.is_file() for file in files_of(source))
        if here and there and _are_naive(source, columns, table):
            return (
                f"times in the column {columns.time!r} carry no zone and are read as UTC: if they are local, name "
                f"their zone with --time-zone"
            )
    return None


def _are_naive(source: str, columns: EventColumns, table: str | None) -> bool:
    pattern = columns.time_format
    if pattern is not None:
        return pattern not in EPOCHS and has_clock(pattern) and not has_offset(pattern)
    sample = sample_of(source, columns.layout, table)
    texts = [text for text in sample.values[columns.time] if text is not None]
    unzoned = any(_CLOCK.search(text) and not _ZONED.search(text) for text in texts)
    return sample.kinds[columns.time] is Kind.WALL or (sample.kinds[columns.time] is Kind.TEXT and unzoned)


@dataclass(frozen=True)
class TimeGuess:
    """How a column's times seem to be written: `formats` that read all of its first values, the likeliest first.

    A format is what `--time-format` takes, "iso" where nothing need be said, "integer" for whole numbers that are
    times of their own; the higher the `score`, the likelier the column is one of times.
    """

    formats: tuple[str, ...]
    score: int


def time_guess(values: Sequence[str | None], kind: Kind) -> TimeGuess | None:
    """How the values of a column may be times; None if nothing that is known reads all of them."""
    if kind in _NATIVE:
        return TimeGuess(("iso",), 4)
    there = [value.strip() for value in values if value is not None][:_TIMES]
    if not there:
        return TimeGuess(("iso",), 0)
    if all(re.fullmatch(TIME_TEXT, value) for value in there):
        return TimeGuess(("iso",), 4)
    if fitting := tuple(pattern for pattern in _PATTERNS if all(_fits(value, pattern) for value in there)):
        return TimeGuess(fitting, 3)
    if not all(re.fullmatch(r"-?[0-9]+([.]0*)?", value) for value in there):
        return None
    for name, microseconds in EPOCHS.items():
        if all(_FIRST <= float(value) * microseconds / 10**6 < _LAST for value in there):
            return TimeGuess((name,), 2)
    return TimeGuess(("integer",), 0)


def _fits(value: str, pattern: str) -> bool:
    try:
        moment = datetime.strptime(value, pattern)
    except ValueError:
        return False
    return 1900 <= moment.year < 2200


def guessed_columns(sample: Sample, item: str | None, time: str | None) -> tuple[str, str]:
    """The columns of items and of times: those given, and for the others the likeliest by name and values.

    Raises:
        InputError: no column looks like either.
    """
    guesses = {name: time_guess(sample.values[name], sample.kinds[name]) for name in sample.names}

    def likeliest(role: str, scores: Mapping[str, Any]) -> str:
        if not scores:
            columns = ", ".join(sample.names)
            raise InputError(f"no column looks like one of {role}s: name it with --{role}; the columns are {columns}")
        return max(scores, key=lambda name: scores[name])

    def item_score(name: str) -> tuple[bool, bool, float]:
        """By name first; then no time and no measured number; then what has many values, and again and again."""
        there = [value for value in sample.values[name] if value is not None]
        share = len(set(there)) / len(there) if there else 0.0
        guess, measured = guesses[name], sample.kinds[name] in (Kind.NESTED, Kind.FLOAT, Kind.DECIMAL)
        exact = not measured and (guess is None or not guess.score)
        return bool(_ITEM_NAMES.search(name)), exact, share * (1.5 - share)

    if time is None:
        named = {name: bool(_TIME_NAMES.search(name)) for name in sample.names}
        scores = {name: guess.score + 2 * named[name] for name, guess in guesses.items() if guess and name != item}
        time = likeliest("time", {name: score for name, score in scores.items() if score})
    if item is None:
        item = likeliest("item", {name: item_score(name) for name in sample.names if name != time})
    return item, time
