"""The schemas in `docs/schemas` are those of the shapes, and hold for what is written."""

from __future__ import annotations

import pytest

from tests.schemas import FOLDER, SHAPES, written


@pytest.mark.parametrize("name", SHAPES)
def test_the_schemas_of_the_documentation_are_those_of_the_shapes(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == written(name), "python -m tests.schemas"
