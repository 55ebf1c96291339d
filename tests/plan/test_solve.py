"""From a wanted error to the smallest three-digit budget."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, EventLevel, ItemAddRemove, PureDP
from dpwindows.ask.queries import AnyWindow, Cumulative, Query, Rolling, WindowFamily
from dpwindows.ask.timeline import Timeline
from dpwindows.errors import InputError
from dpwindows.plan.plan import Plan
from dpwindows.plan.solve import _position, _value, solve_epsilon, solve_rho, worst_error
from tests.end_to_end.command_line import run

TIMELINE = Timeline.of_steps(60)


def test_the_grid_holds_every_three_digit_number_once() -> None:
    values = [_value(position) for position in range(-1800, 1801)]
    assert values == sorted(set(values))
    assert {0.01, 0.0999, 0.897, 1.0, 1.01, 9.99, 10.0, 99.9} <= set(values)
    assert all(_position(value) == position for position, value in zip(range(-1800, 1801), values, strict=True))
    assert _value(_position(1.2301)) == 1.24


def worst(queries: list[Query | WindowFamily], budget: Budget, **options: Any) -> float:
    return worst_error(Plan(queries, timeline=TIMELINE, unit=EventLevel(), budget=budget, **options))


@pytest.mark.quick(1)
@pytest.mark.search(7)
@pytest.mark.parametrize("target", [0.05, 3.0, 40.0, 1e4])
@pytest.mark.parametrize(
    ("queries", "options"),
    [
        ([Rolling(7)], {}),
        ([Rolling(7).at_least(1, 3), Cumulative()], {"criterion": "max"}),
        ([Rolling(7), AnyWindow()], {"strategy": "paper"}),
    ],
)
def test_the_budget_is_the_smallest_that_is_enough(
    queries: list[Query | WindowFamily], options: dict[str, Any], target: float
) -> None:
    for delta in (None, 1e-6):
        plan = solve_epsilon(queries, target_std=target, timeline=TIMELINE, unit=EventLevel(), delta=delta, **options)
        assert isinstance(plan.budget, PureDP if delta is None else ApproxDP)
        epsilon = plan.budget.epsilon
        assert worst_error(plan) <= target
        below = _value(_position(epsilon) - 1)
        assert 0.98 * epsilon < below < epsilon
        assert worst(queries, PureDP(below) if delta is None else ApproxDP(below, delta), **options) > target


@pytest.mark.slow
def test_where_delta_alone_is_enough_the_smallest_epsilon_is_taken() -> None:
    plan = solve_epsilon([Rolling(7)], target_std=1e6, timeline=TIMELINE, unit=EventLevel(), delta=1e-6)
    assert plan.budget == ApproxDP(1e-12, 1e-6)


def test_concentrated_budgets() -> None:
    plan = solve_rho([Rolling(7)], target_std=2.5, timeline=TIMELINE, unit=EventLevel())
    assert isinstance(plan.budget, ZCDP)
    assert worst_error(plan) <= 2.5
    assert worst([Rolling(7)], ZCDP(_value(_position(plan.budget.rho) - 1))) > 2.5
    # The forecast is the error that was asked for.
    assert plan.forecast()[0].rms == worst_error(plan)


def test_the_worst_query_counts_with_its_bias() -> None:
    plan = Plan(
        [AnyWindow()],
        timeline=TIMELINE,
        unit=ItemAddRemove(),
        budget=PureDP(1.0),
        strategy="paper",
        singleton=True,
    )
    allotment = plan.allotments[0]
    bias = allotment.bias_bounds()
    assert bias.max() > 0
    squared = allotment.variance(allotment.query.measures[0]) + bias**2
    assert worst_error(plan) == pytest.approx(math.sqrt(np.mean(squared)))


@pytest.mark.parametrize("target", [0.0, -1.0, math.nan, math.inf, True])
def test_impossible_targets_are_refused(target: float) -> None:
    with pytest.raises(InputError, match="target_std must be"):
        solve_epsilon([Rolling(7)], target_std=target, timeline=TIMELINE, unit=EventLevel())


def test_bad_requests_are_refused_with_their_own_message() -> None:
    with pytest.raises(InputError, match="unknown strategy 'no-such'"):
        solve_epsilon([Rolling(7)], target_std=1.0, timeline=TIMELINE, unit=EventLevel(), strategy="no-such")
    with pytest.raises(InputError, match="delta"):
        solve_epsilon([Rolling(7)], target_std=1.0, timeline=TIMELINE, unit=EventLevel(), delta=2.0)


ASKED = ("plan", "--window", "rolling:7", "--unit", "event", "--steps", "60")


def test_the_command_line_solves() -> None:
    outcome = run(*ASKED, "--target-std", "5", "--delta", "1e-6")
    assert outcome.code == 0
    assert "smallest budget" in outcome.out
    assert "rolling:7" in outcome.out
    found = json.loads(run(*ASKED, "--target-std", "5", "--json").out)
    assert found["budget"]["kind"] == "pure"
    assert found["queries"][0]["rms"] <= 5
    again = json.loads(run(*ASKED, "--epsilon", str(found["budget"]["epsilon"]), "--json").out)
    assert again["queries"] == found["queries"]
    assert json.loads(run(*ASKED, "--target-std", "5", "--solve", "rho", "--json").out)["budget"]["kind"] == "zcdp"


@pytest.mark.parametrize(
    "options",
    [
        ("--target-std", "5", "--epsilon", "1"),
        ("--target-std", "5", "--rho", "1"),
        ("--target-std", "5", "--solve", "rho", "--delta", "1e-6"),
        ("--target-std", "-5"),
        ("--epsilon", "1", "--solve", "rho"),
        (),
    ],
)
def test_the_command_line_refuses_contradictions(options: tuple[str, ...]) -> None:
    outcome = run(*ASKED, *options)
    assert outcome.code == 2
    assert outcome.err.startswith("Error: ")
