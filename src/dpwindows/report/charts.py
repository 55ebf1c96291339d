"""Charts of a release, as Altair (Vega-Lite) charts.

Three kinds: a line with its interval band for windows that follow one another, a heat map over (end, length) for the
windows of an `any` family, and a line over window length for those of them that end last. Rows go in as plain values,
so Altair's limit on rows does not apply; how many are drawn is decided before (`series`).
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from itertools import starmap
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from dpwindows.errors import InputError, percent
from dpwindows.report.clock import Clock
from dpwindows.report.series import Row, Series, records

if TYPE_CHECKING:
    import altair as alt

# Told apart by people with any of the common colour vision deficiencies, and by lightness where that fails.
SERIES_COLOURS = ("#0072b2", "#d55e00", "#00805c", "#b4538a", "#9a6a00", "#5b6770")
# Lightness falls evenly from few to many.
HEAT_COLOURS = ("#d7f8e8", "#99dfd1", "#54c4c5", "#00a4bd", "#0082b0", "#005e9a", "#163c79", "#1a1d58")

# Vega-Lite configuration of every chart: level grid lines only, and quiet titles.
LOOK: Mapping[str, Mapping[str, Any]] = {
    "view": {"stroke": "transparent"},
    "axis": {"titleFontWeight": "normal", "gridOpacity": 0.7, "labelOverlap": True},
    "axisX": {"grid": False},
    "axisY": {"domain": False, "ticks": False, "tickCount": 5},
    "legend": {"titleFontWeight": "normal"},
}

_FEW = 32
_WIDTH = 640


def require(module: str) -> ModuleType:
    """Import an optional library that reports need.

    Raises:
        InputError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(f"charts need {module}, which is not installed: pip install 'dpwindows[report]'") from error


def over_time(name: str, series: Sequence[Series], clock: Clock, confidence: float) -> alt.LayerChart:
    """Estimates with their intervals over the ends of the windows; windows cut by the range dashed and light."""
    altair = require("altair")
    rows = [row for one in series for row in _with_bridge(list(records(one, clock)))]
    positions = [row["x"] for row in rows]
    if clock.unit is None and clock.zone is None:
        x = altair.X("x:Q").scale(zero=False, nice=False).axis(format=",d", tickMinStep=1)
    else:
        x = altair.X("x:T").scale(type="utc").axis(tickCount="day" if clock.day_ticks(positions) else altair.Undefined)
    tooltip = _tooltip(clock, confidence, rows, series=len(series) > 1)
    drawn: alt.LayerChart = _band_chart(name, rows, x.title(clock.axis_title), tooltip, [s.label for s in series])
    return drawn


def over_length(name: str, series: Sequence[Series], clock: Clock, confidence: float) -> alt.LayerChart:
    """Estimates with their intervals over window length, for windows with one common end."""
    altair = require("altair")
    rows = [row for one in series for row in records(one, clock)]
    x = altair.X("n:Q").scale(zero=False, nice=False).axis(format=",d", tickMinStep=1)
    tooltip = _tooltip(clock, confidence, rows, series=len(series) > 1)
    x = x.title(f"window length ({clock.steps})")
    drawn: alt.LayerChart = _band_chart(name, rows, x, tooltip, [one.label for one in series])
    return drawn


def heat_map(rows: list[Row], clock: Clock, confidence: float) -> alt.Chart:
    """The cells of an `any` family (see `series.cells`): end across, length upwards, the count as colour."""
    altair = require("altair")
    estimates = [row["y"] for row in rows if row["y"] is not None]
    breaks = _nice_breaks(min(estimates, default=0.0), max(estimates, default=0.0), len(HEAT_COLOURS))
    picks = np.linspace(0, len(HEAT_COLOURS) - 1, len(breaks) + 1).round().astype(int)
    if clock.unit is None and clock.zone is None:
        x = altair.X("x0:Q").scale(zero=False, nice=False).axis(format=",d", tickMinStep=1)
    else:
        few = clock.day_ticks([row["x1"] for row in rows])
        x = altair.X("x0:T").scale(type="utc", nice=False).axis(tickCount="day" if few else altair.Undefined)
    longest = max((row["n1"] for row in rows), default=2)
    y = altair.Y("n:Q").scale(domain=[1, longest], nice=False)
    ticks = list(range(1, int(longest))) if longest <= 12 else altair.Undefined
    y = y.axis(**_above(f"window length ({clock.steps})"), format=",d", values=ticks)
    scale = altair.Scale(type="threshold", domain=breaks, range=[HEAT_COLOURS[pick] for pick in picks])
    colour = altair.Color("y:Q", scale=scale).legend(
        title="number of items", orient="top", gradientLength=260, gradientThickness=12, offset=26, format=",~f"
    )
    tooltip = _tooltip(clock, confidence, rows, series=False)
    chart = altair.Chart(altair.Data(values=rows)).mark_rect(tooltip=tooltip)
    chart = chart.encode(
        x=x.title(clock.axis_title),
        x2="x1",
        y=y,
        y2="n1",
        color=colour,
    )
    drawn: alt.Chart = chart.properties(width=_WIDTH, height=380)
    return drawn


def _band_chart(name: str, rows: list[Row], x: Any, tooltip: Any, labels: list[str]) -> Any:
    """Band (or error bars, where there are few points), line, and points that answer to the pointer."""
    altair = require("altair")
    few = sum("bridge" not in row for row in rows) <= _FEW * len(labels)
    legend = altair.Legend(title=None, orient="top", offset=22, symbolType="stroke") if len(labels) > 1 else None
    colour = altair.Color("s:N").scale(domain=labels, range=list(SERIES_COLOURS[: len(labels)])).legend(legend)
    y = altair.Y("y:Q").scale(domain=_from_zero(rows), nice=False).axis(**_above("number of items"), format=",~f")
    base = altair.Chart(altair.Data(values=rows)).encode(x=x, color=colour, detail=["cut:N", "late:N"])
    interval = base.mark_rule(strokeWidth=1.5) if few else base.mark_area(strokeWidth=0)
    strength = 0.7 if few else 0.28 if len(labels) < 4 else 0.14
    whole_or_cut = altair.Scale(domain=[False, True], range=[strength, strength / 2])
    opacity = altair.Opacity("cut:N", scale=whole_or_cut, legend=None)
    interval = interval.encode(y=altair.Y("lo:Q"), y2="hi", opacity=opacity)
    line = base.mark_line(strokeWidth=1.75, interpolate="linear").encode(
        y=y,
        strokeDash=altair.StrokeDash(
            "cut:N", scale=altair.Scale(domain=[False, True], range=[[1, 0], [4, 3]]), legend=None
        ),
        opacity=altair.Opacity("cut:N", scale=altair.Scale(domain=[False, True], range=[1, 0.65]), legend=None),
    )
    near = altair.selection_point(
        name=name, nearest=True, on="pointerover", clear="pointerout", empty=False, encodings=["x"]
    )
    points = base.transform_filter("!datum.bridge").mark_circle(size=42, tooltip=tooltip)
    points = points.encode(y=y, opacity=altair.value(1) if few else _shown_if(altair, near))
    layers = altair.layer(interval, line, points.add_params(near)).resolve_scale(opacity="independent")
    return layers.properties(width=_WIDTH, height=300)


def _from_zero(rows: list[Row]) -> list[float]:
    """The range of a count axis: from zero, or from the lowest bound where that is negative, to a round number."""
    low = min((row[key] for row in rows for key in ("y", "lo") if row[key] is not None), default=0.0)
    high = max((row[key] for row in rows for key in ("y", "hi") if row[key] is not None), default=0.0)
    low, high = min(low, 0.0), max(high, 0.0)
    step = _nice_step((high - low) or 1.0, 5)
    return [low, float(np.ceil(high / step) * step) or (step if low == 0.0 else 0.0)]


def _nice_step(spread: float, most: int) -> float:
    """The smallest round number that divides a range into at most `most` parts."""
    power = 10.0 ** np.floor(np.log10(spread / most))
    return float(next(power * nice for nice in (1, 2, 2.5, 5, 10, 20) if spread / (power * nice) <= most))


def _shown_if(altair: ModuleType, near: Any) -> Any:
    return altair.when(near).then(altair.value(1)).otherwise(altair.value(0))


def _with_bridge(rows: list[Row]) -> list[Row]:
    """Repeat the outermost whole windows beside the cut ones, so that the dashed lines meet the full one.

    Windows cut at the end of the range are `late`: a line of their own.
    """
    whole = [at for at, row in enumerate(rows) if not row["cut"]]
    if not whole:
        return rows
    first, last = whole[0], whole[-1]
    bridge = {"cut": True, "bridge": True}
    early = [rows[first] | bridge] if first else []
    late = [rows[last] | bridge, *rows[last + 1 :]] if rows[last + 1 :] else []
    return [*rows[:first], *early, *rows[first : last + 1], *(row | {"late": True} for row in late)]


def _tooltip(clock: Clock, confidence: float, rows: list[Row], *, series: bool) -> Any:
    """What a point says, as one expression.

    Vega-Lite 6.4 loses the text fields of its own tooltips where the nearest point answers: what is pointed at is then
    an invisible cell around the point, and the row is the datum of its datum. Hence the expression asks for either.
    """
    errors = [row["e"] for row in rows if row["e"] is not None]
    digits = ",.0f" if min(errors, default=0) >= 2 else ",.1f"
    interval = f"{percent(confidence, 6)} interval"
    shown: list[tuple[str, str, str | None]] = [("seen", "s", None)] if series else []
    shown += [("from", "a", None), (clock.until, "b", None), ("estimate", "y", digits), ("standard error", "e", ",.1f")]
    shown += [(f"{interval}, low", "lo", digits), (f"{interval}, high", "hi", digits)]
    shown += [("bias at most", "bias", ",.1f")] if any("bias" in row for row in rows) else []
    shown += [("made consistent", "fit", ",d")] if any("fit" in row for row in rows) else []
    return require("altair").ExprRef(f"{{{', '.join(starmap(_tooltip_line, shown))}}}")


def _tooltip_line(title: str, key: str, digits: str | None) -> str:
    value = f"(datum.datum || datum).{key}"
    text = f"format({value}, '{digits}')" if digits else value
    return f"{json.dumps(title)}: isValid({value}) ? {text} : 'unknown'"


def _above(title: str) -> dict[str, Any]:
    """Axis properties that set a title level, above the axis: read without turning the head, no width lost."""
    return {"title": title, "titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleX": 0, "titleY": -8}


def _nice_breaks(low: float, high: float, colours: int) -> list[float]:
    """At most `colours - 1` round numbers that cut the range of counts into equal steps."""
    step = _nice_step(max(high - min(low, 0.0), 1.0), colours)
    first = np.floor(min(low, 0.0) / step) * step + step
    breaks = [float(first + step * at) for at in range(colours - 1)]
    return [value for value in breaks if value < high] or [breaks[0]]
