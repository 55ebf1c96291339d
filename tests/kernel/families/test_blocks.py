"""Trees on starts and on ends: the bound against all neighbours, whatever the blocks."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from dpwindows.kernel.families.starts import blocks_of


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_every_window_lies_in_one_block(steps: int) -> None:
    for longest, width in itertools.product((1, 3, 7, 10), (1, 2, 3, 7, 10)):
        windows = Counter(
            (a, b)
            for block in blocks_of(steps, longest, width)
            for a in range(block.first, block.first + block.starts)
            for b in range(a, min(a + longest, block.first + block.ends))
        )
        every = {(a, b) for a in range(1, steps + 1) for b in range(a, min(steps, a + longest - 1) + 1)}
        assert windows == dict.fromkeys(every, 1)
