"""The binary range tree: sums of points over dyadic intervals, and prefixes as sums of few of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, widen


@dataclass(frozen=True)
class RangeTree:
    """`weight` times the sums of the increments over dyadic intervals; a prefix is read from its own nodes only.

    The tree has no root: its two children answer for it. A prefix of n increments is estimated by the sum of the nodes
    of its dyadic decomposition, one for each binary digit 1 of n, as in the classical analysis: no least squares.
    `weight` is the number of lattice units of one count.
    """

    length: int
    weight: int = 1

    @cached_property
    def level_sizes(self) -> tuple[int, ...]:
        """How many nodes each level has, leaves first; the top level has at most two."""
        sizes = [self.length]
        while sizes[-1] > 2:
            sizes.append(-(-sizes[-1] // 2))
        return tuple(sizes)

    @property
    def levels(self) -> int:
        """How many nodes hold any one increment: the logarithm of the length, rounded up (at least 1)."""
        return len(self.level_sizes)

    @property
    def rows(self) -> int:
        """How many nodes the tree has, all levels together."""
        return sum(self.level_sizes)

    def node_sums(self, points: IntArray) -> IntArray:
        """The weighted sums of `points` over every node, along the first axis, leaves first; exact."""
        # Each node is a sum of at most `length` entries.
        level = self.weight * widen(points, self.length * self.weight)
        measured = [level]
        for size in self.level_sizes[1:]:
            level = np.add.reduceat(level, np.arange(size) * 2, axis=0)
            measured.append(level)
        return np.concatenate(measured)

    def encode(self, exact: IntArray) -> IntArray:
        """The node sums of the increments of a series that is 0 before its first position."""
        return self.node_sums(np.diff(widen(exact, 2), axis=0, prepend=0))

    @cached_property
    def prefixes(self) -> Any:
        """The nodes that make up each prefix: a sparse 0/1 matrix of shape (length, rows)."""
        sizes = self.level_sizes
        offsets = np.cumsum((0, *sizes))
        ends = np.arange(1, self.length + 1)
        chosen = scipy.sparse.lil_array((self.length, self.rows))
        for level in range(self.levels - 1):
            odd = (ends >> level) & 1 == 1
            chosen[ends[odd] - 1, offsets[level] + (ends[odd] >> level) - 1] = 1.0
        # The top level has at most two nodes, and a prefix may need both.
        top = self.levels - 1
        for node in range(sizes[top]):
            holds = ends >> top > node
            chosen[ends[holds] - 1, offsets[top] + node] = 1.0
        return chosen.tocsr()

    def decode(self, measured: FloatArray) -> FloatArray:
        """Each prefix as the sum of its nodes, in counts."""
        return np.asarray(self.prefixes @ measured) / self.weight
