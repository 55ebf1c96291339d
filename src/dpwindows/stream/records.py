"""The records in a state: how the stream was created, each closed step, each call, and what was released."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import Int64Array
from dpwindows.count.events import EventColumns
from dpwindows.stream.given_events import ItemKind
from dpwindows.stream.named_arrays import digest, pack, unpack
from dpwindows.stream.state_file import DamagedError, StateFile

# Of a step's random token. Tokens of 16 bytes are of steps closed before release ids followed from them.
TOKEN_BYTES = 24
# The columns of released rows that a mechanism gives; those of a release file follow from them and the timeline.
_TEXTS, _WHOLE = ("window", "measure"), ("k", "first_step", "last_step")
_REAL = ("estimate", "std_error", "bias_bound", "lower", "upper")
GIVEN = (*_TEXTS, *_WHOLE, "complete", *_REAL)
# In a stream with groups, the code of the group that a number is of.
CELL = "cell"
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        *((name, pa.int64()) for name in _WHOLE),
        ("complete", pa.bool_()),
        *((name, pa.float64()) for name in _REAL),
    ]
)


@dataclass(frozen=True)
class Creation:
    """What is fixed for the whole life of a stream.

    Attributes:
        state_id: random, public, the same in every release of the stream.
        secret: the key of the fingerprints.
        token: of the position before the first step, for the ledger.
        described: the part of release metadata that is the same for all releases of the stream.
        mechanism: the mechanism's plain values; its arrays are `arrays`.
        columns: how every row of every call's events is read.
        start: first moment, canonical.
        begins: the same as a boundary value.
        step: length of a step, canonical.
        time_zone: the zone of days, weeks and months.
        horizon: number of steps after which the stream ends, None if it does not.
        ledger: path and dataset of the ledger that it was paid from, None without one.
        made_with: version of the library.
    """

    state_id: str
    secret: str
    token: str
    described: dict[str, Any]
    mechanism: dict[str, Any]
    columns: EventColumns
    start: str | int
    begins: int
    step: str | int
    time_zone: str
    horizon: int | None
    ledger: tuple[str, str] | None
    made_with: str

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked for. Where two streams agree on it, one may stand for the other before its first step."""
        described = {name: value for name, value in self.described.items() if name != "versions"}
        ours = ("state_id", "secret", "token", "made_with")
        return {name: value for name, value in self.__dict__.items() if name not in ours} | {"described": described}

    def end_of(self, step: int) -> str | int:
        """The end of a step as a caller would write it; of step 0, the start of the stream."""
        if step == 0:
            return self.start
        return Timeline.of_length(self.start, step, self.step, self.time_zone).to_dict()["end"]

    def to_json(self) -> str:
        """As text; `from_json` gives it back."""
        columns = {"columns": self.columns.to_dict()}
        return json.dumps(self.__dict__ | columns, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Creation:
        """What `to_json` wrote."""
        values = json.loads(text)
        ledger, columns = values["ledger"], EventColumns.from_dict(values["columns"])
        return cls(**values | {"columns": columns, "ledger": tuple(ledger) if ledger else None})


class ClosedStep(NamedTuple):
    """A step that is closed for good, and the release that closed it."""

    step: int
    ends: int
    fingerprint: str
    token: str
    released_at: str
    versions: str


class Call(NamedTuple):
    """The steps that one call closes; `moved` is the fingerprint of the late events it counted in its first step."""

    first: int
    last: int
    moved: str


def write_creation(connection: duckdb.DuckDBPyConnection, creation: Creation, arrays: Mapping[str, np.ndarray]) -> None:
    """Write what was fixed, and the mechanism's arrays, into a new state."""
    facts, content = creation.to_json(), pack(arrays)
    connection.execute("INSERT INTO creation VALUES (?, ?, ?)", [facts, content, digest(facts, content)])


def read_creation(state: StateFile) -> tuple[Creation, dict[str, np.ndarray]]:
    """How a stream was created, and the arrays of its mechanism.

    Raises:
        EngineError: the state is damaged.
    """
    with state.guarded() as connection:
        rows = connection.execute("SELECT facts, arrays, digest FROM creation").fetchall()
    if len(rows) != 1 or digest(rows[0][0], bytes(rows[0][1])) != rows[0][2]:
        raise damaged(state)
    return Creation.from_json(rows[0][0]), unpack(bytes(rows[0][1]))


def write_working(connection: duckdb.DuckDBPyConnection, step: int, arrays: Mapping[str, np.ndarray]) -> None:
    """Replace exact counts and the mechanism's memory by those after a step."""
    content = pack(arrays)
    first, later = "INSERT INTO working VALUES (?, ?, ?)", "UPDATE working SET step = ?, content = ?, digest = ?"
    connection.execute(first if step == 1 else later, [step, content, digest(step, content)])


def read_working(state: StateFile) -> tuple[int, dict[str, np.ndarray]]:
    """The last closed step, and exact counts and memory after it; step 0 and nothing before the first.

    Raises:
        EngineError: the state is damaged.
    """
    with state.guarded() as connection:
        rows = connection.execute("SELECT step, content, digest FROM working").fetchall()
        closed = connection.execute("SELECT coalesce(max(step), 0), count(*) FROM steps").fetchall()[0]
    if not rows and closed == (0, 0):
        return 0, {}
    if len(rows) != 1 or closed != (rows[0][0], rows[0][0]) or digest(rows[0][0], bytes(rows[0][1])) != rows[0][2]:
        raise damaged(state)
    return int(rows[0][0]), unpack(bytes(rows[0][1]))


def read_kind(state: StateFile) -> ItemKind | None:
    """The kind of the items, None as long as there were none.

    Raises:
        EngineError: the state is damaged.
    """
    with state.guarded() as connection:
        rows = connection.execute("SELECT kind FROM item_kind").fetchall()
    if len(rows) > 1:
        raise damaged(state, "its table item_kind is not as it was made")
    return ItemKind.named(rows[0][0]) if rows else None


def write_step(connection: duckdb.DuckDBPyConnection, closed: ClosedStep, call: Call, rows: pa.Table) -> None:
    """Record a closed step, the call that closed it, and its released rows."""
    given = _given(rows)
    placed = given.add_column(0, "place", pa.array(range(given.num_rows), pa.int32()))
    connection.register("given", placed)
    try:
        connection.execute(f"INSERT INTO released SELECT {closed.step}, * FROM given")
    finally:
        connection.unregister("given")
    connection.execute("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?)", [*closed, rows_digest(closed.step, given)])
    if closed.step == call.first:
        connection.execute("INSERT INTO calls VALUES (?, ?, ?)", list(call))
    else:
        connection.execute("UPDATE calls SET last = ? WHERE first = ?", [call.last, call.first])


def read_step(state: StateFile, step: int) -> ClosedStep | None:
    """One closed step; None if it is not closed."""
    found = read_steps(state, step, step)
    return found[0] if found else None


def read_steps(state: StateFile, first: int, last: int) -> list[ClosedStep]:
    """The closed steps among some, ascending."""
    with state.guarded() as connection:
        rows = connection.execute(
            "SELECT step, ends, fingerprint, token, released_at, versions FROM steps WHERE step BETWEEN ? AND ? "
            "ORDER BY step",
            [first, last],
        ).fetchall()
    return [ClosedStep(*row) for row in rows]


def last_step(state: StateFile) -> int:
    """The last closed step, 0 if there is none."""
    with state.guarded() as connection:
        return int(connection.execute("SELECT coalesce(max(step), 0) FROM steps").fetchall()[0][0])


def rows_a_step(state: StateFile, step: int) -> int:
    """How many numbers a closed step released."""
    with state.guarded() as connection:
        return int(connection.execute("SELECT count(*) FROM released WHERE step = ?", [step]).fetchall()[0][0])


def token_of(state: StateFile, creation: Creation, step: int) -> str:
    """The token of the position after a step that is closed.

    Raises:
        EngineError: the state is damaged.
    """
    if step == 0:
        return creation.token
    found = read_step(state, step)
    if found is None:
        raise damaged(state)
    return found.token


def release_id(state: StateFile, creation: Creation, first: int, last: int) -> str:
    """The id of the release of some closed steps: another one wherever a number could be another.

    It follows from the random token and the digest of the rows of each step, so that a step that was drawn anew is
    never taken for the one that was lost. Steps closed before ids were made like this keep the id they were published
    under, which follows from their numbers.
    """
    with state.guarded() as connection:
        rows = connection.execute(
            "SELECT step, token, rows_digest FROM steps WHERE step BETWEEN ? AND ? ORDER BY step", [first, last]
        ).fetchall()
    if not rows or len(rows[-1][1]) < 2 * TOKEN_BYTES:
        return digest(creation.state_id, first, last)[:32]
    return digest(creation.state_id, first, last, *(part for row in rows for part in row))[:32]


def read_ends(state: StateFile, last: int) -> Int64Array:
    """The ends of the steps up to one that is closed, as boundary values, shape (last,)."""
    with state.guarded() as connection:
        table = connection.sql(f"SELECT ends FROM steps WHERE step <= {int(last)} ORDER BY step").to_arrow_table()
    return _numbers(table["ends"])


def find_call(state: StateFile, *, last: int | None = None, holding: int | None = None) -> Call | None:
    """The call that ends with a step, or the one that a step belongs to; None if there is none."""
    condition, step = ("last = ?", last) if last is not None else ("first <= ? AND last >= ?", holding)
    with state.guarded() as connection:
        values = [step] * condition.count("?")
        rows = connection.execute(f"SELECT first, last, moved FROM calls WHERE {condition}", values).fetchall()
    return Call(*rows[0]) if rows else None


def read_released(state: StateFile, first: int, last: int) -> pa.Table:
    """The released rows of some steps, in the order of their steps, each step checked against its digest.

    Raises:
        EngineError: the state is damaged.
    """
    with state.guarded() as connection:
        stored = connection.table("released").columns  # as `schema` has seen to when the state was opened
        names = ", ".join(f'"{name}"' for name in (*GIVEN, CELL) if name in stored)
        table = connection.sql(
            f"SELECT step, {names} FROM released WHERE step BETWEEN {int(first)} AND {int(last)} ORDER BY step, place"
        ).to_arrow_table()
        digests = connection.execute(
            "SELECT step, rows_digest FROM steps WHERE step BETWEEN ? AND ? ORDER BY step", [first, last]
        ).fetchall()
    if any(column.null_count for column in table.columns):  # cells may be null in the state's table
        raise damaged(state)
    of_step = _numbers(table["step"])
    given = _given(table)
    for step, expected in digests:
        low, high = np.searchsorted(of_step, [step, step + 1])
        if rows_digest(step, given.slice(int(low), int(high - low))) != expected:
            raise damaged(state)
    return given


def _given(rows: pa.Table) -> pa.Table:
    """The columns that a mechanism gives, in their types; with groups their codes last."""
    grouped = CELL in rows.column_names
    schema = _SCHEMA.append(pa.field(CELL, pa.int32())) if grouped else _SCHEMA
    return rows.select(schema.names).cast(schema).combine_chunks()


def rows_digest(step: int, rows: pa.Table) -> str:
    """A digest of released rows, to the last bit."""
    texts = ["\n".join(rows[name].to_pylist()) for name in _TEXTS]
    numbers = [_numbers(rows[name]).tobytes() for name in (*_WHOLE, "complete")]
    numbers += [_numbers(rows[name], "float64").tobytes() for name in _REAL]
    numbers += [_numbers(rows[name]).tobytes() for name in rows.column_names if name == CELL]
    return digest(step, rows.num_rows, *texts, *numbers)


def _numbers(column: pa.ChunkedArray, kind: str = "int64") -> np.ndarray:
    # By DLPack: to_numpy would import pandas.
    return np.from_dlpack(column.cast(kind).combine_chunks())


def damaged(state: StateFile, found: str = "what it holds does not agree with its checksums") -> DamagedError:
    """The error for a state whose tables or records are not as they were written."""
    return DamagedError(
        f"the state {state.path} is damaged: {found}. A backup may go on where it is the last step that the ledger has "
        "on record; otherwise create a new stream"
    )
