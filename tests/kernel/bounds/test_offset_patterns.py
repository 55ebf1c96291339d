"""The exact integers that the bound of rolling counts through a matrix is made from."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.kernel.bounds.offset_patterns import gram, largest_by_distance, rolling_offset_add_remove_l2
from dpwindows.strategies.search.witnesses import searched


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
    assert rolling_offset_add_remove_l2(np.eye(5, dtype=np.int64), 2, 5, (1,), searched) >= 1
    with pytest.raises(ValueError, match="must have 5 rows and columns"):
        rolling_offset_add_remove_l2(np.eye(*shape, dtype=np.int64), 2, 5, (1,), searched)
