"""Sums over the nodes of a tree undone: least squares, in floating point."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dpwindows.kernel.maps.integer_maps import FloatArray, Memory
from dpwindows.kernel.untrusted.decoding.moments import KnownMoments, dense_fourth_moment


class TreeDecoding:
    """How `Tree` is decoded: two passes over the tree."""

    length: int
    branching: int

    if TYPE_CHECKING:

        @property
        def rows(self) -> int: ...

        @property
        def levels(self) -> int: ...

        @property
        def level_sizes(self) -> tuple[int, ...]: ...

    @cached_property
    def _upward(self) -> tuple[tuple[FloatArray, FloatArray, FloatArray], ...]:
        """For each level: variance of a node from its subtree with and without its own row, and its children's."""
        passes = []
        variance = np.ones(self.length)
        passes.append((variance, variance, variance))
        for size in self.level_sizes[1:]:
            below = np.add.reduceat(variance, np.arange(size) * self.branching)
            variance = below / (1.0 + below)
            passes.append((variance, below, variance))
        return tuple(passes)

    def decode(self, measured: FloatArray) -> FloatArray:
        """Least squares: precision-weighted sums upward, residuals shared out downward, then a running sum."""
        bounds = np.cumsum((0, *self.level_sizes))
        own = [measured[low:high] for low, high in pairwise(bounds)]
        shape = (-1,) + (1,) * (measured.ndim - 1)
        best, sums = [own[0]], [own[0]]
        for level in range(1, self.levels):
            total = np.add.reduceat(best[-1], np.arange(self.level_sizes[level]) * self.branching, axis=0)
            below = self._upward[level][1].reshape(shape)
            best.append((below * own[level] + total) / (1.0 + below))
            sums.append(total)
        estimate = best[-1]
        for level in range(self.levels - 1, 0, -1):
            residual = (estimate - sums[level]) / self._upward[level][1].reshape(shape)
            parents = np.arange(self.level_sizes[level - 1]) // self.branching
            estimate = best[level - 1] + self._upward[level - 1][0].reshape(shape) * residual[parents]
        return np.asarray(np.cumsum(estimate, axis=0))

    def variance(self) -> FloatArray:
        """Variance of each prefix, exactly, in O(length).

        Downward each node carries the variance `before` of the sum of everything left of it, the variance `total`
        of its own sum, and their covariance `joint`; given its parent's sum, a node's children are independent of
        everything outside the parent.
        """
        top = self._upward[-1][0]
        before, joint, total = np.cumsum(top) - top, np.zeros_like(top), top
        for level in range(self.levels - 1, 0, -1):
            own = self._upward[level - 1][0]
            parents = np.arange(len(own)) // self.branching
            whole = self._upward[level][1][parents]
            starts = parents * self.branching
            left = np.cumsum(own) - own
            left = left - left[starts]
            share, part = left / whole, own / whole
            outer_before, outer_joint, outer_total = before[parents], joint[parents], total[parents]
            before = outer_before + 2 * share * outer_joint + share**2 * outer_total + left - left * share
            joint = part * (outer_joint + share * outer_total) - left * part
            total = part**2 * outer_total + own - own * part
        return np.asarray(before + 2 * joint + total)

    def fourth_moment(self) -> FloatArray | None:
        return dense_fourth_moment(self.decode, self.rows, self.length)


class CausalTreeDecoding(KnownMoments):
    """How `CausalTree` is decoded: each complete node from its own subtree."""

    branching: int
    weights: tuple[int, ...]

    if TYPE_CHECKING:

        @property
        def levels(self) -> int: ...

    def decode(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """Precision-weighted sums upward, then the sum of all complete nodes."""
        pending = memory["decoded"].copy()
        own, below = self._shares
        estimate = measured[0] * own[0]
        for level in range(1, len(measured)):
            estimate = below[level] * (pending[level - 1] + estimate) + own[level] * measured[level]
            pending[level - 1] = 0.0
        pending[len(measured) - 1] += estimate
        return pending.sum(axis=0), {"decoded": pending}

    @cached_property
    def _shares(self) -> tuple[list[float], list[float]]:
        """What a node's estimate takes of its own number, and of the sum of its children's estimates."""
        own, below = [1.0 / self.weights[0]], [0.0]
        for weight, variance in zip(self.weights[1:], self._moments(2), strict=False):
            children = self.branching * variance
            precision = 1 / children + weight**2
            own.append(weight / precision)
            below.append(1 / children / precision)
        return own, below

    def _moments(self, power: int) -> list[float]:
        """The moment of one complete node's estimate, for each level."""
        variance = moment = 1.0 / self.weights[0] ** 2
        moment = 1.0 / float(self.weights[0]) ** power
        moments = [moment]
        for weight in self.weights[1:]:
            children = self.branching * variance
            variance = 1 / (1 / children + weight**2)
            moment = (variance / children) ** power * self.branching * moment + (variance * weight) ** power
            moments.append(moment)
        return moments

    def _worked_out(self, count: int, power: int) -> FloatArray:
        """By the digits of the position in base `branching`."""
        positions, total = np.arange(1, count + 1), np.zeros(count)
        for level, moment in enumerate(self._moments(power)):
            nodes = positions // self.branching**level
            total += (nodes if level == self.levels - 1 else nodes % self.branching) * moment
        return total
