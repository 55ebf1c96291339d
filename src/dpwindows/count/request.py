"""One count of a source of events, as callers ask for it and engines carry it out."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.query.wanted import Wanted


@dataclass(frozen=True)
class CountRequest:
    """Which events are counted, over which range, and how often an item must occur.

    The source is the path of a Parquet, CSV, JSON, DuckDB or SQLite file, a glob, a directory, a table of a lake, a
    pandas, Polars or Arrow table, an Arrow dataset or stream, a DuckDB relation, the address or SQLAlchemy engine of a
    database, or a Spark data frame or session, with the table or view to read where it holds several. It is read once
    and not written to. Events outside the timeline are left out. By default the source says which engine counts.
    """

    source: object
    columns: EventColumns
    timeline: Timeline
    wanted: Wanted
    table: str | None = None
    settings: EngineSettings = field(default_factory=EngineSettings)
