"""The attack: it finds the truth on short horizons, and bounds that are a little too small on long ones."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpwindows as dw
from dpwindows.ask.privacy import Budget, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.audit import attack as module
from dpwindows.audit import attack_bounds
from dpwindows.audit.neighbours import changes
from dpwindows.audit.probe import probe, read_at, unread
from dpwindows.audit.search import Effort, search
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.certificate import Certificate
from tests.audit.asked import BUDGETS, UNITS
from tests.kernel.truth import worst
from tests.patience import PATIENCE
from tests.plans import plan_of


def plant(plan: dw.Plan, **too_small: Any) -> dw.Plan:
    """The plan with other numbers in its only certificate."""
    (allotment,) = plan.allotments
    made = allotment.measurement
    wrong: Certificate = replace(made.certificate, **too_small)
    vars(made)["certificate"] = wrong
    assert plan.measurements[0].certificate is wrong
    return plan


@pytest.mark.quick(4)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
@pytest.mark.parametrize("window", [Cumulative(), Rolling(2), AnyWindow()], ids=str)
def test_on_a_short_horizon_it_finds_what_neighbours_really_change(
    window: WindowFamily, budget: Budget, unit: Unit
) -> None:
    plan = plan_of(window.at_least(2), unit=unit, budget=budget, steps=4)
    found = attack_bounds(plan, seconds=PATIENCE)
    (measurement,) = plan.measurements
    norm, moved = worst(measurement.design)
    assert found.holds
    assert all(one.every for one in found.bounds)
    by_name = {one.of: one for one in found.bounds}
    if measurement.law in (GAUSSIAN, LAPLACE):
        charged = by_name["squared L2 norm" if measurement.law == GAUSSIAN else "L1 norm"]
        assert charged.reached == norm
        assert charged.bound == measurement.certificate.bound
    if "numbers moved" in by_name:
        assert by_name["numbers moved"].reached == moved


def test_a_bound_that_is_too_small_by_one_is_broken_on_a_short_horizon() -> None:
    for unit, budget in itertools.product(UNITS, (PureDP(1.0), dw.ZCDP(0.5))):
        plan = plan_of(Rolling(2).at_least(2), unit=unit, budget=budget, steps=4, strategy="direct")
        truth = attack_bounds(plan, seconds=PATIENCE).bounds[0].reached
        found = attack_bounds(plant(plan, bound=truth - 1), seconds=PATIENCE)
        assert not found.holds
        assert found.bounds[0].reached == truth
        assert not found.to_dict()["bounds"][0]["holds"]


def test_numbers_and_squares_that_are_charged_for_are_attacked_too() -> None:
    plan = plan_of(Rolling(2), unit=EventLevel(), budget=dw.ZCDP(0.5), steps=6, strategy="direct")
    assert [one.of for one in attack_bounds(plan, seconds=PATIENCE).bounds] == ["squared L2 norm", "numbers moved"]
    _, moved = attack_bounds(plant(plan, moved=1), seconds=PATIENCE).bounds
    assert (moved.reached, moved.bound, moved.holds) == (2, 1, False)
    plan = plan_of(Cumulative(), unit=EventLevel(), budget=dw.ApproxDP(1.0, 1e-6), steps=6, strategy="paper")
    assert [one.of for one in attack_bounds(plan, seconds=PATIENCE).bounds] == ["L1 norm", "squared L2 norm"]
    _, squared = attack_bounds(plant(plan, squared=1), seconds=PATIENCE).bounds
    assert squared.reached > 1
    assert not squared.holds


LONG: list[tuple[WindowFamily, Unit, Budget]] = [
    (Rolling(7), EventLevel(), dw.ZCDP(0.5)),
    (Rolling(7), ItemPerPeriod(3), dw.ZCDP(0.5)),
    (Cumulative(), ItemLevel(), PureDP(1.0)),
    (Rolling(7), ItemAddRemove(), dw.ZCDP(0.5)),
]


@pytest.mark.parametrize(("window", "unit", "budget"), LONG, ids=str)
def test_a_bound_that_is_a_little_too_small_is_broken_on_a_long_horizon(
    window: WindowFamily, unit: Unit, budget: Budget
) -> None:
    plan = plan_of(window, unit=unit, budget=budget, steps=60)
    bound = plan.measurements[0].certificate.bound
    found = attack_bounds(plant(plan, bound=bound * 97 // 100), seconds=PATIENCE)
    assert not found.bounds[0].holds
    assert found.bounds[0].reached <= bound


@pytest.mark.parametrize("unit", [ItemLevel(), ItemAddRemove()], ids=lambda unit: unit.name)
def test_what_is_too_large_to_be_read_off_is_encoded(unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_readable", lambda measurements: False)
    plan = plan_of(AnyWindow(), unit=unit, budget=dw.ZCDP(0.5), steps=30)
    bound = plan.measurements[0].certificate.bound
    honest = attack_bounds(plan, seconds=1.0)
    assert honest.holds
    assert not honest.bounds[0].every
    assert honest.bounds[0].annealed > 0
    assert attack_bounds(plant(plan, bound=bound * 8 // 10), seconds=PATIENCE).bounds[0].reached > bound * 8 // 10


def test_groups_rules_and_joint_noise_are_attacked() -> None:
    by: dict[str, Any] = {"by": {"g": ["a", "b"]}, "max_groups": 1, "totals": 0.4}
    plans = [
        plan_of(Rolling(2), unit=ItemLevel(), budget=dw.ZCDP(0.5), steps=3, **by),
        plan_of(Rolling(2), unit=ItemLevel(), budget=dw.ZCDP(0.5), steps=12, **by),
        plan_of(Rolling(2).at_least(1), unit=ItemLevel(), budget=PureDP(1.0), steps=9, max_runs=1),
        plan_of(Rolling(2).occurrences(), unit=ItemLevel(), budget=PureDP(1.0), steps=5, max_occurrences=2),
        plan_of(Cumulative(), unit=ItemAddRemove(), budget=PureDP(1.0), steps=4, strategy="joint-noise"),
        plan_of(Rolling(2), unit=ItemAddRemove(), budget=PureDP(1.0), steps=5, estimate_loss=0.1, max_runs=1),
    ]
    for plan in plans:
        found = attack_bounds(plan, seconds=0.5)
        assert found.holds
        assert len(found.bounds) >= len(plan.measurements)
        assert all(0.3 * one.bound <= one.reached <= one.bound for one in found.bounds)


@pytest.mark.parametrize("unit", [EventLevel(), ItemPerPeriod(3)], ids=lambda unit: unit.name)
def test_what_is_read_at_a_few_steps_is_what_is_applied_there(unit: Unit) -> None:
    plan = plan_of(AnyWindow().at_least(1, 2), Rolling(3), unit=unit, budget=dw.ZCDP(0.5), steps=9)
    made, places = plan.measurements, (2, 3, 6, 9)
    whole, few = probe(made), read_at(made, unread(made), places)
    assert (few.steps, few.places) == (4, places)
    histories = np.array(list(itertools.product(range(3), repeat=4)))
    spread = np.zeros((len(histories), 9), dtype=np.int64)
    spread[:, np.array(places) - 1] = histories
    for part, own in zip(whole.parts, few.parts, strict=True):
        assert np.array_equal(part.apply(whole.answers(spread)), own.apply(few.answers(histories)))


def test_neighbours_in_a_few_steps_are_neighbours_over_all() -> None:
    places = (2, 3, 6, 9, 10)
    ways = changes(ItemPerPeriod(4), 5, 1, places)
    inside = {tuple(places[way.low : way.high]) for way in ways}
    wanted = [tuple(at for at in places if first <= at < first + 4) for first in range(1, 11)]
    largest = {one for one in wanted if one and not any(set(one) < set(other) for other in wanted)}
    assert inside == largest
    grouped = changes(ItemPerPeriod(4), 5, 2, places)
    assert [(way.low, way.high) for way in grouped] == [(2 * way.low, 2 * way.high) for way in ways]


def test_annealing_goes_on_from_the_worst_pair_and_never_loses_it() -> None:
    plan = plan_of(Rolling(7), unit=ItemPerPeriod(5), budget=dw.ZCDP(0.5), steps=16)
    mechanism = probe(plan.measurements)
    known, _ = search(mechanism, plan.unit, 2, seed=0)

    def reached(pair: Any) -> int:
        (moved,) = mechanism.moved(pair)
        return sum(one * one for one in moved.change)

    again, tried = search(mechanism, plan.unit, 2, seed=1, effort=Effort(5, 4, heat=0.5), begin=known)
    assert reached(again) >= reached(known)
    ended, few = search(mechanism, plan.unit, 2, seed=1, effort=Effort(until=0.0), begin=known)
    assert few == 24 < tried
    assert reached(ended) >= reached(known)


def test_it_takes_some_time() -> None:
    plan = plan_of(Rolling(2), unit=EventLevel(), budget=PureDP(1.0), steps=3)
    for seconds in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InputError, match="takes some time"):
            attack_bounds(plan, seconds=seconds)
