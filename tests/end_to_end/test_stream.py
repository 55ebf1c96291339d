"""A service that runs a stream from the command line, and a year of real flights, day by day."""

from __future__ import annotations

import cProfile
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import dpwindows as dw
from dpwindows.durable import claim
from dpwindows.stream.recencies import _RARELY
from dpwindows.stream.stream import Stream
from tests.end_to_end.command_line import run
from tests.stream.streams import STEP, new_stream, plan_of, table_of

PRIVACY = ("--unit", "event", "--epsilon", "1", "--delta", "1e-6")
DATA = ("--item", "who", "--time", "at", "--start", "2013-01-01")
ASKED = ("--window", "rolling:2", "--window", "cumulative", "--at-least", "1", "--at-least", "2")


def write_day(folder: Path, day: int, *items: str) -> Path:
    path = folder / f"2013-01-{day:02}.csv"
    path.write_text("who,at\n" + "".join(f"{item},2013-01-{day:02}T0{i}:00:00\n" for i, item in enumerate(items)))
    return path


def test_no_step_is_closed_for_an_output_that_another_process_writes(tmp_path: Path) -> None:
    state, out, events = tmp_path / "users.state", tmp_path / "out.csv", write_day(tmp_path, 1, "ann")
    run("stream", "create", state, *DATA, *ASKED, *PRIVACY).must_work()
    words = ("stream", "advance", state, events, "--through", "2013-01-02", "-o", out)
    with claim(out):
        refused = run(*words)
    assert refused.code == 2
    assert "another process is writing" in refused.err
    with Stream.open(state, read_only=True) as opened:
        assert opened.closed_steps == 0
    run(*words).must_work()


def test_an_output_that_appears_after_a_step_was_closed_exits_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2 says that nothing changed, and a step is closed."""
    state, out, events = tmp_path / "users.state", tmp_path / "out.csv", write_day(tmp_path, 1, "ann")
    run("stream", "create", state, *DATA, *ASKED, *PRIVACY).must_work()
    advance = Stream.advance

    def slowly(*arguments: Any, **options: Any) -> dw.Release:
        released = advance(*arguments, **options)
        out.write_text("somebody else's")
        return released

    words = ("stream", "advance", state, events, "--through", "2013-01-02", "-o")
    with monkeypatch.context() as patched:
        patched.setattr(Stream, "advance", slowly)
        failed = run(*words, out)
    assert failed.code == 1
    assert "exists already" in failed.err
    assert "stored in the stream: run the same again to write them, which draws no noise" in failed.err
    assert out.read_text() == "somebody else's"
    run(*words, tmp_path / "other.csv").must_work()


@pytest.mark.slow
def test_a_service_runs_for_some_days(tmp_path: Path) -> None:
    state, ledger = tmp_path / "users.state", tmp_path / "ledger"
    in_ledger = ("--ledger", ledger, "--dataset", "users")
    run("ledger", "create", ledger, "--dataset", "users", *PRIVACY).must_work()
    made = run("stream", "create", state, *DATA, *ASKED, *PRIVACY, *in_ledger).must_work()
    assert "rolling:2" in made.err
    run("stream", "create", state, *DATA, *ASKED, *PRIVACY).must_refuse("exists already")
    for day in (1, 2, 3):
        events, out = write_day(tmp_path, day, "ann", "bob", "ann"), tmp_path / f"{day}.parquet"
        done = run("stream", "advance", state, events, "--through", f"2013-01-{day + 1:02}", "-o", out).must_work()
        assert f"closed up to 2013-01-{day + 1:02}" in done.err
        release = dw.Release.load(out)
        assert release.metadata["stream"]["first_step"] == release.metadata["stream"]["last_step"] == day
        assert (
            release.count(f"2013-01-{day:02}" if day == 1 else f"2013-01-{day - 1:02}", f"2013-01-{day + 1:02}").k == 1
        )
    # The same call again: refused over the file that is there, the same bytes elsewhere.
    repeat = ("stream", "advance", state, tmp_path / "2013-01-02.csv", "--through", "2013-01-03", "-o")
    assert run(*repeat, tmp_path / "2.parquet").code == 2
    run(*repeat, tmp_path / "again.parquet").must_work()
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()
    # Everything so far, on the screen and in a file that other commands read.
    shown = run("stream", "show", state, "-o", tmp_path / "all.csv").must_work()
    assert "3 steps, up to 2013-01-04" in shown.out
    every = dw.Release.load(tmp_path / "all.csv").table
    assert every.slice(0, 4).equals(dw.Release.load(tmp_path / "1.parquet").table)
    run("report", tmp_path / "all.csv", "-o", tmp_path / "all.html").must_work()
    assert "no budget" not in run("ledger", "show", ledger).out
    run("stream", "create", tmp_path / "second", *DATA, *ASKED, *PRIVACY, *in_ledger).must_refuse()
    assert not (tmp_path / "second").exists()
    text = json.dumps(release.metadata)
    assert not any(secret in text for secret in (str(tmp_path), "users.state", "2013-01-03.csv", "ann"))


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--through", "soon"), ["soon"]),
        (("--through", "2013-01-03"), ["--empty"]),
        (("{day}", "--through", "2013-01-03", "--empty"), ["not both"]),
        (("{day}", "--through", "2013-01-02"), ["not the ones"]),
        (("{next}", "--through", "2013-01-03"), ["at or after 2013-01-03", "--later ignore"]),
        (("{day}", "--through", "2013-01-03"), ["late events", "2013-01-02"]),
        (("{day}", "--through", "2013-01-03", "--late", "later"), ["--late"]),
        (("{none}", "--through", "2013-01-03"), ["no file"]),
        (("{day}",), ["--through"]),
        (("--through", "2013-01-03", "--empty", "-o", "out.txt"), [".parquet"]),
    ],
)
def test_wrong_calls_exit_with_2_and_change_nothing(
    tmp_path: Path, arguments: tuple[str, ...], words: list[str]
) -> None:
    state = tmp_path / "state"
    run("stream", "create", state, *DATA, *ASKED, *PRIVACY).must_work()
    first, other = write_day(tmp_path, 1, "ann"), write_day(tmp_path, 3, "ann")
    run("stream", "advance", state, first, "--through", "2013-01-02").must_work()
    first.write_text(first.read_text() + "bob,2013-01-01\n")
    paths = {"day": first, "next": other, "none": tmp_path / "none.csv"}
    outcome = run("stream", "advance", state, *(argument.format(**paths) for argument in arguments)).must_refuse()
    assert all(word in outcome.err for word in words), outcome.err
    assert "1 step, up to 2013-01-02" in run("stream", "show", state).out


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("--window", "any"), ["any", "horizon"]),
        (("--unit", "item"), ["horizon"]),
        (("--start", "soon"), ["soon"]),
        (("--step", "1y"), ["1y"]),
        (("--time-zone", "Mars/Olympus"), ["Mars/Olympus"]),
        (("--epsilon", "-1"), ["epsilon"]),
        (("--horizon", "0"), ["horizon"]),
        (("--ledger", "none"), ["--dataset"]),
        (("--strategy", "magic"), ["magic"]),
    ],
)
def test_streams_that_cannot_be_are_not_made(tmp_path: Path, changed: tuple[str, str], words: list[str]) -> None:
    given = {"--window": "rolling:2", "--unit": "event", "--epsilon": "1", "--start": "2013-01-01"} | {
        changed[0]: changed[1]
    }
    arguments = [part for pair in given.items() for part in pair]
    outcome = run("stream", "create", tmp_path / "state", "--item", "who", "--time", "at", *arguments).must_refuse()
    assert all(word in outcome.err for word in words), outcome.err
    assert not list(tmp_path.iterdir())


def test_show_of_a_new_stream(tmp_path: Path) -> None:
    state = tmp_path / "state"
    run("stream", "create", state, *DATA, *ASKED, *PRIVACY, "--horizon", "30").must_work()
    shown = run("stream", "show", state).must_work()
    assert "30 in all" in shown.out
    assert "0 steps, up to 2013-01-01" in shown.out
    run("stream", "show", state, "-o", tmp_path / "all.parquet").must_refuse("nothing has been released")


def test_a_table_of_a_database(tmp_path: Path) -> None:
    database = tmp_path / "events.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 'ann' AS who, TIMESTAMP '2013-01-01 10:00' AS at, 4 AS times")
        connection.execute("CREATE TABLE other AS SELECT 1")
    state = tmp_path / "state"
    run("stream", "create", state, *DATA, *ASKED, *PRIVACY, "--count", "times").must_work()
    call = ("stream", "advance", state, database, "--through", "2013-01-02")
    assert run(*call).code == 2
    run(*call, "--table", "visits", "--memory-limit", "200MB").must_work()


@pytest.mark.slow
def test_ten_times_as_many_steps_as_windows_have_cost_what_the_first_ones_did(tmp_path: Path) -> None:
    """Items come and go for good; neither the state nor the work of a step grows with the number of steps."""
    steps, together = 150, 5
    dice = np.random.default_rng(7)
    work, known, sizes = [], [], []
    path = tmp_path / "state"
    with new_stream(path, plan_of("any:15", thresholds=(1,), horizon=steps)) as stream:
        for first in range(1, steps + 1, together):
            events = [
                (f"item-{step + int(offset)}", step, 1)
                for step in range(first, first + together)
                for offset in dice.integers(0, 20, 10)
            ]
            table = table_of(events)
            with cProfile.Profile() as profile:
                stream.advance(table, (first + together - 1) * STEP)
            work.append(sum(one.callcount for one in profile.getstats()))
            items = path.with_name("state-items")
            known.append(duckdb.execute(f"SELECT count(DISTINCT item) FROM read_parquet('{items}/*')").fetchall()[0][0])
            used = path.stat().st_size + sum(part.stat().st_size for part in items.iterdir())
            with closing(sqlite3.connect(path)) as connection:
                rows = connection.execute("SELECT sum((length(rows) + 4095) / 4096 * 4096) FROM released").fetchone()[0]
            sizes.append(
                used - rows - 400 * first
            )  # but for the rows released, in pages, and what is known of each step
    # Of the items of the last 29 steps, which blocks reach back to, and of those since the last pruning.
    assert max(known[20:]) <= 29 + _RARELY + 40
    assert max(work[20:]) < 1.05 * max(work[10:20]), work
    assert max(sizes[-10:]) < 2 * max(sizes[:10]), sizes
