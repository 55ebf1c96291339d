"""A pytest plugin: of each file one case is run, the first of those that were asked for."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out all other cases."""
    first: dict[object, pytest.Item] = {}
    for item in items:
        first.setdefault(item.path, item)
    items[:] = first.values()
