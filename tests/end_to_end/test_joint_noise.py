"""Noise for all counts at once from the command line: planned, released, compared and audited."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.end_to_end.command_line import run

pytestmark = pytest.mark.usefixtures("one_engine")

ASKED = ("--window", "rolling:1", "--window", "cumulative", "--histogram", "2", "--epsilon", "1")
RANGE = ("--start", "2013-01-01", "--end", "2013-01-31")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    days = np.datetime64("2013-01-01") + rng.integers(0, 30, 4000)
    table = pa.table({"who": rng.integers(0, 900, 4000), "at": days.astype("datetime64[us]")})
    pq.write_table(table, tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


@pytest.mark.parametrize(("unit", "law"), [("item", "discrete cube"), ("item-add-remove", "discrete range")])
def test_a_release_says_its_law_and_errs_as_planned(unit: str, law: str, log: Path, tmp_path: Path) -> None:
    told = run("plan", *ASKED, "--unit", unit, "--steps", "30", "--json").must_work()
    forecast = json.loads(told.out)["queries"]
    daily = [entry for entry in forecast if entry["window"] == "rolling:1"]
    assert {entry["strategy"] for entry in daily} == {"joint-noise"}
    assert {entry["noise"] for entry in forecast} == {law, "discrete Laplace"}
    out = tmp_path / "released.parquet"
    asked = ("--item", "who", "--time", "at", "--time-zone", "UTC", *RANGE, *ASKED, "--unit", unit)
    run("release", log, *asked, "--output", out).must_work()
    rows = [row for row in pq.read_table(out).to_pylist() if row["window"] == "rolling:1"]
    for entry in daily:
        errors = {row["std_error"] for row in rows if (row["measure"], row["k"]) == (entry["measure"], entry["k"])}
        assert list(errors) == [pytest.approx(entry["rms"])]
    metadata = json.loads(pq.read_schema(out).metadata[b"dpwindows"])
    measured = next(one for one in metadata["measurements"] if one["window"] == "rolling:1")
    assert measured["noise"]["law"] == law
    assert measured["sensitivity"]["norm"] == ("max" if unit == "item" else "range")
    assert measured["sensitivity"]["bound"] == str(len(measured["thresholds"]))
    # Two days share a part of their noise where items are added or removed: their difference is as good as one of them.
    told = run("count", out, "2013-01-05", "2013-01-06", "--minus", "2013-01-09", "2013-01-10", "--json").must_work()
    change, one = json.loads(told.out)["std_error"], daily[0]["rms"]
    assert change == pytest.approx(one * (math.sqrt(2) if unit == "item" else 1))


# An audit is wrong in one run of a million, by either of its two statistics.
@pytest.mark.slow
@pytest.mark.usefixtures("seeded_noise")
def test_an_audit_of_it_finds_no_fault_and_all_of_what_is_claimed() -> None:
    asked = ("--window", "rolling:1", "--unit", "item-add-remove", "--epsilon", "1", "--steps", "4")
    told = run("audit", *asked, "--draws", "1000", "--runs", "500", "--json").must_work()
    found = json.loads(told.out)
    assert found["within_the_claim"]
    assert found["exact"]["of_certified"] == pytest.approx(1.0)
    assert found["noise"]["verdict"] == "as stated"
    assert found["replay"]["verdict"] == "nothing but noise"
