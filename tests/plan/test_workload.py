"""What a release takes: counted exactly, and memory forecast near what was measured, never below it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import dpwindows as dw
from dpwindows.ask.queries import Query, WindowFamily
from dpwindows.plan.workload import Workload, is_solved, least_workload, table_length

# Megabytes at the most of whole releases with consistent numbers, on Linux with Python 3.11 (docs/scaling.md).
MEASURED: list[tuple[WindowFamily, int, int]] = [
    (dw.Rolling(28), 365, 242),
    (dw.AnyWindow(), 365, 385),
    (dw.AnyWindow(), 1000, 361),
    (dw.AnyWindow(60), 10_080, 354),
    (dw.AnyWindow(), 1500, 414),
    (dw.AnyWindow(), 2350, 567),
    (dw.Rolling(28), 500_000, 458),
    (dw.Cumulative(), 2_000_000, 713),
]


@pytest.mark.parametrize(("window", "steps", "measured"), MEASURED, ids=str)
def test_memory_is_forecast_near_what_was_measured_and_never_below(
    window: WindowFamily, steps: int, measured: int
) -> None:
    assert measured <= least_workload([Query(window).at_least(1)], steps).memory / 1e6 <= 1.29 * measured


def test_numbers_are_counted_by_kind_and_added_up() -> None:
    asked: list[Query | WindowFamily] = [Query(dw.AnyWindow(3)).at_least(1, 2), Query(dw.Rolling(2)).exactly(2)]
    plan = dw.Plan(
        asked, timeline=dw.Timeline.of_steps(10), unit=dw.EventLevel(), budget=dw.ZCDP(1.0), strategy="direct"
    )
    # 10 + 9 + 8 windows twice; 10 once, from counts of at least 2 and of at least 3.
    assert plan.workload == Workload(2 * 27 + 10, 2 * 27 + 2 * 10, 10, 20, 27) == least_workload(plan.queries, 10)
    assert plan.workload.to_dict()["bytes"] == plan.workload.memory
    assert "about 1 s on one core (the noise alone; making numbers consistent takes longer)" in str(plan.workload)
    one, other = Workload(5, 7, 2, 40), Workload(1, 2, 1, 30)
    assert one + other == Workload(6, 9, 3, 40)
    assert (one + other).memory > max(one.memory, other.memory)
    # Where much more is drawn than released, the draws are what is held.
    assert Workload(10, 10**8).memory > 10**8 * 3 * 8


@pytest.mark.slow
@pytest.mark.search(1)
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss differs")
@pytest.mark.parametrize("window", ["any:30", "rolling:7"])
def test_a_release_takes_no_more_memory_than_was_forecast(tmp_path: Path, window: str) -> None:
    steps, log = 4000, tmp_path / "log.parquet"
    generator = np.random.default_rng(3)
    columns = {"item": generator.integers(0, 900, 9000), "time": generator.integers(0, steps, 9000)}
    pyarrow.parquet.write_table(pa.table(columns), log)
    # What a process may have held before it became this one counts for it too: so there is a small one between.
    small = "import os, sys; pid = os.posix_spawn(sys.executable, sys.argv[1:], os.environ)"
    small += "; _, status, used = os.wait4(pid, 0); print(status, used.ru_maxrss)"
    command = [sys.executable, "-m", "dpwindows", "release", str(log), "--item", "item", "--time", "time", "--quiet"]
    command += ["--start", "0", "--end", str(steps), "--step", "1", "--window", window, "--unit", "event"]
    command += ["--epsilon", "1", "--delta", "1e-6", "-o", str(tmp_path / "out.parquet")]
    between = [sys.executable, "-S", "-c", small, *command]
    status, used = map(int, subprocess.run(between, check=True, capture_output=True, text=True).stdout.split())
    assert status == 0
    query = Query(dw.AnyWindow(30) if window == "any:30" else dw.Rolling(7)).at_least(1)
    forecast = least_workload([query], steps).memory
    assert 0.5 * forecast < used * 1024 < forecast


def test_families_that_share_windows_share_a_table() -> None:
    """Of any windows always; of others where there are two, as far as the nearest log is looked for."""
    week, month, year = dw.Rolling(7), dw.Tumbling(31), dw.Tumbling(365)
    assert table_length([week], 365, 1) == table_length([dw.Cumulative(), dw.ToDate("month")], 365, 1) == 0
    assert table_length([week, dw.Cumulative()], 365, 1) == 7
    assert table_length([week, month], 365, 1) == table_length([dw.AnyWindow(28), month], 365, 1) == 31
    assert table_length([week, month, year], 365, 1) == 365
    assert table_length([week, month, year], 365, 100) == 31
    queries = [Query(window).at_least(1) for window in (week, month)]
    assert least_workload(queries, 365).solved == 31 * 365 - 31 * 30 // 2
    assert least_workload(queries[:1], 365).solved == 0


def test_groups_share_the_work() -> None:
    """A year of days is solved whole, and of each of many groups what takes a second."""
    solved = {
        groups: [longest for longest in range(1, 366) if is_solved(365, longest, groups)]
        for groups in (1, 10, 100, 1000)
    }
    assert solved[1] == list(range(1, 366))
    assert len(solved[1]) > len(solved[10]) > len(solved[100]) == len(solved[1000]) == 64
    assert not is_solved(2350, 2350, 1)
