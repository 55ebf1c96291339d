"""Frequency histograms: how many items were seen once, twice, ... in each window, as what they are short for."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpwindows as dw
from dpwindows.ask.queries import Measure
from dpwindows.errors import InputError
from tests.end_to_end.command_line import run
from tests.plans import plan_of

pytestmark = pytest.mark.usefixtures("one_engine")

RANGE = ("--start", "0", "--end", "9", "--step", "1")


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.csv"
    path.write_text("who,at\nann,1\nbob,3\nann,8\n")
    return path


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
    plan = plan_of(dw.Rolling(28).histogram(10), steps=365, unit=dw.EventLevel(), budget=dw.ApproxDP(1.0, 1e-6))
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
    with pytest.raises(InputError, match="histogram must be a whole number from 2 to 100"):
        dw.Cumulative().histogram(most)


def test_the_command_line_refuses_them_too() -> None:
    asked = ("plan", "--window", "any", "--unit", "event", "--epsilon", "1", "--steps", "9", "--histogram")
    run(*asked, "1").must_refuse("histogram must be a whole number from 2 to 100")
    run(*asked, "100").must_work()
