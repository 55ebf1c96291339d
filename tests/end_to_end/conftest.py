"""The real log that end-to-end tests run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpwindows.demo import write_flights


@pytest.fixture(scope="session")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All flights that left New York City in 2013, as a Parquet file with columns tailnum and time."""
    path = tmp_path_factory.mktemp("flights") / "flights.parquet"
    write_flights(path)
    return path
