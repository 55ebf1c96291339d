"""Recencies kept up step by step, against brute force over the whole log."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpwindows as dw
from dpwindows.ask.groups import grouping
from dpwindows.stream import recencies
from dpwindows.stream.parts import LocalFolder
from dpwindows.stream.place import Manifest
from dpwindows.stream.recencies import Recencies, Shape, drop_garbage
from dpwindows.stream.step_counts import NONE, Change, StepCounts, oldest_at
from dpwindows.stream.store import DamagedError
from tests.brute_force import count_at_least
from tests.search import examples

occurrences = st.dictionaries(st.integers(0, 6), st.integers(1, 9), max_size=5)
logs = st.lists(occurrences, min_size=1, max_size=14)
SETTINGS = dw.EngineSettings(threads=1, progress=False)


def shape_of(thresholds: tuple[int, ...], reach: int, *, totals: bool, **bound: Any) -> Shape:
    return Shape("BIGINT", None, thresholds, reach, totals, **bound)


def occur(happened: dict[int, int]) -> str:
    values = ", ".join(f"({item}, {count})" for item, count in happened.items()) or "(NULL, NULL)"
    return f"SELECT item, total FROM (VALUES {values}) AS happened(item, total) WHERE item IS NOT NULL"


def parts_in(folder: Path, shape: Shape) -> Recencies:
    return Recencies(LocalFolder(Path("state"), folder, SETTINGS), shape)


def run(log: list[dict[int, int]], folder: Path, shape: Shape) -> tuple[Recencies, Manifest]:
    """Close a step for each entry and compare its answers."""
    parts, manifest = parts_in(folder, shape), Manifest()
    totals, seen = shape.thresholds if shape.totals else (), []
    counts = StepCounts.before_all(shape.thresholds, shape.reach, totals=totals)
    for step, happened in enumerate(log, 1):
        seen += [(item, step, count) for item, count in happened.items()]
        part = parts.write(manifest, step, f"{step:x}", occur(happened))
        assert (part is None) == (not happened)
        changes = [] if part is None else parts.changes(part, oldest_at(step, shape.reach))
        manifest = parts.compact(manifest if part is None else (*manifest, part), step, f"{step:x}")
        place = LocalFolder(Path("state"), folder, SETTINGS)
        place.settle(manifest)
        drop_garbage(place, manifest, step)
        assert sorted(path.name for path in folder.iterdir()) == sorted(part.name for part in manifest)
        counts = counts.after(changes)
        (answers,) = counts.answers()
        for k in shape.thresholds:
            wanted = [count_at_least(seen, k, step - back, step) for back in range(min(step, shape.reach))]
            assert list(answers.recent[k]) == wanted
            if shape.totals:
                assert answers.total[k] == count_at_least(seen, k, 1, step)
    return parts, manifest


def kept(parts: Recencies, manifest: Manifest, query: str) -> list[tuple[Any, ...]]:
    return parts._place.ask(query.format(parts=parts._union(manifest)))


@pytest.mark.slow
@examples(50)
@given(logs, st.sampled_from([(1,), (2,), (1, 3), (2, 7), (5,)]), st.sampled_from([0, 1, 2, 5, 20]), st.booleans())
def test_answers_are_those_of_the_whole_log(
    log: list[dict[int, int]], thresholds: tuple[int, ...], reach: int, totals: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(recencies, "_RARELY", 4)
        patch.setattr(recencies, "_MOST_PARTS", 3)
        patch.setattr(recencies, "_FEW_ROWS", 6)
        run(log, Path(folder), shape_of(thresholds, reach, totals=totals or reach == 0))


def test_what_can_no_longer_matter_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = [{step: 2} for step in range(1, 13)]
    bounded = run(log, tmp_path, shape_of((1, 2), 3, totals=False))
    # Nine steps back from the next one, at most twice what matters is left.
    assert kept(*bounded, "SELECT min(r1), count(*) FROM ({parts})") == [(11, 2)]
    monkeypatch.setattr(recencies, "_RARELY", 4)
    (tmp_path / "totals").mkdir()
    with_totals = run(log, tmp_path / "totals", shape_of((1, 2), 3, totals=True))
    assert kept(*with_totals, "SELECT r1, r2, count(*) FROM ({parts}) GROUP BY ALL ORDER BY ALL") == [
        (0, 0, 10),
        (11, 11, 1),
        (12, 12, 1),
    ]


def test_parts_stay_few_and_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = shape_of((1,), 40, totals=True)
    _, manifest = run([{step % 5: 1} for step in range(1, 50)], tmp_path, shape)
    assert len(manifest) <= 16
    monkeypatch.setattr(recencies, "_FEW_ROWS", 8)
    (tmp_path / "short").mkdir()
    _, manifest = run([dict.fromkeys(range(5), 1)] * 12, tmp_path / "short", shape)
    assert sum(part.rows for part in manifest[1:]) <= 8


def test_an_item_forgotten_in_part_counts_on(tmp_path: Path) -> None:
    """Its old occurrences are only there to be counted: in totals, not in windows."""
    log: list[dict[int, int]] = [{1: 1}, {}, {}, {}, {}, {1: 1}, {}, {1: 5}]
    run(log, tmp_path, shape_of((1, 2, 3), 2, totals=True))


SHAPES = [
    Shape("BIGINT", None, (1, 3), 4, True),
    Shape("VARCHAR", grouping({"g": ["a", "b"]}), (2,), 2, False),
    Shape("VARCHAR", grouping({"g": ["a", "b"], "h": ["c", "d", "e"]}, group_of="item", totals=0.1), (1,), 2, False),
    Shape("BIGINT", None, (1,), 3, True, max_occurrences=5),
    Shape("BIGINT", None, (), 3, False, max_runs=1, series=((1, 2), (2, 3))),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(shape.columns))
def test_the_same_text_runs_on_every_engine(shape: Shape) -> None:
    """Steps, changes and compaction in DuckDB and in SQLite, from the same words but for how whole numbers divide."""
    found = []
    for connection in (duckdb.connect(), sqlite3.connect(":memory:")):
        tables = list[str]()
        for step in (1, 2, 3, 5):
            keys = {"item": f"{step % 2}"} if shape.grouping is None else {"cell": "1", "item": f"'{step % 2}'"}
            named = ", ".join(f"{value} AS {key}" for key, value in keys.items())
            other = named.replace(f"{step % 2}", "7")
            occurring = f"SELECT {named}, {step} AS total UNION ALL SELECT {other}, 1 AS total"
            union = " UNION ALL ".join(f"SELECT {', '.join(shape.columns)} FROM {table}" for table in tables)
            words = shape.step(union or shape.nothing(), occurring, step)
            own = words.replace("//", "/") if isinstance(connection, sqlite3.Connection) else words
            connection.execute(f"CREATE TABLE part{step} AS {own}")
            tables.append(f"part{step}")
        rows = [connection.execute(shape.changes(f"SELECT * FROM {table}", 2)).fetchall() for table in tables]
        others = " UNION ALL ".join(f"SELECT {', '.join(shape.columns)} FROM {table}" for table in tables[1:])
        rows.append(connection.execute(shape.compacted("SELECT * FROM part1", others, 2)).fetchall())
        rows.append(connection.execute(shape.compacted("SELECT * FROM part1", None, 1)).fetchall())
        found.append([sorted(map(str, part)) for part in rows])
        assert rows[-1]
        assert any(rows[:-2])
    assert found[0] == found[1]


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, Shape, Manifest]:
    shape = shape_of((1,), 5, totals=True)
    _, manifest = run([{1: 1, 2: 1}, {3: 1}], tmp_path, shape)
    return tmp_path, shape, manifest


@pytest.mark.parametrize("how", ["missing", "cut", "turned", "longer", "another's"])
def test_a_part_that_is_not_as_it_was_written_is_noticed(written: tuple[Path, Shape, Manifest], how: str) -> None:
    folder, shape, manifest = written
    path = folder / manifest[0].name
    content = path.read_bytes()
    edits = {
        "cut": content[:-1],
        "turned": content[:9] + bytes([content[9] ^ 1]) + content[10:],
        "longer": content + b"0",
        "another's": (folder / manifest[1].name).read_bytes(),
    }
    path.unlink() if how == "missing" else path.write_bytes(edits[how])
    with pytest.raises(DamagedError, match=path.name):
        parts_in(folder, shape).write(manifest, 3, "a", occur({1: 1}))


def test_what_is_not_ours_is_left_in_the_folder(written: tuple[Path, Shape, Manifest]) -> None:
    folder, _, manifest = written
    (folder / "notes.txt").write_text("mine")
    (folder / "step=9-token=ff.items").write_bytes(b"an attempt that was interrupted")
    drop_garbage(LocalFolder(Path("state"), folder, SETTINGS), manifest, 2)
    assert sorted(path.name for path in folder.iterdir()) == sorted(["notes.txt", *(part.name for part in manifest)])


def test_counts_survive_being_stored() -> None:
    counts = StepCounts.before_all((1, 4), 3, totals=(1, 4))
    for step in range(1, 6):
        counts = counts.after([Change(1, NONE, step, step), Change(4, NONE, step, 1)])
    again = StepCounts.from_arrays(counts.step, counts.reach, counts.to_arrays())
    assert again.total == counts.total == {1: [15], 4: [5]}
    for k in (1, 4):
        np.testing.assert_array_equal(again.recent[k], counts.recent[k])
    assert list(counts.answers()[0].recent[1]) == [5, 9, 12]


def test_fewer_items_than_none_are_refused() -> None:
    """One item with two rows would move twice: what it left cannot be taken away twice."""
    counts = StepCounts.before_all((1,), 3, totals=()).after([Change(1, NONE, 1, 1)])
    with pytest.raises(ValueError, match="fewer items than none"):
        counts.after([Change(1, 1, 2, 2)])
