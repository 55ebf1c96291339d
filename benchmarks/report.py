"""Size of a report with all windows of a range, and how long it takes to answer.

    python benchmarks/report.py 365 2323

The release is of made-up events (event level, epsilon 1, delta 1e-6), its raw numbers only. The page is opened in
Chromium; the time is from asking for the page to the answer for two dates that were typed in.
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
from dpwindows.report import page


def released(steps: int) -> dw.Release:
    """A release of every window of so many days: 100,000 events of half as many items."""
    begin = date(2013, 1, 1)
    plan = dw.Plan(
        dw.AnyWindow(),
        timeline=dw.Timeline(begin, begin + timedelta(days=steps), step="1d"),
        unit=dw.EventLevel(),
        budget=dw.ApproxDP(epsilon=1.0, delta=1e-6),
    )
    draw = np.random.default_rng(1)
    days = np.datetime64(begin, "us") + draw.integers(0, steps, 100_000).astype("timedelta64[D]")
    log = pa.table({"item": draw.integers(0, 50_000, 100_000), "time": days})
    return plan.run(log, item="item", time="time", consistent=False)


def main(horizons: list[int]) -> None:
    for steps in horizons:
        made_up = released(steps)
        table = made_up.table
        begin = time.perf_counter()
        text = page(table, made_up.metadata)
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
