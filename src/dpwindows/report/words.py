"""Numbers, windows and times of a release in words, the same on the page, in a notebook and in the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpwindows.report.clock import Clock
from dpwindows.report.pack import decimals
from dpwindows.report.series import Row, Series

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


def place_of(series: Series, row: int, clock: Clock) -> Row:
    """The start `a` and the end `b` of one window of a series, as text."""
    there = series.rows.slice(row, 1)
    return {"a": clock.starts(clock.wall(there["start"]))[0], "b": clock.ends(clock.wall(there["end"]))[0]}


def when(row: Row, clock: Clock, first: str = "From") -> str:
    """A window by its start and end: `From 2013-01-01 through 2013-01-28`."""
    return f"{first} {row['a']} {clock.until} {row['b']}"
