"""Servers that start when a test first asks for them, once in a test process, and stop after the tests of engines.

Tests that need a server carry the mark `xdist_group` with its name: they go to one process, so it starts once in all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.count.engines import servers


@pytest.fixture(scope="package")
def cluster() -> Iterator[servers.PostgreSQL]:
    """A PostgreSQL server."""
    with servers.postgresql() as server:
        yield server


@pytest.fixture
def server(cluster: servers.PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> servers.PostgreSQL:
    """The server, with the password of its roles in the environment."""
    monkeypatch.setenv("PGPASSWORD", cluster.password)
    return cluster


@pytest.fixture(scope="package")
def clickhouse() -> Iterator[Any]:
    """A session of ClickHouse inside this process."""
    session = pytest.importorskip("chdb.session", reason="chdb is not installed: it is in the group clickhouse")
    with session.Session() as opened:
        yield opened


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    """A running Spark session."""
    with servers.spark() as session:
        yield session


@pytest.fixture
def spark_of_users(spark: SparkSession) -> Iterator[SparkSession]:
    """The session as users have it: queries are compiled, and replanned while they run."""
    for name in servers.IN_A_HURRY:
        spark.conf.unset(name)
    yield spark
    for name, value in servers.IN_A_HURRY.items():
        spark.conf.set(name, value)
