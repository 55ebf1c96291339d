"""Destinations of releases; the server of PostgreSQL starts once, where a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lakes import configured
from tests.release.destinations import Destination, InDelta, InDuckDB, InIceberg, InPostgreSQL

if TYPE_CHECKING:
    from tests.count.engines.servers import PostgreSQL


@pytest.fixture(scope="package")
def cluster() -> Iterator[PostgreSQL]:
    from tests.count.engines import servers

    with servers.postgresql() as server:
        yield server


@pytest.fixture
def iceberg(tmp_path: Path) -> Iterator[InIceberg]:
    """The catalogue of Iceberg that is configured, with one namespace."""
    with configured(tmp_path):
        yield InIceberg()


@pytest.fixture
def destination(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Destination]:
    """The place that the test is for, empty."""
    match request.param:
        case "duckdb":
            yield InDuckDB(tmp_path)
        case "delta":
            yield InDelta(tmp_path)
        case "iceberg":
            yield request.getfixturevalue("iceberg")
        case _:
            server = request.getfixturevalue("cluster")
            monkeypatch.setenv("PGPASSWORD", server.password)
            with server.connect() as connection:
                connection.execute(
                    "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC"
                )
            yield InPostgreSQL(server)
