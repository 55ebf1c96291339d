"""Record and replay: two neighbouring logs released under one noise, which must leave no other difference.

A release of a log is recorded on a tape (`dpwindows.audit.tape`), and its neighbour is released while the tape plays:
each noisy number is then the recorded one, whatever the neighbour's exact counts are. If noise is all that hides the
data, then

1. the second run asks for the same noise: as many draws, of the same laws, scales and lengths, in the same order;
2. what the noise is added to differs by no more than the certified sensitivity, in its norm and over the whole run;
3. everything else that is published is the same to the byte: rows, times, errors, intervals, metadata. Only the random
   ids and the time of the release may differ.

The idea is that of Re:cord-play (Cebere, Erb, Desfontaines, Bellet, Fitzsimons 2026, arXiv 2602.17454). One pair that
differs is proof of a fault; pairs that do not are no proof that there is none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dpwindows.audit import large_logs
from dpwindows.audit.findings import Findings
from dpwindows.audit.losses import norms
from dpwindows.audit.neighbours import Ints, Pair
from dpwindows.audit.tape import DivergedError, Tape, taped
from dpwindows.errors import EngineError, InputError
from dpwindows.kernel.measure import Measurement

if TYPE_CHECKING:
    from dpwindows.plan.planned import Planned
    from dpwindows.plan.stream_plan import StreamPlan
    from dpwindows.release.release import Release

# What of a release's metadata is random or the time, and nothing else may be.
FRESH = ("release_id", "released_at")
# Items beside the one that differs, and steps of a stream without a horizon.
_CROWD, _STEPS = 300, 12
_MOST_REPORTED = 20


@dataclass(frozen=True, kw_only=True)
class ReplayAudit(Findings):
    """What differed between neighbours under one noise, for `pairs` of them, for which `draws` numbers were drawn.

    `of_certified` is the furthest that a neighbour moved a measurement, over what its certificate allows (the norm; for
    Gaussian noise its square). `faults` is what differed and must not, one sentence each, at most twenty.
    """

    pairs: int
    draws: int
    of_certified: float
    WORDS = "nothing but noise", "depends on the data"


def audit_replay(plan: Planned, pairs: Sequence[Pair] = (), *, made_up: int = 4, seed: int = 0) -> ReplayAudit:
    """Release neighbours under one noise: the pairs given and some made-up ones, alone and among other items.

    Args:
        plan: what to audit; a `StreamPlan` is released as a stream, in two calls.
        pairs: neighbours of one item, such as the worst ones that `audit_exactly` found.
        made_up: how many further pairs to make up.
        seed: of the made-up logs.

    Raises:
        InputError: the audit does not know the plan's unit.
        EngineError: a log cannot be counted.
    """
    rng = np.random.default_rng(seed)
    steps = _steps(plan)
    most = min(3, max(plan.thresholds))
    groups = 1 if plan.grouping is None else plan.grouping.levels[0].count
    slots = steps * groups
    histories = large_logs.random_histories(_CROWD, slots, most, rng)
    neighbours = large_logs.random_neighbours(plan.unit, steps, groups, most, rng)
    crowd = {f"item {number}": history for number, history in enumerate(histories)}
    asked = [(np.array(pair.log), np.array(pair.neighbour)) for pair in pairs if len(pair.log) == slots]
    measurements = plan.measurements
    found = []
    for low, high in (*asked, *islice(neighbours, made_up)):
        for others in ({}, crowd):
            low_log, high_log = (_table(plan, steps, {"changed": history} | others) for history in (low, high))
            found.append(replay(measurements, _releases(plan, low_log), _releases(plan, high_log)))
    return ReplayAudit(
        pairs=len(found),
        draws=sum(one.draws for one in found),
        of_certified=max(one.of_certified for one in found),
        faults=tuple(dict.fromkeys(fault for one in found for fault in one.faults))[:_MOST_REPORTED],
    )


def replay(
    measurements: Sequence[Measurement], first: Callable[[], Sequence[Release]], second: Callable[[], Sequence[Release]]
) -> ReplayAudit:
    """Compare what two runs publish, of a log and of a neighbour, under the noise of the first.

    Sensitivities, laws and scales are those of the measurements, which both claim to make.
    """
    with taped(Tape()) as record:
        published = first()

    def found(*faults: str, reached: float = 0.0) -> ReplayAudit:
        draws = sum(draw.count for draw in record.draws) if record.additions else 0
        return ReplayAudit(pairs=1, draws=draws, of_certified=reached, faults=faults)

    if not record.additions:
        return found(*record.faults or ["nothing that was released had noise added to it by the kernel"])
    known = [*_tape_faults(record), *_stated(measurements, record)]
    with taped(Tape(recorded=record)) as played:
        try:
            again = second()
        except DivergedError as error:
            return found(*known, f"the neighbour asks for other noise: {error}")
        except (InputError, EngineError) as error:
            return found(f"the neighbour cannot be released where the log can: {error}")
    known += _tape_faults(played)
    if len(played.draws) != len(record.draws):
        known.append(f"the neighbour draws {len(played.draws):,} times, the log {len(record.draws):,} times")
    reached, far = _moved(measurements, record, played)
    return found(*known, *far, *_different(published, again), reached=reached)


def published_bytes(release: Release) -> dict[str, bytes]:
    """Everything that a release publishes but what is random and the time, piece by piece."""
    table = release.table.combine_chunks()
    pieces = {f"column {name!r}": _column_bytes(table, name) for name in table.column_names}
    pieces["the names and types of columns"] = str(table.schema).encode()
    for name, value in release.metadata.items():
        if name not in FRESH:
            value = {key: part for key, part in value.items() if key != "state_id"} if name == "stream" else value
            pieces[f"metadata {name!r}"] = json.dumps(value).encode()
    pieces["the names of metadata"] = json.dumps(list(release.metadata)).encode()
    return pieces


def _column_bytes(table: pa.Table, name: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([table.schema.field(name)])) as writer:
        writer.write_table(table.select([name]))
    return bytes(sink.getvalue())


# --- The three checks ------------------------------------------------------------------------------------------------


def _tape_faults(tape: Tape) -> Iterator[str]:
    yield from tape.faults
    if tape.unused:
        yield f"noise was drawn {tape.unused:,} times and added to nothing"


def _owners(measurements: Sequence[Measurement], tape: Tape) -> list[Measurement]:
    """The measurement that each addition belongs to: they come in order, by threshold, in every call of the kernel."""
    cycle = [one for one in measurements for _ in one.design.problem.thresholds]
    return [cycle[place % len(cycle)] for place in range(len(tape.additions))]


def _stated(measurements: Sequence[Measurement], tape: Tape) -> Iterator[str]:
    vectors = sum(len(one.design.problem.thresholds) for one in measurements)
    if len(tape.additions) % vectors:
        yield f"{len(tape.additions):,} vectors were measured, which is no multiple of the plan's {vectors:,}"
    for measurement, addition in zip(_owners(measurements, tape), tape.additions, strict=True):
        if (addition.draw.law, addition.draw.scale) != (measurement.law, measurement.scale):
            yield (
                f"noise was drawn of {addition.draw.law} at scale {addition.draw.scale:g}, where the plan states "
                f"{measurement.law} at {measurement.scale:g}"
            )
        if addition.exact.shape != (addition.draw.count,):
            yield f"{addition.draw.count:,} noise values were drawn for numbers of shape {addition.exact.shape}"


def _moved(measurements: Sequence[Measurement], one: Tape, other: Tape) -> tuple[float, list[str]]:
    """How far the neighbour moved what was measured, over what is certified; and where it was too far."""
    moved = dict.fromkeys(range(len(measurements)), 0)
    index = {id(measurement): place for place, measurement in enumerate(measurements)}
    for owner, first, second in zip(_owners(measurements, one), one.additions, other.additions, strict=False):
        if first.exact.shape == second.exact.shape:
            change = second.exact - first.exact
            moved[index[id(owner)]] += int(norms(owner.law, change, len(owner.cells)))
    reached, far = 0.0, []
    for place, norm in moved.items():
        allowed = measurements[place].certificate.bound
        reached = max(reached, norm / allowed if allowed else float(norm > 0))
        if norm > allowed:
            design = measurements[place].design
            far.append(
                f"strategy {design.strategy!r} for {design.problem.window}: what noise was added to is {norm:,} apart, "
                f"beyond the certified {allowed:,}"
            )
    return reached, far


def _different(published: Sequence[Release], again: Sequence[Release]) -> Iterator[str]:
    if len(published) != len(again):
        yield f"the log makes {len(published)} releases, the neighbour {len(again)}"
    for one, other in zip(published, again, strict=False):
        first, second = published_bytes(one), published_bytes(other)
        for name in dict.fromkeys([*first, *second]):
            if first.get(name) != second.get(name):
                yield f"under the same noise, {name} of the release differs between neighbours"


# --- Runs ------------------------------------------------------------------------------------------------------------


def _steps(plan: Planned) -> int:
    from dpwindows.plan.stream_plan import StreamPlan

    return plan.horizon or _STEPS if isinstance(plan, StreamPlan) else plan.timeline.steps


def _table(plan: Planned, steps: int, histories: dict[str, Ints]) -> pa.Table:
    return large_logs.events_table(plan.timeline.boundaries().slice(0, steps + 1), histories, plan.grouping)


def _releases(plan: Planned, log: pa.Table) -> Callable[[], list[Release]]:
    """What releases a log by a plan: a batch release, or a stream in two calls."""
    from dpwindows.plan.plan import Plan
    from dpwindows.plan.stream_plan import StreamPlan

    if isinstance(plan, StreamPlan):
        return partial(_streamed, plan, log)
    assert isinstance(plan, Plan)
    return lambda: [large_logs.released(plan, log)]


def _streamed(plan: StreamPlan, log: pa.Table) -> list[Release]:
    from dpwindows.count.events import EngineSettings
    from dpwindows.stream.stream import Stream

    columns, settings, steps = large_logs.event_columns(plan.grouping), EngineSettings(progress=False), _steps(plan)
    item, time, count = columns.item, columns.time, columns.count
    times = log[time].to_numpy()
    with (
        TemporaryDirectory(prefix="dpwindows-audit-") as folder,
        Stream.create(
            Path(folder) / "audited.state", plan, item=item, time=time, count=count, start=0, step=1, settings=settings
        ) as opened,
    ):
        found, low = [], 0
        for high in sorted({max(1, steps // 2), steps}):
            found.append(opened.advance(log.filter(pa.array((times >= low) & (times < high))), through=high))
            low = high
        return found
