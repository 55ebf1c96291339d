"""A pytest plugin: of each file one case is run, the first of those that were asked for and are not slow, if any is."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out all other cases."""
    first: dict[object, pytest.Item] = {}
    for item in sorted(items, key=lambda item: item.get_closest_marker("slow") is not None):
        first.setdefault(item.path, item)
    items[:] = first.values()
