"""Size of a report with all windows of a range, and how long it takes to answer.

    python benchmarks/report.py 365 2323

The standard errors are those that a plan forecasts for every window (event level, epsilon 1, delta 1e-6). The noise is
drawn here, so that nothing waits for exact draws. The page is opened in Chromium; the time is from asking for the page
to the answer for two dates that were typed in.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from playwright.sync_api import sync_playwright

import dpwindows as dw
from dpwindows.ask.queries import Measure
from dpwindows.ask.windows import window_steps
from dpwindows.plan.description import describe
from dpwindows.report import page


def drawn(steps: int) -> tuple[pa.Table, dict[str, object]]:
    """A release of every window of so many days, without data: counts that saturate, and noise as forecast."""
    begin = date(2013, 1, 1)
    plan = dw.Plan(
        [dw.AnyWindow()],
        timeline=dw.Timeline(begin, begin + timedelta(days=steps), step="1d"),
        unit=dw.EventLevel(),
        budget=dw.ApproxDP(epsilon=1.0, delta=1e-6),
    )
    first, last = window_steps(dw.AnyWindow(), steps)
    error = np.sqrt(plan.allotments[0].variance(Measure("at_least", 1)))
    truth = 100_000 * (1 - np.exp(-(last - first + 1) / 60))
    estimate = truth + error * np.random.default_rng(1).standard_normal(len(first))
    days = np.datetime64(begin) + np.arange(steps + 1)
    at = days.astype("datetime64[us]")
    utc = pa.timestamp("us", "UTC")
    half = 1.959964 * error
    table = pa.table(
        {
            "window": pa.array(["any"]).take(pa.array(np.zeros(len(first), np.int64))),
            "measure": pa.array(["at_least"]).take(pa.array(np.zeros(len(first), np.int64))),
            "k": np.ones(len(first), np.int64),
            "first_step": first,
            "last_step": last,
            "start": pa.array(at[first - 1]).cast(utc),
            "end": pa.array(at[last]).cast(utc),
            "complete": np.ones(len(first), bool),
            "estimate": estimate,
            "std_error": error,
            "bias_bound": np.zeros(len(first)),
            "lower": estimate - half,
            "upper": estimate + half,
            "consistent": pa.nulls(len(first), pa.int64()),
        }
    )
    return table, describe(plan)


def main(horizons: list[int]) -> None:
    for steps in horizons:
        table, metadata = drawn(steps)
        begin = time.perf_counter()
        text = page(table, metadata)
        made = time.perf_counter() - begin
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "report.html"
            file.write_text(text, encoding="utf-8")
            answer, everything = first_answer(file)
        print(
            f"{steps:,} steps, {table.num_rows:,} windows: {len(text.encode()) / 1e6:.2f} MB, written in {made:.1f} s, "
            f"first answer after {answer:.2f} s, all charts after {everything:.2f} s"
        )


def first_answer(file: Path) -> tuple[float, float]:
    program = shutil.which("chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        shown = browser.new_page()
        shown.goto("about:blank")
        begin = time.perf_counter()
        shown.goto(file.as_uri(), wait_until="commit")
        shown.wait_for_selector("#window-from")
        shown.fill("#window-from", "2013-02-10")
        shown.fill("#window-to", "2013-03-01")
        shown.locator("#window-from").dispatch_event("change")
        shown.wait_for_selector("text=2013-02-10 through 2013-03-01 (20 days)")
        answer = time.perf_counter() - begin
        shown.wait_for_selector("html[data-ready=all]", timeout=60_000)
        everything = time.perf_counter() - begin
        browser.close()
    return answer, everything


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [365, 2_323])
