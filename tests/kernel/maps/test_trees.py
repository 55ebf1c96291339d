"""Trees: on every level each complete node weighs its own increments."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpwindows.kernel.maps.trees import CausalTree
from tests.kernel.maps.some_maps import matrix_of
from tests.search import examples


@examples(60)
@given(length=st.integers(1, 70), branching=st.integers(2, 20), weights=st.lists(st.integers(1, 9), min_size=1))
def test_trees_of_any_shape(length: int, branching: int, weights: list[int]) -> None:
    """On every level each complete node weighs its own increments, and no increment is in two of them."""
    tree = CausalTree(branching, tuple(weights[:7]))
    nodes = matrix_of(tree, length) @ np.tril(np.ones((length, length), dtype=np.int64))  # of the increments
    wanted = []
    for end in range(1, length + 1):
        for level, weight in enumerate(tree.weights):
            if end % branching**level:
                break
            wanted.append([weight * (end - branching**level < place <= end) for place in range(1, length + 1)])
    assert nodes.tolist() == wanted
    assert nodes.sum(axis=0).max() <= sum(tree.weights)
