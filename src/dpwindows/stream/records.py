"""What a state records: how the stream was created, its position, each closed step and its released rows.

**Where state, position and token are recorded, and why.** Four places know how far a stream is.

- *In the table `position` of the state*: the last closed step, its random token, exact counts, the mechanism's memory,
  and the manifest of the items. That is all that the next step goes on from, in one row: the transaction that closes a
  step replaces it, and only if it still is where the step began.
- *In its tables `steps` and `released`*: of each closed step its end, its token, the fingerprint of its events, its
  call and its rows. The same transaction adds them, and nothing changes them again, so that a step has one noise.
- *In the ledger*: the last step that may leave, and its token. Of all copies of a state, the one whose token is on
  record goes on; and one restored backup does not put back both files.
- *In the mark beside the state*: a digest of the last step's token, once its rows may leave. A state that is put back
  is behind it, as the mark is no part of a backup.

They are written in this order, each durable before the next begins: parts of items, state, a copy of both where one is
kept (`copying`), ledger, mark; then the rows leave. So the state may be ahead of the ledger and the mark, by a step
that nobody saw and that is recorded when the state is opened next; where it is behind one of them, or was never there,
it is refused. The token is drawn for each step: two draws for one step, of two copies or before and after a crash,
differ in it even where all their numbers agree. The items themselves stand in parts beside the state, since they alone
are large; a part counts if the manifest of the position names it, and so becomes valid with the step. Each row is
sealed by a digest, so that a damaged or edited one is noticed; this is no protection against whoever may write the
file.
"""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.ask.groups import Grouping
from dpwindows.ask.shapes import read_shape
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import Int64Array
from dpwindows.count.events import EventColumns
from dpwindows.plan.description import ENDLESS, HORIZON
from dpwindows.stream.place import Manifest, Part
from dpwindows.stream.store import StateFile, damaged, in_use

# Of a step's random token.
TOKEN_BYTES = 24
# In a stream with groups, the code of the group that a number is of.
CELL = "cell"
# The rows of a step as a mechanism gives them; the columns of a release file follow from them and the timeline.
_ROWS = pa.schema(
    [
        *((name, pa.string()) for name in ("window", "measure")),
        *((name, pa.int64()) for name in ("k", "first_step", "last_step")),
        ("complete", pa.bool_()),
        *((name, pa.float64()) for name in ("estimate", "std_error", "bias_bound", "lower", "upper")),
    ]
)
_GROUPED = _ROWS.append(pa.field(CELL, pa.int64()))
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Creation:
    """What is fixed for the whole life of a stream.

    Attributes:
        state_id: random, public, the same in every release of the stream.
        secret: the key of the fingerprints.
        token: of the position before the first step, for the ledger.
        described: what all releases of the stream say of themselves, among it the integers that it measures by.
        columns: how every row of every call's events is read, but for the groups, which are `described`.
        start: first moment, canonical.
        begins: the same as a boundary value.
        step: length of a step, canonical.
        time_zone: the zone of days, weeks and months.
        ledger: path and dataset of the ledger that it was paid from, None without one.
        copy_to: where a copy of the stream is kept up to date, None for nowhere.
        items_at: where the items lie (`places.place_text`), None for the folder beside the state.
    """

    state_id: str
    secret: str
    token: str
    described: dict[str, Any]
    columns: EventColumns
    start: str | int
    begins: int
    step: str | int
    time_zone: str
    ledger: tuple[str, str] | None
    copy_to: str | None = None
    items_at: str | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked for. Where two streams agree on it, one may stand for the other before its first step."""
        described = {name: value for name, value in self.described.items() if name != "versions"}
        ours = ("state_id", "secret", "token")
        return {name: value for name, value in self.__dict__.items() if name not in ours} | {"described": described}

    @property
    def horizon(self) -> int | None:
        """The number of steps after which the stream ends, None if it does not."""
        steps = self.described[HORIZON]
        return None if steps == ENDLESS else int(steps)

    @property
    def grouping(self) -> Grouping | None:
        """The groups that everything is released in, None for none."""
        return read_shape(self.described["groups"], Grouping) if "groups" in self.described else None

    @property
    def event_columns(self) -> EventColumns:
        """How every row of every call's events is read, the group of its own values included."""
        grouping = self.grouping
        if grouping is not None and grouping.group_of == "item":
            # A step puts items in their groups, and in totals.
            grouping = Grouping(grouping.columns)
        return replace(self.columns, grouping=grouping)

    def timeline(self, steps: int) -> Timeline:
        """The timeline of its first steps, at least one."""
        return Timeline.of_length(self.start, steps, self.step, self.time_zone)

    def metadata(self, steps: int) -> dict[str, Any]:
        """What a release of its first steps says of itself but for which release it is."""
        return self.described | {"timeline": {**self.timeline(steps).to_dict(), "steps": steps}}

    def end_of(self, step: int) -> str | int:
        """The end of a step as a caller would write it; of step 0, the start of the stream."""
        return self.start if step == 0 else self.timeline(step).to_dict()["end"]

    def to_json(self) -> str:
        """As text; `from_json` gives it back."""
        columns = {"columns": self.columns.to_dict()}
        return json.dumps(self.__dict__ | columns, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Creation:
        """What `to_json` wrote. Raises `ValueError` if it is something else."""
        creation = read_shape(json.loads(text), cls)
        if creation.to_json() != text:
            raise ValueError("the creation is not as it was written")
        return creation


class Call(NamedTuple):
    """The steps that one call closes; `moved` is the fingerprint of the late events it counted in its first step."""

    first: int
    last: int
    moved: str


class ClosedStep(NamedTuple):
    """A step that is closed for good: its end, its events, its token, the release that closed it, and its call."""

    step: int
    ends: int
    fingerprint: str
    token: str
    released_at: str
    versions: str
    call: Call
    rows_digest: str


@dataclass(frozen=True)
class Position:
    """Where a stream is: its last closed step, and all that the next one goes on from.

    `kind` is that of the items, None as long as there were none; `working` are exact counts and the mechanism's memory.
    """

    step: int
    token: str
    kind: str | None = None
    parts: Manifest = ()
    working: Arrays = field(default_factory=dict)

    def sealed(self) -> tuple[Any, ...]:
        """The row of the table `position`."""
        values = (self.step, self.token, self.kind, json.dumps(self.parts), pack(self.working))
        return (*values, digest(*values))


# --- Written ----------------------------------------------------------------------------------------------------------


def write_creation(connection: sqlite3.Connection, creation: Creation) -> None:
    """Write what was fixed, and the position before the first step, into a new state."""
    facts = creation.to_json()
    connection.execute("INSERT INTO creation VALUES (?, ?)", (facts, digest(facts)))
    connection.execute("INSERT INTO position VALUES (?, ?, ?, ?, ?, ?)", Position(0, creation.token).sealed())


def close(state: StateFile, before: Position, after: Position, closed: ClosedStep, rows: bytes) -> None:
    """Record a closed step, its rows and the position after it, all of it at once.

    Raises:
        EngineError: the state cannot be written, or is no longer where it was before the step.
    """
    with state.transaction() as connection:
        moved = connection.execute(
            "UPDATE position SET step = ?, token = ?, kind = ?, parts = ?, working = ?, digest = ? "
            "WHERE step = ? AND token = ?",
            (*after.sealed(), before.step, before.token),
        )
        if moved.rowcount != 1:
            raise in_use(state.path)
        values = (*closed[:6], *closed.call, closed.rows_digest)
        marks = ", ".join("?" * (len(values) + 1))
        connection.execute(f"INSERT INTO steps VALUES ({marks})", (*values, digest(*values)))
        connection.execute("INSERT INTO released VALUES (?, ?)", (closed.step, rows))


# --- Read -------------------------------------------------------------------------------------------------------------


def read_creation(connection: sqlite3.Connection) -> Creation:
    """How a stream was created.

    Raises:
        ValueError: it does not agree with its digest.
    """
    rows = connection.execute("SELECT facts, digest FROM creation").fetchall()
    if len(rows) != 1 or digest(rows[0][0]) != rows[0][1]:
        raise ValueError("the creation is not as it was written")
    return Creation.from_json(rows[0][0])


def read_position(state: StateFile) -> Position:
    """Where the stream is; raises `EngineError` if the state is damaged."""
    with state.guarded() as connection:
        rows = connection.execute("SELECT step, token, kind, parts, working, digest FROM position").fetchall()
        closed = connection.execute("SELECT coalesce(max(step), 0), count(*) FROM steps").fetchone()
    if len(rows) != 1 or digest(*rows[0][:5]) != rows[0][5] or closed != (rows[0][0], rows[0][0]):
        raise damaged(state.path)
    step, token, kind, parts, working = rows[0][:5]
    named = tuple(Part(*values) for values in json.loads(parts))
    return Position(step, token, kind, named, unpack(working))


def read_steps(state: StateFile, first: int, last: int) -> list[ClosedStep]:
    """The closed steps among some, ascending; raises `EngineError` if the state is damaged."""
    with state.guarded() as connection:
        rows = connection.execute(
            "SELECT * FROM steps WHERE step BETWEEN ? AND ? ORDER BY step", (first, last)
        ).fetchall()
    if any(digest(*row[:-1]) != row[-1] for row in rows):
        raise damaged(state.path)
    return [ClosedStep(*(*row[:6], Call(*row[6:9]), row[9])) for row in rows]


def read_step(state: StateFile, step: int) -> ClosedStep | None:
    """One closed step, None if it is not closed; raises `EngineError` if the state is damaged."""
    return next(iter(read_steps(state, step, step)), None)


def read_ends(state: StateFile, last: int) -> Int64Array:
    """The ends of the closed steps up to one, as boundary values, shape (last,); raises `EngineError` on damage."""
    with state.guarded() as connection:
        rows = connection.execute("SELECT ends FROM steps WHERE step <= ? ORDER BY step", (last,)).fetchall()
    try:
        return np.array([ends for (ends,) in rows], dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        raise damaged(state.path) from None


def read_released(state: StateFile, steps: list[ClosedStep], *, grouped: bool) -> pa.Table:
    """The released rows of some steps that follow each other, each checked; raises `EngineError` on damage."""
    with state.guarded() as connection:
        found = connection.execute(
            "SELECT rows FROM released WHERE step BETWEEN ? AND ? ORDER BY step", (steps[0].step, steps[-1].step)
        ).fetchall()
    kept = [rows for (rows,) in found]
    if [digest(rows) for rows in kept] != [closed.rows_digest for closed in steps]:
        raise damaged(state.path)
    schema = _GROUPED if grouped else _ROWS
    try:
        return pa.Table.from_batches([_batch(rows, schema) for rows in kept], schema)
    except (pa.ArrowException, OSError, EOFError, TypeError, ValueError):
        raise damaged(state.path) from None


def _batch(rows: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a step, looked at byte by byte: what is no batch of them would be read from elsewhere in memory."""
    batch = pa.ipc.read_record_batch(pa.py_buffer(rows), schema)
    batch.validate(full=True)
    missing = [name for name, column in zip(schema.names, batch.columns, strict=True) if column.null_count]
    # Occurrences have no k, and all else has one.
    without = pc.equal(batch["measure"], "occurrences")
    if set(missing) - {"k"} or not pc.all(pc.equal(pc.is_null(batch["k"]), without), min_count=0).as_py():
        raise ValueError("a value is missing")
    return batch


def release_id(creation: Creation, steps: list[ClosedStep]) -> str:
    """The id of the release of some closed steps: another one wherever a number could be another.

    It follows from the random token and the digest of the rows of each step, so that a step that was drawn anew is
    never taken for the one that was lost.
    """
    parts = [part for closed in steps for part in (closed.step, closed.token, closed.rows_digest)]
    return digest(creation.state_id, steps[0].step, steps[-1].step, *parts)[:32]


# --- Bytes and digests ------------------------------------------------------------------------------------------------


def rows_to_bytes(rows: pa.Table) -> bytes:
    """The rows of a step as they are kept, to the last bit: one Arrow record batch without its schema."""
    schema = _GROUPED if CELL in rows.column_names else _ROWS
    # A step that ends no window has no rows.
    batches = rows.cast(schema).combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema)]
    return bytes(batches[0].serialize().to_pybytes())


def pack(arrays: Arrays) -> bytes:
    """Arrays of numbers, of any shape, as the bytes of an uncompressed `.npz` file."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]  # no array is named as its one option is
    return stream.getvalue()


def unpack(content: bytes) -> dict[str, np.ndarray]:
    """The arrays that `pack` was given. Raises `ValueError` if the bytes are something else."""
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def digest(*parts: object) -> str:
    """SHA-256 of a sequence of texts, numbers and bytes; different sequences have different digests."""
    found = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else str(part).encode()
        found.update(f"{type(part).__name__}:{len(content)}:".encode())
        found.update(content)
    return found.hexdigest()
