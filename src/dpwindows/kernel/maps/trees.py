"""Sums of increments over the nodes of a tree; `tent_tree` has nodes that overlap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.integer_maps import IntArray, Memory, widen
from dpwindows.kernel.untrusted.decoding.trees import CausalTreeDecoding, TreeDecoding


@dataclass(frozen=True)
class Tree(TreeDecoding):
    """Sums of the increments over the nodes of a `branching`-ary tree without its root: a 0/1 matrix.

    Level 0 holds the increments `x_t - x_{t-1}` themselves (`x_0 = 0`), level `l` the sums over `branching^l`
    consecutive ones; the top level is the first with at most `branching` nodes. Each increment is in one node a
    level, so a change of one increment by 1 changes the measurement by `levels` in L1. Decoded by least squares,
    as two passes over the tree; a prefix of the increments is a value of the series.
    """

    length: int
    branching: int

    @cached_property
    def level_sizes(self) -> tuple[int, ...]:
        """Number of nodes of each level, leaves first."""
        sizes = [self.length]
        while sizes[-1] > self.branching:
            sizes.append(-(-sizes[-1] // self.branching))
        return tuple(sizes)

    @property
    def levels(self) -> int:
        """How many nodes hold any one increment."""
        return len(self.level_sizes)

    @property
    def column_total(self) -> int:
        """What the weights of any one increment add up to: one for each level."""
        return self.levels

    @property
    def rows(self) -> int:
        return sum(self.level_sizes)

    def encode(self, exact: IntArray) -> IntArray:
        # A node sum is a difference of two values of the series, so it never exceeds twice the largest value.
        level = np.diff(widen(exact, 2), axis=0, prepend=0)
        measured = [level]
        for size in self.level_sizes[1:]:
            level = np.add.reduceat(level, np.arange(size) * self.branching, axis=0)
            measured.append(level)
        return np.concatenate(measured)


@dataclass(frozen=True)
class CausalTree(CausalTreeDecoding):
    """Sums of increments over the nodes of a `branching`-ary tree, each measured when its last position is reached.

    Level l has the sums over `branching^l` consecutive increments, times the integer `weights_l`. An estimate is the
    sum of the estimates of the complete nodes that make up 1..t, each the least squares estimate from its own subtree:
    nodes that are not complete are not measured yet, so nothing else tells about them, and this is least squares on
    everything measured so far.
    """

    branching: int
    weights: tuple[int, ...]

    @property
    def levels(self) -> int:
        """How many nodes hold any one increment."""
        return len(self.weights)

    def _complete(self, position: int) -> int:
        """How many levels have a node that ends at a position."""
        count, size = 1, self.branching
        while count < self.levels and position % size == 0:
            count, size = count + 1, size * self.branching
        return count

    def rows_at(self, position: int) -> int:
        """One for each node that ends at the position."""
        return self._complete(position)

    def fresh(self, lanes: int) -> Memory:
        """For each level the value at the end of its last complete node, and the estimates since the parent's."""
        return {
            "exact": np.zeros((self.levels, lanes), dtype=np.int64),
            "decoded": np.zeros((self.levels, lanes)),
        }

    def encode(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        """Weighted node sums: differences of two values of the series."""
        count = self._complete(position)
        wide = widen(np.concatenate([exact[None], memory["exact"][:count]]), 2 * max(self.weights))
        weights = np.array(self.weights[:count], dtype=wide.dtype)
        return np.asarray(weights[:, None] * (wide[0] - wide[1:]))

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        """The value, for every level with a node that ends here."""
        bounds = memory["exact"].copy()
        bounds[: self._complete(position)] = exact.astype(np.int64)
        return {"exact": bounds}
