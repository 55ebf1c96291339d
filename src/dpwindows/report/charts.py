"""Charts as SVG that fit any width: the one engine behind pages, notebooks, pictures and the documentation.

A place in a chart is a share of its width and of its height. So a browser stretches a chart without drawing it anew:
text and dots stay as they are, and lines stand in an inner picture that is stretched. A chart can be read as it is; on
pages and in notebooks a script (`web/charts.js`) moves a cursor over it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Any

import numpy as np
import numpy.typing as npt

from dpwindows.report.html import asset

Floats = npt.NDArray[np.float64]

# Of `web/chart.css`: with any of the common colour vision deficiencies they differ, in lightness too.
COLOURS = tuple(f"var(--s{at})" for at in range(6))
HEAT = tuple(f"var(--h{at})" for at in range(8))
_HOUR, _DAY = 3_600_000, 86_400_000
_TIMES = (60_000, 300_000, 900_000, _HOUR, 3 * _HOUR, 6 * _HOUR, _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 1200)
# The inner picture, and the margins of a chart in pixels.
_SIDE = 1000
_TOP, _RIGHT, _BOTTOM = 24, 12, 42
_FEW = 40


@dataclass(frozen=True)
class Axis:
    """A direction of a chart: the values at its two ends, and those that are marked, with their text."""

    low: float
    high: float
    marks: tuple[tuple[float, str], ...]

    def share(self, values: Any) -> Any:
        """Where values stand, from 0 at the low end to 1 at the high one; the middle if the axis has no length."""
        given = np.asarray(values, dtype=np.float64)
        return (given - self.low) / (self.high - self.low) if self.high > self.low else np.full_like(given, 0.5)


def round_steps(low: float, high: float, parts: int) -> list[float]:
    """Round numbers that divide a range into at most this many parts."""
    spread = (high - low) or 1.0
    power = 10.0 ** math.floor(math.log10(spread / parts))
    step = next(power * nice for nice in (1, 2, 2.5, 5, 10, 20) if spread / (power * nice) <= parts)
    first = math.ceil(low / step - 1e-9)
    return [step * (first + at) for at in range(math.floor(high / step + 1e-9) - first + 1)]


def numbers(low: float, high: float, parts: int = 5, *, whole: bool = False) -> Axis:
    """An axis of numbers, marked at round (and whole) ones."""
    marks = round_steps(low, high, parts)
    return Axis(low, high, tuple((at, _text(at, marks)) for at in marks if not whole or at == int(at)))


def counts(values: Floats) -> Axis:
    """An axis from zero, or from the lowest value where that is negative, to a round number."""
    known = values[np.isfinite(values)]
    low, high = min(0.0, known.min(initial=0.0)), max(0.0, known.max(initial=0.0))
    high = high or (1.0 if low == 0 else 0.0)
    steps = round_steps(low, high, 5)
    step = steps[1] - steps[0] if len(steps) > 1 else abs(high - low)
    return numbers(low, math.ceil(high / step - 1e-9) * step)


def times(low: int, high: int, most: int = 6) -> Axis:
    """An axis of milliseconds since 1970, marked at round times of day, days, months or years."""
    step = next((size for size in _TIMES if (high - low) / size <= most), None)
    if step is not None:
        marks = [(at, _moment(at, step)) for at in range(-(-low // step) * step, high + 1, step)]
        return Axis(low, high, tuple(marks))
    months = next(count for count in _MONTHS if (high - low) / (count * 30.4 * _DAY) <= most)
    first = int(np.datetime64(low, "ms").astype("datetime64[M]").astype(np.int64))
    last = int(np.datetime64(high, "ms").astype("datetime64[M]").astype(np.int64))
    places = np.arange(-(-first // months) * months, last + 1, months).astype("datetime64[M]")
    named = [(int(place.astype("datetime64[ms]").astype(np.int64)), str(place)) for place in places]
    shown = 7 if months < 12 else 4
    return Axis(low, high, tuple((at, text[:shown]) for at, text in named if at >= low))


@dataclass(frozen=True)
class Chart:
    """A pair of axes, what is drawn between them, and what is said around it.

    Attributes:
        title: what is shown.
        x, y: the axes.
        x_title, y_title: what stands under the chart, and above its vertical axis.
        lines: SVG in a square with sides of 1,000, which is stretched.
        dots: SVG with places in percent of width and height.
        legend: swatches (a colour each) with what they stand for.
        said: what the chart says, and how to read it; one line or more of text.
        height: of what is between the axes, in pixels.
    """

    title: str
    x: Axis
    y: Axis
    x_title: str = ""
    y_title: str = ""
    lines: str = ""
    dots: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    said: tuple[str, ...] = ()
    height: int = 250

    def html(self, kind: str = "chart", **data: Any) -> str:
        """The chart without its texts, as wide as what holds it; `data` are attributes for the script."""
        stated = "".join(f' data-{name}="{escape(str(value))}"' for name, value in data.items())
        return (
            f'<div class="{kind}" role="img" aria-label="{escape(self.title)}"{stated} '
            f'style="padding: {_TOP}px {_RIGHT}px {_BOTTOM}px {self.left}px">'
            f'<svg aria-hidden="true" width="100%" height="{self.height}">{self._inside()}</svg></div>'
        )

    @property
    def left(self) -> float:
        """The margin for the marks of the vertical axis, in pixels."""
        return 14 + 7.2 * max((len(text) for _, text in self.y.marks), default=0)

    def _inside(self) -> str:
        parts = []
        for value, text in self.y.marks:
            at = _percent(1 - self.y.share(value))
            shade = "zero" if value == 0 else "grid"
            parts.append(f'<line x1="0" x2="100%" y1="{at}" y2="{at}" class="{shade}"/>')
            parts.append(f'<text x="-6" y="{at}" dy="4" class="tick" text-anchor="end">{escape(text)}</text>')
        crowded = len(self.x.marks) > 3
        for number, (value, text) in enumerate(self.x.marks):
            share = float(self.x.share(value))
            at, more = _percent(share), " more" if crowded and number % 2 else ""
            edge = 0.006 * len(text)
            anchor = "start" if share < edge else "end" if share > 1 - edge else "middle"
            parts.append(f'<line x1="{at}" x2="{at}" y1="100%" y2="100%" class="axis{more}"/>')
            where = f'x="{at}" y="100%" dy="18" text-anchor="{anchor}"'
            parts.append(f'<text {where} class="tick{more}">{escape(text)}</text>')
        parts.append(f'<text x="0" y="100%" dy="36" class="title">{escape(self.x_title)}</text>')
        if self.y_title:
            parts.append(f'<text x="-6" y="0" dy="-10" class="title">{escape(self.y_title)}</text>')
        stretched = f'viewBox="0 0 {_SIDE} {_SIDE}" preserveAspectRatio="none" width="100%" height="100%"'
        parts.append(f'<svg {stretched} overflow="visible">{self.lines}</svg>{self.dots}')
        return "".join(parts)

    def picture(self, width: float, top: float) -> tuple[str, float]:
        """The chart with its texts at this height of a picture, and where it ends."""
        drawn, at = [], top + 18
        for line in wrap(self.title, int(width / 8)):
            drawn.append(f'<text x="0" y="{at}" class="head">{escape(line)}</text>')
            at += 20
        place = 0.0
        for colour, label in self.legend:
            size = 30 + 6.6 * len(label)
            if place and place + size > width:
                place, at = 0.0, at + 18
            drawn.append(f'<rect x="{place}" y="{at - 8}" width="14" height="6" fill="{colour}"/>')
            drawn.append(f'<text x="{place + 20}" y="{at}" class="tick">{escape(label)}</text>')
            place += size
        at += 6 if self.legend else -12
        box = f'x="{self.left}" y="{at + _TOP}" width="{width - self.left - _RIGHT}" height="{self.height}"'
        drawn.append(f'<svg {box} overflow="visible">{self._inside()}</svg>')
        at += _TOP + self.height + _BOTTOM
        for line in (line for text in self.said for line in wrap(text, int(width / 6.6))):
            at += 16
            drawn.append(f'<text x="0" y="{at}" class="tick">{escape(line)}</text>')
        return "".join(drawn), at + 12


def picture(charts: Sequence[Chart], *, width: int = 860, columns: int = 1) -> str:
    """Charts one under the other, or in columns, as one SVG that stands by itself, in the colours of a light page."""
    style = asset("chart.css")
    colours = dict(re.findall(r"--(\w+): (#\w+)", style))
    drawn, top, bottom = [], 0.0, 0.0
    wide = (width - 24 * (columns - 1)) / columns
    for number, chart in enumerate(charts):
        column = number % columns
        if not column:
            top = bottom
        content, end = chart.picture(wide, top)
        bottom = max(bottom, end)
        drawn.append(f'<g transform="translate({12 + column * (wide + 24):.1f} 0)">{content}</g>')
    size = f'width="{width + 24}" height="{bottom + 12:.0f}" viewBox="0 0 {width + 24} {bottom + 12:.0f}"'
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dpw" role="img" {size} font-family="system-ui, sans-serif">'
        f"<title>{escape(charts[0].title)}</title><style>{style}</style>"
        f'<rect width="100%" height="100%" fill="{colours["page"]}"/>{"".join(drawn)}</svg>\n'
    )
    return re.sub(r"var\(--(\w+)\)", lambda found: colours[found[1]], text)


@dataclass(frozen=True)
class Line:
    """One line of a chart: values over places, with what is around each.

    Attributes:
        colour: a CSS colour.
        x, y, low, high: one value a point, ascending in x; y is not a number where nothing is drawn.
        breaks: where this changes, the line begins anew.
        cut: points of windows that are cut short: dashed.
    """

    colour: str
    x: Floats
    y: Floats
    low: Floats
    high: Floats
    breaks: npt.NDArray[np.int64]
    cut: npt.NDArray[np.bool_]

    def drawn(self, x: Axis, y: Axis, *, strength: float) -> tuple[str, str]:
        """Its band, or error bars where there are few points, and the line itself: what is stretched, and the dots."""
        lines, dots, few = [], [], len(self.x) <= _FEW
        across, up = x.share(self.x), 1 - y.share(self.y)
        low, high = (1 - y.share(np.where(np.isfinite(end), end, self.y)) for end in (self.low, self.high))
        for rows in self._pieces():
            cut = bool(self.cut[rows[-1]])
            if few:
                for row in rows:
                    place = f'x1="{_percent(across[row])}" x2="{_percent(across[row])}"'
                    ends = f'y1="{_percent(low[row])}" y2="{_percent(high[row])}"'
                    dots.append(f'<line {place} {ends} stroke="{self.colour}" stroke-width="1.5" opacity="0.7"/>')
            elif len(rows) > 1:
                around = path(np.r_[across[rows], across[rows[::-1]]], np.r_[high[rows], low[rows[::-1]]])
                fainter = strength / 2 if cut else strength
                lines.append(f'<path d="{around}Z" fill="{self.colour}" opacity="{fainter:g}"/>')
            dashed = ' stroke-dasharray="4 3"' if cut else ""
            lines.append(f'<path d="{path(across[rows], up[rows])}" class="line" stroke="{self.colour}"{dashed}/>')
            dots += [dot(across[row], up[row], f'fill="{self.colour}"') for row in rows if few or len(rows) == 1]
        return "".join(lines), "".join(dots)

    def _pieces(self) -> Iterator[npt.NDArray[np.int64]]:
        """Rows to be joined: pieces end where a number is missing, a period begins anew, or windows stop being cut."""
        rows = np.flatnonzero(np.isfinite(self.y))
        if not len(rows):
            return
        before, after = rows[:-1], rows[1:]
        apart = (after - before != 1) | (self.breaks[after] != self.breaks[before])
        for start, part in enumerate(np.split(rows, np.flatnonzero(apart | (self.cut[after] != self.cut[before])) + 1)):
            meets = start > 0 and not apart[np.searchsorted(rows, part[0]) - 1]
            yield np.r_[part[0] - 1, part] if meets else part


def path(x: Floats, y: Floats) -> str:
    """A path through places, in the stretched square."""
    return "M" + "L".join(f"{_SIDE * a:.1f} {_SIDE * b:.1f}" for a, b in zip(x, y, strict=True))


def dot(x: float, y: float, shade: str) -> str:
    """A dot at a place; `shade` says by attributes of SVG how it is filled."""
    return f'<circle cx="{_percent(x)}" cy="{_percent(y)}" r="3" {shade}/>'


def cells(values: Floats, breaks: Sequence[float], strength: Floats) -> str:
    """A table of values as cells that fill the stretched square; its first row is at the bottom.

    There is no cell where a value is not a number. The next colour begins at each of at most seven `breaks`; `strength`
    is the opacity of each cell.
    """
    tall, wide = values.shape
    drawn: dict[tuple[int, float], list[str]] = {}
    colours = np.searchsorted(breaks, values, side="right")
    shades = np.where(np.isfinite(values), colours + 10 * strength, -1.0)
    for row in range(tall):
        ends = np.flatnonzero(shades[row, 1:] != shades[row, :-1]) + 1
        for start, stop in zip(np.r_[0, ends], np.r_[ends, wide], strict=True):
            if shades[row, start] >= 0:
                shade = int(colours[row, start]), float(strength[row, start])
                run = f"M{start} {tall - 1 - row}h{stop - start}v1h-{stop - start}z"
                drawn.setdefault(shade, []).append(run)
    filled = "".join(
        f'<path fill="{HEAT[colour]}" fill-opacity="{opacity:g}" d="{"".join(runs)}"/>'
        for (colour, opacity), runs in sorted(drawn.items())
    )
    box = f'viewBox="0 0 {wide} {tall}" preserveAspectRatio="none" width="{_SIDE}" height="{_SIDE}"'
    return f'<svg {box} shape-rendering="crispEdges">{filled}</svg>'


def _percent(share: Any) -> str:
    return f"{100 * float(share):.2f}%"


def _text(value: float, marks: Sequence[float]) -> str:
    """A mark, with the decimals that tell it from its neighbours."""
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    digits = max(0, math.ceil(-math.log10(step) - 1e-9)) + (step < 5 and f"{step:e}".startswith("2.5"))
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _moment(at: int, step: int) -> str:
    text = str(np.datetime64(at, "ms"))
    if step >= _DAY:
        return text[:10]
    return text[11:16] if at % _DAY else text[5:10]
