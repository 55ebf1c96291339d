"""Destinations of releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lakes import configured
from tests.release.destinations import Destination, InDelta, InDuckDB, InIceberg, InPostgreSQL


@pytest.fixture
def iceberg(tmp_path: Path) -> Iterator[InIceberg]:
    """The catalogue of Iceberg that is configured, with one namespace."""
    with configured(tmp_path):
        yield InIceberg()


@pytest.fixture
def destination(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Destination]:
    """The place that the test is for, empty."""
    match request.param:
        case "duckdb":
            yield InDuckDB(tmp_path)
        case "delta":
            yield InDelta(tmp_path)
        case "iceberg":
            yield request.getfixturevalue("iceberg")
        case _:
            yield InPostgreSQL(request.getfixturevalue("server"))
