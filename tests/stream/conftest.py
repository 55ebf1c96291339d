"""Streams of tests are kept by one engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.count.engines.servers import PostgreSQL

# Reads databases, and shows what the engine says of what it cannot read; has a copy of the process go on, which waits
# for ever for an engine that was made before it.
_BY_THEIR_OWN = ("test_stream.py", "test_publishing.py")


@pytest.fixture(scope="module", autouse=True)
def _by_one_engine(request: pytest.FixtureRequest) -> None:
    if request.path.name not in _BY_THEIR_OWN:
        request.getfixturevalue("one_engine")


@pytest.fixture(scope="package")
def cluster() -> Iterator[PostgreSQL]:
    from tests.count.engines import servers

    with servers.postgresql() as server:
        yield server


@pytest.fixture
def server(cluster: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> PostgreSQL:
    """A server of PostgreSQL with nothing in it, and the password of its roles in the environment."""
    monkeypatch.setenv("PGPASSWORD", cluster.password)
    with cluster.connect() as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return cluster


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    """A running Spark session."""
    from tests.count.engines import servers

    with servers.spark() as session:
        yield session
