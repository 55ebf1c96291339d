"""Every engine counts every log alike, to the last integer, and as the definition says."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from dpwindows.events import EngineSettings, EventColumns
from dpwindows.recency import count_events
from tests.engines import servers
from tests.engines.logs import LOGS, THRESHOLDS, Log


@dataclass(frozen=True)
class Place:
    """Where a log has been put."""

    source: object
    table: str | None = None
    settings: EngineSettings | None = None


def in_duckdb(log: Log, directory: Path, request: pytest.FixtureRequest) -> Place:
    return Place(log.table)


def in_duckdb_table(log: Log, directory: Path, request: pytest.FixtureRequest) -> Place:
    """A table whose texts are of a collation by which many of them are equal."""
    path = directory / "log.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("rows", log.table)
        described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE rows)").fetchall()
        collated = {"VARCHAR": "VARCHAR COLLATE NOCASE.NOACCENT"}
        kinds = ", ".join(f'"{name}" {collated.get(kind, kind)}' for name, kind in described)
        connection.execute(f"CREATE TABLE log ({kinds})")
        connection.execute("INSERT INTO log SELECT * FROM rows")
    return Place(path, "log")


def in_sqlite(log: Log, directory: Path, request: pytest.FixtureRequest) -> Place:
    path = directory / "log.sqlite"

    def plain(value: Any) -> Any:
        return str(value) if isinstance(value, datetime | date) else value

    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE log (item COLLATE NOCASE, time, count INTEGER)")
        connection.executemany("INSERT INTO log VALUES (?, ?, ?)", [tuple(map(plain, row)) for row in log.rows])
    connection.close()
    return Place(path)


def in_postgresql(log: Log, directory: Path, request: pytest.FixtureRequest) -> Place:
    server: servers.PostgreSQL = request.getfixturevalue("server")
    item = "text" if isinstance(log.rows[0][0], str) else "bigint"
    time = {"zoned": "timestamptz", "naive": "timestamp", "date": "date", "integer": "bigint", "text": "text"}[log.time]
    with server.connect() as connection:
        connection.execute(f'CREATE TABLE "{log.name}" (item {item}, time {time}, count bigint)')
        connection.execute(f'GRANT SELECT ON "{log.name}" TO reader')
        with connection.cursor().copy(f'COPY "{log.name}" FROM STDIN') as copy:
            for row in log.rows:
                copy.write_row(row)
    return Place(server.address(), log.name)


def in_spark(log: Log, directory: Path, request: pytest.FixtureRequest) -> Place:
    request.getfixturevalue("spark")
    pq.write_table(log.table, directory / "log.parquet")
    return Place(directory / "log.parquet", None, EngineSettings(engine="spark"))


Put = Callable[[Log, Path, pytest.FixtureRequest], Place]
ENGINES = [
    pytest.param(in_duckdb, id="duckdb"),
    pytest.param(in_duckdb_table, id="duckdb-table"),
    pytest.param(in_sqlite, id="sqlite"),
    pytest.param(in_postgresql, id="postgresql", marks=pytest.mark.xdist_group("postgresql")),
    pytest.param(in_spark, id="spark", marks=pytest.mark.xdist_group("spark")),
]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
@pytest.mark.parametrize("put", ENGINES)
def test_every_engine_counts_as_the_definition_says(
    put: Put, log: Log, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = put(log, tmp_path, request)
    columns = EventColumns("item", "time", "count" if log.weighted else None)
    answers = count_events(place.source, columns, log.timeline, THRESHOLDS, table=place.table, settings=place.settings)
    steps = log.timeline.steps
    assert sum(map(sum, log.windows[1])) > 0
    for k in THRESHOLDS:
        assert answers.windows(k, 1, steps, 1, steps).tolist() == log.windows[k]
