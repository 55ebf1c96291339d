"""Changes of two counts: each is a path, charged at least what it costs, and starts and stops have a price."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from dpwindows.ask.privacy import ItemLevel
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.dearest_path import NEVER
from dpwindows.kernel.families import changes_of_two_counts
from dpwindows.kernel.families.changes_of_two_counts import (
    CountsAutomaton,
    Held,
    held_changes,
    price_of_all,
    priced_changes,
    two_runs_bound,
)
from dpwindows.kernel.families.norms import autocorrelation
from dpwindows.kernel.families.patterns import held_bound, priced_bound, rolling_patterns_period_l2
from dpwindows.kernel.families.runs import most_signed_runs
from dpwindows.kernel.families.signed_patterns import Prices, SignedLags, TwoCounts, charges
from dpwindows.kernel.maps.filters import Filter
from dpwindows.strategies.search.fractional import integer_taps
from tests.kernel.cases import bound_of
from tests.kernel.item_changes import costs, item_counts, rolling_changes
from tests.kernel.made_up import any_taps, some_taps
from tests.single_item import Ints


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


def comb_counts(k: int, length: int, places: int, phase: int) -> Ints:
    """Whether an item is counted that occurs at even spaces, k - 1/2 times in a window: about half of the time."""
    per_phase = 24 * (2 * k - 1)
    marks = np.arange(phase * 2 * length, per_phase * places, 48 * length) // per_phase
    log = np.bincount(marks, minlength=places)[:places]
    sums = np.cumsum(np.pad(log, (length, 0)))
    return np.asarray(sums[length:] - sums[:-length] >= k, dtype=np.int64)


@pytest.mark.quick(1)
@pytest.mark.parametrize(("k", "length", "places"), [(2, 5, 150), (3, 8, 240), (3, 12, 360), (4, 8, 240)])
def test_starts_and_stops_are_charged_for_all_k_minus_one_occurrences(k: int, length: int, places: int) -> None:
    """A filter that sees changes only, and two items as changeable as items can be: the best price leaves no room.

    The inequalities behind the price of starts hold with equality on average for such an item, for its starts and for
    its stops, and so for two items four times; `4 (k-1) N` is reached, `3 (k-1) N` is exceeded.
    """
    unit = 1 << 10
    taps = (unit, -unit)
    counts = [comb_counts(k, length, places, phase) for phase in range(24)]
    true = costs(taps, np.array([one - other for one, other in itertools.combinations(counts, 2)])).max()
    lags = SignedLags.of(taps, places)
    assert lags.shift == 0
    known = TwoCounts(k, length, places, min(most_signed_runs(k, length, places), places), (1, 0), True)
    prices = [Prices(2 * unit**2 * part // (16 * length), 0) for part in range(33)]
    least = min(priced_bound(lags, known, 3, 3, price) for price in prices)
    assert true <= least <= 1.4 * true
    assert (
        true
        <= bound_of(rolling_patterns_period_l2, Rolling(length), Filter(taps), places, (k,), ItemLevel())
        <= 1.4 * true
    )


def plain(lags: SignedLags, known: TwoCounts | Held, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The bound with every place run through, and with most of them carried on."""
    for period in (10**9, 2):
        with monkeypatch.context() as patched:
            patched.setattr(changes_of_two_counts, "_CYCLE", period)
            if isinstance(known, Held):
                yield held_bound.__wrapped__(lags, known, 3, 6)
            else:
                prices = (Prices(lags.values[0] * part // 8, 0) for part in (1, 2, 3, 4, 6))
                yield min(priced_bound.__wrapped__(lags, known, 3, 6, price) for price in prices)


@pytest.mark.parametrize("length", [3, 7, 40])
def test_carrying_on_bounds_what_every_place_would_add(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taps = integer_taps(0.5, 0.9, 200, 12)
    places = 20 * length
    lags = SignedLags.of(taps, places)
    for apart in (False, True):
        known = TwoCounts(2, length, places, places, (1, 0), apart)
        exact, carried = plain(lags, known, monkeypatch)
        assert exact <= carried <= 1.6 * exact
    exact, carried = plain(lags, Held(places - length + 1, length, places), monkeypatch)
    assert exact <= carried <= 1.6 * exact


@pytest.mark.quick(1)
@pytest.mark.search(5)
@pytest.mark.parametrize(
    ("length", "starts"), [(1, 4), (2, 2), (2, 3), (2, 6), (3, 1), (3, 4), (3, 6), (4, 3), (4, 5), (5, 6)]
)
def test_no_item_counted_once_exceeds_the_bound(length: int, starts: int) -> None:
    places = length + starts - 1
    counts = item_counts(length, starts, places)
    whole = np.unique((counts[:, None] - counts[None]).reshape(-1, places), axis=0)
    begins = [np.arange(places) >= n for n in range(places)]
    cut = [whole * (begin & ~end) for begin in begins for end in [*begins[1:], np.zeros(places, dtype=bool)]]
    changes = np.unique(np.concatenate(cut), axis=0)
    for seed in range(8):
        taps = some_taps(seed, places + 2)
        true = costs(taps, changes).max()
        for reach in (places, places - 1):
            lags = SignedLags.of(taps, reach)
            shorter = costs(taps, changes[:, :reach]).max() if reach else 0
            for memory, near in itertools.product((2, 3, places), (0, 5, places)):
                found = held_bound(lags, Held(starts, length, reach), memory, near)
                assert found >= shorter
                if memory >= places - 1 and reach == places:
                    assert found == true
            if starts <= length + 1:
                assert two_runs_bound(lags, Held(starts, length, reach)) >= shorter
        if starts <= length + 1:
            assert two_runs_bound(SignedLags.of(taps, places), Held(starts, length, places)) == true


def test_a_coarse_clock_only_loosens() -> None:
    taps = integer_taps(0.5, 0.97, 300, 12)
    lags = SignedLags.of(taps, 150)
    bounds = [held_bound(lags, Held(90, length, 150), 3, 12) for length in (30, 32, 33, 40, 61)]
    # Held for longer, changes are fewer; a clock of two steps a tick forgets at most one step.
    assert bounds[0] >= bounds[1] >= bounds[3] >= bounds[4]
    assert bounds[1] <= bounds[2] * 1.05
