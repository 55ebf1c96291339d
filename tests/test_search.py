"""What `make test` draws is the same in each run, whatever ran or was loaded before."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search import SEARCHING, examples

pytestmark = pytest.mark.skipif(SEARCHING, reason="a search is another one each time")


def drawn() -> list[tuple[list[int], str]]:
    found: list[tuple[list[int], str]] = []

    @examples(60)
    @given(st.lists(st.integers(), max_size=5), st.text(max_size=5))
    def draw(numbers: list[int], text: str) -> None:
        found.append((numbers, text))

    draw()
    return found


def test_examples_are_the_same_again_whatever_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn()
    assert len(set(map(str, before))) > 30
    path = tmp_path / "another.py"
    path.write_text(f"FOUND = {[10**9 + 7919 * n for n in range(500)]}\n")
    spec = importlib.util.spec_from_file_location("another", path)
    assert spec is not None
    monkeypatch.setitem(sys.modules, "another", importlib.util.module_from_spec(spec))
    assert drawn() == before


def test_no_example_has_a_deadline_or_is_remembered() -> None:
    assert settings().deadline is None
    assert settings().database is None
    assert settings().derandomize
