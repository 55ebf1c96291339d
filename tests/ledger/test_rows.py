"""The records of a ledger file: what is read of them, and what is said of those that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpwindows.ask.privacy import PureDP
from dpwindows.errors import EngineError, InputError
from dpwindows.ledger.ledger import Ledger, datasets
from tests.ledger.requests import edit, make, request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def test_a_dataset_that_is_not_there_is_refused_with_those_that_are(path: Path) -> None:
    for name in ("flights", "visits"):
        make(path, dataset=name)
    assert datasets(path) == ["flights", "visits"]
    with pytest.raises(InputError, match=r"has no dataset 'vists'; it has 'flights', 'visits': make one with"):
        Ledger.open(path, "vists")


def test_a_book_lists_the_stored_release_or_the_step_of_each_entry(path: Path) -> None:
    ledger = make(path)
    numbers = [ledger.spend(request(PureDP(0.1)), fingerprint=data) for data in ("e", "f")]
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


def test_a_name_that_is_no_text_is_damage_and_no_missing_dataset(path: Path) -> None:
    make(path, dataset="flights")
    edit(path, "UPDATE datasets SET name = CAST(name AS BLOB)")
    with pytest.raises(EngineError, match="is damaged"):
        datasets(path)
    with pytest.raises(EngineError, match="is damaged"):
        Ledger.open(path, "flights")


def test_a_dataset_that_a_damaged_index_does_not_find_is_damage(path: Path) -> None:
    """Nobody is told that it is not there, and makes it anew with a total of its own."""
    make(path, dataset="flights-of-2013")
    whole = path.read_bytes()
    said = set()
    for at in [at for at in range(len(whole)) if whole.startswith(b"flights-of-2013", at)]:
        path.write_bytes(whole[:at] + b"g" + whole[at + 1 :])
        try:
            Ledger.open(path, "flights-of-2013")
        except EngineError as error:
            said.add(str(error).partition("is damaged")[1])
    assert said == {"is damaged"}
