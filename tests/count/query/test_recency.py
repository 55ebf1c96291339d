"""The counting query against direct counting, on random logs and on logs made to hurt."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpwindows.ask.timeline import Timeline
from dpwindows.count.answers import ExactAnswers
from dpwindows.count.counting import by_threshold
from dpwindows.count.engines.duckdb import progress_bar
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.query.recency import Occurrences, recency_sql
from dpwindows.errors import InputError
from tests.brute_force import any_window, cumulative, rolling
from tests.counting import count_events
from tests.search import examples
from tests.terminal import Terminal

Log = list[tuple[int, int, int]]


def counted(log: Log, steps: int, thresholds: list[int], *, weighted: bool) -> ExactAnswers:
    """A log through the whole data half; without weights an occurrence is a row."""
    rows = log if weighted else [(item, step, 1) for item, step, count in log for _ in range(count)]
    random.Random(0).shuffle(rows)
    table = pa.table(
        {
            "item": pa.array([item for item, _, _ in rows], pa.int64()),
            "time": pa.array([step - 1 for _, step, _ in rows], pa.int64()),
            "count": pa.array([count for _, _, count in rows], pa.int64()),
        }
    )
    columns = EventColumns("item", "time", "count" if weighted else None)
    return count_events(table, columns, Timeline.of_steps(steps), thresholds)


def check(answers: ExactAnswers, log: Log, steps: int, thresholds: list[int]) -> None:
    """All three families against direct counting."""
    assert answers.thresholds == tuple(sorted(thresholds))
    for k in thresholds:
        assert answers.cumulative(k).tolist() == cumulative(log, k, steps)
        for length in {1, 2, 7, steps, steps + 3}:
            assert answers.rolling(k, length).tolist() == rolling(log, k, steps, length)
        assert answers.windows(k, 1, steps, 1, steps).tolist() == any_window(log, k, steps)


@st.composite
def logs(draw: st.DrawFn) -> tuple[Log, int, list[int]]:
    steps = draw(st.integers(1, 12))
    event = st.tuples(st.integers(0, 4), st.integers(1, steps), st.sampled_from([1, 1, 1, 2, 3, 9, 20]))
    thresholds = draw(st.lists(st.integers(1, 10), min_size=1, max_size=4, unique=True))
    return draw(st.lists(event, max_size=30)), steps, thresholds


@pytest.mark.slow
@given(case=logs(), weighted=st.booleans())
@examples(120)
def test_any_log(
    an_engine: Callable[[], AbstractContextManager[None]], case: tuple[Log, int, list[int]], weighted: bool
) -> None:
    log, steps, thresholds = case
    with an_engine():
        check(counted(log, steps, thresholds, weighted=weighted), log, steps, thresholds)


@pytest.mark.quick(4)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_long_logs(seed: int, weighted: bool) -> None:
    """T = 40, gaps of several steps, many occurrences in one step, k up to 10 and 50."""
    rng = random.Random(seed)
    busy = rng.sample(range(1, 41), 15)
    log = [(rng.randrange(12), rng.choice(busy), rng.choice([1, 1, 2, 5, 30])) for _ in range(150)]
    thresholds = [1, 2, 3, 7, 10, 50]
    check(counted(log, 40, thresholds, weighted=weighted), log, 40, thresholds)


def test_a_row_of_count_50_is_50_events() -> None:
    answers = counted([(1, 2, 50)], 3, [1, 50, 51], weighted=True)
    assert [answers.cumulative(k).tolist() for k in (1, 50, 51)] == [[0, 1, 1], [0, 1, 1], [0, 0, 0]]


def test_huge_counts_do_not_overflow() -> None:
    log = [(1, 1, 2**63 - 1)] * 5 + [(2, step, 2**62) for step in range(1, 4)]
    check(counted(log, 3, [1, 2**30], weighted=True), log, 3, [1, 2**30])


def test_no_events_at_all() -> None:
    for weighted in (False, True):
        check(counted([], 4, [1, 3], weighted=weighted), [], 4, [1, 3])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_signed_counts_are_small_and_exact(weighted: bool) -> None:
    """What leaves the engine: no zero, no recency after its step, one row for each (k, step, recency)."""
    rng = random.Random(5)
    rows = [(rng.randrange(300), rng.randint(1, 8), 1) for _ in range(5000)]
    connection = duckdb.connect()
    connection.register("rows", pa.table(dict(zip(("item", "step", "count"), zip(*rows, strict=True), strict=True))))
    connection.execute("CREATE TABLE log AS SELECT item::INTEGER AS item, step::INTEGER AS step, count FROM rows")
    table = connection.sql(recency_sql(Occurrences("log", weighted), [1, 3])).to_arrow_table()
    found = connection.from_arrow(table).fetchall()
    assert len({(k, step, recency) for k, step, recency, _ in found}) == len(found) <= 2 * 8 * 9 // 2
    assert all(delta != 0 and 1 <= recency <= step <= 8 for _, step, recency, delta in found)
    check(ExactAnswers(8, by_threshold(table, [1, 3])), rows, 8, [1, 3])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_query_is_standard_sql(weighted: bool) -> None:
    """None of the spellings that only one engine reads."""
    query = recency_sql(Occurrences("log", weighted), [1, 2, 7])
    dialect = (
        r"//|::|\bQUALIFY\b|\bEXCLUDE\b|\bGROUP BY ALL\b|\bFILTER\b|\bSTRUCT\b|\bUNNEST\b|\bHUGEINT\b|\[|\{|\bLIMIT\b"
    )
    assert re.search(dialect, query, re.IGNORECASE) is None
    assert len(re.findall(r"\bFROM log\b", query)) == 1


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ([], "at least one threshold"),
        ([0], "at least 1, got 0"),
        ([2, -2], "at least 1, got -2"),
        ([1.5], "whole number of at least 1, got 1.5"),
        ([True], "whole number of at least 1, got True"),
        ([2**62], r"below 2\*\*31"),
    ],
)
def test_bad_thresholds_are_refused(thresholds: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        counted([], 5, thresholds, weighted=True)


@contextmanager
def largest_size(directory: Path) -> Iterator[list[int]]:
    """Watch a directory: the largest number of bytes its files hold at any time in the block."""
    largest, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            with suppress(FileNotFoundError):
                sizes = [file.stat().st_size for file in directory.rglob("*") if file.is_file()]
                largest[0] = max(largest[0], sum(sizes))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield largest
    finally:
        done.set()
        watcher.join()


@pytest.mark.quick(1)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_small_memory_limit_spills_and_changes_nothing(tmp_path: Path, weighted: bool) -> None:
    """Two million events of a million items need far more than 60 MB."""
    path = tmp_path / "events.parquet"
    duckdb.execute(
        f"COPY (SELECT 'item-' || (i * 7919 % 1000000) AS item, CAST(i * 31 % 100 AS INTEGER) AS time, 2 AS count "
        f"FROM range(2000000) AS r(i)) TO '{path}' (FORMAT parquet)"
    )
    columns = EventColumns("item", "time", "count" if weighted else None)
    spill = tmp_path / "spill"
    spill.mkdir()
    small = EngineSettings(memory_limit="60MB", spill_directory=spill, threads=1)
    with largest_size(spill) as spilled:
        limited = count_events(path, columns, Timeline.of_steps(100), [1, 2], settings=small)
    assert spilled[0] > 1_000_000
    plain = count_events(path, columns, Timeline.of_steps(100), [1, 2])
    for k in (1, 2):
        assert np.array_equal(limited.windows(k, 1, 100, 1, 100), plain.windows(k, 1, 100, 1, 100))
    expected = duckdb.execute(f"SELECT count(DISTINCT item) FROM '{path}' WHERE time < 30").fetchall()
    assert expected == [(limited.cumulative(1)[29],)]
    assert list(spill.iterdir()) == []  # the private spill directory is gone


@pytest.mark.slow
def test_progress_shows_on_a_terminal_only_and_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpwindows.progress._DELAY", 0.01)
    slow = "SELECT count(*) FROM (SELECT DISTINCT i * 7919 % 3000017 FROM range(6000000) AS r(i))"
    for shown in (True, False):
        terminal = Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        connection = duckdb.connect()
        with progress_bar(connection, "counting", shown=shown):
            connection.sql(slow).fetchall()
        assert bool(terminal.written) is shown
        if shown:
            assert any("counting" in text for text in terminal.written)
            assert terminal.written[-1].endswith("\x1b[2K")
