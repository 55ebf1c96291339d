"""The audit of what is measured: is it one integer matrix on every log, whatever the log's size?

`probe` reads the matrix off answers of 0 and 1. A mechanism that behaves otherwise above some count, or after other
inputs, would show `probe` the matrix of its proof and apply another. So here the mechanism encodes answers of many
sizes and forms, up to 2^40 items, and in exact arithmetic

- what it encodes is the matrix times the answers, twice over (it is linear there, and the same each time);
- that holds of two logs together as well, so that they are encoded as the sum of both;
- neighbours on top of a large log are no further apart than the certified sensitivity allows;
- the engine counts a log of thousands of items, with large multiplicities, as the definition does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from dpwindows.audit import large_logs
from dpwindows.audit.findings import Findings
from dpwindows.audit.losses import norms
from dpwindows.audit.probe import Mechanism, Table, encode, probe
from dpwindows.kernel.measure import Measurement

if TYPE_CHECKING:
    from dpwindows.plan.planned import Planned

# Neighbours that are put on top of each large log.
_NEIGHBOURS = 2
# Items of the log that the engine counts, and the most occurrences of one in a step.
_ITEMS, _OCCURRENCES = 5_000, 10**6
# Fewer items where there are many groups, so that their histories together stay below `_MOST_HELD`.
_FEWEST_ITEMS, _MOST_HELD = 100, 1 << 22
_MOST_REPORTED = 20


@dataclass(frozen=True, kw_only=True)
class EncodingAudit(Findings):
    """What the mechanism encodes on large logs, of up to `largest` items; `logs` and pairs of `neighbours` are counts.

    `faults` is what was not as it must be, one sentence each, at most twenty.
    """

    logs: int
    largest: int
    neighbours: int
    WORDS = "one matrix", "depends on the data"


def audit_encoding(plan: Planned, *, seed: int = 0) -> EncodingAudit:
    """Audit what a plan, of a release or of a stream, measures on large logs; `seed` is of these made-up logs.

    Raises:
        InputError: the plan is too large to be read off.
        EngineError: what is measured is no linear map even of small answers.
    """
    measurements = plan.measurements
    mechanism = probe(measurements)
    rng = np.random.default_rng(seed)
    most = min(3, mechanism.most)
    neighbours = large_logs.random_neighbours(plan.unit, mechanism.steps, mechanism.groups, most, rng)
    faults: list[str] = []
    logs = pairs = 0
    before: Table | None = None
    for name, log in large_logs.large_answers(mechanism, rng):
        logs += 1
        faults += _is_matrix(mechanism, measurements, name, log)
        if before is not None:
            faults += _is_matrix(mechanism, measurements, f"{name}, with another log added", before + log)
        for one, other in islice(neighbours, _NEIGHBOURS):
            pairs += 1
            faults += _is_near(measurements, name, log + mechanism.table(one[None]), log + mechanism.table(other[None]))
        before = log
        if len(faults) >= _MOST_REPORTED:
            break
    faults += _is_counted(plan, mechanism, rng)
    reported = tuple(faults[:_MOST_REPORTED])
    return EncodingAudit(logs=logs, largest=max(large_logs.SIZES), neighbours=pairs, faults=reported)


def _named(measurement: Measurement) -> str:
    return f"strategy {measurement.design.strategy!r} for {measurement.design.problem.window}"


def _is_matrix(mechanism: Mechanism, measurements: Sequence[Measurement], name: str, log: Table) -> Iterator[str]:
    read = mechanism.read(log)
    for measurement, part in zip(measurements, mechanism.parts, strict=True):
        once, again = encode(measurement, log), encode(measurement, log)
        if not np.array_equal(once, again):
            yield f"{_named(measurement)} encodes {name} differently the second time"
        off = np.asarray(once != part.apply(read)[0].astype(object))
        if off.any():
            yield (
                f"{_named(measurement)}: of {name}, {int(off.sum()):,} of {off.size:,} numbers are not the matrix "
                "that it applies to small counts, times the answers"
            )


def _is_near(measurements: Sequence[Measurement], name: str, low: Table, high: Table) -> Iterator[str]:
    for measurement in measurements:
        moved = encode(measurement, high) - encode(measurement, low)
        vectors = len(measurement.cells) * len(measurement.design.problem.thresholds)
        norm = int(norms(measurement.law, moved, vectors))
        if norm > measurement.certificate.bound:
            yield (
                f"{_named(measurement)}: neighbours on top of {name} are {norm:,} apart, beyond the certified "
                f"{measurement.certificate.bound:,}"
            )


def _is_counted(plan: Planned, mechanism: Mechanism, rng: np.random.Generator) -> Iterator[str]:
    """The exact counts of a log of many items, by the engine of a batch release."""
    items = min(_ITEMS, max(_FEWEST_ITEMS, _MOST_HELD // mechanism.slots))
    histories = large_logs.random_histories(items, mechanism.slots, _OCCURRENCES, rng)
    named = {f"item {number}": history for number, history in enumerate(histories)}
    log = large_logs.events_table(plan.timeline.boundaries(), named, plan.grouping)
    known, answers = mechanism.table(histories), large_logs.counted(plan, log)
    found = np.concatenate([encode(one, answers) for one in plan.measurements])
    meant = np.concatenate([encode(one, known) for one in plan.measurements])
    if wrong := int((found != meant).sum()):
        yield f"of a log of {items:,} items, {wrong:,} of {len(found):,} numbers are counted wrongly"
