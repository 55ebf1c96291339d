"""What the page from the paper to the code names is there: modules, functions, tests, linked documents."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper-to-code.md").read_text(encoding="utf-8")
# `module.name`, with at least one dot, the first letters those of a module of the package.
MODULES = {path.stem if path.is_file() else path.name for path in (ROOT / "src" / "dpwindows").iterdir()}
NAMED = sorted({name for name in re.findall(r"`([a-z_]+(?:\.\w+)+)`", PAGE) if name.split(".")[0] in MODULES})
TESTS = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))


@pytest.mark.parametrize("name", NAMED)
def test_what_is_named_exists(name: str) -> None:
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(["dpwindows", *parts[:split]]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[split:]:
            found = getattr(found, attribute)
        return
    raise AssertionError(f"there is no {name}")


@pytest.mark.parametrize(("file", "test"), TESTS)
def test_the_tests_named_exist(file: str, test: str) -> None:
    assert re.search(rf"^def {test}\(", (ROOT / "tests" / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_error_has_its_row_and_its_test() -> None:
    rows = dict(re.findall(r"^\| (\d+) \|(.*)$", PAGE, re.MULTILINE))
    assert sorted(map(int, rows)) == list(range(1, 14))
    assert all("::test_" in row for row in rows.values())
    assert len(NAMED) > 40


@pytest.mark.parametrize("page", ["house.md", "paper-to-code.md", "table1.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)]+)\)", text)]
    assert targets
    assert all((ROOT / "docs" / target).exists() for target in targets if target and "://" not in target)
