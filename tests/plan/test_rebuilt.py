"""Measurements made again from metadata are those of the plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.privacy import Budget, Unit
from dpwindows.ask.queries import Query, WindowFamily
from dpwindows.audit import audit_exactly
from dpwindows.errors import InputError
from dpwindows.plan.description import describe
from dpwindows.plan.measured_plan import plan_of
from dpwindows.plan.plan import Plan
from dpwindows.plan.planned import Planned
from dpwindows.plan.rebuilt import rebuilt
from dpwindows.plan.stored_designs import design_to_dict
from dpwindows.plan.stream_plan import StreamPlan
from dpwindows.release.release import Release
from tests.searches import forbid_searches

UNITS: tuple[Unit, ...] = (dw.EventLevel(), dw.ItemPerPeriod(2), dw.ItemLevel(), dw.ItemAddRemove())
BUDGETS: tuple[Budget, ...] = (dw.PureDP(1.0), dw.ApproxDP(1.0, 1e-6), dw.ZCDP(0.5))
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


def require_same(plan: Planned, described: dict[str, Any]) -> None:
    for allotment, entry in zip(plan.allotments, described["measurements"], strict=True):
        made, wanted = rebuilt(described, entry), allotment.measurement
        assert (made.law, made.scale, made.design.strategy) == (wanted.law, wanted.scale, wanted.design.strategy)
        assert design_to_dict(made.design) == design_to_dict(wanted.design)
        assert made.certificate == wanted.certificate
        for k in wanted.design.problem.thresholds:
            one, other = reading.of(made.design.at(k)).variance(), reading.of(wanted.design.at(k)).variance()
            size = min(len(one), len(other))
            np.testing.assert_array_equal(one[:size], other[:size])


@pytest.mark.quick(1)
@pytest.mark.search(7)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
def test_of_releases_and_streams(unit: Unit, budget: Budget) -> None:
    weights = [1.0, 2.0, 3.0, 0.5]
    plan = Plan(ASKED, timeline=dw.Timeline.of_steps(12), unit=unit, budget=budget, weights=weights, criterion="max")
    require_same(plan, read(describe(plan)))
    stream = dw.StreamPlan(ASKED, unit=unit, budget=budget, horizon=12, weights=weights)
    require_same(stream, read(stream.describe() | {"stream": {}, "timeline": {"steps": 5}}))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_of_months_and_weeks(unit: Unit) -> None:
    asked: list[Query | WindowFamily] = [dw.Tumbling("month").exactly(1), dw.ToDate("week")]
    timeline = dw.Timeline("2013-02-20", "2013-05-06", time_zone="Europe/Berlin")
    plan = Plan(asked, timeline=timeline, unit=unit, budget=dw.ApproxDP(1.0, 1e-6))
    require_same(plan, read(describe(plan)))
    clock: dict[str, Any] = {"start": "2013-02-20", "time_zone": "Europe/Berlin"}
    bounded = isinstance(unit, (dw.EventLevel, dw.ItemPerPeriod))
    for horizon in (75, None) if bounded else (75,):
        stream = dw.StreamPlan(asked, unit=unit, budget=dw.PureDP(1.0), horizon=horizon, **clock)
        require_same(stream, read(stream.describe() | {"stream": {}, "timeline": timeline.to_dict()}))


def test_of_endless_streams_coarse_lattices_grouped_steps_and_active_steps() -> None:
    endless = dw.StreamPlan([dw.Rolling(4), dw.Cumulative()], unit=dw.EventLevel(), budget=dw.ApproxDP(1.0, 1e-6))
    require_same(endless, read(endless.describe() | {"stream": {}, "timeline": {"steps": 5}}))
    timeline = dw.Timeline.of_steps(24)
    coarse = Plan(dw.Rolling(4), timeline=timeline, unit=dw.ItemLevel(), budget=dw.ApproxDP(1e-9, 1e-9))
    described = read(describe(coarse))
    assert coarse.measurements[0].design.problem.bits < 24
    require_same(coarse, described)
    grouped = Plan(dw.Cumulative(), timeline=timeline, unit=dw.ItemLevel(), budget=dw.PureDP(0.1), singleton=True)
    require_same(grouped, read(describe(grouped)))
    active = Plan(
        dw.Rolling(4).at_least(2),
        timeline=timeline,
        unit=dw.EventLevel(),
        budget=dw.ZCDP(1.0),
        distinct_steps=True,
    )
    require_same(active, read(describe(active)))
    bounded = Plan(dw.Rolling(4), timeline=timeline, unit=dw.ItemAddRemove(), budget=dw.ZCDP(1.0), max_runs=2)
    require_same(bounded, read(describe(bounded)))


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
    "a stream with a horizon": lambda: StreamPlan(ASKED, unit=dw.ItemLevel(), budget=APPROX, horizon=20),
    "a stream of months": lambda: StreamPlan(dw.Tumbling("month"), unit=dw.EventLevel(), budget=APPROX, **CLOCK),
}


def timeline(steps: int) -> dw.Timeline:
    return dw.Timeline.of_steps(steps)


@pytest.mark.quick(3)
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
            np.testing.assert_array_equal(mine.std_errors(measure), its.std_errors(measure))
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
        PLANS["a stream with a horizon"]()
