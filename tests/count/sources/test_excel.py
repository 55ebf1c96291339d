"""Workbooks of Excel: each cell by itself becomes text, where openpyxl is installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pytest

from dpwindows.count.check import LogOptions, check_events
from dpwindows.count.sources.excel import sheet_rows
from dpwindows.errors import InputError
from tests.end_to_end.command_line import run

# An extra of the package: the tests' own environment has it (requirements.lock).
openpyxl = pytest.importorskip("openpyxl")

NOON = datetime(2013, 1, 2, 12)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def workbook(*rows: Sequence[Any], sheets: tuple[str, ...] = ("visits",)) -> str:
    book = openpyxl.Workbook()
    book.active.title = sheets[0]
    for row in rows:
        book.active.append(row)
    for name in sheets[1:]:
        book.create_sheet(name)
    book.save("log.xlsx")
    return "log.xlsx"


def test_a_cell_is_read_by_itself() -> None:
    cells = ["ann", 13085, 13085.0, 0.5, True, NOON, date(2013, 1, 2), time(10, 5), None]
    first, *rest = sheet_rows(Path(workbook(["cell", "end"], *([cell, "end"] for cell in cells))), None)
    assert first == ["cell", "end"]
    read = ["ann", "13085", "13085", "0.5", "true", "2013-01-02T12:00:00", "2013-01-02T00:00:00", "10:05:00", None]
    assert [row[0] for row in rest] == read


def test_a_workbook_is_released() -> None:
    rows: list[list[Any]] = [
        ["n", "Customer", "When"],
        [1, 7, NOON],
        [2, "7", NOON],
        [3, 8, None],
        [],
        [4],
        [5, 9, NOON],
    ]
    log = workbook(*rows)
    asked = ("--item", "Customer", "--time", "When", "--start", "2013-01-01", "--end", "2013-01-04")
    run(
        "release", log, *asked, "--window", "cumulative", "--unit", "event", "--epsilon", "1000", "-o", "o.csv"
    ).must_work()
    estimates = [float(line.split(",")[8]) for line in Path("o.csv").read_text().splitlines()[1:]]
    assert [round(estimate) for estimate in estimates] == [0, 2, 2]
    seen = check_events(log, LogOptions()).look
    assert (seen.rows, seen.items, seen.null_rows, seen.null_items, seen.null_times) == (5, 3, 2, 1, 2)


def test_a_value_that_cannot_be_read_has_its_row() -> None:
    log = workbook(["who", "at"], ["ann", NOON], [], ["bob", "soon"])
    run("check", log, "--item", "who", "--time", "at").must_refuse("such as 'soon' in the time column 'at' in row 4 of")


def test_of_several_sheets_one_is_named() -> None:
    log = workbook(["who", "at"], ["ann", NOON], ["bob", NOON], sheets=("visits", "notes"))
    run("check", log).must_refuse("has 2 tables, name one of them: visits, notes")
    run("check", log, "--table", "visits").must_work()


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("broken.xlsx").write_bytes(b"PK\3\4 and so on")
    run("check", "broken.xlsx").must_refuse("cannot be read as a workbook of Excel")
    log = workbook(["who", "at"], ["ann", NOON])
    run("check", log, "--item", "whom", "--time", "at").must_refuse("did you mean 'who'")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"install openpyxl \(pip install openpyxl\), or save the sheet as CSV"):
        next(sheet_rows(Path(log), None))
