"""What a ledger refuses to make or to keep, in one message, with nothing changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dpwindows as dw
from dpwindows.ask.privacy import ItemLevel, ItemPerPeriod, Unit
from dpwindows.errors import EngineError, InputError
from dpwindows.ledger.request import implies, require_unit
from tests.ledger.requests import make, request


@pytest.mark.parametrize(
    ("changes", "word"), [({"budget": 1.0}, "PureDP"), ({"unit": "event"}, "EventLevel")], ids=["budget", "unit"]
)
def test_what_is_no_total_is_refused(tmp_path: Path, changes: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        make(tmp_path / "ledger.db", **changes)
    assert not list(tmp_path.iterdir())


def test_a_unit_that_ledgers_do_not_know_is_refused() -> None:
    class Household(Unit):
        name = "household"

    require_unit(ItemPerPeriod(7))
    with pytest.raises(InputError, match=r"item-per:L, got 'household'"):
        require_unit(Household())
    assert not implies(Household(), ItemPerPeriod(7))
    assert not implies(ItemLevel(), Household())


def test_a_release_is_kept_once_and_for_an_entry_that_is_there(tmp_path: Path) -> None:
    ledger = make(tmp_path / "ledger.db")
    number = ledger.spend(request(dw.PureDP(0.5)), fingerprint="some data")
    with pytest.raises(InputError, match=f"no release with the number {number + 1}"):
        ledger.store(number + 1, "release", b"content")
    assert ledger.store(number, "release", b"content") == b"content"
    # Whoever comes second with another draw gets what is kept, and publishes that.
    assert ledger.store(number, "other", b"other content") == b"content"
    assert [entry.release_id for entry in ledger.book().entries] == ["release"]
    stream = ledger.spend(request(dw.PureDP(0.1), kind="stream"), state="s", token="t0")
    with pytest.raises(InputError, match=f"no release with the number {stream}"):
        ledger.store(stream, "release", b"content")
    assert ledger.stored(request(dw.PureDP(0.5)), "some data") == b"content"


def test_places_where_no_ledger_can_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a file"):
        make(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        make(tmp_path / "missing" / "ledger.db")
    with pytest.raises(EngineError, match="cannot be written"):
        make(tmp_path / ("x" * 300))
