"""What a state remembers: read back as it was written, to the last bit, and damage noticed wherever it is."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from dpwindows.stream.schema import make_tables

from dpwindows.ask.groups import grouping
from dpwindows.count.events import EventColumns
from dpwindows.stream import records
from dpwindows.stream.records import Call, ClosedStep, Creation
from dpwindows.stream.store import DamagedError, StateFile

CREATION = Creation(
    state_id="5" * 32,
    secret="secret",
    token="a0",
    described={"asked": "Zählung", "versions": {"python": "3.11"}},
    mechanism={"kind": "direct"},
    columns=EventColumns("who", "at"),
    start="2013-01-01",
    begins=1_356_998_400_000_000,
    step="1d",
    time_zone="UTC",
    horizon=None,
    ledger=("ledger.db", "flights"),
    made_with="0.1.0",
)
ARRAYS = {"weights": np.array([[1, 2], [3, 4]], dtype=np.int64), "none": np.zeros((0, 3))}


@cache
def empty(grouped: bool) -> bytes:
    """The file of a state in which nothing is written yet."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        connection = duckdb.connect(str(path))
        make_tables(connection, grouped=grouped)
        connection.close()
        return path.read_bytes()


def opened(folder: Path, *, grouped: bool) -> StateFile:
    path = folder / "state"
    path.write_bytes(empty(grouped))
    path.chmod(0o600)
    return StateFile(path)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateFile]:
    state = opened(tmp_path, grouped=False)
    yield state
    state.close()


@pytest.fixture
def grouped(tmp_path: Path) -> Iterator[StateFile]:
    state = opened(tmp_path, grouped=True)
    yield state
    state.close()


def rows_of(step: int, count: int, *, cells: bool = False) -> pa.Table:
    """So many released rows, each unlike the others."""
    whole = [1000 * step + place for place in range(count)]
    columns: dict[str, Any] = {
        "window": [f"rolling:{number}" for number in whole],
        "measure": ["at_least"] * count,
        "k": whole,
        "first_step": [number + 1 for number in whole],
        "last_step": [number + 2 for number in whole],
        "complete": [bool(number % 2) for number in whole],
    }
    for at, name in enumerate(("estimate", "std_error", "bias_bound", "lower", "upper")):
        columns[name] = [number / 3 + at for number in whole]
    return pa.table(columns | ({"cell": pa.array(range(count), pa.int32())} if cells else {}))


def step_of(step: int, token_bytes: int = records.TOKEN_BYTES) -> ClosedStep:
    return ClosedStep(step, 10 * step, f"fingerprint {step}", f"{step:x}" * 2 * token_bytes, f"at {step}", "{}")


def write(state: StateFile, call: Call, *, cells: bool = False, token_bytes: int = records.TOKEN_BYTES) -> None:
    """The steps of a call, two rows for each; each closes with the call as long as it is by then."""
    with state.guarded() as connection:
        for step in range(call.first, call.last + 1):
            until = call._replace(last=step)
            records.write_step(connection, step_of(step, token_bytes), until, rows_of(step, 2, cells=cells))
            records.write_working(connection, step, {"memory": np.arange(step)})


def edit(state: StateFile, statement: str) -> None:
    with state.guarded() as connection:
        connection.execute(statement)


# --- What was fixed at creation


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"ledger": None, "horizon": 12, "begins": 0, "start": 0},
        {"columns": EventColumns("who", "at", "times", "epoch-s", item_type="integer")},
        {"columns": EventColumns("who", "at", grouping=grouping({"g": ["a", "b"]}, totals=0.5))},
    ],
    ids=["plain", "no-ledger", "read-otherwise", "grouped"],
)
def test_a_creation_is_read_back(state: StateFile, change: dict[str, Any]) -> None:
    creation = replace(CREATION, **change)
    with state.guarded() as connection:
        records.write_creation(connection, creation, ARRAYS)
    found, arrays = records.read_creation(state)
    assert found == creation
    assert found.to_json() == creation.to_json()
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert (arrays[name] == array).all()


def test_a_creation_is_plain_text_without_what_was_not_said() -> None:
    """So that states of today read like those of before there was more to say."""
    text = CREATION.to_json()
    assert json.loads(text)["columns"] == {"item": "who", "time": "at", "count": None}
    assert "Zählung" in text
    with pytest.raises(ValueError, match="JSON"):
        replace(CREATION, mechanism={"scale": float("nan")}).to_json()


def test_one_stream_stands_for_another_that_asked_for_the_same() -> None:
    changes: dict[str, Any] = {
        "described": {"asked": "other"},
        "mechanism": {"kind": "filter"},
        "columns": EventColumns("who", "at", "times"),
        "start": "2013-01-02",
        "begins": 7,
        "step": "2d",
        "time_zone": "Europe/Paris",
        "horizon": 3,
        "ledger": None,
    }
    ours: dict[str, Any] = {"state_id": "6" * 32, "secret": "other", "token": "b1", "made_with": "0.2.0"}
    assert set(changes | ours) == {field.name for field in fields(Creation)}
    for name, value in changes.items():
        assert replace(CREATION, **{name: value}).asked != CREATION.asked
    newer = CREATION.described | {"versions": {"python": "3.13"}}
    assert replace(CREATION, described=newer, **ours).asked == CREATION.asked


def test_ends_of_steps_are_as_a_caller_writes_them() -> None:
    assert [CREATION.end_of(step) for step in (0, 1, 31)] == ["2013-01-01", "2013-01-02", "2013-02-01"]
    assert replace(CREATION, start=5, step=10, begins=5).end_of(2) == 25


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE creation SET facts = replace(facts, 'flights', 'visits_')",
        "UPDATE creation SET arrays = arrays || '\\x00'::BLOB",
        "UPDATE creation SET digest = 'x'",
        "INSERT INTO creation SELECT * FROM creation",
        "DELETE FROM creation",
    ],
)
def test_a_creation_that_was_changed_is_damage(state: StateFile, statement: str) -> None:
    with state.guarded() as connection:
        records.write_creation(connection, CREATION, ARRAYS)
    records.read_creation(state)
    edit(state, statement)
    with pytest.raises(DamagedError, match=f"{state.path} is damaged: what it holds does not agree"):
        records.read_creation(state)


# --- Steps and calls


def test_steps_and_calls_are_read_back(state: StateFile) -> None:
    assert records.read_working(state) == (0, {})
    assert (records.last_step(state), records.read_step(state, 1), records.read_kind(state)) == (0, None, None)
    write(state, Call(1, 1, "none"))
    write(state, Call(2, 4, "moved"))
    edit(state, "INSERT INTO item_kind VALUES ('integer')")
    step, memory = records.read_working(state)
    assert (step, memory["memory"].tolist()) == (4, [0, 1, 2, 3])
    assert records.last_step(state) == 4
    assert records.read_step(state, 3) == step_of(3)
    assert records.read_step(state, 5) is None
    assert records.read_steps(state, 2, 3) == [step_of(2), step_of(3)]
    assert records.read_ends(state, 3).tolist() == [10, 20, 30]
    assert [records.rows_a_step(state, step) for step in (3, 5)] == [2, 0]
    calls = [Call(1, 1, "none"), *[Call(2, 4, "moved")] * 3, None]
    assert [records.find_call(state, holding=step) for step in range(1, 6)] == calls
    assert [records.find_call(state, last=step) for step in (1, 3, 4)] == [calls[0], None, calls[3]]
    kind = records.read_kind(state)
    assert kind is not None
    assert kind.name == "integer"


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM working",
        "DELETE FROM steps",
        "DELETE FROM steps WHERE step = 1",
        "DELETE FROM steps WHERE step = 2",
        "INSERT INTO working SELECT * FROM working",
        "INSERT INTO steps SELECT * FROM steps WHERE step = 2",
        "UPDATE working SET step = 1",
        "UPDATE working SET content = content || '\\x00'::BLOB",
        "UPDATE working SET digest = 'x'",
    ],
)
def test_exact_counts_of_another_step_are_damage(state: StateFile, statement: str) -> None:
    write(state, Call(1, 2, "none"))
    records.read_working(state)
    edit(state, statement)
    with pytest.raises(DamagedError):
        records.read_working(state)


def test_items_of_two_kinds_are_damage(state: StateFile) -> None:
    edit(state, "INSERT INTO item_kind VALUES ('integer'), ('text')")
    with pytest.raises(DamagedError, match="item_kind is not as it was made"):
        records.read_kind(state)


# --- What was released


def test_released_rows_are_read_back_in_their_order(state: StateFile) -> None:
    write(state, Call(1, 3, "none"))
    edit(state, "CREATE TABLE kept AS SELECT * FROM released ORDER BY place DESC, step DESC")
    edit(state, "DELETE FROM released")
    edit(state, "INSERT INTO released SELECT * FROM kept")
    found = records.read_released(state, 2, 3)
    assert found.to_pylist() == pa.concat_tables([rows_of(2, 2), rows_of(3, 2)]).to_pylist()
    assert records.read_released(state, 4, 5).num_rows == 0


def test_rows_of_groups_keep_their_group(grouped: StateFile) -> None:
    write(grouped, Call(1, 2, "none"), cells=True)
    assert records.read_released(grouped, 1, 2)["cell"].to_pylist() == [0, 1, 0, 1]
    edit(grouped, "UPDATE released SET cell = 1 - cell WHERE step = 2")
    assert records.read_released(grouped, 1, 1).num_rows == 2
    with pytest.raises(DamagedError):
        records.read_released(grouped, 1, 2)


def test_a_number_of_no_group_is_damage(grouped: StateFile) -> None:
    """The column of groups was added to a table, and may be empty where nobody looks."""
    write(grouped, Call(1, 1, "none"), cells=True)
    edit(grouped, "UPDATE released SET cell = NULL WHERE place = 1")
    with pytest.raises(DamagedError):
        records.read_released(grouped, 1, 1)


COLUMNS = {
    "window": "'cumulative'",
    "measure": "'exactly'",
    "complete": "NOT complete",
    **{name: f"{name} + 1" for name in ("k", "first_step", "last_step")},
    **{name: f'"{name}" * (1 + 3e-16)' for name in ("estimate", "std_error", "bias_bound", "lower", "upper")},
}


@pytest.mark.parametrize("column", COLUMNS)
def test_no_released_number_changes_unnoticed(state: StateFile, column: str) -> None:
    """Not by its last bit."""
    write(state, Call(1, 2, "none"))
    edit(state, f'UPDATE released SET "{column}" = {COLUMNS[column]} WHERE step = 2 AND place = 1')
    assert records.read_released(state, 1, 1).num_rows == 2
    with pytest.raises(DamagedError):
        records.read_released(state, 1, 2)


@pytest.mark.parametrize("statement", ["DELETE FROM released WHERE place = 1", "UPDATE released SET place = 1 - place"])
def test_no_released_row_is_lost_or_moved_unnoticed(state: StateFile, statement: str) -> None:
    write(state, Call(1, 1, "none"))
    edit(state, statement)
    with pytest.raises(DamagedError):
        records.read_released(state, 1, 1)


# --- Under which id


def test_an_id_is_that_of_its_steps_their_tokens_and_their_numbers(state: StateFile) -> None:
    write(state, Call(1, 3, "none"))

    def found(creation: Creation = CREATION, first: int = 1, last: int = 2) -> str:
        return records.release_id(state, creation, first, last)

    ids = [found(), found(last=3), found(first=2), found(replace(CREATION, state_id="6" * 32))]
    for statement in (
        "UPDATE steps SET token = upper(token) || 'x' WHERE step = 1",
        "UPDATE steps SET rows_digest = 'other' WHERE step = 2",
    ):
        edit(state, statement)
        ids.append(found())
    edit(state, "UPDATE steps SET token = 'of a later step' WHERE step = 3")
    assert found() == ids[-1]
    assert len(set(ids)) == len(ids)
    assert {len(one) for one in ids} == {32}


def test_steps_of_before_keep_the_id_they_were_published_under(state: StateFile) -> None:
    write(state, Call(1, 2, "none"), token_bytes=16)
    assert records.release_id(state, CREATION, 1, 2) == "a0a22efde654208fff3c58e7e8c64300"
    write(state, Call(3, 4, "none"))
    # An older step among newer ones is told by its token and numbers as they are.
    assert records.release_id(state, CREATION, 1, 3) == "dec4536f080a50a0ce981747fd971ec5"
