"""The theorems of `docs/growth.md`: closed forms against the noise of their proofs, and against real plans."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

import dpwindows as dw
from dpwindows.ask.queries import Rolling
from dpwindows.strategies.search.dual import Listed, dual_bound
from dpwindows.strategies.search.fractional import real_interval_norms, real_taps
from dpwindows.strategies.search.limits import limit
from dpwindows.theory import packing
from tests.plans import plan_of
from tests.single_item import all_logs, differences
from tests.theory import closed_forms


@pytest.mark.parametrize("n", [1, 2, 7, 28, 300])
def test_norm_of_an_interval_under_the_root(n: int) -> None:
    taps = real_taps(0.5, 1.0, 1 << 17)
    assert closed_forms.root_interval_norm(n) == pytest.approx(real_interval_norms(taps, n)[n], rel=0.005)


@pytest.mark.parametrize("length", [1, 2, 7, 28, 90])
@pytest.mark.parametrize("k", [1, 2, 5, 200])
def test_rolling_events_closed_form_is_above_its_own_filter(length: int, k: int) -> None:
    """The filter of the proof, its error and the exact largest cost of the lemma's runs, on a long horizon."""
    decay = 1 - 1 / length
    norms = real_interval_norms(real_taps(0.5, decay, 4096), length)
    runs = min(k, length)
    size, longer = divmod(length, runs)
    cost = longer * norms[min(size + 1, length)] + (runs - longer) * norms[size]
    variance = float((real_taps(-0.5, decay, 4096) ** 2).sum())
    exact = min(math.sqrt(cost * variance), math.sqrt(length))
    assert exact <= closed_forms.rolling_event(length, k) * (1 + 1e-9)
    assert closed_forms.rolling_event(length, k) <= 2 * exact


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8])
def test_the_saturated_noise_covers_every_pattern(length: int) -> None:
    """The covariance of the proof, for every shift: every 0/1 vector within W consecutive ends costs at most 1."""
    steps = 2 * length + 3
    patterns = np.array(list(product((0, 1), repeat=length)), dtype=float)
    best = math.inf
    for shift in range(1, length + 1):
        block = length + shift - 1
        covering = -(-block // shift)
        b = (1 + math.sqrt(block / covering)) / 4
        a = block * b / (4 * b - 1) if b > 0.25 else math.inf
        noise = a * np.eye(steps)
        for start in range(-block, steps):
            if start % shift == 0:
                inside = ((np.arange(steps) >= start) & (np.arange(steps) < start + block)).astype(float)
                noise += b * np.outer(inside, inside)
        inverse = np.linalg.inv(noise)
        for first in range(steps - length + 1):
            part = inverse[first : first + length, first : first + length]
            assert np.einsum("ij,jk,ik->i", patterns, part, patterns).max() <= 1 + 1e-9
        best = min(best, math.sqrt(a + covering * b))
        assert np.sqrt(np.diagonal(noise)).max() <= math.sqrt(a + covering * b) + 1e-9
    assert closed_forms.rolling_event_saturated(length) == pytest.approx(best)


@pytest.mark.slow
def test_the_rolling_error_saturates_in_k() -> None:
    """To leading order half of sqrt(W) for all k, and no Gaussian noise does better when k is of the order of W."""
    for length in (10**2, 10**4, 10**6):
        excess = closed_forms.rolling_event_saturated(length) / (math.sqrt(length) / 2) - 1
        assert 0 < excess < 3 * length ** (-1 / 3)
        assert packing.cube_limit(length - 1) < closed_forms.rolling_event_saturated(length)
        assert packing.cube_limit(length - 1) > 0.98 * math.sqrt(length) / 2
        assert closed_forms.rolling_event(length, length) == math.sqrt(length)
    # The planner's certified error stays below it, whatever k, and above the limit.
    for k in (2, 6):
        plan = plan_of(Rolling(12).at_least(k), steps=30, unit=dw.EventLevel(), budget=dw.ZCDP(0.5))
        (entry,) = plan.forecast()
        assert entry.limit is not None
        assert entry.limit < entry.max < closed_forms.rolling_event_saturated(12)


def test_growth_with_k_is_that_of_its_square_root() -> None:
    length = 10**7
    ratio = closed_forms.rolling_event(length, 400) / closed_forms.rolling_event(length, 100)
    assert 1.8 < ratio < 2


@pytest.mark.parametrize(("largest", "length"), [(2, 2), (2, 3), (3, 3)])
def test_the_histograms_changes_are_as_few_as_its_bound_says(largest: int, length: int) -> None:
    """Over all logs: disjoint supports, at most K(K+1)/2 runs, at most W changed numbers over all thresholds."""
    thresholds = list(range(1, largest + 1))
    for piece in differences(all_logs(5, largest), Rolling(length), thresholds, dw.EventLevel()):
        changed = np.abs(piece)
        assert changed.sum(axis=1).max() <= 1
        assert changed.sum(axis=(1, 2)).max() <= length
        starts = np.diff(changed, axis=2, prepend=0) > 0
        assert starts.sum(axis=(1, 2)).max() <= largest * (largest + 1) // 2


@pytest.mark.quick(2)
@pytest.mark.parametrize(("length", "k"), [(1, 1), (7, 1), (28, 1), (28, 3), (90, 10), (300, 1)])
def test_pure_rolling_events_closed_form(length: int, k: int) -> None:
    plan = plan_of(Rolling(length).at_least(k), steps=3 * length, unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    assert plan.forecast()[0].max <= closed_forms.rolling_event_pure(length, k)
    assert closed_forms.rolling_event_pure(length, k) <= 6 * (k**2 * length) ** (1 / 3) + 3


def test_pure_rolling_events_grow_as_stated() -> None:
    assert closed_forms.rolling_event_pure(64_000, 1) / closed_forms.rolling_event_pure(1000, 1) == pytest.approx(
        4, rel=0.02
    )
    assert closed_forms.rolling_event_pure(20_000, 64) / closed_forms.rolling_event_pure(20_000, 8) == pytest.approx(
        4, rel=0.02
    )


def test_rolling_items_closed_form() -> None:
    # The planner's certified bound, charged for the same runs, is below it.
    for k in (1, 3):
        plan = plan_of(Rolling(14).at_least(k), steps=60, unit=dw.ItemAddRemove(), budget=dw.ZCDP(0.5))
        assert plan.forecast()[0].max < closed_forms.rolling_item(60, 14, k)
    long = [closed_forms.rolling_item(10**6 * factor, 10**4, 1) for factor in (1, 4)]
    assert long[1] / long[0] == pytest.approx(2, rel=0.02)
    assert closed_forms.rolling_item(10**6, 10**4, 4) / long[0] == pytest.approx(2, rel=0.15)
    assert closed_forms.rolling_item(10, 10, 10) == math.sqrt(10)


def staircases(steps: int) -> list[NDArray[np.float64]]:
    """The counts of every item that can be, k = 1: the staircases of all sets of steps."""
    found = []
    for occurs in product((0, 1), repeat=steps):
        before = np.concatenate([[0], np.cumsum(occurs)])
        found.append((before[None, 1:] - before[:-1, None] > 0).astype(float))
    return found


def quadtree_cost(square: NDArray[np.float64], variances: list[float]) -> float:
    """`g' C^-1 g` of the mechanism of `closed_forms.any_item`, by its own measurements."""
    steps, side = len(square), 2 ** (len(variances) - 1)
    padded = np.zeros((side, side))
    padded[:steps, :steps] = square
    padded[:steps, steps:] = square[:, -1:]
    cost = padded.mean() ** 2 / variances[0]
    for j in range(1, len(variances)):
        size = 2**j
        for p, q in product(range(-(-steps // size)), repeat=2):
            block = padded[p * size : (p + 1) * size, q * size : (q + 1) * size]
            quarters = [half.mean() for rows in np.split(block, 2) for half in np.split(rows, 2, axis=1)]
            cost += sum((quarter - block.mean()) ** 2 for quarter in quarters) / variances[j]
    return float(cost)


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 7, 8])
def test_any_items_quadtree_covers_every_staircase(steps: int) -> None:
    counts = [1.0, *(2.0 * -(-steps // 2**j) - 1 for j in range(1, (steps - 1).bit_length() + 1))]
    roots = np.sqrt(counts)
    variances = [float(root * roots.sum()) for root in roots]
    assert sum(variances) == pytest.approx(closed_forms.any_item(steps) ** 2)
    assert max(quadtree_cost(found, variances) for found in staircases(steps)) <= 1 + 1e-9


def test_any_items_error_has_no_logarithm() -> None:
    roots = [closed_forms.any_item(2**power) / 2 ** (power / 2) for power in range(4, 40, 5)]
    assert max(roots) < 2 + math.sqrt(2) + 0.2
    assert roots[-1] == pytest.approx(2 + math.sqrt(2), rel=1e-3)
    # Within a constant of what any Gaussian noise needs.
    assert closed_forms.any_item(4096) / packing.cube_limit(4096) < 7


@pytest.mark.parametrize("answers_held", [1, 2, 5, 9])
def test_the_limit_of_all_patterns(answers_held: int) -> None:
    rows = np.array([row for row in product((0, 1), repeat=answers_held) if any(row)], dtype=float)
    weights = np.full(len(rows), 1.0)
    assert packing.cube_limit(answers_held) <= dual_bound(Listed(rows), weights, rounds=60) * (1 + 1e-3)


def test_limits_stay_below_the_closed_forms() -> None:
    for length, k in product((1, 5, 12), (1, 3)):
        found = limit(Rolling(length), k, dw.EventLevel(), 60)
        assert found is not None
        assert found <= closed_forms.rolling_event(length, k)
        assert found <= closed_forms.rolling_event_saturated(length)
