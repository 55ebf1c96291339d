"""CSV as it is told to be laid out: delimiters, runs of spaces, no line of names. Nothing is sniffed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpwindows as dw
from dpwindows.count.events import CsvLayout, EngineSettings, EventColumns
from dpwindows.count.sources.csv_files import DELIMITERS, read_header
from dpwindows.errors import InputError
from tests.counting import count_events, in_steps
from tests.end_to_end.command_line import run

STEPS = dw.Timeline.of_steps(3)


def counted(source: object, layout: CsvLayout | None, **options: Any) -> list[int]:
    return in_steps(source, EventColumns("item", "time", layout=layout), STEPS, **options)


def written(folder: Path, content: str | bytes, name: str = "u.data") -> Path:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / name


def layout(delimiter: str | None = None, names: str | None = None) -> CsvLayout:
    return CsvLayout(delimiter, None if names is None else tuple(names.split(",")))


@pytest.mark.parametrize("mark", [",", ";", "|", ":", "^", " ", "~", "\t"])
def test_one_delimiter_with_and_without_names(mark: str, tmp_path: Path) -> None:
    rows = [["a", "x", "0"], ["b", "", "0"], ["a", f'"q{mark}"', "2"], ["", "x", "1"], ["time", "", "2"]]
    body = "".join(mark.join(row) + "\n" for row in rows)
    told = "\\t" if mark == "\t" else mark
    assert counted(written(tmp_path, body), layout(told, "item,other,time")) == [2, 0, 2]
    named = written(tmp_path, mark.join(["item", "other", "time"]) + "\n" + body, "a.csv")
    assert counted(named, layout(told)) == [2, 0, 2]
    if mark in DELIMITERS:
        assert counted(named, None) == [2, 0, 2]


def test_no_row_is_taken_for_the_line_of_names(tmp_path: Path) -> None:
    """A first row whose item is the column's own name is an event: that there are no names was said."""
    texts = written(tmp_path, "item,2013-01-01\n")
    days = dw.Timeline("2013-01-01", "2013-01-02")
    columns = EventColumns("item", "time", layout=layout(None, "item,time"))
    assert count_events(texts, columns, days, [1]).cumulative(1).tolist() == [1]
    with pytest.raises(InputError, match=r"line 1 of .* holds the names of the columns"):
        counted(written(tmp_path, "item,time\na,0\n"), layout(None, "item,time"))


def test_without_names_and_delimiter_it_is_a_comma(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1 of .* has 1 field where it is cut at"):
        counted(written(tmp_path, "a;0\nb;1\n"), layout(None, "item,time"))
    with pytest.raises(InputError, match=r"line 1 of .* has 3 fields .* --columns names 2 \(item, time\): name all"):
        counted(written(tmp_path, "a,0,7\nb,1,7\n"), layout(None, "item,time"))
    with pytest.raises(InputError, match="malformed"):
        counted(written(tmp_path, '"a",0,7\nb,1,7\n'), layout(None, "item,time"))
    with pytest.raises(InputError, match=r"line 1 of .* holds the names of the columns, .* leave out --no-header"):
        counted(written(tmp_path, "item,time\na,0\n"), layout(None, "item,time"))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_runs_of_spaces(end: str, tmp_path: Path) -> None:
    lines = ["  a   1 0", 'b "  \t 0 ', "", "   ", "c\t\t1\t2", 'a " 1']
    body = end.join([*lines, ""])
    assert counted(written(tmp_path, body), layout("spaces", "item,other,time")) == [2, 1, 1]
    named = f" item  other time{end}" + body
    assert counted(written(tmp_path, named), layout("spaces")) == [2, 1, 1]
    assert counted(written(tmp_path, b"\xef\xbb\xbf" + named.encode()), layout("spaces")) == [2, 1, 1]


@pytest.mark.parametrize("line", ["a 1", "a 1 2 0", "a"])
def test_a_line_with_other_fields_fails_the_run(line: str, tmp_path: Path) -> None:
    for place, said in ((f"{line}\nb 1 0\n", "line 1 of .* names 3"), (f"b 1 0\n{line}\n", "same number of fields")):
        with pytest.raises(InputError, match=said):
            counted(written(tmp_path, place), layout("spaces", "item,other,time"))


@pytest.mark.parametrize("mark", ["", "ab", "a", "7", '"', "'" * 2, "\\", "\n", "é", "\x01"])
def test_delimiters_that_are_none(mark: str) -> None:
    with pytest.raises(InputError, match="delimiter must be one ASCII character"):
        CsvLayout(mark)


def test_what_lays_itself_out_refuses(tmp_path: Path) -> None:
    table = pa.table({"item": ["a"], "time": [0]})
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (table, tmp_path / "a.parquet"):
        with pytest.raises(InputError, match="--delimiter say how CSV files are laid out"):
            counted(source, layout(";"))
    with pytest.raises(InputError, match=r"--no-header and --columns say .* engine spark"):
        counted("x/y.csv", layout(None, "item,time"), settings=EngineSettings(engine="spark"))
    for names in ("x,time", "item,item,time"):
        with pytest.raises(InputError, match=r"--columns must name the column 'item' for the item once"):
            EventColumns("item", "time", layout=layout(None, names))


def test_both_names_wrong_are_told_with_the_nearest(tmp_path: Path) -> None:
    file = written(tmp_path, "user_id,stamp_at,x\n", "a.csv")
    with pytest.raises(InputError) as refused:
        read_header(file, EventColumns("userid", "stampat"))
    said = str(refused.value)
    assert "'user_id'?" in said
    assert "'stamp_at'?" in said
    assert "columns are user_id, stamp_at, x" in said
    with pytest.raises(InputError, match=r"none of the columns 'items' for the item \(did you mean 'item'\?\)"):
        count_events(pa.table({"item": ["a"], "at": [0]}), EventColumns("items", "when"), STEPS, [1])


@pytest.mark.parametrize("given", [(), ("--delimiter", ",")])
def test_a_file_that_is_cut_at_what_is_not_in_it_asks_for_its_delimiter(given: tuple[str, ...], tmp_path: Path) -> None:
    log = written(tmp_path, "user~at~page\nann~2013-01-01~x\n", "log.csv")
    said = "log.csv, cut at ',', has one column, user~at~page: if it has more, say with --delimiter what delimits them"
    run("check", log, *given).must_refuse(said)
    asked = ("--start", "2013-01-01", "--end", "2013-02-01", "--window", "cumulative", "--unit", "event")
    release = ("release", log, "--item", "user", "--time", "at", *asked, "--epsilon", "1", "-o", tmp_path / "out.csv")
    run(*release, *given).must_refuse(said)
    run(*release, "--delimiter", "~").must_work()


def test_a_log_of_one_column_is_looked_at_and_released(tmp_path: Path) -> None:
    log = written(tmp_path, "when\n2013-01-01\n2013-01-02\n", "log.csv")
    columns = ("--item", "when", "--time", "when")
    run("check", log, *columns).must_work()
    asked = ("--start", "2013-01-01", "--end", "2013-02-01", "--window", "cumulative", "--unit", "event")
    run("release", log, *columns, *asked, "--epsilon", "1", "-o", tmp_path / "out.csv").must_work()
    run("check", log).must_refuse("has one column, when: if it has more")


def test_on_the_command_line(tmp_path: Path) -> None:
    """Ratings as they are handed out: runs of spaces, no names, seconds since 1970."""
    log = written(tmp_path, "196 242  3 881250949\n186 302  3 891717742\n")
    release: list[str | Path] = ["release", log, "--item", "user", "--time", "at", "--time-format", "epoch-s"]
    release += ["--window", "cumulative"]
    release += ["--start", "1997-12-01", "--end", "1998-05-01", "--step", "1mo", "--unit", "event", "--epsilon", "1e6"]
    out = tmp_path / "out.csv"
    told = run(*release, "--delimiter", "spaces", "--no-header", "--columns", "user,film,stars,at", "-o", out)
    assert told.code == 0, told.err
    estimates = dw.Release.load(out).to_arrow()["estimate"].to_pylist()
    assert list(map(round, estimates)) == [1, 1, 1, 1, 2]
    run(*release, "--no-header", "-o", tmp_path / "no.csv").must_refuse("go together")


def test_a_line_of_names_says_its_delimiter_by_itself(tmp_path: Path) -> None:
    """By the delimiter that makes most names of it, whichever of them are asked for; any other one is to be said."""
    log = written(tmp_path, "item;time;notes, as they are, by hand, and more\na;0;x\n", "a.csv")
    with pytest.raises(InputError, match=r"names the columns 'item', 'time' where it is cut at ';'.*--delimiter ';'"):
        counted(log, None)
    assert counted(log, layout(";")) == [1, 0, 0]
    assert counted(written(tmp_path, "item;time;a,b\na;0;x\n", "a.csv"), None) == [1, 0, 0]
    with pytest.raises(InputError, match="--delimiter ';'"):
        counted(written(tmp_path, "item;time;a,b,c\na;0;x\n", "a.csv"), None)


def test_a_stream_takes_its_layout_when_it_is_created(tmp_path: Path) -> None:
    plan = dw.StreamPlan([dw.Cumulative()], unit=dw.EventLevel(), budget=dw.PureDP(1e6))
    told: dict[str, Any] = {"delimiter": "spaces", "columns": ["item", "time"]}
    with dw.Stream.create(tmp_path / "s", plan, item="item", time="time", start=0, step=1, **told) as stream:
        made = stream.advance(written(tmp_path, "a 0\nb 0\n"), 1)
        assert round(made.to_arrow()["estimate"][0].as_py()) == 2
