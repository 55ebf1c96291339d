"""One count of a source of events, as callers ask for it and engines carry it out."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.query.wanted import Wanted


@dataclass(frozen=True)
class CountRequest:
    """Which events are counted, over which range, and how often an item must occur.

    Attributes:
        source: the path of a Parquet, CSV, JSON, DuckDB or SQLite file, a glob, a directory, a pandas, Polars or Arrow
            table, a record batch reader, a DuckDB relation, the address or SQLAlchemy engine of a database, or a Spark
            data frame or session. It is read once and not written to.
        columns: the columns that hold item, time and count, and the groups that events are counted in.
        timeline: the range; events outside it are left out.
        wanted: the thresholds k, and which occurrences count.
        table: the table or view to read where the source holds several.
        settings: which engine counts, and how it may use the machine; by default the source says which.
    """

    source: object
    columns: EventColumns
    timeline: Timeline
    wanted: Wanted
    table: str | None = None
    settings: EngineSettings = field(default_factory=EngineSettings)
