"""A filter for each threshold: what it buys, what is drawn and read back, and the same in streams."""

from __future__ import annotations

import numpy as np
import pytest

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.privacy import ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import Measure, Query, Rolling
from dpwindows.kernel.designs import StepDesign
from dpwindows.kernel.families.chains_of_runs import SeriesByThreshold
from dpwindows.kernel.measure import measure
from dpwindows.plan.plan import Plan
from tests.single_item import TableAnswers, random_square
from tests.stream.streams import mechanism_of

BUDGET = dw.ApproxDP(1.0, 1e-6)


def planned(
    length: int, *measures: Measure, steps: int = 365, unit: Unit | None = None, strategy: str = "auto"
) -> Plan:
    query = Query(Rolling(length), measures)
    timeline = dw.Timeline.of_steps(steps)
    return Plan(query, timeline=timeline, unit=unit or ItemAddRemove(), budget=BUDGET, strategy=strategy)


def at_least(*thresholds: int) -> tuple[Measure, ...]:
    return tuple(Measure("at_least", k) for k in thresholds)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "other", "errors"),
    [(ItemAddRemove(), "offset-filter", (38.5, 45.8)), (ItemLevel(), "filter", (77.0, 91.5))],
    ids=("item-add-remove", "item"),
)
def test_a_month_of_at_least_1_and_3_errs_less_than_apart(unit: Unit, other: str, errors: tuple[float, float]) -> None:
    """At least 3 errs a little more than through one filter for both, and at least 1 far less."""
    found = planned(28, *at_least(1, 3), unit=unit)
    assert {row.strategy for row in found.forecast()} == {"threshold-filters"}
    alike = planned(28, *at_least(1, 3), unit=unit, strategy=other)
    assert all(row.rms <= most for row, most in zip(found.forecast(), errors, strict=True))
    rms = np.sqrt(np.mean([row.rms**2 for row in found.forecast()]))
    assert rms < 0.95 * alike.forecast()[0].rms


def test_a_step_more_than_a_period_is_no_cliff() -> None:
    errors = [
        planned(28, *at_least(1, 2), steps=steps, unit=ItemPerPeriod(120)).forecast()[0].rms for steps in (120, 121)
    ]
    assert errors[1] <= 1.005 * errors[0]


def test_exact_counts_err_by_both_of_their_thresholds() -> None:
    plan = planned(7, *at_least(1, 2), Measure("exactly", 1), steps=40, strategy="threshold-filters")
    (allotment,) = plan.allotments
    one, two, exact = (allotment.variance(asked) for asked in allotment.query.measures)
    assert not np.allclose(one, two, rtol=0.01)
    assert exact == pytest.approx(one + two)
    assert allotment.half_widths(Measure("exactly", 1), 0.95) == pytest.approx(1.959964 * np.sqrt(exact), rel=1e-6)


@pytest.mark.usefixtures("seeded_noise", "encoded_once")
def test_what_is_drawn_errs_as_is_forecast() -> None:
    """Through the kernel: within 6 %, where noise off by 30 % would be far outside."""
    plan = planned(3, *at_least(1, 2), steps=12, strategy="threshold-filters")
    (allotment,) = plan.allotments
    design, answers = allotment.measurement.design, TableAnswers(random_square(np.random.default_rng(3), 12, 900))
    assert isinstance(design.shape, SeriesByThreshold)
    exact = answers.rolling(1, 3)
    draws = [measure(plan.measurements, plan.budget, answers)[0] for _ in range(600)]
    for k in (1, 2):
        errors = np.array([reading.of(design.at(k)).decode(one[k].astype(np.float64)) for one in draws]) - exact
        ratio = float((errors**2).mean() / allotment.variance(Measure("at_least", k)).mean())
        assert 0.88 < ratio < 1.13
        assert abs(errors.mean()) < 5 * np.sqrt(errors.mean(axis=1).var() / len(errors))


def test_no_threshold_is_read_back_by_anothers_map() -> None:
    (allotment,) = planned(3, *at_least(1, 2), steps=12, strategy="threshold-filters").allotments
    design = allotment.measurement.design
    with pytest.raises(ValueError, match="ask the design `at` one"):
        reading.of(design)


def test_a_stream_is_restored() -> None:
    query = Query(Rolling(4), at_least(1, 3))
    streamed = dw.StreamPlan(query, unit=ItemLevel(), budget=BUDGET, horizon=16, strategy="threshold-filters")
    (design,) = streamed.designs
    (restored,) = (one.design for one in mechanism_of(streamed).measurements)
    assert isinstance(restored, StepDesign)
    assert restored.sensitivity == design.sensitivity
    answers = TableAnswers(random_square(np.random.default_rng(1), 16, 100))
    for k in (1, 3):
        assert (restored.forecast_over(16).encode(answers, k) == design.encode(answers, k)).all()
