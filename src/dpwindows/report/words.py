"""Numbers, windows and times of a release in words, the same on the page, in a notebook and in the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpwindows.errors import percent
from dpwindows.report.clock import Clock
from dpwindows.report.html import grid
from dpwindows.report.pack import decimals
from dpwindows.report.series import Series

# What a reader should quote of a window, the same on the page and in the statement.
TO_QUOTE = (
    "The number to quote for a window is its estimate, with the interval; where several were released for the same "
    "window, the one of least error, which 'dpwindows count' returns."
)
# What is counted, in the plural, where a release does not say it.
NOUN = "items"
_LONGEST_VALUE = 60
_SUPERSCRIPTS = str.maketrans("-0123456789", "\N{SUPERSCRIPT MINUS}⁰¹²³⁴⁵⁶⁷⁸⁹")


def confidence_of(metadata: Mapping[str, Any]) -> float:
    """The confidence of the intervals."""
    return float(metadata["confidence"])


def number(value: float | None, std_error: float | None) -> str:
    """An estimate with no more digits than its error leaves meaning."""
    if value is None or not math.isfinite(value):
        return "unknown"
    digits = decimals(std_error)
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def figures_of(value: float | None) -> str:
    """An error with three figures; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def each(forecast: Mapping[str, Any]) -> str:
    """The groups that a forecast is for, as the end of a name: `, each origin`; empty for totals and without groups."""
    names = forecast.get("by")
    return f", each {' x '.join(map(str, names))}" if names else ""


def plain(value: object) -> str:
    """A metadata value as short text; very small and very large numbers as powers of ten."""
    if value is None:
        return ""
    if isinstance(value, float):
        mantissa, _, power = f"{value:.6g}".partition("e")
        if not power:
            return mantissa
        factor = "" if mantissa == "1" else f"{mantissa} \N{MULTIPLICATION SIGN} "
        return f"{factor}10{str(int(power)).translate(_SUPERSCRIPTS)}"
    text = str(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True)
class Shown:
    """One number of a release with what belongs to it, as text."""

    start: str
    end: str
    estimate: str
    error: str
    interval: str


def in_words(series: Series, row: int, clock: Clock) -> Shown:
    """A row of a series, `-1` for the last, as text."""
    there = series.rows.slice(row % series.rows.num_rows, 1)
    estimate, error, low, high = (float(there[name][0].as_py()) for name in ("estimate", "std_error", "lower", "upper"))
    return Shown(
        start=clock.starts(clock.wall(there["start"]))[0],
        end=clock.ends(clock.wall(there["end"]))[0],
        estimate=number(estimate, error),
        error=figures_of(error),
        interval=f"{number(low, error)} to {number(high, error)}",
    )


def when(shown: Shown, clock: Clock) -> str:
    """A window by its start and end: `From 2013-01-01 through 2013-01-28`."""
    return f"From {shown.start} {clock.until} {shown.end}"


def measure_text(row: Mapping[str, Any]) -> str:
    """A measure, such as `at least 3`, or `occurrences`."""
    return str(row["measure"]).replace("_", " ") + ("" if row["k"] is None else f" {row['k']}")


def forecast_grid(entries: Sequence[Mapping[str, Any]], confidence: float | None = None) -> str:
    """The entries of a forecast as an HTML table; `confidence` of the intervals, where it is known.

    With `released` in them, the standard error that each came to have, it is shown too.
    """
    interval = f"{percent(confidence, 6)} interval \u00b1" if confidence else "Interval \u00b1"
    errors = {"Standard error": "rms", "In this release": "released", interval: "half_width", "Largest": "max"}
    errors |= {"Times the known limit": "ratio_to_limit"}
    shown = {name: key for name, key in errors.items() if all(key in row for row in entries)}
    rows = [
        [
            str(row["window"]),
            measure_text(row) + each(row),
            *(figures_of(row[key]) for key in shown.values()),
            str(row["strategy"]),
        ]
        for row in entries
    ]
    return grid(["Window", "Seen", *shown, "Strategy"], rows, numeric=range(2, len(shown) + 2), label="Forecast")
