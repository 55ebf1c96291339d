"""Tables that prove a bound: against every path, what a check refuses, and every change of two counts as a path."""

from __future__ import annotations

import itertools
import json
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.kernel.bounds.changes_of_two_counts import CountsAutomaton, held_changes, price_of_all, priced_changes
from dpwindows.kernel.bounds.held_patterns import Held
from dpwindows.kernel.bounds.pattern_sensitivity import rolling_patterns_period_l2
from dpwindows.kernel.bounds.period_sensitivity import most_signed_runs
from dpwindows.kernel.bounds.potentials import HIGHEST, NEVER, Automaton, Check, Moves, Table
from dpwindows.kernel.bounds.sensitivity import autocorrelation
from dpwindows.kernel.bounds.signed_patterns import Prices, SignedLags, TwoCounts, charges
from dpwindows.kernel.untrusted import pattern_search
from dpwindows.kernel.untrusted.pattern_search import walk
from dpwindows.strategies.search.fractional import integer_taps
from tests.kernel.bounds.test_period_sensitivity import rolling_changes
from tests.kernel.bounds.test_sensitivity import any_taps
from tests.single_item import Ints


@dataclass(frozen=True)
class Drawn:
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

    def most(self) -> int:
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


def tables(automaton: Automaton) -> list[Table]:
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
def test_the_least_table_is_accepted_and_is_the_most_any_path_is_charged(seed: int) -> None:
    automaton = Drawn.of(seed)
    check = Check(automaton)
    for values in tables(automaton)[1:]:
        check.earlier(values)
    assert check.bound() == automaton.most()
    walked = Check(automaton)
    assert walk(automaton, period=1, tick=2, check=walked) == walked.bound() == automaton.most()


@pytest.mark.parametrize("seed", range(6))
def test_no_entry_of_the_least_table_can_be_lower(seed: int) -> None:
    automaton = Drawn.of(seed)
    least = tables(automaton)
    for depth, state in itertools.product(range(1, automaton.places + 1), range(len(automaton.finals))):
        check = Check(automaton)
        for values in least[1:depth]:
            check.earlier(values)
        lower = least[depth].copy()
        lower[state] -= 1
        with pytest.raises(ValueError, match="more than the table allows"):
            check.earlier(lower)


def test_any_higher_table_is_accepted() -> None:
    automaton = Drawn.of(1)
    check = Check(automaton)
    for depth, values in enumerate(tables(automaton)[1:]):
        check.earlier(values + 7 * depth)
    assert check.bound() >= automaton.most()


@pytest.mark.parametrize("seed", range(12))
def test_repeated_cycles_bound_every_path(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_search, "SETTLING", 1)
    monkeypatch.setattr(pattern_search, "CYCLE", 1)
    monkeypatch.setattr(pattern_search, "_SHORT", 1)
    automaton = Drawn.of(seed, places=200)
    check = Check(automaton)
    found = walk(automaton, period=4, tick=2, check=check)
    assert check.bound() == found >= max(tables(automaton)[-1][automaton.entries].max(), 0)


def after_a_cycle(automaton: Drawn, places: int) -> tuple[Check, list[Table]]:
    check, least = Check(automaton), tables(automaton)
    check.mark()
    for values in least[1 : places + 1]:
        check.earlier(values)
    return check, least


def test_a_cycle_that_rises_more_than_is_claimed_is_refused() -> None:
    automaton = Drawn.of(3, places=40)
    least = tables(automaton)
    rise = max(0, int((least[4] - least[0]).max()))
    assert rise > 0
    check, _ = after_a_cycle(automaton, 4)
    with pytest.raises(ValueError, match="rose by more"):
        check.repeated(3, rise - 1)
    check.repeated(9, rise)
    assert check.bound() >= max(least[-1][automaton.entries].max(), 0)


def test_a_cycle_of_other_places_is_refused() -> None:
    check, _ = after_a_cycle(Drawn.of(3, places=40), 3)
    with pytest.raises(ValueError, match="not like"):
        check.repeated(2, HIGHEST // 4)


@pytest.mark.parametrize(("times", "rise"), [(0, 0), (10, 100), (1, -1), (2, HIGHEST)])
def test_a_cycle_beyond_the_places_or_the_range_is_refused(times: int, rise: int) -> None:
    check, _ = after_a_cycle(Drawn.of(3, places=40), 4)
    with pytest.raises(ValueError, match="a cycle must"):
        check.repeated(times, rise)


def test_values_that_might_wrap_are_refused() -> None:
    automaton = Drawn.of(0)
    lowest = Drawn(6, automaton.targets, np.full_like(automaton.charges, 4 * NEVER), automaton.finals)
    for value in (HIGHEST + 1, NEVER - 1):
        with pytest.raises(ValueError, match="might wrap"):
            Check(lowest).earlier(np.full(4, value))
    for charge in (HIGHEST + 1, 4 * NEVER - 1):
        wild = Drawn(automaton.places, automaton.targets, np.full_like(automaton.charges, charge), automaton.finals)
        with pytest.raises(ValueError, match="might wrap"):
            Check(wild).earlier(np.full(4, HIGHEST))


def test_a_table_of_rounded_numbers_is_refused() -> None:
    """Compared as floating-point numbers, 2^59 + 1 is no more than 2^59."""
    charge = (1 << 59) + 1
    automaton = Drawn(1, np.zeros((1, 1, 2), dtype=np.intp), np.full((1, 1, 2), charge), np.zeros(2, dtype=np.int64))
    for table in (np.full(2, float(1 << 59)), np.full(1, charge), np.full((2, 1), charge)):
        with pytest.raises(ValueError, match="one 64-bit integer for every state"):
            Check(automaton).earlier(table)


def test_a_table_that_stops_early_is_refused() -> None:
    check, _ = after_a_cycle(Drawn.of(0), 4)
    with pytest.raises(ValueError, match="2 places before the first"):
        check.bound()


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
    assert walk(held, period=length) == walk(told_apart(held), period=length)
    known = TwoCounts(2, length, length + span - 1, 4, (1, 0), seed % 2 == 0)
    priced = priced_changes(lags, charged, known, Prices(lags.values[0] // 5, lags.values[0] // 3))
    assert walk(priced, period=length) == walk(told_apart(priced), period=length)


def test_prices_are_not_negative() -> None:
    lags = SignedLags.of((5, -2), 4)
    known = TwoCounts(2, 2, 4, 3, (1, 0), False)
    with pytest.raises(ValueError, match="negative"):
        priced_changes(lags, charges(lags, 2, 2), known, Prices(-1, 0))


# --- Bounds found before there were tables ----------------------------------------------------------------------------

FOUND = json.loads((Path(__file__).parents[2] / "data" / "rolling-period-bounds.json").read_text())


@pytest.mark.quick(1)
@pytest.mark.parametrize("part", range(6))
def test_no_bound_is_looser_than_it_was(part: int) -> None:
    """Rolling counts of an item changed within a period: bounds of a dynamic programme that no check came after."""
    for alpha, decay, length, span, steps, k, bound in FOUND[part::6]:
        taps = integer_taps(alpha, decay, 365, 20)
        assert rolling_patterns_period_l2(taps, length, span or steps, steps, (k,)) <= bound
