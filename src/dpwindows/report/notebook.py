"""Displays for a notebook: small tables, and charts to point at, in the colours of the notebook, light or dark.

The charts are those of the page, with its script and the numbers beside them; nothing is fetched. Where scripts do not
run, as on a page that only shows notebooks, charts and tables can be read all the same.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import pyarrow as pa

from dpwindows.errors import InputError, percent
from dpwindows.report.charts import picture
from dpwindows.report.clock import Clock
from dpwindows.report.figures import Figure, figures, last_numbers
from dpwindows.report.html import asset, document, grid
from dpwindows.report.pack import Packed, pack
from dpwindows.report.series import Family, families
from dpwindows.report.words import confidence_of, each, figures_of, forecast_grid, measure_text, plain

_MOST_NUMBERS, _MOST_NUMBERS_OF_A_PLOT = 20_000, 300_000
_MOST_SERIES = 6
_TABLE_ROWS = 8
_MOST_BARS = 40


def release_html(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    """A release: for each series its last number with its error, and the chart of its first family."""
    found, clock = families(table), Clock.of(table, metadata)
    if not found:
        return fragment("<p>This release holds no rows.</p>")
    body = f"<p>{escape(_summary(table, metadata, sum(len(family.series) for family in found)))}</p>"
    body += last_numbers(found, clock, metadata, _TABLE_ROWS)
    family = next((family for family in found if family.name != "any"), found[0])
    ones = [one for one in family.series if one.total][:_MOST_SERIES] or list(family.series[:_MOST_SERIES])
    kept = [one.last_end() if family.name == "any" else one for one in ones]
    shown = Family(family.window, tuple(one.thinned(_MOST_NUMBERS // len(kept)) for one in kept))
    drawn = figures([shown], clock, metadata)
    if family.name == "any":
        lengths = tuple(panel for panel in drawn[0].panels if panel.along == "length")
        drawn = [replace(drawn[0], panels=lengths, notes=())]
    return fragment(body + _answering(drawn, pack([shown], clock), metadata))


def plot_html(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    """All charts of a release, for the output of a notebook's cell."""
    return fragment(_plot(table, metadata))


def plot_page(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    """All charts of a release, as a whole HTML document that refers to nothing outside itself."""
    return document("Private counts in time windows", _plot(table, metadata))


def plot_picture(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    """All charts of a release, as one SVG."""
    drawn = _figures(table, metadata)
    return picture([chart for figure in drawn for chart in figure.charts()])


def _figures(table: pa.Table, metadata: Mapping[str, Any]) -> list[Figure]:
    """The figures of a release; raises `InputError` if it has no rows."""
    if not table.num_rows:
        raise InputError("this release holds no rows, so there is nothing to draw")
    return figures(families(table), Clock.of(table, metadata), metadata)


def _plot(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    drawn, clock = _figures(table, metadata), Clock.of(table, metadata)
    return _answering(drawn, pack(families(table), clock, _MOST_NUMBERS_OF_A_PLOT), metadata)


def forecast_html(entries: Sequence[Mapping[str, Any]], confidence: float | None = None, *, said: str = "") -> str:
    """A forecast, as plain values: a table of errors, and bars that show each beside the least known to be possible.

    `confidence` is that of the intervals, where it is known; `said` a sentence before the table.
    """
    names = [measure_text(row) + each(row) for row in entries]
    body = (f"<p>{escape(said)}</p>" if said else "") + forecast_grid(entries, confidence)
    largest = max((float(row["max"]) for row in entries[:_MOST_BARS]), default=0.0) or 1.0
    drawn = [
        _bar(f"{row['window']} {name}", row, largest) for row, name in zip(entries[:_MOST_BARS], names, strict=False)
    ]
    note = "Bar: the standard error; line: from the least that is known to be possible to the largest of the query."
    return fragment(f'{body}<div class="bars">{"".join(drawn)}</div><p class="note">{note}</p>')


def ledger_html(page: Mapping[str, Any]) -> str:
    """A dataset of a ledger, from the plain values of its book: what may be spent, was spent and is left."""
    rows = [
        [name, ", ".join(f"{key} {plain(value)}" for key, value in page[name].items() if key != "kind")]
        for name in ("total", "spent", "left")
    ]
    title = f"Ledger of {page['dataset']}, {page['unit']} level: {len(page['entries'])} entries"
    return fragment(f"<p><b>{escape(title)}</b></p>" + grid(["Budget", "Amount"], rows, numeric=(), label=title))


def _bar(name: str, row: Mapping[str, Any], largest: float) -> str:
    """A bar for a standard error, with a line from the least that is possible to the largest."""
    low, high = 100 * (row["limit"] or row["rms"]) / largest, 100 * row["max"] / largest
    limit = "" if row["limit"] is None else f", least known to be possible {figures_of(row['limit'])}"
    return (
        f'<span>{escape(name)}</span><span class="track"><i style="width:{100 * row["rms"] / largest:.1f}%"></i>'
        f'<b style="left:{low:.1f}%;width:{max(0.0, high - low):.1f}%"></b></span>'
        f'<span class="words">{figures_of(row["rms"])}{limit}</span>'
    )


def fragment(body: str) -> str:
    """HTML for the output of a notebook's cell."""
    style = "".join(map(asset, ("chart.css", "figures.css", "cell.css")))
    return f'<div class="dpw cell"><style>{style}</style>{body}</div>'


def _answering(drawn: Sequence[Figure], packed: Packed, metadata: Mapping[str, Any]) -> str:
    """Figures with the script that makes them answer, and the numbers that it says."""
    name = f"dpw-{uuid.uuid4().hex[:12]}"
    given = {"index": packed.index, "text": packed.text, "confidence": percent(confidence_of(metadata), 6)}
    code = (
        asset("numbers.js"),
        asset("charts.js"),
        f"const given = {json.dumps(given, allow_nan=False)};".replace("<", "\\u003c"),
    )
    start = (
        "const release = new Release(given.index, await unpack(given.index, given.text));\n"
        f'answering(document.getElementById("{name}"), release, {{ confidence: given.confidence }});'
    )
    content = "".join(figure.html(f"{name}-{at}") for at, figure in enumerate(drawn))
    return f'<div id="{name}">{content}</div><script>(async () => {{\n{"".join(code)}\n{start}\n}})();</script>'


def _summary(table: pa.Table, metadata: Mapping[str, Any], series: int) -> str:
    claim = str(metadata["guarantee"]).partition(":")[0]
    more = f" The first {_TABLE_ROWS} of {series} series:" if series > _TABLE_ROWS else ""
    return f"{table.num_rows:,} released numbers. {claim}.{more}"
