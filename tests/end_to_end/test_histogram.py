"""Frequency histograms: how many items were seen once, twice, ... in each window, at every unit and window family."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import dpwindows as dw
from dpwindows.ask.queries import Measure
from dpwindows.errors import InputError
from tests.brute_force import count_at_least
from tests.end_to_end.command_line import run

pytestmark = pytest.mark.usefixtures("one_engine")

STEPS = 9
WINDOWS = ("cumulative", "rolling:3", "any:4")
UNITS = ("event", "item-per:2", "item", "item-add-remove")
RANGE = ("--start", "0", "--end", str(STEPS), "--step", "1")


@pytest.fixture(scope="module")
def log() -> list[tuple[str, int, int]]:
    draw = random.Random(14)
    return [(f"u{draw.randrange(12)}", draw.randint(1, STEPS), 1) for _ in range(70)]


@pytest.fixture
def events(log: list[tuple[str, int, int]], tmp_path: Path) -> Path:
    path = tmp_path / "events.csv"
    path.write_text("who,at\n" + "".join(f"{item},{step - 1}\n" for item, step, _ in log))
    return path


@pytest.mark.quick(1)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("privacy", [("--epsilon", "1e9", "--delta", "1e-6"), ("--epsilon", "1e9")], ids=str)
def test_without_noise_the_histogram_is_that_of_the_log(
    log: list[tuple[str, int, int]], events: Path, tmp_path: Path, unit: str, privacy: tuple[str, ...]
) -> None:
    out = tmp_path / "out.parquet"
    windows = [part for window in WINDOWS for part in ("--window", window)]
    asked = (*windows, "--histogram", "4", "--unit", unit, *privacy)
    run("release", events, "--item", "who", "--time", "at", *RANGE, *asked, "-o", out).must_work()
    rows = dw.Release.load(out).to_arrow().to_pylist()
    assert {(row["measure"], row["k"]) for row in rows} == {
        *(("at_least", k) for k in (1, 2, 3, 4)),
        *(("exactly", k) for k in (1, 2, 3)),
    }
    for row in rows:
        first, last, k = row["first_step"], row["last_step"], row["k"]
        above = count_at_least(log, k + 1, first, last) if row["measure"] == "exactly" else 0
        assert round(row["estimate"]) == count_at_least(log, k, first, last) - above


def test_what_is_asked_is_short_for_its_measures_and_means_the_same_to_a_ledger(events: Path, tmp_path: Path) -> None:
    spelled = dw.Rolling(3).at_least(1, 2, 3).exactly(1, 2)
    assert dw.Rolling(3).histogram(3) == spelled
    assert spelled.measures == tuple(Measure("at_least", k) for k in (1, 2, 3)) + tuple(
        Measure("exactly", k) for k in (1, 2)
    )
    privacy = ("--unit", "event", "--epsilon", "1")
    ledger = ("--ledger", tmp_path / "ledger", "--dataset", "log")
    run("ledger", "create", *ledger[1:], *privacy).must_work()
    release = ("release", events, "--item", "who", "--time", "at", *RANGE, "--window", "rolling:3", *privacy, *ledger)
    run(*release, "--histogram", "2", "-o", tmp_path / "one.parquet").must_work()
    again = run(*release, "--at-least", "1", "--at-least", "2", "--exactly", "1", "-o", tmp_path / "two.parquet")
    again.must_work()
    assert "Nothing was spent" in again.err


def test_a_stream_plans_a_histogram_without_end() -> None:
    plan = dw.StreamPlan(dw.Rolling(7).histogram(5), unit=dw.EventLevel(), budget=dw.ApproxDP(1.0, 1e-6))
    assert plan.thresholds == (1, 2, 3, 4, 5)
    assert len(plan.forecast()) == 9


@pytest.mark.slow
def test_ten_counts_of_a_year_cost_what_one_costs_each_by_itself() -> None:
    plan = dw.Plan(
        dw.Rolling(28).histogram(10),
        timeline=dw.Timeline.of_steps(365),
        unit=dw.EventLevel(),
        budget=dw.ApproxDP(1.0, 1e-6),
    )
    assert plan.thresholds == tuple(range(1, 11))
    # Of one window's counts one occurrence changes one: 28 windows are met, whatever the number of thresholds.
    assert plan.allotments[0].measurement.design.sensitivity == 28 * 4**24
    forecast = plan.forecast()
    assert max(entry.max for entry in forecast if entry.measure == "at_least") < 22.4
    assert max(entry.max for entry in forecast if entry.measure == "exactly") < 31.7
    limits = [entry.limit or 0.0 for entry in forecast if entry.measure == "at_least"]
    assert 10 < limits[0] <= limits[-1] < 22.4
    assert limits == sorted(limits)


@pytest.mark.parametrize("most", [1, 0, -3, 101, 2.5, True, None])
def test_other_sizes_are_refused(most: int) -> None:
    with pytest.raises(InputError, match="a histogram needs a whole number from 2 to 100"):
        dw.Cumulative().histogram(most)


def test_the_command_line_refuses_them_too() -> None:
    asked = ("plan", "--window", "any", "--unit", "event", "--epsilon", "1", "--steps", "9", "--histogram")
    run(*asked, "1").must_refuse("a histogram needs a whole number from 2 to 100")
    run(*asked, "100").must_work()
