"""Lower bounds with all constants, against the changes that occur."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import dpwindows as dw
from dpwindows.ask.queries import AnyWindow, Rolling, WindowFamily
from dpwindows.theory import packing
from dpwindows.theory.bounds import Family, Level, Setting
from dpwindows.theory.constructions import dense_marginals_rolling, marginals_any, marginals_rolling, range_queries
from tests.single_item import all_logs, differences
from tests.theory.test_constructions import answers


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


Cell = tuple[Family, Level]


def bound(cell: Cell, steps: int, length: int = 1, k: int = 1, **more: Any) -> float:
    return packing.PACKED[cell](Setting(steps, length, k, **{"epsilon": 0.1, **more}))


def constant(changes: int) -> Callable[[int], int]:
    return lambda _: changes


def test_packing_takes_the_largest_n() -> None:
    for epsilon, changes in product((0.01, 0.3, 1.0, 7.0), (1, 2, 5, 1000, 10**40)):
        n = round(2 * packing.packed_error(constant(changes), epsilon))
        assert n == max(0, math.ceil(math.log(changes / 2) / epsilon) - 1)
    # n = 99 leaves 10 changes, and n = 100 none.
    assert packing.packed_error(lambda n: 1000 - 10 * n, 0.01) == 99 / 2
    # 2^(T/n) changes: n grows like the square root of T.
    small, large = (bound(("any", "item"), steps, singleton=True) for steps in (10**4, 10**6))
    assert large / small == pytest.approx(10, rel=0.05)


def test_the_packing_is_no_higher_than_what_a_mechanism_reaches() -> None:
    """Laplace noise on one count: with 2 changes within reach, n/2 is exceeded at least half of the time."""
    epsilon, changes = 0.5, 20
    # Largest of `changes` independent errors of the direct release of a histogram, sensitivity 1.
    rng = np.random.default_rng(0)
    largest = np.abs(rng.laplace(0, 1 / epsilon, (4000, changes))).max(axis=1)
    assert (largest >= packing.packed_error(constant(changes), epsilon)).mean() > 0.5


def test_pure_bounds_grow_as_stated() -> None:
    prefixes: Cell = ("cumulative", "item")
    rolling: Cell = ("rolling", "event")
    rolling_item: Cell = ("rolling", "item")
    assert bound(prefixes, 2**30) / bound(prefixes, 2**15) == pytest.approx(2, rel=0.06)
    assert bound(prefixes, 365, epsilon=1.0, singleton=True) <= bound(prefixes, 365, epsilon=1.0)
    assert bound(rolling_item, 10**5, 10) / bound(rolling_item, 10**4, 10) == pytest.approx(10, rel=0.01)
    assert bound(("any", "item"), 10**4, k=3) / bound(("any", "item"), 10**3, k=3) == pytest.approx(10, rel=0.01)
    # Linear in k, up to the logarithm of W/k.
    few, many = (bound(rolling, 10**5, 10**4, k) for k in (20, 40))
    assert 1.7 < many / few < 2
    # In a singleton stream there is no room for that many items.
    assert bound(rolling, 10**5, 10**4, 40, singleton=True) < few / 10
    # A window of a singleton stream holds no more than W / k items k times.
    assert bound(rolling_item, 10**5, 10, 2, epsilon=0.001, singleton=True) == 10 / 2 / 2


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
    n = round(2 * bound(("cumulative", "event"), steps, k=k, epsilon=epsilon, singleton=True))
    groups = steps // n - (k - 1)
    counts = [answers(range_queries([x] * n, groups, k, singleton=True)) for x in range(1, groups + 1)]
    assert range_queries([1] * n, groups, k, singleton=True).horizon <= steps
    assert min(np.abs(one - other).max() for one, other in combinations(counts, 2)) == n
    n = round(2 * bound(("any", "item"), steps, k=k, epsilon=epsilon, singleton=True))
    columns = steps // (n * k)
    logs = [marginals_any(np.tile(row, (n, 1)), k, singleton=True) for row in product((0, 1), repeat=columns)]
    assert max(log.horizon for log in logs) <= steps
    assert min(np.abs(answers(one) - answers(other)).max() for one, other in combinations(logs, 2)) == n
