"""Takes the pictures of README and docs from the demo, with Chromium: `python -m tests.pictures`."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path

from tests.end_to_end.command_line import run
from tests.report.browser import launch, opened

DOCS = Path(__file__).parents[1] / "docs"
PLAN = ("--window", "rolling:7", "--window", "rolling:28", "--unit", "event", "--steps", "60")
WIDE = 740
# The picture, the page it is of, and how much of that is shown.
PICTURES = {"report.jpg": ("flights.html", 1000), "planner.jpg": ("plan.html", 1020)}


def take(folder: Path) -> None:
    """Make both pages in a folder, and their pictures in `docs`."""
    run("demo", "-o", folder / "flights.parquet").must_work()
    title = ("--title", "Aircraft in New York, 2013", "--noun", "aircraft")
    run("report", folder / "flights.parquet", "-o", folder / "flights.html", "--force", *title).must_work()
    run("plan", *PLAN, "--epsilon", "1", "--delta", "1e-6", "--report", folder / "plan.html").must_work()
    with contextmanager(launch)() as browser:
        for name, (page, high) in PICTURES.items():
            with opened(browser, folder / page, width=WIDE) as shown:
                shown.page.set_viewport_size({"width": WIDE, "height": high})
                shown.page.screenshot(path=DOCS / name, type="jpeg", quality=75)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        take(Path(scratch))
