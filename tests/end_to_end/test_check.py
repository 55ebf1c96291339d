"""`dpwindows check`: what an operator is told of a log before anything is asked of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.end_to_end.command_line import run, run_process

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def file(name: str, text: str) -> Path:
        Path(name).write_text(text)
        return Path(name)

    return file


def seen(*arguments: str | Path) -> dict[str, Any]:
    outcome = run("check", *arguments, "--json").must_work()
    found: dict[str, Any] = json.loads(outcome.out)
    return found


ROWS = "who,at,n\nann,2013-01-01T10:00,1\nbob,2013-01-02T11:00,2\n,2013-01-03T12:00,1\nann,,1\nann,2013-01-09T10:00,0\n"
JANUARY = ("--start", "2013-01-01", "--end", "2013-01-08")


def test_the_figures_are_exact(write: Write) -> None:
    found = seen(write("log.csv", ROWS), "--count", "n", *JANUARY)
    assert found["columns"]["item"] == "who"
    assert found["columns"]["time"] == "at"
    figures = ("rows", "items", "null_items", "null_times", "ignored", "bad_rows", "rows_inside", "inside", "grain")
    assert [found[name] for name in figures] == [5, 2, 1, 1, 1, 0, 2, 3, "h"]
    assert (found["first"], found["last"]) == ("2013-01-01T10:00:00", "2013-01-09T10:00:00")
    assert "eyes only" in found["warning"]


def test_it_says_for_whom_it_is_and_writes_nothing(write: Write) -> None:
    log = write("log.csv", ROWS)
    outcome = run_process("check", log, cwd=Path.cwd())
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("For your eyes only")
    assert [path.name for path in Path.cwd().iterdir()] == ["log.csv"]
    assert "\x1b" not in outcome.out


@pytest.mark.parametrize(
    ("zone", "span", "first", "last"),
    [
        (None, (), "2024-03-04T01:00:00", "2024-03-05T02:00:00"),
        ("America/New_York", (), "2024-03-03T20:00:00", "2024-03-04T23:30:00"),
        ("Asia/Tokyo", ("--start", "2024-03-01", "--end", "2024-04-01"), "2024-03-04T10:00:00", "2024-03-05T11:00:00"),
    ],
)
def test_times_are_shown_in_the_zone_that_is_asked_for(
    write: Write, zone: str | None, span: tuple[str, ...], first: str, last: str
) -> None:
    """Instants are, and what carries no zone is as it stands: it is local there."""
    rows = "ann,2024-03-04T01:00:00Z\nbob,2024-03-05T04:00:00+02:00\nann,2024-03-04T23:30\n"
    options = (write("log.csv", "who,at\n" + rows), *span, *(() if zone is None else ("--time-zone", zone)))
    found = seen(*options)
    assert (found["first"], found["last"], found["zone"]) == (first, last, zone or "UTC")
    shown = run("check", *options).must_work().out
    assert last + ("" if zone is None else f" ({zone})") + "\n" in shown


def test_times_at_the_ends_of_all_calendars_are_shown(write: Write) -> None:
    log = write("log.csv", "who,at\nann,0001-01-01T00:00Z\nbob,9999-12-31T23:00Z\n")
    for zone in ("America/New_York", "Asia/Tokyo"):
        found = seen(log, "--item", "who", "--time", "at", "--time-zone", zone)
        assert (found["first"][:10], found["last"][:10]) == ("0001-01-01", "9999-12-31")
    for moment in (-(10**17), 10**18):
        pq.write_table(pa.table({"who": ["ann"], "at": pa.array([moment], pa.timestamp("us", "UTC"))}), "far.parquet")
        found = seen("far.parquet", "--item", "who", "--time", "at", "--time-zone", "America/New_York")
        assert found["first"][:10] == ("0001-01-01" if moment < 0 else "9999-12-31")


@pytest.mark.parametrize(
    ("kind", "options", "hour"),
    [
        (pa.timestamp("us", "UTC"), (), "10"),
        (pa.timestamp("us"), (), "01"),
        (pa.int64(), ("--time-format", "epoch-us"), "10"),
    ],
    ids=str,
)
def test_columns_of_times_are_shown_in_the_zone(
    write: Write, kind: pa.DataType, options: tuple[str, ...], hour: str
) -> None:
    at = pa.array([datetime(2024, 3, 4, 1, n) for n in range(3)], pa.timestamp("us")).cast(kind)
    pq.write_table(pa.table({"who": ["ann", "bob", "ann"], "at": at}), "log.parquet")
    found = seen("log.parquet", "--item", "who", "--time", "at", *options, "--time-zone", "Asia/Tokyo")
    assert (found["first"], found["last"]) == (f"2024-03-04T{hour}:00:00", f"2024-03-04T{hour}:02:00")


def test_the_range_is_left_to_the_operator(write: Write) -> None:
    command = seen(write("log.csv", ROWS))["command"]
    assert "--start START --end END" in command
    assert "2013" not in command


def test_the_wrong_year_is_caught(write: Write) -> None:
    outcome = run("check", write("log.csv", ROWS), "--start", "2014-01-01", "--end", "2014-02-01")
    outcome.must_refuse("of 5 rows none lies in the range 2014-01-01 to 2014-02-01")
    assert "is the year right?" in outcome.err


def test_one_row_of_many_is_neither_nothing_nor_all(write: Write) -> None:
    log = write("log.csv", "who,at\n" + "ann,2013-01-01T10:00\n" * 3000 + "bob,2013-02-01T10:00\n")
    outcome = run("check", log, *JANUARY).must_work()
    assert "3,000 events of 1 item, 99.97% of the rows\n" in outcome.out
    assert "Note: 0.0333% of the rows lie outside the range" in outcome.out


def test_what_was_given_is_not_asked_for(write: Write) -> None:
    log = write("log.csv", ROWS)
    assert "START and END are for you to fill in" in run("check", log).out
    assert "START" not in run("check", log, *JANUARY).out


@pytest.mark.parametrize(
    ("rows", "options", "mend"),
    [
        ("a,02/30/2013,1", ["--time-format", "%m/%d/%Y"], "it is not as --time-format '%m/%d/%Y' says: give another"),
        ("a,2013-02-30,1", [], "say how it is written with --time-format"),
        ("a,2013-02-03,x", ["--count", "n"], "counts are whole numbers: mend them, or leave --count out"),
    ],
)
def test_a_row_that_cannot_be_read_names_what_mends_it(write: Write, rows: str, options: list[str], mend: str) -> None:
    log = write("log.csv", f"who,at,n\n{rows}\n")
    outcome = run("check", log, "--item", "who", "--time", "at", *options).must_refuse("1 row cannot be read")
    assert mend in outcome.err


def test_rows_without_item_and_time_are_counted(write: Write) -> None:
    found = seen(write("log.csv", "who,at,n\nann,2013-01-01,1\n,,2\n,2013-01-02,3\nbob,,4\n"))
    assert [found[name] for name in ("rows", "null_rows", "null_items", "null_times")] == [4, 3, 2, 2]
    spaced = write("log.txt", "who at\nann 2013-01-01\n\nbob 2013-01-02\n")
    assert seen(spaced, "--delimiter", "spaces")["rows"] == 2
    assert "without either    1, counted in both lines above" in run("check", "log.csv").out


def test_a_text_that_stands_for_no_item_is_noticed(write: Write) -> None:
    log = write("log.csv", "who,at\nann,2013-01-01\nNULL,2013-01-01\nnull,2013-01-02\n")
    assert any("2 rows have a text such as NULL for the item column 'who'" in note for note in seen(log)["notes"])


PLACES = "who,at,land\n" + "".join(
    f"u{n},2013-01-0{n % 7 + 1},{land}\n" for n, land in enumerate(["de"] * 6 + ["fr"] * 5 + ["Italy"] * 3 + [""] * 2)
)


def test_values_of_a_list_are_looked_for(write: Write) -> None:
    log = write("log.csv", PLACES)
    found = seen(log, "--by", "land", "--values", "de,fr,italy", *JANUARY)
    assert found["doubts"][0] == "1 of 3 values listed for 'land' does not occur: 'italy' (did you mean 'Italy'?)"
    assert "18.8% of the rows are ignored, as their 'land' is not on its list: 'Italy' (3 rows)" in found["notes"]
    (group,) = found["groups"]
    assert (group["absent"], group["others"], group["other_rows"]) == (["italy"], [["Italy", 3]], 3)
    assert "--by land --values de,fr,italy --max-groups N" in found["command"]
    run("check", log, "--by", "land", "--values", "DE,FR").must_refuse("2 of 2 values listed for 'land' do not occur")


def test_values_are_matched_as_a_release_matches_them(write: Write) -> None:
    """Numbers by what they are; in the range, if one is given; and each column by itself."""
    table = pa.table(
        {
            "who": ["a", "b", "c", "a"],
            "at": pa.array([0, 1, 2, 400 * 86_400], pa.timestamp("s")),
            "shop": pa.array([1, 2, 2, 3]),
            "kind": ["x", "y", "x", "y"],
        }
    )
    pq.write_table(table, "log.parquet")
    listed = ("--by", "shop", "--values", "01,2,3", "--by", "kind", "--values", "x,y,z")
    assert [group["absent"] for group in seen("log.parquet", *listed)["groups"]] == [[], ["z"]]
    year = ("--start", "1970-01-01", "--end", "1971-01-01")
    assert [group["absent"] for group in seen("log.parquet", *listed, *year)["groups"]] == [["3"], ["z"]]


@pytest.mark.parametrize(
    ("span", "doubt"),
    [
        (("--start", "2012-01-01", "--end", "2014-01-01"), "the first 366 of 731 steps hold no event"),
        (("--start", "2013-01-01", "--end", "2015-01-01"), "the last 384 of 730 steps hold no event"),
        (("--start", "2013-01-01", "--end", "2013-12-14", "--step", "1h"), "7,993 of 8,328 steps hold no event"),
        (("--start", "2013-12-01", "--end", "2013-12-13"), "99.7% of the rows lie outside the range"),
        (("--start", "2013-01-01", "--end", "2013-12-14"), None),
    ],
)
def test_a_range_that_does_not_fit_is_doubted(write: Write, span: tuple[str, ...], doubt: str | None) -> None:
    days = [np.datetime64("2013-01-01") + day for day in range(334)]
    rows = "".join(f"u{n % 7},{day}\n" for n, day in enumerate([*days, np.datetime64("2013-12-12")]))
    doubts = seen(write("log.csv", "user,time\n" + rows), *span)["doubts"]
    assert (doubt is None and not doubts) or any(str(doubt) in one for one in doubts), doubts


@pytest.mark.parametrize("text", ["", "\n\n", "who,at\n"])
def test_the_empty_file_is_caught(write: Write, text: str) -> None:
    run("check", write("log.csv", text)).must_refuse("noise")


def test_values_that_cannot_be_read_are_shown_with_their_lines(write: Write) -> None:
    log = write("log.csv", 'who,at\n"a\nb",2013-01-01\nann,soon\nbob,soon\nbob,2013-02-30\n')
    outcome = run("check", log, "--item", "who", "--time", "at", "--json")
    outcome.must_refuse("3 rows cannot be read, such as 'soon' in the time column 'at' in line 4 of log.csv")
    bad = json.loads(outcome.out)["bad"]
    assert [(one["text"], one["rows"], one["place"]) for one in bad] == [
        ("soon", 2, "line 4 of log.csv"),
        ("2013-02-30", 1, "line 6 of log.csv"),
    ]


def test_what_is_guessed_is_said_and_runs(write: Write) -> None:
    """The command shown releases the log, once the range is filled in."""
    spaced = "".join(f"  {1341100800 + 6000 * n}   u{n % 7}.0 \n" for n in range(90)).replace("u", "1")
    found = seen(write("log.txt", spaced))
    assert set(found["guessed"]) == {
        *("--item", "--time", "--delimiter", "--no-header --columns", "--time-format", "--item-type")
    }
    words = shlex.split(found["command"].replace("START", "2012-07-01").replace("END", "2012-08-01"))
    run(*words[1:]).must_work()
    assert Path("release.parquet").exists()


@pytest.mark.parametrize(
    ("seconds", "count", "step"),
    [
        (60, 400, "1m"),
        (60, 4000, "15m"),
        (3600, 400, "1h"),
        (86_400, 365, "1d"),
        (86_400, 2, "1d"),
        (86_400, 3000, "1w"),
    ],
)
def test_the_step_suits_the_times(write: Write, seconds: int, count: int, step: str) -> None:
    text = "user,time\n" + "".join(f"u{n % 3},{1_000_000_800 // 86_400 * 86_400 + seconds * n}\n" for n in range(count))
    assert seen(write("log.csv", text))["step"] == step


def test_two_readings_of_a_date_are_asked_about(write: Write) -> None:
    outcome = run("check", write("log.csv", "user,day\na,1/2/2013\nb,3/4/2013\na,5/6/2013\n"))
    outcome.must_refuse("all that can be read of 3 values can be read in 2 ways")
    assert "give --time-format %m/%d/%Y or --time-format %d/%m/%Y" in outcome.err


def test_milliseconds_said_to_be_seconds_are_noticed(write: Write) -> None:
    log = write("log.csv", "user,ts\na,1341100800000\na,1341100800001\n")
    assert any("By their size" in doubt for doubt in seen(log, "--time-format", "epoch-us")["doubts"])
    outcome = run("check", log, "--time-format", "epoch-s", "--start", "2012-07-01", "--end", "2012-08-01")
    outcome.must_refuse("of 2 rows none lies in the range")
    assert "is --time-format epoch-s right? By their size the first times are epoch-ms" in outcome.err


def test_every_kind_of_file(write: Write, tmp_path: Path) -> None:
    table = pa.table({"user": ["a", "b", "a"], "time": pa.array([0, 1, 2], pa.timestamp("s"))})
    pq.write_table(table, "log.parquet")
    with duckdb.connect("log.duckdb") as connection:
        connection.register("frame", table)
        connection.execute("CREATE TABLE log AS FROM frame")
    lines = "".join(json.dumps({"user": user, "time": f"1970-01-01T00:00:0{n}"}) + "\n" for n, user in enumerate("aba"))
    write("log.jsonl", lines)
    for name in ("log.parquet", "log.duckdb", "log.jsonl"):
        found = seen(name)
        assert (found["rows"], found["items"], found["last"]) == (3, 2, "1970-01-01T00:00:02"), name
        assert found["columns"]["item"] == "user"


def test_an_unknown_column_names_those_there_are(write: Write) -> None:
    outcome = run("check", write("log.csv", ROWS), "--item", "wo", "--time", "att").must_refuse("did you mean 'who'")
    assert "did you mean 'at'" in outcome.err
    assert "who, at, n" in outcome.err


def test_other_engines_are_refused_by_name(write: Write) -> None:
    run("check", "postgresql://reader@localhost/shop", "--table", "visits").must_refuse("the engine postgresql")
