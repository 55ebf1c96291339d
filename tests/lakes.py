"""A catalogue of Iceberg in a folder, configured as users do it: for commands, and for processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyiceberg.catalog
import pytest
from pyiceberg.catalog import Catalog, list_catalogs, load_catalog
from pyiceberg.utils.config import Config

NAME, NAMESPACE = "lake", "reports"


@contextmanager
def configured(folder: Path) -> Iterator[Catalog]:
    """The catalogue, with one namespace."""
    said = {"URI": f"sqlite:///{folder}/catalog.sqlite", "WAREHOUSE": f"file://{folder}/warehouse"}
    (folder / "warehouse").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        for key, value in said.items():
            patch.setenv(f"PYICEBERG_CATALOG__{NAME.upper()}__{key}", value)
        # It reads the environment when it is loaded.
        patch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
        assert NAME in list_catalogs()
        catalog = load_catalog(NAME)
        catalog.create_namespace(NAMESPACE)
        yield catalog
