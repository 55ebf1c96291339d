"""What all releases of a dataset must share, so that what is protected of the log is one and the same thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP, Unit
from dpwindows.errors import InputError
from dpwindows.ledger.request import Request
from tests.ledger.requests import make, request

COST = PureDP(0.1)


def asked(unit: Unit, **changes: Any) -> Request:
    return request(COST, unit=unit, **changes)


@pytest.mark.parametrize("first", [{}, {"count": "times"}], ids=["rows", "units"])
@pytest.mark.parametrize("other", [{}, {"count": "times"}, {"count": "guests"}], ids=["rows", "units", "others"])
def test_events_are_of_one_kind(tmp_path: Path, first: dict[str, str], other: dict[str, str]) -> None:
    """A row that is one event to one release is any number of events to another, which protects one of them."""
    ledger = make(tmp_path / "ledger.db", unit=EventLevel())
    ledger.spend(asked(EventLevel(), **first))
    if first == other:
        ledger.spend(asked(EventLevel(), **other))
        return
    with pytest.raises(InputError, match="count them in one way"):
        ledger.spend(asked(EventLevel(), **other))
    assert len(ledger.book().entries) == 1
    # Whatever an event is: here everything about its item is protected.
    ledger.spend(asked(ItemLevel(), **other))


@pytest.mark.parametrize("unit", [ItemPerPeriod(3), ItemAddRemove(), ItemLevel()], ids=lambda unit: unit.name)
def test_items_may_be_counted_in_any_way(tmp_path: Path, unit: Unit) -> None:
    ledger = make(tmp_path / "ledger.db", unit=unit)
    for number, count in enumerate([None, "times", "guests"], 1):
        assert ledger.spend(asked(unit, count=count)) == number


@pytest.mark.parametrize(
    "other", [{"time": "changed_at"}, {"time_format": "%d.%m.%Y"}], ids=["another-column", "another-format"]
)
def test_spans_of_steps_are_of_one_clock(tmp_path: Path, other: dict[str, str]) -> None:
    """What an item did within three days by one column may be spread over years by another."""
    unit = ItemPerPeriod(3)
    ledger = make(tmp_path / "ledger.db", unit=unit)
    ledger.spend(asked(unit))
    with pytest.raises(InputError, match="keep to one column of times, read in one way"):
        ledger.spend(asked(unit, **other))
    # Spans are as the first release read them, even where that protected more.
    with pytest.raises(InputError, match="keep to one column of times, read in one way"):
        ledger.spend(asked(ItemLevel(), **other))
    ledger.spend(asked(unit))


@pytest.mark.parametrize("other", [{"time": "changed_at"}, {"count": "times"}], ids=["times", "counts"])
def test_one_event_a_step_is_promised_of_one_way_to_read_the_log(tmp_path: Path, other: dict[str, str]) -> None:
    ledger = make(tmp_path / "ledger.db", unit=ItemLevel(), singleton=True)
    ledger.spend(asked(ItemLevel(), singleton=True))
    with pytest.raises(InputError, match="in one way"):
        ledger.spend(asked(ItemLevel(), singleton=True, **other))
    ledger.spend(asked(ItemLevel(), **other))
    ledger.spend(asked(ItemLevel(), singleton=True))


def test_items_are_read_alike(tmp_path: Path) -> None:
    """`7` and `07` are two items as text, and one as a whole number."""
    ledger = make(tmp_path / "ledger.db", unit=ItemLevel())
    ledger.spend(asked(ItemLevel(), item_type="integer"))
    with pytest.raises(InputError, match="--item-type integer"):
        ledger.spend(asked(ItemLevel()))
    ledger.spend(asked(ItemLevel(), item_type="integer"))
