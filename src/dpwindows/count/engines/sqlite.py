"""SQLite files, through SQLAlchemy, opened read-only and left alone (see `sqlite_files`).

SQLite types values, not columns: a first pass over the table finds which types its columns hold, and a column that
mixes them is refused, since 7 and '7' may be one item or two. Text is compared as bytes, whatever the collation of its
column.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa

from dpwindows.count.engines.database import engine_at, fetch, own_engine, parse_address, run, translated
from dpwindows.count.engines.dialect import INTEGER_TEXT, SHOWN, Column, Dialect, Kind, quote_name, quote_text
from dpwindows.count.engines.files import absent, at_home
from dpwindows.count.engines.names import chosen_table, require_columns
from dpwindows.count.engines.relation import counting_sql, unreadable
from dpwindows.count.engines.sqlite_files import as_it_lies
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.request import CountRequest
from dpwindows.errors import EngineError, InputError

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

_OLDEST = (3, 28)  # the first with RANGE frames of given width
_KINDS = {"integer": Kind.INTEGER, "text": Kind.TEXT, "blob": Kind.EXACT, "real": Kind.FLOAT}
_FAIL = "dpwindows_fail"
_BLANKS = "' ' || char(9) || char(10) || char(13)"


class _SQLite(Dialect):
    """SQLite's spelling: patterns without regular expressions, no GROUPING SETS, no type for times."""

    name = "sqlite"
    grouping_sets = False
    fence = " LIMIT -1"

    def microseconds(self, column: Column, about: str) -> str:
        raise AssertionError("no column of SQLite holds times of their own type")

    def between(self, column: Column, low: datetime, high: datetime) -> str:
        raise AssertionError("no column of SQLite holds times of their own type")

    def matches(self, text: str, pattern: str) -> str:
        return _is_whole_number(text) if pattern == INTEGER_TEXT else _is_time(text)

    def number(self, text: str) -> str:
        # A number beyond 64 bits becomes the nearest of 64 bits.
        return f"CAST(trim({text}, {_BLANKS}) AS INTEGER)"

    def text_literal(self, text: str) -> str:
        # Items and groups of text come as bytes, which no collation compares.
        return f"X'{text.encode().hex()}'"

    def days(self, date: str) -> str:
        # SQLite takes 30 February for 2 March, as soon as it calculates.
        return f"CASE WHEN date({date}, '+0 days') = {date} THEN CAST(strftime('%s', {date}) AS INTEGER) / 86400 END"

    def failure(self, message: str, column: str) -> str:
        return f"{_FAIL}({quote_text(message)}, {column})"


def _is_whole_number(text: str) -> str:
    trimmed = f"trim({text}, {_BLANKS})"
    digits = f"CASE WHEN substr({trimmed}, 1, 1) IN ('+', '-') THEN substr({trimmed}, 2) ELSE {trimmed} END"
    return f"({digits} GLOB '[0-9]*' AND {digits} NOT GLOB '*[^0-9]*')"


def _is_time(text: str) -> str:
    """A condition for TIME_TEXT: each length of the text before its fraction and zone has one pattern."""
    date, minutes, two = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]", "[T ][0-9][0-9]:[0-9][0-9]", "[0-9][0-9]"
    rest = f"substr({text}, 17)"
    seconds = f"substr({rest}, 1, 3) GLOB ':{two}'"
    after = f"CASE WHEN {seconds} THEN substr({rest}, 4) ELSE {rest} END"
    zone = f"ltrim(substr({after}, 2), '0123456789')"
    fraction = f"length({after}) - 1 - length({zone})"

    def is_zone(ending: str) -> str:
        hours = ("[+-]0[0-9]", "[+-]1[0-7]")
        shapes = ("", "Z", *hours, *(f"{hour}:[0-5][0-9]" for hour in hours))
        return " OR ".join(f"{ending} GLOB '{shape}'" for shape in shapes)

    fractional = f"{seconds} AND substr({after}, 1, 1) = '.' AND {fraction} BETWEEN 1 AND 9 AND ({is_zone(zone)})"
    return f"({text} GLOB '{date}' OR {text} GLOB '{date}{minutes}*' AND ({is_zone(after)} OR {fractional}))"


def signed_counts(request: CountRequest) -> pa.Table:
    """See `Engine.signed_counts`: counts a table or view of a SQLite file.

    The source is a path, an address such as sqlite:///path, or a SQLAlchemy engine.
    """
    said: list[str] = []
    with (
        _engine(request.source, request.settings) as engine,
        translated(lambda error: _explain(error, said, request.columns)),
        _snapshot(engine, said) as connection,
    ):
        relation = _relation(connection, request.columns, request.table)
        return fetch(connection, counting_sql(_SQLite(), request, *relation))


@contextmanager
def _engine(source: object, settings: EngineSettings) -> Iterator[Engine]:
    settings.refuse(
        "sqlite",
        memory_limit="SQLite sorts on disk what does not fit its cache",
        spill_directory="SQLite takes the directory that SQLITE_TMPDIR names",
        threads="SQLite counts in one thread",
        password_file="SQLite files have no password",
        spark_master="it is for Spark",
    )
    if sqlite3.sqlite_version_info < _OLDEST:
        raise EngineError(f"Python's SQLite is {sqlite3.sqlite_version}; counting needs 3.28 or newer")
    if isinstance(source, str | Path):
        address, path = _file(source)
        with as_it_lies(path) as immutable:
            yield engine_at(_read_only(address, path, immutable=immutable))
    elif engine := own_engine(source, "sqlite"):
        yield engine
    else:
        raise InputError(
            "the engine sqlite reads the path of a SQLite file, an address such as sqlite:///path, or a SQLAlchemy "
            f"engine for SQLite; got {type(source).__name__}"
        )


def _file(source: str | Path) -> tuple[URL, Path]:
    """The address that a source is or stands for, and the file there."""
    text = str(source)
    address = parse_address(text if "://" in text else "sqlite://", "SQLite")
    path = at_home((address.database or "") if "://" in text else text)
    if not path.is_file():
        raise absent("SQLite file", str(path))
    return address, path


def _read_only(address: URL, path: Path, *, immutable: bool) -> URL:
    """The address of a file such that it is opened for reading only; immutable: without locks, and files beside it."""
    query = {"mode": "ro", "uri": "true"} | ({"immutable": "1"} if immutable else {})
    return address.set(database=f"file:{quote(str(path.absolute()))}", query=query)


@contextmanager
def _snapshot(engine: Engine, said: list[str]) -> Iterator[Connection]:
    """A connection in one transaction. There the function _FAIL keeps its message in `said` and fails."""

    def fail(message: str, column: object) -> None:
        said.append(f"{message}<<{str(column)[:SHOWN]}>>")
        raise ValueError

    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        if not isinstance(driver, sqlite3.Connection):
            raise InputError(f"the driver {engine.driver} is not supported; use sqlite+pysqlite, which is the default")
        driver.create_function(_FAIL, 2, fail)
        try:
            if not driver.in_transaction:
                run(connection, "BEGIN")
            yield connection
        finally:
            connection.rollback()
            driver.create_function(_FAIL, 2, None)


def _relation(connection: Connection, columns: EventColumns, table: str | None) -> tuple[str, dict[str, Column]]:
    """The query for our columns of a table or view as item, time[, count], and what they hold."""
    found = run(connection, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name").scalars()
    names = [name for name in found if not name.startswith("sqlite_")]
    _, name = chosen_table([("main", name) for name in names], names, table, "the SQLite file")
    relation = quote_name(name)
    available = list(run(connection, f"SELECT * FROM {relation} LIMIT 0").keys())
    require_columns(columns, available, f"table {name}")
    types = _types(connection, relation, columns)
    chosen = ", ".join(
        f"CAST({quote_name(name)} AS BLOB) AS {role}"
        if role not in ("time", "count") and types[role].kind is Kind.TEXT
        else f"{quote_name(name)} AS {role}"
        for role, name in columns.roles
    )
    return f"SELECT {chosen} FROM {relation}", types


def _types(connection: Connection, relation: str, columns: EventColumns) -> dict[str, Column]:
    """What our columns hold, from a pass over all rows: which types occur, and nothing of the values."""
    wanted = ", ".join(f"typeof({quote_name(name)})" for _, name in columns.roles)
    rows = run(connection, f"SELECT DISTINCT {wanted} FROM {relation}").all()
    return {role: _column({row[place] for row in rows} - {"null"}) for place, (role, _) in enumerate(columns.roles)}


def _column(held: set[str]) -> Column:
    if len(held) > 1:
        return Column(Kind.FLOAT if "real" in held else Kind.OTHER, " and ".join(sorted(map(str.upper, held))))
    return Column(_KINDS[min(held)], min(held).upper()) if held else Column(Kind.NULL, "NULL")


def _explain(error: BaseException | None, said: list[str], columns: EventColumns) -> InputError | EngineError:
    if said and (refusal := unreadable(said[0], columns)):
        return refusal
    text = str(error)
    if "locked" in text:
        return EngineError("the SQLite file is locked by a process that writes to it; try again later")
    # A number in the header that no version writes has no code of its own.
    unknown = "unsupported file format" in text
    if isinstance(error, sqlite3.DatabaseError) and (unknown or not isinstance(error, sqlite3.OperationalError)):
        return InputError("the SQLite file cannot be read: it is damaged, or it is no SQLite file")
    known = ("disk is full", "disk I/O error", "unable to open database file", "out of memory")
    found = [hint for hint in known if hint in text]
    return EngineError(f"SQLite failed: {found[0]}" if found else f"SQLite failed ({type(error).__name__})")
