"""What a simulated process does: the work of the commands, with small plans, telling what it hands out when it does.

Everything said goes into the library's log (`shim.note`), so that it has a place among the writes and the syncs, and is
known although the process was killed the moment after.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dpwindows as dw
from dpwindows.cli.options import claim_output, save_spent
from dpwindows.count.events import EventColumns
from dpwindows.errors import EngineError, InputError
from dpwindows.kernel import measure as kernel
from dpwindows.kernel.designs import StepAnswers
from dpwindows.ledger import ledger
from dpwindows.ledger import store as ledger_store
from dpwindows.plan import description
from dpwindows.release import files as release_files
from dpwindows.release.release import Release
from dpwindows.release.run import run_plan
from dpwindows.stream import closing, recencies
from dpwindows.stream.calls import LatePolicy
from dpwindows.stream.mechanism import Mechanism
from dpwindows.stream.stream import Stream
from tests.brute_force import count_at_least
from tests.simulator import shim
from tests.stream.streams import STEP, Event, table_of

SETTINGS = dw.EngineSettings(threads=1, progress=False)
DATASET, TOTAL = "d", 2.5
STREAM_COST, RELEASE_COST = 1.0, 0.5
HORIZON = 12
# Streams of these names count in groups, of rows or of items, or are handed one step at a time with an event of step 1
# from step 3 on.
GROUPED_ITEMS = "group-of-items"
GROUPED, LATE = ("grouped", GROUPED_ITEMS), ("late-ignore", "late-move")
# A stream of this name keeps a copy, of the same name in a folder of its own.
COPIED, SAFE = "copied", "safe"
# Files that processes publish lie in a folder of their own; all others are private.
OUT = "out"
# In a folder of its own, as it should be: what syncs this one does not sync that of the states.
LEDGER = "books/ledger"
_GROUPS = ["some", "others"]
_LATE_EVENT: Event = ("late-item", 1, 1)
_LATE_FROM = 3
# Folders that are there before anything happens.
FOLDERS = (OUT, SAFE, str(Path(LEDGER).parent))
UMASK = 0o022


@dataclass(frozen=True)
class Verb:
    """One command: what, and its arguments.

    Attributes:
        what: create, advance, show, release, or ledger (which creates one).
        state: the name of the state file.
        step: the last step that `advance` closes.
        ledger: whether a new stream, or a release, is paid from the ledger.
        output: the name of the output, empty for none (the rows go to the screen).
        force: replace the output.
        request: which of the requests a release is; releases of one request differ in nothing but the log.
        log: which version of the log a release reads.
    """

    what: str
    state: str = "state"
    step: int = 0
    ledger: bool = False
    output: str = ""
    force: bool = False
    request: int = 0
    log: int = 0

    def __str__(self) -> str:
        told = [self.state] if self.what in ("create", "advance", "show") else []
        told += [str(self.step)] if self.what == "advance" else []
        told += [f"request {self.request} of log {self.log}"] if self.what == "release" else []
        told += ["--ledger"] if self.ledger else []
        told += [f"-o {self.output}"] if self.output else []
        return " ".join([self.what, *told, *(["--force"] if self.force else [])])


def events_in(first: int, last: int) -> list[Event]:
    """The log of some steps."""
    return [
        (f"item-{(number * 7 + index * 3) % 5}", number, 1)
        for number in range(first, last + 1)
        for index in range(number % 3)
    ]


def handed_over(events: list[Event]) -> pa.Table:
    """Events as a table, with the group of each; an item is in one group in one step and in the other in the next."""
    groups = pa.array([_GROUPS[_cell(event)] for event in events], pa.string())
    return table_of(events).append_column("group", groups)


def _cell(event: Event) -> int:
    return event[1] % len(_GROUPS)


@cache
def stream_plan(state: str = "state") -> dw.StreamPlan:
    """One number a step for each of two windows, in each group, under Laplace noise."""
    windows = [dw.Rolling(2), dw.Cumulative()]
    by = {"group": _GROUPS} if state in GROUPED else None
    of_items: dict[str, Any] = {"unit": dw.ItemAddRemove(), "group_of": "item"}
    what = of_items if state == GROUPED_ITEMS else {"unit": dw.EventLevel()}
    return dw.StreamPlan(windows, budget=dw.PureDP(STREAM_COST), horizon=HORIZON, by=by, **what)


@cache
def exact_counts(state: str, step: int) -> list[list[int]]:
    """What a stream of this name must count after a step, by brute force.

    For each group the items with an event in the last step, in the last two, and in all.
    """
    log = events_in(1, step)
    if state == "late-move":
        log += [(_LATE_EVENT[0], moved, 1) for moved in range(_LATE_FROM, step + 1)]
    cells = range(len(_GROUPS)) if state in GROUPED else [None]
    first_cells = {event[0]: _cell(event) for event in reversed(log)}
    cell_of = _cell if state == "grouped" else lambda event: first_cells[event[0]]
    by_cell = [[event for event in log if cell in (None, cell_of(event))] for cell in cells]
    firsts = (*range(step, max(0, step - 2), -1), 1)
    return [[count_at_least(events, 1, first, step) for first in firsts] for events in by_cell]


@cache
def release_plan(request: int) -> dw.Plan:
    """A batch release of four numbers."""
    window = dw.Rolling(2 + request)
    budget, unit = dw.PureDP(RELEASE_COST), dw.EventLevel()
    return dw.Plan(window, timeline=dw.Timeline(0, 4 * STEP, STEP), unit=unit, budget=budget, strategy="direct")


def make_folders(root: Path) -> None:
    """The folders that processes find."""
    for name in FOLDERS:
        (root / name).mkdir(parents=True, mode=0o700)


# --- in the child --------------------------------------------------------------------------------------------------


def tell(kind: str, **values: Any) -> None:
    """Say something at this moment of the log."""
    shim.note(json.dumps({"kind": kind, "counted": _counted, **values}).encode())
    _counted.clear()


# The exact counts that were measured since something was last said: the state, the step, the counts of each group.
_counted: list[tuple[str, int, list[list[int]]]] = []


def live(root: Path, verbs: Iterable[Verb], keep: bool, plant: Callable[[], None]) -> None:
    """Do these verbs, one after the other; with `keep`, on one open stream where they use the same state."""
    os.umask(UMASK)
    kernel.draw_noise = _noise
    ledger.PATIENCE = ledger_store.PATIENCE = 0.05
    # Parts are written as one, and others removed, within a few steps.
    recencies._MOST_PARTS, recencies._RARELY = 3, 4
    plant()
    work = _Work(root, keep)
    Mechanism.release_step = _overheard(Mechanism.release_step, work)  # type: ignore[method-assign]
    for number, verb in enumerate(verbs):
        tell("begins", verb=number)
        ending, message = work.do(verb)
        tell("ends", verb=number, ending=ending, message=message)
    ending, message = _ending(work.close)
    tell("done", ending=ending, message=message)


def rehearse(folder: Path) -> None:
    """Do every verb once, unseen, so that a child has nothing left to load."""
    versions = cache(description.library_versions)
    for module in (closing, description):
        setattr(module, "library_versions", versions)  # noqa: B010
    with tempfile.TemporaryDirectory(dir=folder) as place:
        make_folders(Path(place))
        work = _Work(Path(place), keep=False)
        verbs = [Verb("ledger"), Verb("create", ledger=True), Verb("create", "bare")]
        verbs += [Verb("advance", step=step, output=f"{step}.json") for step in range(1, HORIZON + 1)]
        for state in (*GROUPED, *LATE, COPIED):
            verbs += [Verb("create", state), Verb("advance", state, 4), Verb("show", state)]
        verbs += [Verb("show"), Verb("release", ledger=True, output="a.csv")]
        verbs += [Verb("release", ledger=True, request=1, log=1, output="b.parquet")]
        for verb in verbs:
            ending = work.do(verb)
            if ending[0] != "ok":
                raise RuntimeError(f"{verb} does not work: {ending}")


def _overheard(release_step: Callable[..., Any], work: _Work) -> Callable[..., Any]:
    """The mechanism's step, with the exact counts it is given kept for the next time that something is said."""

    def release(self: Mechanism, by_cell: list[StepAnswers], memory: Any) -> Any:
        counts = [[*map(int, answers.recent[1][:2]), int(answers.total[1])] for answers in by_cell]
        _counted.append((work.state, by_cell[0].step, counts))
        return release_step(self, by_cell, memory)

    return release


def _noise(law: str, scale: float, count: int, progress: Any = None, vectors: int = 1, by: str = "exact") -> np.ndarray:
    """Noise that is drawn twice is never twice the same: in place of the sampler's, which touches no file."""
    drawn = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(24)
    return drawn.astype(np.int64) - (1 << 39)


def _ending(work: Callable[[], None]) -> tuple[str, str]:
    try:
        work()
    except InputError as error:
        return "input", f"{type(error).__name__}: {error}"
    except EngineError as error:
        return "engine", str(error)
    except Exception as error:
        return "traceback", f"{type(error).__name__}: {error}"
    return "ok", ""


class _Work:
    """The stream that is open, and what verbs do with it."""

    def __init__(self, root: Path, keep: bool) -> None:
        self.root, self.keep = root, keep
        self.stream: Stream | None = None
        self.state = ""

    def do(self, verb: Verb) -> tuple[str, str]:
        """Do one verb; how it ended (ok, input, engine or traceback), and the message."""
        ending = _ending(lambda: getattr(self, f"_{verb.what}")(verb))
        if not self.keep or ending[0] != "ok":
            closed = _ending(self.close)
            return ending if ending[0] != "ok" else closed
        return ending

    def close(self) -> None:
        """Close the stream if one is open."""
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.close()

    def _ledger(self, verb: Verb) -> None:
        path, budget = self.root / LEDGER, dw.PureDP(TOTAL)
        dw.Ledger.create(path, DATASET, budget=budget, unit=dw.EventLevel())

    def _create(self, verb: Verb) -> None:
        self.close()
        used = dw.Ledger.open(self.root / LEDGER, DATASET) if verb.ledger else None
        Stream.create(
            self.root / verb.state,
            stream_plan(verb.state),
            item="who",
            time="at",
            count="times",
            start=0,
            step=STEP,
            ledger=used,
            copy_to=self.root / SAFE / verb.state if verb.state == COPIED else None,
            settings=SETTINGS,
        ).close()

    def _opened(self, verb: Verb, read_only: bool = False) -> Stream:
        if self.stream is None or self.state != verb.state:
            self.close()
            self.stream = Stream.open(self.root / verb.state, settings=SETTINGS, read_only=read_only)
            self.state = verb.state
        return self.stream

    def _advance(self, verb: Verb) -> None:
        with claim_output(self._output(verb), force=verb.force):
            stream = self._opened(verb)
            if verb.state not in LATE:
                released = stream.advance(handed_over(events_in(1, verb.step)), verb.step * STEP)
                _hand_out(released)
            else:
                for step in range(max(1, min(stream.closed_steps, verb.step)), verb.step + 1):
                    late = [_LATE_EVENT] if step >= _LATE_FROM else []
                    policy: LatePolicy = "ignore" if verb.state == "late-ignore" else "move"
                    released = stream.advance(handed_over(events_in(step, step) + late), step * STEP, late=policy)
                    _hand_out(released)
            self._save(released, verb)

    def _show(self, verb: Verb) -> None:
        path = self._output(verb)
        if path is not None:
            release_files.require_writable(path, force=verb.force)
        stream = self._opened(verb, read_only=not self.keep)
        if stream.closed_steps or verb.output:
            released = stream.show()
            _hand_out(released)
            self._save(released, verb)

    def _release(self, verb: Verb) -> None:
        used = dw.Ledger.open(self.root / LEDGER, DATASET) if verb.ledger else None
        with claim_output(self._output(verb), force=verb.force):
            outcome = run_plan(
                *(
                    release_plan(verb.request),
                    handed_over(events_in(1, 3 + verb.log)),
                    EventColumns("who", "at", "times"),
                ),
                table=None,
                settings=SETTINGS,
                ledger=used,
            )
            _hand_out(outcome.release, asked=[verb.request, verb.log])
            self._save(outcome.release, verb)

    def _output(self, verb: Verb) -> Path | None:
        return self.root / OUT / verb.output if verb.output else None

    def _save(self, released: Release, verb: Verb) -> None:
        path = self._output(verb)
        if path is not None:
            tell("writes", output=verb.output, id=released.metadata["release_id"], force=verb.force)
            save_spent(released, path, force=verb.force, again="Run it again")
            tell("wrote", output=verb.output, id=released.metadata["release_id"], force=verb.force)


def _hand_out(released: Release, asked: list[int] | None = None) -> None:
    tell("handed", asked=asked, **facts(released.table, released.metadata))


def facts(table: pa.Table, metadata: dict[str, Any]) -> dict[str, Any]:
    """What there is to remember of a release: whose it is, its numbers, and a digest of all of it."""
    names = ("group", "window", "measure", "k", "first_step", "last_step")
    rows = [[str(row[name]) for name in names if name in row] for row in table.to_pylist()]
    numbers = [[row[name] for name in ("estimate", "lower", "upper")] for row in table.to_pylist()]
    stated = {name: value for name, value in metadata.items() if not name.endswith("sha256")}
    whole = json.dumps([rows, numbers, table["start"].to_pylist(), stated], sort_keys=True, default=str)
    return {
        "id": metadata["release_id"],
        "state": metadata.get("stream", {}).get("state_id"),
        "entry": metadata.get("ledger", {}).get("entry"),
        "rows": [[" ".join(row), *found] for row, found in zip(rows, numbers, strict=True)],
        "digest": hashlib.sha256(whole.encode()).hexdigest(),
    }
