"""What a notebook shows of plans, ledgers and streams: small, and drawn without a word on the console."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Browser

import dpwindows as dw
from dpwindows.report.notebook import release_html
from tests.report.browser import Shown, context_of, launch
from tests.report.made_up import EVIL, SHAPES, about

pytestmark = pytest.mark.xdist_group("chromium")

browser = pytest.fixture(scope="module")(launch)
QUERIES = [dw.Rolling(7).at_least(1, 3), dw.Cumulative().at_least(1)]
SVG = "http://www.w3.org/2000/svg"


@pytest.fixture(scope="module")
def plan() -> dw.Plan:
    return dw.Plan(QUERIES, timeline=dw.Timeline.of_steps(30), unit=dw.EventLevel(), budget=dw.ZCDP(0.5))


@pytest.fixture
def ledger(tmp_path: Path) -> dw.Ledger:
    return dw.Ledger.create(tmp_path / "book.ledger", "visits", budget=dw.ZCDP(1.0), unit=dw.EventLevel())


@pytest.fixture
def stream(tmp_path: Path) -> dw.Stream:
    plan = dw.StreamPlan(QUERIES, unit=dw.EventLevel(), budget=dw.ZCDP(0.5), horizon=30)
    return dw.Stream.create(tmp_path / "state", plan, item="who", time="at", start=0, step=1)


def check(shown: str) -> None:
    """Small, self-contained, and a table in any case."""
    assert len(shown.encode()) < 300_000
    assert "<table>" in shown
    assert "://" not in shown.replace(SVG, "")


def test_plans_and_forecasts_show_their_errors(plan: dw.Plan) -> None:
    entries = plan.forecast()
    assert entries == list(entries)
    for shown in (plan._repr_html_(), entries._repr_html_()):
        check(shown)
        for entry in entries:
            assert f"{entry.rms:.3g}" in shown
    assert repr(plan)[:30] in plan._repr_html_()


def test_a_ledger_shows_what_is_left(ledger: dw.Ledger) -> None:
    shown = ledger._repr_html_()
    check(shown)
    assert "visits" in shown
    assert shown.count("rho 1") == 2


def test_a_stream_shows_the_forecast_and_then_its_release(stream: dw.Stream) -> None:
    before = stream._repr_html_()
    check(before)
    assert "No step is closed yet." in before
    stream.advance(pa.table({"who": [1, 2, 1], "at": [0, 1, 2]}), 4)
    after = stream._repr_html_()
    check(after)
    assert "released numbers" in after
    stream.close()


def test_text_from_elsewhere_stays_text() -> None:
    table = SHAPES["rolling"].set_column(0, "window", pa.array([EVIL] * 40))
    assert "<img" not in release_html(table, about(guarantee=EVIL))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_drawn_and_answer_to_keys(browser: Browser, plan: dw.Plan, tmp_path: Path, scheme: str) -> None:
    cells = [release_html(SHAPES[name], about()) for name in ("two measures", "any", "integer time")]
    cells.append(plan.forecast()._repr_html_())
    colours = {"light": "white;color:#222", "dark": "#111;color:#eee"}[scheme]
    body = f'<html lang="en"><title>x</title><body style="background:{colours}"><main>{"".join(cells)}</main>'
    (tmp_path / "book.html").write_text(f'<meta charset="utf-8">{body}', encoding="utf-8")
    context = context_of(browser, viewport={"width": 800, "height": 900})
    shown = Shown(context.new_page())
    shown.page.on("console", lambda message: shown.complaints.append(message.text))
    shown.page.on("pageerror", lambda error: shown.complaints.append(str(error)))
    shown.page.goto((tmp_path / "book.html").as_uri())
    shown.page.wait_for_function("document.querySelectorAll('.chart[role=slider]').length === 3")
    charts = shown.page.locator(".chart").all()
    assert len(charts) == 3
    assert shown.page.locator(".bars .track i").count() == len(plan.forecast())
    for chart in charts:
        chart.focus()
        shown.page.keyboard.press("Home")
        first = chart.get_attribute("aria-valuetext")
        shown.page.keyboard.press("ArrowRight")
        assert "standard error" in str(first)
        assert chart.get_attribute("aria-valuetext") != first
    assert shown.complaints == []
    # Several cells on one page: what is unique in each need not be among them.
    assert [one for one in shown.violations() if not one.startswith(("heading", "page-has", "landmark-unique"))] == []
    context.close()
