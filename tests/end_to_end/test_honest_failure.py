"""Bad input through the command line: exit 2, one helpful message, nothing written, no budget spent."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpwindows.kernel.measure
from tests.end_to_end.command_line import run, run_process


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text("who,at,share\nann,2013-01-02,0.5\nbob,2013-01-03 10:00:00,0.1\n")
    return path


@pytest.fixture(autouse=True)
def _no_noise_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("noise was drawn for a request that must fail")

    monkeypatch.setattr(dpwindows.kernel.measure, "draw_noise", refuse)


GOOD = {
    "--item": "who",
    "--time": "at",
    "--start": "2013-01-01",
    "--end": "2013-02-01",
    "--window": "rolling:7",
    "--unit": "event",
    "--epsilon": "1",
}

BAD: list[tuple[dict[str, str], list[str]]] = [
    ({"--item": "whom"}, ["whom", "who"]),
    ({"--time": "when"}, ["when", "at"]),
    ({"--count": "times"}, ["times"]),
    ({"--count": "share"}, ["share", "whole numbers"]),
    ({"--time": "who"}, ["who"]),
    ({"--epsilon": "-1"}, ["--epsilon must", "-1"]),
    ({"--epsilon": "0"}, ["--epsilon must", "0"]),
    ({"--epsilon": "nan"}, ["epsilon", "nan"]),
    ({"--epsilon": "inf"}, ["--epsilon must", "inf"]),
    ({"--epsilon": "one"}, ["epsilon", "one"]),
    ({"--delta": "1"}, ["--delta must", "1.0"]),
    ({"--delta": "-1e-6"}, ["--delta must"]),
    ({"--delta": "nan"}, ["delta", "nan"]),
    ({"--rho": "1"}, ["epsilon", "rho"]),
    ({"--at-least": "0"}, ["--at-least must", "at least 1", "0"]),
    ({"--at-least": "-3"}, ["--at-least must", "-3"]),
    ({"--exactly": "0"}, ["--exactly must", "0"]),
    ({"--at-least": "1.5"}, ["1.5"]),
    ({"--window": "rolling:0"}, ["--window 'rolling:0' needs"]),
    ({"--window": "rolling"}, ["rolling:28", "whole number of steps"]),
    ({"--window": "rolling:7d"}, ["rolling:7d", "whole number"]),
    ({"--window": "sliding:7"}, ["unknown --window 'sliding:7'", "cumulative"]),
    ({"--window": "any:"}, ["any:"]),
    ({"--unit": "person"}, ["unknown --unit 'person'", "event", "item"]),
    ({"--unit": "item-per:0"}, ["--unit 'item-per:0' needs", "from 1"]),
    ({"--unit": "item-per"}, ["a whole number of steps", "item-per:30"]),
    ({"--end": "2012-12-01"}, ["--end must be after"]),
    ({"--end": "2013-01-01"}, ["end", "after"]),
    ({"--end": "2013-01-31T12:00"}, ["2013-01-31"]),
    ({"--start": "soon"}, ["--start must", "soon"]),
    ({"--step": "1y"}, ["1y"]),
    ({"--step": "0d"}, ["--step must"]),
    ({"--step": "1"}, ["integer"]),
    ({"--time-zone": "Mars/Olympus"}, ["Mars/Olympus"]),
    ({"--strategy": "magic"}, ["unknown --strategy 'magic'", "auto"]),
    ({"--strategy": "dense-counter"}, ["dense-counter", "does not apply"]),
    ({"--weights": "1,2"}, ["--weights are"]),
    ({"--weights": "x"}, ["weights", "x"]),
    ({"--weights": "-1"}, ["--weights must"]),
    ({"--confidence": "1"}, ["--confidence must"]),
    ({"--memory-limit": "lots"}, ["lots"]),
    ({"--engine": "abacus"}, ["abacus"]),
    ({"--window": "any", "--start": "2000-01-01", "--end": "2013-02-01"}, ["5,000,000", "any:MAX"]),
    ({"--epsilon": "1e-300"}, ["epsilon"]),
    ({"--epsilon": "1e-14", "--unit": "item"}, ["epsilon", "1e-14"]),
    ({"--histogram": "1"}, ["--histogram must"]),
    ({"--ledger": "budget.db"}, ["--ledger"]),
]


@pytest.mark.parametrize(
    ("changed", "words"), BAD, ids=[" ".join(f"{k}={v}" for k, v in bad.items()) for bad, _ in BAD]
)
def test_bad_requests_are_refused(log: Path, changed: dict[str, str], words: list[str]) -> None:
    out = log.parent / "release.parquet"
    options = [part for pair in (GOOD | changed).items() for part in pair]
    before = sorted(log.parent.iterdir())
    outcome = run("release", log, *options, "-o", out).must_refuse()
    assert all(word in outcome.err for word in words), outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.err.count("Error:") == 1
    assert sorted(log.parent.iterdir()) == before


@pytest.mark.parametrize("missing", sorted(GOOD))
def test_what_is_required_is_named(log: Path, missing: str) -> None:
    options = [part for pair in GOOD.items() if pair[0] != missing for part in pair]
    run("release", log, *options, "-o", log.parent / "release.csv").must_refuse(missing.removeprefix("--"))


def _refused(events: Path | str, out: Path, *more: str) -> str:
    options = [part for pair in GOOD.items() for part in pair]
    outcome = run("release", events, *options, *more, "-o", out).must_refuse()
    assert not out.exists()
    return outcome.err


def test_logs_that_cannot_be_read_are_refused(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "release.json"
    assert "nowhere.csv" in _refused(tmp_path / "nowhere.csv", out)
    assert "*.parquet" in _refused(tmp_path / "*.parquet", out)
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 this is no parquet file")
    assert "torn.parquet" in _refused(torn, out)
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    assert "nothing" in _refused(nothing, out)
    words = tmp_path / "words.csv"
    words.write_text("who,at\nann,yesterday\n")
    message = _refused(words, out)
    assert "at" in message
    assert "'yesterday' in line 2" in message
    database = tmp_path / "log.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 'ann' AS who, DATE '2013-01-02' AS at")
        connection.execute("CREATE TABLE calls AS SELECT * FROM visits")
    assert "calls, visits" in _refused(database, out)
    assert "visits" in _refused(database, out, "--table", "visit")
    floats = tmp_path / "floats.parquet"
    duckdb.sql(f"COPY (SELECT 1.5::DOUBLE AS who, DATE '2013-01-02' AS at) TO '{floats}'")
    assert "who" in _refused(floats, out)


def test_outputs_that_cannot_be_written_are_refused_before_reading(log: Path, tmp_path: Path) -> None:
    assert ".parquet" in _refused(log, tmp_path / "release.xlsx")
    assert "folder" in _refused(log, tmp_path / "missing" / "release.csv")
    taken = tmp_path / "taken.csv"
    taken.write_text("keep me")
    options = [part for pair in GOOD.items() for part in pair]
    run("release", log, *options, "-o", taken).must_refuse("--force")
    assert taken.read_text() == "keep me"


def test_a_first_line_that_is_a_row_is_not_repeated(tmp_path: Path) -> None:
    headless = tmp_path / "headless.csv"
    headless.write_text("4242,2013-01-03 12:47:27\n")
    message = _refused(headless, tmp_path / "release.csv")
    assert "line of names" in message
    assert "4242" not in message


def test_demo_does_not_replace_what_it_was_not_told_to(tmp_path: Path) -> None:
    page = tmp_path / "mine.html"
    page.write_text("precious")
    run("demo", "-o", tmp_path / "mine.parquet").must_refuse()
    assert page.read_text() == "precious"
    assert run("demo", "-o", tmp_path / "new" / "mine.xlsx").code == 2
    assert not (tmp_path / "new").exists()


def test_report_refuses_what_is_no_release(log: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    for found in (tmp_path / "gone.parquet", log, tmp_path / "log.txt"):
        run("report", found, "-o", page).must_refuse()
        assert not page.exists()


def test_a_failing_process_shows_one_message_and_no_traceback(tmp_path: Path) -> None:
    outcome = run_process(
        "plan", "--window", "rolling:x", "--unit", "event", "--epsilon", "1", "--steps", "9"
    ).must_refuse()
    assert outcome.out == ""
    assert outcome.err.strip().count("\n") == 0


def test_a_window_longer_than_the_range_means_cumulative_and_says_so() -> None:
    outcome = run("plan", "--window", "rolling:400", "--unit", "event", "--epsilon", "1", "--steps", "365", "--json")
    outcome.must_work()
    assert "rolling:400" in outcome.err
    assert "cumulative" in outcome.err
