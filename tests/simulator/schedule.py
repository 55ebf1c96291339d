"""A seed, turned into what happens: processes and their faults, power failures, restored backups, copies."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from tests.simulator.shim import Action, Class, Clock, Fault
from tests.simulator.workload import COPIED, GROUPED, GROUPED_ITEMS, HORIZON, LATE, Verb

# Seconds between the processes of a schedule, and the moment the first one begins.
_LATER, _BEGINS = 3600, 1_790_000_000


@dataclass(frozen=True)
class Process:
    """One process: its verbs, its fault, its clock; `keep`: verbs share an open stream. Paused where another runs."""

    verbs: tuple[Verb, ...]
    fault: Fault = field(default_factory=Fault)
    keep: bool = False
    clock: Clock = field(default_factory=lambda: Clock(_BEGINS * 10**9))
    pauses: tuple[int, ...] = ()

    def __str__(self) -> str:
        jump = f", the clock jumps by {self.clock.jump / 1e9:g} s" if self.clock.jump else ""
        paused = f", paused at {', '.join(map(str, self.pauses))}" if self.pauses else ""
        verbs = "; ".join(map(str, self.verbs))
        return f"{verbs}{' (one stream)' if self.keep else ''} [{self.fault}{jump}{paused}]"


@dataclass(frozen=True)
class Run:
    """Processes, at once if there are several: each works until it is paused or ends, then the next one does.

    `must_work`: nothing fails any more, so that all of it has to succeed, or to be refused for a reason.
    """

    processes: tuple[Process, ...]
    must_work: bool = False

    def __str__(self) -> str:
        return "run " + "  ||  ".join(map(str, self.processes))


@dataclass(frozen=True)
class PowerFailure:
    """The machine loses its power."""

    def __str__(self) -> str:
        return "the power fails"


@dataclass(frozen=True)
class Backup:
    """Somebody copies all files aside."""

    def __str__(self) -> str:
        return "a backup is made"


@dataclass(frozen=True)
class Restore:
    """Somebody puts files of the backup back.

    `what`: `everything`; `states` and all that belongs to them; the `state and items` without the mark, the `state`
    without its items, or the `items` alone; the `journal`, which is deleted or put back. Or nothing is put back, and a
    file of a state loses its end (`cut`), has other bytes (`altered`) or is `gone`.
    """

    what: str

    def __str__(self) -> str:
        return f"restored: {self.what}"


@dataclass(frozen=True)
class Copy:
    """Somebody copies a state, with all that belongs to it."""

    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.old} is copied to {self.new}"


@dataclass(frozen=True)
class Loss:
    """The disk of a state is lost, and somebody puts its copy in its place."""

    state: str

    def __str__(self) -> str:
        return f"{self.state} is lost, and goes on from its copy"


Event = Run | PowerFailure | Backup | Restore | Copy | Loss


@dataclass(frozen=True)
class Schedule:
    """What happens, in order; `before` happened without faults, and is on disk."""

    seed: int
    family: str
    before: tuple[Verb, ...]
    events: tuple[Event, ...]

    def __str__(self) -> str:
        told = [f"schedule {self.seed} ({self.family})", *(f"    before: {verb}" for verb in self.before)]
        return "\n".join([*told, *(f"  {number + 1}. {event}" for number, event in enumerate(self.events))])


def schedule_of(seed: int, family: str | None = None) -> Schedule:
    """The schedule of a seed."""
    maker = _Maker(random.Random(f"dpwindows {seed}"))
    drawn = maker.dice.choices(list(_FAMILIES), [weight for weight, _ in _FAMILIES.values()])[0]
    family = family or drawn
    before, events = _FAMILIES[family][1](maker)
    return Schedule(seed, family, tuple(before), tuple(events))


# How many calls of a class a verb makes about: faults are drawn up to there.
_CALLS = {
    "create": {Class.ANY: 60, Class.DATA: 40, Class.SYNCS: 12, Class.NAMES: 8, Class.NOTES: 2, Class.READS: 20},
    "advance": {Class.ANY: 45, Class.DATA: 25, Class.SYNCS: 12, Class.NAMES: 8, Class.NOTES: 4, Class.READS: 20},
    "show": {Class.ANY: 12, Class.DATA: 4, Class.SYNCS: 4, Class.NAMES: 4, Class.NOTES: 4, Class.READS: 15},
    "release": {Class.ANY: 60, Class.DATA: 30, Class.SYNCS: 12, Class.NAMES: 8, Class.NOTES: 4, Class.READS: 30},
    "ledger": {Class.ANY: 30, Class.DATA: 20, Class.SYNCS: 6, Class.NAMES: 4, Class.NOTES: 2, Class.READS: 6},
}
_KILLS = ((Class.ANY, 4), (Class.SYNCS, 2), (Class.NAMES, 2), (Class.DATA, 2), (Class.NOTES, 1))
_ERRORS: tuple[tuple[int, tuple[Class, ...], tuple[int, ...]], ...] = (
    (errno.EIO, (Class.ANY, Class.DATA, Class.SYNCS, Class.NAMES, Class.READS), (1, 1, 3, -1)),
    (errno.ENOSPC, (Class.ANY, Class.DATA, Class.NAMES), (1, -1, -1)),
    (errno.EINTR, (Class.DATA, Class.READS), (1, 3)),
)


class _Maker:
    """Draws the parts of a schedule."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self._started = 0

    def chance(self, share: float) -> bool:
        """Whether something happens that does in this share of cases."""
        return self.dice.random() < share

    def process(self, *verbs: Verb, faulty: float = 0.8, keep: bool = False, pauses: int = 0) -> Process:
        """A process that meets a fault in this share of cases."""
        fault = self.fault(verbs) if self.chance(faulty) else Fault()
        begins = (_BEGINS + _LATER * self._started) * 10**9
        self._started += 1
        clock = Clock(begins)
        if self.chance(0.1):
            jump = self.dice.choice((-(10**6), -3600, -1, 1, 10**6, 10**8)) * 10**9
            clock = Clock(begins, jump, self.dice.randint(0, 30))
        stops = sorted(self.dice.randint(1, self._calls(verbs, Class.ANY)) for _ in range(pauses))
        return Process(verbs, fault, keep, clock, tuple(dict.fromkeys(stops)))

    def fault(self, verbs: tuple[Verb, ...]) -> Fault:
        """A death, an error, or a short write or read."""
        how, share = self.dice.random(), self.dice.randint(1, 99)
        if how < 0.65:
            of = self.dice.choices([of for of, _ in _KILLS], [weight for _, weight in _KILLS])[0]
            action = self.dice.choice((Action.KILL_BEFORE, Action.KILL_AFTER, Action.KILL_AFTER, Action.KILL_SHORT))
            return Fault(action, of, self.dice.randint(1, self._calls(verbs, of)), share=share)
        if how < 0.93:
            code, classes, times = self.dice.choice(_ERRORS)
            of = self.dice.choice(classes)
            at, lasts = self.dice.randint(1, self._calls(verbs, of)), self.dice.choice(times)
            return Fault(Action.FAIL, of, at, code, lasts)
        of = self.dice.choice((Class.DATA, Class.READS))
        return Fault(Action.SHORT, of, self.dice.randint(1, self._calls(verbs, of)), share=share)

    def _calls(self, verbs: tuple[Verb, ...], of: Class) -> int:
        return sum(_CALLS[verb.what][of] for verb in verbs)

    def run(self, *verbs: Verb, faulty: float = 0.8, keep: bool = False) -> Run:
        """One process by itself."""
        return Run((self.process(*verbs, faulty=faulty, keep=keep),))

    def killed(self, *verbs: Verb, of: Class) -> Run:
        """A process that is killed at a call of a class; the stream stays open between its verbs."""
        action = self.dice.choice((Action.KILL_BEFORE, Action.KILL_AFTER))
        fault = Fault(action, of, self.dice.randint(1, self._calls(verbs, of)))
        return Run((replace(self.process(*verbs, faulty=0.0, keep=True), fault=fault),))

    def stopped(self, verb: Verb, at: tuple[int, ...]) -> Run:
        """A process that is killed before it has synced so many files and folders."""
        fault = Fault(Action.KILL_BEFORE, Class.SYNCS, self.dice.choice(at))
        return Run((replace(self.process(verb, faulty=0.0), fault=fault),))

    def power(self, share: float) -> Iterator[Event]:
        """Perhaps the power fails."""
        if self.chance(share):
            yield PowerFailure()

    def output(self, stem: str, share: float = 0.4) -> str:
        """Perhaps an output."""
        return f"{stem}{self.dice.choice(('.parquet', '.csv', '.json'))}" if self.chance(share) else ""

    def advance(self, step: int, state: str = "state") -> Verb:
        """Advance to a step."""
        return Verb("advance", state, step, output=(name := self.output(f"{state}-{step}")), force=bool(name))

    def settled(self, *verbs: Verb, must_work: bool = True) -> Iterator[Event]:
        """In the end everything works; then the power fails once more, and the same is asked again."""
        again = self.chance(0.5)
        yield Run((self.process(*verbs, faulty=0.0),), must_work)
        if again:
            yield PowerFailure()
            yield Run((self.process(*verbs, faulty=0.0),), must_work)


_Made = tuple[list[Verb], list[Event]]


def _stream(maker: _Maker) -> _Made:
    """A stream that is advanced, retried and shown while processes die and the power fails."""
    ledger = maker.chance(0.4)
    before = [*([Verb("ledger")] if ledger else []), Verb("create", ledger=ledger)]
    step = maker.dice.choice((0, 1, 2))
    before += [Verb("advance", step=step)] if step else []
    events: list[Event] = []
    target = step + maker.dice.choice((1, 1, 2))
    if maker.chance(0.25):
        # What a process wrote and did not sync, the next one reads and hands out; then the power takes it away.
        events.append(maker.killed(maker.advance(target), of=Class.SYNCS))
        events.append(maker.killed(maker.advance(target), Verb("show"), of=Class.NOTES))
        events.append(PowerFailure())
    elif ledger and maker.chance(0.25):
        # The ledger may be ahead of the state.
        events += [maker.killed(maker.advance(target), of=Class.ANY), PowerFailure()]
    for _ in range(maker.dice.choice((1, 2, 2, 3, 4))):
        verbs = [maker.advance(target)]
        if maker.chance(0.3):
            verbs.append(Verb("show", output=(name := maker.output("all")), force=bool(name)))
        if maker.chance(0.2):
            verbs.insert(0, Verb("show"))
        if maker.chance(0.25):
            target = min(HORIZON, target + maker.dice.choice((1, 2)))
            verbs.append(maker.advance(target))
        events.append(maker.run(*verbs, keep=maker.chance(0.4)))
        events += maker.power(0.5)
        if maker.chance(0.3):
            target = min(HORIZON, target + 1)
    events += maker.settled(maker.advance(target), Verb("show"))
    return before, events


def _commit(maker: _Maker) -> _Made:
    """A process is killed at one of the syncs of a step, or within a page, and the power fails on what it wrote."""
    relied_upon = maker.chance(0.25)
    ledger = relied_upon or maker.chance(0.4)
    step = maker.dice.choice((1, 2, 3))
    before = [*([Verb("ledger")] if ledger else []), Verb("create", ledger=ledger)]
    before += [Verb("advance", step=number) for number in range(1, step + 1)]
    events: list[Event] = []
    if relied_upon:
        # What a process committed, and did not see on disk, the next one puts on record; then the power takes it away.
        # The fifth sync of a commit is that of the folder, after the two of a part if the step has one.
        step += 1
        events += [maker.stopped(maker.advance(step), at=at) for at in ((5, 7), (6, 7))]
        events.append(PowerFailure())
    for _ in range(maker.dice.choice((1, 2, 3))):
        step = min(HORIZON, step + 1)
        action = maker.dice.choice((Action.KILL_BEFORE, Action.KILL_AFTER))
        fault = Fault(action, Class.SYNCS, maker.dice.randint(1, 12))
        if maker.chance(0.3):
            fault = Fault(Action.KILL_SHORT, Class.DATA, maker.dice.randint(1, 30), share=maker.dice.randint(1, 99))
        events += [Run((replace(maker.process(maker.advance(step), faulty=0.0), fault=fault),)), *maker.power(0.5)]
        if maker.chance(0.6):
            # Killed again, or short of power, while it is undone or goes on from what the first one left.
            again = Verb("show") if maker.chance(0.5) else maker.advance(step)
            events += [maker.killed(again, of=Class.SYNCS), *maker.power(0.8)]
    events += maker.settled(maker.advance(step), Verb("show"))
    return before, events


def _create(maker: _Maker) -> _Made:
    """Ledgers and streams that are made while processes die."""
    ledger = maker.chance(0.7)
    there = ledger and maker.chance(0.7)
    before = [Verb("ledger")] if there else []
    events: list[Event] = []
    for _ in range(maker.dice.choice((1, 2, 2))):
        verbs = [] if there or not ledger else [Verb("ledger")]
        verbs += [Verb("create", ledger=ledger)]
        verbs += [maker.advance(1)] if maker.chance(0.5) else []
        events.append(maker.run(*verbs))
        events += maker.power(0.5)
    last = [] if there or not ledger else [Verb("ledger")]
    events += maker.settled(*last, Verb("create", ledger=ledger), maker.advance(2))
    return before, events


def _release(maker: _Maker) -> _Made:
    """Batch releases, most of them paid from a ledger, written to files."""
    ledger = maker.chance(0.85)
    before = [Verb("ledger")] if ledger else []
    if maker.chance(0.3):
        before.append(Verb("release", ledger=ledger, output="old.csv"))
    names = ("old.csv", "new.csv", "new.json", "new.parquet")
    events: list[Event] = []

    def release() -> Verb:
        request, log = maker.dice.choice((0, 0, 1)), maker.dice.choice((0, 0, 0, 1))
        output, force = maker.dice.choice(names), maker.chance(0.7)
        return Verb("release", ledger=ledger, output=output, force=force, request=request, log=log)

    for _ in range(maker.dice.choice((1, 2, 3))):
        events.append(maker.run(*(release() for _ in range(maker.dice.choice((1, 1, 2))))))
        events += maker.power(0.5)
    if maker.chance(0.15):
        # What one process stored, and did not see on disk, the next one hands out; then the power takes it away.
        one = release()
        again = maker.run(replace(one, force=True), faulty=0.0)
        events += [maker.stopped(one, at=(8, 9, 10, 11)), again, PowerFailure()]
    last = Verb("release", ledger=ledger, output=maker.dice.choice(names), force=True)
    return before, [*events, *maker.settled(last)]


def _two(maker: _Maker) -> _Made:
    """Two processes at once, switched at chosen operations; one or both may die."""
    ledger = maker.chance(0.7)
    before = [Verb("ledger")] if ledger else []
    what = maker.dice.choice(("create", "create", "advance", "advance", "show", "release", "output", "mixed"))
    create = Verb("create", ledger=ledger)
    if what in ("advance", "show", "mixed"):
        before += [create, Verb("advance", step=1)]
    release = Verb("release", ledger=ledger, output="r.csv")
    pairs: dict[str, tuple[Verb, Verb]] = {
        "create": (create, create),
        "advance": (maker.advance(2), maker.advance(maker.dice.choice((2, 3)))),
        "show": (maker.advance(2), Verb("show")),
        "release": (release, Verb("release", ledger=ledger, output="s.json", force=True)),
        "output": (release, Verb("release", ledger=ledger, output="r.csv", request=1)),
        "mixed": (maker.advance(2), release),
    }
    if what == "create" and maker.chance(0.3):
        # The first one's name is taken while it pays.
        pairs["create"] = (create, Verb("create"))
    one, other = pairs[what]
    events: list[Event] = []
    for _ in range(maker.dice.choice((1, 1, 2))):
        first = maker.process(one, faulty=0.3, pauses=maker.dice.choice((1, 1, 2, 3)))
        second = maker.process(other, faulty=0.2, pauses=maker.dice.choice((0, 1, 2)))
        events.append(Run((first, second)))
        events += maker.power(0.3)
    if what in ("release", "output"):
        return before, [*events, *maker.settled(Verb("release", ledger=ledger, output="t.parquet", force=True))]
    return before, [*events, *maker.settled(*([create] if what == "create" else []), maker.advance(3), Verb("show"))]


RESTORED = (
    *("everything", "states", "state and items", "state and items", "state", "state", "items", "items"),
    *("journal", "journal", "cut", "cut", "altered", "altered", "gone", "gone"),
)


def _backup(maker: _Maker) -> _Made:
    """A backup is put back, whole or in part, after the stream went on; with and without a ledger."""
    ledger = maker.chance(0.5)
    before = [*([Verb("ledger")] if ledger else []), Verb("create", ledger=ledger)]
    step = maker.dice.choice((0, 1, 2))
    before += [Verb("advance", step=step)] if step else []
    dead = Fault(Action.KILL_BEFORE, Class.NOTES, maker.dice.choice((3, 4, 5)))
    events: list[Event] = []
    if maker.chance(0.4):
        # A journal stays beside the state, of a step that is not closed; or of one that is, parts that nothing names.
        step += 1
        events.append(maker.killed(Verb("advance", step=step), of=maker.dice.choice((Class.SYNCS, Class.DATA))))
    events.append(Backup())
    if maker.chance(0.2):
        # A mark that one process did not see on disk, the next one relies upon; then the power takes it away.
        step += 1
        events += [maker.stopped(Verb("advance", step=step), at=(7, 9)), maker.run(Verb("show"), faulty=0.0)]
        events += [PowerFailure(), Restore("state and items")]
    else:
        for _ in range(maker.dice.choice((1, 1, 2))):
            step += 1
            if maker.chance(0.5):
                events.append(maker.run(maker.advance(step), faulty=0.2))
            else:
                events.append(Run((Process((Verb("advance", step=step), Verb("show")), dead, keep=True),)))
        events.append(Restore(maker.dice.choice(RESTORED)))
    if maker.chance(0.5):
        events.append(maker.run(maker.advance(step), Verb("show"), keep=maker.chance(0.5)))
        events += maker.power(0.4)
    events += maker.settled(maker.advance(step), maker.advance(step + 1), Verb("show"), must_work=False)
    return before, events


def _copies(maker: _Maker) -> _Made:
    """Two copies of a state under one ledger go on side by side."""
    before = [Verb("ledger"), Verb("create", ledger=True)]
    step = maker.dice.choice((0, 1))
    before += [Verb("advance", step=step)] if step else []
    events: list[Event] = []
    if maker.chance(0.3):
        events.append(maker.run(maker.advance(step + 1)))
    events.append(Copy("state", "copy"))
    turns = [("state", "copy"), ("copy", "state"), ("state", "state", "copy"), ("copy", "copy", "state", "copy")]
    for state in maker.dice.choice(turns):
        step += maker.chance(0.5)
        verb = maker.advance(step + 1, state)
        events.append(maker.run(Verb("show", state), verb, Verb("show", state), faulty=0.4, keep=maker.chance(0.7)))
        events += maker.power(0.2)
    return before, [*events, maker.run(Verb("show"), faulty=0.0), maker.run(Verb("show", "copy"), faulty=0.0)]


def _losses(maker: _Maker) -> _Made:
    """A stream with a copy, whose machine is lost once or more while it is advanced; with and without a ledger."""
    ledger = maker.chance(0.5)
    step = maker.dice.choice((0, 1, 2))
    before = [*([Verb("ledger")] if ledger else []), Verb("create", COPIED, ledger=ledger)]
    before += [Verb("advance", COPIED, step)] if step else []
    events: list[Event] = []
    for _ in range(maker.dice.choice((1, 2, 3))):
        step = min(HORIZON, step + maker.dice.choice((0, 1, 1, 2)))
        verbs = [maker.advance(max(step, 1), COPIED)]
        if maker.chance(0.3):
            verbs.append(Verb("show", COPIED))
        if maker.chance(0.4):
            events.append(maker.killed(*verbs, of=maker.dice.choice((Class.SYNCS, Class.NAMES, Class.NOTES))))
        else:
            events.append(maker.run(*verbs, keep=maker.chance(0.4)))
        events += maker.power(0.3)
        if maker.chance(0.7):
            # What was not on disk is lost on all of them.
            events += [PowerFailure(), Loss(COPIED)]
    events += maker.settled(maker.advance(max(step, 1), COPIED), Verb("show", COPIED))
    return before, events


def _others(maker: _Maker) -> _Made:
    """A stream in groups, or one whose events come late: each step's events by themselves, and one of long ago."""
    before, events = _stream(maker)
    state = maker.dice.choice((*GROUPED, *LATE))

    def renamed(verbs: Iterable[Verb]) -> tuple[Verb, ...]:
        # The ledger is for events, and groups of items are for streams that protect these.
        return tuple(replace(verb, state=state, ledger=verb.ledger and state != GROUPED_ITEMS) for verb in verbs)

    def of_state(event: Event) -> Event:
        if not isinstance(event, Run):
            return event
        return replace(event, processes=tuple(replace(one, verbs=renamed(one.verbs)) for one in event.processes))

    return list(renamed(before)), list(map(of_state, events))


def _read_only(maker: _Maker) -> _Made:
    """A disk that is mounted for reading only, from the beginning of a process or from some call on."""
    ledger = maker.chance(0.5)
    step = maker.dice.choice((1, 2))
    before = [*([Verb("ledger")] if ledger else []), Verb("create", ledger=ledger), Verb("advance", step=step)]
    events: list[Event] = []
    for _ in range(maker.dice.choice((1, 2, 3))):
        if maker.chance(0.4):
            events.append(maker.run(maker.advance(step + 1)))
        verbs = maker.dice.choice(((Verb("show"),), (maker.advance(step + 1),), (maker.advance(step), Verb("show"))))
        at = maker.dice.choice((1, 1, maker.dice.randint(1, 40)))
        fault = Fault(Action.FAIL, Class.ANY, at, errno.EROFS, -1)
        events += [Run((replace(maker.process(*verbs, faulty=0.0), fault=fault),)), *maker.power(0.3)]
    events += maker.settled(maker.advance(step + 1), Verb("show"))
    return before, events


_FAMILIES: dict[str, tuple[int, Callable[[_Maker], _Made]]] = {
    "stream": (40, _stream),
    "commit": (10, _commit),
    "create": (12, _create),
    "release": (16, _release),
    "two": (14, _two),
    "backup": (12, _backup),
    "copies": (6, _copies),
    "losses": (12, _losses),
    "others": (20, _others),
    "read-only": (8, _read_only),
}
FAMILIES = tuple(_FAMILIES)
