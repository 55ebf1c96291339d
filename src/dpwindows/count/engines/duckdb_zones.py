"""Whether the times of a log carry a zone: for a note to its operator. No release depends on it."""

from __future__ import annotations

import re

import duckdb

from dpwindows.count.engines import engine_name
from dpwindows.count.engines.duckdb import private_engine
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.query.dialect import Kind
from dpwindows.count.sources.database import database_of
from dpwindows.count.sources.duckdb import find_parts
from dpwindows.count.sources.files import files_of
from dpwindows.count.time_formats import EPOCHS, has_clock, has_offset
from dpwindows.errors import EngineError, InputError

_ROWS = 200
_CLOCK, _ZONED = re.compile(r"[0-9]:[0-9]"), re.compile(r":.*(Z|[+-])")


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
        for part in find_parts(connection, source, columns, table, copied=_ROWS):
            kind = part.types["time"].kind
            if kind is Kind.WALL:
                return True
            if kind is Kind.TEXT:
                rows = connection.execute(f"SELECT time FROM ({part.sql}) AS source LIMIT {_ROWS}").fetchall()
                if any(_CLOCK.search(text or "") and not _ZONED.search(text) for (text,) in rows):
                    return True
    return False
