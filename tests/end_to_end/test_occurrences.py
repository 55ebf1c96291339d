"""Occurrences on the command line: planned, released, asked about and shown, or refused with nothing spent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.command_line import run

pytestmark = pytest.mark.usefixtures("one_engine", "seeded_noise")

ALMOST_EXACT = ("--unit", "event", "--rho", "1e6")
COLUMNS = ("--item", "who", "--time", "at", "--start", "0", "--step", "1")
BOTH = ("--window", "any", "--at-least", "1", "--occurrences")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text("who,at,n\na,0,3\na,0,1\nb,1,1\nb,2,5\nc,2,1\n")
    return path


def test_average_frequency_from_a_log_to_a_page(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    run("release", log, *COLUMNS, "--end", "4", "--count", "n", *BOTH, *ALMOST_EXACT, "-o", out).must_work()
    rows = json.loads(out.read_text())["rows"]
    found = {
        (row["first_step"], row["last_step"]): (round(row["estimate"]), row["consistent"])
        for row in rows
        if row["measure"] == "occurrences"
    }
    assert found[1, 1] == (4, 4)
    assert found[2, 3] == (7, 7)
    assert found[1, 4] == (11, 11)
    assert {row["k"] for row in rows if row["measure"] == "occurrences"} == {None}
    said = run("count", out, "0", "3", "--occurrences").must_work().out
    assert said.startswith("11.0 (95% interval")
    over = ("--over", "0", "3", "--over-at-least", "1")
    ratio = json.loads(run("count", out, "0", "3", "--occurrences", *over, "--json").must_work().out)
    assert ratio["estimate"] == pytest.approx(11 / 3, abs=0.02)
    assert ratio["lower"] < 11 / 3 < ratio["upper"]
    page = tmp_path / "page.html"
    run("report", out, "-o", page).must_work()
    assert "occurrences" in page.read_text()
    assert "None" not in page.read_text()


def test_plans_name_occurrences_and_come_back(tmp_path: Path) -> None:
    saved = tmp_path / "plan.toml"
    asked = ("plan", "--steps", "30", *BOTH, "--unit", "item", "--max-occurrences", "4", "--rho", "1")
    first = run(*asked, "--save", saved).must_work()
    assert "occurrences" in first.out
    assert "None" not in first.out
    told = json.loads(run("plan", "--plan", saved, "--json").must_work().out)["queries"]
    assert [(entry["measure"], entry["k"]) for entry in told] == [("at_least", 1), ("occurrences", None)]
    assert told[1]["ratio_to_limit"] >= 1


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        (("item",), "needs --max-occurrences N"),
        (("item-per:2", "--max-occurrences", "3"), "goes with --unit item or item-add-remove"),
        (("item-per:2",), "costs as much as hiding the whole item"),
        (("item", "--max-occurrences", "3", "--by", "who", "--values", "a"), "do not go with --by"),
    ],
)
def test_what_has_no_bound_changes_nothing(unit: tuple[str, ...], message: str, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    run("release", log, *COLUMNS, "--end", "4", *BOTH, "--unit", *unit, "--epsilon", "1", "-o", out).must_refuse(
        message
    )
    assert not out.exists()


def test_a_stream_releases_them_step_by_step(log: Path, tmp_path: Path) -> None:
    state, out = tmp_path / "state", tmp_path / "rows.csv"
    asked = ("--window", "rolling:2", "--occurrences", *ALMOST_EXACT)
    run("stream", "create", state, *COLUMNS, "--count", "n", *asked).must_work()
    run("stream", "advance", state, log, "--through", "3", "-o", out).must_work()
    first, second = ("0", "2"), ("1", "3")
    assert run("count", out, *first, "--occurrences").must_work().out.startswith("5.0 (95% interval")
    assert run("count", out, *second, "--occurrences").must_work().out.startswith("7.0 (95% interval")
