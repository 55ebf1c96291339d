"""The forecast in a terminal: names stay whole in 80 columns."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

import dpwindows as dw
from dpwindows.plan.forecast_table import show_forecast


@pytest.mark.parametrize("width", [80, 111, 140])
def test_names_are_not_broken(width: int) -> None:
    timeline = dw.Timeline("2026-01-01", "2026-07-01", "1d")
    windows = [dw.Tumbling("month"), dw.Rolling(7)]
    plan = dw.Plan(windows, timeline=timeline, unit=dw.EventLevel(), budget=dw.ApproxDP(1.0, 1e-6))
    shown = StringIO()
    show_forecast(plan, Console(file=shown, width=width))
    for entry in plan.forecast():
        (line,) = (line for line in shown.getvalue().splitlines() if line.startswith(f"{entry.window} "))
        assert entry.strategy in line.split()
        assert f"{entry.rms:,.4g}" in line.split()


@pytest.mark.parametrize("expect", [None, 5000.0])
def test_groups_leave_names_whole(expect: float | None) -> None:
    timeline = dw.Timeline("2026-01-01", "2026-03-01", "1d")
    plan = dw.Plan(
        [dw.Rolling(28), dw.Cumulative()],
        timeline=timeline,
        unit=dw.EventLevel(),
        budget=dw.PureDP(1.0),
        by={"country": ["DE", "FR"], "platform": ["app", "web"]},
        totals=0.2,
    )
    shown = StringIO()
    show_forecast(plan, Console(file=shown, width=80), expect)
    rows = shown.getvalue().partition("Next best")[0]
    for entry in plan.forecast():
        assert entry.strategy in rows.split()
        assert f"{entry.rms:,.4g}" in rows.split()
    assert rows.count("\nx platform ") == 2
    assert "x limit" in rows


def test_confidence_and_relative_errors_are_not_rounded_to_all_or_nothing() -> None:
    timeline = dw.Timeline.of_steps(20)
    plan = dw.Plan(dw.Rolling(3), timeline=timeline, unit=dw.EventLevel(), budget=dw.PureDP(1.0), confidence=0.9975)
    shown = StringIO()
    show_forecast(plan, Console(file=shown, width=140), 1e6)
    assert "99.75% interval" in shown.getvalue()
    assert f" {100 * plan.forecast()[0].rms / 1e6:.3g}% " in shown.getvalue()


def test_one_step_is_told_as_one() -> None:
    plan = dw.Plan(dw.Rolling(3), timeline=dw.Timeline.of_steps(1), unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    assert plan.notes[0] == "rolling:3 is at least as long as the 1 step of the range, so it means cumulative here"
    assert str(plan.workload).startswith("1 number from 1 noise value, about")
