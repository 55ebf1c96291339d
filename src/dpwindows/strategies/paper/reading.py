"""How the paper's trees are read back: prefixes by dyadic decomposition, no least squares."""

from __future__ import annotations

import numpy as np

from dpwindows.ask.windows import longest_window
from dpwindows.kernel.designs import Design
from dpwindows.reading.designs import GroupedReader
from dpwindows.reading.moments import FloatArray
from dpwindows.reading.reader import Reader, reads
from dpwindows.strategies.paper.shapes import (
    CompressedTrees,
    CumulativeTree,
    FixedWindowTrees,
    TimeWindowTrees,
    TreeForEveryStart,
)

reads(CompressedTrees)(GroupedReader)


@reads(CumulativeTree)
class CumulativeTreeReader(Reader):
    """Each prefix as the sum of its nodes."""

    def __init__(self, shape: CumulativeTree, design: Design) -> None:
        super().__init__(design)
        self._tree = shape.tree

    def decode(self, measured: FloatArray) -> FloatArray:
        return self._tree.decode(measured)

    def moment(self, power: int) -> FloatArray:
        return self._tree.variance() if power == 2 else self._tree.fourth_moment()


@reads(TreeForEveryStart)
class TreeForEveryStartReader(Reader):
    """Reads the tree of every start, and keeps the windows that exist."""

    def __init__(self, shape: TreeForEveryStart, design: Design) -> None:
        super().__init__(design)
        self._tree = shape.tree

    def decode(self, measured: FloatArray) -> FloatArray:
        return self._asked(self._tree.decode(measured.reshape(self._tree.rows, self.steps)))

    def moment(self, power: int) -> FloatArray:
        return self._by_length(self._tree.variance() if power == 2 else self._tree.fourth_moment())

    def _asked(self, by_length: FloatArray) -> FloatArray:
        exists = np.arange(self._tree.length) < self.steps - np.arange(self.steps)[:, None]
        return np.asarray(by_length.T[exists])

    def _by_length(self, values: FloatArray) -> FloatArray:
        return self._asked(np.broadcast_to(values[:, None], (self._tree.length, self.steps)))


@reads(FixedWindowTrees)
class FixedWindowReader(Reader):
    """Arrivals so far less departures so far, in the block that each window belongs to."""

    def __init__(self, shape: FixedWindowTrees, design: Design) -> None:
        super().__init__(design)
        self._shape, self._blocks = shape, shape.blocks(self.steps)

    def decode(self, measured: FloatArray) -> FloatArray:
        so_far = self._shape.tree.decode(measured.reshape(self._shape.tree.rows, 2 * self._blocks))
        return self._by_end(so_far[:, : self._blocks] - so_far[:, self._blocks :])

    def _by_end(self, by_block: FloatArray) -> FloatArray:
        return by_block[: self._shape.length].T.ravel()[1 : self.steps + 1]

    def moment(self, power: int) -> FloatArray:
        """Moments of each estimate, the difference of two prefixes, shape (steps,)."""
        tree = self._shape.tree
        prefixes = tree.variance() if power == 2 else tree.fourth_moment()
        return self._by_end(np.repeat(2 * prefixes[:, None], self._blocks, axis=1))


@reads(TimeWindowTrees)
class TimeWindowReader(Reader):
    """The points of x up to each start and back to each end, less those of x'."""

    def __init__(self, shape: TimeWindowTrees, design: Design) -> None:
        super().__init__(design)
        self._tree = shape.tree

    def decode(self, measured: FloatArray) -> FloatArray:
        nodes, prefixes = self._tree.rows, self._tree.prefixes
        first, second = measured.reshape(2, nodes, nodes) / self._tree.weight
        return self._asked(np.asarray(prefixes @ (prefixes @ (first - second).T).T))

    def _asked(self, square: FloatArray) -> FloatArray:
        """The released windows in canonical order, from a square whose ends come reversed."""
        spans = np.arange(self.steps)[None, :] - np.arange(self.steps)[:, None]
        return square[:, ::-1][(spans >= 0) & (spans < longest_window(self.window, self.steps))]

    def moment(self, power: int) -> FloatArray:
        """One unit for each product of nodes used, in two trees."""
        used = np.outer(self._tree.nodes_used, self._tree.nodes_used)
        return self._asked(2 * used / float(self._tree.weight) ** power)
