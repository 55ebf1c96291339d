"""A release as one HTML page that loads nothing: what it says first, then any two dates, charts, and the promise.

The page carries all released numbers (`pack`) and the few hundred lines of script that draw and look them up
(`web/`), and a content security policy that forbids the browser to fetch anything: it can be mailed, archived and
opened offline. Text from the metadata is escaped wherever it lands.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from html import escape
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.errors import percent
from dpwindows.report.clock import Clock
from dpwindows.report.facts import definition, versions
from dpwindows.report.figures import MOST_FIGURES, figures, last_numbers
from dpwindows.report.headlines import headlines, widest_factor
from dpwindows.report.html import document, grid, script, unbroken_dates
from dpwindows.report.pack import pack
from dpwindows.report.series import ALL, Family, Series, families
from dpwindows.report.words import NOUN, TO_QUOTE, confidence_of, forecast_grid, plain

_SCRIPTS = ("numbers.js", "charts.js", "explore.js", "table.js", "report.js")
_TABLE_ROWS = 40
_FITTED = (
    " Numbers made consistent add up and never cross. Each takes in what the numbers around it say, so it may lie "
    "outside the interval of its own estimate; it is for tables, and has no interval of its own."
)
_SYMBOLS = {
    "epsilon": "\N{GREEK SMALL LETTER EPSILON}",
    "delta": "\N{GREEK SMALL LETTER DELTA}",
    "rho": "\N{GREEK SMALL LETTER RHO}",
}


def page(table: pa.Table, metadata: Mapping[str, Any], *, title: str | None = None, noun: str = NOUN) -> str:
    """Write the report of a release: a whole HTML document that refers to nothing outside itself.

    `title` stands above it, by default what is counted from when to when; `noun` is what items are called. All rows of
    the table are on the page; of more than about three million the windows of `any` families are thinned, and the page
    says so.
    """
    found, clock = families(table), Clock.of(table, metadata)
    title = title or _title(table, clock, noun)
    parts = [f"<header><h1>{unbroken_dates(title)}</h1>{_lede(table, clock, metadata)}</header>"]
    if found:
        parts += [_headlines(found, clock, metadata, noun), *_numbers(found, clock, metadata, noun)]
    else:
        parts.append("<p>This release holds no rows.</p>")
    parts += [_guarantee(metadata), _errors(found, metadata), _making(metadata)]
    return document(title, "".join(parts), scripts=_SCRIPTS if found else ())


def _title(table: pa.Table, clock: Clock, noun: str) -> str:
    if table.num_rows == 0:
        return "Private counts in time windows"
    bounds = (
        table.select(["start", "end"]).group_by([], use_threads=False).aggregate([("start", "min"), ("end", "max")])
    )
    start = clock.starts(clock.wall(bounds["start_min"]))[0]
    end = clock.ends(clock.wall(bounds["end_max"]))[0]
    counted = f"distinct {noun}" if table["k"].null_count < table.num_rows else "occurrences"
    return f"How many {counted}, from {start} {clock.until} {end}"


def _lede(table: pa.Table, clock: Clock, metadata: Mapping[str, Any]) -> str:
    zone = f" Times are those of {clock.zone}." if clock.zone else ""
    if clock.epoch:
        zone = f" Times in the release are whole numbers, read here as {clock.epoch} since 1970 and shown in UTC."
    confidence = f"{percent(confidence_of(metadata), 6)}"
    biased = (pc.max(table["bias_bound"]).as_py() or 0) > 0
    average = "right on average, but for the bias bound beside them" if biased else "right on average"
    text = (
        "Counts from an event log, published under differential privacy: random noise was added to every number. "
        f"Estimates are {average}; the interval beside each contains the true count in {confidence} of cases.{zone}"
    )
    return f'<p class="lede">{escape(text)} <a href="#guarantee">What is guaranteed</a></p>'


def _headlines(found: list[Family], clock: Clock, metadata: Mapping[str, Any], noun: str) -> str:
    said = headlines(found, clock, metadata, noun)
    if not said:
        return ""
    listed = "".join(f"<li>{unbroken_dates(one.text)}</li>" for one in said)
    note = (
        f"All of this holds together with {percent(confidence_of(metadata), 6)} certainty: "
        "the ranges are wider than the intervals of single numbers below."
    )
    return (
        '<section class="headlines" aria-labelledby="headlines"><h2 id="headlines">At a glance</h2>'
        f'<ul>{listed}</ul><p class="note">{note}</p></section>'
    )


def _numbers(found: list[Family], clock: Clock, metadata: Mapping[str, Any], noun: str) -> list[str]:
    """Everything that is drawn from the packed numbers, the main series first, and the numbers."""
    packed = pack(found, clock)
    confidence = confidence_of(metadata)
    stated = {
        **packed.index,
        "confidence": f"{percent(confidence, 6)}",
        "noun": noun,
        # For the difference of two windows: no sum of Gaussian or of Laplace noise has a wider quantile.
        "factor": widest_factor(1 - confidence, metadata, [family.window for family in found]),
    }
    everywhere = any(family.name == "any" for family in found)
    fitted = any(column[0] == "consistent" for column in packed.index["columns"])
    absent = "<noscript>More of this needs JavaScript; it fetches nothing.</noscript>"
    thinned = (
        f'<p class="note">This page holds the windows of one end in {packed.every_end} of the <code>any</code> family; '
        "all of them are in the released file.</p>"
        if packed.every_end > 1
        else ""
    )
    switch = (
        '<p class="controls screen"><label><input type="checkbox" id="consistent" checked> Draw the numbers made '
        "consistent with one another.</label> Errors and intervals are those of the raw estimates.</p>"
        if fitted
        else ""
    )
    left_out = len(found) - MOST_FIGURES
    drawn = figures(found, clock, metadata, noun)
    charts = [figure.html(f"figure-{at}") for at, figure in enumerate(drawn)]
    main = next((at for at, figure in enumerate(drawn) if figure.panels[0].along == "time"), None)
    first = [] if main is None else [charts.pop(main)]
    return [
        *first,
        switch,
        f'<section aria-labelledby="explore-title"><h2 id="explore-title">'
        f'{"Any two dates" if everywhere else "One window"}</h2><div id="explore">{absent}</div>{thinned}'
        f'<p class="note">{escape(TO_QUOTE)}{_FITTED if fitted else ""}</p></section>',
        *charts,
        f'<p class="note">{left_out:,} more charts are not drawn; their numbers are in the table.</p>'
        if left_out > 0
        else "",
        '<section aria-labelledby="table-title"><h2 id="table-title">All numbers</h2><div id="table">'
        + last_numbers(found, clock, metadata, _TABLE_ROWS)
        + f"{absent}</div>"
        '<p class="note">Rounded to the digits that their error leaves meaning; the released file has them all.</p>'
        "</section>",
        script("index", "application/json", json.dumps(stated, separators=(",", ":"), allow_nan=False)),
        script("numbers", "text/plain", packed.text),
    ]


def _guarantee(metadata: Mapping[str, Any]) -> str:
    unit, said = metadata["unit"], str(metadata["guarantee"])
    promise = str(unit["promise"])
    sentences = [
        f"{promise.split(';')[0].rstrip('.')}.",
        f"How nearly the same: {_budget_words(metadata)}, for everything on this page together, whatever else an "
        "attacker knows.",
        "Other releases about the same log spend further budget.",
    ]
    folded = [said] if promise in said else [promise, said]
    if metadata["singleton"] and "at most one event" not in said:
        folded.append("It rests on a public promise about the log: at most one event in each step.")
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in folded)
    name = f'<p class="note">Unit of privacy: <b>{escape(str(unit["name"]))}</b></p>'
    return (
        '<section class="guarantee" aria-labelledby="guarantee"><h2 id="guarantee">What is guaranteed</h2>'
        f"<p>{escape(' '.join(sentences))}</p>{name}"
        f"<details><summary>In full</summary>{paragraphs}</details></section>"
    )


def _budget_words(metadata: Mapping[str, Any]) -> str:
    budget = metadata["budget"]
    values = ", ".join(f"{symbol} = {plain(budget[key])}" for key, symbol in _SYMBOLS.items() if budget.get(key))
    return f"{definition(metadata)} with {values}"


def _errors(found: list[Family], metadata: Mapping[str, Any]) -> str:
    held = {_named(one): _rms(one.numbers("std_error")) for family in found for one in family.series}
    rows = [
        {**row, "released": held.get((row["window"], row["measure"], row["k"], tuple(row.get("by") or ())))}
        for row in metadata["forecast"]
    ]
    return (
        '<section aria-labelledby="errors"><h2 id="errors">How precise the numbers are</h2>'
        "<p>These errors were forecast before any data was read, and are the same whatever the data. Each is the root "
        "mean square over all windows of a query, and so is the half width of the interval. An interval holds for one "
        "window at a time.</p>"
        + forecast_grid(rows, confidence_of(metadata))
        + "".join(f'<p class="note">{escape(str(note))}</p>' for note in metadata["notes"])
        + "</section>"
    )


def _named(one: Series) -> tuple[str, str, int | None, tuple[str, ...]]:
    """What a series is in a forecast: groups of the same columns err alike."""
    return one.window, one.kind, one.k, tuple(name for name, value in one.groups if value != ALL)


def _rms(values: Any) -> float | None:
    found = float((values**2).mean() ** 0.5) if len(values) else math.nan
    return found if math.isfinite(found) else None


def _making(metadata: Mapping[str, Any]) -> str:
    head = ["Window", "Measured", "Strategy", "Noise", "Certified sensitivity", "Share of budget"]
    body = (_measurement(row) for row in metadata["measurements"])
    timeline = metadata["timeline"]
    facts = [
        ("Time range", f"{timeline['start']} to {timeline['end']} (end not included)"),
        ("Steps", f"{plain(timeline['steps'])} of {plain(timeline['step'])}"),
        ("Released at", plain(metadata["released_at"])),
        ("Release", plain(metadata["release_id"])),
        ("Made with", versions(metadata)),
    ]
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return (
        '<section aria-labelledby="making"><h2 id="making">How it was made</h2>'
        "<details><summary>Strategies, noise, proofs and versions</summary>"
        "<p>Exact counts were turned into integers that a strategy combines; noise was drawn once from an exact "
        "sampler, and everything shown is computed from the noisy integers alone. The noise is calibrated to how much "
        "one change of the protected unit can move them: the certified sensitivity, proved in the function named "
        "below it.</p>"
        + grid(head, body, numeric=(5,), label="Measurements")
        + f"<dl>{listed}</dl></details></section>"
    )


def _measurement(row: Mapping[str, Any]) -> list[str]:
    """The cells of one measurement; what follows a line break in a cell is shown smaller."""
    noise, sensitivity = row["noise"], row["sensitivity"]
    parameters = ", ".join(f"{name} {plain(value)}" for name, value in row["parameters"].items())
    parameters += f"; as one: {', '.join(map(plain, row['together']))}" if row.get("together") else ""
    return [
        plain(row["window"]),
        f"at least {', '.join(map(plain, row['thresholds']))}" if row["thresholds"] else "occurrences",
        f"{plain(row['strategy'])}\n{parameters}",
        f"{plain(noise['law'])}\nscale {plain(noise['scale'])} ({plain(noise['unit'])})",
        f"{plain(sensitivity['norm'])} {plain(sensitivity['value'])}\n{plain(sensitivity['proof'])}",
        f"{100 * row['budget_share']:.3g}%",
    ]
