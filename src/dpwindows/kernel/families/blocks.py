"""Any windows: the square of starts and ends in blocks of starts, with one integer map on each axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import AnyWindow, WindowFamily
from dpwindows.ask.windows import Answers, longest_window
from dpwindows.kernel.accounting import LAPLACE
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.certificate import Certificate, NotCertifiedError
from dpwindows.kernel.designs import Shape, StepAnswers, StepShape
from dpwindows.kernel.maps.integer_maps import CausalMap, IntArray, IntegerMap, Memory
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import Case, certify, rule


@dataclass(frozen=True)
class Block:
    """A rectangle of windows: `starts` first steps from `first` on, `ends` last steps from `first` on."""

    first: int
    starts: int
    ends: int


def blocks_of(steps: int, longest: int, width: int) -> list[Block]:
    """Blocks of `width` starts, each with every end that a window of at most `longest` steps from them can have."""
    return [
        Block(first, min(width, steps - first + 1), min(width + longest - 1, steps - first + 1))
        for first in range(1, steps + 1, width)
    ]


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

    def certify(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of the two trees over all blocks.

        Raises:
            NotCertifiedError: no proof covers it, or no tree is as long as an axis.
        """
        try:
            bound, proof = certify(Case(problem, self, horizon, advise))
        except KeyError:
            raise NotCertifiedError(problem, *self.trees) from None
        return Certificate(bound, proof, moved=self.rows(problem.window, problem.steps))

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


@dataclass(frozen=True)
class StepBlocks(StepShape):
    """Windows of at most `longest` steps in a stream: a tree on a block's starts, a causal map on ends as they come.

    With each block every end is measured that a released window from it can have, `extent` of them: `width + longest -
    1`, or as many as the horizon has.
    """

    longest: int
    width: int
    extent: int
    starts: TentTree
    ends: CausalMap

    def certify(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of the two maps over all blocks.

        Raises:
            NotCertifiedError: no proof covers it, or the shape is one for another length.
        """
        other_length = self.longest != longest_window(problem.window, horizon or self.longest)
        if other_length or self.starts.length != self.width:
            raise NotCertifiedError(problem, self.starts, self.ends)
        met = -(-self.extent // self.width)
        return Certificate(*certify(Case(problem, self, horizon, advise)), met * self.extent * self.lanes)

    @property
    def lanes(self) -> int:
        """How many series of ends each block has: the rows of the map on starts."""
        return self.starts.rows(self.width)

    def firsts(self, step: int) -> list[int]:
        """The first starts of the blocks that are measured at a step."""
        newest = (step - 1) // self.width
        oldest = max(0, -(-(step - self.extent) // self.width))
        return [1 + block * self.width for block in range(oldest, newest + 1)]

    def open(self, step: int, memory: Memory, empty: Memory) -> Iterator[tuple[int, Memory]]:
        """The first start and the memory of every open block; one that opens at this step has an empty one.

        A memory has a row for each block that was open at the step before.
        """
        firsts = self.firsts(step)
        known = len(firsts) - ((step - 1) % self.width == 0)
        for index, first in enumerate(firsts):
            # The memory holds the blocks of the step before: one more in front where a block has just been closed.
            own = index < known
            yield first, {name: memory[name][index - known] if own else empty[name] for name in empty}

    def reach(self, window: WindowFamily) -> int:
        """The first start of a block is that far from its last end."""
        return self.extent

    def rows_at(self, window: WindowFamily, step: int) -> int:
        return sum(self.lanes * self.ends.rows_at(step - first + 1) for first in self.firsts(step))

    def fresh(self) -> Memory:
        """The memory of no block: arrays of shape (0, ...), to which every block adds a row when it opens."""
        empty = self.ends.fresh(self.lanes)
        return {name: np.zeros((0, *value.shape), dtype=value.dtype) for name, value in empty.items()}

    def _by_lane(self, answers: StepAnswers, k: int, first: int) -> IntArray:
        """The numbers on starts of a block's windows that end at the step, last start first; 0 from later starts."""
        recent = answers.recent[k]
        back = answers.step - np.arange(first, first + self.width)[::-1]
        column = np.where(back >= 0, recent[np.maximum(back, 0)], 0).astype(np.int64)
        return self.starts.encode(column)

    def encode_step(
        self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory
    ) -> tuple[IntArray, Memory]:
        return join_blocks(
            self.ends.encode_step(answers.step - first + 1, self._by_lane(answers, k, first), own)
            for first, own in self.open(answers.step, memory, self.ends.fresh(self.lanes))
        )


def join_blocks(steps: Iterable[tuple[IntArray, Memory]]) -> tuple[IntArray, Memory]:
    """What open blocks measure at a step, one after another, and their memories, a row for each."""
    measured, after = zip(*steps, strict=True)
    joined = {name: np.stack([own[name] for own in after]) for name in after[0]}
    return np.concatenate([one.ravel() for one in measured]), joined


@rule("any-trees-event", AnyWindow, EventLevel, LAPLACE, (Blocks, StepBlocks), when="trees on both axes")
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
    shape: Blocks | StepBlocks = case.measured
    if isinstance(shape, StepBlocks):
        axes: list[tuple[IntegerMap, IntegerMap]] = [(shape.starts, shape.ends)]
        blocks_met = -(-shape.extent // shape.width)
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
