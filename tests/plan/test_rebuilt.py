"""Measurements made again from metadata are those of the plan."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.ask.privacy import Unit
from dpwindows.ask.queries import Query, WindowFamily
from dpwindows.audit import audit_exactly
from dpwindows.errors import InputError
from dpwindows.plan.description import describe
from dpwindows.plan.measured_plan import plan_of
from dpwindows.plan.plan import Plan
from dpwindows.plan.rebuilt import rebuilt
from dpwindows.plan.stored_designs import design_to_dict
from dpwindows.plan.stream_plan import StreamPlan
from dpwindows.release.release import Release
from tests.searches import forbid_searches

UNITS: tuple[Unit, ...] = (dw.EventLevel(), dw.ItemPerPeriod(2), dw.ItemLevel(), dw.ItemAddRemove())
ASKED: list[Query | WindowFamily] = [
    dw.Rolling(4).at_least(1, 3),
    dw.Cumulative(),
    dw.AnyWindow(5).exactly(2),
    dw.Rolling(40),
]


def read(described: dict[str, Any]) -> dict[str, Any]:
    """As it comes back from a file."""
    found: dict[str, Any] = json.loads(json.dumps(described))
    return found


@pytest.mark.parametrize("lacking", ["timeline", "singleton", "unit"])
def test_metadata_that_say_too_little_are_refused(lacking: str) -> None:
    plan = Plan(dw.Rolling(4), timeline=dw.Timeline.of_steps(9), unit=dw.EventLevel(), budget=dw.ZCDP(1.0))
    described = read(describe(plan))
    del described[lacking]
    with pytest.raises(InputError, match="the release does not tell the integers that measured rolling:4"):
        rebuilt(described, described["measurements"][0])


def test_designs_that_this_version_does_not_know_are_refused() -> None:
    plan = Plan(dw.Rolling(4), timeline=dw.Timeline.of_steps(9), unit=dw.EventLevel(), budget=dw.ZCDP(1.0))
    described = read(describe(plan))
    (entry,) = described["measurements"]
    for shape in (
        {"kind": "NoSuchShape"},
        {"kind": "Series", "map": {"kind": "NoSuchMap"}},
        {"kind": "Identity", "unit": 1},
    ):
        changed = entry | {"integers": entry["integers"] | {"shape": shape}}
        with pytest.raises(InputError, match="Use the version of dpwindows that made it"):
            rebuilt(described, changed)


@pytest.mark.parametrize(
    "integers",
    [
        {"arrays": None},
        {"arrays": []},
        {"arrays": {"map.taps": [1 << 63]}},
        {"arrays": {"map.taps": {"shape": [2, 2], "xz": "AAAA"}}},
        {"arrays": {}},
        {"witness": None},
        {"witness": []},
        {"shape": None},
        {"shape": {"kind": "Series", "map": "Filter"}},
        {"inner": {}, "size": 0, "kind": "GroupedSteps"},
        {"shape": {"kind": "Series", "map": {"kind": "TentTree", "unit": 1}}},
        {"shape": {"kind": "Series", "map": {"kind": "Identity", "unit": {"float": "0x1p-3"}}}},
    ],
    ids=str,
)
def test_integers_that_were_cut_or_forged_are_refused_in_one_message(integers: dict[str, Any]) -> None:
    plan = Plan(dw.Rolling(4), timeline=dw.Timeline.of_steps(9), unit=dw.EventLevel(), budget=dw.ZCDP(1.0))
    described = read(describe(plan))
    (entry,) = described["measurements"]
    changed = entry | {"integers": entry["integers"] | integers}
    with pytest.raises(InputError, match="does not tell the integers that measured rolling:4"):
        rebuilt(described, changed)


CLOCK: dict[str, Any] = {"start": "2013-02-20", "time_zone": "Europe/Berlin"}
APPROX = dw.ApproxDP(1.0, 1e-6)
MONTHS = dw.Timeline("2013-02-20", "2013-05-06", time_zone="Europe/Berlin")
PLANS: dict[str, Callable[[], Plan | StreamPlan]] = {
    "several at event level": lambda: Plan(ASKED, timeline=timeline(40), unit=dw.EventLevel(), budget=APPROX),
    "measured together": lambda: Plan(
        [dw.Rolling(1), dw.Rolling(7), dw.Cumulative()], timeline=timeline(30), unit=dw.EventLevel(), budget=APPROX
    ),
    "an offset": lambda: Plan(dw.Rolling(7), timeline=timeline(90), unit=dw.ItemAddRemove(), budget=APPROX),
    "a filter for each threshold": lambda: Plan(
        dw.Rolling(7).at_least(1, 3), timeline=timeline(60), unit=dw.ItemLevel(), budget=APPROX
    ),
    "a dense counter": lambda: Plan(dw.Cumulative(), timeline=timeline(64), unit=dw.ItemAddRemove(), budget=APPROX),
    "gaps": lambda: Plan(dw.AnyWindow(), timeline=timeline(20), unit=dw.ItemLevel(), budget=dw.PureDP(1.0)),
    "crossed counters": lambda: Plan(
        dw.AnyWindow().at_least(2), timeline=timeline(20), unit=dw.ItemLevel(), budget=APPROX
    ),
    "a cube": lambda: Plan(dw.Tumbling(7), timeline=timeline(60), unit=dw.ItemLevel(), budget=dw.PureDP(1.0)),
    "months and groups": lambda: Plan(
        [dw.Tumbling("month"), dw.ToDate("week")],
        timeline=MONTHS,
        unit=dw.ItemPerPeriod(7),
        budget=APPROX,
        by={"place": ["a", "b"]},
        max_groups=2,
        totals=0.3,
    ),
    "bounded runs": lambda: Plan(
        dw.Rolling(4), timeline=timeline(20), unit=dw.ItemLevel(), budget=APPROX, max_runs=2, estimate_loss=0.1
    ),
    "the paper": lambda: Plan(
        dw.Rolling(4), timeline=timeline(20), unit=dw.EventLevel(), budget=dw.PureDP(1.0), strategy="paper"
    ),
    "grouped steps": lambda: Plan(
        dw.AnyWindow(), timeline=timeline(24), unit=dw.ItemLevel(), budget=dw.PureDP(0.1), singleton=True
    ),
    "coarse lattices": lambda: Plan(
        dw.Rolling(4), timeline=timeline(24), unit=dw.ItemLevel(), budget=dw.ApproxDP(1e-9, 1e-9)
    ),
    "active steps": lambda: Plan(
        dw.Rolling(4).at_least(2), timeline=timeline(24), unit=dw.EventLevel(), budget=dw.ZCDP(1.0), distinct_steps=True
    ),
    "a stream without end": lambda: StreamPlan([dw.Rolling(4), dw.Cumulative()], unit=dw.EventLevel(), budget=APPROX),
    "a stream of months": lambda: StreamPlan(dw.Tumbling("month"), unit=dw.EventLevel(), budget=APPROX, **CLOCK),
}
# Every unit under every kind of budget: a release and a stream of several families, and one of months and weeks.
for _unit, _budget in itertools.product(UNITS, (dw.PureDP(1.0), APPROX, dw.ZCDP(0.5))):
    _more: dict[str, Any] = {"unit": _unit, "budget": _budget}
    _name, _weights = f"{_unit.name}, {_budget.kind}", [1.0, 2.0, 3.0, 0.5]
    PLANS |= {
        f"a release, {_name}": partial(
            Plan, ASKED, timeline=dw.Timeline.of_steps(12), weights=_weights, criterion="max", **_more
        ),
        f"a stream, {_name}": partial(StreamPlan, ASKED, horizon=12, weights=_weights, **_more),
    }
    if _budget == APPROX:
        _more |= {"queries": [dw.Tumbling("month").exactly(1), dw.ToDate("week")]}
        PLANS[f"months and weeks, {_name}"] = partial(Plan, timeline=MONTHS, **_more)
        PLANS[f"a stream of months and weeks, {_name}"] = partial(StreamPlan, horizon=75, **CLOCK, **_more)


def timeline(steps: int) -> dw.Timeline:
    return dw.Timeline.of_steps(steps)


@pytest.mark.quick(3)
@pytest.mark.search(24)
@pytest.mark.parametrize("made", PLANS.values(), ids=PLANS)
def test_a_plan_of_a_release_has_its_measurements_and_nothing_is_searched_for(
    made: Callable[[], Plan | StreamPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = made()
    if isinstance(plan, StreamPlan):
        released = {"stream": {}, "timeline": {**MONTHS.to_dict(), "steps": 5}}
        metadata = read(plan.describe() | released)
    else:
        metadata = read(describe(plan))
    forbid_searches(monkeypatch)
    again = plan_of(Release(pa.table({}), metadata))
    assert type(again).__mro__[2] is type(plan)
    assert [one.to_dict() for one in again.forecast()] == [one.to_dict() for one in plan.forecast()]
    assert len(again.measurements) == len(plan.measurements)
    for one, other in zip(again.measurements, plan.measurements, strict=True):
        assert design_to_dict(one.design) == design_to_dict(other.design)
        assert (one.law, one.scale, one.groups) == (other.law, other.scale, other.groups)
        assert one.certificate == other.certificate
    for mine, its in zip(again.every_allotment, plan.every_allotment, strict=True):
        assert (mine.query, mine.share, mine.series) == (its.query, its.share, its.series)
        for measure in mine.query.measures:
            few = len(mine.std_errors(measure))
            np.testing.assert_array_equal(mine.std_errors(measure), its.std_errors(measure)[:few])
    assert (again.unit, again.budget, again.rule, again.grouping) == (plan.unit, plan.budget, plan.rule, plan.grouping)


def test_a_stream_is_looked_at_for_its_first_steps() -> None:
    described = StreamPlan(dw.Rolling(3), unit=dw.EventLevel(), budget=APPROX).describe()
    metadata = read(described | {"stream": {}, "timeline": {**MONTHS.to_dict(), "steps": 5}})
    plan = plan_of(Release(pa.table({}), metadata), steps=6)
    assert plan.timeline.steps == 6
    assert audit_exactly(plan).verdict == "within the claim"
    batch = Plan(dw.Rolling(3), timeline=timeline(5), unit=dw.EventLevel(), budget=APPROX)
    for released, steps in ((Release(pa.table({}), metadata), 0), (Release(pa.table({}), read(describe(batch))), 3)):
        with pytest.raises(InputError, match="is for streams, of at least 1 step"):
            plan_of(released, steps=steps)


def test_other_thresholds_than_were_asked_are_refused() -> None:
    metadata = read(describe(Plan(dw.Rolling(3), timeline=timeline(9), unit=dw.EventLevel(), budget=APPROX)))
    for thresholds in ([1, -1], [1, 2], [-1]):
        metadata["measurements"][0]["thresholds"] = thresholds
        with pytest.raises(InputError, match=r"other k than were asked|ascending order"):
            plan_of(Release(pa.table({}), metadata))


@pytest.mark.parametrize("other", ["out.parquet", None])
def test_what_is_no_release_has_no_plan(other: Any) -> None:
    with pytest.raises(InputError, match=r"dw\.plan_of\(dw\.Release\.load\(path\)\)"):
        plan_of(other)


def test_searches_are_forbidden_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_searches(monkeypatch)
    with pytest.raises(AssertionError, match="was asked to search"):
        PLANS["an offset"]()
    with pytest.raises(AssertionError, match="was asked to search"):
        PLANS["a stream, item, approximate"]()
