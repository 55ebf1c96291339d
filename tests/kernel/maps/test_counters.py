"""Listed counters: what is refused, and that none changes after it was certified."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.kernel.maps.counters import MatrixCounter


@pytest.mark.parametrize("weights", [[[1, 1], [0, 1]], [[1, 0], [3, 0]], [[1, 0], [3, -1]]])
def test_rows_that_look_ahead_or_cannot_be_solved_are_no_triangular_counter(weights: list[list[int]]) -> None:
    MatrixCounter(np.array([[1, 0], [3, 1]]))
    with pytest.raises(ValueError, match="lower-triangular with a positive diagonal"):
        MatrixCounter(np.array(weights))


def test_a_map_stays_what_was_certified() -> None:
    handed = np.tril(np.full((3, 3), 2))
    made = MatrixCounter(handed)
    before = made.weights.copy()
    handed[...] = 7
    assert (made.weights == before).all()
    with pytest.raises(ValueError, match="read-only"):
        made.weights[...] = 7
