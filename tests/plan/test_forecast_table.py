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
