"""Measurements made again from metadata are those of the plan."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dpwindows as dw
from dpwindows.ask.privacy import Budget, Unit
from dpwindows.ask.queries import Query, WindowFamily
from dpwindows.errors import InputError
from dpwindows.kernel.shapes.grouped import CompressedDesign
from dpwindows.plan.description import describe
from dpwindows.plan.plan import Plan
from dpwindows.plan.planned import Planned
from dpwindows.plan.rebuilt import rebuilt

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
        assert made.design.sensitivity == wanted.design.sensitivity
        for k in wanted.design.problem.thresholds:
            one, other = made.design.at(k).variance(), wanted.design.at(k).variance()
            size = min(len(one), len(other))
            np.testing.assert_array_equal(one[:size], other[:size])


@pytest.mark.quick(2)
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
    assert described["measurements"][0]["bits"] < 24
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


@pytest.mark.parametrize("lacking", ["criterion", "timeline", "singleton", "unit"])
def test_metadata_that_say_too_little_are_refused(lacking: str) -> None:
    plan = Plan(dw.Rolling(4), timeline=dw.Timeline.of_steps(9), unit=dw.EventLevel(), budget=dw.ZCDP(1.0))
    described = read(describe(plan))
    del described[lacking]
    with pytest.raises(InputError, match="the release does not say how its noise is correlated"):
        rebuilt(described, described["measurements"][0])


def test_releases_of_older_streams_do_not_say_how_long_the_stream_is() -> None:
    stream = dw.StreamPlan(dw.Rolling(4), unit=dw.EventLevel(), budget=dw.ZCDP(1.0))
    described = read(stream.describe() | {"stream": {}, "timeline": {"steps": 5}})
    del described["horizon"]
    with pytest.raises(InputError, match="older versions and of older streams"):
        rebuilt(described, described["measurements"][0])


def test_grouped_steps_are_measured_again_by_the_strategy_that_they_were_measured_by() -> None:
    """Also where a plan of today chooses another."""
    asked: dict[str, Any] = {"timeline": dw.Timeline.of_steps(24), "unit": dw.ItemLevel(), "singleton": True}
    described = read(describe(Plan(dw.AnyWindow(), budget=dw.PureDP(0.1), **asked)))
    (entry,) = described["measurements"]
    for inner in ("gap-filter", "crossed-counters"):
        made = rebuilt(described, entry | {"strategy": f"compressed({inner})"}).design
        assert isinstance(made, CompressedDesign)
        assert made.inner.strategy == inner


@pytest.mark.parametrize(
    ("strategy", "message"), [("no-such", "unknown strategy"), ("compressed(x)", "has no strategy")]
)
def test_strategies_that_this_version_has_not_are_named(strategy: str, message: str) -> None:
    plan = Plan(dw.Rolling(4), timeline=dw.Timeline.of_steps(9), unit=dw.EventLevel(), budget=dw.ZCDP(1.0))
    described = read(describe(plan))
    with pytest.raises(InputError, match=message):
        rebuilt(described, described["measurements"][0] | {"strategy": strategy})
