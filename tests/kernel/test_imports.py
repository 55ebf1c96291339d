"""The kernel stands on its own: nothing that is not trusted is reached from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpwindows.kernel

ROOT = Path(dpwindows.kernel.__file__).parent
# What of the package the kernel may import: what is asked, what is said when it fails, and itself.
TRUSTED = ("dpwindows.ask", "dpwindows.errors", "dpwindows.kernel")
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


def imported(source: str) -> Iterator[str]:
    """The full name of all that is imported, anywhere in a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def is_trusted(name: str) -> bool:
    if name.startswith("."):
        return False
    return name.partition(".")[0] != "dpwindows" or any(f"{name}.".startswith(f"{one}.") for one in TRUSTED)


def test_every_file_of_the_kernel_is_looked_at() -> None:
    assert {"measure.py", "designs.py", "rules.py", "maps/filters.py", "families/series.py"} <= set(FILES)


@pytest.mark.parametrize("path", FILES)
def test_the_kernel_imports_nothing_of_the_package_but_what_is_asked(path: str) -> None:
    names = list(imported((ROOT / path).read_text(encoding="utf-8")))
    assert [name for name in names if not is_trusted(name)] == []


@pytest.mark.parametrize(
    "line",
    [
        "import dpwindows",
        "from dpwindows import reading",
        "from dpwindows.reading import of",
        "def late() -> None:\n    from dpwindows.strategies.search import limits",
        "from dpwindows.kernels import other",
        "from ..reading import of",
    ],
)
def test_other_imports_are_noticed(line: str) -> None:
    assert not all(map(is_trusted, imported(line)))
