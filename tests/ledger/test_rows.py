"""The records of a ledger file: what is read of them, and what is said of those that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpwindows.ask.privacy import EventLevel, PureDP
from dpwindows.errors import InputError
from dpwindows.ledger.ledger import Ledger, datasets
from tests.ledger.requests import request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def make(path: Path, dataset: str) -> Ledger:
    return Ledger.create(path, dataset, budget=PureDP(1.0), unit=EventLevel())


def test_a_dataset_that_is_not_there_is_refused_with_those_that_are(path: Path) -> None:
    for name in ("flights", "visits"):
        make(path, name)
    assert datasets(path) == ["flights", "visits"]
    with pytest.raises(InputError, match=r"has no dataset 'vists'; it has 'flights', 'visits': make one with"):
        Ledger.open(path, "vists")


def test_a_book_lists_the_stored_release_or_the_step_of_each_entry(path: Path) -> None:
    ledger = make(path, "d")
    numbers = [ledger.spend(request(PureDP(0.1)), fingerprint="f") for _ in range(2)]
    streams = ledger.spend(request(PureDP(0.1), kind="stream"), state="s", token="t0")
    ledger.store(numbers[1], "a-release", b"{}")
    ledger.advance("s", 0, "t0", 3, "t3")
    entries = ledger.book().entries
    assert [(one.number, one.state, one.release_id, one.step) for one in entries] == [
        (1, None, None, None),
        (2, None, "a-release", None),
        (streams, "s", None, 3),
    ]
    shown = ledger.book().to_dict()["entries"]
    assert [one.get("release_id", one.get("last_step")) for one in shown] == [None, "a-release", 3]
