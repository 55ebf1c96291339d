"""A search for bad neighbours where they are too many to be compared one by one.

It starts from evenly spaced, bursty and random histories and climbs by small edits: an occurrence more, fewer, or
moved; a stretch shifted by a step; another place for the change. With heat it anneals: it takes worse pairs too, the
less of them the cooler it is. It finds pairs of neighbours, never a bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.privacy import Unit
from dpwindows.audit.losses import Power, norms_of
from dpwindows.audit.neighbours import Change, Ints, Pair, changes
from dpwindows.audit.probe import Mechanism

Floats = NDArray[np.float64]
# What changes of answers, shape (changes, sources of all groups), cost each.
Losses = Callable[[Ints], Floats]
_CLIMBERS = 6
# Most edits are so many steps beside those that neighbours differ in, or as many as these are: elsewhere few matter.
_BESIDE, _AROUND = 0.8, 32


@dataclass(frozen=True)
class Effort:
    """How a search goes on.

    From a good start it tries `batch` edits at a time and goes on from the worst pair, `rounds` times. A pair that
    costs a share `heat` less is taken in e of cases at first, and never at last. It ends at `until`, a moment of
    `time.monotonic`.
    """

    rounds: int = 80
    batch: int = 24
    heat: float = 0.0
    until: float = math.inf


@dataclass(frozen=True, eq=False)
class _State:
    """A way to differ, and two arbitrary histories that make a pair under it."""

    change: int
    log: Ints
    other: Ints


def search(
    mechanism: Mechanism,
    unit: Unit,
    power: Power,
    *,
    seed: int,
    effort: Effort = Effort(),
    losses: Losses | None = None,
    begin: Pair | None = None,
) -> tuple[Pair, int]:
    """The worst pair found, and how many pairs were tried.

    Args:
        mechanism: what is measured.
        unit: whom it protects.
        power: of the loss under the mechanism's noise.
        seed: of what is tried.
        effort: how long it goes on.
        losses: the losses, where the mechanism has not been read off.
        begin: neighbours to begin with, beside others.
    """
    ways = changes(unit, mechanism.steps, mechanism.groups, mechanism.places)
    known = losses or (lambda moved: _losses(mechanism, power, moved))
    return _Climb(mechanism, ways, known, np.random.default_rng(seed), effort).run(begin)


def _losses(mechanism: Mechanism, power: Power, moved: Ints) -> Floats:
    total = np.zeros(len(moved))
    for part in mechanism.parts:
        own = part.own(moved.astype(np.float64))
        met = np.flatnonzero(own.any(axis=(0, 1)))
        change = own[..., met] @ part.matrix[:, met].astype(np.float64).T / part.scale
        total += norms_of(power, part.law, change, part.thresholds).sum(axis=1)
    return total


@dataclass(frozen=True, eq=False)
class _Climb:
    mechanism: Mechanism
    ways: Sequence[Change]
    losses: Losses
    rng: np.random.Generator
    effort: Effort

    def run(self, begin: Pair | None) -> tuple[Pair, int]:
        starts, batch = [*([] if begin is None else self._states_of(begin)), *self._starts()], self.effort.batch
        known: list[Floats] = []
        for first in range(0, len(starts), batch):
            if not known or self._time_left():
                known.append(self._losses(starts[first : first + batch]))
        values = np.concatenate(known)
        tried = len(values)
        order = [int(i) for i in values.argsort()[::-1]]
        chosen = [*order[: _CLIMBERS - 2], *(int(i) for i in self.rng.choice(order, size=2))]
        best, best_value = starts[order[0]], float(values[order[0]])
        for start in chosen:
            state, value = starts[start], float(values[start])
            for done in range(self.effort.rounds):
                if not self._time_left():
                    break
                found = [self._edited(state) for _ in range(batch)]
                losses = self._losses(found)
                tried += len(found)
                if losses.max() >= value * self._share_taken(done):
                    state, value = found[int(losses.argmax())], float(losses.max())
                if value > best_value:
                    best, best_value = state, value
        log, neighbour = self._pair(best)
        return Pair(tuple(int(n) for n in log), tuple(int(n) for n in neighbour)), tried

    def _time_left(self) -> bool:
        return time.monotonic() < self.effort.until

    def _share_taken(self, done: int) -> float:
        """What share of its loss a pair must have left after an edit to be gone on from."""
        if not self.effort.heat:
            return 1.0
        heat = self.effort.heat * (1 - (done + 1) / self.effort.rounds)
        return 1 - heat * float(self.rng.exponential())

    def _pair(self, state: _State) -> tuple[Ints, Ints]:
        return self.ways[state.change].realise(state.log, state.other)

    def _states_of(self, pair: Pair) -> list[_State]:
        """Where two neighbours stand: once, however many ways there are to differ as they do."""
        log, neighbour = np.array(pair.log), np.array(pair.neighbour)
        for place, way in enumerate(self.ways):
            if all(map(np.array_equal, way.realise(log, neighbour), (log, neighbour))):
                return [_State(place, log, neighbour)]
        return []

    def _losses(self, states: Sequence[_State]) -> Floats:
        pairs = [self._pair(state) for state in states]
        one, other = (self.mechanism.answers(np.array(side)) for side in zip(*pairs, strict=True))
        return self.losses(other - one)

    def _starts(self) -> list[_State]:
        logs = self._logs()
        places = sorted({0, len(self.ways) // 3, len(self.ways) // 2, len(self.ways) - 1})
        nothing = np.zeros(self.mechanism.slots, dtype=np.int64)
        others = [nothing, *(logs[int(i)] for i in self.rng.choice(len(logs), size=2))]
        found = [_State(place, nothing, log) for place in places for log in logs]
        if self.ways[0].from_nothing:
            return found
        if self.ways[0].by_one:
            return [_State(place, log, nothing) for place in places for log in logs]
        return [
            *(_State(place, log, other) for place in places for log in logs for other in (*others, *self._rolled(log))),
            *(self._at_both_ends(place, log) for place in places for log in logs),
            *found,
        ]

    def _at_both_ends(self, place: int, around: Ints) -> _State:
        """As many as count at the first of the slots that may differ, or at the last: what is furthest apart there."""
        way, log, other = self.ways[place], around.copy(), np.zeros_like(around)
        log[way.low : way.high] = 0
        log[way.low] = other[way.high - 1] = self.mechanism.most
        return _State(place, log, other)

    def _rolled(self, log: Ints) -> list[Ints]:
        """A history a step later, and the same steps in the next group."""
        groups = self.mechanism.groups
        by_step = log.reshape(-1, groups)
        return [np.roll(log, groups), *([np.roll(by_step, 1, axis=1).ravel()] if groups > 1 else [])]

    def _logs(self) -> list[Ints]:
        return [placed for log in self._steps() for placed in self._placed(log)]

    def _placed(self, log: Ints) -> list[Ints]:
        """A history by step as histories by group: in one of them, in all, in each in turn, and anywhere."""
        groups, steps = self.mechanism.groups, np.arange(len(log))
        if groups == 1:
            return [log]
        found = []
        for codes in (np.zeros_like(steps), steps % groups, self.rng.integers(0, groups, size=len(log))):
            held = np.zeros((len(log), groups), dtype=np.int64)
            held[steps, codes] = log
            found.append(held.ravel())
        return [*found, np.repeat(log, groups)]

    def _steps(self) -> list[Ints]:
        steps, most = self.mechanism.steps, self.mechanism.most
        logs = [np.zeros(steps, dtype=np.int64)]
        for period in sorted({min(steps, max(1, round(1.6**power))) for power in range(10)} | {2, 3, 4}):
            log = np.zeros(steps, dtype=np.int64)
            log[int(self.rng.integers(0, period)) :: period] = 1
            logs += [log, log * most] if most > 1 else [log]
        for share in (0.1, 0.3, 0.6):
            log = (self.rng.random(steps) < share).astype(np.int64)
            logs.append(log * self.rng.integers(1, most + 1, size=steps))
        return logs

    def _edited(self, state: _State) -> _State:
        kind = self.rng.random()
        if kind < 0.15 and len(self.ways) > 1:
            place = min(max(0, state.change + int(self.rng.integers(-6, 7))), len(self.ways) - 1)
            return _State(place, state.log, state.other)
        way, around = self.ways[state.change], _AROUND * self.mechanism.groups
        if not way.by_one and self.rng.random() < 0.5:
            return _State(state.change, state.log, self._edit(state.other, way.low, way.high))
        beside = max(way.high - way.low, around) if self.rng.random() < _BESIDE else self.mechanism.slots
        return _State(state.change, self._edit(state.log, way.low - beside, way.high + beside), state.other)

    def _shift(self, furthest: int) -> int:
        """How far an occurrence is moved, in slots: by up to `furthest` steps, or to the next group."""
        groups = self.mechanism.groups
        steps: list[int] = [by * groups for by in (*range(-furthest, 0), *range(1, furthest + 1))]
        steps += [] if groups == 1 else [-1, 1]
        return steps[int(self.rng.integers(0, len(steps)))]

    def _edit(self, history: Ints, low: int, high: int) -> Ints:
        """The history with a small change at, or next to, one of these slots."""
        history, slots = history.copy(), len(history)
        low, high = max(0, low), min(slots, high)
        at, kind = int(self.rng.integers(low, high)), self.rng.random()
        held = low + np.flatnonzero(history[low:high])
        if kind < 0.3 or not len(held):
            history[at] = min(history[at] + 1, self.mechanism.most)
            return history
        nearest = int(held[abs(held - at).argmin()])
        if kind < 0.5:
            history[nearest] -= 1
        elif kind < 0.8:
            history[nearest] -= 1
            to = min(max(0, nearest + self._shift(3)), slots - 1)
            history[to] = min(history[to] + 1, self.mechanism.most)
        else:
            high = min(slots, at + int(self.rng.integers(2, max(3, slots // 2))))
            by = self._shift(1) % (high - at)
            history[at:high] = np.concatenate([history[high - by : high], history[at : high - by]])
        return history
