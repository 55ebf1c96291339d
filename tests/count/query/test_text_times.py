"""What text every engine reads as a time, and as which one: the same texts, and the same microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import datafusion
import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dpwindows.count.dialects import dialect_named
from dpwindows.count.query.dialect import quote_text
from tests.count.engines.servers import PostgreSQL

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Found = dict[str, tuple[int | None, int | None]]


def us(year: int, month: int, day: int, *clock: int) -> int:
    """Microseconds since 1970 of a date and hour, minute, second and microsecond."""
    hour, minute, second, microsecond = (*clock, 0, 0, 0, 0)[:4]
    moment = datetime(year, month, day, hour, minute, second, microsecond, tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


HOUR = 3_600_000_000
DAY = us(2013, 1, 31)
# The instant, or the microseconds on the clock where there is no offset; and whether there is one.
READ: dict[str, tuple[int, bool]] = {
    "2013-01-31": (DAY, False),
    "2013-01-31T06:30": (us(2013, 1, 31, 6, 30), False),
    "2013-01-31 06:30:59": (us(2013, 1, 31, 6, 30, 59), False),
    "2013-01-31T06:30:59.5": (us(2013, 1, 31, 6, 30, 59, 500_000), False),
    "2013-01-31T23:59:59.999999": (us(2013, 1, 31, 23, 59, 59, 999_999), False),
    "2013-01-31T23:59:59.999999999": (us(2013, 1, 31, 23, 59, 59, 999_999), False),
    "1969-12-31T23:59:59.9999999": (-1, False),
    "1582-10-10T00:00:00": (us(1582, 10, 10), False),
    "0001-01-01": (us(1, 1, 1), False),
    "9999-12-31T23:59:59": (us(9999, 12, 31, 23, 59, 59), False),
    "2012-02-29T00:00": (us(2012, 2, 29), False),
    "2013-01-31T24:00": (DAY + 24 * HOUR, False),
    "2013-01-31T24:00:00.000": (DAY + 24 * HOUR, False),
    "2013-01-31T06:30Z": (us(2013, 1, 31, 6, 30), True),
    "2013-01-31T06:30:00Z": (us(2013, 1, 31, 6, 30), True),
    "2013-01-31 06:30:00.25Z": (us(2013, 1, 31, 6, 30, 0, 250_000), True),
    "2013-01-31T06:30+01": (us(2013, 1, 31, 5, 30), True),
    "2013-01-31T06:30:00-05": (us(2013, 1, 31, 11, 30), True),
    "2013-01-31T06:30:00.1234567-03:30": (us(2013, 1, 31, 10, 0, 0, 123_456), True),
    "2013-01-31T00:00:00+17:59": (us(2013, 1, 30, 6, 1), True),
    "2013-01-31T24:00+00:00": (DAY + 24 * HOUR, True),
}
REFUSED = [
    *("", "2013", "31/01/2013", "1357000000", "now", "infinity", "2013-1-31", " 2013-01-31", "2013-01-31\n"),
    *("2013-01-31T", "2013-01-31T06", "2013-01-31T6:30", "2013-01-31t06:30", "2013-01-31T06:30:00."),
    *("2013-01-31T06:30:00.1234567890", "2013-01-31T06:30.5", "2013-01-31T06:60", "2013-01-31T06:30:60"),
    *("2013-01-31T25:00", "2013-01-31T24:01", "2013-01-31T24:00:00.001", "2013-01-31T06:30z", "2013-01-31T06:30+1"),
    *("2013-01-31T06:30+0100", "2013-01-31T06:30+01:60", "2013-01-31T06:30+18:00", "2013-01-31T06:30+01:00:00"),
    *("2013-01-31T06:30 UTC", "2013-01-31T06:30:00 America/New_York", "2013-01-31+01:00", "2013-13-01"),
    *("2013-02-30", "2013-02-29T00:00", "2013-04-31T00:00Z", "2013-00-10", "2013-01-00"),
]


def texts(kept: list[str]) -> str:
    """A relation of these texts. Line ends are none that need quoting."""
    return " UNION ALL ".join(f"SELECT {quote_text(text)} AS time" for text in kept)


def test_duckdb() -> None:
    relation = dialect_named("duckdb").text_times(texts([*READ, *REFUSED]))
    rows = duckdb.connect().sql(f"SELECT time, wall, ahead FROM ({relation})").fetchall()
    check({time: (wall, ahead) for time, wall, ahead in rows})


@pytest.mark.xdist_group("postgresql")
def test_postgresql(server: PostgreSQL) -> None:
    relation = dialect_named("postgresql").text_times(texts([*READ, *REFUSED]))
    with server.connect() as connection:
        rows = connection.execute(f"SELECT time, wall, ahead FROM ({relation}) AS times".encode()).fetchall()
    check({time: (wall, ahead) for time, wall, ahead in rows})


@pytest.mark.xdist_group("clickhouse")
def test_clickhouse(clickhouse: Any) -> None:
    listed = " UNION ALL ".join(
        f"SELECT CAST({quote_text(text)} AS Nullable(String)) AS time" for text in [*READ, *REFUSED]
    )
    dialect = dialect_named("clickhouse")
    query = dialect.statement(f"SELECT time, wall, ahead FROM ({dialect.text_times(listed)})")
    with pa.ipc.open_stream(clickhouse.query(query, "ArrowStream").bytes()) as stream:
        rows = stream.read_all().to_pylist()
    check({row["time"]: (row["wall"], row["ahead"]) for row in rows})


def test_datafusion() -> None:
    query = f"SELECT time, wall, ahead FROM ({dialect_named('datafusion').text_times(texts([*READ, *REFUSED]))})"
    rows = datafusion.SessionContext().sql(query).to_arrow_table().to_pylist()
    check({row["time"]: (row["wall"], row["ahead"]) for row in rows})


@pytest.mark.xdist_group("spark")
def test_spark(spark: SparkSession) -> None:
    kept = [*READ, *REFUSED]
    spark.createDataFrame([(text,) for text in kept], "time string").createOrReplaceTempView("texts")
    query = f"SELECT time, wall, ahead FROM ({dialect_named('spark').text_times('SELECT time FROM texts')})"
    rows = spark.sql(query).toArrow().to_pylist()
    check({row["time"]: (row["wall"], row["ahead"]) for row in rows})


def check(found: Found) -> None:
    assert found.keys() == {*READ, *REFUSED}
    assert {text for text, (wall, _) in found.items() if wall is None} == set(REFUSED)
    instants = {
        text: (wall - (ahead or 0), ahead is not None) for text, (wall, ahead) in found.items() if wall is not None
    }
    assert instants == READ
