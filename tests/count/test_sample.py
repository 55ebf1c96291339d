"""What the first rows of a log suggest: never more than they say."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpwindows.count import sample as sampling
from dpwindows.count.events import SPACES, CsvLayout
from dpwindows.count.sample import Log, Sample
from tests.end_to_end.command_line import run


def written(folder: Path, text: str, name: str = "log.csv") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize(
    ("text", "names", "layout"),
    [
        ("user,time\na,2013-01-01\n", ["user", "time"], None),
        ("user;time\na;2013-01-01\n", ["user", "time"], None),
        ("user time\na 2013-01-01\nb\t2013-01-02\n", ["user", "time"], CsvLayout(SPACES)),
        ("  1341100800   a\n  1341100801   b\n", ["c1", "c2"], CsvLayout(SPACES, ("c1", "c2"))),
        ("a,2013-01-01\nb,2013-01-02\n", ["c1", "c2"], CsvLayout(None, ("c1", "c2"))),
        ("a\t2013-01-01 10:00\n", ["c1", "c2"], CsvLayout("\t", ("c1", "c2"))),
        ("user,time,note\na,2013-01-01,x y z\nb,2013-01-02,x\n", ["user", "time", "note"], None),
    ],
)
def test_the_layout_of_text_is_guessed(text: str, names: list[str], layout: CsvLayout | None, tmp_path: Path) -> None:
    sample = Log(written(tmp_path, text)).sample
    assert (sample.names, sample.layout) == (names, layout)


def test_objects_of_json_may_have_other_fields(tmp_path: Path) -> None:
    lines = '{"a": 1}\nnot json\n[1]\n{"user": "x", "ts": 1341100800000}\n{"user": null, "ts": 1341100800001.0}\n'
    sample = Log(written(tmp_path, lines, "log.jsonl")).sample
    assert sample.values["user"] == [None, "x", None]
    assert sample.values["ts"] == [None, "1341100800000", "1341100800001.0"]


def test_a_name_may_be_empty(tmp_path: Path) -> None:
    """As pandas writes the index of a table."""
    sample = Log(written(tmp_path, ",user,time\n0,a,2013-01-01\n")).sample
    assert (sample.names, sample.layout) == (["", "user", "time"], None)


@pytest.mark.parametrize(
    "more", [(), ("--item", "user", "--time", "ts"), ("--start", "2013-01-01", "--end", "2013-01-04")]
)
def test_a_check_reads_the_first_rows_once(
    more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, read = written(tmp_path, "user,ts\na,2013-01-01 10:00\nb,2013-01-02 11:00\n"), []
    csv_sample = sampling._csv_sample

    def counting(file: Path, layout: CsvLayout | None) -> Sample:
        read.append(file)
        return csv_sample(file, layout)

    monkeypatch.setattr(sampling, "_csv_sample", counting)
    assert "carry no zone" in run("check", log, *more).must_work().out
    assert len(read) == 1


# --- the note that times without a zone are read as UTC: where it is due, and nowhere else ---------------------------

NOTE = "Note: times in the column 'at' carry no zone and are read as UTC"
ASKED = ("--item", "who", "--time", "at", "--window", "rolling:2", "--unit", "event", "--epsilon", "1")
RANGE = ("--start", "2013-01-01", "--end", "2013-01-04")


def is_noted(tmp_path: Path, log: Path, *options: str) -> bool:
    """Whether `release` and `check` give the note, which must be in no release."""
    out = tmp_path / "out.json"
    released = run("release", log, *ASKED, *RANGE, *options, "-o", out, "--force")
    assert released.code == 0, released.err
    assert "carry no zone" not in out.read_text()
    checked = run("check", log, "--item", "who", "--time", "at", *RANGE, *options)
    assert checked.code == 0, checked.err
    noted = NOTE in released.err
    assert (NOTE in checked.out) is noted
    assert ("--time-zone" in checked.out.splitlines()[-1]) is (noted or "--time-zone" in options)
    return noted


@pytest.mark.quick(5)
@pytest.mark.parametrize(
    ("time", "options", "noted"),
    [
        ("2013-01-02T10:00", (), True),
        ("2013-01-02T10:00", ("--time-zone", "Europe/Berlin"), False),
        ("2013-01-02T10:00", ("--time-zone", "UTC"), False),
        ("2013-01-02T10:00Z", (), False),
        ("2013-01-02 10:00:00+01:00", (), False),
        ("2013-01-02", (), False),
        ("1357120800", ("--time-format", "epoch-s"), False),
        ("01/02/2013 10:00", ("--time-format", "%m/%d/%Y %H:%M"), True),
        ("01/02/2013", ("--time-format", "%m/%d/%Y"), False),
        ("01/02/2013 10:00 +0100", ("--time-format", "%m/%d/%Y %H:%M %z"), False),
    ],
)
def test_text(tmp_path: Path, time: str, options: tuple[str, ...], noted: bool) -> None:
    log = tmp_path / "log.csv"
    log.write_text(f"who,at\nann,{time}\nbob,\n")
    assert is_noted(tmp_path, log, *options) is noted


@pytest.mark.parametrize(
    ("value", "kind", "noted"),
    [
        (datetime(2013, 1, 2, 10), pa.timestamp("us"), True),
        (datetime(2013, 1, 2, 10, tzinfo=UTC), pa.timestamp("us", "UTC"), False),
        (date(2013, 1, 2), pa.date32(), False),
    ],
)
def test_typed_columns(tmp_path: Path, value: Any, kind: pa.DataType, noted: bool) -> None:
    log = tmp_path / "log.parquet"
    pq.write_table(pa.table({"who": ["ann"], "at": pa.array([value], kind)}), log)
    assert is_noted(tmp_path, log) is noted


def test_a_plan_file_names_the_zone_too(tmp_path: Path) -> None:
    log, plan = tmp_path / "log.csv", tmp_path / "plan.toml"
    log.write_text("who,at\nann,2013-01-02T10:00\n")
    asked = ("--window", "rolling:2", "--unit", "event", "--epsilon", "1")
    assert run("plan", *asked, *RANGE, "--time-zone", "Asia/Tokyo", "--save", plan).code == 0
    made = run("release", log, "--item", "who", "--time", "at", "--plan", plan, "-o", tmp_path / "out.csv")
    assert made.code == 0
    assert "carry no zone" not in made.err
