"""A dataset's page: what it shows, and what later releases must share with its first."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from dpwindows.ask.privacy import ZCDP, ApproxDP, EventLevel, PureDP
from dpwindows.ask.timeline import Timeline
from dpwindows.errors import InputError, OverBudgetError
from dpwindows.ledger.book import Book, Entry
from dpwindows.ledger.ledger import Ledger
from tests.ledger.requests import make, request


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return make(tmp_path / "ledger.db", singleton=True)


def test_a_page_shows_what_is_spent_and_left_from_the_first_day_on(ledger: Ledger) -> None:
    shown = ledger.book().to_dict()
    assert (shown["spent"], shown["left"], shown["entries"]) == ({"epsilon": 0.0}, {"epsilon": 1.0}, [])
    ledger.spend(request(PureDP(0.25)))
    shown = ledger.book().to_dict()
    assert (shown["spent"], shown["left"]) == ({"epsilon": 0.25}, {"epsilon": 0.75})
    assert shown["room"]["releases"] == 3


def test_one_event_a_step_is_promised_of_the_steps_of_the_first_entry(ledger: Ledger) -> None:
    """Not of those of the last, which may rest on no promise and have any."""
    ones, twos = Timeline(0, 10, 1), Timeline(0, 10, 2)
    ledger.spend(request(PureDP(0.1), timeline=ones, singleton=True))
    ledger.spend(request(PureDP(0.1), timeline=twos))
    ledger.require_room(request(PureDP(0.1), timeline=ones, singleton=True))
    with pytest.raises(InputError, match="had steps of 1 "):
        ledger.require_room(request(PureDP(0.1), timeline=twos, singleton=True))


def test_a_refusal_says_where_the_total_is_spent_if_that_has_no_beginning(ledger: Ledger) -> None:
    ledger.spend(request(PureDP(0.1)))
    # Times of another column: no instant of them is known not to be one of the first's.
    ledger.spend(request(PureDP(0.6), time="seen"))
    with pytest.raises(OverBudgetError, match=r"epsilon = 0\.6 is spent between the beginning and 0\."):
        ledger.require_room(request(PureDP(0.5), time="seen"))


def test_of_what_has_no_place_under_a_total_no_release_fits(ledger: Ledger) -> None:
    ledger.spend(request(PureDP(0.25)))
    book = ledger.book()
    assert book.room(PureDP(0.25)) == 3
    assert book.room(ZCDP(1e-9)) == book.room(ApproxDP(1e-9, 1e-9)) == 0


def test_a_page_that_holds_more_than_its_total_shows_it_and_has_no_room() -> None:
    """Made by hand: no ledger records such a thing."""
    most = PureDP(sys.float_info.max)
    facts = request(most).facts | request(most).place | {"at": "2026-01-01T00:00:00+00:00"}
    book = Book("d", EventLevel(), most, False, facts["at"], (Entry(1, facts), Entry(2, facts)))
    shown = book.to_dict()
    assert (shown["spent"]["epsilon"], shown["left"]["epsilon"]) == (math.inf, -most.epsilon)
    assert book.room(PureDP(1e-300)) == shown["room"]["releases"] == 0


def test_a_notebook_shows_what_is_spent_and_left(ledger: Ledger) -> None:
    ledger.spend(request(PureDP(0.125)))
    page = ledger._repr_html_()
    assert "0.125" in page
    assert "0.875" in page
