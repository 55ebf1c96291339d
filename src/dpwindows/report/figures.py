"""What a report shows of a release: each figure with the words that belong to it.

A figure knows its title, what it says in one sentence, what was left out of it and how to draw itself, so that the
page and the notebook show the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from dpwindows.report import charts
from dpwindows.report.clock import Clock
from dpwindows.report.series import Family, Row, Series, cells, families, records

# Together these keep a page of any release under about 5 MB: a row drawn costs it some 150 to 200 bytes.
_LINE_ROWS = 9_000
_LINE_ROWS_OF_A_SERIES = 1_500
_HEAT_CELLS = 9_000
_HEAT_CELLS_OF_A_MAP = 5_000
_FIGURES = 60
_SERIES_OF_A_CHART = len(charts.SERIES_COLOURS)
_TABLE_ROWS = 14


@dataclass(frozen=True)
class Figure:
    """One chart and what is said about it.

    Attributes:
        window: canonical text of the family shown.
        title: what is shown, as a heading.
        finding: what it says, in a sentence or two.
        notes: how to read it, and what was left out of it.
        labels: the series drawn, in the order of their colours; empty where there is nothing to tell apart.
        rows: some of the numbers, for those who do not see the chart (keys as in `series.records`).
        draw: makes the Altair chart for a style.
    """

    window: str
    title: str
    finding: str
    notes: tuple[str, ...]
    labels: tuple[str, ...]
    rows: tuple[Row, ...]
    draw: Callable[[charts.Style], Any]


@dataclass(frozen=True)
class Figures:
    """The figures of a release; `left_out` says how many more there would have been."""

    shown: tuple[Figure, ...]
    left_out: int


def figures(table: pa.Table, metadata: Mapping[str, Any]) -> Figures:
    """The figures of a release in the order its families were asked; none for a release without rows."""
    clock = Clock.of(table, metadata)
    found = families(table)
    confidence = confidence_of(metadata)
    lines = sum(len(family.series) for family in found)
    maps = sum(len(family.series) for family in found if family.name == "any")
    budget = _Budget(
        line=max(20, min(_LINE_ROWS_OF_A_SERIES, _LINE_ROWS // max(1, lines))),
        cells=max(200, min(_HEAT_CELLS_OF_A_MAP, _HEAT_CELLS // max(1, maps))),
    )
    made = [figure for family in found for figure in _of_family(family, clock, confidence, budget)]
    return Figures(tuple(made[:_FIGURES]), max(0, len(made) - _FIGURES))


def confidence_of(metadata: Mapping[str, Any]) -> float:
    """The confidence of the intervals, 0.95 where the metadata does not say."""
    return float(metadata.get("confidence") or 0.95)


def number(value: float | None, std_error: float | None) -> str:
    """An estimate with no more digits than its error leaves meaning."""
    if value is None:
        return "unknown"
    digits = 0 if (std_error or 0.0) >= 2 else 1
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class _Budget:
    line: int
    cells: int


def _of_family(family: Family, clock: Clock, confidence: float, budget: _Budget) -> Iterator[Figure]:
    groups = [family.series[at : at + _SERIES_OF_A_CHART] for at in range(0, len(family.series), _SERIES_OF_A_CHART)]
    if family.name != "any":
        for group in groups:
            yield _over_time(family, group, clock, confidence, budget)
        return
    for series in family.series:
        yield _heat_map(family, series, clock, confidence, budget)
    for group in groups:
        yield _over_length(group, clock, confidence, budget)


def _over_time(family: Family, group: tuple[Series, ...], clock: Clock, confidence: float, budget: _Budget) -> Figure:
    drawn = tuple(series.thinned(budget.line) for series in group)
    last = [_last(series, clock) for series in group]
    notes = [_thinned_note(drawn)]
    if any(row["cut"] for row in _some(drawn[0], clock)):
        notes.append(f"Dashed: windows cut at the first step, shorter than {clock.length(family.size or 1)}.")
    return Figure(
        window=family.window,
        title=f"{_counted(group)} {_in_window(family, group, clock)}",
        finding=f"{_when(last[0], clock)}: {_values(group, last, confidence)}",
        notes=tuple(note for note in notes if note),
        labels=tuple(series.label for series in group) if len(group) > 1 else (),
        rows=tuple(row for series in drawn for row in _some(series, clock)),
        draw=partial(charts.over_time, drawn, clock, confidence),
    )


def _heat_map(family: Family, series: Series, clock: Clock, confidence: float, budget: _Budget) -> Figure:
    drawn = cells(series, clock, budget.cells)
    longest = f" of up to {clock.length(family.size)}" if family.size else ""
    thinned = [
        f"every {_ordinal(every)} {what}"
        for what, every in (("end", drawn.every_end), ("length", drawn.every_length))
        if every > 1
    ]
    notes = ["Each cell is one window: across, when it ends; upwards, how long it is; the colour is the estimate."]
    if thinned:
        notes.append(f"Drawn: {' and '.join(thinned)}; all {series.rows.num_rows:,} windows are in the released file.")
    most = max((row for row in drawn.rows if row["y"] is not None), key=lambda row: float(row["y"]), default=None)
    return Figure(
        window=family.window,
        title=f"{_counted((series,))} in every window{longest}",
        finding=f"The largest drawn: {_sentence(most, clock, confidence)}" if most else "",
        notes=tuple(notes),
        labels=(),
        rows=tuple(_evenly(drawn.rows)),
        draw=partial(charts.heat_map, drawn.rows, clock, confidence),
    )


def _over_length(group: tuple[Series, ...], clock: Clock, confidence: float, budget: _Budget) -> Figure:
    drawn = tuple(series.last_end().thinned(budget.line) for series in group)
    last = [_last(series, clock) for series in drawn]
    note = _thinned_note(drawn)
    return Figure(
        window=group[0].window,
        title=f"{_counted(group)} by window length, up to {last[0]['b']}",
        finding=f"In the longest window, {_when(last[0], clock, first='from')}: {_values(group, last, confidence)}",
        notes=(note,) if note else (),
        labels=tuple(series.label for series in group) if len(group) > 1 else (),
        rows=tuple(row for series in drawn for row in _some(series, clock)),
        draw=partial(charts.over_length, drawn, clock, confidence),
    )


def _counted(group: tuple[Series, ...]) -> str:
    if len(group) > 1:
        return "Items seen"
    return "Distinct items" if group[0].distinct else f"Items seen {group[0].label}"


def _in_window(family: Family, group: tuple[Series, ...], clock: Clock) -> str:
    if family.name == "rolling" and family.size:
        return (
            f"in the last {clock.length(family.size)}"
            if family.size > 1 or clock.count > 1
            else f"in each {clock.unit or 'step'}"
        )
    return f"since {_last(group[0], clock)['a']}"


def _when(row: Row, clock: Clock, first: str = "From") -> str:
    return f"{first} {row['a']} {clock.until} {row['b']}"


def _sentence(row: Row, clock: Clock, confidence: float) -> str:
    return f"{number(row['y'], row['e'])} ({_interval(row, confidence)}) {_when(row, clock, first='from')}."


def _interval(row: Row, confidence: float) -> str:
    return f"{100 * confidence:g}% interval {number(row['lo'], row['e'])} to {number(row['hi'], row['e'])}"


def _values(group: tuple[Series, ...], last: list[Row], confidence: float) -> str:
    said = (
        f"{number(row['y'], row['e'])} {'distinct items' if series.distinct else f'seen {series.label}'}"
        f" ({_interval(row, confidence)})"
        for series, row in zip(group, last, strict=True)
    )
    return "; ".join(said) + "."


def _thinned_note(drawn: tuple[Series, ...]) -> str:
    stride = max(series.stride for series in drawn)
    return f"Drawn: every {_ordinal(stride)} window; all of them are in the released file." if stride > 1 else ""


def _last(series: Series, clock: Clock) -> Row:
    return next(records(series.thinned(1), clock))


def _some(series: Series, clock: Clock) -> list[Row]:
    """A few rows of a series: the first, the last and some between."""
    return _evenly(list(records(series, clock)))


def _evenly(rows: list[Row]) -> list[Row]:
    if len(rows) <= _TABLE_ROWS:
        return rows
    return [rows[round(at * (len(rows) - 1) / (_TABLE_ROWS - 1))] for at in range(_TABLE_ROWS)]


def _ordinal(count: int) -> str:
    suffix = "th" if count % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count:,}{suffix}"
