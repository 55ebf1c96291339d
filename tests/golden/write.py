"""Writes a golden file of each kind, once: `python -m tests.golden.write FOLDER`. A folder that is there is refused.

What was written is never written again. When a format gets a new number, its files go into a folder of their own.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

import dpwindows as dw
from dpwindows.ledger.database import header
from dpwindows.stream.store import items_folder
from tests.end_to_end.command_line import run

LOG = """user,day,country
ann,2026-01-01,DE
ann,2026-01-02,DE
bob,2026-01-01,FR
bob,2026-01-03,DE
cyd,2026-01-02,FR
cyd,2026-01-02,FR
dan,2026-01-03,DE
"""
READ = ("--item", "user", "--time", "day")
RANGE = ("--start", "2026-01-01", "--end", "2026-01-04", "--time-zone", "Europe/Berlin")
QUERY = ("--window", "rolling:2", "--window", "to-date:month", "--at-least", "1", "--exactly", "2")
GROUPS = ("--by", "country", "--values", "DE,FR", "--group-of", "item", "--totals", "0.5")
PRIVACY = ("--unit", "item-add-remove", "--epsilon", "1", "--delta", "1e-6")
SMALL = ("--window", "cumulative", "--unit", "event", "--epsilon", "1")
STREAM = ("--window", "rolling:2", "--window", "cumulative", "--unit", "item-per:2", "--rho", "0.1")


def write(folder: Path) -> None:
    """Fill a new folder."""
    folder.mkdir()
    (folder / "log.csv").write_text(LOG, encoding="utf-8")
    log = str(folder / "log.csv")
    run("plan", *RANGE, *QUERY, *GROUPS, *PRIVACY, "--save", folder / "plan.toml").must_work()
    run("plan", *RANGE, *QUERY, *PRIVACY, "--export", folder / "export.npz").must_work()
    run("release", log, *READ, *RANGE, *QUERY, *GROUPS, *PRIVACY, "-o", folder / "release.json").must_work()
    found = dw.Release.load(folder / "release.json").difference(
        dw.Window("2026-01-01", "2026-01-03"), dw.Window("2026-01-02", "2026-01-04", group={"country": "DE"})
    )
    (folder / "difference.json").write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    _counts(folder)
    with TemporaryDirectory() as scratch:
        _ledger(folder, Path(scratch))
        _stream(folder, Path(scratch))


def _counts(folder: Path) -> None:
    """The result of a query that was printed and run by hand."""
    asked = ("--table", "log", "--dialect", "duckdb", "--types", "item=text,time=date")
    query = run("sql", *READ, *RANGE, "--window", "any", *asked).must_work().out
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE log AS FROM read_csv('{folder / 'log.csv'}')")
        connection.execute(f"COPY ({query.rstrip().rstrip(';')}) TO '{folder / 'counts.csv'}' (HEADER)")


def _ledger(folder: Path, scratch: Path) -> None:
    """A ledger that paid for a release and for a stream with a step."""
    log, ledger = folder / "log.csv", scratch / "ledger.db"
    paid = ("--ledger", ledger, "--dataset", "visits")
    run("ledger", "create", ledger, "--dataset", "visits", "--unit", "event", "--epsilon", "4").must_work()
    run("release", log, *READ, *RANGE, *SMALL, *paid, "-o", folder / "paid.json").must_work()
    for ending in (".csv", ".parquet"):
        dw.Release.load(folder / "paid.json").save(folder / f"paid{ending}")
    clock = ("--start", "2026-01-01", "--step", "1d", "--horizon", "3")
    run("stream", "create", scratch / "paid.state", *READ, *clock, *SMALL, *paid).must_work()
    run("stream", "advance", scratch / "paid.state", log, "--through", "2026-01-02", "--later", "ignore").must_work()
    (folder / "ledger.json").write_text(run("ledger", "show", ledger, "--json").must_work().out, encoding="utf-8")
    (folder / "ledger.sql").write_text(_dumped(ledger), encoding="utf-8")


def _stream(folder: Path, scratch: Path) -> None:
    """A stream with two steps closed."""
    state, log = scratch / "stream.state", folder / "log.csv"
    run("stream", "create", state, *READ, "--start", "2026-01-01", "--step", "1d", *STREAM).must_work()
    for day in ("2026-01-02", "2026-01-03"):
        run("stream", "advance", state, log, "--through", day, "--later", "ignore").must_work()
    run("stream", "show", state, "-o", folder / "stream.json").must_work()
    (folder / "stream.sql").write_text(_dumped(state), encoding="utf-8")
    shutil.copy(state.with_name(f"{state.name}.mark"), folder / "stream.mark")
    shutil.copytree(items_folder(state), folder / "stream-items")


def _dumped(path: Path) -> str:
    """An SQLite file as SQL, with the two numbers of its header."""
    with closing(sqlite3.connect(path)) as connection:
        mark, number = header(connection)
        head = f"PRAGMA application_id = {mark};\nPRAGMA user_version = {number};\n"
        return head + "\n".join(connection.iterdump()) + "\n"


if __name__ == "__main__":
    write(Path(sys.argv[1]))
