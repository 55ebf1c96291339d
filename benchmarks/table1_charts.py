"""The charts of `table1.py`: measured errors as points, growth laws as lines, on logarithmic axes."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from log_axes import dot, powers

from dpwindows.ask.privacy import ApproxDP, EventLevel
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.report.charts import COLOURS, Chart, path, picture
from dpwindows.strategies.search.limits import limit
from dpwindows.strategies.search.noise_scales import unit_scale

_BUDGET = ApproxDP(1.0, 1e-6)
_AXES = {"T": "steps T", "W": "window length W", "k": "k"}
# What was measured, and how its dots are filled.
_DATA = {"hard": False, "flights": True}


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
        (directory / f"{name}.svg").write_text(picture(drawn, columns=2), encoding="utf-8")


def _shown(panel: Panel, row: dict[str, Any]) -> bool:
    return row["cell"] in panel.cells and row["parameter"] == panel.parameter and row["law"] not in ("no T", "sqrt(W)")


def _label(row: dict[str, Any]) -> str:
    budget = row["cell"].rsplit(", ", 1)[1]
    epsilon = row["points"][0]["setting"]["epsilon"]
    budget += "" if epsilon == 1 else f", epsilon = {epsilon:g}"
    return f"{row['who']}, {budget}: {row['law']}"


def _panel(panel: Panel, rows: list[dict[str, Any]]) -> Chart:
    laws = {}
    for row in rows:
        # The law's constant is that of the last forecast.
        constant = row["points"][-1]["forecast"] / row["points"][-1]["law"]
        laws[_label(row)] = [constant * point["law"] for point in row["points"]]
    return _lines(panel.title, panel.parameter, laws, {_label(row): row["points"] for row in rows})


def _lines(
    title: str, parameter: str, lines: dict[str, list[float]], measured: dict[str, list[dict[str, Any]]]
) -> Chart:
    """Lines over the places of what was measured, and what was measured as dots; each name has a colour."""
    places = next(iter(measured.values()))
    names = dict(zip(dict.fromkeys((*lines, *measured)), COLOURS, strict=False))
    dots = [
        (name, point["value"], point[data], data) for name, of in measured.items() for point in of for data in _DATA
    ]
    x = powers(point["value"] for of in measured.values() for point in of)
    y = powers([*(error for line in lines.values() for error in line), *(error for _, _, error, _ in dots)])
    curves = ""
    for name, line in lines.items():
        values = [point["value"] for point in measured.get(name, places)]
        curves += (
            f'<path d="{path(x.share(values), 1 - y.share(np.array(line)))}" class="line" stroke="{names[name]}"/>'
        )
    placed = (dot(x.share(at), 1 - y.share(error), names[name], hollow=_DATA[data]) for name, at, error, data in dots)
    legend = tuple((colour, name) for name, colour in names.items())
    said = "Error in counts, rms; dots: measured on the hard instance (full) and on flights (hollow); lines: the laws."
    return Chart(title, x, y, _AXES[parameter], curves, "".join(placed), legend, (said,))


def _saturated(length: int) -> float:
    """The closed form that `docs/growth.md` proves for every k."""
    blocks = [(length + shift - 1, shift) for shift in range(1, length + 1)]
    return min((sqrt(block) + sqrt(-(-block // shift))) / 2 for block, shift in blocks)


def _saturation(rows: list[dict[str, Any]]) -> Chart:
    """Rolling counts at event level as k grows up to the window's length, between what is proved about them."""
    (row,) = (row for row in rows if row["law"] == "sqrt(W)")
    length, steps = row["points"][0]["setting"]["length"], row["points"][0]["setting"]["steps"]
    unit = unit_scale(_BUDGET, GAUSSIAN)
    limits = [limit(Rolling(length), point["value"], EventLevel(), steps) or 0.0 for point in row["points"]]
    levels = {
        "noise on every answer: sqrt(W)": [sqrt(length)] * len(limits),
        "proved for every k: sqrt(W)/2 + ...": [_saturated(length)] * len(limits),
        "limit of Gaussian noise": limits,
    }
    lines = {name: [unit * value for value in values] for name, values in levels.items()}
    title = f"rolling:{length}, event level: the error saturates"
    return _lines(title, "k", lines, {"ours, approximate": row["points"]})
