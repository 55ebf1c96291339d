"""The last resort through the command line: the query is printed, run by hand, and its result released."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpwindows as dw
from dpwindows.count.dialects import DIALECTS, dialect_named
from dpwindows.count.query.standalone import standalone_probe
from dpwindows.ledger.ledger import Ledger
from tests.end_to_end.command_line import Outcome, run

RANGE = ["--start", "2021-01-01", "--end", "2021-01-31"]
QUERY = ["--window", "rolling:7", "--at-least", "1", "--at-least", "2", "--window", "cumulative"]
COLUMNS = ["--item", "who", "--time", "at", "--table", "visits"]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT 'u' || range * 7919 % 97 AS who, if(range % 3 = 0, 'web', 'app') AS via, "
            "TIMESTAMP '2021-01-01' + INTERVAL 1 MINUTE * (range * 131 % 43200) AS at FROM range(2000)"
        )
    return path


def printed(*more: str) -> str:
    types = [
        "--dialect",
        "duckdb",
        "--types",
        "item=text,time=timestamp,via=text" if "--by" in more else "item=text,time=timestamp",
    ]
    outcome = run("sql", *COLUMNS, *RANGE, *QUERY, *types, *more).must_work()
    assert outcome.err == ""
    return outcome.out


def by_hand(database: Path, query: str, file: Path) -> Path:
    with duckdb.connect(database, read_only=True) as connection:
        connection.execute(f"COPY ({query}) TO '{file}'")
    return file


def release(source: Sequence[str | Path], output: Path, *more: str | Path, epsilon: str = "1") -> Outcome:
    unit = ["--unit", "event", "--epsilon", epsilon]
    return run("release", *source, *COLUMNS, *RANGE, *QUERY, *unit, "-o", output, *more)


def test_what_is_printed_comes_back_as_the_release_of_the_log(database: Path, tmp_path: Path) -> None:
    """With so large a budget that the noise is less than half an item."""
    file = by_hand(database, printed(), tmp_path / "counts.csv")
    own = release([database], tmp_path / "own.parquet", epsilon="5000").must_work()
    handed = release(["--counts", file], tmp_path / "handed.parquet", epsilon="5000").must_work()
    one, other = dw.Release.load(tmp_path / "own.parquet"), dw.Release.load(tmp_path / "handed.parquet")
    assert max(one.table["std_error"].to_pylist()) < 0.05
    exact = [round(estimate) for estimate in one.table["estimate"].to_pylist()]
    assert exact == [round(estimate) for estimate in other.table["estimate"].to_pylist()]
    assert min(exact) > 20
    assert "handed over" in handed.err
    assert "handed over" not in own.err
    assert "exact_counts" not in one.metadata
    assert other.metadata["exact_counts"] == "handed over"
    assert "were handed over as a file: the guarantee assumes" in other.metadata["guarantee"]
    assert str(file) not in str(other.metadata)
    assert file.name not in str(other.metadata)
    said = run("statement", tmp_path / "handed.parquet").must_work().out
    assert "Yes: the exact counts, which were handed over as a file" in said


def test_groups_come_back_too(database: Path, tmp_path: Path) -> None:
    by = ["--by", "via", "--values", "web,app,phone", "--totals", "0.2"]
    file = by_hand(database, printed(*by), tmp_path / "counts.parquet")
    release(["--counts", file], tmp_path / "out.parquet", *by).must_work()
    # Another share for totals is another release of the same counts.
    release(["--counts", file], tmp_path / "more.parquet", *by[:-1], "0.3").must_work()
    release(["--counts", file], tmp_path / "none.parquet", *by[:-2]).must_refuse(
        "with --totals, and this release asks for counts without"
    )


def test_a_ledger_knows_the_counts_again(database: Path, tmp_path: Path) -> None:
    """The same request on the same counts is the release that was stored, whoever counted them."""
    ledger = tmp_path / "ledger.db"
    paid = ["--ledger", str(ledger), "--dataset", "visits"]
    run("ledger", "create", ledger, "--dataset", "visits", "--unit", "event", "--epsilon", "2").must_work()
    query = printed()
    files = [by_hand(database, query, tmp_path / name) for name in ("one.csv", "two.parquet")]
    first = release(["--counts", files[0]], tmp_path / "first.parquet", *paid).must_work()
    assert "spent from dataset 'visits'" in first.err
    sources: list[list[str | Path]] = [["--counts", files[1]], [database]]
    for source in sources:
        again = release(source, tmp_path / "again.parquet", *paid, "--force").must_work()
        assert "Nothing was spent" in again.err
        assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "first.parquet").read_bytes()
    assert len(Ledger.open(ledger, "visits").book().entries) == 1


def test_what_is_refused_spends_nothing(database: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    run("ledger", "create", ledger, "--dataset", "visits", "--unit", "event", "--epsilon", "2").must_work()
    file = by_hand(database, printed(), tmp_path / "counts.csv")
    lines = file.read_text().splitlines(keepends=True)
    cut = tmp_path / "cut.csv"
    cut.write_text("".join(lines[:-1]))
    # One visit at a time before the item came, and one less later: the sums are the same.
    place = next(place for place, line in enumerate(lines) if line.startswith("1,30,29,-"))
    moved = tmp_path / "moved.csv"
    moved.write_text("".join([*lines[:place], lines[place].replace("1,30,29,", "1,2,1,"), *lines[place + 1 :]]))
    for changed, why in ((cut, "cut.csv is not the whole result"), (moved, "moved.csv cannot be of any log: ")):
        refused = release(["--counts", changed], tmp_path / "out.parquet", "--ledger", ledger, "--dataset", "visits")
        refused.must_refuse(why)
        assert refused.err.count("\n") <= 2
    assert not (tmp_path / "out.parquet").exists()
    assert not Ledger.open(ledger, "visits").book().entries


@pytest.mark.parametrize(
    ("source", "more", "why"),
    [
        ([], [], "give either EVENTS, the log that is counted, or --counts FILE"),
        (["log.csv", "--counts", "counts.csv"], [], "give either EVENTS"),
        (["--counts", "counts.csv"], ["--check-first"], "--check-first looks at a log"),
        (["--counts", "counts.csv"], ["--engine", "spark"], "counts in a file leave nothing to count for spark"),
        (["--counts", "none.csv"], [], "there is no file or directory none.csv"),
        (["--counts", "out.csv"], [], "the output 'out.csv' is a file that is read here"),
    ],
)
def test_counts_stand_in_place_of_a_log(
    source: list[str | Path], more: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("counts.csv", "out.csv"):
        Path(name).write_text("k\n")
    release(source, Path("out.csv"), *more, "--force").must_refuse(why)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--types", "item=text"], "of what type the time column 'at' is: give time=TYPE"),
        (["--types", "item"], "--types takes NAME=TYPE, once for each column"),
        (["--types", "item=text,item=text"], "--types takes NAME=TYPE, once for each column"),
        (["--types", "item=decimal(9, 0),time=timestmp"], "did you mean 'TIMESTAMP'?"),
        (["--max-runs", "1", "--window", "any"], "--max-runs bounds how often an item comes back to rolling windows"),
        (["--max-occurrences", "2", "--by", "via", "--values", "web,app"], "do not go with --by"),
        (["--estimate-loss"], "--estimate-loss counts the items that lost something by a bound, and there is none"),
        (["--table", "a..b"], "--table takes NAME or SCHEMA.NAME"),
        (["--end", "2020-01-01"], "end"),
    ],
)
def test_no_query_is_printed_for_what_cannot_be_counted(more: list[str], why: str) -> None:
    types = [] if "--types" in more else ["--types", "item=text,time=timestamp"]
    run("sql", *COLUMNS, *RANGE, *QUERY, "--dialect", "duckdb", *types, *more).must_refuse(why)


@pytest.mark.parametrize("words", [["--probe", "--dialect", "duckdb"], ["--dialect", "duckdb", *COLUMNS, "--probe"]])
def test_the_probe_needs_a_dialect_alone(words: list[str]) -> None:
    assert run("sql", *words).must_work().out == standalone_probe(dialect_named("duckdb"))
    run("sql", "--probe").must_refuse("Missing option '--dialect'")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_that_has_never_run_is_said_to_be_one(dialect: str) -> None:
    # Units of times have names of their own there.
    time = "timestamp[us]" if dialect == "datafusion" else "timestamp"
    types = ["--dialect", dialect, "--types", f"item=text,time={time}"]
    said = run("sql", *COLUMNS, *RANGE, *QUERY, *types).must_work().err
    run_in_tests = dialect in ("clickhouse", "datafusion", "duckdb", "postgresql", "spark")
    assert ("never run there by its makers" in said) is not run_in_tests


def test_the_query_is_there_for_programs_too() -> None:
    types = ["--dialect", "duckdb", "--types", "item=text,time=timestamp"]
    said = json.loads(run("sql", *COLUMNS, *RANGE, *QUERY, *types, "--json").must_work().out)
    assert said["query"] == printed()
    assert said["dialect"] == "duckdb"
    assert said["description"]["at-least"] == [1, 2]


def test_a_plan_says_what_is_counted(database: Path, tmp_path: Path) -> None:
    """In Python as on the line, and by a plan file."""
    plan = dw.Plan(
        [dw.Rolling(7).at_least(1, 2), dw.Cumulative().at_least(1, 2)],
        timeline=dw.Timeline("2021-01-01", "2021-01-31"),
        unit=dw.EventLevel(),
        budget=dw.PureDP(1.0),
    )
    columns: dict[str, Any] = {"item": "who", "time": "at", "table": "visits"}
    query = plan.sql(dialect="duckdb", types={"item": "text", "time": "timestamp"}, **columns)
    assert query == printed()
    file = by_hand(database, query, tmp_path / "counts.csv")
    assert plan.run(dw.CountsFile(file), **columns).metadata["exact_counts"] == "handed over"
    saved = tmp_path / "plan.toml"
    run("plan", *RANGE, *QUERY, "--unit", "event", "--epsilon", "1", "--save", saved).must_work()
    types = ["--dialect", "duckdb", "--types", "item=text,time=timestamp"]
    assert run("sql", "--plan", saved, *COLUMNS, *types).must_work().out == query
