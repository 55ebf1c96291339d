"""Windows measured with those inside them: every number against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import count_windows, window_steps
from dpwindows.kernel.families.nested import Nested
from tests.kernel.nested_designs import asked_for, designs
from tests.kernel.truth import matrix_of


@pytest.mark.parametrize("block", [3, 256])
def test_every_number_is_a_weighted_sum_of_windows_inside(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the definition, entry by entry, and no number is measured that is none; whatever is looked up at a time."""
    monkeypatch.setattr("dpwindows.kernel.families.nested._AT_ONCE", block)
    for design in designs():
        shape, steps = design.shape, design.problem.steps
        assert isinstance(shape, Nested)
        taps, weights = shape.taps, shape.weights or (1,) * shape.longest
        inside = list(zip(*(steps.tolist() for steps in window_steps(AnyWindow(), steps)), strict=True))

        def tap(lag: int, taps: tuple[int, ...] = taps) -> int:
            return taps[lag] if 0 <= lag < len(taps) else 0

        wanted = [
            [weights[last - first] * tap(a - first) * tap(last - b) for a, b in inside]
            for first, last in asked_for(design)
        ]
        assert np.array_equal(matrix_of(design), np.array(wanted))
        assert design.rows == len(wanted) == count_windows(design.problem.window, steps)
        assert abs(np.array(wanted)).any(axis=1).all()
