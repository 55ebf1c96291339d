"""Bounds on run patterns against the exact maximum over all patterns, with contracting signs and without."""

from __future__ import annotations

from itertools import groupby, product

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.ask.privacy import ItemLevel
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.families import patterns
from dpwindows.kernel.families.patterns import (
    rolling_patterns_add_remove_l2,
    rolling_patterns_event_l2,
    rolling_patterns_period_l2,
)
from dpwindows.kernel.families.run_patterns import Lags, neighbour_bound, recent_bound, recent_bounds
from dpwindows.kernel.families.runs import rolling_filter_event_l2
from dpwindows.kernel.maps.filters import Filter
from dpwindows.strategies.search.chains import best_chain
from dpwindows.strategies.search.fractional import integer_taps
from dpwindows.strategies.search.pattern_search import (
    counted_by_memory,
    counted_by_neighbours,
    memory_for,
    place_price,
    price_of_disjoint,
    recent_pattern,
)
from tests.kernel.cases import PRESENCE, bound_of, case


def contracting_taps(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    tail = np.sort(rng.random(count))[::-1]
    tail *= rng.random() / tail.sum()
    return (1000, *(-int(1000 * tap) for tap in tail))


def arbitrary_taps(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    return (int(rng.integers(50, 120)), *(int(tap) for tap in rng.integers(-60, 60, size=count)))


def run_lengths(pattern: tuple[int, ...]) -> list[int]:
    return [len(list(run)) for one, run in groupby(pattern) if one]


def cost(lags: tuple[int, ...], pattern: tuple[int, ...]) -> int:
    ones = [i for i, one in enumerate(pattern) if one]
    return sum(lags[abs(i - j)] for i in ones for j in ones)


@pytest.mark.parametrize("make", [contracting_taps, arbitrary_taps])
@pytest.mark.parametrize("seed", range(12))
def test_both_bounds_are_at_least_the_worst_pattern(make: object, seed: int) -> None:
    assert callable(make)
    rng = np.random.default_rng(seed)
    places, runs = int(rng.integers(2, 10)), int(rng.integers(1, 5))
    taps = make(rng, int(rng.integers(1, places + 3)))
    lags = Lags.of(taps, places, runs)
    assert lags.shift == 0
    price = int(rng.integers(0, lags.values[0])) if seed % 2 else 0
    allowed = [g for g in product((0, 1), repeat=places) if len(run_lengths(g)) <= runs]
    worst = max(cost(lags.values, g) - price * sum(g) for g in allowed)
    for memory in range(1, places):
        assert recent_bound(lags, runs, memory, price) >= worst
    assert recent_bound(lags, runs, places - 1, price) == worst
    worst = max(cost(lags.values, g) for g in allowed)
    for place in range(0, lags.values[0] + 1, max(1, lags.values[0] // 9)):
        assert neighbour_bound(lags, runs, place) >= worst
        for shortest in (2, 3):
            longer = [g for g in allowed if all(n >= shortest for n in run_lengths(g)[:-1])]
            assert neighbour_bound(lags, runs, place, shortest=shortest) >= max(cost(lags.values, g) for g in longer)


@pytest.mark.parametrize("seed", range(8))
def test_neighbour_bound_is_tight_for_two_runs(seed: int) -> None:
    lags = Lags.of(contracting_taps(np.random.default_rng(seed), 12), 9, 2)
    worst = max(cost(lags.values, g) for g in product((0, 1), repeat=9) if len(run_lengths(g)) <= 2)
    found = min(neighbour_bound(lags, 2, price) for price in range(0, lags.values[0], lags.values[0] // 400))
    assert worst <= found <= 1.01 * worst


@pytest.mark.parametrize("seed", range(6))
def test_patterns_and_chains_attain_the_values_they_are_read_from(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lags = Lags.of(arbitrary_taps(rng, 9), 9, 3)
    for memory in (1, 3, 8):
        pattern = recent_pattern(lags, 3, memory)
        assert len(pattern) == 9
        assert len(run_lengths(tuple(pattern))) <= 3
        counted = counted_by_memory(pattern, memory)
        value = counted[0] * lags.values[0] + 2 * sum(counted[1:] * lags.values[1:])
        assert value + lags.positive_pairs(memory) == recent_bound(lags, 3, memory)
    everything = np.arange(1, 10)
    price = lags.values[0] // 2
    value, chain = best_chain(lags, everything, everything, 3, price)
    if sum(chain) <= 9:
        counted = counted_by_neighbours(chain, 9)
        assert value + price * sum(chain) == counted[0] * lags.values[0] + 2 * sum(counted[1:] * lags.values[1:])


def test_coarse_lags_bound_what_would_wrap() -> None:
    taps = tuple(int(tap) for tap in integer_taps(0.4, 0.9, 40, 40))
    lags = Lags.of(taps, 12, 3)
    assert lags.shift > 0
    exact = Lags(
        tuple(int(v) for v in np.correlate(*(np.array(taps, dtype=object),) * 2, "full")[len(taps) - 1 :][:12]), 0
    )
    worst = max(cost(exact.values, g) for g in product((0, 1), repeat=12) if len(run_lengths(g)) <= 3)
    found = recent_bound(lags, 3, 11) << lags.shift
    assert worst <= found <= worst * (1 + 1e-9)


# --- Against the changes that neighbours really make ----------------------------------------------------------------


def answers(log: tuple[int, ...], length: int, k: int) -> NDArray[np.int64]:
    counts = [sum(log[max(0, t - length + 1) : t + 1]) for t in range(len(log))]
    return np.array([count >= k for count in counts], dtype=np.int64)


def measured(taps: tuple[int, ...], steps: int) -> NDArray[np.int64]:
    padded = [*taps, *([0] * steps)]
    return np.array([[padded[t - j] if t >= j else 0 for j in range(steps)] for t in range(steps)])


@pytest.mark.quick(3)
@pytest.mark.parametrize("thresholds", [(1,), (2,), (3,), (1, 2), (2, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_event_level_bounds_every_added_occurrence(
    thresholds: tuple[int, ...], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, length = 6, 3 + seed % 2
    rng = np.random.default_rng(seed)
    taps = (contracting_taps if seed else arbitrary_taps)(rng, 8)
    matrix, worst = measured(taps, steps), 0
    for log in product(range(max(thresholds) + 1), repeat=steps):
        for step in range(steps):
            more = (*log[:step], log[step] + 1, *log[step + 1 :])
            changes = [answers(more, length, k) - answers(log, length, k) for k in thresholds]
            worst = max(worst, sum(int(((matrix @ g) ** 2).sum()) for g in changes))
    for longest in (patterns.LONGEST_CHAIN, 0):
        monkeypatch.setattr(patterns, "LONGEST_CHAIN", longest)
        bound = rolling_patterns_event_l2(case(Rolling(length), Filter(taps), steps, thresholds))
        # Of one run, taps whose signs contract have a bound as sharp elsewhere.
        assert (bound is None) == (seed > 0 and thresholds == (1,))
        assert bound is None or bound >= worst


@pytest.mark.parametrize("thresholds", [(1,), (2,), (1, 2)])
@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_item_bounds_every_item(
    thresholds: tuple[int, ...], length: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 7
    taps = (contracting_taps if seed else arbitrary_taps)(np.random.default_rng(seed), 8)
    matrix = measured(taps, steps)
    costs = [
        sum(int(((matrix @ answers(log, length, k)) ** 2).sum()) for k in thresholds)
        for log in product(range(max(thresholds) + 1), repeat=steps)
    ]
    asked = Rolling(length), Filter(taps), steps, thresholds
    bound = bound_of(rolling_patterns_add_remove_l2, *asked, PRESENCE)
    assert bound >= max(costs)
    with monkeypatch.context() as patch:
        patch.setattr(patterns, "LONGEST_CHAIN", 0)
        # Of taps whose signs contract no chains are searched among so many places.
        recent = rolling_patterns_add_remove_l2(case(*asked, PRESENCE))
        assert (recent is None) == (seed > 0)
        assert recent is None or recent >= bound
    changed = bound_of(rolling_patterns_period_l2, Rolling(length), Filter(taps), steps, thresholds, ItemLevel())
    assert max(costs) <= changed <= 4 * bound * (1 + 1e-9)


@pytest.mark.parametrize("thresholds", [(2,), (3,), (10,), (1, 2), (3, 4)])
def test_never_above_charging_each_run_by_itself(thresholds: tuple[int, ...]) -> None:
    taps = integer_taps(0.49, 0.9, 365, 24)
    apart = bound_of(rolling_filter_event_l2, Rolling(28), Filter(taps), 365, thresholds)
    assert bound_of(rolling_patterns_event_l2, Rolling(28), Filter(taps), 365, thresholds) <= apart * (1 + 1e-6)


def test_memory_is_bounded_by_the_work_it_takes() -> None:
    assert memory_for(4, 2) == 3
    assert 1 <= memory_for(4096, 100) < memory_for(365, 10) <= memory_for(28, 3) == 16


def test_of_one_place_there_is_one_run() -> None:
    lags = Lags.of((7, -3), 1, 2)
    assert [recent_bound(lags, runs, 5, price) for runs in (1, 2) for price in (0, 9, 58)] == [58, 49, 0] * 2


def test_a_price_is_refused_outside_its_range() -> None:
    lags = Lags.of((10, -3), 5, 2)
    with pytest.raises(ValueError, match="price"):
        recent_bound(lags, 2, 3, price=-1)
    price = place_price(lags, 2, shortest=1, rounds=8)
    assert 0 <= price <= lags.values[0]
    every = np.arange(1, 6)
    _, chain = best_chain(lags, every, every, 2, price)
    assert sum(chain) <= 5


@pytest.mark.parametrize("make", [contracting_taps, arbitrary_taps])
@pytest.mark.parametrize("scale", [1, 1 << 25])
@pytest.mark.parametrize("seed", range(6))
def test_no_price_for_disjoint_patterns_is_better_than_the_one_found(make: object, scale: int, seed: int) -> None:
    """Also where the lags are so fine that some of their bits are left out."""
    assert callable(make)
    rng = np.random.default_rng(seed)
    places, runs = int(rng.integers(3, 10)), (1, int(rng.integers(2, 4)), 4)
    lags = Lags.of([scale * tap for tap in make(rng, places)], places, 4)

    def bound(price: int) -> int:
        return price * places + sum(recent_bounds(lags, runs, places, price))

    found = price_of_disjoint(lags, runs)
    highest = lags.values[0]
    others = [bound(price) for price in {*range(0, highest, max(1, highest // 500)), highest}]
    # At a price that is rounded every place may be charged a unit too much.
    assert bound(found) <= min(others) + len(runs) * places * (1 + highest // 2**30)
