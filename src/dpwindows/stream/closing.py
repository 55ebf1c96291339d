"""Closing one step: its part of the items first, then everything else that it changes, in one transaction."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime

from dpwindows.kernel.maps.integer_maps import Memory
from dpwindows.plan.description import library_versions
from dpwindows.stream import records
from dpwindows.stream.given_events import NOTHING, Handed, capped_sum
from dpwindows.stream.mechanism import Mechanism
from dpwindows.stream.place import Place
from dpwindows.stream.recencies import Recencies, Shape
from dpwindows.stream.records import Call, ClosedStep, Position
from dpwindows.stream.step_counts import Change, StepCounts, oldest_at
from dpwindows.stream.store import StateFile, damaged

_COUNTS, _MEMORY = "counts/", "memory/"


def progress_at(position: Position, mechanism: Mechanism) -> tuple[StepCounts, Memory]:
    """What the next step goes on from: exact counts by recency in every group, and the mechanism's memory."""
    reach = mechanism.reach
    if position.step == 0:
        totals, cells = mechanism.totals, mechanism.cells
        return StepCounts.before_all(mechanism.counted, reach, totals=totals, cells=cells), mechanism.fresh_memory()
    counts, memory = (
        {name.removeprefix(prefix): values for name, values in position.working.items() if name.startswith(prefix)}
        for prefix in (_COUNTS, _MEMORY)
    )
    return StepCounts.from_arrays(position.step, reach, counts), memory


def close_step(
    state: StateFile,
    place: Place,
    mechanism: Mechanism,
    before: Position,
    *,
    ends: int,
    call: Call,
    handed: Handed,
) -> Position:
    """Count the events of the next step, draw its noise, and commit all of it at once; returns the position after it.

    Nothing of the step may be handed out before this returns. If it fails, the step was not closed or its rows are
    stored: which of the two shows when the state is opened again, and neither was seen by anyone.

    Args:
        state: the state.
        place: where the events are, in the relation `handed`, and the items.
        mechanism: the stream's.
        before: the position that the step goes on from.
        ends: the end of the step, as a boundary value.
        call: the call that closes it.
        handed: the events.

    Raises:
        EngineError: the state is damaged, or cannot be written.
    """
    step, token = before.step + 1, secrets.token_hex(records.TOKEN_BYTES)
    counts, memory = progress_at(before, mechanism)
    occurrences = _occurrences(place.handed, mechanism, step, call, handed)
    kind = before.kind if before.kind is not None or occurrences is None else handed.kind
    parts, changes = before.parts, list[Change]()
    if kind is not None:
        kept = _recencies(place, mechanism, kind)
        part = None if occurrences is None else kept.write(before.parts, step, token, occurrences)
        if part is not None:
            parts, changes = (*before.parts, part), kept.changes(part, oldest_at(step, mechanism.reach))
        parts = kept.compact(parts, step, token)
    if any(change.before >= step for change in changes):  # nothing has occurred in this step or a later one yet
        raise damaged(state.path)
    try:
        counts = counts.after(changes)
    except ValueError:
        raise damaged(state.path) from None
    released, memory = mechanism.release_step(counts.answers(), memory)
    rows = records.rows_to_bytes(released)
    released_at, versions = (
        datetime.now(UTC).isoformat(timespec="seconds"),
        json.dumps(library_versions(mechanism.noise)),
    )
    closed = ClosedStep(*(step, ends, handed.of(step), token, released_at, versions, call, records.digest(rows)))
    named = {_COUNTS: counts.to_arrays(), _MEMORY: memory}
    working = {prefix + name: values for prefix, arrays in named.items() for name, values in arrays.items()}
    after = Position(step, token, kind, parts, working)
    place.settle(tuple(part for part in parts if part not in before.parts))
    records.close(state, before, after, closed, rows)
    return after


def _recencies(place: Place, mechanism: Mechanism, kind: str) -> Recencies:
    rule = mechanism.rule
    shape = Shape(
        place.item_type(kind),
        mechanism.grouping,
        mechanism.thresholds,
        mechanism.reach,
        mechanism.keeps_items,
        rule.max_occurrences,
        rule.max_runs,
        mechanism.series,
        place.dialect,
    )
    return Recencies(place, shape)


def _occurrences(relation: str, mechanism: Mechanism, step: int, call: Call, handed: Handed) -> str | None:
    """The query of a step's items, late ones among them where this is the step they are moved to; None without any."""
    moved = call.moved != NOTHING and step == call.first
    if not moved and step not in handed.fingerprints:
        return None
    grouping = mechanism.grouping
    keys, kept, once = "item", "item", not moved
    if grouping is not None and grouping.group_of == "item":
        kept, once = "min(cell) AS cell, item", False
    elif grouping is not None:
        keys = kept = "cell, item"
    total = "1" if mechanism.rule.distinct_steps else "total" if once else capped_sum("total")
    # An item has one row a step, in each group.
    within, together = f"step {'<=' if moved else '='} {step}", "" if once else f" GROUP BY {keys}"
    return f"SELECT {kept}, {total} AS total FROM {relation} WHERE {within}{together}"
