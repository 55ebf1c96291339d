"""The largest charge of any path through an automaton: by dynamic programming, in integers.

The automaton stands for what a neighbour can do. It has a state for each thing that must be remembered, and at each
place moves out of each state, each with a charge. A path is entered before the first place and ends after some place,
where that is allowed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.int64]

# Values and charges lie between them, or a charge up to four times as low: for a move that is not allowed.
HIGHEST, NEVER = 1 << 60, -(1 << 60)


class Automaton(ABC):
    """What one neighbour can do at the places 1..`places`, and what is charged for it; a table has a value a state."""

    places: int

    def kind(self, place: int) -> Hashable:
        """What tells one place's step from another's: equal for places where it is the same."""
        return 0

    @property
    @abstractmethod
    def last(self) -> Table:
        """What is charged after the last place, for every state."""

    @abstractmethod
    def before(self, place: int, values: Table) -> Table:
        """The most that is charged from a place on, for every state before it, from what is charged after it.

        A table that is larger everywhere must make this one larger, and one that is larger by r everywhere, r >= 0,
        must make it larger by at most r.
        """

    @abstractmethod
    def largest_entry(self, values: Table) -> int:
        """The most over all states that a path may begin in."""


def dearest_path(automaton: Automaton, *, settling: int, cycle: int, tick: int = 1) -> int:
    """An upper bound on what any path is charged, at least 0, for the path that does nothing; exact for few places.

    Args:
        automaton: what paths there are.
        settling: the places after which the growth by a cycle is taken for settled; every choice gives a bound.
        cycle: the places of one, a multiple of `tick`.
        tick: how many places apart places of one kind are, where they are alike.

    Proof. Let V(t) be a table of at least what a path in each state after place t is charged from there on. Tables are
    computed from the last place to the first, and a path is charged at most the V(0) that it is entered at. *Where
    places are alike.* Let V rise by at most r >= 0 over a cycle of q places, `V(t-q) <= V(t) + r`, and let each of the
    n q places up to t-q be of the kind of the place q later. Then V(t-2q), made of V(t-q) as V(t-q) is of V(t), is at
    most `V(t-q) + r`, and so on: `V(t-q-nq) <= V(t-q) + n r`, which is taken for it. QED.

    Raises:
        ValueError: a value or a charge is so large that a sum might wrap, or the cycle is no multiple of the tick.
    """
    if cycle < 1 or cycle % tick:
        raise ValueError(f"a cycle of {cycle} places is none of ticks of {tick}")
    kinds = [automaton.kind(place) for place in range(1, automaton.places + 1)]
    alike = _alike(kinds, tick)
    place, marked_at = automaton.places, 0
    values = marked = _within(automaton.last)
    while place:
        if not marked_at and alike[place] >= settling + 2 * cycle:
            marked_at = place - settling
        if place == marked_at:
            marked = values
        if marked_at and place == marked_at - cycle:
            times, rise = alike[place] // cycle, max(0, int((values - marked).max()))
            if times * rise > HIGHEST:
                raise ValueError("values rise so far that a sum might wrap")
            values, place = _within(values + times * rise), place - times * cycle
        else:
            values, place = _within(automaton.before(place, values)), place - 1
    return max(0, automaton.largest_entry(values))


def _alike(kinds: Sequence[Hashable], tick: int) -> list[int]:
    """For each place, how many places from it towards the first are each like the one a tick later."""
    counts = [0] * (len(kinds) + 1)
    for place in range(1, len(kinds) + 1 - tick):
        counts[place] = counts[place - 1] + 1 if kinds[place - 1] == kinds[place - 1 + tick] else 0
    return counts


def _within(values: Table) -> Table:
    if int(values.min()) < NEVER or int(values.max()) > HIGHEST:
        raise ValueError("a value is so large that a sum might wrap")
    return values


# --- Automata whose moves are listed ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moves:
    """The moves out of some states: where each leads and what it is charged, both of shape (moves, states)."""

    states: slice
    targets: NDArray[np.intp]
    charges: Table


class ListedMoves(Automaton):
    """An automaton in states 0, 1, ... with a list of all moves; a move that is not there may cost `NEVER` or less.

    A path is charged the most of ending before a place, where it may, and of every move with what it leads to. Moves
    and ends are the same at places of one kind.
    """

    @property
    @abstractmethod
    def entries(self) -> NDArray[np.intp]:
        """The states that a path may begin in, before the first place: shape (entries,)."""

    @abstractmethod
    def moves(self, place: int) -> Sequence[Moves]:
        """The moves into a place, out of every state."""

    @abstractmethod
    def ends(self, place: int) -> Table:
        """What a path is charged for ending after a place (or before the first), for every state."""

    @property
    def last(self) -> Table:
        """The ends of the last place."""
        return self.ends(self.places)

    def before(self, place: int, values: Table) -> Table:
        """The most of what all moves are charged with what they lead to, and of the ends.

        Raises:
            ValueError: a charge is so large that a sum might wrap.
        """
        if (kind := self.kind(place)) not in self._known:
            self._known[kind] = self.moves(place)
            for some in self._known[kind]:
                if int(some.charges.min()) < 4 * NEVER or int(some.charges.max()) > HIGHEST:
                    raise ValueError("a charge is so large that a sum might wrap")
        before = self.ends(place - 1).copy()
        for some in self._known[kind]:
            reached = values.take(some.targets)
            reached += some.charges
            np.maximum(before[some.states], np.maximum.reduce(reached, axis=0), out=before[some.states])
        return before

    def largest_entry(self, values: Table) -> int:
        """The most over all entries."""
        return int(values[self.entries].max())

    @cached_property
    def _known(self) -> dict[Hashable, Sequence[Moves]]:
        return {}
