"""The exact integers that the bound of rolling counts through a matrix is made from."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.ask.queries import Rolling
from dpwindows.kernel.families.offset_patterns import (
    gram,
    largest_by_distance,
    offset_norm,
    rolling_offset_add_remove_l2,
)
from dpwindows.kernel.families.thresholds import SeriesByThreshold, rolling_thresholds_l2
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.filters import OffsetFilter
from dpwindows.strategies import offset_filter
from tests.kernel.cases import PRESENCE, bound_of, case


def test_the_gram_matrix_is_exact_on_every_lattice() -> None:
    rng = np.random.default_rng(0)
    for bits in (3, 12, 24, 25, 27, 34, 61):
        weights = np.tril(rng.integers(-(1 << bits), 1 << bits, size=(40, 40)))
        exact = weights.astype(object)
        exact[:, :-1] = exact[:, :-1] - exact[:, 1:]
        assert (gram(weights).astype(object) == exact.T @ exact).all()


def test_the_largest_entry_at_each_distance() -> None:
    assert largest_by_distance(np.array([[5, -1, 2], [-1, 7, 0], [2, 0, 6]])) == [7, 0, 2]


@pytest.mark.parametrize("shape", [(4, 4), (6, 6), (5, 4), (5, 6)], ids=str)
def test_a_matrix_of_another_shape_has_no_bound(shape: tuple[int, int]) -> None:
    assert bound_of(rolling_offset_add_remove_l2, Rolling(2), MatrixCounter(np.eye(5)), 5, (1,), PRESENCE) >= 1
    measured = MatrixCounter(np.eye(*shape, dtype=np.int64))
    assert rolling_offset_add_remove_l2(case(Rolling(2), measured, 5, (1,), PRESENCE)) is None


# --- Filters with a common offset ---------------------------------------------------------------------------------


def filtered(steps: int, *, size: float = 2.0**24) -> OffsetFilter:
    """As the strategy makes them."""
    return offset_filter.filtered(0.6, 0.75, 0.3, steps, size)


def dense(rows: OffsetFilter) -> NDArray[np.object_]:
    """The matrix on the values, from the definition."""
    steps, unit = rows.length, 1 << rows.shift
    found = np.zeros((steps, steps), dtype=object)
    for t in range(steps):
        for j in range(t + 1):
            taps = [*rows.taps, *[0] * steps]
            entry = rows.weights[t] * taps[t - j] - rows.offsets[t] * sum(taps[: t - j])
            found[t, j] = math.floor(Fraction(entry, unit) + Fraction(1, 2)) if rows.shift else entry
    return found


def test_filters_with_offsets_are_bounded_together_in_parts_of_one_size() -> None:
    maps = filtered(4), replace(filtered(4), shift=1)
    assert rolling_thresholds_l2(case(Rolling(2), SeriesByThreshold((1, 2), maps), 4, (1, 2), PRESENCE)) is None


def test_what_rounding_adds_is_charged() -> None:
    """Every entry that is applied is 1/2 above what it is before it is rounded."""
    steps = 6
    rows = OffsetFilter((1,), (1,) * steps, (0,) * steps, 1)
    assert dense(rows).tolist() == np.eye(steps, dtype=int).tolist()
    assert bound_of(rolling_offset_add_remove_l2, Rolling(1), rows, rows.length, (1,), PRESENCE) >= steps


@pytest.mark.parametrize(
    ("weights", "offsets"),
    [([9, 9, 9], [1, 1, 1]), ([9, -9], [1, 1]), ([9, 9], [1, -1])],
    ids=str,
)
def test_offsets_that_the_proof_is_not_for(weights: list[int], offsets: list[int]) -> None:
    assert offset_norm(OffsetFilter((4, -1), tuple(weights), tuple(offsets), 0)) is None


@pytest.mark.parametrize(("weights", "offsets"), [((9, 9), (1,)), ((), ())])
def test_every_row_has_a_weight_and_an_offset(weights: tuple[int, ...], offsets: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="a weight and an offset for each position"):
        OffsetFilter((4, -1), weights, offsets, 0)
