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
