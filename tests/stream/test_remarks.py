"""What `stream advance` tells its operator of the steps it closed: in notes, and in no release."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.stream.calls import remarks_on_steps, require_passed
from tests.end_to_end.command_line import run

ASKED = ("--window", "rolling:2", "--unit", "event", "--epsilon", "1")
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def at(step: int) -> str:
    return f"t{step}"


@pytest.mark.parametrize(
    ("closed", "given", "words"),
    [
        (range(11, 13), (12,), "for 1 of the 2 steps closed now, the one that ends at t11:"),
        (range(3, 4), (), "for the step closed now, the one that ends at t3:"),
        (range(1, 7), (2,), "for 5 of the 6 steps closed now, those that end at t1, t3, t4 and 2 more:"),
    ],
)
def test_steps_without_an_event_are_named(closed: range, given: tuple[int, ...], words: str) -> None:
    (remark,) = remarks_on_steps(closed, given, at, refused=False)
    assert words in remark
    with pytest.raises(dw.InputError, match=words[:-1] + ".*--gaps accept.*No step was closed"):
        remarks_on_steps(closed, given, at, refused=True)
    for refused in (True, False):
        assert not remarks_on_steps(closed, (*closed, closed.stop), at, refused=refused)


@pytest.mark.parametrize(("end", "ahead"), [("2026-12-21", "28 days"), ("2026-11-24", "12 hours")])
def test_a_step_that_is_not_over_is_not_closed(end: str, ahead: str) -> None:
    with pytest.raises(dw.InputError, match=f"{end} is {ahead} ahead of now.*--allow-future"):
        require_passed(dw.Timeline("2026-11-01", end), NOW)


def test_the_zone_of_the_stream_tells_when_a_day_is_over() -> None:
    days = {zone: dw.Timeline("2026-11-01", "2026-11-24", time_zone=zone) for zone in ("UTC", "Asia/Tokyo")}
    require_passed(days["Asia/Tokyo"], datetime(2026, 11, 23, 15, tzinfo=UTC))
    with pytest.raises(dw.InputError, match="ahead of now"):
        require_passed(days["UTC"], datetime(2026, 11, 23, 15, tzinfo=UTC))


def test_whole_numbers_are_never_ahead() -> None:
    require_passed(dw.Timeline(0, 10**9, 10**8), NOW)


def test_a_missing_day_is_named_where_it_is_closed_and_nowhere_else(tmp_path: Path) -> None:
    state, out = tmp_path / "state", tmp_path / "out.json"
    first, third = (tmp_path / f"{day}.csv" for day in (1, 3))
    first.write_text("who,at\nann,2013-01-01\n")
    third.write_text("who,at\nann,2013-01-03\n")
    create = ("stream", "create", state, "--item", "who", "--time", "at", "--start", "2013-01-01", *ASKED)
    assert run(*create).code == 0
    again = run(*create).must_refuse("exists already")
    assert "Note" not in again.err
    whole = run("stream", "advance", state, first, "--through", "2013-01-02")
    assert "Note" not in whole.err
    assert "1 number of step 1 (" in whole.err.replace("\n", " ")
    gap = ("stream", "advance", state, third, "--through", "2013-01-04", "-o", out)
    noted = run(*gap)
    assert noted.code == 0
    assert (
        "Note: no event was handed over for 1 of the 2 steps closed now, the one that ends at 2013-01-03:" in noted.err
    )
    assert "handed over" not in out.read_text()
    for quiet in ((*gap, "--force"), ("stream", "advance", state, "--empty", "--through", "2013-01-05")):
        outcome = run(*quiet)
        assert outcome.code == 0
        assert "Note" not in outcome.err


def test_a_night_without_its_file_closes_nothing_where_gaps_are_refused(tmp_path: Path) -> None:
    state, log = tmp_path / "state", tmp_path / "log.csv"
    log.write_text("who,at\nann,2013-01-01\n")
    assert run("stream", "create", state, "--item", "who", "--time", "at", "--start", "2013-01-01", *ASKED).code == 0
    first = ("stream", "advance", state, log, "--gaps", "refuse", "--through")
    assert run(*first, "2013-01-02").code == 0
    run(*first, "2013-01-03").must_refuse("no event was handed over for the step closed now, the one that ends at")
    assert "1 step," in run("stream", "show", state).out
    log.write_text(log.read_text() + "bob,2013-01-02\n")
    assert run(*first, "2013-01-03").code == 0
    # Whoever says that there was nothing has no gap.
    assert run("stream", "advance", state, "--empty", "--gaps", "refuse", "--through", "2013-01-04").code == 0


def test_python_has_the_notes_of_the_last_call(tmp_path: Path) -> None:
    plan = dw.StreamPlan([dw.Rolling(2)], unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    log = pa.table({"who": ["ann"], "at": [1]})
    with dw.Stream.create(tmp_path / "state", plan, item="who", time="at", start=0, step=1) as stream:
        stream.advance(log, 3)
        (note,) = stream.notes
        assert "for 2 of the 3 steps" in note
        stream.advance(None, 3)
        assert stream.notes == ()


def test_a_wrong_year_closes_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert run("stream", "create", state, "--item", "who", "--time", "at", "--start", "2998-12-31", *ASKED).code == 0
    advance = ("stream", "advance", state, "--empty", "--through", "2999-01-01")
    run(*advance).must_refuse("ahead of now")
    assert "0 steps" in run("stream", "show", state).out
    assert run(*advance, "--allow-future").code == 0
    # What is closed is returned again, whatever the time.
    assert run(*advance).code == 0


@pytest.mark.parametrize(("unit", "move"), [("event", True), ("item-per:2", False)])
def test_late_events_are_refused_with_the_options_that_the_unit_allows(tmp_path: Path, unit: str, move: bool) -> None:
    state, log = tmp_path / "state", tmp_path / "log.csv"
    log.write_text("who,at\nann,2013-01-01\n")
    asked = ("--window", "rolling:2", "--unit", unit, "--epsilon", "1")
    assert run("stream", "create", state, "--item", "who", "--time", "at", "--start", "2013-01-01", *asked).code == 0
    assert run("stream", "advance", state, "--empty", "--through", "2013-01-02").code == 0
    refused = run("stream", "advance", state, log, "--through", "2013-01-03").must_refuse("--late ignore")
    assert ("--late move" in refused.err) is move


def test_an_end_off_the_steps_is_called_what_the_caller_called_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert run("stream", "create", state, "--item", "who", "--time", "at", "--start", "2013-01-01", *ASKED).code == 0
    refused = run("stream", "advance", state, "--empty", "--through", "2013-01-02T05:00").must_refuse(
        "the nearest through is 2013-01-02"
    )
    assert "end=" not in refused.err
