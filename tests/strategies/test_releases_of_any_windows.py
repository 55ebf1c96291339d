"""Strategies for any windows of items, through the package: exact without noise, and as noisy as was forecast."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpwindows as dw
from dpwindows.ask.privacy import Budget, Unit
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.families.gaps import Gaps
from tests import brute_force

GENERATOR = np.random.default_rng(7)
LOG = [(item, int(step)) for item in range(400) for step in GENERATOR.integers(0, 24, size=1 + item % 7)]
TABLE = pa.table({"item": [item for item, _ in LOG], "time": [step for _, step in LOG]})


def plan_of(
    strategy: str, thresholds: tuple[int, ...], budget: Budget, unit: Unit, longest: int | None = None
) -> dw.Plan:
    return dw.Plan(
        [dw.AnyWindow(longest).at_least(*thresholds)],
        timeline=dw.Timeline(0, 24, step="1"),
        unit=unit,
        budget=budget,
        strategy=strategy,
    )


@cache
def exact_counts(k: int) -> NDArray[np.int64]:
    return np.array(brute_force.any_window([(item, step + 1, 1) for item, step in LOG], k, 24))


def errors_of(plan: dw.Plan) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How far the estimates of a release are from the exact counts of the log, and their standard errors."""
    rows = plan.run(TABLE, item="item", time="time", consistent=False).table.to_pylist()
    exact = [exact_counts(row["k"])[row["first_step"] - 1, row["last_step"] - 1] for row in rows]
    return np.array([row["estimate"] for row in rows]) - exact, np.array([row["std_error"] for row in rows])


BUDGETS = pytest.mark.parametrize("budget", [dw.ApproxDP(1.0, 1e-6), dw.PureDP(1.0)], ids=lambda budget: budget.kind)


@pytest.mark.usefixtures("one_engine", "seeded_noise")
@BUDGETS
def test_noise_of_releases_is_as_large_as_forecast(budget: Budget) -> None:
    plan = plan_of("crossed-counters", (1, 2), budget, dw.ItemAddRemove())
    scaled = np.array([np.divide(*errors_of(plan)) for _ in range(12)])
    # Twelve releases of 600 correlated numbers: their mean square has a spread of some 5 %.
    assert 0.75 < (scaled**2).mean() < 1.3
    assert abs(scaled.mean()) < 0.25


@pytest.mark.quick(1)
@pytest.mark.usefixtures("one_engine", "seeded_noise")
@BUDGETS
def test_errors_measured_again_are_the_noise_that_was_drawn(budget: Budget) -> None:
    """300 independent numbers in each release."""
    plan = plan_of("gap-filter", (1,), budget, dw.ItemAddRemove())
    measurement = plan.allotments[0].measurement
    assert isinstance(measurement.design.shape, Gaps)
    first, last = np.triu_indices(24)
    squares = np.zeros((300, 24, 24), dtype=np.int64)
    squares[np.arange(300), first, last] = 1
    matrix = np.array([measurement.design.shape.encode_windows(square) for square in squares], dtype=np.float64).T
    noise = np.concatenate([matrix @ errors_of(plan)[0] for _ in range(12)]) / measurement.scale
    # Laplace noise of scale 1 has the variance 2.
    assert abs((noise**2).mean() / (1 if measurement.law == GAUSSIAN else 2) - 1) < 0.2
    assert abs(noise.mean()) < 0.15
