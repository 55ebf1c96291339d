"""The note that times without a zone are read as UTC: where it is due, and nowhere else."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.end_to_end.command_line import run

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
