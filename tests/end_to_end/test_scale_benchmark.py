"""The benchmark of scale runs, and does not take a wrong count for a fast one."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
def test_it_measures_every_task_on_every_log(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(BENCHMARKS / "scale.py"), "--sizes", "500", "5k", "--thresholds", "1"]
    done = subprocess.run([*command, "--json", str(figures)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "CPU time by tenfold events, from 500 to 5,000" in done.stdout
    runs = json.loads(figures.read_text())
    found = [(run["events"], run["task"]["query"], run["task"]["count"]) for run in runs]
    tasks = [("exact", False), ("ours", False), ("ours", True), ("naive", False)]
    assert found == [(events, *task) for events in (500, 5000) for task in tasks]
    assert all(run["cost"]["cpu"] > 0 and run["cost"]["peak"] > 10_000_000 for run in runs)


def test_runs_that_count_differently_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import scale  # type: ignore[import-not-found]
    from metering import Cost  # type: ignore[import-not-found]

    def run(engine: str, query: str, threshold: int = 1, count: bool = False, **found: str) -> Any:
        return scale.Run(1, "none", scale.Task(engine, query, threshold, count), Cost(), found)

    runs = [
        run("duckdb", "exact", exact="7"),
        run("duckdb", "ours", exact="7", naive="9", digest="a"),
        run("duckdb", "ours", 5, exact="3", naive="4", digest="b"),
        run("duckdb", "ours", 5, count=True, exact="5", naive="6", digest="c"),
        run("spark", "exact", exact="7"),
        run("spark", "ours", exact="7", naive="9", digest="a"),
        run("spark", "ours", 5, exact="3", naive="4", digest="b"),
        run("spark", "ours", 5, count=True, exact="5", naive="6", digest="c"),
        run("duckdb", "naive", naive="9"),
    ]
    for last in range(1, len(runs)):
        scale._check(runs[: last + 1])
        for name in runs[last].found:
            wrong = dataclasses.replace(runs[last], found={**runs[last].found, name: "wrong"})
            alone = last in (2, 3) or (last, name) in ((1, "naive"), (1, "digest"))
            if alone:
                continue  # nothing before it says what it should be
            with pytest.raises(SystemExit, match="count differently"):
                scale._check([*runs[:last], wrong])
