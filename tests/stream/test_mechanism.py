"""The mechanism of a stream: stored and restored, and released step by step with the errors it was planned for."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.privacy import Budget, Unit
from dpwindows.ask.queries import Query, WindowFamily
from dpwindows.ask.windows import window_steps
from dpwindows.kernel.accounting import LAPLACE, BudgetExceededError
from dpwindows.kernel.designs import StepAnswers, StepDesign
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.filters import Filter
from dpwindows.plan.allotment import served_by
from dpwindows.plan.stored_designs import design_to_dict
from dpwindows.plan.stream_plan import FORECAST_STEPS, StreamPlan
from dpwindows.reading.reader import steps_of
from dpwindows.stream.mechanism import Mechanism
from tests.plans import plan_of
from tests.stream.streams import mechanism_of, said_of

APPROX = dw.ApproxDP(1.0, 1e-6)
EVENT = dw.EventLevel()
MIXED: list[Query | WindowFamily] = [
    dw.Rolling(3).at_least(1, 2).exactly(1),
    dw.Cumulative(),
    dw.AnyWindow(4).exactly(2),
]
CASES: list[tuple[list[Query | WindowFamily], Unit, Budget, int | None]] = [
    (MIXED, EVENT, APPROX, None),
    (MIXED, EVENT, dw.PureDP(1.0), None),
    (MIXED, EVENT, dw.ZCDP(0.1), 12),
    (MIXED, dw.ItemAddRemove(), APPROX, 12),
    (MIXED, dw.ItemLevel(), dw.PureDP(1.0), 12),
    ([dw.AnyWindow(), dw.Rolling(30)], EVENT, APPROX, 12),
]


def answers_at(step: int, thresholds: tuple[int, ...]) -> StepAnswers:
    """Some exact counts: longer windows hold more items, larger thresholds fewer."""
    recent = np.cumsum(np.arange(step) % 5 + 40)
    return StepAnswers(step, {k: recent // k for k in thresholds}, {k: int(recent[-1]) // k for k in thresholds})


def released(mechanism: Mechanism, steps: int) -> pa.Table:
    memory, tables = mechanism.fresh_memory(), []
    for step in range(1, steps + 1):
        table, memory = mechanism.release_step([answers_at(step, mechanism.thresholds)], memory)
        tables.append(table)
    return pa.concat_tables(tables)


def true_value(row: dict[str, Any]) -> int:
    back, step = row["last_step"] - row["first_step"], row["last_step"]
    counts = answers_at(step, (row["k"], row["k"] + 1)).recent
    exact = int(counts[row["k"]][back])
    return exact if row["measure"] == "at_least" else exact - int(counts[row["k"] + 1][back])


# Of numbers under Laplace noise one in 300,000 errs by more than nine standard errors.
@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.quick(2)
@pytest.mark.parametrize(("queries", "unit", "budget", "horizon"), CASES, ids=str)
def test_every_window_is_released_once_with_the_error_that_was_forecast(
    queries: list[Query | WindowFamily], unit: Unit, budget: Budget, horizon: int | None
) -> None:
    plan = StreamPlan(queries, unit=unit, budget=budget, horizon=horizon)
    table = released(mechanism_of(plan), 12)
    for allotment in plan.allotments:
        for measure in allotment.query.measures:
            rows = [
                row
                for row in table.to_pylist()
                if (row["window"], row["measure"], row["k"]) == (allotment.query.window.text, measure.kind, measure.k)
            ]
            rows.sort(key=lambda row: (row["first_step"], row["last_step"]))
            first, last = window_steps(allotment.query.window, 12)
            order = np.lexsort((last, first))
            assert [row["first_step"] for row in rows] == list(first[order])
            assert [row["last_step"] for row in rows] == list(last[order])
            # Bit for bit what the plan says of the same windows.
            forecast = allotment.std_errors(measure)
            all_first, all_last = window_steps(allotment.query.window, plan.timeline.steps)
            known = dict(zip(zip(all_first, all_last, strict=True), forecast, strict=True))
            assert all(row["std_error"] == known[row["first_step"], row["last_step"]] for row in rows)
            half = dict(zip(known, allotment.half_widths(measure, plan.confidence), strict=True))
            for row in rows:
                width = half[row["first_step"], row["last_step"]]
                assert row["upper"] - row["estimate"] == pytest.approx(width, rel=1e-9)
                assert abs(row["estimate"] - true_value(row)) < 9 * row["std_error"]


def test_rolling_windows_are_complete_when_they_are_full() -> None:
    plan = StreamPlan(dw.Rolling(3), unit=EVENT, budget=APPROX)
    assert released(mechanism_of(plan), 5)["complete"].to_pylist() == [False, False, True, True, True]


@pytest.mark.parametrize(("queries", "unit", "budget", "horizon"), CASES, ids=str)
def test_a_mechanism_is_restored_integer_for_integer(
    queries: list[Query | WindowFamily], unit: Unit, budget: Budget, horizon: int | None
) -> None:
    plan = StreamPlan(queries, unit=unit, budget=budget, horizon=horizon)
    made = mechanism_of(plan)
    served = dict(zip(served_by(plan.allotments), plan.allotments, strict=True))
    assert [len(asked) for asked in made.queries] == [served_by(plan.allotments).count(place) for place in served]
    for before, after in zip(plan.measurements, made.measurements, strict=True):
        assert isinstance(before.design, StepDesign)
        assert isinstance(after.design, StepDesign)
        assert design_to_dict(after.design) == design_to_dict(before.design)
        assert after.design.reach == before.design.reach
        assert (after.law, after.scale, after.design.sensitivity) == (
            before.law,
            before.scale,
            before.design.sensitivity,
        )
        for k, step in product(before.design.problem.thresholds, (1, 5, 12)):
            own, other = before.design.at(k), after.design.at(k)
            assert isinstance(own, StepDesign)
            assert isinstance(other, StepDesign)
            assert (steps_of(own).variance_at(step) == steps_of(other).variance_at(step)).all()


def test_a_stored_mechanism_that_costs_more_than_its_budget_is_refused() -> None:
    values = said_of(StreamPlan(dw.Rolling(3), unit=EVENT, budget=APPROX))
    values["measurements"][0]["noise"]["scale"] *= 0.999
    with pytest.raises(BudgetExceededError):
        Mechanism.of(values)


def test_a_stored_mechanism_of_a_kind_unknown_here_is_refused() -> None:
    values = said_of(StreamPlan(dw.Rolling(3), unit=EVENT, budget=APPROX))
    values["measurements"][0]["integers"]["shape"]["map"]["kind"] = "Tomorrow"
    with pytest.raises(ValueError, match="Tomorrow"):
        Mechanism.of(values)


@pytest.mark.slow
@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("budget", [dw.ZCDP(0.5), dw.PureDP(1.0)], ids=str)
def test_the_noise_of_a_stream_has_the_scale_that_was_planned(budget: Budget) -> None:
    """Rolling counts over one step are measured one by one: 1,500 independent errors.

    Their variance has a relative standard deviation of 0.037 (0.058 for Laplace noise): of a scale that is wrong by
    30 % it is more than five of these beyond 20 %.
    """
    plan = StreamPlan(dw.Rolling(1), unit=EVENT, budget=budget, strategy="direct")
    mechanism = mechanism_of(plan)
    memory, errors = mechanism.fresh_memory(), []
    for step in range(1, 1501):
        answers = StepAnswers(step, {1: np.array([100])}, {1: 100})
        table, memory = mechanism.release_step([answers], memory)
        errors.append((table["estimate"][0].as_py() - 100) / table["std_error"][0].as_py())
    assert 0.8 < np.var(errors) < 1.2
    assert abs(np.mean(errors)) < 6 / np.sqrt(1500)
    assert abs(np.corrcoef(errors[:-1], errors[1:])[0, 1]) < 6 / np.sqrt(1500)


def test_the_same_step_released_twice_has_other_noise() -> None:
    """Which is why a stream must never do it."""
    mechanism = mechanism_of(StreamPlan(MIXED, unit=EVENT, budget=APPROX))
    answers = answers_at(1, mechanism.thresholds)
    first, _ = mechanism.release_step([answers], mechanism.fresh_memory())
    second, _ = mechanism.release_step([answers], mechanism.fresh_memory())
    assert (np.array(first["estimate"]) != np.array(second["estimate"])).all()


def test_a_stream_measures_what_a_batch_release_does() -> None:
    """Rolling counts use the same filter in both: the same integers, and the same estimates from the same noise."""
    batch = plan_of(dw.Rolling(7), steps=40, unit=EVENT, budget=APPROX, strategy="optimal-filter")
    stream = StreamPlan(dw.Rolling(7), unit=EVENT, budget=APPROX, strategy="optimal-filter")
    released = batch.allotments[0].measurement.design
    design = stream.designs[0]
    assert isinstance(design.shape, Series)
    assert isinstance(design.shape.map, Filter)
    assert design.shape == released.shape
    measured = np.random.default_rng(0).normal(size=40) * 2.0**24
    expected = reading.of(released).decode(measured)
    assert reading.of(design.forecast_over(40)).decode(measured) == pytest.approx(expected, rel=1e-9)
    assert design.sensitivity == batch.allotments[0].measurement.design.sensitivity


@pytest.mark.parametrize("unit", [EVENT, dw.ItemPerPeriod(7)], ids=lambda unit: unit.name)
def test_bounded_windows_are_planned_alike_with_and_without_a_horizon(unit: Unit) -> None:
    queries: list[Query | WindowFamily] = [dw.Rolling(7).at_least(1, 2), dw.AnyWindow(5)]
    unlimited = StreamPlan(queries, unit=unit, budget=APPROX)
    limited = StreamPlan(queries, unit=unit, budget=APPROX, horizon=40)
    for one, other in zip(unlimited.allotments, limited.allotments, strict=True):
        assert one.measurement.scale == other.measurement.scale
        measure = one.query.measures[0]
        assert (one.std_errors(measure)[:40] == other.std_errors(measure)[:40]).all() or isinstance(
            one.query.window, dw.AnyWindow
        )
    assert unlimited.timeline.steps == FORECAST_STEPS
    assert limited.timeline.steps == 40


@pytest.mark.parametrize("horizon", [None, 3 * FORECAST_STEPS], ids=["unlimited", "limited"])
@pytest.mark.parametrize("budget", [dw.PureDP(1.0), APPROX], ids=["pure", "approximate"])
def test_a_period_longer_than_the_forecast_is_charged_whole(budget: Budget, horizon: int | None) -> None:
    # An item that is there in each step of its period and in no other changes W + L - 1 windows by one.
    window, period = 7, 2 * FORECAST_STEPS
    plan = StreamPlan(dw.Rolling(window), unit=dw.ItemPerPeriod(period), budget=budget, horizon=horizon)
    design = plan.designs[0]
    steps = window + period + 50
    recent = np.concatenate([np.ones(window + period - 1, dtype=np.int64), np.zeros(51, dtype=np.int64)])
    memory, change = design.shape.fresh(), 0
    for step in range(1, steps + 1):
        answers = StepAnswers(step, {1: np.repeat(recent[step - 1], window)}, {1: 1})
        encoded, memory = design.encode_step(answers, 1, memory)
        change += sum(abs(int(value)) if design.problem.law == LAPLACE else int(value) ** 2 for value in encoded)
    assert change <= design.sensitivity


def test_a_stream_whose_noise_was_for_a_shorter_period_is_refused() -> None:
    """One whose period is longer than the forecast, at the scale of 4,096 steps."""
    plan = StreamPlan(dw.Rolling(7), unit=dw.ItemPerPeriod(2 * FORECAST_STEPS), budget=dw.PureDP(1.0))
    values = said_of(plan)
    Mechanism.of(values)
    (entry,) = values["measurements"]
    entry["noise"]["scale"] = FORECAST_STEPS * (1 + 1e-12)
    entry["sensitivity"] |= {"value": FORECAST_STEPS, "bound": str(FORECAST_STEPS)}
    with pytest.raises(BudgetExceededError):
        Mechanism.of(values)


def test_a_stream_ends_at_its_horizon() -> None:
    mechanism = mechanism_of(StreamPlan(dw.Cumulative(), unit=EVENT, budget=APPROX, horizon=3))
    with pytest.raises(ValueError, match="ends after 3 steps"):
        mechanism.release_step([answers_at(4, (1,))], mechanism.fresh_memory())


@pytest.mark.parametrize("horizon", [0, -1, 2**40])
def test_a_horizon_is_a_number_of_steps(horizon: int) -> None:
    with pytest.raises(dw.InputError, match="horizon must be a whole number of steps from 1"):
        StreamPlan(dw.Cumulative(), unit=EVENT, budget=APPROX, horizon=horizon)


def test_a_stream_plan_is_no_plan_of_a_batch_release() -> None:
    planned = StreamPlan(dw.Cumulative(), unit=EVENT, budget=APPROX)
    assert not isinstance(planned, dw.Plan)
    assert not hasattr(planned, "run")


def test_a_strategy_that_is_not_causal_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        dw.InputError, match=r"'nested-filter' does not apply to cumulative .* in a stream .* or one of"
    ):
        StreamPlan(dw.Cumulative(), unit=EVENT, budget=APPROX, strategy="nested-filter")


def test_the_error_of_rolling_windows_does_not_grow() -> None:
    (entry,) = StreamPlan(dw.Rolling(28), unit=EVENT, budget=APPROX).forecast()
    assert entry.max < 10.3
    assert entry.max / entry.rms < 1.01


def test_what_a_stream_says_of_itself_depends_on_no_data_and_no_time() -> None:
    plan = StreamPlan(MIXED, unit=EVENT, budget=APPROX)
    described = plan.describe()
    assert described == StreamPlan(MIXED, unit=EVENT, budget=APPROX).describe()
    assert described["guarantee"].startswith("The stream satisfies (epsilon, delta) = (1, 1e-06)")
    assert {"timeline", "release_id", "released_at"}.isdisjoint(described)
    json.dumps(described, allow_nan=False)
