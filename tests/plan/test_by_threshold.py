"""At least 1 measured apart: where it errs less, that nothing else changes, and that releases are read as they were."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import dpwindows as dw
from dpwindows.ask.privacy import Budget, EventLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import Query
from dpwindows.ask.timeline import Timeline
from dpwindows.kernel.problem import Criterion
from dpwindows.plan.plan import Plan

APPROX = dw.ApproxDP(1.0, 1e-6)
ANY = dw.AnyWindow()
STEPS = 60


def plan(query: Query, unit: Unit, budget: Budget = APPROX, **options: object) -> Plan:
    return Plan([query], timeline=Timeline(0, STEPS, step=1), unit=unit, budget=budget, **options)  # type: ignore[arg-type]


def asked(made: Plan) -> list[tuple[int, ...]]:
    return [one.query.thresholds for one in made.allotments]


@pytest.mark.parametrize("unit", [dw.ItemAddRemove(), dw.ItemLevel()], ids=lambda unit: unit.name)
@pytest.mark.parametrize("budget", [APPROX, dw.PureDP(1.0)], ids=str)
def test_every_threshold_errs_less_than_all_measured_alike(unit: Unit, budget: Budget) -> None:
    made = plan(ANY.at_least(1, 2, 3), unit, budget)
    alike = plan(ANY.at_least(1, 2, 3), unit, budget, strategy="crossed-counters")
    assert asked(made) == [(1,), (2, 3)]
    assert asked(alike) == [(1, 2, 3)]
    assert sum(one.share for one in made.allotments) == pytest.approx(1.0)
    assert all(one.rms < other.rms for one, other in zip(made.forecast(), alike.forecast(), strict=True))
    # The shares are the best, but for three digits: those a little larger or smaller lose.
    power = 1 if budget == APPROX else 2
    (first, _), errors = [one.share for one in made.allotments], [one.rms for one in made.forecast()]
    unit_squares = [errors[0] ** 2 * first**power, 2 * errors[1] ** 2 * (1 - first) ** power]
    sums = [
        unit_squares[0] / share**power + unit_squares[1] / (1 - share) ** power
        for share in (first - 0.01, first, first + 0.01)
    ]
    assert sums[1] == min(sums)
    # What is least possible for the whole budget is no more than for a part of it.
    limits = [one.limit for one in made.forecast()]
    assert limits == [one.limit for one in alike.forecast()]


@pytest.mark.parametrize("criterion", ["rms", "max"])
def test_at_least_1_is_measured_apart_where_that_is_worth_it(criterion: Criterion) -> None:
    few, many = (
        Plan(
            [ANY.at_least(1, 2)],
            timeline=Timeline(0, steps, step=1),
            unit=dw.ItemAddRemove(),
            budget=APPROX,
            criterion=criterion,
        )
        for steps in (8, STEPS)
    )
    assert asked(few) == [(1, 2)]
    assert asked(many) == [(1,), (2,)]
    if criterion == "max":
        one, other = (entry.max for entry in many.forecast())
        assert one == pytest.approx(other, rel=0.01)


@pytest.mark.parametrize(
    ("query", "unit"),
    [
        (ANY.at_least(1, 2), EventLevel()),
        (ANY.at_least(1, 2), ItemPerPeriod(7)),
        (ANY.at_least(2, 3), dw.ItemAddRemove()),
        (ANY.at_least(2, 1), dw.ItemAddRemove()),
        (ANY.at_least(1), dw.ItemAddRemove()),
        (ANY.histogram(3), dw.ItemAddRemove()),
        (dw.Cumulative().at_least(1, 2), dw.ItemAddRemove()),
    ],
    ids=str,
)
def test_what_is_not_measured_apart(query: Query, unit: Unit) -> None:
    assert asked(plan(query, unit)) == [query.thresholds]


def test_a_release_is_read_as_it_was_measured() -> None:
    random = np.random.default_rng(5)
    log = {"item": random.integers(0, 300, 4000), "time": random.integers(0, STEPS, 4000)}
    made = plan(ANY.at_least(1, 2, 3), dw.ItemAddRemove(), dw.ApproxDP(4.0, 1e-6))
    release = made.run(pd.DataFrame(log), item="item", time="time")
    again = dw.plan_of(release)
    assert [(one.query, one.share) for one in again.allotments] == [(one.query, one.share) for one in made.allotments]
    read, measured = ([(one.design.shape, one.scale) for one in of.measurements] for of in (again, made))
    assert read == measured
    windows = {k: dw.Window(10, 40, at_least=k) for k in (1, 2, 3)}
    errors = {k: release.count(10, 40, at_least=k).std_error for k in windows}
    for one, other in ((1, 2), (2, 3), (1, 3)):
        found = release.difference(windows[one], windows[other])
        assert found.std_error == pytest.approx(math.hypot(errors[one], errors[other]))
    table = release.to_pandas().pivot_table(index=["first_step", "last_step"], columns="k", values="consistent")
    assert (table[2] <= table[1]).all()
    assert (table[3] <= table[2]).all()
    broken = {**release.metadata, "measurements": release.metadata["measurements"][:1]}
    with pytest.raises(dw.InputError, match="other k"):
        dw.plan_of(dw.Release(release.to_arrow(), broken))
