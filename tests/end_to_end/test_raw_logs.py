"""Logs of six kinds, each from the raw file to its first release in one command, and rules that surprise.

The noise is too small to change a rounded count, so that what was read is seen in what was released.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.end_to_end.command_line import run

pytestmark = pytest.mark.usefixtures("one_engine")

# With this budget the chance that any of the numbers here is off by a half is below 1e-20.
SURE = ("--unit", "event", "--epsilon", "1000")
DAYS = ("--start", "2012-07-01", "--end", "2012-07-08", "--step", "1d", "--window", "rolling:1")
FIRST = datetime(2012, 7, 1)
USERS = [(f"u{n % 7}", FIRST + timedelta(minutes=37 * n)) for n in range(300)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def released(*words: str) -> list[int]:
    """The counts of a release, in the order of its rows."""
    run("release", *words, *SURE, "-o", "out.json", "--force").must_work()
    return [round(row["estimate"]) for row in json.loads(Path("out.json").read_text())["rows"]]


def by_day(events: list[tuple[str, datetime]] = USERS) -> list[int]:
    return [len({who for who, at in events if at.date() == (FIRST + timedelta(days=n)).date()}) for n in range(7)]


def epoch_seconds_with_spaces_and_no_header() -> tuple[str, ...]:
    """As many public traces are written: columns lined up by spaces, and no names."""
    lines = [f"  {(at - datetime(1970, 1, 1)).total_seconds():.0f}   {who:>9}  /index\n" for who, at in USERS]
    Path("trace.txt").write_text("".join(lines))
    layout = ("--delimiter", "spaces", "--no-header", "--columns", "ts,host,path")
    return "trace.txt", "--item", "host", "--time", "ts", "--time-format", "epoch-s", *layout, *DAYS


def us_dates() -> tuple[str, ...]:
    lines = [f"{at.month}/{at.day}/{at.year} {at:%I:%M %p};{who}\n" for who, at in USERS]
    Path("visits.csv").write_text("Date;User\n" + "".join(lines))
    return "visits.csv", "--item", "User", "--time", "Date", "--time-format", "%m/%d/%Y %I:%M %p", *DAYS


def ids_born_in_excel() -> tuple[str, ...]:
    """Some ids as numbers with .0, some without, and gaps: rows without an id are no events."""
    rows = [f"{13085 + int(who[1:])}{'.0' if n % 3 else ''},{at}\n" for n, (who, at) in enumerate(USERS)]
    rows += [f",{at}\n" for _, at in USERS[:20]]
    Path("retail.csv").write_text("CustomerID,InvoiceDate\n" + "".join(rows))
    return "retail.csv", "--item", "CustomerID", "--item-type", "integer", "--time", "InvoiceDate", *DAYS


def days_only() -> tuple[str, ...]:
    Path("days.tsv").write_text("member\tday\n" + "".join(f"{who}\t{at:%Y%m%d}\n" for who, at in USERS))
    return "days.tsv", "--item", "member", "--time", "day", "--time-format", "%Y%m%d", *DAYS


def json_lines() -> tuple[str, ...]:
    rows = [{"at": int((at - datetime(1970, 1, 1)).total_seconds() * 1000), "user": {}, "id": who} for who, at in USERS]
    Path("events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "events.jsonl", "--item", "id", "--time", "at", "--time-format", "epoch-ms", *DAYS


KINDS = [epoch_seconds_with_spaces_and_no_header, us_dates, ids_born_in_excel, days_only, json_lines]


@pytest.mark.parametrize("write", KINDS, ids=lambda write: write.__name__)
def test_a_raw_log_is_released_in_one_command(write: Callable[[], tuple[str, ...]]) -> None:
    assert released(*write()) == by_day()


@pytest.mark.parametrize("write", KINDS, ids=lambda write: write.__name__)
def test_check_reads_it_without_being_told_how(write: Callable[[], tuple[str, ...]]) -> None:
    """Everything that the release above had to say, `check` finds by itself or asks, but for what columns are for."""
    words = write()
    names = ("--no-header", "--columns", "ts,host,path", "--delimiter", "spaces") if "--no-header" in words else ()
    columns = words[words.index("--item") : words.index("--item") + 2]
    time = words[words.index("--time") : words.index("--time") + 2]
    outcome = run("check", words[0], *columns, *time, *names, "--start", "2012-07-01", "--end", "2012-07-08", "--json")
    if write is us_dates:
        # In the first week of July nothing tells days from months.
        outcome.must_refuse("give --time-format '%m/%d/%Y %I:%M %p' or --time-format '%d/%m/%Y %I:%M %p'")
        return
    outcome.must_work()
    found = json.loads(outcome.out)
    assert found["items_inside"] == 7
    assert found["bad_rows"] == 0
    inside = sum(at < FIRST + timedelta(days=7) for _, at in USERS)
    assert found["inside"] == inside
    if "--time-format" in words:
        assert found["columns"]["time_format"] == words[words.index("--time-format") + 1]


def test_minutes_in_steps_of_minutes() -> None:
    lines = [f"{who},2012-07-01T10:{minute:02}\n" for who, minute in (("a", 0), ("b", 0), ("a", 1), ("a", 3))]
    Path("minutes.csv").write_text("host,minute\n" + "".join(lines))
    span = ("--start", "2012-07-01T10:00", "--end", "2012-07-01T10:04", "--step", "1m", "--window", "rolling:1")
    assert released("minutes.csv", "--item", "host", "--time", "minute", *span) == [2, 1, 0, 1]


# --- What a value means is said, and never guessed -------------------------------------------------------------------

ONE_DAY = ("--start", "2012-07-01", "--end", "2012-07-02", "--window", "cumulative")


def test_milliseconds_taken_for_seconds_lie_outside_every_range() -> None:
    """The rule: the unit is what --time-format says, however large the numbers are."""
    Path("log.csv").write_text("who,at\na,1341136800000\nb,1341136800\n")
    asked = ("log.csv", "--item", "who", "--time", "at", *ONE_DAY)
    assert released(*asked, "--time-format", "epoch-s") == [1]
    assert released(*asked, "--time-format", "epoch-ms") == [1]
    assert run("release", *asked, *SURE, "-o", "x.json").code == 2


def test_ids_above_2_53_are_exact_as_text_and_ignored_as_floats() -> None:
    """The rule: a floating-point number that stands for several whole numbers stands for none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = [2**53 - 1, 2**53, 2**53 + 1, 2**60, 2**60 + 1]
    Path("log.csv").write_text("who,at\n" + "".join(f"{one},2012-07-01\n" for one in ids))
    text = ("log.csv", "--item", "who", "--time", "at", *ONE_DAY)
    assert released(*text) == [5]
    assert released(*text, "--item-type", "integer") == [5]
    Path("log.csv").write_text("who,at\n" + "".join(f"{one}.0,2012-07-01\n" for one in ids))
    assert released(*text, "--item-type", "integer") == [1]
    times = pa.array([datetime(2012, 7, 1)] * len(ids), pa.timestamp("us"))
    pq.write_table(pa.table({"who": [float(one) for one in ids], "at": times}), "log.parquet")
    assert released("log.parquet", "--item", "who", "--time", "at", "--item-type", "integer", *ONE_DAY) == [1]


def test_mixed_types_in_json_are_one_text_or_refused() -> None:
    """The rule: a string is its text and a number its digits; all else is refused, whatever the other lines hold."""
    lines = ['{"who": 13085, "at": "2012-07-01"}', '{"who": "13085", "at": "2012-07-01"}']
    asked = ("log.jsonl", "--item", "who", "--time", "at", *ONE_DAY)
    Path("log.jsonl").write_text("\n".join(lines))
    assert released(*asked) == [1]
    for other in ("true", "[13085]", '{"id": 13085}', "13085.5"):
        Path("log.jsonl").write_text("\n".join([*lines, f'{{"who": {other}, "at": "2012-07-01"}}']))
        run("release", *asked, *SURE, "-o", "no.json").must_refuse("in line 3 of log.jsonl")


def test_times_in_a_gap_of_the_clock_are_read_with_the_offset_before_it() -> None:
    """The rule: 02:30 on the night the clock goes from 02:00 to 03:00 is the instant that 03:30 is.

    And 01:30 on the night it shows that twice is the first of the two.
    """
    clock = ("--time-zone", "America/New_York", "--step", "1h")
    asked = ("--item", "who", "--time", "at", *clock, "--window", "rolling:1")
    Path("gap.csv").write_text("who,at\na,2013-03-10T02:30\nb,2013-03-10T03:30\n")
    gap = ("--start", "2013-03-10T00:00", "--end", "2013-03-10T05:00")
    assert released("gap.csv", *asked, *gap) == [0, 0, 2, 0], "hours of 00, 01, 03 and 04"
    Path("fold.csv").write_text("who,at\na,2013-11-03T01:30\nb,2013-11-03T01:30-05:00\n")
    fold = ("--start", "2013-11-03T00:00", "--end", "2013-11-03T03:00")
    assert released("fold.csv", *asked, *fold) == [0, 1, 1, 0], "hours of 00, 01, 01 again and 02"
