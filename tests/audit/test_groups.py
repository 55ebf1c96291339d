"""Audits of plans with groups: every neighbour, changes of group among them, and the bugs that groups invite."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

import dpwindows as dw
from dpwindows.ask.groups import Grouping, grouping
from dpwindows.ask.privacy import ZCDP, Budget, EventLevel, ItemAddRemove, ItemLevel, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Query, Rolling, WindowFamily
from dpwindows.audit import (
    Pair,
    audit_black_box,
    audit_encoding,
    audit_exactly,
    audit_measurements,
    audit_noise,
    audit_replay,
)
from dpwindows.audit.black_box import releases
from dpwindows.audit.counted import by_group
from dpwindows.audit.large_logs import event_columns, events_table
from dpwindows.audit.losses import mu_squared, pure_epsilon
from dpwindows.audit.probe import probe
from dpwindows.audit.statistic import log_ratio
from dpwindows.count.query import groups, relation
from dpwindows.count.query.dialect import Dialect
from dpwindows.errors import InputError
from dpwindows.kernel import measure as kernel
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.measure import Measurement
from tests.audit.asked import BUDGETS, IN_GROUPS, half_again, scaled
from tests.grouped_logs import grouped_events
from tests.kernel.test_groups import CASES, asked, truth
from tests.plans import plan_of as asked_plan

pytestmark = pytest.mark.usefixtures("one_engine")

LETTERS = {"g": ["a", "b"]}


def plan_of(*queries: Query | WindowFamily, unit: Unit, budget: Budget, steps: int = 3, **more: Any) -> dw.Plan:
    return asked_plan(*queries, unit=unit, budget=budget, steps=steps, **{"by": LETTERS, **more})


# --- What groups hold, and who is whose neighbour ---------------------------------------------------------------------


@pytest.mark.parametrize(("of", "limit"), [("event", None), ("event", 1), ("event", 2), ("event", 3), ("item", None)])
def test_every_group_holds_what_the_definition_says(of: str, limit: int | None) -> None:
    by = grouping({"g": ["b", "a", "c"], "h": [2, 1]}, group_of=of, max_groups=limit, totals=0.5)
    assert by is not None
    steps, rng = 3, np.random.default_rng(2)
    histories = np.where(rng.random((60, steps * 6)) < 0.3, rng.integers(1, 3, (60, steps * 6)), 0)
    values = by.values_of(by.levels[0])
    for history, found in zip(histories, by_group(by, histories, steps), strict=True):
        rows = [("u", slot // 6, int(n), tuple(values[slot % 6])) for slot, n in enumerate(history) if n]
        expected = grouped_events(rows, by, lambda time: int(time) + 1)
        keys = [key for level in by.levels for key in by.values_of(level)]
        assert found.shape == (len(keys), steps)
        for key, held in zip(keys, found.tolist(), strict=True):
            sums = [sum(n for _, step, n in expected[key] if step == at) for at in range(1, steps + 1)]
            assert held == sums


@pytest.mark.parametrize(("unit", "of", "limit"), CASES, ids=str)
@pytest.mark.parametrize("budget", [PureDP(1.0), ZCDP(0.5)], ids=lambda budget: budget.kind)
def test_the_worst_pair_is_the_worst_of_an_independent_enumeration(
    unit: Unit, of: str, limit: int | None, budget: Budget
) -> None:
    """Two steps and three groups, level by level: the enumeration is that of the bounds' own test."""
    by, names = asked(3, of, limit), {"g": [0, 1, 2]}
    plan = plan_of(Rolling(2), unit=unit, budget=budget, steps=2, by=names, group_of=of, max_groups=limit, totals=0.5)
    for measurement, level in zip(plan.measurements, by.levels, strict=True):
        found = audit_measurements([measurement], budget, unit)
        moved = probe([measurement]).moved(found.worst)
        reached = mu_squared(moved) if measurement.law == GAUSSIAN else pure_epsilon(moved)
        power = 2 if measurement.law == GAUSSIAN else 1
        expected = truth(measurement.design, by, level, 1) / measurement.scale**power
        assert found.exhaustive
        assert float(reached) == pytest.approx(expected, rel=1e-12)


# --- The exact audit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
@pytest.mark.parametrize(("unit", "of", "limit"), IN_GROUPS, ids=str)
def test_plans_with_groups_and_totals_are_within_their_claim(
    unit: Unit, of: str, limit: int | None, budget: Budget
) -> None:
    asked = (Rolling(2).at_least(1), Cumulative())
    plan = plan_of(*asked, unit=unit, budget=budget, steps=3, group_of=of, max_groups=limit, totals=0.4)
    found = audit_exactly(plan)
    assert found.exhaustive
    assert found.verdict == "within the claim"
    assert 0.3 < found.of_certified <= 1.0


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
@pytest.mark.parametrize("limit", [2, 3])
def test_a_budget_shared_as_if_groups_were_parallel_at_item_level_is_flagged(budget: Budget, limit: int) -> None:
    """An item is in several groups: the noise that would do for one of them does not for all."""
    names = {"g": ["a", "b", "c"]}
    for unit, window in itertools.product((ItemAddRemove(), ItemLevel()), (Cumulative(), Rolling(2))):
        alone = dw.Plan([window], timeline=dw.Timeline.of_steps(2), unit=unit, budget=budget).measurements[0]
        (honest,) = plan_of(window, unit=unit, budget=budget, steps=2, by=names, max_groups=limit).measurements
        parallel = Measurement(alone.design, alone.law, alone.scale, honest.groups)
        assert audit_measurements([honest], budget, unit).verdict == "within the claim"
        assert audit_measurements([parallel], budget, unit).verdict == "beyond the claim"


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
def test_an_item_that_changes_its_group_is_not_forgotten(budget: Budget) -> None:
    """With one group for an item, a bound for one group's change alone forgets the group that it comes from."""
    (honest,) = plan_of(Rolling(1), unit=ItemLevel(), budget=budget, group_of="item").measurements
    factor = 2 if honest.law == GAUSSIAN else 1
    bound, one = honest.certificate.bound, honest.design.sensitivity
    forgotten = replace(honest, scale=honest.scale * (one / bound) ** (1 / factor))
    assert bound > one
    assert audit_measurements([honest], budget, ItemLevel()).verdict == "within the claim"
    assert audit_measurements([forgotten], budget, ItemLevel()).verdict == "beyond the claim"


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
@pytest.mark.parametrize(("unit", "of", "limit"), IN_GROUPS, ids=str)
def test_totals_that_nobody_pays_for_are_flagged(unit: Unit, of: str, limit: int | None, budget: Budget) -> None:
    more: dict[str, Any] = {"group_of": of, "max_groups": limit}
    parts, total = plan_of(Cumulative(), unit=unit, budget=budget, totals=0.5, **more).measurements
    unpaid = [replace(one, scale=one.scale / 2) for one in (parts, total)]
    assert audit_measurements([parts, total], budget, unit).verdict == "within the claim"
    assert audit_measurements(unpaid, budget, unit).verdict == "beyond the claim"


def test_many_groups_are_searched_and_too_many_are_refused() -> None:
    plan = plan_of(Rolling(3), unit=ItemLevel(), budget=ZCDP(0.5), steps=12, by={"g": list(range(20))}, max_groups=3)
    found = audit_exactly(plan)
    assert not found.exhaustive
    assert 0.3 < found.of_certified <= 1.0
    with pytest.raises(InputError, match="fewer groups"):
        audit_exactly(plan_of(Rolling(3), unit=EventLevel(), budget=ZCDP(0.5), steps=200, by={"g": list(range(900))}))


# --- The others -------------------------------------------------------------------------------------------------------


@pytest.mark.search(4)
@pytest.mark.slow
@pytest.mark.parametrize(("unit", "of", "limit"), IN_GROUPS, ids=str)
def test_nothing_but_noise_differs_and_large_logs_are_measured_alike(unit: Unit, of: str, limit: int | None) -> None:
    plan = plan_of(
        *(Rolling(2).exactly(1), AnyWindow(2)),
        unit=unit,
        budget=ZCDP(0.5),
        steps=4,
        group_of=of,
        max_groups=limit,
        totals=0.4,
    )
    replayed = audit_replay(plan, [audit_exactly(plan).worst], made_up=2)
    assert replayed.faults == ()
    assert 0.1 < replayed.of_certified <= 1.0
    assert audit_encoding(plan).faults == ()


def test_a_limit_that_the_engine_does_not_keep_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(
        Cumulative(), unit=ItemAddRemove(), budget=ZCDP(0.5), steps=3, by={"g": ["a", "b", "c"]}, max_groups=1
    )
    places = groups.places_sql

    def one_more(dialect: Dialect, coded: str, by: Grouping, span: int) -> str:
        return places(dialect, coded, structs.replace(by, max_groups=2), span)

    monkeypatch.setattr(relation, "places_sql", one_more)
    in_two_groups = Pair((0,) * 9, (1, 1, 0) + (0,) * 6)
    assert any("beyond the certified" in fault for fault in audit_replay(plan, [in_two_groups], made_up=0).faults)
    assert any("counted wrongly" in fault for fault in audit_encoding(plan).faults)


@pytest.mark.usefixtures("seeded_noise")
def test_noise_that_groups_share_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(Rolling(2), unit=EventLevel(), budget=PureDP(1.0), steps=4)
    honest = audit_noise(plan, draws=600)
    assert (honest.verdict, honest.faults) == ("as stated", ())
    monkeypatch.setattr(kernel, "draw_noise", half_again(kernel.draw_noise))
    assert any("shared by numbers 4 apart" in fault.test for fault in audit_noise(plan, draws=600).faults)


@pytest.mark.slow
@pytest.mark.usefixtures("seeded_noise", "encoded_once")
def test_releases_of_groups_show_part_of_the_claim_and_a_sixth_of_the_noise_is_flagged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = plan_of(Cumulative(), unit=ItemAddRemove(), budget=PureDP(1.0), steps=2, max_groups=2, totals=0.2)
    worst = audit_exactly(plan).worst
    found = audit_black_box(plan, worst, runs=1000)
    assert found.verdict == "not contradicted"
    assert found.to_dict()["groups"].keys() == {"g=a", "g=b"}
    monkeypatch.setattr(kernel, "draw_noise", scaled(1 / 6)(kernel.draw_noise))
    # The bound is then 2.7 on the mean, with a standard deviation below 0.2, for a claim of 1.
    assert audit_black_box(plan, worst, runs=1000).verdict == "beyond the claim"


def test_the_likelihood_reads_released_numbers_in_the_order_of_groups() -> None:
    """Where noise vanishes the score of a log and of its neighbour are as far apart as they can be, on either side."""
    queries = (Rolling(1).at_least(1).exactly(1), Cumulative())
    plan = plan_of(
        *queries, unit=EventLevel(), budget=ZCDP(1e6), steps=2, by={"g": ["a", "b"], "h": [1, 2]}, totals=0.5
    )
    pair = Pair((0, 1, 0, 0, 0, 0, 1, 0), (0, 1, 0, 0, 0, 0, 1, 1))
    score = log_ratio(plan, pair)
    for whole in (False, True):
        low, high = (
            float(score(next(releases(plan, one, 1, whole=whole))[None])[0]) for one in (pair.log, pair.neighbour)
        )
        apart = float(mu_squared(probe(plan.measurements).moved(pair)))
        assert high - low == pytest.approx(apart, rel=0.05)


def test_made_up_logs_have_the_columns_of_the_groups_whatever_their_names() -> None:
    by = grouping({"Item": ["x", "y"], "count": [3, 4]})
    assert by is not None
    columns = event_columns(by)
    assert (columns.item, columns.time, columns.count) == ("item_", "time", "count_")
    boundaries = dw.Timeline.of_steps(2).boundaries()
    history = np.array([0, 2, 0, 0, 1, 0, 0, 3])
    assert events_table(boundaries, {"u": history}, by).to_pydict() == {
        "item_": ["u", "u", "u"],
        "time": [0, 1, 1],
        "count_": [2, 1, 3],
        "Item": ["x", "x", "y"],
        "count": [4, 3, 4],
    }
    plan = plan_of(Cumulative(), unit=EventLevel(), budget=PureDP(1.0), steps=2, by={"item": ["x"], "count": [3, 4]})
    assert audit_replay(plan, made_up=1).faults == ()


def test_a_pair_is_told_by_group() -> None:
    by = grouping({"g": ["a", "b", "c"]})
    pair = Pair((1, 0, 0, 0, 0, 0), (0, 1, 0, 0, 0, 2))
    assert {name: (one.log, one.neighbour) for name, one in pair.by_group(by).items()} == {
        "g=a": ((1, 0), (0, 0)),
        "g=b": ((0, 0), (1, 0)),
        "g=c": ((0, 0), (0, 2)),
    }
    assert pair.to_dict(None) == {"log": [1, 0, 0, 0, 0, 0], "neighbour": [0, 1, 0, 0, 0, 2]}


def test_measurements_in_groups_and_others_are_not_audited_together() -> None:
    with_groups = plan_of(Cumulative(), unit=EventLevel(), budget=ZCDP(0.5)).measurements
    without = [replace(one, groups=None) for one in with_groups]
    with pytest.raises(InputError, match="several kinds"):
        audit_measurements([*with_groups, *without], ZCDP(1.0), EventLevel())
