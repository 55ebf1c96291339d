"""The bound on run patterns against the exact maximum over all patterns, with contracting signs and without."""

from __future__ import annotations

from itertools import groupby, product

import numpy as np
import pytest

from dpwindows.kernel.families.run_patterns import Lags, recent_bound
from dpwindows.strategies.search.fractional import integer_taps
from dpwindows.strategies.search.pattern_search import (
    counted_by_memory,
    memory_for,
    price_of_disjoint,
    recent_patterns,
)
from tests.kernel.made_up import arbitrary_taps, falling_taps


def run_lengths(pattern: tuple[int, ...]) -> list[int]:
    return [len(list(run)) for one, run in groupby(pattern) if one]


def cost(lags: tuple[int, ...], pattern: tuple[int, ...]) -> int:
    ones = [i for i, one in enumerate(pattern) if one]
    return sum(lags[abs(i - j)] for i in ones for j in ones)


@pytest.mark.parametrize("make", [falling_taps, arbitrary_taps])
@pytest.mark.parametrize("seed", range(12))
def test_the_bound_is_at_least_the_worst_pattern(make: object, seed: int) -> None:
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
        assert recent_bound(lags, (runs,), memory, price) >= worst
    assert recent_bound(lags, (runs,), places - 1, price) == worst


@pytest.mark.parametrize("seed", range(6))
def test_patterns_attain_the_values_they_are_read_from(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lags = Lags.of(arbitrary_taps(rng, 9), 9, 3)
    for memory in (1, 3, 8):
        pattern = recent_patterns(lags, (3,), memory)[0]
        assert len(pattern) == 9
        assert len(run_lengths(tuple(pattern))) <= 3
        counted = counted_by_memory(pattern, memory)
        value = counted[0] * lags.values[0] + 2 * sum(counted[1:] * lags.values[1:])
        assert value + lags.positive_pairs(memory) == recent_bound(lags, (3,), memory)


def test_coarse_lags_bound_what_would_wrap() -> None:
    taps = tuple(int(tap) for tap in integer_taps(0.4, 0.9, 40, 40))
    lags = Lags.of(taps, 12, 3)
    assert lags.shift > 0
    exact = Lags(
        tuple(int(v) for v in np.correlate(*(np.array(taps, dtype=object),) * 2, "full")[len(taps) - 1 :][:12]), 0
    )
    worst = max(cost(exact.values, g) for g in product((0, 1), repeat=12) if len(run_lengths(g)) <= 3)
    found = recent_bound(lags, (3,), 11) << lags.shift
    assert worst <= found <= worst * (1 + 1e-9)


def test_memory_is_bounded_by_the_work_it_takes() -> None:
    assert memory_for(4, 2) == 3
    assert 1 <= memory_for(4096, 100) < memory_for(365, 10) <= memory_for(28, 3) == 16


def test_of_one_place_there_is_one_run() -> None:
    lags = Lags.of((7, -3), 1, 2)
    assert [recent_bound(lags, (runs,), 5, price) for runs in (1, 2) for price in (0, 9, 58)] == [58, 49, 0] * 2


def test_a_price_is_refused_outside_its_range() -> None:
    lags = Lags.of((10, -3), 5, 2)
    with pytest.raises(ValueError, match="price"):
        recent_bound(lags, (2,), 3, price=-1)


@pytest.mark.search(13)
@pytest.mark.parametrize("make", [falling_taps, arbitrary_taps])
@pytest.mark.parametrize("scale", [1, 1 << 25])
@pytest.mark.parametrize("seed", range(6))
def test_no_price_for_disjoint_patterns_is_better_than_the_one_found(make: object, scale: int, seed: int) -> None:
    """Also where the lags are so fine that some of their bits are left out."""
    assert callable(make)
    rng = np.random.default_rng(seed)
    places, runs = int(rng.integers(3, 10)), (1, int(rng.integers(2, 4)), 4)
    lags = Lags.of([scale * tap for tap in make(rng, places)], places, 4)

    def bound(price: int) -> int:
        return price * places + recent_bound(lags, runs, places, price)

    found = price_of_disjoint(lags, runs)
    highest = lags.values[0]
    others = [bound(price) for price in {*range(0, highest, max(1, highest // 500)), highest}]
    # At a price that is rounded every place may be charged a unit too much.
    assert bound(found) <= min(others) + len(runs) * places * (1 + highest // 2**30)
