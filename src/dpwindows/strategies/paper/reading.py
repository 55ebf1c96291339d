"""How the paper's trees are read back: prefixes by dyadic decomposition, no least squares."""

from __future__ import annotations

from abc import ABC, abstractmethod

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
    TreeShape,
)

reads(CompressedTrees)(GroupedReader)


class TreeReader(Reader, ABC):
    """Reads trees by adding nodes up, all with one weight."""

    def __init__(self, shape: TreeShape, design: Design) -> None:
        super().__init__(design)
        self._tree = shape.tree

    @abstractmethod
    def _nodes_used(self) -> FloatArray:
        """How many nodes each estimate is made of."""

    def moment(self, power: int) -> FloatArray:
        return self._nodes_used() / float(self._tree.weight) ** power


@reads(CumulativeTree)
class CumulativeTreeReader(TreeReader):
    """Each prefix as the sum of its nodes."""

    def decode(self, measured: FloatArray) -> FloatArray:
        return self._tree.decode(measured)

    def _nodes_used(self) -> FloatArray:
        return self._tree.nodes_used


@reads(TreeForEveryStart)
class TreeForEveryStartReader(TreeReader):
    """Reads the tree of every start, and keeps the windows that exist."""

    def decode(self, measured: FloatArray) -> FloatArray:
        return self._existing(self._tree.decode(measured.reshape(self._tree.rows, self.steps)))

    def _existing(self, by_length: FloatArray) -> FloatArray:
        exists = np.arange(self._tree.length) < self.steps - np.arange(self.steps)[:, None]
        return np.asarray(by_length.T[exists])

    def _nodes_used(self) -> FloatArray:
        return self._existing(np.broadcast_to(self._tree.nodes_used[:, None], (self._tree.length, self.steps)))


@reads(FixedWindowTrees)
class FixedWindowReader(TreeReader):
    """Arrivals so far less departures so far, in the block that each window belongs to."""

    def __init__(self, shape: FixedWindowTrees, design: Design) -> None:
        super().__init__(shape, design)
        self._length, self._blocks = shape.length, shape.blocks(self.steps)

    def decode(self, measured: FloatArray) -> FloatArray:
        so_far = self._tree.decode(measured.reshape(self._tree.rows, 2 * self._blocks))
        return self._by_end(so_far[:, : self._blocks] - so_far[:, self._blocks :])

    def _by_end(self, by_block: FloatArray) -> FloatArray:
        return by_block[: self._length].T.ravel()[1 : self.steps + 1]

    def _nodes_used(self) -> FloatArray:
        return self._by_end(np.repeat(2 * self._tree.nodes_used[:, None], self._blocks, axis=1))


@reads(TimeWindowTrees)
class TimeWindowReader(TreeReader):
    """The points of x up to each start and back to each end, less those of x'."""

    def decode(self, measured: FloatArray) -> FloatArray:
        nodes, prefixes = self._tree.rows, self._tree.prefixes
        first, second = measured.reshape(2, nodes, nodes) / self._tree.weight
        return self._released(np.asarray(prefixes @ (prefixes @ (first - second).T).T))

    def _released(self, square: FloatArray) -> FloatArray:
        """The released windows in canonical order, from a square whose ends come reversed."""
        spans = np.arange(self.steps)[None, :] - np.arange(self.steps)[:, None]
        return square[:, ::-1][(spans >= 0) & (spans < longest_window(self.window, self.steps))]

    def _nodes_used(self) -> FloatArray:
        return self._released(2 * np.outer(self._tree.nodes_used, self._tree.nodes_used))
