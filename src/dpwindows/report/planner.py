"""The planner page: sliders for budget, unit, windows and horizon, and the error that follows, in one file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from dpwindows.report.html import document, script
from dpwindows.report.words import forecast_grid

_SCRIPTS = ("numbers.js", "charts.js", "planner.js")


def planner_page(errors: Mapping[str, Any], asked: Mapping[str, Any], forecast: Sequence[Mapping[str, Any]]) -> str:
    """Write the page of a plan: a whole HTML document that refers to nothing outside itself.

    `errors` are the choices of `plan.unit_errors`. `asked` says where the sliders begin (`kind` of budget, its
    `amount`, `delta`, `unit`, `horizon` and `length`), and in its `sentence` what was asked; `forecast` is the plan's
    own, as plain values.
    """
    stated = {**errors, "asked": {key: value for key, value in asked.items() if key != "sentence"}}
    body = (
        "<header><h1>What will the error be?</h1>"
        f'<p class="lede">{escape(str(asked["sentence"]))} Everything here is known before any data is read.</p>'
        "</header>"
        '<section aria-labelledby="plan"><h2 id="plan">The plan as asked</h2>'
        + forecast_grid(forecast)
        + '</section><section aria-labelledby="try"><h2 id="try">Try other choices</h2><div id="planner">'
        "<noscript>The sliders need JavaScript; it fetches nothing.</noscript></div>"
        '<p class="note">Every number is the one that <code>dpwindows plan</code> gives for the choices shown, with '
        "the budget shared out as asked. The least error is a proved bound, under a pure budget "
        "for any noise, else for Gaussian noise, which Laplace noise may be below; a dash: it is not worked out here. "
        "Expected counts are your own guess: nothing here comes from data.</p></section>"
        + script("grid", "application/json", json.dumps(stated, separators=(",", ":"), allow_nan=False))
    )
    return document("What will the error be?", body, scripts=_SCRIPTS)
