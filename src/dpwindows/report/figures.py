"""The figures of a release: for each family of windows its charts, the words that belong to them, and their HTML.

Charts show released numbers, never means of them: where there are too many, evenly spaced ones. With each chart stands
where its series are among the packed numbers (`pack`), so that the script can say every one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from dpwindows.errors import percent
from dpwindows.report.charts import COLOURS, HEAT, Axis, Chart, Floats, Line, cells, counts, numbers, round_steps, times
from dpwindows.report.clock import Clock
from dpwindows.report.html import grid, unbroken_dates
from dpwindows.report.series import ALL, Family, Series
from dpwindows.report.words import NOUN, confidence_of, in_words, number, when

# Together these keep the charts of any release under about 3 MB: a point of a line takes some 40 bytes.
_POINTS, _POINTS_OF_A_SERIES = 30_000, 1_500
_CELLS, _CELLS_OF_A_MAP = 120_000, 40_000
_ROWS_OF_A_MAP = 90
MOST_FIGURES = 60
_MOST_MAPS = _MOST_GROUPS = 24
# How much fainter a cell is where its error is over a tenth, and over half, of its count.
_FAINT = (1.0, 0.6, 0.25)


@dataclass(frozen=True)
class Panel:
    """One chart of a figure: `along` is time, length or both; what the chart says is of the last window.

    `series` are the places of its series among all that are packed. `heading` tells whether the chart's own title
    stands above it; with a `choice` it is one of several that a reader picks from.
    """

    chart: Chart
    series: tuple[int, ...]
    along: str
    heading: bool = True
    choice: str | None = None

    def html(self) -> str:
        """The chart with its legend and what it says."""
        listed = "".join(
            f'<li><i style="background:{colour}"></i>{escape(label)}</li>' for colour, label in self.chart.legend
        )
        legend = f'<ul class="legend" aria-label="Colours">{listed}</ul>' if listed else ""
        drawn = self.chart.html(
            "heat" if self.along == "both" else "chart",
            along=self.along,
            series=" ".join(map(str, self.series)),
            x=f"{self.chart.x.low:.16g} {self.chart.x.high:.16g}",
            y=f"{self.chart.y.low:.16g} {self.chart.y.high:.16g}",
        )
        title = f"<h3>{unbroken_dates(self.chart.title)}</h3>" if self.heading else ""
        choice = "" if self.choice is None else f' data-choice="{escape(self.choice)}"'
        said = escape(" ".join(self.chart.said))
        return f'<section class="panel"{choice}>{title}{legend}{drawn}<p class="readout">{said}</p></section>'


@dataclass(frozen=True)
class Figure:
    """The charts of one family of windows, with its title and how to read them."""

    window: str
    title: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...]
    small: bool = False

    def html(self, name: str) -> str:
        """The figure; `name` is its own among all ids of a page."""
        panels = "".join(panel.html() for panel in self.panels)
        panels = f'<div class="multiples">{panels}</div>' if self.small else panels
        notes = f'<figcaption class="note">{escape(" ".join(self.notes))}</figcaption>' if self.notes else ""
        return (
            f'<figure aria-labelledby="{name}" data-window="{escape(self.window)}">'
            f'<h2 id="{name}">{unbroken_dates(self.title)}</h2>{panels}{notes}</figure>\n'
        )

    def charts(self) -> list[Chart]:
        """The charts for a picture, the last with the notes."""
        first, *others = [panel.chart for panel in self.panels]
        titled = first if self.title in first.title else replace(first, title=f"{self.title}: {first.title}")
        all_charts = [titled, *others]
        return [*all_charts[:-1], replace(all_charts[-1], said=(*all_charts[-1].said, " ".join(self.notes)))]


def figures(found: Sequence[Family], clock: Clock, metadata: Mapping[str, Any], noun: str = NOUN) -> list[Figure]:
    """The figures of these families, those over all groups before those of single groups; `noun` is what is counted."""
    drawer = _Drawer(found, clock, confidence_of(metadata), noun)
    return [figure for family in found[:MOST_FIGURES] for figure in drawer.of_family(family)]


class _Drawer:
    """What the figures of one release have in common."""

    def __init__(self, found: Sequence[Family], clock: Clock, confidence: float, noun: str) -> None:
        self.clock, self.interval, self.noun = clock, f"{percent(confidence, 6)} interval", noun
        series = [one for family in found for one in family.series]
        self.place = {id(one): at for at, one in enumerate(series)}
        maps = sum(one.window.startswith("any") for one in series)
        self.points = max(20, min(_POINTS_OF_A_SERIES, _POINTS // max(1, len(series))))
        self.cells = max(200, min(_CELLS_OF_A_MAP, _CELLS // max(1, min(maps, _MOST_MAPS))))

    def of_family(self, family: Family) -> Iterator[Figure]:
        """One figure for the totals, and one for single groups; of any windows one with a map for each series."""
        title = f"{_counted(family.series, self.noun)} {family.in_windows(self.clock)}"
        if family.name == "any":
            left = _left_out(len(family.series) - _MOST_MAPS, "map")
            panels = [panel for one in family.series[:_MOST_MAPS] for panel in self._any_windows(one, title)]
            yield Figure(family.window, title, tuple(panels), (*self._notes(family), *left))
            return
        totals, grouped = ([one for one in family.series if one.total is total] for total in (True, False))
        if totals:
            chunks = [totals[at : at + len(COLOURS)] for at in range(0, len(totals), len(COLOURS))]
            panels = [self._over_time(chunk, title, self._axis(chunk), heading=False) for chunk in chunks]
            yield Figure(family.window, title, tuple(panels), self._notes(family))
        if grouped:
            yield self._small_ones(family, grouped, f"{title}, by {' and '.join(n for n, _ in grouped[0].groups)}")

    def _small_ones(self, family: Family, grouped: Sequence[Series], title: str) -> Figure:
        """One small chart a group, all with the same scale."""
        groups: dict[str, list[Series]] = {}
        for one in grouped:
            groups.setdefault(", ".join(f"{name} {value}" for name, value in one.groups if value != ALL), []).append(
                one
            )
        drawn = {words: several[: len(COLOURS)] for words, several in list(groups.items())[:_MOST_GROUPS]}
        axis = self._axis([one for several in drawn.values() for one in several])
        panels = [self._over_time(several, words, axis, heading=True, height=140) for words, several in drawn.items()]
        notes = () if any(one.total for one in family.series) else self._notes(family)
        left = _left_out(len(groups) - _MOST_GROUPS, "group")
        return Figure(family.window, title, tuple(panels), (*notes, *left), small=True)

    def _notes(self, family: Family) -> tuple[str, ...]:
        one = family.main
        if family.name == "any":
            first = f"Each cell is one window: across, when it ends; upwards, its length in {self.clock.steps}; paler, "
            first += "where the error is over 10 %, and palest, where it is over 50 % of the count."
        else:
            first = "Band: the interval of each number by itself."
        cut = family.name == "rolling" and not all(one.rows["complete"].to_pylist())
        size = self.clock.length(family.size or 1)
        stride = math.ceil(one.rows.num_rows / self.points)
        return tuple(
            filter(
                None,
                (
                    first,
                    f"Dashed: windows cut at the first step, shorter than {size}." if cut else "",
                    f"Totals count {family.together}, and no other values." if family.together else "",
                    f"Drawn is one window in {stride:,}." if stride > 1 and family.name != "any" else "",
                ),
            )
        )

    def _axis(self, several: Sequence[Series]) -> Axis:
        columns = ("estimate", "lower", "upper", "consistent")
        return counts(np.concatenate([one.numbers(name) for one in several for name in columns]))

    def _over_time(self, several: Sequence[Series], title: str, y: Axis, *, heading: bool, height: int = 250) -> Panel:
        """Estimates with their intervals over the ends of the windows."""
        places = [self._positions(one) for one in several]
        low, high = min(map(min, places)), max(map(max, places))
        calendar = self.clock.described()["kind"] == "calendar"
        x = times(low, high) if calendar else numbers(low, high, 6, whole=True)
        chart = Chart(title, x, y, x_title=self.clock.axis_title, y_title=self._unit(several[0]), height=height)
        drawn = [one.thinned(self.points) for one in several]
        labels = [one.label.split(",")[0] if heading else one.label for one in several]
        return Panel(self._lines(chart, drawn, labels), self._places(several), "time", heading)

    def _any_windows(self, series: Series, title: str) -> Iterator[Panel]:
        """A map of all windows, and those that end last over their length."""
        yield Panel(self._map(series, title), self._places([series]), "both", heading=False, choice=series.label)
        last = series.last_end()
        x = numbers(1, int(last.lengths.max()), 8, whole=True)
        ends = f"for windows {self.clock.until} {self.clock.ends(self.clock.wall(last.rows['end'].slice(0, 1)))[0]}"
        across = f"window length ({self.clock.steps})"
        chart = Chart(f"By length, {ends}", x, self._axis([last]), across, y_title=self._unit(series), height=200)
        lines = self._lines(chart, [last.thinned(self.points)], [series.label])
        yield Panel(lines, self._places([series]), "length", choice=series.label)

    def _lines(self, chart: Chart, drawn: Sequence[Series], labels: Sequence[str]) -> Chart:
        """The chart with a line and a band for each series, and what the last windows say."""
        lines, dots = "", ""
        for one, colour in zip(drawn, COLOURS, strict=False):
            by_length = one.window.startswith("any")
            x = one.lengths if by_length else self._positions(one)
            breaks = one.steps("first_step") if one.window.startswith("to-date") else np.zeros(len(x), np.int64)
            cut = ~np.asarray(one.rows["complete"].to_numpy(), dtype=bool)
            bounds = one.numbers("lower"), one.numbers("upper")
            for kind, values in _raw_and_fitted(one):
                line = Line(colour, np.asarray(x, np.float64), values, *bounds, breaks, cut)
                stretched, placed = line.drawn(chart.x, chart.y, strength=0.25 if len(drawn) < 4 else 0.14)
                lines, dots = lines + kind.format(stretched), dots + kind.format(placed)
        legend = tuple(zip(COLOURS, labels, strict=False)) if len(drawn) > 1 else ()
        return replace(chart, lines=lines, dots=dots, legend=legend, said=(self._caption(drawn),))

    def _map(self, series: Series, title: str) -> Chart:
        """The windows of an `any` family as cells, or evenly spaced ones of them: end across, length upwards."""
        last, lengths = series.steps("last_step"), series.lengths
        every_length = math.ceil(int(lengths.max()) / _ROWS_OF_A_MAP)
        kept = (lengths - 1) % every_length == 0
        every_end = math.ceil(int(kept.sum()) / self.cells)
        kept &= (last.max() - last) % every_end == 0
        one = series.take(np.flatnonzero(kept))
        ends, across = np.unique(one.steps("last_step"), return_inverse=True)
        upwards = (one.lengths - 1) // every_length
        tall, wide = int(upwards.max()) + 1, len(ends)
        known = np.concatenate([values[np.isfinite(values)] for _, values in _raw_and_fitted(one)])
        marks = round_steps(known.min(initial=0.0), known.max(initial=1.0), len(HEAT))[: len(HEAT)]
        lines = ""
        for kind, values in _raw_and_fitted(one):
            part = one.numbers("std_error") / np.maximum(1e-12, np.abs(values))
            table, strength = np.full((tall, wide), np.nan), np.ones((tall, wide))
            table[upwards, across] = values
            strength[upwards, across] = np.select([part <= 0.1, part <= 0.5], _FAINT[:2], _FAINT[2])
            lines += kind.format(cells(table, marks[1:], strength))
        # One window of each end, for its name.
        named = one.take(np.unique(across, return_index=True)[1])
        texts = self.clock.ends(self.clock.wall(named.rows["end"]))
        chosen = sorted({round(share * (wide - 1)) for share in (0, 0.25, 0.5, 0.75, 1)})
        x = Axis(0, wide, tuple((at + 0.5, texts[at]) for at in chosen))
        whole = [at for at in round_steps(1, tall * every_length, 5) if at == int(at)] or [1.0]
        y = Axis(0, tall * every_length, tuple((at - 0.5, f"{at:,.0f}") for at in whole))
        legend = [(colour, f"from {number(mark, 2.0)}") for colour, mark in zip(HEAT, marks, strict=False)]
        if every_end * every_length > 1:
            title += f" (drawn: {wide * tall:,} places, each one window)"
        said = self._caption([series.last_end()])
        return Chart(title, x, y, self.clock.axis_title, lines=lines, legend=tuple(legend), said=(said,), height=300)

    def _caption(self, several: Sequence[Series]) -> str:
        """What the last windows say, or the longest of those that end last."""
        rows = [in_words(one, -1, self.clock) for one in several]
        parts = (
            f"{row.estimate} {one.named(self.noun)} ({self.interval} {row.interval})"
            for one, row in zip(several, rows, strict=True)
        )
        return f"{when(rows[0], self.clock)}: {'; '.join(parts)}."

    def _unit(self, series: Series) -> str:
        return self.noun if series.k is not None else series.kind

    def _positions(self, series: Series) -> list[int]:
        return self.clock.positions(self.clock.wall(series.rows["end"]))

    def _places(self, several: Sequence[Series]) -> tuple[int, ...]:
        return tuple(self.place[id(one)] for one in several)


def last_numbers(found: Sequence[Family], clock: Clock, metadata: Mapping[str, Any], most: int) -> str:
    """A table of the last number of each series, of at most so many; of any windows the longest that end last."""
    head = ["Window", "Seen", clock.until.capitalize(), "Estimate", "Standard error"]
    head.append(f"{percent(confidence_of(metadata), 6)} interval")
    rows = []
    for one in [one for family in found for one in family.series][:most]:
        row = in_words(one.last_end() if one.window.startswith("any") else one, -1, clock)
        rows.append([one.window, one.full_label, row.end, row.estimate, row.error, row.interval])
    return grid(head, rows, numeric=(3, 4, 5), label="The last number of each series")


def _raw_and_fitted(series: Series) -> list[tuple[str, Floats]]:
    """Values to draw, with the SVG around them: consistent ones where there are any, and the raw ones hidden."""
    raw, fitted = series.numbers("estimate"), series.numbers("consistent")
    if not np.isfinite(fitted).any():
        return [("{}", raw)]
    both = np.where(np.isfinite(fitted), fitted, raw)
    return [('<g class="raw" display="none">{}</g>', raw), ('<g class="fitted">{}</g>', both)]


def _counted(several: Sequence[Series], noun: str) -> str:
    counted = several[0].named(noun) if len(several) == 1 else f"{noun} seen"
    return counted[:1].upper() + counted[1:]


def _left_out(more: int, what: str) -> list[str]:
    return [f"{more:,} more {what}{'s are' if more > 1 else ' is'} only in the table of numbers."] if more > 0 else []
