"""DuckDB's own form of the counting query: the same counts as the specification, or a refusal and never a wrong one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpwindows.ask.timeline import Timeline
from dpwindows.count.answers import ExactAnswers
from dpwindows.count.counting import by_threshold
from dpwindows.count.engines import duckdb as engine
from dpwindows.count.engines.duckdb_recency import in_order_sql, is_out_of_order
from dpwindows.count.events import EventColumns
from dpwindows.count.query.recency import Occurrences, recency_sql
from dpwindows.errors import InputError
from tests.brute_force import any_window
from tests.counting import count_events
from tests.search import examples

Log = list[tuple[int, int, int]]
STEPS = 9
THRESHOLDS = [1, 2, 3, 7, 8]
# Every type of item there is, as a function of a whole number.
ITEMS = {
    "tinyint": "CAST({} AS TINYINT)",
    "bigint": "CAST({} * 4000000000 - 9000000000000 AS BIGINT)",
    "ubigint": "CAST({} AS UBIGINT) + 18446744073709551000",
    "hugeint": "CAST({} AS HUGEINT) * 10000000000000000000 - 20000000000000000000",
    "uhugeint": "CAST({} AS UHUGEINT)",
    "decimal": "CAST({} AS DECIMAL(30, 3)) / 8",
    "boolean": "{} % 2 = 0",
    "date": "DATE '1969-12-30' + CAST({} AS INTEGER)",
    "timestamp": "TIMESTAMP '1969-12-31 23:59:59.999997' + to_microseconds({})",
    "zoned timestamp": "TIMESTAMPTZ '1969-12-31 23:59:59.999997+00' + to_microseconds({})",
    "timestamp of nanoseconds": "make_timestamp_ns({} - 3)",
    "time": "TIME '00:00:00' + to_seconds({})",
    "uuid": "CAST(md5(CAST({} AS VARCHAR)) AS UUID)",
    "enum": "CAST(CAST(9 - {} % 10 AS VARCHAR) AS ENUM ('9', '1', '8', '2', '7', '3', '6', '4', '5', '0'))",
    "short text": "CAST({} AS VARCHAR)",
    "long text": "'an item with a long common beginning ' || {}",
    "text of other scripts": "chr(CAST(1055 + {} AS INTEGER)) || chr(0) || 'é'",
    "blob": "unhex(md5(CAST({} AS VARCHAR)))",
    "bit": "CAST(CAST({} AS INTEGER) AS BIT)",
    "bignum": "CAST({} - 4 AS BIGNUM)",
}


def random_log(seed: int, rows: int = 200) -> Log:
    rng = random.Random(seed)
    return [(rng.randrange(10), rng.randint(1, STEPS), rng.choice([1, 1, 1, 2, 3, 9])) for _ in range(rows)]


@contextmanager
def relation(log: Log, item: str = "{}") -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
    """A log as a relation (item, step, count) on a connection like the engine's own."""
    with duckdb.connect(config={"preserve_insertion_order": False}) as connection:
        columns = zip(*log, strict=True) if log else ((), (), ())
        names = ("number", "step", "count")
        table = pa.table({name: pa.array(column, pa.int64()) for name, column in zip(names, columns, strict=True)})
        connection.from_arrow(table).create("numbered")
        connection.execute(f"CREATE VIEW log AS SELECT {item.format('number')} AS item, step, count FROM numbered")
        yield connection, "log"


def counts(connection: duckdb.DuckDBPyConnection, query: str | None) -> set[tuple[int, int, int, int]]:
    assert query is not None
    found = connection.sql(query).fetchall()
    assert len(set(found)) == len(found)
    return set(found)


@st.composite
def logs(draw: st.DrawFn) -> tuple[Log, list[int]]:
    event = st.tuples(st.integers(0, 3), st.integers(1, STEPS), st.sampled_from([1, 1, 1, 2, 3, 20]))
    return draw(st.lists(event, max_size=30)), draw(st.lists(st.integers(1, 8), min_size=1, max_size=3, unique=True))


@pytest.mark.slow
@given(case=logs(), weighted=st.booleans(), hashed=st.booleans())
@examples(40)
def test_both_forms_of_the_query_count_what_direct_counting_does(
    case: tuple[Log, list[int]], weighted: bool, hashed: bool
) -> None:
    log, thresholds = case
    occurrences = log if weighted else [(item, step, 1) for item, step, _ in log]
    with relation(log) as (connection, events):
        for query in (
            recency_sql(Occurrences(events, weighted), thresholds),
            in_order_sql(Occurrences(events, weighted), thresholds, hashed=hashed),
        ):
            assert query is not None
            answers = ExactAnswers(STEPS, by_threshold(connection.sql(query).to_arrow_table(), thresholds))
            for k in thresholds:
                assert answers.windows(k, 1, STEPS, 1, STEPS).tolist() == any_window(occurrences, k, STEPS)


@pytest.mark.quick(5)
@pytest.mark.parametrize("kind", ITEMS)
def test_items_of_every_type_come_in_order(kind: str) -> None:
    """The engine sorts each type as it compares it: the query in order passes its own checks."""
    log = random_log(len(kind))
    with relation(log, ITEMS[kind]) as (connection, events):
        connection.execute(f"CREATE TABLE typed AS FROM {events}")
        hashed = connection.sql("SELECT item FROM typed").types[0].id in engine._NO_FIXED_WIDTH
        for weighted in (False, True):
            expected = counts(connection, recency_sql(Occurrences("typed", weighted), THRESHOLDS))
            found = counts(connection, in_order_sql(Occurrences("typed", weighted), THRESHOLDS, hashed=hashed))
            assert found == expected


@pytest.mark.slow
def test_many_rows_of_several_threads_and_spilled_ones_come_in_order(tmp_path: Path) -> None:
    """More threads than cores, and less memory than the rows need."""
    path = tmp_path / "events.parquet"
    duckdb.execute(
        f"COPY (SELECT 'item-' || (i * 7919 % 90000) AS item, CAST(i * 31 % 100 AS INTEGER) AS step, "
        f"i % 3 + 1 AS count FROM range(700000) AS r(i)) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 50000)"
    )
    config: dict[str, str | bool | int | float | list[str]] = {
        "preserve_insertion_order": False,
        "threads": 4,
        "memory_limit": "60MB",
        "temp_directory": str(tmp_path / "spill"),
    }
    with duckdb.connect(config=config) as limited, duckdb.connect() as plain:
        for weighted, thresholds in ((False, [1, 2]), (True, [3])):
            expected = counts(plain, recency_sql(Occurrences(f"'{path}'", weighted), thresholds))
            found = counts(limited, in_order_sql(Occurrences(f"'{path}'", weighted), thresholds, hashed=True))
            assert found == expected
        assert (tmp_path / "spill").exists()  # made when it is first needed


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_out_of_order_fail(weighted: bool, hashed: bool) -> None:
    """Without its ORDER BY the query fails, whatever the thresholds: the order is checked and not assumed."""
    with relation(random_log(1)) as (connection, events):
        for thresholds in ([1], [2], [8]):
            query = in_order_sql(Occurrences(events, weighted), thresholds, hashed=hashed)
            assert query is not None
            disordered = query.replace("ORDER BY code, step", "ORDER BY code, step DESC")
            for wrong in (disordered, query.replace("ORDER BY code, step", "ORDER BY step, code")):
                assert wrong != query
                with pytest.raises(duckdb.Error) as raised:
                    connection.sql(wrong).fetchall()
                assert is_out_of_order(raised.value)


def colliding(query: str | None) -> str | None:
    """The query with a hash of which there are four values only."""
    return query.replace("hash(item)", "CAST(hash(item) % 4 AS UBIGINT)") if query else None


@pytest.mark.parametrize("weighted", [False, True])
def test_items_with_one_hash_fail(weighted: bool) -> None:
    """Even if no row is out of order by its step: two items, one after the other."""
    for log in (random_log(2), [(item, item + 1, 1) for item in range(8)]):
        with relation(log, "'item ' || {}") as (connection, events):
            query = colliding(in_order_sql(Occurrences(events, weighted), [1, 2], hashed=True))
            assert query is not None
            with pytest.raises(duckdb.Error) as raised:
                connection.sql(query).fetchall()
            assert is_out_of_order(raised.value)


@pytest.mark.parametrize("count", [None, "count"])
def test_items_with_one_hash_are_counted_by_the_specification(
    count: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = random_log(3)
    path = tmp_path / "log.csv"
    path.write_text("item,time,count\n" + "".join(f"item {item},{step},{n}\n" for item, step, n in log))
    columns, timeline = EventColumns("item", "time", count), Timeline.of_steps(STEPS + 1)
    expected = count_events(path, columns, timeline, THRESHOLDS)
    tried = []

    def with_collisions(*arguments: Any, **options: Any) -> str | None:
        tried.append(colliding(in_order_sql(*arguments, **options)))
        return tried[-1]

    monkeypatch.setattr(engine, "in_order_sql", with_collisions)
    found = count_events(path, columns, timeline, THRESHOLDS)
    assert len(tried) == 1
    assert tried[0] is not None
    for k in THRESHOLDS:
        assert np.array_equal(found.windows(k, 1, 10, 1, 10), expected.windows(k, 1, 10, 1, 10))


def test_what_is_read_only_once_is_not_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record batch reader and a relation have no second reading, should the query in order fail."""
    monkeypatch.setattr(engine, "in_order_sql", lambda *_, **__: pytest.fail("the query in order was written"))
    table = pa.table({"item": ["a", "b", "a"], "time": [0, 1, 2]})
    for source in (table.to_reader(), duckdb.from_arrow(table)):
        answers = count_events(source, EventColumns("item", "time"), Timeline.of_steps(3), [1, 2])
        assert answers.cumulative(1).tolist() == [1, 2, 2]
        assert answers.cumulative(2).tolist() == [0, 0, 1]


def test_other_failures_are_not_taken_for_disorder(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("item,time\na,1\nb,one\n")
    with pytest.raises(InputError, match="expected whole numbers"):
        count_events(path, EventColumns("item", "time"), Timeline.of_steps(3), [1])


@pytest.mark.parametrize(
    ("thresholds", "weighted"), [([9], True), ([1, 50], True), ([2001], False), ([2, 9999], False)]
)
def test_far_thresholds_are_left_to_the_specification(thresholds: list[int], weighted: bool) -> None:
    assert in_order_sql(Occurrences("log", weighted), thresholds, hashed=False) is None


def test_a_far_threshold_within_reach() -> None:
    """Two thousand rows of one item, across the engine's vectors."""
    log = [(0, 1 + row * STEPS // 5000, 1) for row in range(5000)] + random_log(4)
    with relation(log) as (connection, events):
        expected = counts(connection, recency_sql(Occurrences(events, False), [1, 1999, 2000]))
        assert counts(connection, in_order_sql(Occurrences(events, False), [1, 1999, 2000], hashed=False)) == expected


def test_large_counts_do_not_overflow() -> None:
    log = [(1, step, 2**63 - 1) for step in range(1, STEPS)] * 3
    with relation(log) as (connection, events):
        expected = counts(connection, recency_sql(Occurrences(events, True), [8]))
        assert counts(connection, in_order_sql(Occurrences(events, True), [8], hashed=False)) == expected
