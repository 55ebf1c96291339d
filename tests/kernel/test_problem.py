"""What a problem refuses, so that no bound is asked about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.problem import Problem


@pytest.mark.parametrize(
    "thresholds",
    [(), (0,), (-2,), (-1.0,), (-1, 1), (1, -1), (2, 1), (1, 1), (1.0,), (True, 2), (np.int64(1),), ("1",), [1, 2]],
    ids=repr,
)
def test_thresholds_are_whole_numbers_from_1_in_ascending_order(thresholds: Any) -> None:
    """Bounds add thresholds up, as numbers of runs: 1 and -1 were none, and cost nothing."""
    with pytest.raises(ValueError, match="thresholds are whole numbers from 1 in ascending order"):
        Problem(Rolling(3), 12, thresholds, EventLevel(), GAUSSIAN, 1.0)
    assert Problem(Rolling(3), 12, (1, 3), EventLevel(), GAUSSIAN, 1.0).thresholds == (1, 3)
