"""An upper bound on what any path of an automaton is charged: found by anybody, checked here.

What a neighbour can do is written as an automaton: a state for each thing that must be remembered, and at each place
the moves out of each state, with what each is charged. A path is entered before the first place and ends after some
place, where that is allowed. The most that a path can be charged takes a search; that no path is charged more takes a
table:

    V(state, place - 1) >= charge(state, place, move) + V(next state, place)    for every state, place and move,
    V(state, place)     >= what a path is charged for ending there              wherever it may end.

Then every path is charged at most the V it is entered at: by the first line, V falls along a path by no less than what
it is charged, and by the second, what is left of it pays for the end. So `bound` is an upper bound whatever the table
is and wherever it comes from, from floating-point numbers or from a search that goes wrong.

Tables are handed over from the last place to the first. Where places are alike, many of them are checked at once
(`Check.repeated`). All values are 64-bit integers, and those handed over are refused outside a range in which no sum
wraps.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.int64]

# Values and charges lie between them, or a charge up to four times as low: for a move that is not allowed.
HIGHEST, NEVER = 1 << 60, -(1 << 60)


@dataclass(frozen=True)
class Moves:
    """The moves out of some states: where each leads and what it is charged, both of shape (moves, states)."""

    states: slice
    targets: NDArray[np.intp]
    charges: Table


class Automaton(Protocol):
    """What one neighbour can do at the places 1..`places`, in states 0, 1, ...

    All moves there are must be named; a move that is not there may be given a charge of `NEVER` or less.
    """

    @property
    def places(self) -> int:
        """How many places there are."""
        ...

    @property
    def entries(self) -> NDArray[np.intp]:
        """The states that a path may begin in, before the first place: shape (entries,)."""
        ...

    def kind(self, place: int) -> Hashable:
        """What tells one place's moves and ends from another's: equal for places where they are the same."""
        ...

    def moves(self, place: int) -> Iterable[Moves]:
        """The moves into a place, out of every state."""
        ...

    def ends(self, place: int) -> Table:
        """What a path is charged for ending after a place (or before the first), for every state."""
        ...


class Check:
    """A table checked place by place; every violation of the two inequalities is a `ValueError`."""

    def __init__(self, automaton: Automaton) -> None:
        # After the last place a table may as well be what ending there is charged.
        self._automaton, self._place = automaton, automaton.places
        self._values = self._marked = self._ended(automaton.ends(automaton.places))
        self._marked_at = self._place

    def earlier(self, values: Table) -> None:
        """Check the values one place earlier, shape (states,), in 64-bit integers.

        Raises:
            ValueError: they violate an inequality, or a sum of them might wrap.
        """
        kept = np.array(values)
        if kept.dtype != np.int64 or kept.shape != self._values.shape:
            raise ValueError("a table holds one 64-bit integer for every state")
        for moves in self._automaton.moves(self._place):
            if int(moves.charges.min()) < 4 * NEVER or int(moves.charges.max()) > HIGHEST:
                raise ValueError("a charge is so large that a sum might wrap")
            if not (kept[moves.states] >= (self._values[moves.targets] + moves.charges).max(axis=0)).all():
                raise ValueError(f"a move at place {self._place} is charged more than the table allows")
        self._place -= 1
        self._values = self._ended(kept)

    def mark(self) -> None:
        """Begin a cycle of places here."""
        self._marked, self._marked_at = self._values, self._place

    def repeated(self, times: int, rise: int) -> None:
        """Go through the places since the mark so many times more, towards the first, with values `rise` higher a time.

        Proof. Since the mark values rose by at most `rise >= 0`, and the places to come are of the same kinds in the
        same order. Raising all values of a table by a number raises by as much what the first inequality asks of the
        place before, and only eases the second. So the tables of the cycle, `rise` higher for every time, satisfy both.
        QED.
        """
        cycle = self._marked_at - self._place
        times, rise = operator.index(times), operator.index(rise)
        if times < 1 or cycle < 1 or self._place < cycle * times or not 0 <= rise * times <= HIGHEST:
            raise ValueError("a cycle must hold places, be repeated within them, and neither fall nor rise too far")
        if not (self._values <= self._marked + rise).all():
            raise ValueError("the values rose by more than is claimed for every cycle")
        kind = self._automaton.kind
        if any(kind(place) != kind(place + cycle) for place in range(self._place, self._place - cycle * times, -1)):
            raise ValueError("a place is not like the one a cycle later")
        self._place -= cycle * times
        self._values = self._ended(self._values + times * rise)

    def bound(self) -> int:
        """The most that any path is charged; at least 0, for the path that does nothing.

        Raises:
            ValueError: places before the first one checked are left.
        """
        if self._place:
            raise ValueError(f"the table ends {self._place} places before the first")
        return max(0, int(self._values[self._automaton.entries].max()))

    def _ended(self, values: Table) -> Table:
        if int(values.min()) < NEVER or int(values.max()) > HIGHEST:
            raise ValueError("a value is so large that a sum might wrap")
        if not (values >= self._automaton.ends(self._place)).all():
            raise ValueError(f"a path may end after place {self._place} for more than the table allows")
        return values
