"""Guesses of columns and formats: right where the log decides them, and a question where it does not."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpwindows.ask.groups import GroupColumn, Grouping
from dpwindows.count.check import LogOptions, check_events
from dpwindows.count.guess import are_hours_and_minutes, formats_of
from dpwindows.count.query.dialect import Kind
from dpwindows.errors import InputError

START = datetime(2013, 1, 1)


@pytest.mark.parametrize(
    ("values", "formats"),
    [
        (["2013-01-01", None, "2013-01-02T03:04:05Z"], ("iso",)),
        (["1341100800", "1341100801.0"], ("epoch-s",)),
        (["1341100800000"], ("epoch-ms",)),
        (["1341100800000000"], ("epoch-us",)),
        (["20130131"], ("%Y%m%d",)),
        (["1/31/2013 0:05"], ("%m/%d/%Y %H:%M",)),
        (["31/1/2013"], ("%d/%m/%Y",)),
        (["1/2/2013"], ("%m/%d/%Y", "%d/%m/%Y")),
        (["2013-01-31 10:00:00 UTC"], ("%Y-%m-%d %H:%M:%S UTC",)),
        (["[31/Jan/2013:10:00:00 -0400]"], ("[%d/%b/%Y:%H:%M:%S %z]",)),
        (["17", "18"], ("integer",)),
    ],
)
def test_a_format_reads_nine_in_ten_of_the_values(values: list[str | None], formats: tuple[str, ...]) -> None:
    assert formats_of(values, Kind.TEXT) == formats
    assert formats_of([*values, "ann"], Kind.TEXT) == ()
    assert formats_of([*values * 9, "ann"], Kind.TEXT) == (() if formats == ("integer",) else formats)


def test_hours_and_minutes_have_no_sixtieth_minute() -> None:
    clock = [f"{hour * 100 + 7 * minute}" for hour in range(24) for minute in range(8)]
    assert are_hours_and_minutes(clock)
    assert not are_hours_and_minutes([*clock, "1260"])
    assert not are_hours_and_minutes([str(step) for step in range(40)])


Rows = Iterable[Sequence[object]]


def write(names: str, rows: Rows, delimiter: str = ",") -> str:
    with Path("log.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerows([names.split(","), *rows])
    return "log.csv"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def hours(number: int) -> list[datetime]:
    return [START + timedelta(hours=hour) for hour in range(number)]


def case_and_measurements() -> str:
    """A name that ends in "id" and is no id, in a tenth of the rows."""
    rows = [(f"C{n // 9}", at, "x", n % 7 + 0.5 if n % 10 == 0 else "") for n, at in enumerate(hours(900))]
    return write("Case ID,Complete Timestamp,org:group,LacticAcid", rows)


def undecided_but_for_one(decisive: str) -> str:
    """Thousands of dates that may be read in two ways, and one that may not."""
    rows = [(n % 90, f"{n % 12 + 1:02}/{n % 12 + 1:02}/2013 10:00", 3) for n in range(3000)]
    return write("CustomerID,InvoiceDate,Quantity", [*rows, (7, f"{decisive}/2013 10:00", 1)])


def european_export() -> str:
    rows = [(1000 + n % 70, f"{at:%d.%m.%Y %H:%M}", f"{n % 9},5", "Köln") for n, at in enumerate(hours(900))]
    return write("Kundennummer,Datum,Betrag,Filiale", rows, delimiter=";")


def users_devices_and_products() -> str:
    rows = [(n % 90, n % 300, n % 40, 1_357_000_000_000 + 60_000 * n, n % 2 == 0) for n in range(900)]
    names = ("visitorid", "device_id", "itemid", "timestamp", "mobile")
    Path("log.jsonl").write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    return "log.jsonl"


def ids_as_floats() -> str:
    ids = [float(n % 80) if n % 5 else None for n in range(900)]
    table = {
        "amount": [n / 7 for n in range(900)],
        "custid": ids,
        "event_ts": [1_357_000_000 + 60 * n for n in range(900)],
    }
    pq.write_table(pa.table(table), "log.parquet")
    return "log.parquet"


def start_and_end() -> str:
    rows = [(f"R{n}", at, at + timedelta(minutes=9), n % 50, "Subscriber") for n, at in enumerate(hours(900))]
    return write("ride_id,starttime,stoptime,bikeid,usertype", rows)


def index_of_pandas() -> str:
    return write(",patient,admitted_at", [(n, n % 50, at) for n, at in enumerate(hours(90))])


def placeholders_among_values() -> str:
    values = ["NULL", "", "n/a"]
    rows = [(at, values[n % 3] if n % 10 == 0 else f"u{n % 50}", "home") for n, at in enumerate(hours(900))]
    return write("ts,user_id,screen", rows)


@pytest.mark.parametrize(
    ("log", "item", "time", "time_format"),
    [
        (case_and_measurements, "Case ID", "Complete Timestamp", None),
        (lambda: undecided_but_for_one("13/02"), "CustomerID", "InvoiceDate", "%d/%m/%Y %H:%M"),
        (lambda: undecided_but_for_one("02/13"), "CustomerID", "InvoiceDate", "%m/%d/%Y %H:%M"),
        (european_export, "Kundennummer", "Datum", "%d.%m.%Y %H:%M"),
        (users_devices_and_products, "visitorid", "timestamp", "epoch-ms"),
        (ids_as_floats, "custid", "event_ts", "epoch-s"),
        (start_and_end, "bikeid", "starttime", None),
        (index_of_pandas, "patient", "admitted_at", None),
        (placeholders_among_values, "user_id", "ts", None),
    ],
)
def test_what_the_log_decides_is_guessed(log: Callable[[], str], item: str, time: str, time_format: str | None) -> None:
    found = check_events(log(), LogOptions())
    assert (found.columns.item, found.columns.time, found.columns.time_format) == (item, time, time_format)
    assert set(found.evidence) == {"--item", "--time"}
    assert "have a value" in found.evidence["--item"].evidence or "has a value" in found.evidence["--item"].evidence
    assert not found.look.bad_rows


def test_a_guess_names_its_rivals() -> None:
    evidence = check_events(users_devices_and_products(), LogOptions()).evidence
    assert evidence["--item"].rivals == ("device_id", "itemid")
    assert "a name for people" in evidence["--item"].evidence
    assert check_events(start_and_end(), LogOptions()).evidence["--time"].rivals == ("stoptime",)


def test_what_cannot_be_read_whole_is_judged_by_its_first_rows() -> None:
    rows = [{"user": n % 90, "at": str(at), "note": "x" if n < 1500 else {"y": n}} for n, at in enumerate(hours(2000))]
    Path("log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = check_events("log.jsonl", LogOptions())
    assert (found.columns.item, found.look.rows) == ("user", 2000)
    assert "all of the first 1,000 rows have a value" in found.evidence["--item"].evidence


def test_what_is_given_is_not_asked_for() -> None:
    options = LogOptions(item="LacticAcid", time="Complete Timestamp")
    found = check_events(case_and_measurements(), options)
    assert not found.evidence
    assert any("810 of 900 rows (90%) have nothing in the item column 'LacticAcid'" in one for one in found.doubts)


def hours_of_a_day() -> str:
    rows = [(2008, n % 12 + 1, n % 28 + 1, n % 24 * 100 + n % 60, f"N{n % 90}") for n in range(900)]
    return write("Year,Month,DayofMonth,DepTime,TailNum", rows)


def undecided_dates() -> str:
    return write("member,day", [(n % 50, f"{n % 12 + 1}/{n % 11 + 1}/2013") for n in range(900)])


def two_ends_of_a_flow() -> str:
    return write("at,src_ip,dst_ip", [(at, f"10.0.0.{n % 50}", f"10.0.1.{n % 60}") for n, at in enumerate(hours(900))])


def mostly_without_a_user() -> str:
    return write("at,user_id,device_id", [(at, n if n % 9 == 0 else "", n % 50) for n, at in enumerate(hours(900))])


def no_names_at_all() -> str:
    draw = random.Random(1)
    rows = [(draw.randint(1, 99), draw.randint(1, 200), draw.randint(1, 5), 880_000_000 + n) for n in range(900)]
    return write(",".join(map(str, rows[0])), rows[1:])


def two_times() -> str:
    return write("user,created,occurred", [(n % 50, at, at) for n, at in enumerate(hours(900))])


def no_times() -> str:
    return write("user,colour", [("a", "red"), ("b", "blue")])


def mails() -> str:
    """A name for people over texts that are nearly all different."""
    return write("Date,Subject,Sender", [(at, f"Re: {n}", f"s{n % 30}") for n, at in enumerate(hours(900))])


def sales() -> str:
    return write("day,product_id,shop", [(at, n % 40, f"s{n % 30}") for n, at in enumerate(hours(900))])


def only_prices() -> str:
    return write("date,price", [(at, n + 0.5) for n, at in enumerate(hours(900))])


@pytest.mark.parametrize(
    ("log", "question"),
    [
        (hours_of_a_day, r"no column looks like one of times.*'DepTime' \(such as '0'\).*Parts of dates"),
        (undecided_dates, "900 values can be read in 2 ways: give --time-format %m/%d/%Y or --time-format %d/%m/%Y"),
        (two_ends_of_a_flow, r"holds the items is not clear: give one of --item (src|dst)_ip .*; --item (src|dst)_ip "),
        (mostly_without_a_user, r"give one of --item user_id \(11\.1% of rows have a value.*--item device_id"),
        (no_names_at_all, r"give one of --item c1 .*; --item c2 "),
        (two_times, r"holds the times is not clear: give one of --time created .*; --time occurred "),
        (mails, r"give one of --item (Subject|Sender) "),
        (sales, r"give one of --item product_id .*; --item shop "),
        (only_prices, "no column looks like one of items: name it with --item; the columns are date, price"),
        (no_times, "no column looks like one of times: .*user, colour"),
    ],
)
def test_what_it_does_not_decide_is_asked(log: Callable[[], str], question: str) -> None:
    with pytest.raises(InputError, match=question):
        check_events(log(), LogOptions())


def test_a_column_with_another_use_is_no_item() -> None:
    rows = [(at, n % 9, n % 50, f"s{n % 30}") for n, at in enumerate(hours(90))]
    log = write("at,user_count,account_no,shop", rows)
    grouping = Grouping((GroupColumn("account_no", ("1", "2")),))
    found = check_events(log, LogOptions(count="user_count", grouping=grouping))
    assert found.columns.item == "shop"
    assert found.evidence["--item"].evidence.startswith("the only column that may")


def test_numbers_of_steps_are_times_if_they_are_said_to_be() -> None:
    found = check_events(write("user,t", [(n % 9, n) for n in range(90)]), LogOptions(time="t"))
    assert (found.look.first, found.look.last) == (0, 89)
    assert not found.doubts


def test_hours_of_a_day_said_to_be_times_are_doubted() -> None:
    found = check_events(hours_of_a_day(), LogOptions(time="DepTime"))
    assert any("times of day without a day?" in doubt for doubt in found.doubts)
