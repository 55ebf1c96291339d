"""What a version wrote this one reads as it was meant, and goes on from. What a newer one wrote it refuses in words."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np
import pytest

import dpwindows as dw
from dpwindows.ask import formats
from dpwindows.ledger.ledger import datasets
from dpwindows.plan.shapes import Metadata, PlanFile
from dpwindows.release.destinations import MARK
from tests.end_to_end.command_line import run

HERE = Path(__file__).parent
FIRST = HERE / "format-1"
LOG = FIRST / "log.csv"
THIRD_PARTY = HERE.parent / "plan" / "third_party.py"


def stored(name: str) -> Any:
    """What a golden file holds, read without dpwindows."""
    return json.loads((FIRST / name).read_text(encoding="utf-8"))


def rows_of(release: dw.Release) -> list[dict[str, Any]]:
    """The rows of a release as its JSON file holds them."""
    rows: list[dict[str, Any]] = release.to_arrow().to_pylist()
    return [
        {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
        for row in rows
    ]


def private(path: Path) -> Path:
    """A file or folder that only its owner may read, as it was when it was written."""
    path.chmod(0o700 if path.is_dir() else 0o600)
    return path


def database(name: str, path: Path) -> Path:
    """The SQLite file of which a golden file is the SQL."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript((FIRST / f"{name}.sql").read_text(encoding="utf-8"))
    return private(path)


def stream_in(folder: Path) -> Path:
    """The stream, with its items and its mark."""
    path = database("stream", folder / "stream.state")
    shutil.copy(FIRST / "stream.mark", folder / "stream.state.mark")
    items = private(Path(shutil.copytree(FIRST / "stream-items", folder / "stream.state-items")))
    for part in items.iterdir():
        private(part)
    return path


# --- What was written is read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["release.json", "paid.json", "paid.csv", "paid.parquet"])
def test_a_release_is_read_as_it_was_written(name: str) -> None:
    release, plain = dw.Release.load(FIRST / name), stored(name.partition(".")[0] + ".json")
    assert rows_of(release) == plain["rows"]
    assert release.metadata == {key: value for key, value in plain["metadata"].items() if key != "checksum"}
    assert release.metadata["format"] == 1


def test_what_is_worked_out_from_a_release_is_what_it_was() -> None:
    release, plain = dw.Release.load(FIRST / "release.json"), stored("release.json")["rows"]
    of_de = [row for row in plain if (row["window"], row["measure"], row["country"]) == ("rolling:2", "at_least", "DE")]
    count = release.count("2026-01-02", "2026-01-04", group={"country": "DE"})
    assert (count.estimate, count.std_error) == (of_de[-1]["estimate"], of_de[-1]["std_error"])
    one, other = dw.Window("2026-01-01", "2026-01-03"), dw.Window("2026-01-02", "2026-01-04", group={"country": "DE"})
    found, was = release.difference(one, other), stored("difference.json")
    assert found.estimate == was["estimate"]
    assert (found.std_error, found.lower, found.upper) == pytest.approx(
        (was["std_error"], was["lower"], was["upper"]), rel=1e-9
    )
    # A plan from the integers that were published, certified anew by the proofs that they name.
    described = [entry["sensitivity"]["bound"] for entry in release.metadata["measurements"]]
    measured = [str(one.measurement.certificate.bound) for one in dw.plan_of(release).allotments]
    assert measured == described


def test_a_statement_says_what_the_release_promised() -> None:
    promised, made_of = stored("paid.json")["metadata"], run("statement", FIRST / "paid.json").must_work().out
    assert promised["unit"]["promise"] in made_of.replace("\\", "")
    assert "release format 1, python" in made_of


def test_a_plan_file_asks_for_what_it_asked() -> None:
    queries = [dw.Rolling(2).at_least(1).exactly(2), dw.ToDate("month").at_least(1).exactly(2)]
    wanted = dw.Plan(
        queries,
        timeline=dw.Timeline("2026-01-01", "2026-01-04", step="1d", time_zone="Europe/Berlin"),
        unit=dw.ItemAddRemove(),
        budget=dw.ApproxDP(1.0, 1e-6),
        by={"country": ["DE", "FR"]},
        group_of="item",
        totals=0.5,
    )
    assert dw.Plan.from_file(FIRST / "plan.toml").to_dict() == wanted.to_dict()


def test_an_export_convinces_a_third_party() -> None:
    file = np.load(FIRST / "export.npz")
    described = json.loads(str(file["description"]))
    assert described["format"] == 1
    command = [sys.executable, "-I", THIRD_PARTY, FIRST / "export.npz", described["unit"], "2"]
    judged = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert [one["recomputed"] <= one["certified"] and one["factors_agree"] for one in judged] == [True, True]
    assert max(one["bias"] for one in judged) < 1e-6


def test_counts_of_a_printed_query_are_released(tmp_path: Path) -> None:
    asked = ("--item", "user", "--time", "day", "--start", "2026-01-01", "--end", "2026-01-04")
    budget = ("--time-zone", "Europe/Berlin", "--window", "any", "--unit", "event", "--epsilon", "1000000")
    given = (*budget, "--counts", FIRST / "counts.csv", "--table", "log")
    run("release", *given, *asked, "-o", tmp_path / "any.csv").must_work()
    with (tmp_path / "any.csv").open(encoding="utf-8") as file:
        counted = {(row["first_step"], row["last_step"]): round(float(row["estimate"])) for row in csv.DictReader(file)}
    # Of an epsilon of a million the noise is a thousandth of an item.
    assert counted == {
        ("1", "1"): 2,
        ("1", "2"): 3,
        ("1", "3"): 4,
        ("2", "2"): 2,
        ("2", "3"): 4,
        ("3", "3"): 2,
    }


def test_a_stream_shows_what_it_published_and_goes_on(tmp_path: Path) -> None:
    path, was = stream_in(tmp_path), stored("stream.json")["rows"]
    with dw.Stream.open(path) as stream:
        assert rows_of(stream.show()) == was
        assert rows_of(stream.advance(LOG, through="2026-01-03", later="ignore")) == [
            row for row in was if row["last_step"] == 2
        ]
        third = stream.advance(LOG, through="2026-01-04")
    assert third.to_arrow()["last_step"].to_pylist() == [3, 3]


@pytest.mark.parametrize("name", ["stream.json", "paid.json"])
def test_errors_are_those_of_the_integers_that_were_measured(name: str) -> None:
    """A counter without end, say, is described by a number of bits: another formula would be another counter."""
    release = dw.Release.load(FIRST / name)
    for allotment in dw.plan_of(release).allotments:
        window, (measure,) = allotment.query.window, allotment.query.measures
        of_window = [row for row in rows_of(release) if row["window"] == window.text]
        errors = allotment.std_errors(measure)[: len(of_window)]
        assert [row["std_error"] for row in of_window] == pytest.approx(errors, rel=1e-12)


def test_a_ledger_knows_what_was_spent_and_returns_what_it_paid_for(tmp_path: Path) -> None:
    path, was = database("ledger", tmp_path / "ledger.db"), stored("ledger.json")["datasets"]
    assert datasets(str(path)) == ["visits"]
    ledger = dw.Ledger.open(path, "visits")
    assert json.loads(json.dumps(ledger.book().to_dict())) == was[0]
    timeline = dw.Timeline("2026-01-01", "2026-01-04", step="1d", time_zone="Europe/Berlin")
    plan = dw.Plan(dw.Cumulative(), timeline=timeline, unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    again = plan.run(LOG, item="user", time="day", ledger=ledger)
    assert rows_of(again) == stored("paid.json")["rows"]
    assert len(ledger.book().entries) == 2
    stream = was[0]["entries"][1]
    token = ledger.position(stream["state"]).token
    ledger.advance(stream["state"], stream["last_step"], token, 2, "another")
    assert ledger.position(stream["state"]) == (2, "another")


_TABLES = """
CREATE TABLE counts ("release_id" VARCHAR, "window" VARCHAR, "measure" VARCHAR, k BIGINT, first_step BIGINT,
    last_step BIGINT, "start" TIMESTAMP WITH TIME ZONE, "end" TIMESTAMP WITH TIME ZONE, complete BOOLEAN,
    estimate DOUBLE, std_error DOUBLE, bias_bound DOUBLE, "lower" DOUBLE, "upper" DOUBLE, consistent BIGINT);
COMMENT ON TABLE counts IS 'dpwindows: releases, format 1';
CREATE TABLE counts_releases (release_id VARCHAR PRIMARY KEY, released_at TIMESTAMP WITH TIME ZONE, guarantee VARCHAR,
    numbers BIGINT, checksum VARCHAR, metadata VARCHAR);
COMMENT ON TABLE counts_releases IS 'dpwindows: releases, format 1';
"""


def test_tables_of_releases_take_further_ones(tmp_path: Path) -> None:
    place = tmp_path / "counts.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute(_TABLES)
    for name, numbers in (("paid.json", 3), ("paid.csv", 3)):
        dw.Release.load(FIRST / name).publish(str(place), table="counts")
        with duckdb.connect(str(place)) as connection:
            assert connection.execute("SELECT count(*) FROM counts").fetchall() == [(numbers,)]
            assert connection.execute("SELECT count(*) FROM counts_releases").fetchall() == [(1,)]


# --- What a newer version wrote is refused ----------------------------------------------------------------------------

_NEWER = "of format 2, and this dpwindows reads format 1: use a newer dpwindows"


def test_newer_releases_are_refused(tmp_path: Path) -> None:
    content = stored("paid.json")
    content["format"] = content["metadata"]["format"] = 2
    # What it says besides may be anything.
    content["metadata"]["reach"] = content.pop("rows")
    (tmp_path / "new.json").write_text(json.dumps(content | {"rows": []}), encoding="utf-8")
    shutil.copy(FIRST / "paid.csv", tmp_path / "new.csv")
    beside = stored("paid.csv.meta.json") | {"format": 2}
    (tmp_path / "new.csv.meta.json").write_text(json.dumps(beside), encoding="utf-8")
    for name in ("new.json", "new.csv"):
        run("report", tmp_path / name, "-o", tmp_path / "report.html").must_refuse(f"the release is {_NEWER}")


@pytest.mark.parametrize("command", [("plan",), ("audit",), ("stream", "create", "state")], ids=lambda parts: parts[0])
def test_newer_plans_are_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "new.toml"
    # What it says besides may be anything.
    was = (FIRST / "plan.toml").read_text(encoding="utf-8")
    path.write_text(was.replace("format = 1\n", "format = 2\nreach = true\n"), encoding="utf-8")
    run(*command, "--plan", path).must_refuse(f"the plan {path} is {_NEWER}")
    with pytest.raises(dw.InputError, match=re.escape(_NEWER)):
        dw.Plan.from_file(path)


@pytest.mark.parametrize(("name", "what"), [("stream", "the state of a stream"), ("ledger", "a ledger")])
def test_newer_databases_are_refused(name: str, what: str, tmp_path: Path) -> None:
    path = stream_in(tmp_path) if name == "stream" else database(name, tmp_path / "ledger.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE further (fact TEXT)")
        connection.execute("PRAGMA user_version = 2")
    run(name, "show", path).must_refuse(f"'{path}' is {what} {_NEWER}")


def test_newer_counts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text((FIRST / "counts.csv").read_text("utf-8").replace('""format"": 1', '""format"": 2'), "utf-8")
    asked = ("--item", "user", "--time", "day", "--start", "2026-01-01", "--end", "2026-01-04", "--window", "any")
    given = ("--counts", path, "--table", "log", "--unit", "event", "--epsilon", "1")
    run("release", *asked, *given, "-o", tmp_path / "any.csv").must_refuse(f"{path} holds counts {_NEWER}")


def test_newer_tables_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "counts.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute(_TABLES.replace("format 1", "format 2"))
    given = ("publish", FIRST / "paid.json", place, "--table", "counts")
    run(*given).must_refuse(f"holds releases {_NEWER}")


@pytest.mark.parametrize("found", [0, -1, True, 1.0, "1", None, [1]])
def test_a_format_that_nobody_writes_is_refused_in_other_words(found: object) -> None:
    with pytest.raises(dw.InputError, match="no dpwindows writes that, so use an unchanged copy"):
        formats.require_known(found, 1, "the release is")


def test_a_comment_that_is_not_ours_is_nobodys_format() -> None:
    assert formats.is_marked("dpwindows: a ledger, format 1", "a ledger", 1, "there is a ledger")
    for other in (
        None,
        "",
        "dpwindows: a ledger, format ",
        "dpwindows: a ledger, format 1 ",
        "dpwindows: releases, format 1",
    ):
        assert not formats.is_marked(other, "a ledger", 1, "there is a ledger")
    with pytest.raises(dw.InputError, match=f"there is a ledger {_NEWER}"):
        formats.is_marked("dpwindows: a ledger, format 2", "a ledger", 1, "there is a ledger")


# --- One place declares them ------------------------------------------------------------------------------------------


def test_every_format_is_the_first_and_has_its_golden_files() -> None:
    numbers = {name: value for name, value in vars(formats).items() if name.isupper()}
    assert numbers == dict.fromkeys(("RELEASE", "PLAN", "EXPORT", "STREAM", "LEDGER", "COUNTS", "TABLES"), 1)
    assert FIRST.is_dir()


def test_the_schemas_name_the_formats_that_are_declared() -> None:
    for shape, number in ((Metadata, formats.RELEASE), (PlanFile, formats.PLAN)):
        (properties,) = (
            part["properties"]
            for part in msgspec.json.schema(shape)["$defs"].values()
            if "format" in part["properties"]
        )
        assert properties["format"]["enum"] == [number]
    assert MARK == "dpwindows: releases, format 1"
