"""The page as people use it: by mouse, touch and keys, in Chromium; every number is the one that was released."""

from __future__ import annotations

import csv
import io
import re
from functools import reduce
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from playwright.sync_api import Browser

import dpwindows as dw
from dpwindows.report import page
from dpwindows.report.words import number
from tests.report.browser import Shown, context_of, launch, opened
from tests.report.made_up import a_release, about
from tests.report.test_page import with_groups

pytestmark = pytest.mark.xdist_group("chromium")

browser = pytest.fixture(scope="module")(launch)
MEASURES: dict[str, dict[str, Any]] = {
    "At least once": {"at_least": 1},
    "At least 3 times": {"at_least": 3},
    "Exactly twice": {"exactly": 2},
}


@pytest.fixture(scope="module")
def release() -> dw.Release:
    rng = np.random.default_rng(4)
    day = rng.integers(0, 60, 4_000)
    log = pa.table({"who": rng.integers(0, 500, 4_000), "day": np.datetime64("2013-02-01") + day})
    plan = dw.Plan(
        [dw.AnyWindow(20).at_least(1, 3).exactly(2), dw.Rolling(7).at_least(1, 3), dw.Cumulative()],
        timeline=dw.Timeline("2013-02-01", "2013-04-02", step="1d", time_zone="America/New_York"),
        unit=dw.EventLevel(),
        budget=dw.ApproxDP(epsilon=1.0, delta=1e-6),
    )
    return plan.run(log, item="who", time="day")


@pytest.fixture(scope="module")
def report(release: dw.Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    release.report(file)
    return file


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with groups, a consistent table, a bias, and every kind of window."""
    parts = [a_release("any:9", (("at_least", 1), ("at_least", 2)), bias=1.0)]
    parts += [a_release("rolling:7", (("at_least", 1), ("exactly", 3)))]
    for window in ("tumbling:7", "to-date:month"):
        whole = a_release("cumulative")
        parts.append(whole.set_column(0, "window", pa.array([window] * whole.num_rows)))
    table = with_groups(pa.concat_tables(parts))
    fitted = pa.array(np.rint(table["estimate"].to_numpy()).astype(np.int64) + 5)
    table = table.set_column(table.num_columns - 1, "consistent", fitted)
    file = tmp_path_factory.mktemp("page") / "everything.html"
    file.write_text(page(table, about()), encoding="utf-8")
    return file


def type_window(shown: Shown, name: str, start: str, end: str) -> None:
    """Fill the two fields; each change is answered by itself."""
    shown.page.fill(f"#{name}-from", start)
    shown.page.fill(f"#{name}-to", end)
    shown.page.locator(f"#{name}-to").dispatch_event("change")
    shown.page.fill(f"#{name}-from", start)
    shown.page.locator(f"#{name}-from").dispatch_event("change")


def answered(shown: Shown, at: int = 0) -> dict[str, list[str]]:
    """The rows of a table of the explorer: what is counted, and the cells beside it."""
    rows = shown.page.locator("#explore table").nth(at).locator("tbody tr").all()
    cells = [row.locator("th, td").all_inner_texts() for row in rows]
    return {row[0]: row[1:] for row in cells}


def day(step: int) -> str:
    return str(np.datetime64("2013-01-31") + step)


def expected(release: dw.Release, first: int, last: int, seen: str) -> dw.Count:
    return release.count(day(first), day(last + 1), **MEASURES[seen])


def consistent(release: dw.Release, window: str, first: int, last: int, seen: str) -> int:
    ((kind, k),) = MEASURES[seen].items()
    keys = {"window": window, "measure": kind, "k": k, "first_step": first, "last_step": last}
    alike = [pc.equal(release.table[name], value) for name, value in keys.items()]
    (found,) = release.table["consistent"].filter(reduce(pc.and_, alike)).to_pylist()
    return int(found)


def check_window(shown: Shown, release: dw.Release, first: int, last: int) -> None:
    told = answered(shown)
    for seen in MEASURES:
        count = expected(release, first, last, seen)
        estimate, fitted, error, interval, released_as = told[seen]
        assert estimate == number(count.estimate, count.std_error)
        assert int(fitted.replace(",", "")) == consistent(release, count.window, first, last, seen)
        assert float(error) == pytest.approx(count.std_error, rel=6e-3)
        digits = number(count.lower, count.std_error), number(count.upper, count.std_error)
        assert interval == " to ".join(digits)
        assert released_as == count.window
    assert shown.page.input_value("#window-from") == day(first)
    assert shown.page.input_value("#window-to") == day(last)


def test_two_dates_give_the_number_that_count_gives(browser: Browser, report: Path, release: dw.Release) -> None:
    rng = np.random.default_rng(8)
    with opened(browser, report) as shown:
        for last in rng.integers(1, 61, 12).tolist():
            first = int(rng.integers(max(1, last - 19), last + 1))
            type_window(shown, "window", day(first), day(last))
            check_window(shown, release, first, last)


def test_the_brush_gives_the_number_that_count_gives(browser: Browser, report: Path, release: dw.Release) -> None:
    with opened(browser, report) as shown:
        type_window(shown, "window", day(30), day(44))
        strip = shown.page.locator(".brush")
        box = strip.bounding_box()
        assert box is not None
        a_step = box["width"] / 60
        middle = box["y"] + 30
        for name, moved, window in (
            (".handle.first", 5, (35, 44)),
            (".handle.last", -4, (35, 40)),
            (".body", 8, (43, 48)),
        ):
            grip = shown.page.locator(name).bounding_box()
            assert grip is not None
            begin = grip["x"] + grip["width"] / 2
            shown.page.mouse.move(begin, middle)
            shown.page.mouse.down()
            shown.page.mouse.move(begin + moved * a_step / 2, middle)
            shown.page.mouse.move(begin + moved * a_step, middle)
            shown.page.mouse.up()
            check_window(shown, release, *window)
        shown.page.mouse.move(box["x"] + 10 * a_step, middle)
        shown.page.mouse.down()
        shown.page.mouse.move(box["x"] + 18 * a_step, middle)
        shown.page.mouse.up()
        check_window(shown, release, 11, 18)


def test_keys_and_touch_move_the_brush(browser: Browser, report: Path, release: dw.Release) -> None:
    with opened(browser, report, width=390, has_touch=True) as shown:
        type_window(shown, "window", day(30), day(44))
        for name, keys, window in (
            (".handle.first", ["ArrowRight", "ArrowRight", "PageUp"], (35, 44)),
            (".handle.last", ["ArrowLeft"], (35, 43)),
            (".body", ["End"], (52, 60)),
            (".body", ["ArrowLeft"], (51, 59)),
        ):
            shown.page.focus(name)
            for key in keys:
                shown.page.keyboard.press(key)
            check_window(shown, release, *window)
        handle = shown.page.locator(".handle.first")
        assert handle.get_attribute("aria-valuetext") == day(51)
        grip, strip = handle.bounding_box(), shown.page.locator(".brush").bounding_box()
        assert grip is not None
        assert strip is not None
        x, y = grip["x"] + grip["width"] / 2, grip["y"] + 30
        session = shown.page.context.new_cdp_session(shown.page)
        ends = x - 5 * strip["width"] / 60
        for kind, points in (("touchStart", [x]), ("touchMove", [x - 5]), ("touchMove", [ends]), ("touchEnd", [])):
            session.send(
                "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": at, "y": y} for at in points]}
            )
        check_window(shown, release, 46, 59)


def test_a_window_that_was_not_released_is_said_to_be(browser: Browser, report: Path, release: dw.Release) -> None:
    with opened(browser, report) as shown:
        type_window(shown, "window", day(3), day(50))
        note = shown.text("#explore .note:not(.screen)")
        assert note.startswith(f"No number was released for {day(3)} through {day(50)}.")
        found = re.search(r"closest window that was: (\S+) through (\S+)\.", note)
        assert found is not None
        start, end = (np.datetime64(text) for text in found.groups())
        told = answered(shown)["At least once"]
        count = release.count(str(start), str(end + 1))
        assert told[0] == number(count.estimate, count.std_error)


def test_what_changed_is_told_with_an_error_that_is_proved(browser: Browser, report: Path, release: dw.Release) -> None:
    with opened(browser, report) as shown:
        type_window(shown, "window", day(41), day(50))
        type_window(shown, "other", day(11), day(20))
        change = next(
            told
            for at in range(shown.page.locator("#explore table").count())
            if (told := answered(shown, at)["At least once"])[4] in ("more", "fewer", "cannot be told apart")
        )
        one, other = (expected(release, first, first + 9, "At least once") for first in (41, 11))
        assert float(change[1].replace("\N{MINUS SIGN}", "-")) == pytest.approx(one.estimate - other.estimate, abs=1.01)
        assert float(change[2].removeprefix("at most ")) == pytest.approx(one.std_error + other.std_error, rel=6e-3)
        low, high = (float(text.replace("\N{MINUS SIGN}", "-")) for text in change[3].split(" to "))
        assert high - low >= 2 * 1.95 * (one.std_error + other.std_error) - 2


def test_typed_dates_are_corrected_with_a_word_about_it(browser: Browser, report: Path) -> None:
    with opened(browser, report) as shown:
        type_window(shown, "window", day(30), day(44))
        assert shown.text("#explore .moved") == ""
        shown.page.fill("#window-to", day(90))
        assert shown.text("#explore .moved") == f"{day(90)} became {day(60)}: the range is {day(1)} through {day(60)}."
        shown.page.fill("#window-from", day(50))
        assert shown.text("#explore .moved") == ""
        shown.page.fill("#window-to", day(40))
        told = f"{day(50)} became {day(40)}: a window does not end before it starts."
        assert shown.text("#explore .moved") == told
        shown.page.fill("#window-to", "")
        assert shown.text("#explore .moved").startswith("Type both ends of the window")


@pytest.mark.parametrize(("width", "schemes"), [(1280, ("light", "dark")), (360, ("dark", "light"))], ids=str)
def test_nothing_is_in_the_way_of_anyone(
    browser: Browser, everything: Path, width: int, schemes: tuple[Literal["light", "dark"], ...]
) -> None:
    """In the colours that a page opens with, and in those that it changes to while it is open."""
    with opened(browser, everything, width=width, scheme=schemes[0]) as shown:
        for summary in shown.page.locator("summary").all():
            summary.click()
        for scheme in schemes:
            shown.page.emulate_media(color_scheme=scheme)
            assert shown.violations() == []
        assert shown.page.evaluate("document.documentElement.scrollWidth") == width
        for table in shown.page.locator(".scroll").all():
            if width < 1000:
                assert table.evaluate("one => one.scrollWidth <= one.clientWidth"), "columns are cut off"
            assert table.locator("tbody td").last.is_visible()
        assert "95% interval" in str(shown.page.locator("#table tbody td").last.get_attribute("data-column"))
        assert "origin all" in shown.text("#table select")
        assert "At least once, origin JFK" in shown.text(".explorer table")


def test_axe_finds_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text('<title>x</title><img src="data:,"><input>', encoding="utf-8")
    context = context_of(browser)
    shown = Shown(context.new_page())
    shown.page.goto((tmp_path / "bad.html").as_uri())
    found = {one.split(":")[0] for one in shown.violations()}
    assert {"image-alt", "label", "html-has-lang"} <= found
    context.close()


def test_keys_alone_reach_everything_and_every_point(browser: Browser, everything: Path) -> None:
    with opened(browser, everything) as shown:
        usable, reached = shown.reached_by_keys()
        assert len(usable) > 20
        assert reached == usable
        # Others wait until they are picked.
        charts = shown.page.locator(".chart:visible, .heat:visible").all()
        assert len(charts) >= 5
        for chart in charts:
            chart.focus()
            shown.page.keyboard.press("Home")
            texts = {chart.get_attribute("aria-valuetext")}
            for key in ("ArrowRight", "ArrowUp", "End", "PageDown"):
                shown.page.keyboard.press(key)
                texts.add(chart.get_attribute("aria-valuetext"))
            assert len(texts) >= 2
            assert all("standard error" in str(text) and "95% interval" in str(text) for text in texts)


def test_the_cursor_stands_on_the_lines_that_are_drawn(browser: Browser, everything: Path) -> None:
    """Where Python drew a point, the script finds it again: at both ends of every line, raw and consistent."""
    with opened(browser, everything) as shown:
        for switched in (True, False):
            shown.page.set_checked("#consistent", switched)
            kind = "fitted" if switched else "raw"
            for chart in shown.page.locator(".chart").all():
                drawn = chart.locator(f"g.{kind} path.line").first.get_attribute("d")
                if not chart.is_visible() or drawn is None:
                    continue
                chart.focus()
                shown.page.keyboard.press("Home")
                dot = chart.locator("circle.dot").first
                at = [float(str(dot.get_attribute(name)).removesuffix("%")) for name in ("cx", "cy")]
                place = [float(part) / 10 for part in drawn.removeprefix("M").split("L")[0].split()]
                assert at == pytest.approx(place, abs=0.6)


@pytest.mark.parametrize("width", [360, 1280])
def test_a_page_is_read_without_scripts(browser: Browser, report: Path, release: dw.Release, width: int) -> None:
    context = context_of(browser, viewport={"width": width, "height": 900}, java_script_enabled=False)
    shown = Shown(context.new_page())
    shown.page.goto(report.as_uri())
    assert "distinct items, between" in shown.text(".headlines li")
    cells = shown.page.locator("#table tbody tr").first.locator("th, td").all_inner_texts()
    last = release.count(day(41), day(61))
    assert cells[0] == "any:20"
    assert cells[2:4] == [day(60), number(last.estimate, last.std_error)]
    for figure in shown.page.locator("figure").all():
        assert figure.locator("svg path:visible").count() > 0
        assert "95% interval" in figure.locator(".readout").first.inner_text()
    box = shown.page.locator("main").bounding_box()
    assert box is not None
    assert box["width"] <= width
    context.close()


def test_a_heat_map_leads_to_the_two_dates(browser: Browser, report: Path, release: dw.Release) -> None:
    with opened(browser, report) as shown:
        assert "at least once" in str(shown.page.locator(".heat:visible").get_attribute("aria-label"))
        shown.page.select_option("select[id$=choice]", "exactly twice")
        assert "exactly twice" in str(shown.page.locator(".heat:visible").get_attribute("aria-label"))
        shown.page.select_option("select[id$=choice]", "at least once")
        shown.page.focus(".heat")
        for key in ("ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowUp", "ArrowUp", "Enter"):
            shown.page.keyboard.press(key)
        check_window(shown, release, 55, 58)


def test_the_download_is_the_release(browser: Browser, report: Path, release: dw.Release) -> None:
    with opened(browser, report) as shown:
        with shown.page.expect_download() as waiting:
            shown.page.click("#download")
        rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text(encoding="utf-8"))))
    keys = ("window", "measure", "k", "first_step", "last_step")
    released = {tuple(str(row[key]) for key in keys): row for row in release.table.to_pylist()}
    assert {tuple(row[key] for key in keys) for row in rows} == set(released)
    for row in rows:
        there = released[tuple(row[key] for key in keys)]
        for column in ("estimate", "lower", "upper"):
            assert float(row[column]) == pytest.approx(there[column], abs=0.51)
        assert float(row["std_error"]) == pytest.approx(there["std_error"], rel=2e-3)


def test_raw_and_consistent_numbers_are_a_switch(browser: Browser, everything: Path) -> None:
    def drawn(shown: Shown) -> float:
        text = shown.text('[data-window="rolling:7"] .readout')
        # The interval is always that of the estimate, whatever is drawn.
        found = re.search(
            r"once: (?:(\S+) made consistent; estimate )?(\S+) \(95% interval (\S+) to (\S+); standard error 9.5\)",
            text,
        )
        assert found is not None
        low, high = (float(end.replace("\N{MINUS SIGN}", "-")) for end in found.groups()[2:])
        assert low < float(found[2]) < high
        assert (found[1] is not None) is shown.page.is_checked("#consistent")
        return float(found[1] or found[2])

    with opened(browser, everything) as shown:
        fitted = drawn(shown)
        shown.page.uncheck("#consistent")
        assert fitted - drawn(shown) == pytest.approx(5)
        assert shown.page.locator('[data-window="rolling:7"] .multiples section').count() == 2


def test_times_of_day_and_plain_numbers_can_be_typed(browser: Browser, tmp_path: Path) -> None:
    table = a_release("any:9", zone=None)
    timeline = {"start": 1000, "end": 1400, "step": 10, "steps": 40}
    (tmp_path / "numbers.html").write_text(page(table, about(timeline=timeline)), encoding="utf-8")
    with opened(browser, tmp_path / "numbers.html") as shown:
        type_window(shown, "window", "1020", "1049")
        wanted = table.filter((pc.field("first_step") == 3) & (pc.field("last_step") == 5))
        assert answered(shown)["At least once"][0] == number(wanted["estimate"][0].as_py(), 9.5)
    epoch = 1341100800
    for column in ("start", "end"):
        steps = (table[column].to_numpy() - 1000) // 10
        at = table.schema.get_field_index(column)
        table = table.set_column(at, column, pa.array(epoch + steps * 3600, pa.int64()))
    timeline = {"start": epoch, "end": epoch + 40 * 3600, "step": 3600, "steps": 40}
    (tmp_path / "hours.html").write_text(page(table, about(timeline=timeline)), encoding="utf-8")
    with opened(browser, tmp_path / "hours.html") as shown:
        type_window(shown, "window", "2012-07-01T02:00", "2012-07-01T05:00")
        assert answered(shown)["At least once"][0] == number(wanted["estimate"][0].as_py(), 9.5)
        caption = shown.text("#explore caption")
        assert caption == "2012-07-01 02:00 until 2012-07-01 05:00 (3 hours; 1341108000 until 1341118800)"


def test_a_page_without_rows_is_a_page(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "empty.html").write_text(page(a_release().slice(0, 0), about()), encoding="utf-8")
    context = context_of(browser)
    shown = Shown(context.new_page())
    shown.page.goto((tmp_path / "empty.html").as_uri())
    assert shown.violations() == []
    context.close()


@pytest.mark.parametrize("steps", [40, 150])
def test_a_browser_that_never_draws_a_frame_has_all_charts_all_the_same(
    browser: Browser, tmp_path: Path, steps: int
) -> None:
    """Of few numbers and of many, whose charts are drawn later."""
    file = tmp_path / "report.html"
    file.write_text(page(a_release("any", steps=steps), about()), encoding="utf-8")
    context = context_of(browser)
    shown = context.new_page()
    shown.add_init_script("window.requestAnimationFrame = () => 0")
    shown.goto(file.as_uri())
    # By its attributes: the driver's own way to wait for a function waits for frames.
    shown.wait_for_selector("html[data-ready=all]", state="attached")
    assert shown.locator("[data-window] svg").count() > 0
    context.close()
