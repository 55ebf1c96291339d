"""`plan --expect`: errors relative to a typical count, and budgets that promise little."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.command_line import run

pytestmark = pytest.mark.usefixtures("one_engine")

PLAN = ("plan", "--window", "rolling:3", "--at-least", "1", "--at-least", "2", "--unit", "event", "--steps", "9")


def test_relative_errors_are_errors_over_the_count() -> None:
    asked = (*PLAN, "--epsilon", "1", "--delta", "1e-6")
    answer = json.loads(run(*asked, "--expect", "250", "--json").out)
    assert answer["expect"] == 250
    for query in answer["queries"]:
        assert query["relative_rms"] == query["rms"] / 250
        assert query["relative_max"] == query["max"] / 250
        assert query["relative_half_width"] == query["half_width"] / 250
    plain = json.loads(run(*asked, "--json").out)
    assert "relative_rms" not in plain["queries"][0]
    shown = run(*asked, "--expect", "250").out
    assert "of 250" in shown
    assert "of 250" not in run(*asked).out
    assert f"{answer['queries'][0]['rms'] / 250:.2%}" in shown


@pytest.mark.parametrize("expect", ["0", "-1", "nan", "inf"])
def test_no_count_is_refused(expect: str) -> None:
    run(*PLAN, "--epsilon", "1", "--expect", expect).must_refuse("--expect")


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (("--epsilon", "10.5"), "epsilon 10.5 is above 10"),
        (("--epsilon", "1", "--delta", "0.002"), "delta 0.002 is above 0.001"),
        (("--epsilon", "1", "--delta", "1e-4", "--expect", "20000"), "above one over the 20,000 that you expect"),
    ],
)
def test_budgets_that_promise_little_are_told_of_once(budget: tuple[str, ...], said: str) -> None:
    outcome = run(*PLAN, *budget).must_work()
    assert outcome.err.count("Warning: ") == 1
    assert said in outcome.err
    assert "Warning" not in outcome.out


@pytest.mark.parametrize("budget", [("--epsilon", "10"), ("--epsilon", "1", "--delta", "1e-3"), ("--rho", "1")])
def test_usual_budgets_are_not(budget: tuple[str, ...]) -> None:
    assert "Warning" not in run(*PLAN, *budget, "--expect", "1000").err


def test_a_release_says_so_too(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("who,at\na,2013-01-01\n")
    asked = ("--item", "who", "--time", "at", "--start", "2013-01-01", "--end", "2013-01-04", "--unit", "event")
    out = tmp_path / "out.json"
    outcome = run("release", log, *asked, "--window", "cumulative", "--epsilon", "12", "-o", out).must_work()
    assert outcome.err.count("Warning: epsilon 12") == 1
