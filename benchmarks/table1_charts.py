"""The charts of `table1.py`: measured errors as points, growth laws as lines, on logarithmic axes."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import altair as alt

from dpwindows.ask.privacy import ApproxDP, EventLevel
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.strategies.search.limits import limit
from dpwindows.strategies.search.noise_scales import unit_scale

_BUDGET = ApproxDP(1.0, 1e-6)
_AXES = {"T": "steps T", "W": "window length W", "k": "k"}
_DATA = {"hard": "hard instance", "flights": "flights"}
_SIZE = {"width": 300, "height": 260}


@dataclass(frozen=True)
class Panel:
    """One pair of axes: the series of some cells over one parameter."""

    title: str
    parameter: str
    cells: tuple[str, ...]
    laws: tuple[str, ...] = ()


CHARTS = {
    "table1-event": (
        Panel("rolling, event level", "W", ("rolling, event, pure", "rolling, event, approximate")),
        Panel("any windows, event level", "T", ("any, event, pure", "any, event, approximate")),
    ),
    "table1-item": (
        Panel("rolling, item level", "T", ("rolling, item, pure", "rolling, item, approximate")),
        Panel("rolling, item level", "W", ("rolling, item, pure", "rolling, item, approximate")),
        Panel("any windows, item level", "T", ("any, item, pure", "any, item, approximate")),
        Panel(
            "any, item level, one event a step",
            "T",
            ("any, item, singleton, pure", "any, item, singleton, approximate"),
        ),
    ),
    "table1-k": (
        Panel("rolling, event level", "k", ("rolling, event, pure", "rolling, event, approximate")),
        Panel("any windows, event level", "k", ("any, event, pure", "any, event, approximate")),
        Panel("rolling, item level", "k", ("rolling, item, approximate",)),
        Panel("any windows, item level", "k", ("any, item, pure", "any, item, approximate")),
    ),
}


def draw(rows: list[dict[str, Any]], directory: Path) -> None:
    """Write every chart as SVG."""
    for name, panels in CHARTS.items():
        drawn = [_panel(panel, [row for row in rows if _shown(panel, row)]) for panel in panels]
        if name == "table1-k":
            drawn.append(_saturation(rows))
        pairs = [alt.hconcat(*drawn[i : i + 2]).resolve_scale(color="independent") for i in range(0, len(drawn), 2)]
        grid = alt.vconcat(*pairs).resolve_scale(color="independent")
        grid = grid.configure_view(stroke="#ddd").configure_axis(gridOpacity=0.4, tickCount=6)
        grid.save(str(directory / f"{name}.svg"))


def _shown(panel: Panel, row: dict[str, Any]) -> bool:
    return row["cell"] in panel.cells and row["parameter"] == panel.parameter and row["law"] not in ("no T", "sqrt(W)")


def _label(row: dict[str, Any]) -> str:
    budget = row["cell"].rsplit(", ", 1)[1]
    epsilon = row["points"][0]["setting"]["epsilon"]
    budget += "" if epsilon == 1 else f", epsilon = {epsilon:g}"
    return f"{row['who']}, {budget}: {row['law']}"


def _panel(panel: Panel, rows: list[dict[str, Any]]) -> alt.LayerChart:
    measured, laws = [], []
    for row in rows:
        # The law's constant is that of the last forecast.
        constant = row["points"][-1]["forecast"] / row["points"][-1]["law"]
        for point in row["points"]:
            base = {"x": point["value"], "series": _label(row)}
            measured += [{**base, "error": point[data], "data": name} for data, name in _DATA.items()]
            laws.append({**base, "error": constant * point["law"]})
    return _layers(panel.title, panel.parameter, measured, laws)


def _layers(title: str, parameter: str, measured: list[dict[str, Any]], lines: list[dict[str, Any]]) -> alt.LayerChart:
    axes = {
        "x": alt.X("x:Q", scale=alt.Scale(type="log", nice=False, padding=12), title=_AXES[parameter]),
        "y": alt.Y("error:Q", scale=alt.Scale(type="log"), title="error (counts, rms)"),
        "color": alt.Color(
            "series:N", title=None, legend=alt.Legend(orient="bottom", columns=1, labelLimit=300, symbolType="stroke")
        ),
    }
    shape = alt.Shape(
        "data:N", title=None, legend=alt.Legend(orient="bottom"), scale=alt.Scale(range=["circle", "cross"])
    )
    points = alt.Chart(alt.Data(values=measured)).mark_point(size=45, opacity=0.8).encode(**axes, shape=shape)
    curves = alt.Chart(alt.Data(values=lines)).mark_line(strokeWidth=1.2).encode(**axes)
    return alt.layer(curves, points).properties(title=title, **_SIZE)


def _saturated(length: int) -> float:
    """The closed form that `docs/growth.md` proves for every k."""
    blocks = [(length + shift - 1, shift) for shift in range(1, length + 1)]
    return min((sqrt(block) + sqrt(-(-block // shift))) / 2 for block, shift in blocks)


def _saturation(rows: list[dict[str, Any]]) -> alt.LayerChart:
    """Rolling counts at event level as k grows up to the window's length, between what is proved about them."""
    (row,) = (row for row in rows if row["law"] == "sqrt(W)")
    length, steps = row["points"][0]["setting"]["length"], row["points"][0]["setting"]["steps"]
    unit = unit_scale(_BUDGET, GAUSSIAN)
    lines = []
    for point in row["points"]:
        k = point["value"]
        found = limit(Rolling(length), k, EventLevel(), steps)
        levels = {
            "noise on every answer: sqrt(W)": sqrt(length),
            "proved for every k: sqrt(W)/2 + ...": _saturated(length),
            "limit of Gaussian noise": found or 0.0,
        }
        lines += [{"x": k, "series": name, "error": unit * value} for name, value in levels.items()]
    measured = [
        {"x": point["value"], "series": "ours, approximate", "error": point[data], "data": name}
        for point in row["points"]
        for data, name in _DATA.items()
    ]
    return _layers(f"rolling:{length}, event level: the error saturates", "k", measured, lines)
