"""What a ledger keeps of a request: pinned, since a key that changed would have what was paid for paid again."""

from __future__ import annotations

from typing import Any

import pytest

from dpwindows.ask.privacy import ZCDP, ApproxDP, EventLevel, ItemPerPeriod, PureDP
from dpwindows.ask.queries import Query, parse_window
from dpwindows.ask.timeline import Timeline
from dpwindows.errors import InputError
from dpwindows.ledger.request import Request, asked_queries, canonical, require_fit
from tests.ledger.requests import request

ASKED = {"queries": [{"window": "rolling:7", "measures": [["at_least", 1]]}]}
FEBRUARY = Timeline("2013-01-01", "2013-02-01", time_zone="Europe/Paris")
REQUESTS = {
    "plain": request(PureDP(0.5)),
    "endless": request(ZCDP(0.25), 5, None, kind="stream"),
    "all said": request(
        ApproxDP(0.5, 1e-6),
        unit=ItemPerPeriod(7),
        timeline=FEBRUARY,
        item="Fluggerät",
        count="n",
        singleton=True,
        time_format="%d.%m.%Y",
        item_type="integer",
    ),
}
KEYS = {
    "plain": "6cddcf1e31f33e399b70c7df7774f3600206150d9d0a550088ba72285bbe3a64",
    "endless": "c29873bf45d331ea99556814859957ad60fa5922955429c0b7a9d5bb91c82ab2",
    "all said": "f289b3746537481689485145bee1c7fc87fdb94bec62544583e43a886a3e9483",
}


@pytest.mark.parametrize("name", REQUESTS)
def test_keys_are_what_they_were(name: str) -> None:
    assert REQUESTS[name].key == KEYS[name]
    assert len({hash(one) for one in REQUESTS.values()}) == len(REQUESTS)


def test_facts_and_place_are_all_that_is_said_and_no_more() -> None:
    plain, endless, everything = REQUESTS.values()
    assert plain.facts == {
        "kind": "release",
        "asked": ASKED,
        "budget": {"kind": "pure", "epsilon": 0.5},
        "unit": "event",
        "singleton": False,
        "timeline": {"start": 0, "end": 10, "step": 1, "time_zone": "UTC"},
        "columns": {"item": "who", "time": "at", "count": None},
    }
    clock = {"clock": ["integer", "at"], "grid": ["1", "integer", "0"], "longest": 1}
    assert plain.place == {"start": 0, "end": 10, **clock}
    assert endless.facts["timeline"] == {"start": 5, "end": None, "step": 1, "time_zone": "UTC"}
    assert endless.place == {"start": 5, "end": None, **clock}
    assert everything.facts["columns"] == {
        "item": "Fluggerät",
        "time": "at",
        "count": "n",
        "time_format": "%d.%m.%Y",
        "item_type": "integer",
    }
    assert everything.facts["singleton"] is True
    assert everything.place == {
        "start": 1_356_994_800_000_000,
        "end": 1_359_673_200_000_000,
        "clock": ["Europe/Paris", "at", "%d.%m.%Y"],
        "grid": ["1d", "Europe/Paris", "0"],
        "longest": 86_400_000_000,
    }


def test_queries_are_kept_in_one_order_of_their_measures() -> None:
    asked = Query(parse_window("rolling:7")).at_least(3, 1).exactly(2)
    again = Query(parse_window("rolling:7")).exactly(2).at_least(1, 3)
    wanted = [{"window": "rolling:7", "measures": [["at_least", 1], ["at_least", 3], ["exactly", 2]]}]
    assert asked_queries([asked]) == asked_queries([again]) == wanted


def test_canonical_text_is_one_for_equal_values_and_none_for_what_is_no_number() -> None:
    assert canonical({"b": "ü", "a": [1, None]}) == canonical({"a": [1, None], "b": "ü"}) == '{"a":[1,null],"b":"ü"}'
    with pytest.raises(ValueError, match="JSON"):
        canonical({"epsilon": float("nan")})


def refused(asked: Request, first: Request, **promised: Any) -> str:
    with pytest.raises(InputError) as raised:
        require_fit(asked, first.unit, singleton=first.singleton, first=first.facts | first.place, **promised)
    return str(raised.value)


def test_a_refusal_names_what_the_first_release_had_and_what_this_one_has() -> None:
    event, period = EventLevel(), ItemPerPeriod(7)
    said = refused(request(PureDP(1.0)), request(PureDP(1.0), unit=event, count="n"))
    assert "to the first release of this dataset units of the column 'n' are the events" in said
    assert "and to this one rows are the events: count them in one way" in said
    said = refused(request(PureDP(1.0), count="n"), request(PureDP(1.0), unit=event))
    assert said.startswith("to the first release of this dataset rows are the events")
    assert "and to this one units of the column 'n' are the events" in said
    read, other = (request(PureDP(1.0), unit=period, time_format=text) for text in (None, "%d.%m.%Y"))
    said = refused(other, read)
    assert "took times from the column 'at', and" in said
    assert "takes them from the column 'at' (--time-format '%d.%m.%Y'): keep to one column" in said
    days, weeks = (request(PureDP(1.0), unit=period, timeline=Timeline(0, 14, step)) for step in (1, 7))
    said = refused(weeks, days)
    assert "had steps of 1 (integer, aligned at 0), and" in said
    assert "this one has steps of 7 (integer, aligned at 0): keep to one step" in said
