"""The query that is printed, run by hand, gives a file of the counts that the engine makes; nothing else is read."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.groups import grouping
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.ask.timeline import Timeline
from dpwindows.count import counting
from dpwindows.count.dialects import dialect_named
from dpwindows.count.events import CountsFile, CsvLayout, EngineSettings, EventColumns
from dpwindows.count.query.standalone import standalone_sql
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest
from dpwindows.errors import InputError
from tests.count.engines.logs import LOGS, THRESHOLDS, Log, Place, in_duckdb_table, in_postgresql, in_spark
from tests.search import examples

PLAIN = {"zoned": "timestamptz", "naive": "timestamp"}


def asked_of(log: Log, place: Place, **more: Any) -> CountRequest:
    columns = EventColumns("item", "time", "count" if log.weighted else None)
    wanted = Wanted((OCCURRENCES, *THRESHOLDS), **more)
    return CountRequest(
        place.source, columns, log.timeline, wanted, place.table or "log", place.settings or EngineSettings()
    )


def printed(dialect: str, log: Log, asked: CountRequest) -> str:
    item = log.table.schema.field("item").type
    types = {
        "item": {"string": "text", "int64": "integer"}.get(str(item), "decimal"),
        "time": PLAIN.get(log.time, log.time),
    }
    if dialect == "spark" and log.time == "naive":
        types["time"] = "timestamp_ntz"
    return standalone_sql(dialect_named(dialect), asked, types | {"count": log.count} if log.weighted else types)


def by_hand_in_duckdb(path: Path, query: str, file: Path) -> CountsFile:
    """As in a terminal: COPY (...) TO 'counts.csv'."""
    with duckdb.connect(path, read_only=True) as connection:
        connection.execute(f"COPY ({query}) TO '{file}'")
    return CountsFile(file)


def answers(asked: CountRequest, source: object) -> list[bytes]:
    request = replace(
        asked, source=source, settings=EngineSettings() if isinstance(source, CountsFile) else asked.settings
    )
    count = counting.count_events if asked.columns.grouping is None else counting.count_groups
    return list(count(request).canonical())


@pytest.mark.quick(4)
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_what_duckdb_gives_by_hand_are_the_counts_of_the_engine(
    log: Log, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Out of a table with a collation by which many texts are equal."""
    place = in_duckdb_table(log.table, tmp_path, request)
    asked = asked_of(log, place)
    assert isinstance(place.source, Path)
    ending = ".parquet" if log in LOGS[::2] else ".csv"
    file = by_hand_in_duckdb(place.source, printed("duckdb", log, asked), tmp_path / f"counts{ending}")
    assert answers(asked, file) == answers(asked, place.source)


@pytest.mark.xdist_group("postgresql")
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_what_postgresql_gives_by_hand_are_the_counts_of_the_engine(
    log: Log, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """As by `\\copy (...) TO counts.csv CSV HEADER`, under settings that must not matter."""
    place = in_postgresql(log.table, tmp_path, request)
    asked, server = asked_of(log, place), request.getfixturevalue("server")
    with server.connect() as connection, (tmp_path / "counts.csv").open("wb") as file:
        connection.execute("SET timezone = 'Australia/Lord_Howe'")
        with connection.cursor().copy(f"COPY ({printed('postgresql', log, asked)}) TO STDOUT CSV HEADER") as copy:
            file.writelines(copy)
    assert answers(asked, CountsFile(tmp_path / "counts.csv")) == answers(asked, place.source)


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("log", LOGS[1:4:2], ids=lambda log: log.name)
def test_what_spark_gives_by_hand_are_the_counts_of_the_engine(
    log: Log, tmp_path: Path, request: pytest.FixtureRequest, spark: SparkSession
) -> None:
    """It writes a folder of Parquet files, beside files of its own."""
    place = in_spark(log.table, tmp_path, request)
    asked = replace(asked_of(log, place), table=None)
    spark.read.parquet(str(place.source)).createOrReplaceTempView("log")
    by_name = replace(asked, table="log")
    spark.sql(printed("spark", log, by_name)).write.parquet(str(tmp_path / "counts"))
    held = answers(by_name, CountsFile(tmp_path / "counts"))
    assert held == answers(asked, place.source)


# --- groups and rules ---------------------------------------------------------------------------------------------------

DAYS = Timeline("2021-01-01", "2021-01-13")
BY = {"origin": ["EWR", "it's", 'a "b"', "\\x", "ä"], "n": [1, 2, 3]}
ROWS = 400
COLUMNS = EventColumns("visitor", "seen at", "n")


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a table whose names need quotes."""
    path = tmp_path_factory.mktemp("visits") / "visits.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("listed", pa.table({"place": range(6), "origin": [*BY["origin"], None]}))
        connection.execute('CREATE SCHEMA "web.log"')
        connection.execute(
            f"""CREATE TABLE "web.log".visits AS SELECT range * 7919 % 31 AS visitor, origin, range % 5 AS n,
            TIMESTAMP '2020-12-31' + INTERVAL 1 HOUR * (range * 131 % 340) AS "seen at"
            FROM range({ROWS}) JOIN listed ON place = range * range % 11"""
        )
    return path


GROUPED = [
    grouping({"origin": BY["origin"]}, totals=0.1),
    grouping(BY, totals=0.1),
    grouping(BY, group_of="item"),
    grouping(BY, max_groups=2, totals=0.3),
]
RULED = [
    Wanted((1, 2), CountingRule(max_runs=1), ((1, 3), (2, 4)), loss=True),
    Wanted((OCCURRENCES, 1, 3), CountingRule(max_occurrences=2), loss=True),
    Wanted((OCCURRENCES, 1, 3), CountingRule(distinct_steps=True)),
]
CASES = [
    *((Wanted((OCCURRENCES, 1, 2)), groups) for groups in GROUPED),
    *((wanted, None) for wanted in RULED),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_groups_and_rules_are_counted_by_hand_as_by_the_engine(case: int, visits: Path, tmp_path: Path) -> None:
    wanted, groups = CASES[case]
    columns = EventColumns("visitor", "seen at", None if groups is not None else "n", grouping=groups)
    asked = CountRequest(None, columns, DAYS, wanted, '"web.log".visits')
    types = {"item": "bigint", "time": "timestamp"} | ({"count": "integer"} if groups is None else {"origin": "text"})
    types |= {"n": "integer"} if groups is not None and "n" in groups.names else {}
    query = standalone_sql(dialect_named("duckdb"), asked, types)
    held = by_hand_in_duckdb(visits, query, tmp_path / "counts.csv")
    assert answers(asked, held) == answers(replace(asked, table='"web.log"."visits"'), visits)
