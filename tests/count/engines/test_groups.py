"""Groups are counted alike by every engine, to the last integer, and as their definition says."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.groups import Grouping, grouping
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EventColumns
from dpwindows.errors import InputError
from tests.brute_force import any_window, occurrences, once_a_step
from tests.count.engines.logs import ENGINES, Place, Put, in_duckdb, in_sqlite
from tests.counting import count_groups
from tests.grouped_logs import Row, grouped_events

STEPS = 6
TIMELINE = Timeline(0, 60, 10)
# Values that collations, escapes and padding take for others.
TEXTS = ("a", "A", "a ", "o'b", "x\\y", "x\\\\y", "é", "e\u0301", ":n %s", "null", "NA")
NUMBERS = (7, -1, 0, 2**62)
LISTS: dict[str, list[Any]] = {"country": [text for text in TEXTS if text != "A"], "store": [7, -1, 2**62]}

GROUPINGS = {
    "one column": grouping({"country": LISTS["country"]}),
    "a column of integers, with totals": grouping({"store": LISTS["store"]}, totals=0.2),
    "two columns, with margins": grouping(LISTS, totals=0.5),
    "of items": grouping(LISTS, group_of="item", totals=0.1),
    "at most two": grouping(LISTS, max_groups=2, totals=0.1),
    "at most one": grouping({"country": LISTS["country"]}, max_groups=1),
}


def rows_of(seed: int, events: int = 240) -> list[Row]:
    rng = random.Random(seed)
    items = ["u", "U", "u ", "7", "007", *map(str, range(8))]
    rows: list[Row] = [
        # Few moments, so that many events are at the same.
        (rng.choice(items), rng.choice([-1, 0, 3, 9, 10, 25, 25, 40, 59, 60]), rng.choice([1, 1, 2, 5, 0]), values)
        for values in ((rng.choice(TEXTS), rng.choice(NUMBERS)) for _ in range(events))
    ]
    rows.append(("u", 3, 1, (None, 7)))
    rows.append(("u", 3, 1, ("a", None)))
    return rows


def table_of(rows: list[Row]) -> pa.Table:
    return pa.table(
        {
            "item": [row[0] for row in rows],
            "time": pa.array([row[1] for row in rows], pa.int64()),
            "n": pa.array([row[2] for row in rows], pa.int64()),
            "country": pa.array([row[3][0] for row in rows], pa.string()),
            "store": pa.array([row[3][1] for row in rows], pa.int64()),
        }
    )


def step_of(time: int) -> int | None:
    return time // 10 + 1 if 0 <= time < 60 else None


def require_as_defined(
    place: Place, rows: list[Row], asked: Grouping, thresholds: list[int], *, weighted: bool, rule: CountingRule
) -> None:
    """Every window of every group is what the definition says."""
    columns = EventColumns("item", "time", "n" if weighted else None, grouping=asked)
    asked_for = [OCCURRENCES, *thresholds]
    answers = count_groups(columns=columns, timeline=TIMELINE, thresholds=asked_for, rule=rule, **vars(place))
    places = {"country": 0, "store": 1}
    read = [
        (item, time, count if weighted else 1, tuple(values[places[name]] for name in asked.names))
        for item, time, count, values in rows
        if count >= 1 or not weighted
    ]
    expected = grouped_events(read, asked, step_of)
    cells = [(level.first + at, key) for level in asked.levels for at, key in enumerate(asked.values_of(level))]
    assert {key for _, key in cells} == set(expected)
    assert any(expected.values())
    for cell, key in cells:
        events = once_a_step(expected[key]) if rule.distinct_steps else expected[key]
        expected_occurrences = occurrences(events, STEPS)
        assert answers.group(cell).windows(OCCURRENCES, 1, STEPS, 1, STEPS).tolist() == expected_occurrences, key
        for k in thresholds:
            assert answers.group(cell).windows(k, 1, STEPS, 1, STEPS).tolist() == any_window(events, k, STEPS), key


@pytest.mark.parametrize("name", GROUPINGS)
@pytest.mark.parametrize("put", ENGINES)
def test_every_engine_counts_groups_as_the_definition_says(
    put: Put, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    asked = GROUPINGS[name]
    assert asked is not None
    # Each grouping with and without counts somewhere: every engine sees both.
    weighted = list(GROUPINGS).index(name) % 2 == 0
    rows = rows_of(len(name))
    place = put(table_of(rows), tmp_path, request)
    require_as_defined(place, rows, asked, [1, 2, 5], weighted=weighted, rule=CountingRule(len(name) % 3 == 0))


@pytest.mark.parametrize("put", [in_duckdb, in_sqlite])
@pytest.mark.parametrize("seed", range(12))
def test_random_logs_are_counted_as_the_definition_says(
    put: Put, seed: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rng = random.Random(seed)
    name = rng.choice(["country", "store", "both"])
    lists = {one: rng.sample(LISTS[one], rng.randint(1, 3)) for one in LISTS if name in (one, "both")}
    limit = rng.choice([None, 1, 2, 3, 100])
    of = None if limit else rng.choice(["event", "item"])
    asked = grouping(lists, group_of=of, max_groups=limit, totals=rng.choice([None, 0.3]))
    assert asked is not None
    rows, rule = rows_of(1000 + seed), CountingRule(rng.random() < 0.3)
    weighted = rng.random() < 0.5
    require_as_defined(put(table_of(rows), tmp_path, request), rows, asked, [1, 3], weighted=weighted, rule=rule)


@pytest.mark.parametrize(
    ("item", "kind"), [(lambda text: text, "text"), (lambda text: sum(text.encode()), "numbers, sorted as they are")]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_query_in_order_counts_groups_of_items_of_any_type(
    item: Callable[[str], Any], kind: str, weighted: bool
) -> None:
    rows = [(item(row[0]), *row[1:]) for row in rows_of(77, 600)]
    asked = GROUPINGS["two columns, with margins"]
    assert asked is not None
    require_as_defined(Place(table_of(rows)), rows, asked, [1, 2, 4], weighted=weighted, rule=CountingRule())


@pytest.mark.parametrize("put", ENGINES)
@pytest.mark.parametrize("weighted", [False, True])
def test_answers_within_a_reach_are_the_same_for_its_windows(
    put: Put, weighted: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    asked = GROUPINGS["two columns, with margins"]
    assert asked is not None
    place = vars(put(table_of(rows_of(5, 400)), tmp_path, request))
    columns = EventColumns("item", "time", "n" if weighted else None, grouping=asked)
    every = count_groups(columns=columns, timeline=TIMELINE, thresholds=[1, 3], **place)
    near = count_groups(columns=columns, timeline=TIMELINE, thresholds=[1, 3], reach=2, **place)
    for cell in range(sum(level.count for level in asked.levels)):
        for k in (1, 3):
            for length in (1, 2, STEPS, STEPS + 1):
                expected = every.group(cell).rolling(k, length)
                assert near.group(cell).rolling(k, length).tolist() == expected.tolist(), (cell, k, length)
    if not weighted:
        ones = count_groups(
            table_of([(item, time, 1, values) for item, time, _, values in rows_of(5, 400)]),
            *(replace(columns, count="n"), TIMELINE, [1, 3]),
            reach=2,
        )
        assert list(ones.canonical()) == list(near.canonical()), "however it was counted"
    with pytest.raises(InputError, match="at most 2 steps, not of 3"):
        near.group(0).rolling(1, 3)
    with pytest.raises(InputError, match="rolling and cumulative windows only"):
        near.group(0).windows(1, 1, 2, 1, 2)


def test_files_with_different_types_of_a_group_column_are_each_matched_by_their_own(tmp_path: Path) -> None:
    for name, values in {"a": pa.array(["1", "01", "2"]), "b": pa.array([1, 2, 2])}.items():
        pq.write_table(
            pa.table({"item": ["x", "y", "z"], "time": [0, 0, 0], "store": values}), tmp_path / f"{name}.parquet"
        )
    asked = grouping({"store": ["1", "2"]})
    answers = count_groups(tmp_path, EventColumns("item", "time", grouping=asked), Timeline(0, 1, 1), [1])
    assert [answers.group(cell).cumulative(1).tolist() for cell in (0, 1)] == [[1], [2]]


@pytest.mark.parametrize(
    ("values", "column", "message"),
    [
        (["1", "x"], pa.array([1, 2]), "must be whole numbers of 64 bits, since the column is of type BIGINT, got 'x'"),
        (["1", "01"], pa.array([1, 2]), "the number 1 twice"),
        ([1, 2], pa.array(["1", "2"]), "whole numbers, and the column is of type VARCHAR: give them as text"),
        (["1", "2"], pa.array([1.0, 2.0]), "the group column 'store' is of type DOUBLE"),
        (["yes"], pa.array([True, False]), "must be true and false, got 'yes'"),
    ],
)
def test_values_that_are_not_of_the_columns_type_are_refused(values: list[Any], column: pa.Array, message: str) -> None:
    log = pa.table({"item": ["x", "y"], "time": [0, 0], "store": column})
    with pytest.raises(InputError, match=message):
        count_groups(log, EventColumns("item", "time", grouping=grouping({"store": values})), Timeline(0, 1, 1), [1])


def test_truths_and_dictionaries_make_groups(tmp_path: Path) -> None:
    log = pa.table(
        {
            "item": ["x", "y", "z"],
            "time": [0, 0, 0],
            "flag": pa.array([True, False, None]),
            "os": pa.array(["i", "a", "i"]),
        }
    )
    asked = grouping({"flag": ["true", "false"]}, totals=0.5)
    answers = count_groups(log, EventColumns("item", "time", grouping=asked), Timeline(0, 1, 1), [1])
    assert [answers.group(cell).cumulative(1).tolist() for cell in range(3)] == [[1], [1], [2]]
    frame = log.to_pandas().astype({"os": "category"})
    answers = count_groups(
        frame, EventColumns("item", "time", grouping=grouping({"os": ["a", "i"]})), Timeline(0, 1, 1), [1]
    )
    assert [answers.group(cell).cumulative(1).tolist() for cell in range(2)] == [[1], [2]]


def test_a_stream_of_batches_is_read_once() -> None:
    rows = rows_of(5)
    asked = GROUPINGS["two columns, with margins"]
    assert asked is not None
    require_as_defined(Place(table_of(rows).to_reader()), rows, asked, [1], weighted=True, rule=CountingRule())


def test_a_missing_group_column_is_named() -> None:
    log = pa.table({"item": ["x"], "time": [0], "origins": ["a"]})
    with pytest.raises(InputError, match=r"no column 'origin' for the group \(did you mean 'origins'\?\)"):
        count_groups(log, EventColumns("item", "time", grouping=grouping({"origin": ["a"]})), Timeline(0, 1, 1), [1])
