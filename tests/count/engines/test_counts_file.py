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
    return CountRequest(place.source, columns, log.timeline, wanted, place.table or "log", place.settings or EngineSettings())


def printed(dialect: str, log: Log, asked: CountRequest) -> str:
    item = log.table.schema.field("item").type
    types = {"item": {"string": "text", "int64": "integer"}.get(str(item), "decimal"), "time": PLAIN.get(log.time, log.time)}
    if dialect == "spark" and log.time == "naive":
        types["time"] = "timestamp_ntz"
    return standalone_sql(dialect_named(dialect), asked, types | {"count": log.count} if log.weighted else types)


def by_hand_in_duckdb(path: Path, query: str, file: Path) -> CountsFile:
    """As in a terminal: COPY (...) TO 'counts.csv'."""
    with duckdb.connect(path, read_only=True) as connection:
        connection.execute(f"COPY ({query}) TO '{file}'")
    return CountsFile(file)


def answers(asked: CountRequest, source: object) -> list[bytes]:
    request = replace(asked, source=source, settings=EngineSettings() if isinstance(source, CountsFile) else asked.settings)
    count = counting.count_events if asked.columns.grouping is None else counting.count_groups
    return list(count(request).canonical())
