"""Limits: the dual against the primal on small horizons, and every change they use against logs that make it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.ask.privacy import ZCDP, ApproxDP, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.ask.timeline import Timeline
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.untrusted.noise_scales import unit_scale
from dpwindows.plan.plan import Plan
from dpwindows.strategies.search import limits
from dpwindows.strategies.search.limit_patterns import renewal_pairs, run_weights
from dpwindows.strategies.search.limits import Intervals, Listed, Shifts, Stationary, Suffixes, limit

EVENT, ITEM, ADD_REMOVE = EventLevel(), ItemLevel(), ItemAddRemove()


def rolling(log: tuple[int, ...], length: int, k: int) -> NDArray[np.int64]:
    return np.array([sum(log[max(0, t - length + 1) : t + 1]) >= k for t in range(len(log))], dtype=np.int64)


def any_windows(log: tuple[int, ...], k: int) -> NDArray[np.int64]:
    steps = len(log)
    return np.array([sum(log[a : b + 1]) >= k for a in range(steps) for b in range(a, steps)], dtype=np.int64)


def changes(window: WindowFamily, k: int, unit: Unit, steps: int) -> FloatArray:
    """All changes one neighbour can make, by enumeration, up to sign."""

    def answers(log: tuple[int, ...]) -> NDArray[np.int64]:
        if isinstance(window, AnyWindow):
            return any_windows(log, k)
        return rolling(log, window.length if isinstance(window, Rolling) else steps, k)

    logs = list(product(range(k + 1), repeat=steps))
    if isinstance(unit, EventLevel):
        found = {
            tuple(answers((*log[:s], log[s] + 1, *log[s + 1 :])) - answers(log)) for log in logs for s in range(steps)
        }
    else:
        found = {tuple(answers(log)) for log in logs}
        if isinstance(unit, ItemLevel):
            found = {tuple(np.array(f) - np.array(other)) for f in found for other in found if f > other}
    if isinstance(unit, ItemPerPeriod):
        found = {
            tuple(answers(log) - answers((*log[:s], *inside, *log[s + unit.steps :])))
            for log in logs
            for s in range(steps - unit.steps + 1)
            for inside in product(range(k + 1), repeat=unit.steps)
        }
    return np.array(sorted(change for change in found if any(change)), dtype=np.float64)


def least_error(rows: FloatArray) -> tuple[float, float]:
    """The least rms error for a list of changes: a lower bound, and what a mechanism that was found achieves."""
    weights = np.full(len(rows), 1.0 / len(rows))
    for _ in range(400):
        values, vectors = np.linalg.eigh((rows.T * weights) @ rows)
        roots = np.sqrt(np.maximum(values, 1e-14))
        costs = (((rows @ vectors) ** 2) / roots).sum(axis=1)
        weights = weights * (costs / (weights @ costs)) ** 1.5
        weights /= weights.sum()
    upper = np.sqrt(costs.max() * roots.sum() / rows.shape[1])
    return limits.dual_bound(Listed(rows), weights, rounds=1), float(upper)


CASES = [
    (Cumulative(), 1, EVENT, 8),
    (Cumulative(), 2, EVENT, 6),
    (Cumulative(), 1, ITEM, 7),
    (Cumulative(), 1, ADD_REMOVE, 10),
    (Rolling(3), 1, EVENT, 10),
    (Rolling(3), 2, EVENT, 7),
    (Rolling(4), 2, EVENT, 7),
    (Rolling(2), 1, ADD_REMOVE, 8),
    (Rolling(3), 2, ADD_REMOVE, 7),
    (Rolling(3), 1, ITEM, 6),
    (Cumulative(), 1, ItemPerPeriod(2), 6),
    (Rolling(3), 1, ItemPerPeriod(2), 7),
    (Rolling(2), 1, ItemPerPeriod(6), 6),
    (AnyWindow(), 1, ItemPerPeriod(2), 4),
    (AnyWindow(), 1, EVENT, 6),
    (AnyWindow(), 2, EVENT, 5),
    (AnyWindow(), 1, ADD_REMOVE, 6),
    (AnyWindow(), 1, ITEM, 4),
]


@pytest.mark.parametrize(("window", "k", "unit", "steps"), CASES)
def test_limits_are_below_the_best_mechanism_for_the_enumerated_changes(
    window: WindowFamily, k: int, unit: Unit, steps: int
) -> None:
    lower, upper = least_error(changes(window, k, unit, steps))
    assert lower <= upper <= 1.02 * lower
    found = limit(window, k, unit, steps)
    assert found is not None
    assert found <= upper * (1 + 1e-9)
    exact = isinstance(window, (Cumulative, AnyWindow)) or (k == 1 and unit == EVENT)
    if exact and not (isinstance(window, AnyWindow) and (k > 1 or unit not in (EVENT, ADD_REMOVE))):
        assert found >= 0.93 * lower


def test_known_limits() -> None:
    assert limit(Cumulative(), 1, ADD_REMOVE, 365) == pytest.approx(2.634, abs=0.002)
    long = {(7, 1): 1.810, (28, 1): 2.424, (28, 2): 2.873, (28, 3): 3.102, (28, 10): 3.467}
    for (length, k), known in long.items():
        found = limit(Rolling(length), k, EVENT, 200_000)
        assert found is not None
        assert known * 0.99 < found < known + 0.001


def test_limits_grow_with_what_is_asked() -> None:
    by_k = [limit(Rolling(7), k, EVENT, 3000) for k in (1, 2, 3)]
    by_length = [limit(Rolling(length), 1, EVENT, 3000) for length in (1, 3, 9, 30)]
    for found in (by_k, by_length):
        known = [value for value in found if value is not None]
        assert len(known) == len(found)
        assert known == sorted(known)
    assert limit(AnyWindow(), 1, EVENT, 365) is None
    assert limit(Cumulative(), 1, Unit(), 30) is None


def test_intervals_and_suffixes_agree_with_lists() -> None:
    rng = np.random.default_rng(0)
    inverse = rng.normal(size=(9, 9))
    inverse = inverse @ inverse.T
    intervals, shape = Intervals(9, 4), (9, 4)
    inside = np.arange(9)[:, None] + np.arange(1, 5)[None, :] <= 9
    weights = rng.random(shape) * inside
    rows = np.array([[float(x <= t < x + n) for t in range(9)] for x in range(9) for n in range(1, 5)])
    listed = Listed(rows)
    assert np.allclose(intervals.moment(weights), listed.moment(weights.ravel()))
    assert np.allclose(intervals.costs(inverse)[inside], listed.costs(inverse).reshape(shape)[inside])
    patterns = ((1, 0, 1), (1, 1, 0))
    shifts = Shifts(9, patterns)
    padded = [np.pad(pattern, (first + 2, 9 - first - 1)) for pattern in patterns for first in range(-2, 9)]
    cut = Listed(np.array([row[2:11] for row in padded], dtype=np.float64))
    spread = shifts.spread(np.array([0.3, 0.7])) * rng.random((2, 11))
    assert np.allclose(shifts.moment(spread), cut.moment(spread.ravel()))
    assert np.allclose(shifts.costs(inverse).ravel(), cut.costs(inverse))
    suffixes, tails = Suffixes(9), Listed(np.tri(9).T)
    assert np.allclose(suffixes.moment(weights[:, 0]), tails.moment(weights[:, 0]))
    assert np.allclose(suffixes.costs(inverse), tails.costs(inverse))
    assert (intervals.spread(np.ones(4)) * ~inside == 0).all()
    assert (Intervals(40, 4).spread(np.ones(4))[-3:, 3] == 0).all()


@pytest.mark.parametrize(("steps", "length", "k"), [(7, 3, 2), (7, 4, 2), (6, 3, 3)])
def test_every_run_pattern_used_does_occur(steps: int, length: int, k: int) -> None:
    occur = {tuple(np.abs(row)[length:]) for row in changes(Rolling(length), k, EVENT, steps)}
    free = steps - length
    every = [p for p in product((0, 1), repeat=length) if 0 < sum(np.diff(p, prepend=0) > 0) <= k]
    for pattern in every:
        for first in range(1 - length, free):
            padded = np.zeros(free + 2 * length)
            padded[first + length : first + 2 * length] = pattern
            cut = tuple(padded[length : length + free])
            assert cut in occur or not any(cut)
    patterns, weights = run_weights(length, k)
    assert set(patterns) <= set(every)
    assert weights.sum() == pytest.approx(1.0)


def test_renewals_are_averages_of_items_that_occur() -> None:
    """Simulated items: counted for at least W steps, out for at least one; their mean products are the formula's."""
    rng = np.random.default_rng(1)
    length, staying, returning = 3, 0.4, 0.3
    series: list[int] = []
    while len(series) < 200_000:
        series += [1] * (length + int(rng.geometric(1 - staying)) - 1) + [0] * int(rng.geometric(1 - returning))
    counted = np.array(series, dtype=np.float64)
    simulated = [float((counted[: len(counted) - d] * counted[d:]).mean()) for d in range(12)]
    assert np.allclose(renewal_pairs(length, staying, returning, 12), simulated, atol=0.01)
    stationary = Stationary(renewal_pairs(length, staying, returning, 12)[None])
    assert np.linalg.eigvalsh(stationary.moment(np.ones(1))).min() > 0


@pytest.mark.parametrize("budget", [ApproxDP(1.0, 1e-6), ZCDP(0.1)])
def test_plans_say_how_far_they_are_from_the_limit(budget: ApproxDP | ZCDP) -> None:
    timeline = Timeline("2013-01-01", "2013-04-01", step="1d")
    plan = Plan([Rolling(7).at_least(1, 2).exactly(1), Cumulative()], timeline=timeline, unit=EVENT, budget=budget)
    first, _, exactly, cumulative = plan.forecast()
    least = limit(Rolling(7), 1, EVENT, 90)
    assert least is not None
    assert first.limit == pytest.approx(least * unit_scale(budget, GAUSSIAN, 0.5))
    assert first.limit is not None
    assert first.ratio_to_limit == pytest.approx(first.rms / first.limit)
    assert exactly.limit is None
    assert exactly.ratio_to_limit is None
    assert cumulative.ratio_to_limit is not None
    if isinstance(budget, ZCDP):
        assert cumulative.ratio_to_limit >= 1
    pure = Plan([Rolling(7)], timeline=timeline, unit=EVENT, budget=PureDP(1.0))
    assert pure.forecast()[0].limit is None
