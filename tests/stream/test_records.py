"""What a state remembers: read back as it was written, to the last bit, and damage noticed wherever it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpwindows.ask.groups import grouping
from dpwindows.count.events import EventColumns
from dpwindows.errors import EngineError
from dpwindows.stream import records
from dpwindows.stream.creating import _fill
from dpwindows.stream.place import Part
from dpwindows.stream.records import Call, ClosedStep, Creation, Position
from dpwindows.stream.store import DamagedError, StateFile, items_folder

CREATION = Creation(
    state_id="5" * 32,
    secret="secret",
    token="a0",
    described={"asked": "Zählung", "horizon": "endless", "versions": {"python": "3.11"}},
    columns=EventColumns("who", "at"),
    start="2013-01-01",
    begins=1_356_998_400_000_000,
    step="1d",
    time_zone="UTC",
    ledger=("ledger.db", "flights"),
    copy_to="copies/state",
)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateFile]:
    """A state in which the creation is written."""
    path = tmp_path / "state"
    path.touch(mode=0o600)
    _fill(path, CREATION)
    items_folder(path).mkdir(mode=0o700)
    state = StateFile(path)
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
    return pa.table(columns | ({"cell": pa.array(range(count))} if cells else {}))


def step_of(step: int, call: Call, rows: bytes) -> ClosedStep:
    digest = records.digest(rows)
    facts = (step, 10 * step, f"fingerprint {step}", f"{step:x}" * 2 * records.TOKEN_BYTES, f"at {step}", "{}")
    return ClosedStep(*facts, call, digest)


def write(state: StateFile, call: Call, *, cells: bool = False) -> Position:
    """The steps of a call, two rows for each."""
    position = records.read_position(state)
    for step in range(call.first, call.last + 1):
        rows = records.rows_to_bytes(rows_of(step, 2, cells=cells))
        closed = step_of(step, call, rows)
        part = Part(f"{step}.items", step, 2, 3, "4")
        kind = "integer"
        after = Position(step, closed.token, kind, (part,), {"memory": np.arange(step)})
        records.close(state, position, after, closed, rows)
        position = after
    return position


def released(state: StateFile, first: int, last: int, *, grouped: bool = False) -> pa.Table:
    return records.read_released(state, records.read_steps(state, first, last), grouped=grouped)


def edit(state: StateFile, statement: str) -> None:
    with state.guarded() as connection:
        connection.execute(statement)


# --- What was fixed at creation


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"ledger": None, "described": {"horizon": 12}, "begins": 0, "start": 0},
        {"columns": EventColumns("who", "at", "times", "epoch-s", item_type="integer")},
    ],
    ids=["plain", "no-ledger", "read-otherwise"],
)
def test_a_creation_is_read_back(state: StateFile, change: dict[str, Any]) -> None:
    creation = replace(CREATION, **change)
    with state.guarded() as connection:
        connection.execute("DELETE FROM creation")
        records.write_creation(connection, creation)
        found = records.read_creation(connection)
    assert found == creation
    assert found.to_json() == creation.to_json()


def test_events_are_read_in_the_groups_that_a_stream_says_it_has() -> None:
    groups = grouping({"g": ["a", "b"]}, totals=0.5)
    assert groups is not None
    grouped = replace(CREATION, described=CREATION.described | {"groups": groups.to_dict()})
    assert grouped.event_columns == replace(CREATION.columns, grouping=groups)
    assert CREATION.event_columns == CREATION.columns


def test_a_creation_is_plain_text_without_what_was_not_said() -> None:
    """So that states of today read like those of before there was more to say."""
    text = CREATION.to_json()
    assert json.loads(text)["columns"] == {"item": "who", "time": "at", "count": None}
    assert "Zählung" in text
    with pytest.raises(ValueError, match="JSON"):
        replace(CREATION, described={"scale": float("nan")}).to_json()


def test_one_stream_stands_for_another_that_asked_for_the_same() -> None:
    changes: dict[str, Any] = {
        "described": {"asked": "other"},
        "columns": EventColumns("who", "at", "times"),
        "start": "2013-01-02",
        "begins": 7,
        "step": "2d",
        "time_zone": "Europe/Paris",
        "ledger": None,
        "copy_to": None,
        "items_at": "file:///items",
    }
    ours: dict[str, Any] = {"state_id": "6" * 32, "secret": "other", "token": "b1"}
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
        "UPDATE creation SET digest = 'x'",
        "INSERT INTO creation SELECT * FROM creation",
        "DELETE FROM creation",
    ],
)
def test_a_creation_that_was_changed_is_damage(state: StateFile, statement: str) -> None:
    with state.guarded() as connection:
        records.read_creation(connection)
        connection.execute(statement)
        with pytest.raises(ValueError, match="not as it was written"):
            records.read_creation(connection)


# --- Steps and calls


def test_position_and_steps_are_read_back(state: StateFile) -> None:
    assert records.read_position(state) == Position(0, CREATION.token)
    assert records.read_step(state, 1) is None
    first, second = Call(1, 1, "none"), Call(2, 4, "moved")
    write(state, first)
    written, read = write(state, second), records.read_position(state)
    assert (read.step, read.token, read.kind, read.parts) == (4, written.token, written.kind, written.parts)
    assert read.working["memory"].tolist() == [0, 1, 2, 3]
    steps = [
        step_of(step, first if step == 1 else second, records.rows_to_bytes(rows_of(step, 2))) for step in (1, 2, 3)
    ]
    assert records.read_step(state, 3) == steps[2]
    assert records.read_step(state, 5) is None
    assert records.read_steps(state, 1, 3) == steps
    assert records.read_ends(state, 3).tolist() == [10, 20, 30]


def test_a_step_is_closed_from_where_the_state_is_and_from_nowhere_else(state: StateFile) -> None:
    """Another process that has the state open, where no lock tells, closes it with a token of its own."""
    before = write(state, Call(1, 1, "none"))
    rows = records.rows_to_bytes(rows_of(2, 1))
    closed = step_of(2, Call(2, 2, "none"), rows)
    for elsewhere in (replace(before, token="another"), replace(before, step=0), Position(0, CREATION.token)):
        with pytest.raises(EngineError, match="in use"):
            records.close(state, elsewhere, Position(2, closed.token), closed, rows)
        assert records.read_position(state).step == 1
    records.close(state, before, Position(2, closed.token), closed, rows)
    with pytest.raises(EngineError, match="in use"):
        records.close(state, before, Position(2, "b"), closed, rows)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM position",
        "DELETE FROM steps",
        "DELETE FROM steps WHERE step = 1",
        "DELETE FROM steps WHERE step = 2",
        "INSERT INTO position SELECT * FROM position",
        "UPDATE position SET step = 1",
        "UPDATE position SET token = 'other'",
        "UPDATE position SET working = CAST(working || x'00' AS BLOB)",
        "UPDATE position SET digest = 'x'",
        "UPDATE position SET parts = '[]'",
        "UPDATE position SET kind = 'text'",
    ],
)
def test_a_position_that_is_not_that_of_the_steps_is_damage(state: StateFile, statement: str) -> None:
    write(state, Call(1, 2, "none"))
    records.read_position(state)
    edit(state, statement)
    with pytest.raises(DamagedError):
        records.read_position(state)


COLUMNS_OF_STEPS = ("ends", "fingerprint", "token", "released_at", "versions", "call_first", "call_last", "moved")


@pytest.mark.parametrize("column", [*COLUMNS_OF_STEPS, "rows_digest", "digest"])
def test_no_closed_step_changes_unnoticed(state: StateFile, column: str) -> None:
    write(state, Call(1, 2, "none"))
    edit(state, f"UPDATE steps SET {column} = 7 WHERE step = 2")
    records.read_step(state, 1)
    with pytest.raises(DamagedError):
        records.read_step(state, 2)


# --- What was released


def test_released_rows_are_read_back_in_their_order(state: StateFile) -> None:
    write(state, Call(1, 3, "none"))
    found = released(state, 2, 3)
    assert found.to_pylist() == pa.concat_tables([rows_of(2, 2), rows_of(3, 2)]).to_pylist()


def test_rows_of_groups_keep_their_group(state: StateFile) -> None:
    write(state, Call(1, 2, "none"), cells=True)
    assert released(state, 1, 2, grouped=True)["cell"].to_pylist() == [0, 1, 0, 1]


def test_numbers_come_back_to_the_last_bit(state: StateFile) -> None:
    numbers = [-0.0, 5e-324, 1e300, float("inf"), 0.1 + 0.2, 2.0**63, -3.0]
    rows = rows_of(1, len(numbers))
    rows = rows.set_column(rows.column_names.index("estimate"), "estimate", pa.array(numbers))
    given = records.rows_to_bytes(rows)
    position = Position(1, "t")
    records.close(state, records.read_position(state), position, step_of(1, Call(1, 1, ""), given), given)
    assert [value.hex() for value in released(state, 1, 1)["estimate"].to_pylist()] == [
        value.hex() for value in numbers
    ]


@pytest.mark.parametrize("kept", ["cut", "empty", "foreign", "offsets"])
def test_rows_that_are_none_are_damage_though_their_digest_is_made_anew(state: StateFile, kept: str) -> None:
    """Offsets beyond a text would be read from elsewhere in memory."""
    position = write(state, Call(1, 1, "none"))
    whole = records.rows_to_bytes(rows_of(2, 2))
    (text,) = [
        place
        for place in range(len(whole))
        if whole[place : place + 12] == bytes([0, 0, 0, 0, 12, 0, 0, 0, 24, 0, 0, 0])
    ]
    beyond = whole[: text + 4] + (200_000_000).to_bytes(4, "little") * 2 + whole[text + 12 :]
    rows = {"cut": whole[:-100], "empty": b"", "foreign": b"who,at\na,1\n", "offsets": beyond}[kept]
    closed = step_of(2, Call(2, 2, "none"), rows)
    records.close(state, position, Position(2, closed.token), closed, rows)
    with pytest.raises(DamagedError):
        released(state, 1, 2)


def test_no_byte_of_released_rows_changes_unnoticed(state: StateFile) -> None:
    position = write(state, Call(1, 2, "none"))
    kept = records.rows_to_bytes(rows_of(2, 2))
    for place in range(len(kept)):
        changed = bytes([*kept[:place], kept[place] ^ 1, *kept[place + 1 :]])
        edit(state, f"UPDATE released SET rows = x'{changed.hex()}' WHERE step = 2")
        assert released(state, 1, 1).num_rows == position.step
        with pytest.raises(DamagedError):
            released(state, 1, 2)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM released WHERE step = 1",
        "UPDATE released SET step = 3 WHERE step = 1",
        "UPDATE released SET rows = (SELECT rows FROM released WHERE step = 1)",
        "UPDATE released SET rows = 7",
    ],
)
def test_no_released_rows_are_lost_or_moved_unnoticed(state: StateFile, statement: str) -> None:
    write(state, Call(1, 2, "none"))
    edit(state, statement)
    with pytest.raises(DamagedError):
        released(state, 1, 2)


# --- Under which id


def test_an_id_is_that_of_its_steps_their_tokens_and_their_numbers() -> None:
    steps = [step_of(step, Call(1, 3, "none"), records.rows_to_bytes(rows_of(step, 2))) for step in (1, 2, 3)]

    def found(creation: Creation = CREATION, first: int = 1, last: int = 2, **change: Any) -> str:
        changed = [steps[0]._replace(**change), *steps[1:]]
        return records.release_id(creation, changed[first - 1 : last])

    ids = [found(), found(last=3), found(first=2), found(replace(CREATION, state_id="6" * 32))]
    ids += [found(token="other"), found(rows_digest="other")]
    assert found(released_at="later") == ids[0]
    assert len(set(ids)) == len(ids)
    assert {len(one) for one in ids} == {32}
