"""Noise drawn for all counts at once: where it is offered, what it buys, and whether errors are as announced."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import dpwindows as dw
from dpwindows.ask.privacy import Budget, Unit
from dpwindows.ask.queries import Measure, Query, WindowFamily
from dpwindows.audit.exact import audit_exactly
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import CUBE, LAPLACE, RANGE
from dpwindows.kernel.problem import Problem
from dpwindows.plan.unit_errors import unit_errors
from dpwindows.reading.noise_moments import joint_variance
from dpwindows.release.run import draw_estimates
from dpwindows.strategies import BATCH, STREAM, candidates, joint_noise
from tests.single_item import TableAnswers

PURE = dw.PureDP(1.0)
ITEM, ADD_REMOVE = dw.ItemLevel(), dw.ItemAddRemove()


def plan_of(*asked: Any, steps: int, unit: Unit, budget: Budget = PURE, **more: Any) -> dw.Plan:
    return dw.Plan(asked, timeline=dw.Timeline.of_steps(steps), unit=unit, budget=budget, **more)


def drawn(plan: dw.Plan, times: int) -> list[np.ndarray]:
    """Estimates of a log without events, for each measure: shape (times, windows)."""
    steps = plan.timeline.steps
    nothing = TableAnswers(np.zeros((steps, steps), dtype=np.int64))
    return [np.array(found) for found in zip(*(draw_estimates(plan, nothing) for _ in range(times)), strict=True)]


# --- Where it is offered ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "window", [dw.Rolling(1), dw.Rolling(3), dw.Tumbling(2), dw.ToDate(3), dw.Cumulative()], ids=str
)
def test_it_is_for_whole_items_and_spends_epsilon_alone(window: WindowFamily) -> None:
    served: tuple[Unit, ...] = (ITEM, ADD_REMOVE, dw.ItemPerPeriod(8))
    for unit, budget in product(served, (PURE, dw.ApproxDP(1.0, 1e-6))):
        (allotment,) = plan_of(window, steps=8, unit=unit, budget=budget, strategy="joint-noise").allotments
        assert allotment.measurement.law == (RANGE if unit == ADD_REMOVE else CUBE)
        assert allotment.measurement.certificate.bound == 1
        assert allotment.measurement.scale == pytest.approx(1.0)
    refused: list[tuple[Unit, Budget]] = [(dw.EventLevel(), PURE), (dw.ItemPerPeriod(2), PURE), (ITEM, dw.ZCDP(0.5))]
    for unit, budget in refused:
        with pytest.raises(InputError, match="'joint-noise' does not apply"):
            plan_of(window, steps=8, unit=unit, budget=budget, strategy="joint-noise")
        assert "joint-noise" not in {
            one.strategy for one in plan_of(window, steps=8, unit=unit, budget=budget).forecast()
        }


def test_it_is_neither_for_streams_nor_for_any_windows_nor_for_one_number() -> None:
    assert joint_noise.NAME in BATCH
    assert joint_noise.NAME not in STREAM
    with pytest.raises(InputError, match="joint-noise"):
        dw.StreamPlan([dw.Rolling(1)], horizon=30, unit=ITEM, budget=PURE, strategy="joint-noise")
    for window, steps in ((dw.AnyWindow(2), 8), (dw.Rolling(1), 1)):
        with pytest.raises(InputError, match="'joint-noise' does not apply"):
            plan_of(window, steps=steps, unit=ITEM, strategy="joint-noise")


@pytest.mark.usefixtures("seeded_noise")
def test_steps_are_compressed_under_the_law_that_is_best_for_fewer_of_them() -> None:
    problem = Problem(dw.Rolling(28), 365, (1,), ITEM, LAPLACE, 1.0, singleton=True, budget=PURE)
    best = next(one for one in candidates(problem) if one.strategy == "compressed(joint-noise)")
    assert best.problem.law == CUBE
    assert (best.sensitivity, best.proof) == (1, "item-in-a-cube")
    assert best.rows < 365
    plan = plan_of(dw.Rolling(28), steps=365, unit=ITEM, singleton=True)
    (forecast,) = plan.forecast()
    assert forecast.strategy == "compressed(joint-noise)"
    noise = drawn(plan, 400)[0][:, 200]
    assert noise.std() == pytest.approx(plan.allotments[0].std_errors(Measure("at_least", 1))[200], rel=0.25)


# --- What it buys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "k", "unit", "before", "after"),
    [
        (dw.Rolling(1), 1, ITEM, 516.2, 211.6),
        (dw.Rolling(1), 1, ADD_REMOVE, 516.2, 150.0),
        (dw.Rolling(7), 1, ITEM, 417.6, 211.6),
        (dw.Rolling(7), 1, ADD_REMOVE, 264.7, 150.0),
        (dw.Rolling(28), 3, ADD_REMOVE, 238.3, 150.0),
        (dw.Tumbling(7), 1, ADD_REMOVE, 74.95, 22.65),
        (dw.Tumbling(28), 1, ITEM, 19.79, 8.94),
        (dw.Tumbling(28), 1, ADD_REMOVE, 19.79, 6.72),
    ],
    ids=str,
)
def test_a_year_under_a_pure_budget(window: WindowFamily, k: int, unit: Unit, before: float, after: float) -> None:
    (found,) = plan_of(Query(window, (Measure("at_least", k),)), steps=365, unit=unit).forecast()
    assert found.strategy == "joint-noise"
    assert found.rms == pytest.approx(after, rel=0.001)
    assert found.limit is not None
    assert found.limit < found.rms
    # What was the best before is the best of the others now, but for the loss of a digit.
    assert found.runner_up_ratio == pytest.approx(before / after, rel=0.01)


def test_what_errs_less_is_still_taken() -> None:
    for window, strategy in ((dw.Rolling(28), "anchored-differences"), (dw.Cumulative(), "tree")):
        assert plan_of(window, steps=365, unit=ITEM).forecast()[0].strategy == strategy


def test_queries_share_a_budget_whatever_their_laws() -> None:
    plan = plan_of(dw.Rolling(1), dw.Cumulative(), steps=365, unit=ADD_REMOVE)
    laws = [one.measurement.law for one in plan.allotments]
    assert laws == [RANGE, LAPLACE]
    assert [one.strategy for one in plan.forecast()] == ["joint-noise", "tree"]
    assert plan.forecast()[0].rms == pytest.approx(300.1, rel=0.001)


@pytest.mark.quick(1)
@pytest.mark.parametrize("unit", [ITEM, ADD_REMOVE], ids=lambda unit: unit.name)
def test_months_err_less_under_an_approximate_budget_too(unit: Unit) -> None:
    """Fewer than some fifty numbers: many more have Gaussian noise."""
    budget = dw.ApproxDP(1.0, 1e-6)
    (months,) = plan_of(dw.Tumbling(28), steps=365, unit=unit, budget=budget).forecast()
    assert months.strategy == "joint-noise"
    assert months.rms == pytest.approx(8.94 if unit == ITEM else 6.72, rel=0.001)
    assert months.runner_up_ratio is not None
    assert months.runner_up_ratio > (1.7 if unit == ITEM else 1.3)
    (days,) = plan_of(dw.Rolling(1), steps=365, unit=unit, budget=budget).forecast()
    assert days.strategy != "joint-noise"
    found = audit_exactly(plan_of(dw.Tumbling(2), steps=6, unit=unit, budget=budget, strategy="joint-noise"))
    assert found.verdict == "within the claim"


@pytest.mark.slow
def test_the_sliders_of_a_page_know_it() -> None:
    choices = unit_errors(plan_of(dw.Rolling(1), steps=20, unit=ITEM))["choices"]
    (((found,),),) = ([one["families"] for one in choices[0]["apart"] if one["law"] == LAPLACE],)
    joint = found[-1]
    assert joint["noise"] == CUBE
    error = joint["errors"][0] * math.sqrt(joint_variance(CUBE, joint["scale"], joint["size"]))
    assert error == pytest.approx(math.sqrt(21 * 22 / 3), rel=0.001)


# --- Errors and intervals ---------------------------------------------------------------------------------------------


@pytest.mark.quick(1)
@pytest.mark.search(3)
@pytest.mark.usefixtures("seeded_noise", "encoded_once")
@pytest.mark.parametrize("unit", [ITEM, ADD_REMOVE], ids=lambda unit: unit.name)
@pytest.mark.parametrize(
    ("window", "steps"), [(dw.Rolling(1), 2), (dw.Rolling(2), 5), (dw.Tumbling(3), 30), (dw.ToDate(5), 40)], ids=str
)
def test_errors_and_intervals_are_those_of_the_noise(window: WindowFamily, steps: int, unit: Unit) -> None:
    """The noise of 1,500 releases; the numbers of one release share a radius, so one of each is looked at."""
    asked = Query(window, (Measure("at_least", 1), Measure("exactly", 2)))
    plan = plan_of(asked, steps=steps, unit=unit, budget=dw.PureDP(0.3), strategy="joint-noise")
    (allotment,) = plan.allotments
    for measure, found in zip(asked.measures, drawn(plan, 1500), strict=True):
        error = allotment.std_errors(measure)
        assert found[:, -1].std() == pytest.approx(error[-1], rel=0.1)
        assert abs(found[:, -1].mean()) < 6 * error[-1] / math.sqrt(1500)
        for confidence in (0.8, 0.95):
            inside = float((abs(found[:, -1]) <= allotment.half_widths(measure, confidence)[-1]).mean())
            spread = math.sqrt(confidence * (1 - confidence) / 1500)
            # Whole numbers make it wider by a step at most.
            assert confidence - 5 * spread < inside < confidence + 0.04 + 5 * spread, (measure, confidence)
