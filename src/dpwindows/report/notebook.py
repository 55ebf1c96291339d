"""Displays for a notebook: small tables and one chart to point at, in the colours of the notebook, light or dark.

The chart is drawn by the scripts of the page from numbers beside it; nothing is fetched. Where scripts do not run, as
on a page that only shows notebooks, the table says the same.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import pyarrow as pa

from dpwindows.errors import percent
from dpwindows.report.clock import Clock
from dpwindows.report.html import asset, grid
from dpwindows.report.pack import pack
from dpwindows.report.series import Family, Series, families, records
from dpwindows.report.words import confidence_of, each, figures_of, number, plain

_MOST_NUMBERS = 20_000
_MOST_SERIES = 6
_TABLE_ROWS = 8
_MOST_BARS = 40


def release_html(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    """A release: one chart of its first family, and for each series its last number with its error."""
    found, clock = families(table), Clock.of(table, metadata)
    if not found:
        return fragment("<p>This release holds no rows.</p>")
    interval = f"{percent(confidence_of(metadata), 6)} interval"
    head = ["Window", "Seen", clock.until.capitalize(), "Estimate", "Standard error", interval]
    ones = [one for family in found for one in family.series]
    rows = [_last_row(one, clock) for one in ones[:_TABLE_ROWS]]
    said = f"<p>{escape(_summary(table, metadata, len(ones)))}</p>"
    said += grid(head, rows, numeric=(3, 4, 5), label="The last number of each series")
    family = next((family for family in found if family.name != "any"), found[0])
    return fragment(said, chart=_chart(family, clock, metadata))


def listing(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: Sequence[int] = ()) -> str:
    """A titled table for a notebook; the cells are plain text."""
    return fragment(f"<p><b>{escape(title)}</b></p>" + grid(head, rows, numeric=numeric, label=title))


def forecast_html(entries: Sequence[Mapping[str, Any]], confidence: float | None = None, *, said: str = "") -> str:
    """A forecast: a table of errors, and bars that show each beside the least that is known to be possible.

    Args:
        entries: the entries of a plan's forecast, as plain values.
        confidence: of the intervals, where it is known.
        said: a sentence before the table.
    """
    interval = f"{percent(confidence, 6)} interval \u00b1" if confidence else "Interval \u00b1"
    head = ["Window", "Seen", "Standard error", interval, "Largest", "Times the known limit", "Strategy"]
    names = [f"{str(row['measure']).replace('_', ' ')} {row['k']}{each(row)}" for row in entries]
    rows = [
        [
            str(row["window"]),
            name,
            *(figures_of(row[key]) for key in ("rms", "half_width", "max", "ratio_to_limit")),
            str(row["strategy"]),
        ]
        for row, name in zip(entries, names, strict=True)
    ]
    body = (f"<p>{escape(said)}</p>" if said else "") + grid(head, rows, numeric=range(2, 6), label="Forecast")
    drawn = [
        {
            "short": f"{row['window']} {name}" if len(entries) <= _MOST_SERIES else str(at + 1),
            "words": f"{row['window']}, {name}: standard error {figures_of(row['rms'])}, the largest "
            f"{figures_of(row['max'])}, least known to be possible {figures_of(row['limit'])}",
            "value": row["rms"],
            "low": row["rms"] if row["limit"] is None else row["limit"],
            "high": row["max"],
        }
        for at, (row, name) in enumerate(zip(entries, names, strict=True))
    ]
    return fragment(body, chart=bars("Standard errors to expect", drawn[:_MOST_BARS]))


def ledger_html(page: Mapping[str, Any]) -> str:
    """A dataset of a ledger, from the plain values of its book: what may be spent, was spent and is left."""
    rows = [
        [name, ", ".join(f"{key} {plain(value)}" for key, value in page[name].items() if key != "kind")]
        for name in ("total", "spent", "left")
    ]
    title = f"Ledger of {page['dataset']}, {page['unit']} level: {len(page['entries'])} entries"
    return listing(title, ["Budget", "Amount"], rows)


def bars(title: str, entries: Sequence[Mapping[str, Any]]) -> str:
    """Code that draws bars: an entry has `short` and `words` (said of it), its `value`, `low` and `high` about it."""
    drawn = [
        {
            "short": entry["short"],
            "words": entry["words"],
            "numbers": {"estimate": entry["value"], "lower": entry["low"], "upper": entry["high"]},
        }
        for entry in entries
    ]
    given = _inside(json.dumps({"title": title, "bars": drawn}, allow_nan=False))
    return f"const given = {given}; place.append(barChart({{ ...given, say: (bar) => bar.words }}));"


def fragment(body: str, *, chart: str = "") -> str:
    """HTML for the output of a notebook's cell: a body, and under it what the code `chart` puts into `place`."""
    name = f"dpw-{uuid.uuid4().hex[:12]}"
    drawn = ""
    if chart:
        code = "\n".join((asset("numbers.js"), asset("charts.js"), chart))
        drawn = (
            f'<div class="place"></div><script>(async () => {{ const place = document.querySelector("#{name} .place");'
            f"\n{code}\n}})();</script>"
        )
    return f'<div id="{name}" class="dpw"><style>{asset("notebook.css")}</style>{body}{drawn}</div>'


def _chart(family: Family, clock: Clock, metadata: Mapping[str, Any]) -> str:
    ones = [one for one in family.series if one.total][:_MOST_SERIES] or list(family.series[:_MOST_SERIES])
    any_family = family.name == "any"
    kept = [one.last_end() if any_family else one for one in ones]
    shown = Family(family.window, tuple(one.thinned(_MOST_NUMBERS // len(kept)) for one in kept))
    packed = pack([shown], clock)
    title = ("Items seen " if len(kept) > 1 or not kept[0].distinct else "Distinct items ") + family.in_windows(clock)
    given: dict[str, Any] = {"index": packed.index, "text": packed.text, "title": title, "byLength": any_family}
    given["confidence"] = f"{percent(confidence_of(metadata), 6)}"
    return f"const given = {_inside(json.dumps(given, allow_nan=False))};\n{asset('notebook.js')}"


def _inside(text: str) -> str:
    """JSON that may stand in a script."""
    return text.replace("<", "\\u003c")


def _last_row(one: Series, clock: Clock) -> list[str]:
    row = next(records((one.last_end() if one.window.startswith("any") else one).thinned(1), clock))
    interval = f"{number(row['lo'], row['e'])} to {number(row['hi'], row['e'])}"
    return [one.window, one.label, str(row["b"]), number(row["y"], row["e"]), figures_of(row["e"]), interval]


def _summary(table: pa.Table, metadata: Mapping[str, Any], series: int) -> str:
    claim = str(metadata.get("guarantee") or "").partition(":")[0]
    more = f" The first {_TABLE_ROWS} of {series} series:" if series > _TABLE_ROWS else ""
    return f"{table.num_rows:,} released numbers. {claim}.{more}"
