"""Closing one step: everything that a step changes, in one transaction."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb
import numpy as np

from dpwindows.kernel.maps.integer_maps import Memory
from dpwindows.plan.description import library_versions
from dpwindows.stream import records, schema
from dpwindows.stream.given_events import NOTHING, Handed, item_type_of
from dpwindows.stream.items import Bound, item_columns, make_items, occur, prune
from dpwindows.stream.mechanism import Mechanism
from dpwindows.stream.records import Call, ClosedStep
from dpwindows.stream.state_file import StateFile
from dpwindows.stream.step_counts import CellCounts, Change, StepCounts, oldest_at

_COUNTS, _MEMORY = "counts/", "memory/"


@dataclass(frozen=True)
class Progress:
    """What the next step goes on from: exact counts by recency, and the mechanism's memory."""

    counts: StepCounts | CellCounts
    memory: Memory

    def to_arrays(self) -> dict[str, np.ndarray]:
        """As named arrays; `read_progress` reads them back."""
        counts = {_COUNTS + name: values for name, values in self.counts.to_arrays().items()}
        return counts | {_MEMORY + name: values for name, values in self.memory.items()}


def require_items(state: StateFile, mechanism: Mechanism) -> None:
    """See that the table of the items is as it was made for their kind; without items there is none.

    Raises:
        EngineError: the state is damaged.
    """
    kind, columns = records.read_kind(state), []
    if kind is not None:
        made = item_columns(
            item_type_of(kind, grouped=mechanism.grouping is not None), mechanism.depth, _bound(mechanism)
        )
        columns = [schema.Column(*column, True) for column in made.items()]
    schema.require_table(state, "items", columns)


def read_progress(state: StateFile, mechanism: Mechanism) -> Progress:
    """The progress after the last closed step.

    Raises:
        EngineError: the state is damaged.
    """
    step, arrays = records.read_working(state)
    if step == 0:
        nothing = StepCounts.before_all(mechanism.counted, mechanism.reach, totals=mechanism.needs_total)
        before = nothing if mechanism.grouping is None else CellCounts((nothing,) * mechanism.cells)
        return Progress(before, mechanism.fresh_memory())
    counts, memory = (
        {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}
        for prefix in (_COUNTS, _MEMORY)
    )
    if mechanism.grouping is not None:
        return Progress(CellCounts.from_arrays(step, mechanism.reach, counts, mechanism.cells), memory)
    return Progress(StepCounts.from_arrays(step, mechanism.reach, counts), memory)


def close_step(
    state: StateFile, mechanism: Mechanism, progress: Progress, *, ends: int, call: Call, handed: Handed
) -> Progress:
    """Count the events of the next step, draw its noise, and commit all of it at once.

    Nothing of the step may be handed out before this returns. If it fails, the step was not closed or its rows are
    stored: which of the two shows when the state is opened again, and neither was seen by anyone.

    Args:
        state: the state.
        mechanism: the stream's.
        progress: after the step before.
        ends: the end of the step, as a boundary value.
        call: the call that closes it.
        handed: the events, in the temporary table `handed`.

    Raises:
        EngineError: the state is damaged, or cannot be written.
    """
    step = progress.counts.step + 1
    with state.transaction() as connection:
        changes = _count(connection, mechanism, step, call, handed)
        if any(change.before >= step for change in changes):  # nothing has occurred in this step or a later one yet
            raise records.damaged(state)
        counts = progress.counts.after(changes)
        rows, memory = mechanism.release_step(counts.answers(), progress.memory)
        after = Progress(counts, memory)
        records.write_working(connection, step, after.to_arrays())
        released_at = datetime.now(UTC).isoformat(timespec="seconds")
        token, versions = secrets.token_hex(records.TOKEN_BYTES), json.dumps(library_versions())
        closed = ClosedStep(step, ends, handed.of(step), token, released_at, versions)
        records.write_step(connection, closed, call, rows)
    return after


def _count(
    connection: duckdb.DuckDBPyConnection, mechanism: Mechanism, step: int, call: Call, handed: Handed
) -> list[Change]:
    """Let the step's items occur, late ones among them where this is the step they are moved to."""
    moved = call.moved != NOTHING and step == call.first
    depth, reach, bound = mechanism.depth, mechanism.reach, _bound(mechanism)
    grouped = mechanism.grouping is not None
    known = connection.execute("SELECT kind FROM item_kind").fetchone()
    changes: list[Change] = []
    if moved or step in handed.fingerprints:
        if known is None:
            assert handed.kind is not None, "there are rows"
            make_items(connection, item_type_of(handed.kind, grouped=grouped), depth, bound)
            connection.execute("INSERT INTO item_kind VALUES (?)", [handed.kind.name])
        occurrences = f"SELECT item, total FROM handed WHERE step = {step}"
        if moved:
            occurrences = f"SELECT item, sum(total) AS total FROM handed WHERE step <= {step} GROUP BY item"
        if mechanism.rule.distinct_steps:
            occurrences = f"SELECT item, 1 AS total FROM ({occurrences})"
        oldest = oldest_at(step, reach)
        changes = occur(connection, occurrences, step, mechanism.thresholds, oldest, bound, grouped=grouped)
    if known is not None:
        prune(connection, step, depth, reach, totals=mechanism.needs_total, bound=bound)
    return changes


def _bound(mechanism: Mechanism) -> Bound:
    return Bound(mechanism.rule.max_occurrences, mechanism.rule.max_runs, mechanism.series)
