"""The page over made-up releases of every awkward shape: it says what it must, and nothing gets out of its place."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpwindows.report import page
from tests.report.made_up import EVIL, SHAPES, a_release, about, check_page


@pytest.mark.parametrize("name", SHAPES)
def test_a_page_of_every_shape_holds_all_its_numbers(name: str) -> None:
    reader = check_page(page(SHAPES[name], about()))
    assert reader.index["rows"] == SHAPES[name].num_rows
    assert len(reader.columns()["estimate"]) == SHAPES[name].num_rows


def test_page_says_guarantee_budget_errors_and_making() -> None:
    text = check_page(page(SHAPES["two measures"], about())).text
    for said in (
        "Protects each single occurrence.",
        "Almost as likely either way.",
        "approximate differential privacy",
        "ε = 1",
        "δ = 10⁻⁶",
        "Items seen in the last 7 days",
        "2013-03-12",
        "discrete Gaussian",
        "scale 123.5",
        "L2 2.5",
        "rolling-filter",
        "25%",
        "0f1e2d3c",
        "dpwindows 0.1.0",
        "America/New_York",
        "Dashed: windows cut at the first step",
    ):
        assert said in text


def test_the_main_series_comes_before_what_can_be_asked() -> None:
    several = pa.concat_tables([SHAPES["any"], SHAPES["rolling"]])
    written = page(several, about())
    places = [
        written.index(mark) for mark in ('id="headlines"', 'data-window="rolling:7"', 'id="explore"', 'id="table"')
    ]
    assert places == sorted(places)


def test_a_page_has_a_title_and_calls_items_what_they_are() -> None:
    reader = check_page(page(SHAPES["two measures"], about(), title="Shop <1>", noun="customers"))
    for said in ("Shop <1>", "distinct customers, between", "Customers seen in the last 7 days"):
        assert said in reader.text
    assert reader.index["noun"] == "customers"
    assert "items seen" not in reader.text.lower()
    assert "distinct items" not in reader.text.lower()


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"kind": "pure", "epsilon": 0.5}, "pure differential privacy with ε = 0.5"),
        ({"kind": "zcdp", "rho": 0.125}, "zero-concentrated differential privacy with ρ = 0.125"),
    ],
)
def test_other_budgets(budget: dict[str, Any], said: str) -> None:
    assert said in re.sub(r"\s+", " ", check_page(page(SHAPES["rolling"], about(budget=budget))).text)


def test_singleton_and_bias_are_said() -> None:
    text = check_page(page(SHAPES["biased"], about(singleton=True, notes=["This is a note."]))).text
    assert "This is a note." in text
    assert "at most one event in each step" in text
    assert "bias" in text


def test_text_from_metadata_is_escaped() -> None:
    hostile = json.loads(json.dumps(about()), object_hook=lambda found: found)
    for key in ("release_id", "released_at", "guarantee"):
        hostile[key] = EVIL
    hostile["unit"] = {"name": EVIL, "promise": EVIL}
    hostile["timeline"] |= {"time_zone": EVIL, "start": EVIL, "end": EVIL, "step": EVIL, "steps": EVIL}
    hostile["budget"] = {"kind": EVIL, "epsilon": EVIL}
    hostile["versions"] = {EVIL: EVIL}
    hostile["notes"] = [EVIL]
    hostile["measurements"][0] |= {"strategy": EVIL, "window": EVIL, "parameters": {EVIL: EVIL}}
    hostile["measurements"][0] |= {"noise": {"law": EVIL, "scale": EVIL, "unit": EVIL}, "thresholds": [EVIL]}
    hostile["measurements"][0]["sensitivity"] = {"norm": EVIL, "value": EVIL, "proof": EVIL, "proved_in": EVIL}
    hostile["forecast"][0] |= {"window": EVIL, "strategy": EVIL, "measure": EVIL, "k": EVIL}
    written = page(SHAPES["rolling"], hostile)
    reader = check_page(written)
    assert "alert('x')" in reader.text
    assert not any("evil.example" in content for content in reader.inside["script"])


def test_text_from_rows_cannot_leave_the_data_script() -> None:
    table = SHAPES["rolling"]
    hostile = table.set_column(0, "window", pa.array([EVIL] * table.num_rows))
    hostile = hostile.set_column(1, "measure", pa.array([EVIL] * table.num_rows))
    check_page(page(hostile, about()))


def test_release_without_rows() -> None:
    empty = SHAPES["rolling"].slice(0, 0)
    assert "no rows" in check_page(page(empty, about())).text


def test_numbers_that_are_not_finite_are_missing_and_no_headline() -> None:
    table = SHAPES["rolling"]
    for column, value in (("lower", -np.inf), ("upper", np.inf), ("estimate", np.nan), ("std_error", np.inf)):
        at = table.schema.get_field_index(column)
        table = table.set_column(at, column, pa.array([value] * table.num_rows, pa.float64()))
    reader = check_page(page(table, about()))
    for name in ("estimate", "below", "above", "error"):
        assert set(reader.columns()[name]) == {-(2**31)}
    assert "At a glance" not in reader.text


@pytest.mark.parametrize(
    ("times", "shown"),
    [
        ((1341100800, 3600), "from 2012-07-01 00:00 until 2012-07-02 16:00"),
        ((1341100800, 86400), "from 2012-07-01 through 2012-08-09"),
        ((1341100800_000, 86400_000), "from 2012-07-01 through 2012-08-09"),
        ((1341100800_000_000, 60_000_000), "from 2012-07-01 00:00 until 2012-07-01 00:40"),
    ],
)
def test_times_since_1970_are_shown_as_dates(times: tuple[int, int], shown: str) -> None:
    start, step = times
    table = SHAPES["integer time"]
    for column in ("start", "end"):
        steps = (table[column].to_numpy() - 1000) // 10
        at = table.schema.get_field_index(column)
        table = table.set_column(at, column, pa.array(start + steps * step, pa.int64()))
    reader = check_page(
        page(table, about(timeline={"start": start, "end": start + 40 * step, "step": step, "steps": 40}))
    )
    assert f"How many distinct items, {shown}" in reader.text
    assert "since 1970 and shown in UTC" in reader.text
    assert reader.index["times"]["kind"] == "calendar"


def test_a_great_many_windows_are_thinned_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpwindows.report.pack.pack.__defaults__", (10_000,))
    table = pa.concat_tables([a_release("any", steps=300), a_release("cumulative", steps=300)])
    reader = check_page(page(table, about()))
    assert reader.index["rows"] < 11_000
    assert "one end in 5 of the any family" in reader.text
    last = reader.columns()["last"]
    assert max(last) == 300
    assert sum(one["rows"] for one in reader.index["series"] if one["window"] == "cumulative") == 300


def test_windows_of_every_family_are_named_in_words() -> None:
    said = {
        "rolling:7": "in the last 7 days",
        "rolling:1": "in each day",
        "cumulative": "since 2013-02-01",
        "any:5": "in every window of up to 5 days",
        "tumbling:7": "in each window of 7 days",
        "tumbling:month": "in each month",
        "to-date:month": "since the month began",
        "new:kind": "in the windows new:kind",
    }
    for window, words in said.items():
        at = SHAPES["cumulative"] if window.partition(":")[0] not in ("rolling", "any") else a_release(window)
        table = at.set_column(0, "window", pa.array([window] * at.num_rows))
        assert f"Distinct items {words}" in check_page(page(table, about())).text


def with_groups(table: pa.Table) -> pa.Table:
    """The table once for all items, and once for each of two groups."""

    def told(group: str | None) -> pa.Table:
        return table.add_column(3, "origin", pa.array([group] * table.num_rows, pa.string()))

    return pa.concat_tables([told(None), told("EWR"), told("JFK")])


def test_a_total_names_the_groups_that_it_adds_up() -> None:
    with_totals = page(with_groups(SHAPES["two measures"]), about())
    assert "Totals count EWR and JFK together, and no other values." in with_totals
    assert "(EWR and JFK together), between" in with_totals
    assert " together, and no other values" not in page(SHAPES["two measures"], about())


def test_groups_are_series_of_their_own_and_totals_come_first() -> None:
    reader = check_page(page(with_groups(SHAPES["two measures"]), about()))
    assert [one["groups"] for one in reader.index["series"]].count([["origin", "all"]]) == 2
    assert [one["label"] for one in reader.index["series"] if one["groups"] == [["origin", "JFK"]]] == [
        "at least once, origin JFK",
        "exactly 3 times, origin JFK",
    ]
