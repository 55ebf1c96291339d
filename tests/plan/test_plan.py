"""Plans: one budget for everything asked, its shares, and the forecast before any data is seen."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.privacy import ApproxDP, Budget, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Measure, Query, Rolling, ToDate, Tumbling, WindowFamily
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.windows import count_windows
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, BudgetExceededError, certify
from dpwindows.kernel.measure import measure
from dpwindows.plan.plan import Plan
from dpwindows.plan.workload import MAX_ROWS
from dpwindows.reading.noise_moments import noise_variance
from dpwindows.strategies.search.noise_scales import design_law
from tests.plans import plan_of
from tests.single_item import TableAnswers

EVENT, ITEM, ADD_REMOVE = EventLevel(), ItemLevel(), ItemAddRemove()
BUDGETS: tuple[Budget, ...] = (PureDP(1.0), ApproxDP(1.0, 1e-6), dw.ZCDP(0.5))
SEVERAL: list[Query | WindowFamily] = [Rolling(3).at_least(1, 3), Cumulative(), AnyWindow(4).exactly(2)]


def plan(
    queries: list[Any] | None = None, steps: int = 10, unit: Unit = EVENT, budget: Budget | None = None, **named: Any
) -> Plan:
    return plan_of(*(queries or [Rolling(3)]), steps=steps, unit=unit, budget=budget or PureDP(1.0), **named)


# --- One budget -------------------------------------------------------------------------------------------------------


@pytest.mark.quick(6)
@pytest.mark.parametrize("unit", [EVENT, ItemPerPeriod(2), ITEM, ADD_REMOVE], ids=lambda unit: unit.name)
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
def test_several_queries_share_one_budget(unit: Unit, budget: Budget) -> None:
    found = plan(SEVERAL, unit=unit, budget=budget)
    costs = [allotment.measurement.cost for allotment in found.allotments]
    assert len(costs) == 3
    certify(budget, costs)
    # And the whole of it is used: nothing can be added, and no part is large enough to be the whole.
    with pytest.raises(BudgetExceededError):
        certify(budget, [*costs, costs[0]])
    alone = plan(SEVERAL[:1], unit=unit, budget=budget)
    assert alone.forecast()[0].rms < found.forecast()[0].rms
    assert {design_law(cost.law) for cost in costs} in ({GAUSSIAN}, {LAPLACE})


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
def test_shares_are_as_the_weights_say(budget: Budget) -> None:
    wanted = {"rolling:3": 1.0, "cumulative": 2.0, "any:4": 5.0}
    for weights in (wanted, list(wanted.values())):
        found = plan(SEVERAL, budget=budget, weights=weights)
        assert [allotment.share for allotment in found.allotments] == pytest.approx([0.125, 0.25, 0.625])
        costs = [allotment.measurement.cost for allotment in found.allotments]
        power = 2 if costs[0].law == GAUSSIAN else 1
        charges = [Fraction(cost.sensitivity) / Fraction(cost.scale) ** power for cost in costs]
        assert [float(charge / sum(charges)) for charge in charges] == pytest.approx([0.125, 0.25, 0.625], rel=1e-9)
        certify(budget, costs)
    partly = plan(SEVERAL, budget=budget, weights={"any:4": 2.0})
    assert [allotment.share for allotment in partly.allotments] == pytest.approx([0.25, 0.25, 0.5])


def test_more_weight_means_less_error() -> None:
    light, heavy = (plan(SEVERAL, weights=[weight, 1, 1]).forecast()[0].rms for weight in (1, 10))
    assert heavy < light


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "weights are one for each window family .*, got 1"),
        ([1.0, 0.0, 1.0], "weights must be finite and greater than 0"),
        ([1.0, -1.0, 1.0], "weights must be finite"),
        ([1.0, math.nan, 1.0], "weights must be finite"),
        ([1.0, math.inf, 1.0], "weights must be finite"),
        ({"any": 1.0}, "weights name windows that are not asked for: any"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(SEVERAL, weights=weights)


def test_queries_of_one_family_are_measured_once() -> None:
    found = plan([Rolling(3).at_least(1), Rolling(3).exactly(1, 2)])
    assert len(found.allotments) == 1
    assert found.allotments[0].measurement.design.problem.thresholds == (1, 2, 3)
    assert found.thresholds == (1, 2, 3)
    assert [(row.measure, row.k) for row in found.forecast()] == [("at_least", 1), ("exactly", 1), ("exactly", 2)]
    assert plan(SEVERAL).thresholds == (1, 2, 3)


# --- Forecast ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
def test_the_forecast_is_of_the_standard_errors(budget: Budget) -> None:
    found = plan(SEVERAL, budget=budget)
    rows = iter(found.forecast())
    for allotment in found.allotments:
        for measure_ in allotment.query.measures:
            row = next(rows)
            errors = allotment.std_errors(measure_)
            assert len(errors) == count_windows(allotment.query.window, 10)
            assert row.rms == pytest.approx(float(np.sqrt((errors**2).mean())), rel=1e-12)
            assert row.max == pytest.approx(float(errors.max()), rel=1e-12)
            widths = allotment.half_widths(measure_, 0.95)
            assert row.half_width == pytest.approx(float(np.sqrt((widths**2).mean())), rel=1e-12)
            assert row.limit is None or row.ratio_to_limit == row.rms / row.limit
            assert row.noise == allotment.measurement.law
            assert row.to_dict()["rms"] == row.rms
    assert next(rows, None) is None


@pytest.mark.slow
@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
def test_the_error_that_is_forecast_is_the_error_that_is_made(budget: Budget) -> None:
    """Real noise of 4,000 releases of an empty log.

    Were all windows of a release one, the mean of their squared standardised errors would have a deviation of
    sqrt((2 + kurtosis) / 4000) <= 0.03, the kurtosis of an exact count being at most 1.5; several windows have less.
    0.75 and 1.3 are eight deviations away, and a scale wrong by 30 % makes the mean 0.49 or 1.69: both errors have
    probability below 1e-9. So has a coverage below that quantile of a binomial law.
    """
    releases = 4000
    found = plan([Rolling(3).exactly(1)], budget=budget)
    answers = TableAnswers(np.zeros((10, 10), dtype=np.int64))
    (allotment,) = found.allotments
    design = allotment.measurement.design
    errors = np.empty((releases, 10))
    for i in range(releases):
        (noisy,) = measure([allotment.measurement], budget, answers)
        one, two = (reading.of(design).decode(noisy[k].astype(np.float64)) for k in (1, 2))
        errors[i] = one - two
    standard = errors / allotment.std_errors(Measure("exactly", 1))
    assert 0.75 < float((standard**2).mean()) < 1.3
    assert abs(float(standard.mean())) < 7 / math.sqrt(releases)
    within = (abs(errors) <= allotment.half_widths(Measure("exactly", 1), 0.95)).mean(axis=1)
    assert float(within.mean()) > stats.binom(releases, 0.95).ppf(1e-9) / releases


def test_noise_is_what_the_law_and_scale_make_it() -> None:
    (allotment,) = plan([Rolling(3).exactly(2)], budget=dw.ZCDP(0.5)).allotments
    measurement = allotment.measurement
    wanted = 2 * reading.of(measurement.design).variance() * noise_variance(measurement.law, measurement.scale)
    assert np.allclose(allotment.variance(Measure("exactly", 2)), wanted)
    assert np.allclose(allotment.variance(Measure("at_least", 2)) * 2, wanted)


@pytest.mark.parametrize(("small", "large"), [(0.5, 1.0), (1.0, 10.0), (1e-3, 1e3)])
def test_more_budget_means_less_error(small: float, large: float) -> None:
    for make in (PureDP, dw.ZCDP, lambda epsilon: ApproxDP(epsilon, 1e-6)):
        less, more = (plan(SEVERAL, budget=make(value)).forecast() for value in (large, small))
        assert all(one.rms < other.rms for one, other in zip(less, more, strict=True))


def test_units_cost_what_they_promise() -> None:
    by_unit = {
        unit.name: plan([Cumulative()], steps=60, unit=unit, budget=dw.ZCDP(0.5)).forecast()[0].rms
        for unit in (EVENT, ITEM, ADD_REMOVE)
    }
    assert by_unit["item-add-remove"] < by_unit["item"]
    assert by_unit["event"] <= by_unit["item"] * 1.000001


@pytest.mark.quick(1)
@pytest.mark.search(2)
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
def test_a_longer_period_costs_more_and_the_longest_is_item_level(budget: Budget) -> None:
    errors = {
        name: [row.rms for row in plan(SEVERAL, steps=40, unit=unit, budget=budget).forecast()]
        for name, unit in (
            ("event", EVENT),
            *((f"item-per:{steps}", ItemPerPeriod(steps)) for steps in (1, 3, 12, 40, 10**9)),
            ("item", ITEM),
        )
    }
    for shorter, longer in pairwise(errors):
        assert all(one <= other * (1 + 1e-9) for one, other in zip(errors[shorter], errors[longer], strict=True))
    assert errors["item-per:40"] == errors["item-per:1000000000"] == errors["item"]


def test_a_period_as_long_as_the_range_is_said_to_mean_item_level() -> None:
    assert plan(steps=10, unit=ItemPerPeriod(9)).notes == ()
    (note,) = plan(steps=10, unit=ItemPerPeriod(10)).notes
    assert note == "the period of item-per:10 is at least as long as the 10 steps of the range, so it means item here"


def test_plans_are_deterministic() -> None:
    first, second = (plan(SEVERAL, steps=40, budget=ApproxDP(1.0, 1e-6)) for _ in range(2))
    assert first.forecast() == second.forecast()
    assert [a.measurement.scale for a in first.allotments] == [a.measurement.scale for a in second.allotments]


def test_a_large_delta_may_choose_another_law() -> None:
    """(epsilon, delta) takes the law of less error; never one worse than the pure plan's."""
    for delta in (1e-30, 1e-6, 1e-2):
        approximate = plan(steps=60, budget=ApproxDP(1.0, delta)).forecast()[0].rms
        assert approximate <= plan(steps=60, budget=PureDP(1.0)).forecast()[0].rms * (1 + 1e-9)


# --- Remarks and refusals ---------------------------------------------------------------------------------------------


def test_a_rolling_window_as_long_as_the_range_means_cumulative() -> None:
    found = plan([Rolling(10), Rolling(9), Rolling(12)])
    assert found.notes == (
        "rolling:10 is at least as long as the 10 steps of the range, so it means cumulative here",
        "rolling:12 is at least as long as the 10 steps of the range, so it means cumulative here",
    )
    assert [allotment.measurement.design.problem.window for allotment in found.allotments] == [
        Cumulative(),
        Rolling(9),
        Cumulative(),
    ]
    assert [row.window for row in found.forecast()] == ["rolling:10", "rolling:9", "rolling:12"]
    assert plan().notes == ()


def test_too_many_numbers_are_refused_before_anything_is_computed() -> None:
    with pytest.raises(InputError, match=r"more than the 5,000,000 that are allowed: bound the windows' length"):
        plan([AnyWindow()], steps=4000)
    with pytest.raises(InputError, match="6,000,000 numbers would be released"):
        plan([Rolling(3).at_least(1, 2, 3)], steps=2_000_000)
    assert MAX_ROWS == 5_000_000


@pytest.mark.parametrize("criterion", ["mean", "", None])
def test_unknown_criteria_are_refused(criterion: Any) -> None:
    with pytest.raises(InputError, match="criterion must be rms or max"):
        plan(criterion=criterion)


def test_the_criterion_is_what_strategies_are_chosen_by() -> None:
    rms, largest = (
        plan([Cumulative()], 80, ADD_REMOVE, dw.ZCDP(0.5), criterion=criterion).forecast()[0]
        for criterion in ("rms", "max")
    )
    assert rms.rms <= largest.rms * (1 + 1e-9)
    assert largest.max <= rms.max * (1 + 1e-9)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 2.0, math.nan, "0.95", None, 1])
def test_confidence_lies_strictly_between_0_and_1(confidence: Any) -> None:
    with pytest.raises(InputError, match="confidence must lie strictly between 0 and 1"):
        plan(confidence=confidence)


def test_more_confidence_means_wider_intervals() -> None:
    widths = [plan(confidence=confidence).forecast()[0].half_width for confidence in (0.5, 0.9, 0.95, 0.999)]
    assert widths == sorted(widths)
    assert len(set(widths)) == 4


@pytest.mark.quick(1)
@pytest.mark.parametrize("singleton", [False, True])
@pytest.mark.parametrize("unit", [EVENT, ItemLevel()], ids=lambda unit: unit.name)
def test_the_runner_up_is_never_the_chosen_strategy(unit: Unit, singleton: bool) -> None:
    """Neither with another noise law, as `direct` for short any windows, nor with other parameters."""
    for window in (Cumulative(), Rolling(3), AnyWindow(3)):
        made = Plan(window, timeline=Timeline.of_steps(12), unit=unit, budget=ApproxDP(1.0, 1e-6), singleton=singleton)
        (found,) = made.forecast()
        assert found.runner_up not in (None, found.strategy)
        assert found.runner_up_ratio is not None


def test_no_runner_up_is_better_than_what_was_chosen() -> None:
    """One noise law serves all windows: what one of them would have of the other law is none to choose."""
    asked = [Tumbling(4), ToDate(4), Rolling(3)]
    made = Plan(asked, timeline=Timeline.of_steps(48), unit=EVENT, budget=ApproxDP(1.0, 1e-6))
    ratios = [found.runner_up_ratio for found in made.forecast()]
    assert all(ratio is None or ratio >= 1 for ratio in ratios), ratios


def test_strategies_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="unknown strategy 'paper2'"):
        plan(strategy="paper2")
    with pytest.raises(InputError, match="strategy 'tree' does not apply to rolling:3"):
        plan(strategy="tree")


def test_nothing_asked_is_refused() -> None:
    with pytest.raises(InputError, match="no query was given"):
        Plan([], timeline=Timeline.of_steps(3), unit=EVENT, budget=PureDP(1.0))


@pytest.mark.parametrize("budget", [PureDP(1e-14), dw.ZCDP(1e-30), ApproxDP(1e-15, 1e-20)], ids=str)
def test_budgets_that_buy_nothing_but_noise_are_refused(budget: Budget) -> None:
    with pytest.raises(InputError, match="too small"):
        plan(unit=ITEM, budget=budget)


def test_coarser_lattices_make_room_for_wide_noise() -> None:
    """Noise far wider than the counts still fits the 64-bit sampler: fewer bits to a count."""
    (allotment,) = plan(unit=ITEM, steps=100, budget=PureDP(1e-8)).allotments
    assert allotment.measurement.scale <= 2.0**55
    certify(PureDP(1e-8), [allotment.measurement.cost])


def test_a_plan_tells_what_it_is() -> None:
    text = repr(plan([Rolling(3).at_least(1, 3), Cumulative()], budget=ApproxDP(1.0, 1e-6)))
    assert "rolling:3: at least 1, at least 3, cumulative: at least 1" in text
    assert "event level" in text
    assert "(epsilon, delta) = (1, 1e-06)" in text


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"unit": "event"}, "unit"),
        ({"unit": EventLevel}, "unit"),
        ({"budget": 1.0}, "budget"),
        ({"timeline": 30}, "timeline"),
        ({"weights": "a"}, "weights"),
    ],
)
def test_values_of_the_wrong_kind_are_refused_at_the_edge(wrong: dict[str, Any], word: str) -> None:
    right: dict[str, Any] = {"timeline": Timeline.of_steps(5), "unit": EventLevel(), "budget": PureDP(1.0)}
    with pytest.raises(InputError, match=word):
        Plan([Cumulative()], **(right | wrong))
    assert Plan(Cumulative(), **right).queries == Plan([Cumulative()], **right).queries


def test_a_window_of_any_length_is_planned_and_released() -> None:
    plan = Plan([Rolling(10**20)], timeline=Timeline.of_steps(3), unit=EventLevel(), budget=PureDP(1e12))
    release = plan.run(pa.table({"who": ["a", "b"], "at": [0, 2]}), item="who", time="at")
    assert [round(value) for value in release.to_arrow()["estimate"].to_pylist()] == [1, 1, 2]
    assert release.to_arrow()["complete"].to_pylist() == [False, False, False]
