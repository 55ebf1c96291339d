"""Trees of tents: what every increment weighs, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpwindows.kernel.maps.tent_tree import TentTree
from tests.kernel.maps.some_maps import matrix_of
from tests.search import examples


@examples(60)
@given(length=st.integers(1, 70), shares=st.lists(st.floats(0, 0.99), max_size=3), unit=st.sampled_from([4, 7, 1000]))
def test_tent_trees_of_any_shape(length: int, shares: list[float], unit: int) -> None:
    tree = TentTree(length, tuple(int(share * length) for share in shares), unit)
    weights = matrix_of(tree, length) @ np.tril(np.ones((length, length), dtype=np.int64))  # of the increments
    assert (weights >= 0).all()
    assert (weights.sum(axis=0) == tree.column_total).all()
    assert tree.column_total == unit * (1 + len(shares))
    leaves = weights[:length]
    assert (np.diagonal(leaves) > 0).all()
    assert np.count_nonzero(leaves) == length
    assert weights[length:].max(initial=0) <= unit
    # Tents overlap: up to rounding two of a level share what they weigh between their tops.
    if shares and tree.tents[0] >= 2:
        assert leaves[length // 2, length // 2] <= tree.column_total - unit + 1 + unit * (len(shares) - 1)


def test_tents_are_as_they_are_described() -> None:
    tree = TentTree(10, (3,), 100)
    spacing = 10 / 3.7
    for tent, row in enumerate((matrix_of(tree, 10) @ np.tril(np.ones((10, 10), dtype=np.int64)))[10:]):
        top = spacing * (tent + 0.7)
        for t, weight in enumerate(row):
            height = 1.0 if tent == 0 and t + 0.5 < top else max(0.0, 1 - abs(t + 0.5 - top) / spacing)
            assert weight == pytest.approx(100 * height, abs=0.5 + 1e-9)
    with pytest.raises(ValueError, match="fewer tents than the 3 positions"):
        TentTree(3, (3,))
    with pytest.raises(ValueError, match="too coarse"):
        TentTree(9, (2, 2, 2), 3)
