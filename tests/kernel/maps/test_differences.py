"""Anchored differences against the matrix that they stand for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpwindows.kernel.maps.differences import AnchoredDifferences
from tests.kernel.maps.some_maps import matrix_of
from tests.search import examples


@examples(60)
@given(
    length=st.integers(1, 60),
    every=st.integers(1, 70),
    step=st.integers(1, 1000),
    anchor=st.integers(1, 1000),
    offset=st.integers(-70, 70),
)
def test_anchored_differences_of_any_shape(length: int, every: int, step: int, anchor: int, offset: int) -> None:
    found = AnchoredDifferences(every, step, anchor, offset)
    matrix = matrix_of(found, length)
    assert matrix.shape == (found.rows(length), length)
    unit = np.eye(length, dtype=np.int64)
    assert np.array_equal(matrix[:length], step * (unit - np.eye(length, k=-1, dtype=np.int64)))
    anchors = [t for t in range(1, length + 1) if (t - offset) % every == 0]
    assert [t for t in range(1, length + 1) if found.is_anchor(t)] == anchors
    assert np.array_equal(matrix[length:], anchor * unit[np.array(anchors, dtype=np.int64) - 1])
