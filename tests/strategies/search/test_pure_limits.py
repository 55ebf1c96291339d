"""Limits under pure budgets: against linear programmes for the best noise, and the proofs step by step."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Query, Rolling, Tumbling, WindowFamily
from dpwindows.ask.timeline import Timeline
from dpwindows.plan.plan import Plan
from dpwindows.strategies.in_periods import pure_limit
from dpwindows.strategies.search.pure_limits import _least_square, _vectors, many_neighbours, pure_scale
from tests.single_item import SingleItem
from tests.strategies.search.test_limits import changes

Change = tuple[int, ...]


def least_error(moves: set[Change], epsilon: float, far: int) -> float:
    """The rms error of the best noise on whole numbers of at most `far`, by a linear programme."""
    width = len(next(iter(moves)))
    points = np.array(list(product(range(-far, far + 1), repeat=width)))
    place = {tuple(point): at for at, point in enumerate(points.tolist())}
    pairs = [
        (at, place[to])
        for point, at in place.items()
        for move in moves
        if (to := tuple(p + m for p, m in zip(point, move, strict=True))) in place
    ]
    one, other = np.array(pairs).T
    rows = np.arange(len(pairs))
    # p(one) <= e^epsilon p(other).
    values = np.concatenate([np.ones(len(pairs)), np.full(len(pairs), -np.exp(epsilon))])
    ratios = coo_array((values, (np.tile(rows, 2), np.concatenate([one, other]))), shape=(len(pairs), len(points)))
    squares = (points**2).sum(axis=1)
    found = linprog(squares, A_ub=ratios.tocsr(), b_ub=np.zeros(len(pairs)), A_eq=np.ones((1, len(points))), b_eq=[1])
    assert found.status == 0
    return float(np.sqrt(found.fun / width))


def moves_of(window: WindowFamily, unit: Unit, steps: int) -> set[Change]:
    found = {tuple(row) for row in changes(window, 1, unit, steps).astype(int).tolist()}
    return found | {tuple(-value for value in move) for move in found}


@pytest.mark.quick(1)
@pytest.mark.search(4)
@pytest.mark.parametrize(
    ("window", "unit", "steps", "epsilon", "far"),
    [
        (Rolling(1), ItemLevel(), 2, 0.5, 12),
        (Rolling(1), ItemAddRemove(), 2, 0.5, 12),
        (Tumbling(1), ItemLevel(), 2, 1.0, 12),
        (Rolling(1), ItemLevel(), 3, 1.0, 5),
        (Rolling(2), ItemAddRemove(), 3, 1.0, 5),
        (Rolling(2), ItemAddRemove(), 3, 2.0, 5),
        (Cumulative(), EventLevel(), 3, 1.0, 5),
        (AnyWindow(), EventLevel(), 2, 2.0, 5),
    ],
    ids=str,
)
def test_no_limit_is_above_the_best_noise(
    window: WindowFamily, unit: Unit, steps: int, epsilon: float, far: int
) -> None:
    enumerated = Rolling(1) if isinstance(window, Tumbling) else window
    best = least_error(moves_of(enumerated, unit, steps), epsilon, far)
    found = pure_limit(window, 1, unit, steps, epsilon)
    assert found is not None
    assert 0.4 * best < found < best


def test_one_count_is_the_geometric_but_for_a_known_factor() -> None:
    for epsilon in (0.01, 0.3, 1.0, 4.0):
        quiet = np.exp(-epsilon)
        geometric = np.sqrt(2 * quiet) / (1 - quiet)
        assert pure_scale(epsilon) * np.sqrt(1 + quiet) == pytest.approx(geometric)
    assert least_error({(1,), (-1,)}, 1.0, 30) == pytest.approx(np.sqrt(2 / np.e) / (1 - 1 / np.e), rel=1e-4)
    assert least_error({(1,), (-1,)}, 1.0, 30) > pure_scale(1.0)


def test_vectors_are_counted() -> None:
    for size, most in product((1, 2, 3), (1, 2, 4)):
        found = [
            vector
            for vector in product(range(-most, most + 1), repeat=size)
            if sum(x for x in vector if x > 0) <= most and -sum(x for x in vector if x < 0) <= most
        ]
        assert np.exp(_vectors(np.array([float(most)]), size)[0]) == pytest.approx(len(found))


@pytest.mark.parametrize(("length", "size"), [(2, 1), (3, 1), (2, 2), (1, 1)])
@pytest.mark.parametrize("changed", [False, True])
def test_so_many_changes_reach_every_vector_in_blocks(length: int, size: int, changed: bool) -> None:
    """Two pairs of blocks where they fit: what is reached in n changes, by all histories of an item."""
    if length == 1:
        blocks = [[0], [1], [2]]
    else:
        starts = [0, length + 2 * size] if size == 1 and length == 2 else [0]
        blocks = [
            b for s in starts for b in ([*range(s, s + size)], [*range(s + size + length, s + 2 * size + length)])
        ]
    steps = blocks[-1][-1] + 1
    answers = np.array([t for block in blocks for t in block])
    counts = {tuple(SingleItem(log).rolling(1, length)[answers].tolist()) for log in product((0, 1), repeat=steps)}
    moves = {tuple(f - g for f, g in zip(one, other, strict=True)) for one in counts for other in counts}
    if not changed:
        moves = {tuple(sign * f for f in one) for one in counts for sign in (1, -1)}
    reached = {(0,) * len(answers): 0}
    for most in range(1, 3 if len(answers) > 3 else 4):
        now = {tuple(x + m for x, m in zip(vector, move, strict=True)) for vector in reached for move in moves}
        reached |= {vector: most for vector in now if vector not in reached}
        claimed = [
            vector
            for vector in product(range(-most, most + 1), repeat=len(answers))
            if _needs(vector, blocks, changed) <= most
        ]
        assert all(reached.get(vector, 99) <= _needs(vector, blocks, changed) for vector in claimed)


def _needs(vector: Change, blocks: list[list[int]], changed: bool) -> int:
    """How many changes are said to make a vector: by differences within blocks, those that end something backwards."""
    sums, at = [], 0
    for index, block in enumerate(blocks):
        part = np.array(vector[at : at + len(block)])
        at += len(block)
        steps = np.diff(part, prepend=0) if index % 2 == 0 else -np.diff(part, append=0)
        sums.append((steps[steps > 0].sum(), -steps[steps < 0].sum()))
    positive, negative = np.array(sums).max(axis=0).tolist()
    return int(max(positive, negative) if changed else positive + negative)


def test_errors_of_whole_items_grow_with_the_range_and_not_with_its_root() -> None:
    for changed in (False, True):
        year, decade = (many_neighbours(steps, 7, 1.0, changed=changed) for steps in (365, 3650))
        assert 9 < decade / year < 11
    assert many_neighbours(365, 7, 1.0, changed=True) == pytest.approx(
        2 * many_neighbours(365, 7, 2.0, changed=True), rel=0.15
    )
    assert many_neighbours(10, 30, 1.0, changed=True) == 0
    # All of 365 numbers change freely: the ball is 0.178 T wide, the best noise known 0.577 T.
    assert many_neighbours(365, 1, 1.0, changed=True) == pytest.approx(65.4, abs=0.2)
    assert _least_square(365, 1, 1.0, changed=True) > _least_square(364, 1, 1.0, changed=True)


@pytest.mark.parametrize("unit", [EventLevel(), ItemAddRemove(), ItemLevel()], ids=lambda unit: unit.name)
def test_plans_under_pure_budgets_are_above_their_limits(unit: Unit) -> None:
    timeline = Timeline("2013-01-01", "2013-04-01", step="1d")
    queries: list[WindowFamily | Query] = [
        Rolling(1).at_least(1, 2),
        Rolling(7),
        Tumbling(7),
        Cumulative(),
        AnyWindow(10),
    ]
    for query in queries:
        for entry in Plan([query], timeline=timeline, unit=unit, budget=PureDP(0.8)).forecast():
            assert entry.limit is not None
            assert entry.limit < entry.rms
    both = Plan([Rolling(7), Cumulative()], timeline=timeline, unit=unit, budget=PureDP(0.8), weights=(1, 3))
    first = both.forecast()[0]
    assert first.limit == pytest.approx(pure_limit(Rolling(7), 1, unit, 90, 0.2))
