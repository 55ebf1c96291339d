"""Texts in DuckDB are one item only if they are the same bytes, whatever collation says that they are equal."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpwindows.ask.timeline import Timeline
from dpwindows.count.dialects.duckdb import DuckDB
from dpwindows.count.engines.duckdb import open_events
from dpwindows.count.engines.duckdb_recency import in_order_sql
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.query.recency import Occurrences
from dpwindows.errors import InputError
from tests.brute_force import any_window
from tests.count.engines.logs import TEXTS
from tests.counting import count_events, in_steps

STEPS = 4
DAYS = Timeline("2021-03-10", "2021-03-13", "1d", "America/New_York")
# On both sides of where the query in order gives way to the specification: 8 for counts, 2000 for single occurrences.
NEAR_AND_FAR = [(1,), (1, 2, 8), (1, 3, 9), (3, 2000), (3, 2001)]
# For each of these collations some of TEXTS are equal.
ASKED = [(collation, thresholds) for collation in ("NOCASE", "NOACCENT") for thresholds in NEAR_AND_FAR]
ASKED += [(collation, (1, 9, 2001)) for collation in ("NOCASE.NOACCENT", "NFC", "de")]


@cache
def events() -> list[tuple[str, int, int]]:
    """TEXTS at random steps, and the first few so often that they reach every threshold, some of them together only."""
    rng = random.Random(5)
    some = [(rng.choice(TEXTS), rng.randint(1, STEPS), rng.choice([1, 1, 2, 7, 8, 9, 1999])) for _ in range(120)]
    often = [(text, 1 + place % STEPS, 1) for text in TEXTS[:3] for place in range(1000)]
    return [*some, *often, *((TEXTS[3], 1 + place % STEPS, 1) for place in range(2001))]


@cache
def windows(weighted: bool, k: int) -> list[list[int]]:
    """What the definition says of `events`."""
    return any_window([(item, step, count if weighted else 1) for item, step, count in events()], k, STEPS)


def database(path: Path, collation: str) -> Path:
    """A database with the table `log` (item, time, count) of `events`, of which the items have a collation."""
    items, steps, counts = zip(*events(), strict=True)
    rows = pa.table({"item": items, "time": np.array(steps) - 1, "count": counts})
    with duckdb.connect(path) as connection:
        connection.register("rows", rows)
        connection.execute(f"CREATE TABLE log (item VARCHAR COLLATE {collation}, time BIGINT, count BIGINT)")
        connection.execute("INSERT INTO log SELECT * FROM rows")
    return path


@pytest.mark.quick(6)
@pytest.mark.parametrize(("collation", "thresholds"), ASKED, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_collation_makes_no_two_items_one(
    tmp_path: Path, collation: str, weighted: bool, thresholds: tuple[int, ...]
) -> None:
    path = database(tmp_path / "log.duckdb", collation)
    with duckdb.connect(path, read_only=True) as connection:
        seen = connection.sql("SELECT count(*) FROM (SELECT item FROM log GROUP BY item)").fetchall()[0][0]
    assert seen < len(TEXTS), "the collation takes no two of the texts for equal"
    columns = EventColumns("item", "time", "count" if weighted else None)
    answers = count_events(path, columns, Timeline.of_steps(STEPS), thresholds, table="log")
    for k in thresholds:
        assert answers.windows(k, 1, STEPS, 1, STEPS).tolist() == windows(weighted, k)


def test_thresholds_are_on_both_sides() -> None:
    """The thresholds above go both ways, by counts and by single occurrences."""
    for weighted in (False, True):
        ways = [in_order_sql(Occurrences("e", weighted), k, hashed=True) is None for k in NEAR_AND_FAR]
        assert set(ways) == {False, True}


@pytest.mark.parametrize(
    "column",
    [
        "CREATE VIEW shown AS SELECT item COLLATE NOCASE.NOACCENT AS id, day, n FROM log",
        "CREATE TABLE shown AS SELECT item COLLATE NOCASE.NOACCENT AS id, day, n FROM log",
        "CREATE VIEW shown AS SELECT CAST(item AS VARCHAR) AS id, day, n FROM "
        "(SELECT item COLLATE NOCASE AS item, day, n FROM log)",
        "CREATE TYPE name AS VARCHAR; CREATE TABLE shown (id name, day INTEGER, n INTEGER); "
        "INSERT INTO shown SELECT * FROM log",
        "CREATE TYPE name AS ENUM ('Ann', 'ann', 'Änn', 'ann '); CREATE TABLE shown (id name, day INTEGER, n INTEGER); "
        "INSERT INTO shown SELECT * FROM log",
        "CREATE VIEW shown AS SELECT CAST('\"' || item || '\"' AS JSON) AS id, day, n FROM log",
        "CREATE VIEW shown AS SELECT encode(item) AS id, day, n FROM log",
    ],
    ids=["view", "table made of a query", "cast", "type made of text", "enum", "json", "blob"],
)
def test_what_else_holds_text(tmp_path: Path, column: str) -> None:
    """Four items that differ by case, accent or a blank, twice at 0 and once at 1."""
    path = tmp_path / "log.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE log (item VARCHAR, day INTEGER, n INTEGER)")
        rows = [(item, at, 1) for item in ("Ann", "ann", "Änn", "ann ") for at in (0, 0, 1)]
        connection.executemany("INSERT INTO log VALUES (?, ?, ?)", rows)
        connection.execute(column)
    columns = EventColumns("id", "day", "n")
    for thresholds in ([1, 2], [1, 2, 9]):
        answers = count_events(path, columns, Timeline.of_steps(2), thresholds, table="shown")
        assert [answers.rolling(k, 1).tolist() for k in (1, 2)] == [[4, 4], [4, 0]]


def test_nested_text_is_refused(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "log.duckdb") as connection:
        connection.execute("CREATE TABLE log AS SELECT struct_pack(name := 'a' COLLATE NOCASE) AS id, 0 AS day")
    with pytest.raises(InputError, match="item column 'id' is of the nested type STRUCT"):
        count_events(tmp_path / "log.duckdb", EventColumns("id", "day"), Timeline.of_steps(2), [1])


@pytest.mark.parametrize("default", ["", "NOCASE"])
def test_a_relation_brings_no_collation_along(default: str) -> None:
    """Neither that of its column nor the one that its connection has for all columns."""
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE log (id VARCHAR COLLATE {default or 'NOCASE'}, plain VARCHAR, day INTEGER)")
        connection.execute("INSERT INTO log VALUES ('Ann', 'Ann', 0), ('ann', 'ann', 0), ('ann', 'ann', 1)")
        connection.execute(f"SET default_collation = '{default}'")
        relation = connection.table("log")
        for name in ("id", "plain"):
            assert in_steps(relation, EventColumns(name, "day"), Timeline.of_steps(2)) == [2, 1]


def test_times_and_counts_as_text_are_read_alike(tmp_path: Path) -> None:
    """Patterns and offsets in texts of a collation that ignores case."""
    times = ["2021-03-10", "2021-03-11T04:59:59Z", "2021-03-11 05:00", "2021-03-11T23:59:59.999999-05:00", "2021-03-13"]
    rows = [(f"item {place}", time, f" +{place} ") for place, time in enumerate(times)]
    found = []
    for collation in ("", "COLLATE NOCASE", "COLLATE NOCASE.NOACCENT"):
        path = tmp_path / f"{collation}.duckdb"
        with duckdb.connect(path) as connection:
            connection.execute(f"CREATE TABLE log (id VARCHAR, day VARCHAR {collation}, n VARCHAR {collation})")
            connection.executemany("INSERT INTO log VALUES (?, ?, ?)", rows)
        plain, weighted = EventColumns("id", "day"), EventColumns("id", "day", "n")
        found.append((in_steps(path, plain, DAYS), in_steps(path, weighted, DAYS), in_steps(path, weighted, DAYS, 3)))
    assert found == [([2, 2, 0], [1, 2, 0], [0, 1, 0])] * 3


def test_bytes_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine reads and counts a file by the same plan as if nothing was said about collations."""
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"id": ["a", "b"] * 5000, "day": [0] * 10000, "n": [1] * 10000}), path)

    def plans() -> list[Any]:
        found = []
        for columns in (EventColumns("id", "day"), EventColumns("id", "day", "n")):
            settings = EngineSettings(threads=1)
            with open_events(path, columns, Timeline.of_steps(2), cap=8, settings=settings) as events:
                query = in_order_sql(Occurrences(f"({events.sql})", events.weighted), [1, 8], hashed=events.hashed)
                found.append((query, events.connection.sql(f"EXPLAIN {query}").fetchall()))
        return found

    ours = plans()
    monkeypatch.setattr(DuckDB, "exact", lambda _, role, name, column: name)
    theirs = plans()
    assert [query for query, _ in ours] != [query for query, _ in theirs]
    assert [plan for _, plan in ours] == [plan for _, plan in theirs]
