"""Writes the shapes of files that others read or write into `docs/schemas`: `python -m tests.schemas`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec

from dpwindows.plan.shapes import Metadata, PlanFile
from dpwindows.stream.records import Creation
from tests.vectors import Vector

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
SHAPES: dict[str, type] = {
    "plan-file.json": PlanFile,
    "release-metadata.json": Metadata,
    "stream-creation.json": Creation,
    "test-vector.json": Vector,
}


def written(name: str) -> str:
    """The text of one schema."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(SHAPES[name]),
    }
    for shape in schema.get("$defs", {}).values():
        # Python 3.13 takes the indent of a docstring away; earlier ones keep it.
        if "description" in shape:
            shape["description"] = inspect.cleandoc(shape["description"])
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for file in SHAPES:
        (FOLDER / file).write_text(written(file), encoding="utf-8")
