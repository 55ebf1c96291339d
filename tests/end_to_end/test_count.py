"""`dpwindows count`: what an analyst asks of a release, number by number."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import dpwindows as dw
from tests.end_to_end.command_line import run

pytestmark = pytest.mark.usefixtures("one_engine")

WEEKS = ("2013-01-15", "2013-01-22"), ("2013-01-08", "2013-01-15")


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four weeks of a log, 30 users a day of whom each comes every third day."""
    folder = tmp_path_factory.mktemp("count")
    lines = [f"u{user},2013-01-{day:02}" for day in range(1, 29) for user in range(day % 3, 90, 3)]
    (folder / "log.csv").write_text("who,at\n" + "\n".join(lines))
    asked = ("--window", "rolling:1", "--window", "rolling:7", "--window", "cumulative", "--histogram", "2")
    data = ("--item", "who", "--time", "at", "--start", "2013-01-01", "--end", "2013-01-29")
    out = folder / "out.parquet"
    run("release", folder / "log.csv", *data, *asked, "--unit", "event", "--rho", "1e4", "-o", out).must_work()
    return out


def told(*arguments: str | Path) -> dict[str, Any]:
    outcome = run("count", *arguments, "--json").must_work()
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def test_one_number(released: Path) -> None:
    week = WEEKS[0]
    found = told(released, *week)
    assert round(found["estimate"]) == 90
    assert found["lower"] < found["estimate"] < found["upper"]
    assert (found["window"], found["measure"], found["k"], found["confidence"]) == ("rolling:7", "at_least", 1, 0.95)
    assert round(told(released, *week, "--at-least", "2")["estimate"]) == 90
    assert round(told(released, *week, "--exactly", "1")["estimate"]) == 0
    shown = run("count", released, *week).must_work()
    assert "(95% interval" in shown.out
    assert "; standard error" in shown.out


def test_differences_ratios_means_and_new_items(released: Path) -> None:
    one, other = WEEKS
    change = told(released, *one, "--minus", *other)
    assert round(change["estimate"]) == 0
    assert 0 < change["std_error"] < 2 * told(released, *one)["std_error"]
    daily = told(released, "2013-01-21", "2013-01-22", "--over", *one)
    assert daily["estimate"] == pytest.approx(1 / 3, abs=0.01)
    month = told(released, "2013-01-08", "2013-01-09", "--over", "2013-01-02", "2013-01-09", "--mean-over", "20")
    assert month["estimate"] == pytest.approx(1 / 3, abs=0.01)
    assert month["std_error"] < daily["std_error"]
    assert "mean of 20 windows" in month["what"]
    assert round(told(released, *one, "--new")["estimate"]) == 0
    assert round(told(released, *one, "--returning")["estimate"]) == 90
    repeated = told(released, *one, "--at-least", "2", "--over", *one, "--over-at-least", "1")
    assert repeated["estimate"] == pytest.approx(1.0, abs=0.01)
    first = told(released, "2013-01-01", "2013-01-08", "--new", "--over", "2013-01-01", "2013-01-08")
    assert first["estimate"] == pytest.approx(1.0, abs=0.01)


def test_an_interval_without_ends_is_null_in_json(released: Path) -> None:
    nothing = [
        told(released, day, after, "--over", day, after, "--exactly", "1", "--over-at-least", "2")
        for day, after in ((f"2013-01-{day:02}", f"2013-01-{day + 1:02}") for day in range(1, 28))
    ]
    unbounded = [found for found in nothing if found["lower"] is None]
    # Nobody comes twice a day: of 27 numbers that are 0 most cannot be told from it.
    assert len(unbounded) > 15
    assert all(found["upper"] is None and math.isfinite(found["estimate"]) for found in unbounded)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--minus", *WEEKS[1], "--over", *WEEKS[1]), "give --minus or --over, not both"),
        (("--over-at-least", "2"), "--over-at-least goes with --over"),
        (("--at-least", "3"), "(exactly 1): ask for --at-least 3 too when releasing"),
        (("--new", "--exactly", "1"), "new items are those counted at least k times"),
        (
            ("--minus", "2013-01-09", "2013-01-20"),
            "the longest released window within it is 2013-01-13 to 2013-01-20 (rolling:7); or release with --window",
        ),
        (("--minus", "2013-01-09", "2013-01-15"), "exclusive: 2013-01-09 to 2013-01-16 was released, which holds one"),
        (("--minus", "2013-01-09", "2013-01-17"), "2013-01-09 to 2013-01-16 was released, which holds one step less"),
        (("--minus", "2013-01-09", "2013-01-30"), "is outside the range, which is 2013-01-01 to 2013-01-29 (end excl"),
        (
            ("--over", "2013-01-02", "2013-01-08", "--mean-over", "3"),
            "exclusive: 2013-01-02 to 2013-01-09 was released, which holds one step more",
        ),
        (("--at-least", "1", "--exactly", "1"), "give --at-least or --exactly, not both"),
        (("--over-group", "all"), "--over-group goes with --over"),
        (("--minus", "2013-01-09T01:00", "2013-01-15"), "is not on a boundary of the steps"),
    ],
)
def test_what_has_no_answer_is_refused(released: Path, options: tuple[str, ...], message: str) -> None:
    run("count", released, *WEEKS[0], *options).must_refuse(message)


@pytest.mark.slow
def test_steps_of_a_stream_answer_too(tmp_path: Path) -> None:
    state, out = tmp_path / "s.state", tmp_path / "all.parquet"
    asked = ("--window", "rolling:2", "--window", "cumulative", "--unit", "event", "--rho", "1e4")
    run("stream", "create", state, "--item", "who", "--time", "at", "--start", "0", "--step", "1", *asked).must_work()
    for step in range(5):
        path = tmp_path / f"{step}.csv"
        path.write_text("who,at\n" + "".join(f"u{user},{step}\n" for user in range(10 * step, 10 * step + 20)))
        assert (
            run("stream", "advance", state, path, "--through", str(step + 1), "-o", tmp_path / f"{step}.json").code == 0
        )
    run("stream", "show", state, "-o", out).must_work()
    assert round(told(out, "3", "5", "--minus", "0", "2")["estimate"]) == 0
    assert round(told(out, "3", "5", "--new")["estimate"]) == 20
    assert round(told(out, "3", "5", "--returning")["estimate"]) == 10
    release = dw.Release.load(out)
    assert release.metadata["horizon"] == "endless"


def test_groups_answer_each_with_its_own_noise(tmp_path: Path) -> None:
    log, out = tmp_path / "log.csv", tmp_path / "out.parquet"
    lines = [f"u{user},{step},{'A' if user % 3 else 'B'}" for step in range(6) for user in range(step, step + 60)]
    log.write_text("who,at,site\n" + "\n".join(lines))
    asked = ("--window", "rolling:2", "--by", "site", "--values", "A,B", "--totals", "0.5")
    data = ("--item", "who", "--time", "at", "--start", "0", "--end", "6", "--step", "1")
    run("release", log, *data, *asked, "--unit", "event", "--rho", "1e6", "-o", out).must_work()
    weeks, site = ("3", "5", "--minus", "1", "3"), ("--group", "site=A")
    assert round(told(out, "3", "5", *site)["estimate"]) == 40
    assert round(told(out, *weeks, *site)["estimate"]) == 40 - 41
    assert round(told(out, "3", "5")["estimate"]) == 61
    release = dw.Release.load(out)
    shares = [release.ratio(dw.Window(3, 5, group={"site": name}), (3, 5)) for name in ("A", "B")]
    assert shares[0].estimate + shares[1].estimate == pytest.approx(1.0, abs=0.01)
    # Groups share no noise with each other nor with the total, at event level each is measured for the whole budget.
    one, other = (release.count(3, 5, group={"site": name}) for name in ("A", "B"))
    apart = release.difference(dw.Window(3, 5, group={"site": "A"}), dw.Window(3, 5, group={"site": "B"}))
    assert apart.std_error == pytest.approx(math.hypot(one.std_error, other.std_error), rel=1e-6)
    run("count", out, "3", "5", "--group", "site").must_refuse("--group takes COLUMN=VALUE")
    over = ("3", "5", *site, "--over", "3", "5")
    share = told(out, *over, "--over-group", "all")
    assert share["estimate"] == pytest.approx(40 / 61, abs=0.001)
    assert share["what"] == "3 to 5 (at least 1, site=A) over 3 to 5 (at least 1, site=all)"
    assert told(out, *over)["estimate"] == 1.0
    assert told(out, *over)["what"].endswith("over 3 to 5 (at least 1, site=A)")
    assert told(out, *over, "--over-group", "site=B")["estimate"] == pytest.approx(40 / 21, abs=0.001)
    shown = run("count", out, *over, "--over-group", "all").must_work().out.splitlines()
    assert shown[1] == share["what"]
    run("count", out, *over, "--over-group", "A").must_refuse("--over-group takes COLUMN=VALUE")


def test_python_is_told_in_its_own_words(released: Path) -> None:
    release = dw.Release.load(released)
    with pytest.raises(dw.InputError, match=r"ask for at_least=3 too when releasing$"):
        release.count(*WEEKS[0], at_least=3)
    with pytest.raises(dw.InputError, match=r"or release with AnyWindow\(\) to have every pair of dates$"):
        release.count("2013-01-09", "2013-01-20")
