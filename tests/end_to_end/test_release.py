"""Releases of a real log through the command line: exact where noise vanishes, and as promised where it does not."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import dpwindows as dw
from dpwindows.kernel.rules import PROOFS
from tests.end_to_end.command_line import plain_counts, run, run_process

pytestmark = pytest.mark.usefixtures("one_engine")

FLIGHTS = ("--item", "tailnum", "--time", "time", "--start", "2013-01-01")
DATA = (*FLIGHTS, "--end", "2014-01-01")
ZONE = ("--time-zone", "America/New_York")
EVENT = ("--unit", "event", "--epsilon", "1", "--delta", "1e-6")

DAILY = """
    SELECT tailnum AS item, count(*) AS occurrences,
        date_diff('day', DATE '2013-01-01', (time AT TIME ZONE 'America/New_York')::DATE) + 1 AS step
    FROM read_parquet('{path}') WHERE tailnum IS NOT NULL GROUP BY ALL
"""


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = dw.Release.load(path).to_arrow().to_pylist()
    return rows


Exact = dict[tuple[int, int, int], int]
# Tests that ask for the exact counts, which take ten seconds, go to one process.
exactly = pytest.mark.xdist_group("exact flights")


@pytest.fixture(scope="session")
def exact(flights: Path) -> Exact:
    """Items with at least k flights, for k up to 4, in each window of the tests below, by plain count(distinct)."""
    days = range(1, 366)
    windows = {(1, last) for last in days}
    windows |= {(max(1, last - length + 1), last) for last in days for length in (7, 28)}
    windows |= {(last - length + 1, last) for last in days for length in range(1, 10) if length <= last}
    return plain_counts(DAILY.format(path=flights), sorted(windows), [1, 2, 3, 4])


def expected(exact: Exact, rows: list[dict[str, Any]]) -> list[int]:
    """The exact value of each released row."""

    def of(row: dict[str, Any]) -> int:
        first, last, k = row["first_step"], row["last_step"], row["k"]
        above = exact[first, last, k + 1] if row["measure"] == "exactly" else 0
        return exact[first, last, k] - above

    return [of(row) for row in rows]


@exactly
@pytest.mark.parametrize(
    ("days", "privacy"),
    [
        (365, ("--unit", "event", "--epsilon", "1e9", "--delta", "1e-6")),
        (365, ("--unit", "event", "--epsilon", "1e9")),
        # For items, windows of any length up to 9 days are measured by as many numbers as two days have pairs.
        pytest.param(35, ("--unit", "item", "--rho", "1e9"), marks=pytest.mark.slow),
        pytest.param(35, ("--unit", "item-add-remove", "--epsilon", "1e12"), marks=pytest.mark.slow),
    ],
)
def test_without_noise_every_number_is_the_count_distinct(
    flights: Path, exact: Exact, tmp_path: Path, days: int, privacy: tuple[str, ...]
) -> None:
    out = tmp_path / "release.parquet"
    windows = ("--window", "cumulative", "--window", "rolling:7", "--window", "rolling:28", "--window", "any:9")
    counted = ("--at-least", "1", "--at-least", "3", "--exactly", "2")
    end = date(2013, 1, 1) + timedelta(days)
    run("release", flights, *FLIGHTS, "--end", str(end), *ZONE, *windows, *counted, *privacy, "-o", out).must_work()
    rows = rows_of(out)
    assert len(rows) == 3 * (3 * days + 9 * days - 36)
    assert [round(row["estimate"]) for row in rows] == expected(exact, rows)
    assert max(abs(row["estimate"] - round(row["estimate"])) for row in rows) < 0.4


@pytest.mark.slow
def test_plan_and_release_agree_to_the_last_bit(flights: Path, tmp_path: Path) -> None:
    asked = ("--window", "rolling:28", "--window", "any:20", "--at-least", "1", "--exactly", "2", *EVENT)
    planned = run("plan", *asked, "--start", "2013-01-01", "--end", "2014-01-01", *ZONE, "--json").must_work()
    out = tmp_path / "release.parquet"
    run("release", flights, *DATA, *ZONE, *asked, "-o", out).must_work()
    release = dw.Release.load(out)
    table = release.to_arrow()
    for entry in json.loads(planned.out)["queries"]:
        chosen = pa.compute.and_(
            pa.compute.equal(table["window"], entry["window"]), pa.compute.equal(table["measure"], entry["measure"])
        )
        std_errors = table.filter(chosen)["std_error"].to_numpy()
        assert entry["max"] == std_errors.max()
        assert entry["rms"] == pytest.approx(float(np.sqrt((std_errors**2).mean())), rel=1e-12)
        assert entry in release.metadata["forecast"]


def test_the_file_has_the_columns_and_metadata_of_the_format(flights: Path, tmp_path: Path) -> None:
    out = tmp_path / "release.parquet"
    asked = ("--window", "rolling:28", *EVENT)
    run("release", flights, *DATA, *ZONE, *asked, "-o", out).must_work()
    schema = pyarrow.parquet.read_schema(out)
    zoned = pa.timestamp("us", tz="America/New_York")
    assert [(field.name, field.type) for field in schema] == [
        ("window", pa.string()),
        ("measure", pa.string()),
        ("k", pa.int64()),
        ("first_step", pa.int64()),
        ("last_step", pa.int64()),
        ("start", zoned),
        ("end", zoned),
        ("complete", pa.bool_()),
        ("estimate", pa.float64()),
        ("std_error", pa.float64()),
        ("bias_bound", pa.float64()),
        ("lower", pa.float64()),
        ("upper", pa.float64()),
        ("consistent", pa.int64()),
    ]
    metadata = json.loads(schema.metadata[b"dpwindows"])
    assert metadata["format"] == 1
    assert "event" in metadata["guarantee"]
    assert metadata["measurements"][0]["sensitivity"]["proof"] in PROOFS
    text = json.dumps(metadata)
    assert str(flights) not in text
    assert flights.name not in text
    assert "tailnum" not in text
    table = pyarrow.parquet.read_table(out)
    assert table["complete"].to_pylist() == [last >= 28 for last in range(1, 366)]
    assert table["start"][40].as_py().isoformat() == "2013-01-14T00:00:00-05:00"
    assert table["end"][200].as_py().isoformat() == "2013-07-21T00:00:00-04:00"
    assert table["consistent"].null_count == 0
    assert min(table["consistent"].to_pylist()) > 400


def test_raw_releases_have_no_consistent_numbers(flights: Path, tmp_path: Path) -> None:
    out = tmp_path / "release.parquet"
    run("release", flights, *DATA, *ZONE, "--window", "rolling:28", *EVENT, "--raw", "-o", out).must_work()
    assert pyarrow.parquet.read_table(out)["consistent"].null_count == 365


def test_an_empty_log_is_released_as_noise(tmp_path: Path) -> None:
    log = tmp_path / "empty.csv"
    log.write_text("item,when\n")
    out = tmp_path / "release.csv"
    data = ("--item", "item", "--time", "when", "--start", "2013-01-01", "--end", "2013-03-01")
    run("release", log, *data, "--window", "rolling:7", *EVENT, "-o", out).must_work()
    estimates = [row["estimate"] for row in rows_of(out)]
    assert len(estimates) == 59
    assert len(set(estimates)) > 50


@pytest.mark.slow
def test_metadata_depends_on_the_plan_alone(tmp_path: Path) -> None:
    """Not on the log: two very different ones have the same metadata, but for the release's own name and time."""
    described, shapes = [], []
    for name, rows in (("none", ""), ("many", "".join(f"{i % 7},2013-01-{1 + i % 30:02}\n" for i in range(100)))):
        log, out = tmp_path / f"{name}.csv", tmp_path / f"{name}.json"
        log.write_text("item,when\n" + rows)
        data = ("--item", "item", "--time", "when", "--start", "2013-01-01", "--end", "2013-02-01")
        asked = ("--window", "rolling:7", "--window", "any:3", "--at-least", "2")
        run("release", log, *data, *asked, *EVENT, "-o", out).must_work()
        release = dw.Release.load(out)
        described.append({k: v for k, v in release.metadata.items() if k not in ("release_id", "released_at")})
        shapes.append(release.to_arrow().drop_columns(["estimate", "lower", "upper", "consistent"]))
    assert described[0] == described[1]
    assert shapes[0].equals(shapes[1])


def test_a_row_with_a_count_is_that_many_events(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("who,at,times\na,3,5\nb,3,1\nb,4,1\nc,9,0\nc,1,-2\n,2,1\nd,,1\n")
    out = tmp_path / "release.json"
    data = ("--item", "who", "--time", "at", "--count", "times", "--start", "0", "--end", "6", "--step", "1")
    asked = ("--window", "cumulative", "--at-least", "1", "--at-least", "2", "--at-least", "5", "--exactly", "1")
    run("release", log, *data, *asked, "--unit", "event", "--epsilon", "1e12", "-o", out).must_work()
    rounded: dict[str, list[int]] = {}
    for row in rows_of(out):
        rounded.setdefault(f"{row['measure']} {row['k']}", []).append(round(row["estimate"]))
    assert rounded == {
        "at_least 1": [0, 0, 0, 2, 2, 2],
        "at_least 2": [0, 0, 0, 1, 2, 2],
        "at_least 5": [0, 0, 0, 1, 1, 1],
        "exactly 1": [0, 0, 0, 1, 0, 0],
    }


@pytest.mark.slow
def test_a_singleton_stream_may_be_compressed_and_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("who,at\n" + "".join(f"{step % 60},{step}\n" for step in range(60)))
    out = tmp_path / "release.parquet"
    data = ("--item", "who", "--time", "at", "--start", "0", "--end", "60", "--step", "1")
    asked = ("--window", "any", "--unit", "item", "--epsilon", "0.2", "--singleton")
    run("release", log, *data, *asked, "-o", out).must_work()
    release = dw.Release.load(out)
    assert release.metadata["measurements"][0]["strategy"].startswith("compressed(")
    assert "at most one event" in release.metadata["guarantee"]
    rows = rows_of(out)
    assert max(row["bias_bound"] for row in rows) > 0
    assert all(row["upper"] - row["lower"] >= 2 * row["bias_bound"] for row in rows)
    plain = run("plan", *asked[:-1], "--steps", "60", "--json")
    forecast = release.metadata["forecast"][0]
    assert forecast["half_width"] < json.loads(plain.out)["queries"][0]["half_width"]


def test_report_draws_a_release(flights: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "release.parquet", tmp_path / "report.html"
    run("release", flights, *DATA, *ZONE, "--window", "rolling:28", *EVENT, "-o", out).must_work()
    run("report", out, "-o", page).must_work()
    assert "rolling:28" in page.read_text(encoding="utf-8")
    assert run("report", out, "-o", page).code == 2
    run("report", out, "-o", page, "--force", "--title", "Our shop", "--noun", "customers").must_work()
    written = page.read_text(encoding="utf-8")
    assert "<h1>Our shop</h1>" in written
    assert "distinct customers" in written
    run("report", out, "-o", page, "--force", "--noun", " ").must_refuse("noun must be a line of text, got ' '")


@pytest.mark.slow
def test_demo_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    outcome = run_process("demo", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "out" / "flights.html").stat().st_size > 100_000
    release = dw.Release.load(tmp_path / "out" / "flights.parquet")
    assert {query["window"] for query in release.metadata["queries"]} == {
        "rolling:7",
        "rolling:28",
        "cumulative",
        "any:90",
    }


@exactly
def test_a_period_is_named_in_the_guarantee_and_on_the_page(flights: Path, exact: Exact, tmp_path: Path) -> None:
    out, page = tmp_path / "release.json", tmp_path / "report.html"
    asked = ("--window", "rolling:28", "--unit", "item-per:30", "--epsilon", "1e9", "--delta", "1e-6")
    run("release", flights, *DATA, *ZONE, *asked, "-o", out).must_work()
    rows = rows_of(out)
    assert [round(row["estimate"]) for row in rows] == expected(exact, rows)
    metadata = json.loads(out.read_text())["metadata"]
    assert metadata["unit"]["name"] == "item-per:30"
    assert "within any 30 consecutive steps" in metadata["unit"]["promise"]
    assert "unit 'item-per:30'" in metadata["guarantee"]
    assert metadata["measurements"][0]["sensitivity"]["proof"] in PROOFS
    run("report", out, "-o", page).must_work()
    assert "item-per:30" in page.read_text()
    assert "within any 30 consecutive steps" in page.read_text()
    refused = run("plan", "--window", "rolling:7", "--unit", "item-per:0", "--epsilon", "1", "--steps", "30")
    refused.must_refuse("--unit 'item-per:0' needs a whole number of steps")
