"""The planner's page says what the library says, for choices that are not on its grid; and everyone can use it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser

import dpwindows as dw
from dpwindows.ask.privacy import parse_unit
from dpwindows.plan.unit_errors import asked_of_sliders, unit_errors
from dpwindows.report.planner import TOLERANCE, planner_page
from tests.report.browser import launch, opened

pytestmark = pytest.mark.xdist_group("chromium")

browser = pytest.fixture(scope="module")(launch)
STEPS, LENGTH = 48, 12


def plan_of(
    budget: dw.PureDP | dw.ApproxDP | dw.ZCDP,
    unit: str = "event",
    steps: int = STEPS,
    length: int = LENGTH,
    k: int = 1,
) -> dw.Plan:
    asked = [dw.Rolling(length).at_least(k), dw.Cumulative().at_least(k)]
    return dw.Plan(
        asked, timeline=dw.Timeline.of_steps(steps), unit=parse_unit(unit), budget=budget, weights=[2.0, 1.0]
    )


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = plan_of(dw.ApproxDP(1.0, 1e-6))
    file = tmp_path_factory.mktemp("planner") / "plan.html"
    forecast = [entry.to_dict() for entry in plan.forecast()]
    file.write_text(planner_page(unit_errors(plan), asked_of_sliders(plan), forecast), encoding="utf-8")
    return file


def a_budget(rng: np.random.Generator) -> dw.PureDP | dw.ApproxDP | dw.ZCDP:
    amount = float(np.exp(rng.uniform(np.log(0.05), np.log(10))))
    kinds = (dw.PureDP(amount), dw.ZCDP(amount), dw.ApproxDP(amount, float(10 ** rng.uniform(-10, -4))))
    return kinds[rng.integers(3)]


def choices(rng: np.random.Generator, count: int) -> list[tuple[dw.Plan, dict[str, Any]]]:
    """Plans, and what the page is asked for the same."""
    found = []
    for _ in range(count):
        budget = a_budget(rng)
        unit = ("event", "item")[rng.integers(2)]
        steps, length = int(rng.integers(STEPS // 2, 2 * STEPS + 1)), int(rng.integers(LENGTH // 2, LENGTH + 1))
        k = int(rng.integers(1, 11))
        plan = plan_of(budget, unit, steps, length, k)
        stated = budget.to_dict()
        amount = stated.get("epsilon") or stated["rho"]
        spent = {"kind": stated["kind"], "amount": amount, "delta": stated.get("delta", 1e-6)}
        asked = {"unit": unit, "horizon": steps, "length": length, "k": k, "budget": spent}
        found.append((plan, asked))
    return found


def test_errors_off_the_grid_are_the_librarys(browser: Browser, planner: Path) -> None:
    asked = choices(np.random.default_rng(6), 40)
    with opened(browser, planner) as shown:
        told = shown.page.evaluate("all => all.map((asked) => planner.planned(asked))", [one for _, one in asked])
    # Not by `plan.forecast()`, which also finds limits: these are compared on the grid.
    off = [
        abs(found["error"] / allotment.forecast(allotment.query.measures[0], plan.confidence, None).rms - 1)
        for (plan, _), answer in zip(asked, told, strict=True)
        for allotment, found in zip(plan.allotments, answer, strict=True)
    ]
    said = f"median {np.median(off):.2%}, 95 % {np.quantile(off, 0.95):.2%}, worst {max(off):.2%}"
    assert np.quantile(off, 0.95) <= TOLERANCE, said
    assert max(off) <= 2 * TOLERANCE, said


def test_on_the_grid_they_agree_to_five_digits(browser: Browser, planner: Path) -> None:
    asked = []
    for budget in (dw.PureDP(0.7), dw.ZCDP(0.2), dw.ApproxDP(0.3, 1e-7), dw.ApproxDP(6.0, 1e-9)):
        stated = budget.to_dict()
        spent = {"kind": stated["kind"], "amount": stated.get("epsilon") or stated["rho"], "delta": stated.get("delta")}
        asked.append((plan_of(budget), {"unit": "event", "horizon": STEPS, "length": LENGTH, "k": 1, "budget": spent}))
    with opened(browser, planner) as shown:
        told = shown.page.evaluate("all => all.map((asked) => planner.planned(asked))", [one for _, one in asked])
    for (plan, _), answer in zip(asked, told, strict=True):
        for entry, found in zip(plan.forecast(), answer, strict=True):
            assert found["error"] == pytest.approx(entry.rms, rel=1e-5)
            assert (found["limit"] is None) == (entry.limit is None)
            assert entry.limit is None or found["limit"] == pytest.approx(entry.limit, rel=1e-5)


def test_the_budget_it_finds_gives_the_error_asked_for(browser: Browser, planner: Path) -> None:
    choice = {"unit": "event", "horizon": STEPS, "length": LENGTH, "k": 1}
    with opened(browser, planner) as shown:
        epsilon = shown.page.evaluate(
            "asked => planner.budgetFor(asked, 25)",
            choice | {"budget": {"kind": "approximate", "amount": 1.0, "delta": 1e-6}},
        )
    worst = max(entry.rms for entry in plan_of(dw.ApproxDP(epsilon, 1e-6)).forecast())
    assert worst == pytest.approx(25, rel=1e-3)


def test_everyone_can_use_it(browser: Browser, planner: Path) -> None:
    with opened(browser, planner, width=390, scheme="dark") as shown:
        assert shown.violations() == []
        shown.page.emulate_media(color_scheme="light")
        assert shown.violations() == []
        assert shown.page.evaluate("document.documentElement.scrollWidth") == 390
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
