"""ClickHouse, and Spark as users have it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.count.engines import servers


@pytest.fixture(scope="package")
def clickhouse() -> Iterator[Any]:
    """A session of ClickHouse inside this process."""
    session = pytest.importorskip("chdb.session", reason="chdb is not installed: it is in the group clickhouse")
    with session.Session() as opened:
        yield opened


@pytest.fixture
def spark_of_users(spark: SparkSession) -> Iterator[SparkSession]:
    """The session as users have it: queries are compiled, and replanned while they run."""
    for name in servers.IN_A_HURRY:
        spark.conf.unset(name)
    yield spark
    for name, value in servers.IN_A_HURRY.items():
        spark.conf.set(name, value)
