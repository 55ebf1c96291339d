"""A value that cannot be read is shown, with its column, its line and the option that mends it, by every reader."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpwindows as dw
from dpwindows.count.events import SPACES, CsvLayout, EventColumns
from dpwindows.errors import InputError
from tests.counting import count_events

DAYS = dw.Timeline("2013-01-01", "2013-02-01")
TIMES = ["2013-01-01", "2013-01-02", "soon", "2013-01-03", "soon"]
ROWS = {"who": ["a", "b", "c", "d", "e"], "at": TIMES}


def refused(source: object, timeline: dw.Timeline = DAYS, **how: Any) -> str:
    with pytest.raises(InputError) as caught:
        count_events(source, EventColumns("who", "at", **how), timeline, [1])
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return str(caught.value)


def csv_of(folder: Path) -> tuple[object, str]:
    text = "who,at\n" + "".join(f"{who},{at}\n" for who, at in zip(*ROWS.values(), strict=True))
    (folder / "log.csv").write_text(text)
    return folder / "log.csv", f" in line 4 of {folder / 'log.csv'}"


def packed_csv_of(folder: Path) -> tuple[object, str]:
    with gzip.open(folder / "log.csv.gz", "wt") as stream:
        stream.write('at;who\n2013-01-01;"two\nlines"\nsoon;b\n')
    return folder / "log.csv.gz", f" in line 4 of {folder / 'log.csv.gz'}"


def json_of(folder: Path) -> tuple[object, str]:
    lines = ['{"who": "a", "at": "2013-01-01"}', "", '{"at": "soon", "who": "b"}', ""]
    (folder / "log.jsonl").write_text("\n".join(lines))
    return folder / "log.jsonl", f" in line 3 of {folder / 'log.jsonl'}"


def parquet_of(folder: Path) -> tuple[object, str]:
    for name, rows in (("a", {"who": ["x"], "at": ["2013-01-01"]}), ("b", ROWS)):
        pq.write_table(pa.table(rows), folder / f"{name}.parquet")
    return folder, f" in row 2 (counted from 0) of {folder / 'b.parquet'}"


def pandas_of(folder: Path) -> tuple[object, str]:
    return pd.DataFrame(ROWS), " in row 2 (counted from 0)"


def polars_of(folder: Path) -> tuple[object, str]:
    return pl.DataFrame(ROWS), " in row 2 (counted from 0)"


def arrow_of(folder: Path) -> tuple[object, str]:
    return pa.table(ROWS), " in row 2 (counted from 0)"


def relation_of(folder: Path) -> tuple[object, str]:
    return duckdb.connect().from_arrow(pa.table(ROWS)), ""


READERS = [csv_of, packed_csv_of, json_of, parquet_of, pandas_of, polars_of, arrow_of, relation_of]


@pytest.mark.parametrize("write", READERS)
def test_a_time_is_shown_where_it_stands(write: Callable[[Path], tuple[object, str]], tmp_path: Path) -> None:
    source, place = write(tmp_path)
    said = refused(source)
    assert f"the time column 'at' is text and not all of it can be read, such as 'soon'{place}; expected ISO" in said
    assert "--time-format" in said


def test_a_time_off_its_pattern_is_shown(tmp_path: Path) -> None:
    said = refused(csv_of(tmp_path)[0], time_format="%Y-%m-%d")
    assert f"not all as --time-format '%Y-%m-%d' says, such as 'soon' in line 4 of {tmp_path / 'log.csv'}; " in said
    said = refused(pa.table({"who": ["a", "b"], "at": [1.5e9, 1.5]}), time_format="epoch-s")
    assert "such as '1.5' in row 1 (counted from 0); expected whole numbers" in said
    said = refused(pa.table({"who": ["a"], "at": pa.array([Decimal("2.50")])}), dw.Timeline.of_steps(9))
    assert "such as '2.50' in row 0 (counted from 0); expected whole numbers" in said


def test_a_count_is_shown(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("who,at,n\na,2013-01-01,1\nb,2013-01-01,many\n")
    said = refused(tmp_path / "log.csv", count="n")
    assert "the count column 'n' is text and not all of it can be read, such as 'many' in line 3" in said
    assert "leave --count out" in said


def test_long_values_are_cut(tmp_path: Path) -> None:
    said = refused(pa.table({"who": ["a"], "at": ["x" * 500]}))
    assert f"such as '{'x' * 80}' in row 0" in said
    assert "x" * 81 not in said


def test_lines_of_spaced_text_are_told(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("  2013-01-01   a\n  2013-01-02   b  c\n")
    said = refused(log, layout=CsvLayout(SPACES, ("at", "who")))
    assert f"in line 2 of {log}" in said
    log.write_text("  2013-01-01   a\n  never   b\n")
    assert f"such as 'never' in line 2 of {log}" in refused(log, layout=CsvLayout(SPACES, ("at", "who")))


def test_lines_that_are_malformed_are_told(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("who,at\na,2013-01-01\nb\n")
    assert f"malformed (line 3 of {tmp_path / 'log.csv'})" in refused(tmp_path / "log.csv")
    (tmp_path / "lag.csv").write_text("who,at\na,2013-01-01\n")
    assert f"malformed (line 3 of {tmp_path / 'log.csv'})" in refused(tmp_path / "*.csv")
    (tmp_path / "log.csv").write_bytes(b"who,at\na,2013-01-01\r\nb,2013-01-01\n")
    assert f"malformed ({tmp_path / 'log.csv'})" in refused(tmp_path / "log.csv")
    for bad in ('{"who": ', '{"who" "b"}', '{"who": "a", "who": "b"}'):
        (tmp_path / "log.jsonl").write_text('{"who": "a", "at": "2013-01-01"}\n\n' + bad + "\n")
        assert f"malformed (line 3 of {tmp_path / 'log.jsonl'})" in refused(tmp_path / "log.jsonl"), bad


@pytest.mark.parametrize(
    ("line", "value"), [('{"who": true, "at": "2013-01-01"}', "true"), ('{"who": 1.5, "at": "2013-01-01"}', "1.5")]
)
def test_mixed_types_of_json_are_refused_by_line(line: str, value: str, tmp_path: Path) -> None:
    """The rule: strings and numbers are their text; anything else, and an item with a fraction, is refused."""
    (tmp_path / "log.jsonl").write_text(f'{{"who": "1", "at": "2013-01-01"}}\n{line}\n')
    said = refused(tmp_path / "log.jsonl")
    assert f"such as '{value}' in line 2 of {tmp_path / 'log.jsonl'}" in said
    assert "--item-type integer" in said


def test_databases_show_the_value(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "log.sqlite") as connection:
        connection.execute("CREATE TABLE log (who TEXT, at TEXT)")
        connection.executemany("INSERT INTO log VALUES (?, ?)", list(zip(*ROWS.values(), strict=True)))
    connection.close()
    assert "not all of it can be read, such as 'soon'; expected ISO" in refused(tmp_path / "log.sqlite")
