"""The nearest table that a log can have, against logs by hand and another solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy

from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.release.consistency import nearest_log
from dpwindows.release.consistency.rows import rows_by_end
from tests.release.test_window_rows import random_table

SHAPES = [(1, 1), (4, 1), (4, 2), (4, 4), (9, 3)]


def counted(log: list[tuple[int, ...]], steps: int, longest: int) -> FloatArray:
    """The distinct counts of a log, the steps of each item: by end."""
    table = np.zeros((steps, longest))
    for b, place in itertools.product(range(1, steps + 1), range(longest)):
        if place < b:
            table[b - 1, place] = sum(any(b - place <= step <= b for step in seen) for seen in log)
    return table


def returning(table: FloatArray, b: int, a: int) -> float:
    """From its counts, how many items a log has at step b that last occurred at step a; a = 0 for none that shows."""

    def window(first: int, last: int) -> float:
        return float(table[last - 1, last - first]) if first <= last else 0.0

    least = max(1, b - table.shape[1] + 1)
    if a < least:
        return window(least, b) - window(least, b - 1)
    return window(a + 1, b) - window(a + 1, b - 1) - window(a, b) + window(a, b - 1)


def is_of_a_log(table: FloatArray, within: float = 0.0) -> bool:
    """Whether no number of returning items is negative, and of the items of no step more return than occurred there."""
    steps = list(range(1, len(table) + 1))
    moves = {(a, b): returning(table, b, a) for b in steps for a in (0, *range(max(1, b - table.shape[1] + 1), b))}
    here = {step: sum(count for (_, b), count in moves.items() if b == step) for step in steps}
    gone = {step: sum(count for (a, _), count in moves.items() if a == step) for step in steps}
    return min(moves.values()) >= -within and all(gone[step] <= here[step] + within for step in steps)


def beyond(steps: int, longest: int, counts: list[float]) -> list[nearest_log.Longer]:
    """Counts since the first step, of windows that are longer than those of a table."""
    last = np.arange(longest + 1, steps + 1)
    return [nearest_log.Longer(1, last, np.array(counts), np.linspace(0.02, 0.3, len(last)))] if counts else []


@pytest.mark.parametrize(("steps", "longest"), SHAPES)
def test_every_log_keeps_the_limits(steps: int, longest: int) -> None:
    """Every single item, and so every log: counts of logs are sums of those of their items."""
    inside = nearest_log._inside(steps, longest)
    for size in range(steps + 1):
        for seen in itertools.combinations(range(1, steps + 1), size):
            table = counted([seen], steps, longest)
            since = min(seen, default=steps + 1)
            longer = beyond(steps, longest, [float(since <= last) for last in range(longest + 1, steps + 1)])
            counts = np.concatenate([table[inside], *(one.values for one in longer)])
            assert (nearest_log._limits_with(steps, longest, longer) @ counts >= 0).all()
            assert is_of_a_log(table)


@pytest.mark.parametrize(("steps", "longest"), SHAPES)
def test_it_is_the_nearest_table_of_a_log(steps: int, longest: int) -> None:
    """As another solver finds it, by how much each inequality of four windows, or of two, pushes."""
    table, weights = random_table(steps, longest)
    inside = np.zeros_like(table, dtype=bool)
    for row in rows_by_end(inside):
        row[:] = True
    longer = beyond(steps, longest, [40.0 - 3 * last % 5 for last in range(longest + 1, steps + 1)])
    given = np.concatenate([table[inside], *(one.values for one in longer)])
    weight = np.concatenate([weights[inside], *(one.weights for one in longer)])
    limits = nearest_log._limits_with(steps, longest, longer).toarray()
    root = np.sqrt(weight)
    push = scipy.optimize.nnls((limits / root).T, -given * root, maxiter=10_000)[0]
    nearest = given + (limits.T @ push) / weight
    assert nearest_log.nearest_log(table, weights, float(np.median(weights)), longer)
    found = np.concatenate([table[inside], *(one.values for one in longer)])
    np.testing.assert_allclose(found, nearest, atol=0.1)
    assert is_of_a_log(table, within=0.02)


def test_limits_are_met_by_counts_of_logs_alone() -> None:
    """Tables of small whole numbers that meet them are those whose items can be written down."""
    steps, longest = 3, 2
    limits, inside = nearest_log._limits(steps, longest), nearest_log._inside(steps, longest)
    verdicts = set()
    for counts in itertools.product(range(3), repeat=int(inside.sum())):
        table = np.zeros((steps, longest))
        table[inside] = counts
        verdicts.add((meets := bool((limits @ table[inside] >= 0).all()), is_of_a_log(table)))
        assert meets == is_of_a_log(table)
    assert verdicts == {(True, True), (False, False)}


def test_what_two_families_say_of_a_window_is_one_number() -> None:
    """By their weights: 10 and 40, where 10 weighs five times as much; both follow what is found."""
    quarter = np.array([40.0])
    longer = nearest_log.Longer(1, np.array([2]), np.array([10.0]), np.array([5.0]))
    longer.joined.append((0, quarter, 1.0))
    values, weights = longer.with_joined()
    assert values == pytest.approx([15.0])
    assert weights == pytest.approx([6.0])
    table = np.array([[9.0], [8.0]])
    assert nearest_log.nearest_log(table, np.ones_like(table), 1.0, [longer])
    assert quarter == pytest.approx(longer.values)
    assert quarter == pytest.approx([15.0])
