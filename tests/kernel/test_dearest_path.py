"""The dearest path: against every path, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.kernel.dearest_path import HIGHEST, NEVER, ListedMoves, Moves, Table, dearest_path


@dataclass(frozen=True)
class Drawn(ListedMoves):
    """An automaton drawn at random: so many kinds of place, one after another."""

    places: int
    targets: NDArray[np.intp]
    charges: Table
    finals: Table

    @classmethod
    def of(cls, seed: int, places: int = 6, states: int = 4, kinds: int = 2) -> Drawn:
        rng = np.random.default_rng(seed)
        shape = kinds, 3, states
        return cls(places, rng.integers(0, states, shape), rng.integers(-50, 50, shape), rng.integers(-50, 50, states))

    @property
    def entries(self) -> NDArray[np.intp]:
        return np.array([0, 1])

    def kind(self, place: int) -> Hashable:
        return place % len(self.targets)

    def moves(self, place: int) -> tuple[Moves, ...]:
        kind, half = place % len(self.targets), len(self.finals) // 2
        parts = slice(0, half), slice(half, None)
        return tuple(Moves(part, self.targets[kind][:, part], self.charges[kind][:, part]) for part in parts)

    def ends(self, place: int) -> Table:
        return self.finals

    def dearest(self) -> int:
        """The most that any path is charged, path by path."""
        found = 0
        for length in range(self.places + 1):
            for entry, chosen in itertools.product(self.entries, itertools.product(range(3), repeat=length)):
                state, total = int(entry), 0
                for place, move in enumerate(chosen, 1):
                    kind = place % len(self.targets)
                    total += int(self.charges[kind, move, state])
                    state = int(self.targets[kind, move, state])
                found = max(found, total + int(self.finals[state]))
        return found


def tables(automaton: ListedMoves) -> list[Table]:
    """The least table, the last place first, in plain loops."""
    found = [automaton.ends(automaton.places)]
    for place in range(automaton.places, 0, -1):
        values = automaton.ends(place - 1).copy()
        for moves in automaton.moves(place):
            for i, state in enumerate(range(*moves.states.indices(len(values)))):
                for target, charge in zip(moves.targets[:, i], moves.charges[:, i], strict=True):
                    values[state] = max(values[state], found[-1][target] + charge)
        found.append(values)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_few_places_are_charged_the_most_that_any_path_is(seed: int) -> None:
    automaton = Drawn.of(seed)
    assert dearest_path(automaton, settling=8, cycle=8, tick=2) == automaton.dearest()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cycle", [1, 3])
def test_many_places_that_are_alike_bound_every_path(seed: int, cycle: int) -> None:
    automaton = Drawn.of(seed, places=200)
    least = [int(one[automaton.entries].max()) for one in tables(automaton)]
    bound = dearest_path(automaton, settling=4, cycle=4 * cycle, tick=2)
    assert bound >= max(least[-1], 0)
    # A path is charged at most 49 at a place: what it begins and ends with is all that may be added.
    assert bound <= max(least[-1], 0) + 2 * 50 * 200 // (4 * cycle)


@dataclass(frozen=True)
class Paid(Drawn):
    """One that pays at its first places, up to this one, more than at all others."""

    until: int = 0

    def kind(self, place: int) -> Hashable:
        return place % len(self.targets), place <= self.until

    def moves(self, place: int) -> tuple[Moves, ...]:
        more = 1000 if place <= self.until else 0
        return tuple(replace(some, charges=some.charges + more) for some in super().moves(place))


@pytest.mark.parametrize("until", [1, 50, 100, 101, 160])
def test_places_of_another_kind_are_gone_through(until: int) -> None:
    drawn = Drawn.of(5, places=200)
    paid = Paid(200, drawn.targets, drawn.charges, drawn.finals, until)
    bound = dearest_path(paid, settling=4, cycle=4, tick=2)
    assert bound >= tables(paid)[-1][paid.entries].max() >= 1000 * until - 50 * 200


def test_values_that_might_wrap_are_refused() -> None:
    drawn = Drawn.of(0)
    for charge in (HIGHEST + 1, 4 * NEVER - 1):
        wild = replace(drawn, charges=np.full_like(drawn.charges, charge))
        with pytest.raises(ValueError, match="a charge"):
            dearest_path(wild, settling=4, cycle=4)
    for final in (HIGHEST + 1, NEVER - 1):
        with pytest.raises(ValueError, match="a value"):
            dearest_path(replace(drawn, finals=np.full_like(drawn.finals, final)), settling=4, cycle=4)
    with pytest.raises(ValueError, match="a value"):
        dearest_path(replace(drawn, charges=np.full_like(drawn.charges, HIGHEST // 5)), settling=4, cycle=4)
    far = replace(drawn, places=1 << 12, charges=np.full_like(drawn.charges, HIGHEST >> 8))
    with pytest.raises(ValueError, match="rise so far"):
        dearest_path(far, settling=4, cycle=4, tick=2)
    for cycle in (0, 3):
        with pytest.raises(ValueError, match="none of ticks"):
            dearest_path(drawn, settling=4, cycle=cycle, tick=2)
