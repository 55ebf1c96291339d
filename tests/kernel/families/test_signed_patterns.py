"""Bounds on vectors of -1, 0 and 1 against every such vector."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpwindows.kernel.families.norms import autocorrelation
from dpwindows.kernel.families.patterns import (
    priced_bound,
)
from dpwindows.kernel.families.signed_patterns import Prices, SignedLags, TwoCounts, symbol_maximum
from tests.kernel.item_changes import costs
from tests.kernel.made_up import some_taps
from tests.single_item import Ints

FREE = Prices(0, 0)


def signed_runs(vectors: Ints) -> Ints:
    return np.asarray(np.abs(np.diff(vectors, axis=1, prepend=0, append=0)).sum(axis=1) // 2)


@pytest.mark.quick(4)
@pytest.mark.parametrize("seed", range(10))
def test_no_vector_of_signs_exceeds_the_bound(seed: int) -> None:
    """All places, all patterns with few runs, those of one sign somewhere; any memory and any near distances."""
    places = 4 + seed % 5
    taps = some_taps(seed, places + 2)
    vectors = np.array(list(itertools.product((-1, 0, 1), repeat=places)))
    cost, runs = costs(taps, vectors), signed_runs(vectors)
    lags = SignedLags.of(taps, places)
    assert lags.shift == 0
    tightest = 9.0
    for memory, near in itertools.product((2, 3, 5, places), (0, 4, 6, places)):
        known = TwoCounts(places, 1, places, places, (1, 0), False)
        found = priced_bound(lags, known, memory, near, FREE)
        assert found >= cost.max()
        if memory >= places - 1:
            assert found == cost.max()
        for most, change in itertools.product((1, 2, 3), (1, lags.values[0] // 2, 3 * lags.values[0])):
            bound = priced_bound(
                lags, TwoCounts(places, 1, places, most, (1, 0), False), memory, near, Prices(0, change)
            )
            assert bound >= cost[runs <= most].max()
            tightest = min(tightest, bound / cost[runs <= most].max())
        first, last = 2, places - 1
        one_sign = vectors[:, first - 1 : last].min(axis=1) >= 0
        bound = priced_bound(lags, TwoCounts(places, 1, places, places, (first, last), False), memory, near, FREE)
        assert cost[one_sign].max() <= bound <= found
    assert tightest < 1.6


def test_the_symbol_is_at_most_its_bound_and_nearly_so() -> None:
    rng = np.random.default_rng(2)
    for count in (1, 2, 5, 40):
        far = np.rint(1e9 * rng.standard_normal(count))
        far[0] = 0.0
        grid = np.cos(np.arange(count)[:, None] * np.linspace(0, np.pi, 20_011)[None, :])
        true = float((2 * far @ grid).max())
        bound = symbol_maximum(far)
        assert true <= bound <= true + 1e-3 * float(np.abs(far).sum()) + 2
    assert symbol_maximum(np.zeros(4)) == 0


def test_rounded_lags_bound_the_exact_form() -> None:
    for seed in range(6):
        taps = tuple((1 << 40) * tap + seed for tap in some_taps(seed, 8))
        lags = SignedLags.of(taps, 7)
        assert lags.shift > 0
        exact = autocorrelation(taps)
        for _ in range(60):
            g = [int(v) for v in np.random.default_rng(seed).integers(-1, 2, size=7)]
            true = sum(g[i] * g[j] * exact[abs(i - j)] for i in range(7) for j in range(7))
            form = sum(g[i] * g[j] * lags.values[abs(i - j)] for i in range(7) for j in range(7))
            assert true <= form << lags.shift
