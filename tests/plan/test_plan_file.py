"""Plans as plain values and as TOML: what is read back is what was asked, to the last option."""

from __future__ import annotations

import inspect
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpwindows as dw
from dpwindows.ask.queries import Query, WindowFamily
from dpwindows.plan.plan_file import to_toml
from dpwindows.plan.planned import Planned
from tests.search import examples

DAYS = dw.Timeline("2013-01-01", "2013-01-13", "1d", "America/New_York")
STEPS = dw.Timeline.of_steps(12)
ASKED: dict[str, Any] = {"unit": dw.EventLevel(), "budget": dw.PureDP(1.0), "timeline": STEPS}

# One value, other than the default, of every argument that is a key of its own name.
EXAMPLES: dict[str, Any] = {
    "strategy": "paper",
    "criterion": "max",
    "noise": "opendp",
    "weights": [1.0, 2.5],
    "singleton": True,
    "distinct_steps": True,
    "confidence": 0.9,
    "max_draws": 10**6,
    "max_runs": 2,
    "max_occurrences": 3,
    "estimate_loss": 0.1,
    "by": {"origin": ["EWR", "JFK"], "class": ["a b", "c,d"]},
    "group_of": "item",
    "max_groups": 2,
    "totals": 0.25,
}
# What an argument asks for beside itself.
ITEMS: dict[str, Any] = {"unit": dw.ItemLevel()}
GROUPS: dict[str, Any] = {"by": {"origin": ["EWR", "JFK", "LGA"]}}
BESIDE: dict[str, dict[str, Any]] = {
    "max_runs": ITEMS,
    "max_occurrences": ITEMS,
    "estimate_loss": ITEMS | {"max_runs": 2},
    "group_of": ITEMS | GROUPS,
    "max_groups": ITEMS | GROUPS,
    "totals": GROUPS,
}


def read_back(plan: Any) -> Any:
    return type(plan).from_dict(tomllib.loads(to_toml(plan.to_dict())))


def told(plan: Planned) -> str:
    """Everything that follows from a plan."""
    return json.dumps([entry.to_dict() for entry in plan.forecast()]) + repr(plan)


@st.composite
def plans(draw: st.DrawFn) -> dw.Plan:
    windows: list[WindowFamily] = [dw.Rolling(3), dw.Cumulative(), dw.AnyWindow(4), dw.Tumbling(4)]
    k = st.integers(1, 3)
    queries: list[Query | WindowFamily] = []
    for window in draw(st.lists(st.sampled_from(windows), min_size=1, max_size=4)):
        query = Query(window)
        for kind in draw(st.lists(st.sampled_from(("at_least", "exactly", "histogram")), max_size=3)):
            query = query.histogram(2) if kind == "histogram" else getattr(query, kind)(draw(k))
        queries.append(query)
    unit = draw(st.sampled_from((dw.EventLevel(), dw.ItemPerPeriod(2), dw.ItemLevel(), dw.ItemAddRemove())))
    budgets = (dw.PureDP(0.1), dw.ApproxDP(1 / 3, 1e-7), dw.ZCDP(0.3), dw.ApproxDP(2, 1e-10))
    families = len({query.window if isinstance(query, Query) else query for query in queries})
    weights = draw(st.none() | st.lists(st.floats(0.1, 10), min_size=families, max_size=families))
    return dw.Plan(
        queries,
        timeline=draw(st.sampled_from((DAYS, STEPS))),
        unit=unit,
        budget=draw(st.sampled_from(budgets)),
        criterion=draw(st.sampled_from(("rms", "max"))),
        noise=draw(st.sampled_from(("exact", "opendp"))),
        weights=weights,
        confidence=draw(st.floats(0.01, 0.99)),
    )


@pytest.mark.slow
@examples(25)
@given(plans())
def test_a_plan_is_read_back_as_it_was(plan: dw.Plan) -> None:
    again = read_back(plan)
    assert again.queries == plan.queries
    assert (again.timeline, again.unit, again.budget) == (plan.timeline, plan.unit, plan.budget)
    assert told(again) == told(plan)
    assert again.to_dict() == plan.to_dict()


@pytest.mark.slow
@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8"))))
def test_any_text_is_written_as_toml(values: dict[str, str]) -> None:
    assert tomllib.loads(to_toml({"query": [values, {}], "own": values, "n": [1e-7, True]})) == {
        "query": [values, {}],
        "own": values,
        "n": [1e-7, True],
    }


def test_every_argument_of_a_plan_is_carried() -> None:
    """A new argument fails here until it is carried, and has its example."""
    built = {"queries", "timeline", "unit", "budget"}
    assert set(inspect.signature(dw.Plan).parameters) - built == set(EXAMPLES)
    for name, value in EXAMPLES.items():
        queries = [dw.Rolling(3), dw.Cumulative()] if name == "weights" else [dw.Rolling(3)]
        plan = dw.Plan(queries, **ASKED | BESIDE.get(name, {}) | {name: value})
        again = read_back(plan)
        assert again.to_dict()[name.replace("_", "-")] == value
        assert told(again) == told(plan), name


@pytest.mark.slow
def test_every_argument_of_a_stream_is_carried() -> None:
    for horizon in (None, 30):
        plan = dw.StreamPlan([dw.Rolling(3).at_least(2)], unit=dw.EventLevel(), budget=dw.ZCDP(0.5), horizon=horizon)
        assert read_back(plan).horizon == horizon
        assert told(read_back(plan)) == told(plan)
    built = {"queries", "unit", "budget", "horizon"}
    clock: dict[str, Any] = {"start": "2013-02-20", "step": "1h", "time_zone": "Europe/Berlin"}
    assert set(inspect.signature(dw.StreamPlan).parameters) - built <= set(EXAMPLES) | set(clock)
    weekly = dw.StreamPlan(dw.ToDate("week"), unit=dw.EventLevel(), budget=dw.PureDP(1.0), horizon=400, **clock)
    assert weekly.to_dict().items() >= {"start": "2013-02-20", "step": "1h", "time-zone": "Europe/Berlin"}.items()
    assert read_back(weekly).queries == weekly.queries
    assert told(read_back(weekly)) == told(weekly)


def test_a_range_is_the_horizon_of_a_stream() -> None:
    values = {"window": "rolling:3", "unit": "event", "rho": 1, "start": "2013-01-01", "end": "2013-02-01"}
    assert dw.StreamPlan.from_dict(values).horizon == 31


def test_weights_by_window_are_told_in_order() -> None:
    plan = dw.Plan([dw.Rolling(3), dw.Cumulative()], **ASKED, weights={"cumulative": 2})
    assert plan.to_dict()["weights"] == [1.0, 2]
    assert told(read_back(plan)) == told(plan)


def test_dates_may_be_dates(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text('window = "cumulative"\nunit = "event"\nepsilon = 1\nstart = 2013-01-01\nend = 2013-01-04\n')
    assert dw.Plan.from_file(file).timeline == dw.Timeline("2013-01-01", "2013-01-04")


LEGAL = {"window": "rolling:3", "unit": "event", "epsilon": 1, "steps": 9}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"widnow": "any"}, r"unknown key 'widnow' \(did you mean 'window'\?\); keys are .*window"),
        ({"window": 3}, "the plan: 'window': expected text or a list, got a whole number"),
        ({"at-least": [1, 1.5]}, r"'at-least\[1\]': expected a whole number, got a number"),
        ({"at-least": True}, "'at-least': expected a whole number or a list, got true or false"),
        ({"epsilon": True}, "'epsilon': expected a number, got true or false"),
        ({"epsilon": "1"}, "'epsilon': expected a number, got text"),
        ({"epsilon": 10**400}, "'epsilon': number out of range"),
        ({"confidence": "high"}, "'confidence': expected a number, got text"),
        ({"strategy": 3}, "'strategy': expected text, got a whole number"),
        ({"distinct-steps": 1}, "'distinct-steps': expected true or false, got a whole number"),
        ({"by": {"origin": "EWR"}}, r"'by\[...\]': expected a list, got text"),
        ({"query": [{"window": "any"}]}, r"\[\[query\]\] and window"),
        ({"stream": True}, "StreamPlan"),
        ({"start": 0, "end": 4}, "steps as well as start and end"),
        ({"step": "1d"}, "steps as well as step: steps alone stand for a range of any start and step"),
        ({"time-zone": "UTC"}, "steps as well as time-zone"),
        ({"rho": 1}, "either epsilon"),
        ({"weights": 3}, "'weights': expected a table or a list, got a whole number"),
    ],
)
def test_what_is_wrong_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(dw.InputError, match=said):
        dw.Plan.from_dict({**LEGAL, **change})


def test_a_stream_has_a_step_of_a_known_kind() -> None:
    values = {name: value for name, value in LEGAL.items() if name != "steps"}
    assert dw.StreamPlan.from_dict({**values, "stream": True, "step": "1d"}).horizon is None
    with pytest.raises(dw.InputError, match="step must be text such as"):
        dw.StreamPlan.from_dict({**values, "stream": True, "step": "daily"})


@pytest.mark.parametrize(
    ("key", "said"), [("window", "no query"), ("unit", "unit"), ("epsilon", "budget"), ("steps", "range")]
)
def test_what_is_missing_is_told(key: str, said: str) -> None:
    with pytest.raises(dw.InputError, match=said):
        dw.Plan.from_dict({name: value for name, value in LEGAL.items() if name != key})


def test_a_table_of_a_query_has_keys_of_its_own() -> None:
    values = {name: value for name, value in LEGAL.items() if name != "window"}
    with pytest.raises(dw.InputError, match=r"unknown key 'query\[0\].at-leest' \(did you mean 'at-least'\?\)"):
        dw.Plan.from_dict({**values, "query": [{"window": "any", "at-leest": 1}]})
    with pytest.raises(dw.InputError, match=r"the plan: 'query\[1\].window' is missing"):
        dw.Plan.from_dict({**values, "query": [{"window": "any"}, {"at-least": [2]}]})


@pytest.mark.parametrize("content", [b"window = ", b"\xff", b"a = 1\na = 2", b"x = 1e" + b"9" * 5000, b"#" * (1 << 21)])
def test_files_that_are_no_plans_are_refused_by_name(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_bytes(content)
    with pytest.raises(dw.InputError, match=r"plan\.toml"):
        dw.Plan.from_file(file)
    with pytest.raises(dw.InputError, match=r"nowhere\.toml"):
        dw.Plan.from_file(tmp_path / "nowhere.toml")
