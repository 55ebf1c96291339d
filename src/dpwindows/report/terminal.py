"""A release at a glance in the terminal: one line and one sparkline for each series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.table import Table
from rich.text import Text

from dpwindows.errors import percent
from dpwindows.report.clock import Clock
from dpwindows.report.series import families, group_columns
from dpwindows.report.words import confidence_of, in_words

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 15  # the table fits a terminal of 80 columns
_BESIDE_GROUPS = 8
_GROUP = 12  # a longer name of a group's column may be broken


def preview(table: pa.Table, metadata: Mapping[str, Any]) -> Table:
    """A table to print with rich: for each series the course of its estimates, the last one and its interval.

    Groups are told by their values, `all` where they are not told apart.

    For `any` windows the course is over window length, among those that end last.
    """
    confidence = f"{percent(confidence_of(metadata), 6)}"
    clock = Clock.of(table, metadata)
    names = group_columns(table)
    wide = _BESIDE_GROUPS if names else _WIDTH
    shown = Table(box=None, pad_edge=False, collapse_padding=bool(names), header_style="bold")
    shown.add_column("window", no_wrap=True)
    for name in names:
        shown.add_column(Text(name), overflow="fold", min_width=min(len(name), _GROUP))
    shown.add_column("seen", no_wrap=True)
    shown.add_column("course", no_wrap=True)
    shown.add_column(clock.until, no_wrap=True)
    shown.add_column("estimate", justify="right", no_wrap=True)
    shown.add_column(f"{confidence} interval", justify="right", no_wrap=True)
    for family in families(table):
        for series in family.series:
            course = series.last_end() if family.name == "any" else series
            last = in_words(course, -1, clock)
            shown.add_row(
                Text(family.window),
                *(Text(value) for _, value in series.groups),
                Text(series.kind.replace("_", " ") + ("" if series.k is None else f" {series.k}")),
                Text(sparkline(course.numbers("estimate"), wide), style="cyan"),
                Text(last.end),
                Text(last.estimate, style="bold"),
                Text(last.interval),
            )
    return shown


def sparkline(values: npt.NDArray[np.float64], width: int) -> str:
    """A course as at most `width` bars, lowest to highest over its own range; gaps where no value is finite."""
    parts = np.array_split(values, min(width, len(values))) if len(values) else []
    means = [float(part[np.isfinite(part)].mean()) if np.isfinite(part).any() else None for part in parts]
    known = [mean for mean in means if mean is not None]
    low, spread = (min(known), max(known) - min(known)) if known else (0.0, 0.0)
    scale = (len(_BARS) - 1) / spread if spread > 0 else 0.0
    return "".join(" " if mean is None else _BARS[round((mean - low) * scale)] for mean in means)
