"""Streams of tests are kept by one engine."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def _by_one_engine(request: pytest.FixtureRequest) -> None:
    """All but those that read databases, or show what the engine says of what it cannot read."""
    if request.path.name != "test_stream.py":
        request.getfixturevalue("one_engine")
