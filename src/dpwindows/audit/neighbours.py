"""All neighbouring logs on a short horizon, unit by unit.

Answers add up over items and neighbours differ in one item, so the history of that item is all there is to know: its
occurrences in steps 1..T. A unit of privacy is the list of the ways that two histories may differ in (`changes`);
enumeration, search and pictures work on these and know no unit by name.

Occurrences of a step beyond the largest threshold K change no answer, since "at least k" asks for min(k, sum) only. So
histories with 0..K occurrences a step stand for all: capping both histories of a pair at K leaves their answers as they
are, and leaves them neighbours, or makes them equal.

**With groups** a history has a slot for every group of every step: step by step, and in a step group by group. An event
may be in any slot, so that neighbours may differ in the group of an event, and in all groups of an item. The events of
a step are at one moment, and the order of the lists decides where a rule asks which group an item was first in. Other
orders lead to groups that fewer events lead to as well, unless a total counts the events that a limit leaves out of
groups (`max_groups` with totals): there, orders within a step are not enumerated.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.groups import Grouping
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.errors import InputError

Ints = NDArray[np.int64]
History = tuple[int, ...]


@dataclass(frozen=True)
class Pair:
    """Two neighbouring histories of one item: its occurrences in steps 1..T, in each step by group if there are."""

    log: History
    neighbour: History

    def by_group(self, grouping: Grouping | None) -> dict[str, Pair]:
        """The pair in each group by the group's name, by step; without groups in which both are empty."""
        if grouping is None:
            return {"": self}
        values = grouping.values_of(grouping.levels[0])
        names = [
            ", ".join(f"{name}={one}" for name, one in zip(grouping.names, value, strict=True)) for value in values
        ]
        parts = [Pair(self.log[code :: len(names)], self.neighbour[code :: len(names)]) for code in range(len(names))]
        return {
            name: part for name, part in zip(names, parts, strict=True) if any(part.log) or any(part.neighbour)
        } or {names[0]: parts[0]}

    def to_dict(self, grouping: Grouping | None) -> dict[str, Any]:
        """Both histories as plain values; with groups, those of each group that either is in."""
        parts = {
            name: {"log": list(one.log), "neighbour": list(one.neighbour)}
            for name, one in self.by_group(grouping).items()
        }
        return parts[""] if grouping is None else {"groups": parts}

    def picture(self, width: int = 100) -> str:
        """Both histories as lines of occurrences by step, a dot for none; wrapped to `width` characters."""
        digits = max(len(str(value)) for value in (*self.log, *self.neighbour))
        column = digits if digits == 1 else digits + 1
        fitting = max(1, (width - 12) // column)
        return "\n".join(self._lines(start, fitting, column) for start in range(0, len(self.log), fitting))

    def _lines(self, start: int, fitting: int, column: int) -> str:
        def line(values: History) -> str:
            return "".join(f"{value or '.':>{column}}" for value in values[start : start + fitting])

        marks = tuple(one != other for one, other in zip(self.log, self.neighbour, strict=True))
        changed = "".join(f"{'^' if mark else '':>{column}}" for mark in marks[start : start + fitting]).rstrip()
        lines = (f"{'log':<12}{line(self.log)}", f"{'neighbour':<12}{line(self.neighbour)}")
        return "\n".join((f"from step {start + 1}", *lines, f"{'changed':<12}{changed}"))


@dataclass(frozen=True)
class Change:
    """One way in which two histories may differ: in steps low+1..high only (with groups, in these slots).

    There the neighbour has anything, or (`by_one`, where high = low + 1) one occurrence more. Elsewhere both agree, and
    are anything, or (`from_nothing`) the log is empty.
    """

    low: int
    high: int
    by_one: bool = False
    from_nothing: bool = False

    def realise(self, log: Ints, other: Ints) -> tuple[Ints, Ints]:
        """The pair that two arbitrary histories, shape (..., T), make under this change."""
        log = np.zeros_like(log) if self.from_nothing else log
        neighbour = log.copy()
        inside = np.s_[..., self.low : self.high]
        neighbour[inside] = log[inside] + 1 if self.by_one else other[inside]
        return log, neighbour


def changes(unit: Unit, steps: int, groups: int = 1, places: Sequence[int] | None = None) -> list[Change]:
    """Every way that two neighbouring histories of `steps` steps may differ in, up to swapping them.

    With `places` they are histories in these steps of a longer horizon, in ascending order, and `steps` is how many.

    Raises:
        InputError: the audit does not know this unit.
    """
    match unit:
        case EventLevel():
            return [Change(slot, slot + 1, by_one=True) for slot in range(steps * groups)]
        case ItemAddRemove():
            return [Change(0, steps * groups, from_nothing=True)]
        case ItemLevel():
            return [Change(0, steps * groups)]
        case ItemPerPeriod(steps=period):
            at = range(steps) if places is None else places
            # The first of the places that reach as far is the widest.
            widest = {bisect_left(at, at[low] + period): low for low in reversed(range(steps))}
            return [Change(low * groups, high * groups) for high, low in reversed(widest.items())]
    raise InputError(f"the audit does not know the neighbours of unit {unit.name!r}")


@dataclass(frozen=True)
class Histories:
    """All histories with 0..most occurrences in each slot, numbered: slot i is a digit to base most + 1.

    Without groups a slot is a step.
    """

    steps: int
    most: int
    groups: int = 1
    places: tuple[int, ...] | None = None

    @property
    def slots(self) -> int:
        """How many numbers a history is."""
        return self.steps * self.groups

    @property
    def base(self) -> int:
        """Values that one step can have."""
        return self.most + 1

    @property
    def count(self) -> int:
        """How many histories there are."""
        return int(self.base**self.slots)

    def read(self, codes: Ints) -> Ints:
        """The histories with these numbers, shape (len(codes), slots)."""
        return codes[:, None] // self.base ** np.arange(self.slots) % self.base

    def count_pairs(self, unit: Unit, distinct: int) -> int:
        """At most how many pairs `pairs` yields."""
        return sum(self._count(change, distinct) for change in self._changes(unit))

    def _changes(self, unit: Unit) -> list[Change]:
        return changes(unit, self.steps, self.groups, self.places)

    def _count(self, change: Change, distinct: int) -> int:
        if change.from_nothing or change.by_one:
            return self.count
        inside = self.base ** (change.high - change.low)
        inside = min(inside, distinct) if inside == self.count else inside
        outside = self.base ** (self.slots - change.high + change.low)
        return int(outside * inside * (inside - 1) // 2)

    def pairs(self, unit: Unit, distinct: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Numbers of all neighbouring histories, one order of each pair, in pieces.

        `distinct` holds one history for each different set of answers; where a whole history may be changed into any
        other, only these are compared.
        """
        for change in self._changes(unit):
            yield from self._pairs(change, distinct)

    def _pairs(self, change: Change, distinct: Ints) -> Iterator[tuple[Ints, Ints]]:
        weight = self.base**change.low
        if change.by_one:
            codes = np.arange(self.count)
            codes = codes[codes // weight % self.base < self.most]
            yield codes, codes + weight
            return
        if change.from_nothing:
            yield np.zeros(self.count, dtype=np.int64), np.arange(self.count)
            return
        inside = np.arange(self.base ** (change.high - change.low))
        inside = distinct if len(inside) == self.count else inside
        outside = (
            np.arange(weight) + (np.arange(self.base ** (self.slots - change.high)) * self.base**change.high)[:, None]
        )
        for position, value in enumerate(inside[:-1]):
            others = inside[position + 1 :]
            first = np.repeat(outside.ravel() + value * weight, len(others))
            yield first, (outside.reshape(-1, 1) + others * weight).ravel()
