"""A release as one HTML page that loads nothing: guarantee first, then charts, errors and how it was made.

The page carries its charts' library and data inside itself, and a content security policy that forbids the browser to
fetch anything, so it can be mailed, archived and opened offline. Text from the metadata is escaped wherever it lands.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.report.charts import HEAT_COLOURS, LOOK, SERIES_COLOURS, Style, require
from dpwindows.report.clock import Clock
from dpwindows.report.figures import Figure, confidence_of, figures, number
from dpwindows.report.series import Series, families

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_LONGEST_VALUE = 60
_SYMBOLS = {
    "epsilon": "\N{GREEK SMALL LETTER EPSILON}",
    "delta": "\N{GREEK SMALL LETTER DELTA}",
    "rho": "\N{GREEK SMALL LETTER RHO}",
}
_SUPERSCRIPTS = str.maketrans("-0123456789", "\N{SUPERSCRIPT MINUS}⁰¹²³⁴⁵⁶⁷⁸⁹")

_TEXT = {"labelColor": "var(--soft)", "titleColor": "var(--soft)", "labelFontSize": 12, "titleFontSize": 12}
_RULES = {"gridColor": "var(--rule)", "domainColor": "var(--rule)", "tickColor": "var(--rule)"}
_PAGE = Style(
    series=[f"var(--s{at})" for at in range(len(SERIES_COLOURS))],
    heat=[f"var(--h{at})" for at in range(len(HEAT_COLOURS))],
    width="container",
    legend=False,
    config={
        **LOOK,
        "aria": False,  # each chart is one image with a description; its thousands of marks would only be noise
        "background": "transparent",
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif",
        "padding": {"left": 2, "right": 14, "top": 6, "bottom": 4},
        "axis": {**LOOK["axis"], **_TEXT, **_RULES},
        "legend": {**LOOK["legend"], **_TEXT},
    },
)


def page(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    """Write the report of a release: a whole HTML document that refers to nothing outside itself.

    Args:
        table: rows of a release, with the columns of a release file; large ones are thinned for display.
        metadata: the metadata of the release.

    Raises:
        InputError: an optional library is missing; the message says what to install.
    """
    library = _chart_library()
    shown = figures(table, metadata)
    title = _title(table, metadata)
    parts = [
        f"<header><h1>{_unbroken_dates(title)}</h1>{_lede(table, metadata)}{_guarantee(metadata)}</header>",
        *(_figure(figure, at, metadata) for at, figure in enumerate(shown.shown)),
        "" if shown.shown else "<p>This release holds no rows.</p>",
        f'<p class="note">{shown.left_out:,} more charts are not drawn; their numbers are in the released file.</p>'
        if shown.left_out
        else "",
        _errors(table, metadata),
        _making(metadata),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_asset('page.css')}</style></head>\n"
        f"<body><main>{''.join(parts)}</main>\n<script>{library}</script>\n"
        f'<script type="module">{_asset("page.js")}</script></body></html>\n'
    )


def _chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, of the version Altair writes for."""
    version = ".".join(str(require("altair").SCHEMA_VERSION).split(".")[:2])
    converter = require("vl_convert")
    try:
        bundle: str = converter.javascript_bundle(vl_version=version)
    except ValueError:  # a converter older or newer than Altair: its own version draws these charts as well
        bundle = converter.javascript_bundle()
    return bundle.replace("</script", "<\\/script")


def _asset(name: str) -> str:
    return files("dpwindows.report").joinpath(name).read_text(encoding="utf-8")


def _title(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    if table.num_rows == 0:
        return "Private counts in time windows"
    clock = Clock.of(table, metadata)
    bounds = table.select(["start", "end"]).group_by([]).aggregate([("start", "min"), ("end", "max")])
    start = clock.starts(clock.wall(bounds["start_min"]))[0]
    end = clock.ends(clock.wall(bounds["end_max"]))[0]
    return f"How many distinct items, from {start} {clock.until} {end}"


def _lede(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    clock = Clock.of(table, metadata)
    zone = f" Times are those of {clock.zone}." if clock.zone else ""
    interval = f"{100 * confidence_of(metadata):g}% interval"
    biased = (pc.max(table["bias_bound"]).as_py() or 0) > 0
    average = "right on average, but for the bias bound beside them" if biased else "right on average"
    text = (
        "Counts from an event log, published under differential privacy: random noise was added to every number. "
        f"Estimates are {average}; the {interval} beside each holds the true count that often.{zone}"
    )
    hint = '<span class="screen"> Point at a chart for single numbers.</span>'
    return f'<p class="lede">{escape(text)}{hint}</p>'


def _guarantee(metadata: Mapping[str, Any]) -> str:
    unit = metadata.get("unit") or {}
    said, promise = str(metadata.get("guarantee") or ""), str(unit.get("promise") or "")
    sentences = [said] if promise in said else [promise, said]
    if metadata.get("singleton") and "at most one event" not in said:
        sentences.append("It rests on a public promise about the log: at most one event in each step.")
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences if sentence)
    facts = "".join(f"<li>{escape(name)} <b>{escape(value)}</b></li>" for name, value in _budget(metadata))
    return (
        '<section class="guarantee" aria-labelledby="guarantee"><h2 id="guarantee">What is guaranteed</h2>'
        f'{paragraphs}<ul class="budget">{facts}</ul></section>'
    )


def _budget(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    budget, unit = metadata.get("budget") or {}, metadata.get("unit") or {}
    names = {"pure": "pure", "approximate": "approximate", "zcdp": "zero-concentrated"}
    kind = str(budget.get("kind") or "")
    facts = [("unit of privacy", str(unit["name"]))] if unit.get("name") else []
    facts += [(f"{names.get(kind, kind)} differential privacy".strip(), "")]
    return facts + [(f"{symbol} =", _plain(budget[key])) for key, symbol in _SYMBOLS.items() if budget.get(key)]


def _figure(figure: Figure, at: int, metadata: Mapping[str, Any]) -> str:
    spec = figure.draw(_PAGE).to_dict(validate=False)
    data = json.dumps(spec, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    legend = "".join(
        f'<li><i style="background:var(--s{colour})"></i>{escape(label)}</li>'
        for colour, label in enumerate(figure.labels)
    )
    notes = " ".join(figure.notes)
    seen = f"Chart: {figure.title}. {figure.finding}"
    return (
        f'<figure aria-labelledby="title-{at}"><h2 id="title-{at}">{_unbroken_dates(figure.title)}</h2>'
        f'<p class="finding">{_unbroken_dates(figure.finding)}</p>'
        + (f'<ul class="legend" aria-label="Items seen">{legend}</ul>' if legend else "")
        + f'<div class="chart" role="img" aria-label="{escape(seen)}" data-chart="spec-{at}">'
        "<noscript>The charts of this page need JavaScript; it fetches nothing.</noscript></div>"
        + (f'<figcaption class="note">{escape(notes)}</figcaption>' if notes else "")
        + _some_numbers(figure, metadata)
        + f'<script type="application/json" id="spec-{at}">{data}</script></figure>\n'
    )


def _some_numbers(figure: Figure, metadata: Mapping[str, Any]) -> str:
    head = ["Seen", "From", "To", "Estimate", "Standard error", f"{100 * confidence_of(metadata):g}% interval"]
    body = (
        [
            str(row["s"]),
            str(row["a"]),
            str(row["b"]),
            number(row["y"], row["e"]),
            _figures_of(row["e"]),
            f"{number(row['lo'], row['e'])} to {number(row['hi'], row['e'])}",
        ]
        for row in figure.rows
    )
    grid = _grid(head, body, numeric=(3, 4, 5), label=f"Some of the numbers: {figure.title}")
    return f"<details><summary>Some of the numbers as a table</summary>{grid}</details>"


def _errors(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    forecast = metadata.get("forecast") or []
    if not forecast:
        return ""
    widths = {(one.window, one.kind, one.k): _half_width(one) for family in families(table) for one in family.series}
    limits = any(row.get("ratio_to_limit") is not None for row in forecast)
    interval = f"{100 * confidence_of(metadata):g}% interval"
    head = [
        "Window",
        "Seen",
        "Strategy",
        "Standard error, typical",
        "largest",
        f"{interval}\N{NO-BREAK SPACE}\N{PLUS-MINUS SIGN}",
    ]
    head += ["Times the known limit"] if limits else []
    body = (
        [
            str(row.get("window", "")),
            _measure(row),
            str(row.get("strategy", "")),
            _figures_of(row.get("rms")),
            _figures_of(row.get("max")),
            _figures_of(row.get("half_width") or widths.get((row.get("window"), row.get("measure"), row.get("k")))),
            *([_figures_of(row.get("ratio_to_limit"))] if limits else []),
        ]
        for row in forecast
    )
    return (
        '<section aria-labelledby="errors"><h2 id="errors">How precise the numbers are</h2>'
        "<p>Known before any data was read, and the same whatever the data. Typical is the root mean square over all "
        "windows of a query, for the interval too, which holds for one window at a time.</p>"
        + _grid(head, body, numeric=range(3, len(head)), label="Errors by query")
        + "".join(f'<p class="note">{escape(str(note))}</p>' for note in metadata.get("notes") or [])
        + "</section>"
    )


def _half_width(series: Series) -> float | None:
    if series.rows.num_rows == 0:
        return None
    widths = (series.numbers("upper") - series.numbers("lower")) / 2
    half = float((widths**2).mean() ** 0.5)
    return half if math.isfinite(half) else None


def _making(metadata: Mapping[str, Any]) -> str:
    head = ["Window", "Measured", "Strategy", "Noise", "Certified sensitivity", "Share of budget"]
    body = (_measurement(row) for row in metadata.get("measurements") or [])
    timeline, versions = metadata.get("timeline") or {}, metadata.get("versions") or {}
    facts = [
        ("Time range", f"{timeline.get('start', '')} to {timeline.get('end', '')} (end not included)"),
        ("Steps", " of ".join(_plain(timeline[key]) for key in ("steps", "step") if key in timeline)),
        ("Released at", _plain(metadata.get("released_at"))),
        ("Release", _plain(metadata.get("release_id"))),
        ("Made with", ", ".join(f"{name} {version}" for name, version in versions.items())),
    ]
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts if value)
    return (
        '<section aria-labelledby="making"><h2 id="making">How it was made</h2>'
        "<p>Exact counts were turned into integers that a strategy combines; noise was drawn once from an exact "
        "sampler, and everything shown is computed from the noisy integers alone. The noise is calibrated to how much "
        "one change of the protected unit can move them: the certified sensitivity, proved in the function named "
        "below it.</p>" + _grid(head, body, numeric=(5,), label="Measurements") + f"<dl>{listed}</dl></section>"
    )


def _measurement(row: Mapping[str, Any]) -> list[str]:
    """The cells of one measurement; what follows a line break in a cell is shown smaller."""
    noise, sensitivity = row.get("noise") or {}, row.get("sensitivity") or {}
    share = row.get("budget_share")
    parameters = ", ".join(f"{name} {_plain(value)}" for name, value in (row.get("parameters") or {}).items())
    thresholds = ", ".join(_plain(k) for k in row.get("thresholds") or [])
    unit = f" ({_plain(noise['unit'])})" if noise.get("unit") not in (None, "", 1) else ""
    return [
        _plain(row.get("window")),
        f"at least {thresholds}" if thresholds else "",
        f"{_plain(row.get('strategy'))}\n{parameters}",
        f"{_plain(noise.get('law'))}\nscale {_plain(noise.get('scale'))}{unit}",
        f"{_plain(sensitivity.get('norm'))} {_plain(sensitivity.get('value'))}\n{_plain(sensitivity.get('proof'))}",
        f"{100 * share:.3g}%" if isinstance(share, (int, float)) else _plain(share),
    ]


def _measure(row: Mapping[str, Any]) -> str:
    k = row.get("k")
    times = "once" if k == 1 else "twice" if k == 2 else f"{k} times"
    return f"{str(row.get('measure', '')).replace('_', ' ')} {times}"


def _figures_of(value: float | None) -> str:
    """An error with three figures; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _plain(value: object) -> str:
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


def _grid(head: Sequence[str], body: Iterable[Sequence[str]], *, numeric: Sequence[int], label: str) -> str:
    """A table whose header cells say what they head, in a box that scrolls sideways by itself on a phone."""
    marks = dict.fromkeys(numeric, ' class="n"')
    top = "".join(f'<th scope="col"{marks.get(at, "")}>{escape(name)}</th>' for at, name in enumerate(head))
    rows = "".join(
        f'<tr><th scope="row">{_cell(row[0])}</th>'
        + "".join(f"<td{marks.get(at, '')}>{_cell(cell)}</td>" for at, cell in enumerate(row[1:], start=1))
        + "</tr>"
        for row in body
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _unbroken_dates(text: str) -> str:
    """Escaped text in which no line ends inside a date."""
    return re.sub(r"\d{4}-\d\d-\d\d", r'<span class="date">\g<0></span>', escape(text))


def _cell(text: str) -> str:
    """Escaped text; a second line smaller, and long dotted names breakable at their dots."""
    first, _, second = text.partition("\n")
    shown = escape(first)
    if second:
        shown += f"<small>{escape(second).replace('.', '.<wbr>') if ' ' not in second else escape(second)}</small>"
    return shown
