"""Recencies kept up step by step, against brute force over the whole log."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpwindows.stream import items
from dpwindows.stream.items import make_items, occur, prune
from dpwindows.stream.step_counts import NONE, Change, StepCounts, oldest_at
from tests.brute_force import count_at_least
from tests.search import examples

ENGINE = duckdb.connect(config={"threads": 1})
occurrences = st.dictionaries(st.integers(0, 6), st.integers(1, 9), max_size=5)
logs = st.lists(occurrences, min_size=1, max_size=14)


def run(
    log: list[dict[int, int]], thresholds: tuple[int, ...], reach: int, *, totals: bool
) -> duckdb.DuckDBPyConnection:
    """Close a step for each entry and compare its answers."""
    connection = ENGINE.cursor()
    connection.execute("DROP TABLE IF EXISTS items")
    make_items(connection, "BIGINT", max(thresholds))
    counts, seen = StepCounts.before_all(thresholds, reach, totals=totals), []
    for step, happened in enumerate(log, 1):
        seen += [(item, step, count) for item, count in happened.items()]
        values = ", ".join(f"({item}, {count})" for item, count in happened.items()) or "(NULL, NULL)"
        rows = f"SELECT * FROM (VALUES {values}) AS t(item, total) WHERE item IS NOT NULL"
        counts = counts.after(occur(connection, rows, step, thresholds, oldest_at(step, reach)))
        prune(connection, step, max(thresholds), reach, totals=totals)
        answers = counts.answers()
        for k in thresholds:
            wanted = [count_at_least(seen, k, step - back, step) for back in range(min(step, reach))]
            assert list(answers.recent[k]) == wanted
            if totals:
                assert answers.total[k] == count_at_least(seen, k, 1, step)
    return connection


@pytest.mark.slow
@examples(50)
@given(logs, st.sampled_from([(1,), (2,), (1, 3), (2, 7), (5,)]), st.sampled_from([0, 1, 2, 5, 20]), st.booleans())
def test_answers_are_those_of_the_whole_log(
    log: list[dict[int, int]], thresholds: tuple[int, ...], reach: int, totals: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(items, "_RARELY", 2)
        run(log, thresholds, reach, totals=totals or reach == 0)


def test_what_can_no_longer_matter_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    log = [{step: 2} for step in range(1, 13)]
    bounded = run(log, (1, 2), 3, totals=False)
    # Nine steps back from the next one, at most twice what matters is left.
    assert bounded.execute("SELECT min(r1), count(*) FROM items").fetchone() == (11, 2)
    monkeypatch.setattr(items, "_RARELY", 4)
    with_totals = run(log, (1, 2), 3, totals=True)
    assert with_totals.execute("SELECT r1, r2, count(*) FROM items GROUP BY ALL ORDER BY ALL").fetchall() == [
        (0, 0, 10),
        (11, 11, 1),
        (12, 12, 1),
    ]


def test_an_item_forgotten_in_part_counts_on() -> None:
    """Its old occurrences are only there to be counted: in totals, not in windows."""
    log = [{1: 1}, {}, {}, {}, {}, {1: 1}, {}, {1: 5}]
    run(log, (1, 2, 3), 2, totals=True)


def test_counts_survive_being_stored() -> None:
    counts = StepCounts.before_all((1, 4), 3, totals=True)
    for step in range(1, 6):
        counts = counts.after([Change(1, NONE, step, step), Change(4, NONE, step, 1)])
    again = StepCounts.from_arrays(counts.step, counts.reach, counts.to_arrays())
    assert again.total == counts.total == {1: 15, 4: 5}
    for k in (1, 4):
        np.testing.assert_array_equal(again.recent[k], counts.recent[k])
    assert list(counts.answers().recent[1]) == [5, 9, 12]
