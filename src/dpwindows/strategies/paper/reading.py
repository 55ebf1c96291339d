"""How the paper's trees are read back: prefixes by dyadic decomposition, no least squares."""

from __future__ import annotations

import numpy as np

from dpwindows.ask.windows import longest_window
from dpwindows.kernel.designs import Design
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.reading.designs import GroupedReader
from dpwindows.reading.reader import Reader, reads
from dpwindows.strategies.paper.shapes import (
    CompressedTrees,
    CumulativeTree,
    FixedWindowTrees,
    TimeWindowTrees,
    TreeForEveryStart,
    TreeShape,
)

reads(CompressedTrees)(GroupedReader)


class TreeReader(Reader):
    """Reads trees by adding nodes up, all with one weight and some of them with a minus."""

    def __init__(self, shape: TreeShape, design: Design) -> None:
        super().__init__(design)
        self._tree, self._rows = shape.tree, shape.rows(self.window, self.steps)

    def _signs(self) -> FloatArray:
        """With which sign each number that was measured is added."""
        return np.ones(self._rows)

    def moment(self, power: int) -> FloatArray:
        # Of nodes that are all their sign an estimate is how many it is made of.
        return self.decode(self._signs()) * self._tree.weight / float(self._tree.weight) ** power


@reads(CumulativeTree)
class CumulativeTreeReader(TreeReader):
    """Each prefix as the sum of its nodes."""

    def decode(self, measured: FloatArray) -> FloatArray:
        return self._tree.decode(measured)


@reads(TreeForEveryStart)
class TreeForEveryStartReader(TreeReader):
    """Reads the tree of every start, and keeps the windows that exist."""

    def decode(self, measured: FloatArray) -> FloatArray:
        by_length = self._tree.decode(measured.reshape(self._tree.rows, self.steps))
        exists = np.arange(self._tree.length) < self.steps - np.arange(self.steps)[:, None]
        return np.asarray(by_length.T[exists])


@reads(FixedWindowTrees)
class FixedWindowReader(TreeReader):
    """Arrivals so far less departures so far, in the block that each window belongs to."""

    def __init__(self, shape: FixedWindowTrees, design: Design) -> None:
        super().__init__(shape, design)
        self._length, self._blocks = shape.length, shape.blocks(self.steps)

    def decode(self, measured: FloatArray) -> FloatArray:
        so_far = self._tree.decode(measured.reshape(self._tree.rows, 2 * self._blocks))
        by_block = so_far[:, : self._blocks] - so_far[:, self._blocks :]
        return by_block[: self._length].T.ravel()[1 : self.steps + 1]

    def _signs(self) -> FloatArray:
        return np.tile(np.repeat([1.0, -1.0], self._blocks), self._tree.rows)


@reads(TimeWindowTrees)
class TimeWindowReader(TreeReader):
    """The points of x up to each start and back to each end, less those of x'."""

    def decode(self, measured: FloatArray) -> FloatArray:
        nodes, prefixes = self._tree.rows, self._tree.prefixes
        first, second = measured.reshape(2, nodes, nodes) / self._tree.weight
        square = np.asarray(prefixes @ (prefixes @ (first - second).T).T)
        # In canonical order; ends come reversed.
        spans = np.arange(self.steps)[None, :] - np.arange(self.steps)[:, None]
        return square[:, ::-1][(spans >= 0) & (spans < longest_window(self.window, self.steps))]

    def _signs(self) -> FloatArray:
        return np.repeat([1.0, -1.0], self._tree.rows**2)
