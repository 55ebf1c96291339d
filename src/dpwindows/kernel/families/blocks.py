"""Any windows at event level: blocks of windows, measured by a tree along their starts and one along their ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import AnyWindow, WindowFamily
from dpwindows.ask.windows import Answers, longest_window
from dpwindows.kernel.accounting import LAPLACE
from dpwindows.kernel.designs import Shape
from dpwindows.kernel.families.starts import Block, Starts, blocks_of
from dpwindows.kernel.maps.integer_maps import IntArray, IntegerMap
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.rules import Case, rule


@dataclass(frozen=True)
class Blocks(Shape):
    """Any windows: in each block of starts, one tree on starts times one on ends, the ends taken last to first.

    Reversing the ends leaves the sensitivity as it is and lowers the error, for then no window is late on both axes.

    Attributes:
        width: starts of a block, but for the last.
        trees: one for each length that an axis of a block has; starts and ends of one length share it.
    """

    width: int
    trees: tuple[TentTree, ...]

    @classmethod
    def made_of(cls, window: WindowFamily, steps: int, width: int, make_tree: Callable[[int], TentTree]) -> Blocks:
        """Blocks with one tree for each length that an axis has, made by `make_tree`."""
        blocks = blocks_of(steps, longest_window(window, steps), width)
        sizes = sorted({size for block in blocks for size in (block.starts, block.ends)})
        return cls(width, tuple(map(make_tree, sizes)))

    @cached_property
    def by_length(self) -> dict[int, TentTree]:
        """The trees by their length."""
        return {one.length: one for one in self.trees}

    def list_blocks(self, window: WindowFamily, steps: int) -> list[tuple[Block, TentTree, TentTree]]:
        """The blocks, with the tree on starts and the tree on ends."""
        blocks = blocks_of(steps, longest_window(window, steps), self.width)
        return [(block, self.by_length[block.starts], self.by_length[block.ends]) for block in blocks]

    def is_for(self, case: Case) -> bool:
        """There is a tree as long as every axis."""
        steps = case.problem.steps
        blocks = blocks_of(steps, longest_window(case.problem.window, steps), self.width)
        return self.by_length.keys() >= {size for block in blocks for size in (block.starts, block.ends)}

    def rows(self, window: WindowFamily, steps: int) -> int:
        axes = self.list_blocks(window, steps)
        return sum(starts.rows(block.starts) * ends.rows(block.ends) for block, starts, ends in axes)

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        """Both trees applied to each block of exact answers, one block after another."""
        encoded = []
        for block, starts, ends in self.list_blocks(window, answers.steps):
            exact = answers.windows(k, block.first, block.starts, block.first, block.ends)[:, ::-1]
            half = starts.encode(exact)
            encoded.append(ends.encode(half.T).ravel())
        return np.concatenate(encoded)


@rule("any-trees-event", AnyWindow, EventLevel, LAPLACE, (Blocks, Starts), when="trees on both axes")
def any_tree_event_l1(case: Case) -> int | None:
    """Any windows, one occurrence added or removed, through a tree of increments on starts and one on ends.

    In each block of starts a row is `sum_ij u_i v_j d_ij`, with `d_ij` the two-dimensional increments (differences
    along both axes, 0 outside the block), u a row of the tree on starts and v one of the tree on ends; every pair of
    rows is measured. The weights of any one increment add up to at most `start_total` over the rows of every tree on
    starts in use, and to at most `end_total` over those of every tree on ends.

    Proof. In each block of starts an event meets (at most `blocks_met`), threshold k changes on k rectangles, of one
    sign (`families.rectangles`): their increments are +1 or -1 at four corners each, or at fewer where a side lies on
    the block's edge. A unit increment at (i, j) moves the row (u, v) by `u_i v_j`, all rows by `sum |u_i| sum |v_j|`
    in L1, at most `start_total * end_total`. Norms of corners, rectangles, blocks and thresholds add. Taking an axis
    from its last position to its first leaves every rectangle a rectangle. QED.
    """
    shape: Blocks | Starts = case.measured
    if isinstance(shape, Starts):
        if shape.continued:
            return None
        axes: list[tuple[IntegerMap, IntegerMap]] = [(shape.across, shape.map)]
        blocks_met = shape.blocks_met(case.steps)
    else:
        steps, window = case.problem.steps, case.problem.window
        axes = [(starts, ends) for _, starts, ends in shape.list_blocks(window, steps)]
        extent, width = min(shape.width + longest_window(window, steps) - 1, steps), min(shape.width, steps)
        blocks_met = min(-(-extent // width), len(axes))
    start_total, end_total = (max(map(_column_total, side)) for side in zip(*axes, strict=True))
    if min(_column_total(one) for pair in axes for one in pair) < 1:
        return None
    return 4 * sum(case.thresholds) * blocks_met * start_total * end_total


def _column_total(measured: IntegerMap) -> int:
    """What the weights of one increment add up to over the rows of a tree; 0 for other maps."""
    match measured:
        case TentTree():
            return measured.column_total
        case CausalTree(weights=weights):
            return sum(weights)
    return 0
