"""Rolling windows that a plan measures as one: how exact, when, and what else is said of them."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.privacy import Budget, Unit
from dpwindows.ask.queries import Measure, Query, RollingTogether, WindowFamily
from dpwindows.audit.exact import audit_exactly
from dpwindows.audit.replay import audit_replay
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import LAPLACE
from dpwindows.kernel.designs import StepAnswers, StepDesign
from dpwindows.plan.allotment import served_by
from dpwindows.plan.description import asked_of, describe
from dpwindows.plan.plan import Plan
from dpwindows.plan.rebuilt import rebuilt
from dpwindows.plan.sharing import choose_joint, parts_of
from dpwindows.reading.noise_moments import noise_variance
from dpwindows.release.run import draw_estimates
from tests.single_item import SingleItem
from tests.stream.streams import mechanism_of

EVENT, DISTINCT = dw.EventLevel(), Measure("at_least", 1)
APPROX, ZCDP = dw.ApproxDP(1.0, 1e-6), dw.ZCDP(0.5)
MIXED: list[Query | WindowFamily] = [dw.Rolling(2), dw.Cumulative(), dw.Rolling(5), dw.Rolling(3)]


def plan_of(*lengths: int, steps: int = 365, unit: Unit = EVENT, budget: Budget = APPROX, **options: Any) -> Plan:
    return Plan(map(dw.Rolling, lengths), timeline=dw.Timeline.of_steps(steps), unit=unit, budget=budget, **options)


def joint(plan: Plan) -> list[str]:
    return [one.query.window.text for one in plan.allotments if one.series is not None]


def errors(plan: Plan) -> list[float]:
    return [entry.rms for entry in plan.forecast()]


@pytest.mark.quick(1)
@pytest.mark.search(2)
@pytest.mark.parametrize(
    ("lengths", "most"), [((7, 28), 1.31), ((1, 7, 28), 1.50), ((1, 7, 28, 90), 1.65), ((24, 168), 1.36)]
)
def test_together_they_err_less_than_apart(lengths: tuple[int, ...], most: float) -> None:
    own = [errors(plan_of(length, strategy="optimal-filter"))[0] for length in lengths]
    apart, found = errors(plan_of(*lengths, strategy="optimal-filter")), plan_of(*lengths)
    assert joint(found) == [f"rolling:{length}" for length in lengths]
    over = np.array(errors(found)) / own
    assert math.sqrt(float((over**2).mean())) <= most
    assert math.sqrt(len(lengths)) == pytest.approx(float(np.mean(np.array(apart) / own)), rel=2e-3)
    # The least error of each by itself, at the whole budget, is what none can come below.
    assert all(entry.limit is not None and entry.limit <= entry.rms for entry in found.forecast())


@pytest.mark.quick(2)
@pytest.mark.search(13)
@pytest.mark.parametrize("criterion", ["rms", "max"])
@pytest.mark.parametrize("budget", [APPROX, ZCDP, dw.ApproxDP(0.1, 1e-9)], ids=str)
@pytest.mark.parametrize("weights", [(1, 1, 1), (8, 1, 1), (1, 1, 30), (1, 5, 2)], ids=str)
def test_no_series_errs_more_than_apart(weights: tuple[float, ...], budget: Budget, criterion: str) -> None:
    options: dict[str, Any] = {"budget": budget, "weights": weights, "steps": 90, "criterion": criterion}
    found = plan_of(1, 7, 28, **options)
    if joint(found):
        apart = plan_of(1, 7, 28, strategy="optimal-filter", **options)
        for one, other in zip(found.allotments, apart.allotments, strict=True):
            assert one.share == other.share
            together, alone = one.variance(DISTINCT), other.variance(DISTINCT)
            assert (together.max() <= alone.max()) if criterion == "max" else (together.mean() <= alone.mean())
            assert one.chosen.error <= min(other.error for other in one.others)
    # Beside delta Laplace noise may serve days alone better; without it something is always gained.
    assert joint(found) or budget != ZCDP or weights == (1, 1, 30)


@pytest.mark.slow
def test_weights_say_how_the_gain_is_spread() -> None:
    even, heavy = errors(plan_of(1, 7, 28)), errors(plan_of(1, 7, 28, weights=[4, 1, 1]))
    assert heavy[0] < even[0]
    assert heavy[1] > even[1]


APART: list[tuple[list[Query | WindowFamily], dict[str, Any]]] = [
    ([dw.Rolling(1), dw.Rolling(7)], {"budget": dw.PureDP(1.0)}),
    ([dw.Rolling(1), dw.Rolling(7)], {"unit": dw.ItemLevel()}),
    ([dw.Rolling(1), dw.Rolling(7)], {"unit": dw.ItemAddRemove()}),
    ([dw.Rolling(1), dw.Rolling(7)], {"unit": dw.ItemPerPeriod(2)}),
    ([dw.Rolling(1), dw.Rolling(7)], {"strategy": "optimal-filter"}),
    ([dw.Rolling(2).at_least(2), dw.Rolling(7).at_least(1, 2)], {}),
    ([dw.Rolling(2).exactly(1), dw.Rolling(7)], {}),
    # As long as the range: those are cumulative counts.
    ([dw.Rolling(7), dw.Rolling(30)], {}),
    ([dw.Rolling(7), dw.Cumulative()], {}),
    ([dw.Rolling(2), dw.Rolling(7)], {"by": {"country": ["de", "fr"]}}),
]


@pytest.mark.parametrize(("asked", "options"), APART)
def test_what_is_measured_apart(asked: list[Query | WindowFamily], options: dict[str, Any]) -> None:
    known: dict[str, Any] = {"unit": EVENT, "budget": ZCDP} | options
    plan = Plan(asked, timeline=dw.Timeline.of_steps(30), **known)
    assert joint(plan) == []
    assert len(plan.measurements) == len(plan.allotments)
    assert all("together" not in entry for entry in describe(plan)["measurements"])


def test_a_budget_too_small_for_gaussian_noise_is_served_apart() -> None:
    """A regression: the plan was refused, although Laplace noise measures each of them."""
    plan = plan_of(1, 2, steps=5, budget=dw.ApproxDP(2e-13, 1e-30))
    assert joint(plan) == []
    assert {measurement.law for measurement in plan.measurements} == {LAPLACE}


def test_the_longest_windows_are_measured_apart_where_they_are_too_many() -> None:
    parts = parts_of(tuple(Query(dw.Rolling(length), (DISTINCT,)) for length in range(12, 2, -1)), [0.1] * 10, None)
    assert choose_joint(parts, EVENT, None) == list(range(2, 10))
    long = tuple(Query(dw.Rolling(length), (DISTINCT,)) for length in (7, 5000, 28))
    assert choose_joint(parts_of(long, [0.3] * 3, None), EVENT, None) == [0, 2]
    assert choose_joint(parts_of(long[1:], [0.5] * 2, None), EVENT, None) == []


def test_it_is_no_window_to_ask_for() -> None:
    with pytest.raises(InputError, match="expected"):
        Plan(RollingTogether((1, 7)), timeline=dw.Timeline.of_steps(30), unit=EVENT, budget=ZCDP)
    with pytest.raises(InputError, match="unknown strategy"):
        plan_of(1, 7, strategy="joint-filter")


# --- What a release says is what it does ------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [EVENT, dw.ItemPerPeriod(1)], ids=lambda unit: unit.name)
def test_every_neighbour_is_within_the_claim(unit: Unit) -> None:
    plan = Plan(MIXED, timeline=dw.Timeline.of_steps(6), unit=unit, budget=ZCDP)
    assert joint(plan) == ["rolling:2", "rolling:5", "rolling:3"]
    assert (len(plan.measurements), served_by(plan.allotments)) == (2, [0, 1, 0, 0])
    found = audit_exactly(plan)
    assert (found.exhaustive, found.verdict) == (True, "within the claim")
    assert found.of_certified > 0.9


@pytest.mark.slow
def test_noise_is_all_that_hides_a_neighbour() -> None:
    for plan in (
        Plan(MIXED, timeline=dw.Timeline.of_steps(6), unit=EVENT, budget=ZCDP),
        dw.StreamPlan(MIXED, unit=EVENT, budget=ZCDP, horizon=6),
    ):
        found = audit_replay(plan, made_up=1)
        assert (len(plan.measurements), found.faults) == (2, ())
        assert found.of_certified > 0


@pytest.mark.usefixtures("seeded_noise")
def test_errors_of_the_plan_are_those_of_the_decoder_and_of_releases() -> None:
    plan = Plan(MIXED, timeline=dw.Timeline.of_steps(8), unit=EVENT, budget=ZCDP)
    one = plan.measurements[0]
    decoder = np.array([reading.of(one.design).decode(unit) for unit in np.eye(one.design.rows)]).T
    log = SingleItem((0, 1, 0, 0, 0, 2, 0, 0))
    exact = one.design.encode(log, 1).astype(np.float64)
    first = plan.allotments[0]
    by_matrix = (decoder**2).sum(axis=1) * noise_variance(one.law, one.scale)
    for allotment in plan.allotments:
        if allotment.series is not None:
            window = allotment.query.window
            assert isinstance(window, dw.Rolling)
            np.testing.assert_allclose(allotment.own(decoder @ exact), log.rolling(1, window.length), atol=1e-7)
            np.testing.assert_allclose(allotment.variance(DISTINCT), allotment.own(by_matrix), rtol=1e-9)
            assert allotment.measurement == first.measurement
    # 300 releases of 32 numbers: their spread is off by 10 % once in 10^9 runs or so.
    runs = np.array([np.concatenate(draw_estimates(plan, log)) for _ in range(300)])
    stated = np.concatenate([allotment.std_errors(DISTINCT) for allotment in plan.allotments])
    known = np.concatenate([log.rolling(1, 2), log.cumulative(1), log.rolling(1, 5), log.rolling(1, 3)])
    off = (runs - known) / stated
    np.testing.assert_allclose(np.sqrt((off**2).mean(axis=0)), 1.0, atol=0.3)
    assert float(np.sqrt((off**2).mean())) == pytest.approx(1.0, abs=0.1)


def test_noise_is_known_to_be_shared() -> None:
    plan = Plan(MIXED, timeline=dw.Timeline.of_steps(8), unit=EVENT, budget=ZCDP)
    design = plan.measurements[0].design
    decoder = np.array([reading.of(design).decode(unit) for unit in np.eye(design.rows)]).T
    wanted = decoder @ decoder.T
    # The week that ends at step 6 with the days that end at steps 4 and 6: rolling:5 is series 1, rolling:2 series 0.
    week = reading.of(design).noise_weights({(2, 6): 1.0}, 1)[0]
    days = reading.of(design).noise_weights({(3, 4): 1.0, (5, 6): -2.0}, 0)[0]
    size = min(len(week), len(days))
    assert float(week @ week) == pytest.approx(wanted[8 + 5, 8 + 5], rel=1e-9)
    assert float(week[:size] @ days[:size]) == pytest.approx(wanted[8 + 5, 3] - 2 * wanted[8 + 5, 5], rel=1e-9)


def test_a_release_tells_what_measured_it_and_knows_its_noise_again() -> None:
    plan = Plan(MIXED, timeline=dw.Timeline.of_steps(8), unit=EVENT, budget=ZCDP, weights=[1, 2, 3, 4])
    described = json.loads(json.dumps(describe(plan)))
    entries = described["measurements"]
    assert [entry.get("together") for entry in entries] == [
        None if at == 1 else ["rolling:2", "rolling:5", "rolling:3"] for at in range(4)
    ]
    assert sum(entry["budget_share"] for entry in entries) == pytest.approx(1.0)
    for entry, allotment in zip(entries, plan.allotments, strict=True):
        made = rebuilt(described, entry)
        assert made.design.sensitivity == allotment.measurement.design.sensitivity
        np.testing.assert_allclose(
            reading.of(made.design).variance(), reading.of(allotment.measurement.design).variance(), rtol=1e-12
        )
    # What a ledger knows a request by says nothing of how it is measured.
    assert asked_of(plan)["shares"] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert "together" not in json.dumps(asked_of(plan))


# --- Streams ----------------------------------------------------------------------------------------------------------


def test_a_stream_measures_the_same_numbers_step_by_step_and_is_stored_whole() -> None:
    stream = dw.StreamPlan(MIXED, unit=EVENT, budget=ZCDP, horizon=9)
    batch = Plan(MIXED, timeline=dw.Timeline.of_steps(9), unit=EVENT, budget=ZCDP)
    mechanism = mechanism_of(stream)
    assert [[query.window.text for query in queries] for queries in mechanism.queries] == [
        ["rolling:2", "rolling:5", "rolling:3"],
        ["cumulative"],
    ]
    log = SingleItem((1, 0, 0, 0, 2, 0, 0, 0, 0))
    one, other = stream.measurements[0], batch.measurements[0]
    assert isinstance(one.design, StepDesign)
    np.testing.assert_array_equal(one.design.encode(log, 1), other.design.encode(log, 1))
    for made, before in zip(mechanism.measurements, stream.measurements, strict=True):
        assert made.certificate == before.certificate


def test_an_endless_stream_errs_as_its_plan_says() -> None:
    plan = dw.StreamPlan([dw.Rolling(1), dw.Rolling(4)], unit=EVENT, budget=ZCDP)
    assert [entry.strategy for entry in plan.forecast()] == ["joint-filter", "joint-filter"]
    mechanism = mechanism_of(plan)
    memory = mechanism.fresh_memory()
    for step in range(1, 4):
        nothing = StepAnswers(step, {1: np.zeros(min(step, mechanism.reach), dtype=np.int64)}, {1: 0})
        rows, memory = mechanism.release_step([nothing], memory)
        assert rows["window"].to_pylist() == ["rolling:1", "rolling:4"]
        assert rows["first_step"].to_pylist() == [step, 1]
        stated = [allotment.std_errors(DISTINCT)[step - 1] for allotment in plan.allotments]
        np.testing.assert_allclose(rows["std_error"].to_numpy(), stated, rtol=1e-12)
