"""The planner's page says what `plan` says, at every stop of its sliders; and everyone can use it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser

import dpwindows as dw
from dpwindows.ask.privacy import parse_unit
from dpwindows.ask.queries import parse_window
from dpwindows.plan.unit_errors import asked_of_sliders, unit_errors
from dpwindows.report.planner import planner_page
from tests.report.browser import launch, opened

pytestmark = pytest.mark.xdist_group("chromium")

browser = pytest.fixture(scope="module")(launch)
Budget = dw.PureDP | dw.ApproxDP | dw.ZCDP
STEPS, WEIGHTS = 24, [3.0, 2.0, 1.0]
ASKED = dw.ApproxDP(1.0, 1e-6)


def plan_of(budget: Budget, choice: dict[str, Any], grid: dict[str, Any]) -> dw.Plan:
    """The plan that the sliders stand for, made by itself."""
    measures: list[dict[str, Any]] = [{"at_least": 1}, {"at_least": 3}, {"at_least": 10}]
    windows = map(parse_window, grid["lengths"][choice["length"]])
    return dw.Plan(
        [window.at_least(measures[choice["seen"]]["at_least"]) for window in windows],
        timeline=dw.Timeline.of_steps(choice["horizon"]),
        unit=parse_unit(choice["unit"]),
        budget=budget,
        weights=WEIGHTS,
    )


def page_of(plan: dw.Plan, file: Path) -> dict[str, Any]:
    """The page of a plan in a file, and the choices that are on it."""
    grid = unit_errors(plan)
    forecast = [entry.to_dict() for entry in plan.forecast()]
    file.write_text(planner_page(grid, asked_of_sliders(plan), forecast), encoding="utf-8")
    return grid


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Days and weeks, which are measured together, and cumulative counts."""
    plan = dw.Plan(
        [dw.Rolling(2), dw.Rolling(7), dw.Cumulative()],
        timeline=dw.Timeline.of_steps(STEPS),
        unit=dw.EventLevel(),
        budget=ASKED,
        weights=WEIGHTS,
    )
    assert [one.series for one in plan.allotments] == [0, 1, None]
    file = tmp_path_factory.mktemp("planner") / "plan.html"
    return file, page_of(plan, file)


def choices(grid: dict[str, Any], count: int, rng: np.random.Generator) -> list[tuple[Budget, dict[str, Any]]]:
    """Places of the sliders, the one that the page opens with first, and the budget of each."""
    own = grid["lengths"].index(["rolling:2", "rolling:7", "cumulative"])
    found: list[tuple[Budget, dict[str, Any]]] = [
        (ASKED, {"unit": "event", "horizon": STEPS, "length": own, "seen": 0})
    ]
    while len(found) < count:
        amount = float(np.exp(rng.uniform(np.log(0.05), np.log(10))))
        budgets = (dw.PureDP(amount), dw.ZCDP(amount), dw.ApproxDP(amount, float(10 ** rng.uniform(-10, -4))))
        places = {
            "unit": str(rng.choice(grid["units"])),
            "horizon": int(rng.choice(grid["horizons"])),
            "length": int(rng.integers(len(grid["lengths"]))),
            "seen": int(rng.integers(len(grid["counted"]))),
        }
        found.append((budgets[rng.integers(3)], places))
    return found


def with_budget(budget: Budget, choice: dict[str, Any]) -> dict[str, Any]:
    stated = budget.to_dict()
    amount = stated.get("epsilon") or stated["rho"]
    return choice | {"budget": {"kind": stated["kind"], "amount": amount, "delta": stated.get("delta", 1e-6)}}


def compare(browser: Browser, planner: tuple[Path, dict[str, Any]], count: int, seed: int) -> int:
    """Compare what the page says with what `plan` does; returns how many plans measure windows together."""
    file, grid = planner
    asked = choices(grid, count, np.random.default_rng(seed))
    with opened(browser, file) as shown:
        told = shown.page.evaluate(
            "all => all.map((asked) => planner.planned(asked))", [with_budget(*one) for one in asked]
        )
    together = 0
    for (budget, choice), rows in zip(asked, told, strict=True):
        plan = plan_of(budget, choice, grid)
        together += any(one.series is not None for one in plan.allotments)
        limited = choice["unit"] == "event"
        for allotment, row in zip(plan.allotments, rows, strict=True):
            (measure,) = allotment.query.measures
            limit = plan._limit(allotment, measure) if limited else None
            entry = allotment.forecast(measure, plan.confidence, limit)
            assert row["window"] == entry.window
            assert row["measure"] == str(measure)
            assert row["law"] == entry.noise
            # Three figures are shown; under a large epsilon a plan pays a few parts in 1e5 for noise on whole numbers.
            assert row["error"] == pytest.approx(entry.rms, rel=1e-4), (budget, choice)
            assert row["limit"] == (None if limit is None else pytest.approx(limit, rel=1e-4)), (budget, choice)
    return together


def test_the_page_says_what_plan_says(browser: Browser, planner: tuple[Path, dict[str, Any]]) -> None:
    assert compare(browser, planner, 40, seed=6) >= 3


def test_the_page_opens_with_the_plan(browser: Browser, planner: tuple[Path, dict[str, Any]]) -> None:
    with opened(browser, planner[0]) as shown:
        forecast, sliders = (
            [[cell.inner_text() for cell in row.locator("th,td").all()] for row in table.locator("tbody tr").all()]
            for table in shown.page.locator("table").all()
        )
    assert [row[:3] for row in forecast] == [row[:3] for row in sliders]
    assert [row[5] for row in forecast] == [row[5] for row in sliders]


def test_the_budget_it_finds_gives_the_error_asked_for(browser: Browser, planner: tuple[Path, dict[str, Any]]) -> None:
    file, grid = planner
    ((budget, choice),) = choices(grid, 1, np.random.default_rng(1))
    with opened(browser, file) as shown:
        epsilon = shown.page.evaluate("asked => planner.budgetFor(asked, 25)", with_budget(budget, choice))
    worst = max(entry.rms for entry in plan_of(dw.ApproxDP(epsilon, 1e-6), choice, grid).forecast())
    assert worst == pytest.approx(25, rel=1e-3)


def test_everyone_can_use_it(browser: Browser, planner: tuple[Path, dict[str, Any]]) -> None:
    with opened(browser, planner[0], width=360, scheme="dark") as shown:
        assert shown.violations() == []
        shown.page.emulate_media(color_scheme="light")
        assert shown.violations() == []
        assert shown.page.evaluate("document.documentElement.scrollWidth") == 360
        usable, reached = shown.reached_by_keys()
        assert len(usable) > 8
        assert reached == usable
        before = shown.text("#planner table")
        shown.page.focus("#amount")
        for _ in range(20):
            shown.page.keyboard.press("ArrowLeft")
        assert shown.text("#planner table") != before
        assert "gives a typical standard error of at most 1 % at a count of 10,000" in shown.text(".answer")
        shown.page.select_option("#kind", "pure")
        assert not shown.page.locator("#delta").is_visible()
        assert "Laplace" in shown.text("#planner table")
