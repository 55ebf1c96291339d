"""Runs one schedule after the other: forks the processes, breaks them, keeps the disk, calls the witness."""

from __future__ import annotations

import gc
import hashlib
import os
import random
import select
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from tests.patience import PATIENCE
from tests.simulator import workload
from tests.simulator.disk import Disk
from tests.simulator.invariants import Witness
from tests.simulator.schedule import Backup, Copy, Event, Loss, PowerFailure, Process, Restore, Run, Schedule
from tests.simulator.shim import Clock, Control, Op, Record, read_log
from tests.simulator.workload import OUT, Verb


class SimulatorError(Exception):
    """The simulator itself does not work: it did not see something, or a process hung."""


@dataclass
class Outcome:
    """What came of a schedule.

    Attributes:
        violations: what does not hold; empty if all is well.
        story: what happened, a line each.
        log: a digest of every operation: what was done to which file by whom.
        data: a digest of the data that was written and said, with its places.
        operations: how many there were.
        endings: how many verbs ended how.
    """

    violations: list[str]
    story: list[str]
    log: str
    data: str
    operations: int
    endings: Counter[str] = field(default_factory=Counter)
    fired: int = 0


class Simulator:
    """A folder in memory, a log, and processes forked from this one."""

    def __init__(self, plant: Callable[[], None] = lambda: None) -> None:
        shared = Path("/dev/shm")
        self._folder = Path(tempfile.mkdtemp(prefix="dpsim-", dir=shared if os.access(shared, os.W_OK) else None))
        self.root, self.scratch, spill = (self._folder / name for name in ("disk", "scratch", "spill"))
        for folder in (self.root, self.scratch, spill):
            folder.mkdir(mode=0o700)
        workload.make_folders(self.root)
        os.environ["TMPDIR"] = str(spill)
        tempfile.tempdir = None
        self._log = os.open(self._folder / "log", os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        self._controls = (Control(), Control())
        self.plant = plant
        self._prepared: dict[tuple[Verb, ...], tuple[dict[str, tuple[bytes, int]], Witness]] = {}
        self._ready = False

    def close(self) -> None:
        """Remove everything."""
        os.close(self._log)
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, schedule: Schedule) -> Outcome:
        """Run a schedule.

        Raises:
            SimulatorError: the simulator does not work.
        """
        if not self._ready:
            self._get_ready()
        self.disk, self.witness = self._begin(schedule.before)
        self._dice = random.Random(f"disk {schedule.seed}")
        self._seed, self._runs, self._digest, self._data = schedule.seed, 0, hashlib.sha256(), hashlib.sha256()
        self._operations = self._fired = 0
        self._backup = self.disk.snapshot()
        self._may_lose_noise = schedule.family == "backup" and not any(verb.ledger for verb in schedule.before)
        story = []
        for event in schedule.events:
            story += self._happen(event)
            if self.witness.violations:
                break
        return Outcome(
            *(self.witness.violations, story, self._digest.hexdigest(), self._data.hexdigest(), self._operations),
            endings=self.witness.endings,
            fired=self._fired,
        )

    # --- events -------------------------------------------------------------------------------------------------------

    def _happen(self, event: Event) -> list[str]:
        told = [str(event)]
        match event:
            case Run(processes, must_work):
                told += self._run(processes, must_work)
            case PowerFailure():
                self.disk.lose_power(self._dice)
                told += [f"    left: {self._files()}"]
            case Backup():
                self._backup = self.disk.snapshot()
            case Restore(what):
                told += [f"    {self._restore(what)}"]
            case Copy(old, new):
                files = self.disk.snapshot()
                moved = {name.replace(old, new, 1): kept for name, kept in files.items() if _belongs(name, old)}
                self.disk.restore(moved)
            case Loss(state):
                files, copy = self.disk.snapshot(), f"{workload.SAFE}/{state}"
                kept = {name.replace(copy, state, 1): file for name, file in files.items() if name.startswith(copy)}
                self.disk.restore(kept, [name for name in files if _belongs(name, state)])
        # Checked with the disk as it is: nothing is at work now.
        self.witness.look(self.disk, quiet=True)
        return told

    def _restore(self, what: str) -> str:
        before = self._backup
        there = self.disk.snapshot()
        own = sorted({name for name in {*before, *there} if _belongs(name, "state")})
        journals = [name for name in own if name == "state-journal"]
        items = [name for name in own if name.startswith("state-items")]
        if what == "everything":
            # Outputs left the machine: they are not put back.
            names = sorted({name for name in {*before, *there} if not name.startswith(f"{OUT}/")})
        elif what == "states":
            names = own
        elif what == "state and items":
            names = ["state", *items, *journals]
        elif what == "state":
            names = ["state", *journals]
        elif what == "items":
            names = items
        elif what == "journal":
            names = journals
        else:
            return self._harm([name for name in own if name == "state" or name in journals or name in items], what)
        if what == "journal" and self._dice.random() < 0.5:
            before = {name: kept for name, kept in before.items() if name not in journals}
        self.disk.restore(
            {name: before[name] for name in names if name in before}, [name for name in names if name not in before]
        )
        # With the marks, and without a ledger that stays, no file can tell.
        if what == "everything" or (what == "states" and self._may_lose_noise):
            self.witness.forget_noise()
        if what == "everything":
            self.witness.forget_ledger()
        return f"files: {', '.join(names) or 'none'}"

    def _harm(self, names: list[str], how: str) -> str:
        """A file loses its end, is gone, or has other bytes."""
        there = {name: kept for name, kept in self.disk.snapshot().items() if name in names and kept[0]}
        if not there:
            return "nothing to harm"
        name = self._dice.choice(sorted(there))
        content, mode = there[name]
        if how == "gone":
            self.disk.restore({}, [name])
            return f"{name} is gone"
        at = max(0, len(content) - self._dice.choice((1, 5, 100, 700, 5000, len(content))))
        changed = content[:at]
        if how == "altered":
            changed += bytes(byte ^ 0x55 for byte in content[at : at + 16]) + content[at + 16 :]
        self.disk.restore({name: (changed, mode)})
        return f"{name}: {how} from byte {at} of {len(content)} on"

    def _files(self) -> str:
        return ", ".join(f"{name} {len(inode.seen)}" for name, inode in sorted(self.disk.seen.items())) or "nothing"

    # --- processes ----------------------------------------------------------------------------------------------------

    def _run(self, processes: tuple[Process, ...], must_work: bool = False) -> list[str]:
        os.ftruncate(self._log, 0)
        running = [self._start(number, process) for number, process in enumerate(processes)]
        while alive := [one for one in running if not one.ended]:
            for one in alive:
                one.go_on()
        os.lseek(self._log, 0, os.SEEK_SET)
        records = self._read()
        self._runs += 1
        self._fired += sum(control.fired > 0 for control in self._controls[: len(processes)])
        self.disk.replay(records)
        if (found := self.disk.difference()) is not None:
            raise SimulatorError(f"the library did not see everything: {found}")
        endings = self.witness.hear(records, {number: process.verbs for number, process in enumerate(processes)})
        if must_work:
            self.witness.require_success(endings)
        told = [f"    {who}: {ending}{': ' if message else ''}{message}" for who, ending, message in endings]
        return told + [f"    process {one.number} was killed" for one in running if one.status != 0]

    def _read(self) -> list[Record]:
        content = b""
        while more := os.read(self._log, 1 << 24):
            content += more
        records = list(read_log(content))
        for record in records:
            place = (int(record.op), record.who, record.mode, record.number)
            self._digest.update(repr((place, self._inside(record.path), self._inside(record.path2))).encode())
            self._data.update(repr((record.offset, record.length)).encode() + record.data)
        self._operations += sum(record.op != Op.FAULT for record in records)
        return records

    def _inside(self, path: str) -> str:
        return path.removeprefix(str(self.root))

    def _start(self, number: int, process: Process) -> _Running:
        control, seed = self._controls[number], hash((self._seed, self._runs, number)) & ((1 << 64) - 1)
        ours, theirs = os.pipe(), os.pipe()
        control.set(
            *(self.root, self._log, seed),
            who=number,
            fault=process.fault,
            clock=process.clock,
            pauses=process.pauses,
            pipes=(ours[1], theirs[0]),
        )
        child = os.fork()
        if child == 0:
            status = 70
            try:
                os.close(ours[0])
                os.close(theirs[1])
                control.begin()
                workload.live(self.root, process.verbs, process.keep, self.plant)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(ours[1])
        os.close(theirs[0])
        return _Running(number, child, ours[0], theirs[1])

    def _begin(self, before: tuple[Verb, ...]) -> tuple[Disk, Witness]:
        """The disk after verbs without faults; they are done once."""
        if before not in self._prepared:
            self.disk, self.witness = Disk(self.root, workload.FOLDERS), Witness(self.scratch)
            self.disk.lay_out()
            # The same wherever and whenever it is made.
            self._seed, self._runs, self._digest, self._data = 0, 0, hashlib.sha256(), hashlib.sha256()
            self._operations = self._fired = 0
            plant, self.plant = self.plant, lambda: None
            for verb in before:
                self._run((Process((verb,), clock=Clock(1_780_000_000 * 10**9)),))
            self.plant = plant
            if self.witness.endings["ok"] != len(before):
                raise SimulatorError(f"what was to be there already failed: {self.witness.endings}")
            self._prepared[before] = self.disk.snapshot(), self.witness
        files, witness = self._prepared[before]
        disk = Disk(self.root, workload.FOLDERS)
        disk.restore(files)
        witness = deepcopy(witness)
        witness.endings.clear()
        return disk, witness

    def _get_ready(self) -> None:
        """Do everything once, in a folder of its own: what is loaded and worked out now is there in every child.

        The engines end their threads with their connections. Those that stay are allocators' and Arrow's, which know
        of forks.
        """
        workload.rehearse(self.scratch)
        gc.collect()
        gc.freeze()
        self._ready = True


@dataclass
class _Running:
    """A child: works until it is paused or ends."""

    number: int
    child: int
    hears: int
    says: int
    begun: bool = False
    ended: bool = False
    status: int = 0

    def go_on(self) -> None:
        """Let it work until it is paused or ends."""
        if self.begun:
            os.write(self.says, b"g")
        self.begun = True
        readable, _, _ = select.select([self.hears], [], [], PATIENCE)
        if not readable:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            raise SimulatorError("a process hung")
        if os.read(self.hears, 1):
            return
        # The pipe is closed: it is gone, or about to be.
        _, status = os.waitpid(self.child, 0)
        self.status, self.ended = status, True
        os.close(self.hears)
        os.close(self.says)
        if status not in (0, signal.SIGKILL):
            raise SimulatorError(f"a process ended with status {status}")


def _belongs(name: str, state: str) -> bool:
    """Whether a file is a state's, or stands beside it."""
    return name == state or name.startswith((f"{state}.", f".{state}.", f"{state}-"))


def run_all(simulator: Simulator, schedules: Iterable[Schedule]) -> Iterable[tuple[Schedule, Outcome, float]]:
    """Run schedules, with the seconds that each took."""
    for schedule in schedules:
        begun = time.perf_counter()
        yield schedule, simulator.run(schedule), time.perf_counter() - begun
