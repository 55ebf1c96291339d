"""Dialects: found by their names, pinned where their databases do not run here, and types of columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dpwindows.ask.timeline import Timeline
from dpwindows.count.dialects import DIALECTS, dialect_named
from dpwindows.count.engines import ENGINES
from dpwindows.count.engines.sql import RUN_HERE, require_as_meant
from dpwindows.count.query.dialect import Dialect, Kind
from dpwindows.count.query.probe import PROBED_COLUMNS, probes, refused
from dpwindows.count.query.relation import unreadable
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest
from dpwindows.errors import EngineError, InputError
from tests.count.dialects.spelling import FOLDER, PINNED, spelling


@pytest.mark.parametrize("name", PINNED)
def test_what_does_not_run_here_is_spelled_as_it_was_read_by_a_person(name: str) -> None:
    assert spelling(dialect_named(name)) == (FOLDER / f"{name}.txt").read_text("utf-8")


def test_every_dialect_runs_here_or_is_pinned() -> None:
    assert set(DIALECTS) == set(ENGINES) == {"duckdb", "spark", *RUN_HERE, *PINNED}
    assert {path.stem for path in FOLDER.iterdir()} == set(PINNED)
    with pytest.raises(InputError, match=r"no dialect 'snowflak' \(did you mean 'snowflake'\?\); the dialects are"):
        dialect_named("snowflak")


@pytest.mark.parametrize("name", DIALECTS)
def test_the_probe_is_written_in_every_dialect(name: str) -> None:
    dialect = dialect_named(name)
    written = list(probes(dialect))
    assert len(written) >= 13
    assert sum(len(probe.rows) for probe in written) > 400
    assert len(list(refused(dialect))) == 4


TYPES = {
    "clickhouse": {
        "LowCardinality(Nullable(String))": Kind.TEXT,
        "Nullable(DateTime64(6, 'Europe/Berlin'))": Kind.INSTANT,
        "Decimal(38, 0)": Kind.INTEGER,
        "Decimal(38, 9)": Kind.DECIMAL,
        "Enum8('a' = 1, 'b)' = 2)": Kind.EXACT,
        "FixedString(3)": Kind.EXACT,
        "Array(String)": Kind.NESTED,
        "Nothing": Kind.NULL,
        "AggregateFunction(sum, Int64)": Kind.OTHER,
    },
    "datafusion": {
        "dictionary<values=string, indices=int32, ordered=0>": Kind.TEXT,
        "timestamp[ns]": Kind.WALL,
        "timestamp": Kind.OTHER,
        "timestamp[s, tz=+01:00]": Kind.INSTANT,
        "decimal128(10, 0)": Kind.INTEGER,
        "list<item: int64>": Kind.NESTED,
        "duration[us]": Kind.OTHER,
    },
    "snowflake": {"DECIMAL(38, 0)": Kind.INTEGER, "TIMESTAMP_NTZ(9)": Kind.WALL, "VARIANT": Kind.NESTED},
    "trino": {
        "TIMESTAMP(3) WITH TIME ZONE": Kind.INSTANT,
        "timestamp(9)": Kind.WALL,
        "timestamp(12)": Kind.OTHER,
        "char(3)": Kind.OTHER,
        "row(a bigint)": Kind.NESTED,
    },
    "bigquery": {"NUMERIC": Kind.DECIMAL, "DATETIME": Kind.WALL, "ARRAY<STRING>": Kind.NESTED},
    "databricks": {"DECIMAL(20, 0)": Kind.INTEGER, "TIMESTAMP": Kind.INSTANT, "STRING COLLATE UTF8_LCASE": Kind.TEXT},
    "redshift": {"TIMESTAMP WITHOUT TIME ZONE": Kind.WALL, "CHAR(3)": Kind.OTHER, "NUMERIC(18, 0)": Kind.INTEGER},
}


@pytest.mark.parametrize(
    ("name", "type_name", "kind"),
    [(name, shown, kind) for name, types in TYPES.items() for shown, kind in types.items()],
)
def test_what_a_type_can_serve_as(name: str, type_name: str, kind: Kind) -> None:
    assert dialect_named(name).column_of(type_name).kind is kind


@pytest.mark.xdist_group("clickhouse")
def test_clickhouse_is_told_to_fail_where_it_may_be_set_to_leave_rows_out(clickhouse: Any) -> None:
    query = "SELECT name FROM system.settings WHERE type LIKE 'OverflowMode%' FORMAT TSV"
    names = str(clickhouse.query(query)).split()
    text = dialect_named("clickhouse").statement("SELECT 1")
    assert len(names) >= 11
    assert [name for name in names if f" {name} = 'throw'" not in text] == []


class InSpark:
    """An executor for Spark."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def run(self, query: str) -> pa.Table:
        try:
            return self._session.sql(query).toArrow()
        except PySparkException as error:
            raise unreadable(str(error), PROBED_COLUMNS) or EngineError(str(error)[:500]) from None


@pytest.mark.search(0)
@pytest.mark.xdist_group("spark")
def test_the_text_for_databricks_is_read_by_spark_as_it_is_meant(spark: SparkSession) -> None:
    @contextmanager
    def opening(request: CountRequest, dialect: Dialect) -> Iterator[Any]:
        yield InSpark(spark)

    request = CountRequest(None, PROBED_COLUMNS, Timeline.of_steps(2), Wanted((1,)))
    require_as_meant(opening, request, dialect_named("databricks"))
