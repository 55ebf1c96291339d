"""Bounds with constants: packing against the changes that occur, closed forms against the mechanisms they speak of."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

import dpwindows as dw
from dpwindows.ask.queries import AnyWindow, Rolling, WindowFamily
from dpwindows.errors import InputError
from dpwindows.strategies.search.dual import Listed, Suffixes, dual_bound
from dpwindows.strategies.search.fractional import real_interval_norms, real_taps
from dpwindows.strategies.search.limits import limit
from dpwindows.theory import packing, prefix_sums, sharper
from dpwindows.theory.constructions import dense_marginals_rolling, marginals_any, marginals_rolling, range_queries
from tests.single_item import all_logs, differences
from tests.theory.test_constructions import answers

# --- Packing ----------------------------------------------------------------------------------------------------------


def distinct_changes(window: WindowFamily, steps: int, k: int, most: int) -> int:
    """How many different non-zero changes one added event makes, by enumeration of the logs of one item."""
    found: set[bytes] = set()
    for piece in differences(all_logs(steps, most), window, [k], dw.EventLevel()):
        found |= {change.tobytes() for change in piece if change.any()}
    return len(found)


@pytest.mark.parametrize(("steps", "length", "k"), [(5, 2, 1), (7, 3, 1), (6, 2, 2), (7, 3, 2), (6, 3, 3), (4, 3, 2)])
def test_an_event_makes_at_least_the_rolling_patterns_counted(steps: int, length: int, k: int) -> None:
    assert packing.rolling_event_patterns(steps, length, k) <= distinct_changes(Rolling(length), steps, k, min(k, 2))


@pytest.mark.parametrize(("steps", "k"), [(4, 1), (6, 1), (5, 2), (6, 2), (5, 3)])
def test_an_event_makes_at_least_the_any_window_patterns_counted(steps: int, k: int) -> None:
    assert packing.any_event_patterns(steps, k) <= distinct_changes(AnyWindow(), steps, k, min(k, 2))


def constant(patterns: int) -> packing.Patterns:
    return lambda copies: patterns


def test_packing_takes_the_largest_n() -> None:
    for epsilon, patterns in product((0.01, 0.3, 1.0, 7.0), (1, 2, 5, 1000, 10**40)):
        n = round(2 * packing.packed_error(constant(patterns), epsilon))
        assert n == max(0, math.ceil(math.log(patterns / 2) / epsilon) - 1)
    # n = 99 leaves 10 patterns, and n = 100 none.
    assert packing.packed_error(lambda n: 1000 - 10 * n, 0.01, 0.1) == 99 / 2
    # 2^(T/n) patterns: n grows like the square root of T.
    small, large = (packing.any_item(steps, 1, 0.1, singleton=True) for steps in (10**4, 10**6))
    assert large / small == pytest.approx(10, rel=0.05)


def test_the_packing_is_no_higher_than_what_a_mechanism_reaches() -> None:
    """Laplace noise on one count: with 2 changes within reach, n/2 is exceeded at least half of the time."""
    epsilon, changes = 0.5, 20
    bound = packing.packed_error(lambda n: changes, epsilon)
    # Largest of `changes` independent errors of the direct release of a histogram, sensitivity 1.
    rng = np.random.default_rng(0)
    largest = np.abs(rng.laplace(0, 1 / epsilon, (4000, changes))).max(axis=1)
    assert (largest >= bound).mean() > 0.5


def test_pure_bounds_grow_as_stated() -> None:
    assert packing.cumulative(2**30, 1, 0.1) / packing.cumulative(2**15, 1, 0.1) == pytest.approx(2, rel=0.06)
    assert packing.cumulative(365, 1, 1.0, singleton=True) <= packing.cumulative(365, 1, 1.0)
    assert packing.rolling_item(10**5, 10, 1, 0.1) / packing.rolling_item(10**4, 10, 1, 0.1) == pytest.approx(
        10, rel=0.01
    )
    assert packing.any_item(10**4, 3, 0.1) / packing.any_item(10**3, 3, 0.1) == pytest.approx(10, rel=0.01)
    # Linear in k, up to the logarithm of W/k.
    few, many = (packing.rolling_event(10**5, 10**4, k, 0.1) for k in (20, 40))
    assert 1.7 < many / few < 2
    # In a singleton stream there is no room for that many items.
    assert packing.rolling_event(10**5, 10**4, 40, 0.1, singleton=True) < few / 10
    # A window of a singleton stream holds no more than W / k items k times.
    assert packing.rolling_item(10**5, 10, 2, 0.001, singleton=True) == 10 / 2 / 2
    with pytest.raises(InputError, match="k must be at least 1"):
        packing.any_event(10, 0, 1.0)


@pytest.mark.parametrize(
    ("steps", "length", "k"), [(20, 5, 1), (20, 5, 2), (23, 5, 3), (25, 3, 3), (50, 8, 9), (9, 9, 2)]
)
def test_as_many_marginals_as_counted_fit_into_rolling_windows(steps: int, length: int, k: int) -> None:
    columns = packing.marginals_in_rolling(steps, length, k)
    table = np.random.default_rng(k).integers(0, 2, (3, columns))
    built = [marginals_rolling(table, length, k)]
    if k > 1:
        built.append(dense_marginals_rolling(table, length, k))
    assert min(log.horizon for log in built) <= steps
    for log in built:
        assert answers(log).tolist() == table.sum(axis=0).tolist()


def test_the_packings_logs_are_hard_instances() -> None:
    """n items that take one change each: what `packing.cumulative` and `packing.any_item` put their bounds on."""
    epsilon, k, steps = 0.7, 2, 30
    n = round(2 * packing.cumulative(steps, k, epsilon, singleton=True))
    groups = steps // n - (k - 1)
    counts = [answers(range_queries([x] * n, groups, k, singleton=True)) for x in range(1, groups + 1)]
    assert range_queries([1] * n, groups, k, singleton=True).horizon <= steps
    assert min(np.abs(one - other).max() for one, other in combinations(counts, 2)) == n
    n = round(2 * packing.any_item(steps, k, epsilon, singleton=True))
    columns = steps // (n * k)
    logs = [marginals_any(np.tile(row, (n, 1)), k, singleton=True) for row in product((0, 1), repeat=columns)]
    assert max(log.horizon for log in logs) <= steps
    assert min(np.abs(answers(one) - answers(other)).max() for one, other in combinations(logs, 2)) == n


# --- Closed forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 28, 300])
def test_norm_of_an_interval_under_the_root(n: int) -> None:
    taps = real_taps(0.5, 1.0, 1 << 17)
    assert sharper.root_interval_norm(n) == pytest.approx(real_interval_norms(taps, n)[n], rel=0.005)


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
    assert exact <= sharper.rolling_event(length, k) * (1 + 1e-9)
    assert sharper.rolling_event(length, k) <= 2 * exact


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
    assert sharper.rolling_event_saturated(length) == pytest.approx(best)


def test_the_rolling_error_saturates_in_k() -> None:
    """To leading order half of sqrt(W) for all k, and no Gaussian noise does better when k is of the order of W."""
    for length in (10**2, 10**4, 10**6):
        excess = sharper.rolling_event_saturated(length) / (math.sqrt(length) / 2) - 1
        assert 0 < excess < 3 * length ** (-1 / 3)
        assert sharper.cube_limit(length - 1) < sharper.rolling_event_saturated(length)
        assert sharper.cube_limit(length - 1) > 0.98 * math.sqrt(length) / 2
        assert sharper.rolling_event(length, length) == math.sqrt(length)
    # The planner's certified error stays below it, whatever k, and above the limit.
    for k in (2, 6):
        plan = dw.Plan(
            [Rolling(12).at_least(k)],
            timeline=dw.Timeline.of_steps(30),
            unit=dw.EventLevel(),
            budget=dw.ZCDP(0.5),
        )
        (entry,) = plan.forecast()
        assert entry.limit is not None
        assert entry.limit < entry.max < sharper.rolling_event_saturated(12)


def test_growth_with_k_is_that_of_its_square_root() -> None:
    length = 10**7
    ratio = sharper.rolling_event(length, 400) / sharper.rolling_event(length, 100)
    assert 1.8 < ratio < 2
    assert sharper.rolling_event_histogram(length, 20) == sharper.rolling_event(length, 210)
    assert sharper.rolling_event_histogram(28, 50) == math.sqrt(28)


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


@pytest.mark.parametrize(("length", "k"), [(1, 1), (7, 1), (28, 1), (28, 3), (90, 10), (300, 1)])
def test_pure_rolling_events_closed_form(length: int, k: int) -> None:
    plan = dw.Plan(
        [Rolling(length).at_least(k)],
        timeline=dw.Timeline.of_steps(3 * length),
        unit=dw.EventLevel(),
        budget=dw.PureDP(1.0),
    )
    assert plan.forecast()[0].max <= sharper.rolling_event_pure(length, k)
    assert sharper.rolling_event_pure(length, k) <= 6 * (k**2 * length) ** (1 / 3) + 3


def test_pure_rolling_events_grow_as_stated() -> None:
    assert sharper.rolling_event_pure(64_000, 1) / sharper.rolling_event_pure(1000, 1) == pytest.approx(4, rel=0.02)
    assert sharper.rolling_event_pure(20_000, 64) / sharper.rolling_event_pure(20_000, 8) == pytest.approx(4, rel=0.02)


def test_rolling_items_closed_form() -> None:
    # The planner's certified bound, charged for the same runs, is below it.
    for k in (1, 3):
        plan = dw.Plan(
            [Rolling(14).at_least(k)],
            timeline=dw.Timeline.of_steps(60),
            unit=dw.ItemAddRemove(),
            budget=dw.ZCDP(0.5),
        )
        assert plan.forecast()[0].max < sharper.rolling_item(60, 14, k, formal=False)
    long = [sharper.rolling_item(10**6 * factor, 10**4, 1) for factor in (1, 4)]
    assert long[1] / long[0] == pytest.approx(2, rel=0.02)
    assert sharper.rolling_item(10**6, 10**4, 4) / long[0] == pytest.approx(2, rel=0.15)
    assert sharper.rolling_item(10, 10, 10) == math.sqrt(10)


def staircases(steps: int) -> list[NDArray[np.float64]]:
    """The counts of every item that can be, k = 1: the staircases of all sets of steps."""
    found = []
    for occurs in product((0, 1), repeat=steps):
        before = np.concatenate([[0], np.cumsum(occurs)])
        found.append((before[None, 1:] - before[:-1, None] > 0).astype(float))
    return found


def quadtree_cost(square: NDArray[np.float64], variances: list[float]) -> float:
    """`g' C^-1 g` of the mechanism of `sharper.any_item`, by its own measurements."""
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
    assert sum(variances) == pytest.approx(sharper.any_item(steps, formal=False) ** 2)
    assert max(quadtree_cost(found, variances) for found in staircases(steps)) <= 1 + 1e-9


def test_any_items_error_has_no_logarithm() -> None:
    roots = [sharper.any_item(2**power, formal=False) / 2 ** (power / 2) for power in range(4, 40, 5)]
    assert max(roots) < 2 + math.sqrt(2) + 0.2
    assert roots[-1] == pytest.approx(2 + math.sqrt(2), rel=1e-3)
    # Within a constant of what any Gaussian noise needs.
    assert sharper.any_item(4096, formal=False) / sharper.cube_limit(4096) < 7
    assert sharper.any_item(365) == 2 * sharper.any_item(365, formal=False)


@pytest.mark.parametrize("answers_held", [1, 2, 5, 9])
def test_the_limit_of_all_patterns(answers_held: int) -> None:
    rows = np.array([row for row in product((0, 1), repeat=answers_held) if any(row)], dtype=float)
    weights = np.full(len(rows), 1.0)
    assert sharper.cube_limit(answers_held) <= dual_bound(Listed(rows), weights, rounds=60) * (1 + 1e-3)


def test_limits_stay_below_the_closed_forms() -> None:
    for length, k in product((1, 5, 12), (1, 3)):
        found = limit(Rolling(length), k, dw.EventLevel(), 60)
        assert found is not None
        assert found <= sharper.rolling_event(length, k)
        assert found <= sharper.rolling_event_saturated(length)


# --- Prefix sums ------------------------------------------------------------------------------------------------------


def test_one_end_constants() -> None:
    for steps in (64, 365, 1024):
        log = math.log(steps) / math.pi
        root, normal = prefix_sums.square_root(steps, 1), prefix_sums.normalised_square_root(steps, 1)
        assert root.max == pytest.approx(1.0663 + log, abs=2e-3)
        assert normal.max == pytest.approx(0.846 + log, abs=0.05)
        assert normal.rms == pytest.approx(0.748 + log, abs=0.06)
        assert prefix_sums.mean_singular_value(steps) == pytest.approx(0.7019 + log, abs=log / steps)
        assert prefix_sums.mean_singular_value(steps) <= prefix_sums.gaussian_limit(steps, 1)
        assert prefix_sums.gaussian_limit(steps, 1) < normal.rms < normal.max < root.max
    assert prefix_sums.normalised_square_root(365, 1).max == pytest.approx(2.756, abs=1e-3)
    assert prefix_sums.normalised_square_root(1024, 1).max == pytest.approx(3.081, abs=1e-3)


def test_two_end_constants() -> None:
    for strategy in (prefix_sums.square_root, prefix_sums.normalised_square_root):
        one, two = strategy(365, 1), strategy(365, 2)
        assert 3.74 < two.max < 3.87
        assert one.max < two.max <= math.sqrt(2) * one.max
    assert prefix_sums.gaussian_limit(128, 2) <= 2.79
    assert prefix_sums.gaussian_limit(128, 2) > prefix_sums.gaussian_limit(128, 1)


def test_the_limit_by_singular_values_is_that_of_all_suffixes() -> None:
    triangle = np.tril(np.ones((40, 40)))
    assert prefix_sums.mean_singular_value(40) == pytest.approx(np.linalg.svd(triangle, compute_uv=False).mean())
    equal = dual_bound(Suffixes(40), np.full(40, 1 / 40), rounds=1)
    assert prefix_sums.mean_singular_value(40) == pytest.approx(equal)
    assert prefix_sums.gaussian_limit(40, 1) >= equal
