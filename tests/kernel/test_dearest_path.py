"""The dearest path: against every path, what is refused, and every change of two counts as a path."""

from __future__ import annotations

import itertools
import json
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.ask.privacy import ItemPerPeriod
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.dearest_path import HIGHEST, NEVER, ListedMoves, Moves, Table, dearest_path
from dpwindows.kernel.families.changes_of_two_counts import CountsAutomaton, held_changes, price_of_all, priced_changes
from dpwindows.kernel.families.held_patterns import Held
from dpwindows.kernel.families.norms import autocorrelation
from dpwindows.kernel.families.patterns import rolling_patterns_period_l2
from dpwindows.kernel.families.runs import most_signed_runs
from dpwindows.kernel.families.signed_patterns import Prices, SignedLags, TwoCounts, charges
from dpwindows.kernel.maps.filters import Filter
from dpwindows.strategies.search.fractional import integer_taps
from tests.kernel.cases import bound_of
from tests.kernel.families.test_runs import rolling_changes
from tests.kernel.families.test_sensitivity import any_taps
from tests.single_item import Ints


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


# --- Every change of two counts is a path, charged at least what it costs ---------------------------------------------


def most_of_the_paths(automaton: CountsAutomaton, change: Ints) -> int:
    """The most that a path is charged on which g is this change, by going along all of them; NEVER if there is none."""
    found, most = {int(state): 0 for state in automaton.entries}, NEVER
    for place, g in enumerate(change, 1):
        after: dict[int, int] = {}
        for moves in automaton.moves(place):
            for state, value in found.items():
                column = state - (moves.states.start or 0)
                if not 0 <= column < moves.targets.shape[1]:
                    continue
                for target, charge in zip(moves.targets[:, column], moves.charges[:, column], strict=True):
                    if charge > NEVER // 2 and value_of(automaton, int(target)) in (g, None):
                        after[int(target)] = max(after.get(int(target), NEVER), value + int(charge))
        # States before tell nothing of g, which is 0 there.
        found = {state: value for state, value in after.items() if g == 0 or value_of(automaton, state) is not None}
        if not change[place:].any():
            ends = automaton.ends(place)
            most = max([most, *(value + int(ends[state]) for state, value in found.items())])
    return most


def told_apart(automaton: CountsAutomaton) -> CountsAutomaton:
    """With states of either sign, and no place at which a sign is forbidden."""
    if automaton.single[0] <= automaton.single[1]:
        return automaton
    return replace(automaton, single=(automaton.places + 1, automaton.places + 1))


def value_of(automaton: CountsAutomaton, state: int) -> int | None:
    """What g is at the last place in a state; None in the states before."""
    counts = automaton.ticks + 2
    number = (automaton.size // counts**2 - 1) // 2
    if state < counts**2:
        return None
    f, other = divmod((state - counts**2) // number % counts**2, counts)
    return int(f > 0) - int(other > 0)


@pytest.mark.parametrize(("k", "length", "span"), [(1, 1, 3), (1, 2, 2), (1, 2, 4), (1, 3, 2), (2, 2, 2), (2, 3, 2)])
def test_every_change_of_an_item_is_a_path(k: int, length: int, span: int) -> None:
    """Every log of one item, changed in every way within a span: its path is there, and charged at least its cost."""
    changes = np.unique(np.concatenate([np.unique(part, axis=0) for part in rolling_changes(length, span, k)]), axis=0)
    # Of a change and its opposite one is enough: states stand for both, or g has the sign + where it has one.
    changes = changes[changes.any(axis=1)]
    places = changes.shape[1]
    taps = any_taps(np.random.default_rng(k + length), places + 1)
    lags, exact = SignedLags.of(taps, places), autocorrelation(taps)
    lag = np.array([*exact, *([0] * places)])[np.abs(np.subtract.outer(np.arange(places), np.arange(places)))]
    charged = charges(lags, 2, 4)
    single = (span, length) if 1 < span <= length else (1, 0)
    runs = min(most_signed_runs(k, length, span), places)
    known = TwoCounts(k, length, places, runs, single, False)
    for change in changes:
        cost = int(change @ lag @ change)
        for prices in (Prices(0, 0), Prices(lags.values[0] // 3, lags.values[0] // 2)):
            automaton = told_apart(priced_changes(lags, charged, known, prices))
            paths = (most_of_the_paths(automaton, g) for g in (change, -change))
            assert max(paths) + price_of_all(known, prices) >= cost
        if k == 1:
            held = told_apart(held_changes(lags, charged, Held(span, length, places)))
            assert max(most_of_the_paths(held, g) for g in (change, -change)) >= cost


@pytest.mark.parametrize("seed", range(4))
def test_mirror_images_are_charged_alike(seed: int) -> None:
    """States of + stand for those of - where no place has one sign."""
    rng = np.random.default_rng(seed)
    length, span = int(rng.integers(1, 5)), int(rng.integers(1, 7))
    lags = SignedLags.of(any_taps(rng, 9), length + span - 1)
    charged = charges(lags, 3, 5)
    held = held_changes(lags, charged, Held(span, length, length + span - 1))
    assert held.dearest(length) == told_apart(held).dearest(length)
    known = TwoCounts(2, length, length + span - 1, 4, (1, 0), seed % 2 == 0)
    priced = priced_changes(lags, charged, known, Prices(lags.values[0] // 5, lags.values[0] // 3))
    assert priced.dearest(length) == told_apart(priced).dearest(length)


def test_prices_are_not_negative() -> None:
    lags = SignedLags.of((5, -2), 4)
    known = TwoCounts(2, 2, 4, 3, (1, 0), False)
    with pytest.raises(ValueError, match="negative"):
        priced_changes(lags, charges(lags, 2, 2), known, Prices(-1, 0))


# --- Bounds found before there were tables ----------------------------------------------------------------------------

FOUND = json.loads((Path(__file__).parents[1] / "data" / "rolling-period-bounds.json").read_text())


@pytest.mark.quick(1)
@pytest.mark.parametrize("part", range(6))
def test_no_bound_is_looser_than_it_was(part: int) -> None:
    """Rolling counts of an item changed within a period: bounds of a dynamic programme that no check came after."""
    for alpha, decay, length, span, steps, k, bound in FOUND[part::6]:
        taps = integer_taps(alpha, decay, 365, 20)
        assert (
            bound_of(
                rolling_patterns_period_l2, Rolling(length), Filter(taps), steps, (k,), ItemPerPeriod(span or steps)
            )
            <= bound
        )
