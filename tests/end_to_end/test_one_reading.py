"""One log, one reading: whoever says at a later call how its columns are to be read gets no row counted for free.

Each attack reads one row in two ways, so that it counts in two releases of which a ledger, or a stream, took one for
having nothing to do with it. The noise of what is counted here is too small to change a rounded count.
"""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from pathlib import Path

import pytest

import dpwindows as dw
from dpwindows.cli.stream import advance, create
from dpwindows.count.events import CsvLayout, EventColumns
from dpwindows.errors import InputError, OverBudgetError
from dpwindows.stream.stream import Stream
from tests.end_to_end.command_line import Outcome, run

pytestmark = pytest.mark.usefixtures("one_engine")

JANUARY, FEBRUARY = ("--start", "2013-01-01", "--end", "2013-02-01"), ("--start", "2013-02-01", "--end", "2013-03-01")
# One row, with a time in January and another in February, and two names of people.
ROW = "ann,bob,2013-01-05,2013-02-05\n"
NAMES = "user,friend,at,changed"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(ROW)


def kept(unit: str, epsilon: str = "1") -> None:
    run("ledger", "create", "ledger.db", "--dataset", "d", "--unit", unit, "--epsilon", epsilon).must_work()


def release(*words: str, unit: str = "event", out: str = "out.json", item: str = "user", time: str = "at") -> Outcome:
    asked = ("--window", "cumulative", "--unit", unit, "--epsilon", "1", "--ledger", "ledger.db", "--dataset", "d")
    return run("release", "log.csv", "--item", item, "--time", time, *asked, *words, "-o", out, "--force")


def unnamed(names: str) -> tuple[str, ...]:
    return ("--no-header", "--columns", names)


def entries() -> list[dict[str, object]]:
    shown = json.loads(run("ledger", "show", "ledger.db", "--json").out)
    found: list[dict[str, object]] = shown["datasets"][0]["entries"]
    return found


def plan(timeline: dw.Timeline, unit: dw.EventLevel | None = None) -> dw.Plan:
    return dw.Plan([dw.Cumulative()], timeline=timeline, unit=unit or dw.EventLevel(), budget=dw.PureDP(1.0))


# --- Two releases -----------------------------------------------------------------------------------------------------


def test_columns_renamed_are_the_same_columns_for_a_ledger() -> None:
    """Under a total of 1, the row counts in one release of epsilon 1: by another column it would be two."""
    kept("event")
    assert release(*JANUARY, *unnamed(NAMES)).code == 0
    release(*FEBRUARY, *unnamed("user,friend,changed,at")).must_refuse("epsilon = 1 is spent")
    assert len(entries()) == 1
    # By its own column the row is in January alone, whatever that column is called.
    assert release(*FEBRUARY, *unnamed("a,b,c,d"), item="a", time="c").code == 0


def test_columns_renamed_are_the_same_columns_in_python() -> None:
    ledger = dw.Ledger.create("ledger.db", "d", budget=dw.PureDP(1.0), unit=dw.EventLevel())
    first, second = dw.Timeline("2013-01-01", "2013-02-01"), dw.Timeline("2013-02-01", "2013-03-01")
    plan(first).run("log.csv", item="user", time="at", columns=NAMES.split(","), ledger=ledger)
    with pytest.raises(OverBudgetError):
        plan(second).run("log.csv", item="user", time="at", columns=["user", "friend", "changed", "at"], ledger=ledger)
    assert len(ledger.book().entries) == 1


def test_items_of_a_renamed_column_are_other_items() -> None:
    kept("item-add-remove", "2")
    assert release(*JANUARY, *unnamed(NAMES), unit="item-add-remove").code == 0
    release(*FEBRUARY, *unnamed("friend,user,at,changed"), unit="item-add-remove").must_refuse(
        "the items of this dataset are those of column 1", "column 2 does not protect them"
    )
    assert len(entries()) == 1


def test_counts_of_a_renamed_column_are_other_events() -> None:
    Path("log.csv").write_text("ann,2013-01-05,2,3\n")
    kept("event", "2")
    assert release(*JANUARY, "--count", "n", *unnamed("user,at,n,m")).code == 0
    release(*FEBRUARY, "--count", "n", *unnamed("user,at,m,n")).must_refuse("units of column 3 are the events")


def test_a_renaming_that_changes_nothing_is_the_same_request() -> None:
    kept("event")
    assert release(*JANUARY, *unnamed(NAMES)).code == 0
    again = release(*JANUARY, *unnamed("a,b,c,d"), item="a", time="c", out="again.json")
    assert again.code == 0, again.err
    assert "Nothing was spent" in again.err
    assert Path("again.json").read_bytes() == Path("out.json").read_bytes()


@pytest.mark.parametrize("first", ["named", "unnamed"])
def test_a_dataset_keeps_to_files_with_a_line_of_names_or_without(first: str) -> None:
    kept("event", "9")
    Path("log.csv").write_text(f"{NAMES}\n{ROW}")
    told = {"named": (), "unnamed": ("--no-header", "--columns", NAMES, "--item-type", "integer")}
    time = ("--time-format", "%Y-%m-%d")
    other = next(name for name in told if name != first)
    if first == "unnamed":
        Path("log.csv").write_text(ROW)
    assert release(*JANUARY, *told[first], *time).code == 0
    release(*FEBRUARY, *told[other], *time).must_refuse(
        "by their line of names", "by --columns, cut at --delimiter ','"
    )
    assert len(entries()) == 1


# --- What a field is depends on the delimiter -------------------------------------------------------------------------


def test_a_column_by_another_delimiter_is_another_column() -> None:
    """`time` is 2013-01-05 where commas cut the line, and 2013-02-05 where semicolons do."""
    Path("log.csv").write_text("x,time,y;time;z\na,2013-01-05,q;2013-02-05;b\n")
    kept("event")
    assert release(*JANUARY, "--delimiter", ",", item="x", time="time").code == 0
    release(*FEBRUARY, "--delimiter", ";", item="z", time="time").must_refuse(
        "by their line of names, cut at --delimiter ','", "by their line of names, cut at --delimiter ';'"
    )
    assert len(entries()) == 1


def test_the_delimiter_does_not_follow_the_columns_asked_for() -> None:
    """Left to the line of names it is a function of that line alone: of other columns, `time` stays what it is."""
    Path("log.csv").write_text("x,time,y;time;z\na,2013-01-05,q;2013-02-05;b\n")
    kept("event", "9")
    assert release(*JANUARY, item="x", time="time").code == 0
    release(*FEBRUARY, item="z", time="time").must_refuse("--delimiter ';'")
    assert len(entries()) == 1


def test_one_row_of_a_delimiter_is_several_of_another() -> None:
    """By commas this is one event, by semicolons it is two of two items: who protects these does not protect it."""
    Path("log.csv").write_text('2013-01-05,a,"\n2013-01-05;b"\n')
    kept("event", "9")
    assert release(*JANUARY, *unnamed("at,user,note")).code == 0
    release(*FEBRUARY, *unnamed("at,user"), "--delimiter", ";", unit="item").must_refuse("cut at --delimiter ';'")


# --- Streams ----------------------------------------------------------------------------------------------------------

STREAM = ("--start", "2013-01-01", "--step", "1mo", "--window", "rolling:1", "--unit", "event", "--epsilon", "1000")


def counts(outcome: Outcome) -> list[int]:
    assert outcome.code == 0, outcome.err
    return [round(row["estimate"]) for row in json.loads(outcome.out)["rows"]]


def test_a_stream_reads_by_the_layout_it_was_created_with() -> None:
    run("stream", "create", "s.state", "--item", "user", "--time", "at", *STREAM, *unnamed(NAMES)).must_work()
    first = run("stream", "advance", "s.state", "log.csv", "--through", "2013-02-01", "--json")
    assert counts(first) == [1]
    # The row is of January: in February it is late, and no option reads it by its other column.
    renamed = unnamed("user,friend,changed,at")
    run("stream", "advance", "s.state", "log.csv", "--through", "2013-03-01", *renamed).must_refuse("No such option")
    ignored = run("stream", "advance", "s.state", "log.csv", "--through", "2013-03-01", "--late", "ignore", "--json")
    assert counts(ignored) == [0]


def test_a_stream_keeps_its_delimiter() -> None:
    columns = ("--item", "user", "--time", "at", "--delimiter", "spaces")
    run("stream", "create", "s.state", *columns, *STREAM).must_work()
    Path("log.txt").write_text("user at\nann   2013-01-05\nbob 2013-01-06\n")
    assert counts(run("stream", "advance", "s.state", "log.txt", "--through", "2013-02-01", "--json")) == [2]
    Path("log.parquet").write_bytes(b"PAR1 and so on")
    run("stream", "advance", "s.state", "log.parquet", "--through", "2013-03-01").must_refuse("--delimiter")


def test_a_stream_and_a_release_of_one_dataset_know_one_column_by_one_place() -> None:
    """A stream pays for the instants of a column; a release by another column pays besides."""
    kept("event")
    spent = ("--epsilon", "1", "--ledger", "ledger.db", "--dataset", "d")
    asked = ("--start", "2013-02-01", "--step", "1mo", "--window", "cumulative", "--unit", "event", *spent)
    run("stream", "create", "s.state", "--item", "user", "--time", "at", *asked, *unnamed(NAMES)).must_work()
    assert release(*JANUARY, *unnamed("user,friend,changed,at")).code == 2
    assert release(*JANUARY, *unnamed(NAMES)).code == 0


def test_columns_that_are_not_among_those_named_are_refused_before_anything_is_spent() -> None:
    kept("event")
    for names, said in (("user,friend,when,changed", "'at' for the time"), ("user,at,at,x", "'at' for the time")):
        release(*JANUARY, *unnamed(names)).must_refuse("--columns", said)
        run("stream", "create", "s.state", "--item", "user", "--time", "at", *STREAM, *unnamed(names)).must_refuse(said)
    assert entries() == []


def test_no_call_of_a_stream_says_how_events_are_read() -> None:
    """What `advance` takes is listed, each with the reason why it reads no row in another way."""
    reasons = {
        "events": "the log: that every call hands over events of one log is whose stream it is that promises it",
        "table": "which table of a database is the log: as events",
        "through": "which steps are closed",
        "empty": "no row is read",
        "late": "where a late event is counted: stream/calls.py has the proof",
        "later": "whether later events are left for a later call: as late",
        "gaps": "refuses to close steps without an event",
        "max_steps": "refuses what would close more steps",
        "allow_future": "refuses what would close steps that are not over",
    }
    assert set(inspect.signature(Stream.advance).parameters) - {"self"} == set(reasons)
    said = {option.name for option in advance.params}
    reading = {field.name for kind in (EventColumns, CsvLayout) for field in fields(kind)}
    reading |= {"no_header", "columns", "time_zone", "start", "step", "by", "values", "group_of"}
    assert not said & reading
    # ... and all of it is said when a stream is made; `layout` and `names` are options by other names, as `grouping`.
    assert reading - {"layout", "names", "grouping"} <= {option.name for option in create.params}


def test_a_state_holds_the_layout(tmp_path: Path) -> None:
    stream_plan = dw.StreamPlan([dw.Cumulative()], unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    Stream.create(
        tmp_path / "s", stream_plan, item="a", time="b", start=0, step=1, delimiter="\\t", columns=["a", "b"]
    ).close()
    with Stream.open(tmp_path / "s") as stream:
        assert stream._creation.columns == EventColumns("a", "b", layout=CsvLayout("\t", ("a", "b")))
    with pytest.raises(InputError, match="must be a list of names"):
        Stream.create(tmp_path / "t", stream_plan, item="a", time="b", start=0, step=1, columns="a,b")


def test_what_a_row_says_is_not_taken_for_our_own_message() -> None:
    """A regression: a row that quotes a mark of ours ended the command in a traceback."""
    Path("log.json").write_text('{"user": {"x": "dpwindows cannot read column: foo"}, "at": "2013-01-02"}\n')
    Path("wide.csv").write_text('user,at\nann,2013-01-01\nbob,2013-01-02,"dpwindows cannot read column: foo"\n')
    for log in ("log.json", "wide.csv"):
        asked = ("--item", "user", "--time", "at", *JANUARY, "--window", "cumulative", "--unit", "event")
        run("release", log, *asked, "--epsilon", "1", "-o", "out.json").must_refuse()
