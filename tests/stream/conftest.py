"""Streams of tests are kept by one engine."""

from __future__ import annotations

import pytest

# Reads databases, and shows what the engine says of what it cannot read; has a copy of the process go on, which waits
# for ever for an engine that was made before it.
_BY_THEIR_OWN = ("test_stream.py", "test_publishing.py")


@pytest.fixture(scope="module", autouse=True)
def _by_one_engine(request: pytest.FixtureRequest) -> None:
    if request.path.name not in _BY_THEIR_OWN:
        request.getfixturevalue("one_engine")
