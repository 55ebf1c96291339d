"""The charts of a release for a notebook, each with the words that belong to it.

A figure knows its title, what it says in one sentence, what was left out of it and how to draw itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from dpwindows.errors import percent
from dpwindows.report import charts
from dpwindows.report.clock import Clock
from dpwindows.report.series import Family, Row, Series, cells, families, records
from dpwindows.report.words import confidence_of, number, when

# Together these keep the charts of any release under about 5 MB: a row drawn costs some 150 to 200 bytes.
_LINE_ROWS = 9_000
_LINE_ROWS_OF_A_SERIES = 1_500
_HEAT_CELLS = 9_000
_HEAT_CELLS_OF_A_MAP = 5_000
_FIGURES = 60
_SERIES_OF_A_CHART = len(charts.SERIES_COLOURS)


@dataclass(frozen=True)
class Figure:
    """One chart and what is said about it.

    Attributes:
        window: canonical text of the family shown.
        title: what is shown, as a heading.
        finding: what it says, in a sentence or two.
        notes: how to read it, and what was left out of it.
        draw: makes the Altair chart, with a name that tells its selections from those of others beside it.
    """

    window: str
    title: str
    finding: str
    notes: tuple[str, ...]
    draw: Callable[[str], Any]


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
    if family.name == "rolling" and not all(drawn[0].rows["complete"].to_pylist()):
        notes.append(f"Dashed: windows cut at the first step, shorter than {clock.length(family.size or 1)}.")
    return Figure(
        window=family.window,
        title=f"{_counted(group)} {family.in_windows(clock)}",
        finding=f"{when(last[0], clock)}: {_values(group, last, confidence)}",
        notes=tuple(note for note in notes if note),
        draw=partial(charts.over_time, series=drawn, clock=clock, confidence=confidence),
    )


def _heat_map(family: Family, series: Series, clock: Clock, confidence: float, budget: _Budget) -> Figure:
    drawn = cells(series, clock, budget.cells)
    thinned = [
        f"every {_ordinal(every)} {what}"
        for what, every in (("end", drawn.every_end), ("length", drawn.every_length))
        if every > 1
    ]
    notes = ["Each cell is one window: across, when it ends; upwards, how long it is; the colour is the estimate."]
    if thinned:
        notes.append(f"Drawn: {' and '.join(thinned)}; all {series.rows.num_rows:,} windows are in the released file.")
    last = next(records(series.last_end().thinned(1), clock))
    return Figure(
        window=family.window,
        title=f"{_counted((series,))} {family.in_windows(clock)}",
        finding=f"The longest, {when(last, clock, first='from')}: {_values((series,), [last], confidence)}",
        notes=tuple(notes),
        draw=lambda name: charts.heat_map(drawn.rows, clock, confidence),
    )


def _over_length(group: tuple[Series, ...], clock: Clock, confidence: float, budget: _Budget) -> Figure:
    drawn = tuple(series.last_end().thinned(budget.line) for series in group)
    last = [_last(series, clock) for series in drawn]
    note = _thinned_note(drawn)
    return Figure(
        window=group[0].window,
        title=f"{_counted(group)} by window length, up to {last[0]['b']}",
        finding=f"In the longest window, {when(last[0], clock, first='from')}: {_values(group, last, confidence)}",
        notes=(note,) if note else (),
        draw=partial(charts.over_length, series=drawn, clock=clock, confidence=confidence),
    )


def _counted(group: tuple[Series, ...]) -> str:
    if len(group) > 1:
        return "Items seen"
    return "Distinct items" if group[0].distinct else f"Items seen {group[0].label}"


def _interval(row: Row, confidence: float) -> str:
    return f"{percent(confidence, 6)} interval {number(row['lo'], row['e'])} to {number(row['hi'], row['e'])}"


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


def _ordinal(count: int) -> str:
    suffix = "th" if count % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count:,}{suffix}"
