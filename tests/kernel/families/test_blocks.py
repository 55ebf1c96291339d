"""Trees on starts and on ends: the bound against all neighbours, whatever the blocks."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from dpwindows.ask.queries import AnyWindow
from dpwindows.kernel.accounting import LAPLACE
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.blocks import Blocks
from dpwindows.kernel.families.starts import blocks_of
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.problem import Problem
from tests.kernel.made_up import EVENT, tent_trees
from tests.kernel.truth import truth


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


@pytest.mark.slow
@pytest.mark.parametrize("thresholds", [(1,), (2,), (1, 3)], ids=str)
def test_tensor_trees_of_any_kind_with_any_widths_and_extents(thresholds: tuple[int, ...]) -> None:
    for steps in range(1, 6 if max(thresholds) < 3 else 5):
        for longest, width in itertools.product(range(1, steps + 1), range(1, steps + 1)):
            extent = min(width + longest - 1, steps)
            met = min(-(-extent // width), -(-steps // width))
            problem = Problem(AnyWindow(longest), steps, thresholds, EVENT, LAPLACE, 1.0)
            for kind_of_tree in range(len(tent_trees(extent))):

                def make_tree(size: int, chosen: int = kind_of_tree) -> TentTree:
                    return tent_trees(size)[chosen]

                sizes = range(1, width + 1), range(1, extent + 1)
                start_total, end_total = (max(make_tree(size).column_total for size in either) for either in sizes)
                bound = 4 * sum(thresholds) * met * start_total * end_total
                blocks = Design(problem, Blocks.made_of(problem.window, steps, width, make_tree), "test")
                assert truth(blocks) <= blocks.sensitivity <= bound
