"""Prefix counters, one position at a time: rows over all increments so far, and trees of increments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import linalg

from dpwindows.kernel.maps.causal import KnownMoments, Memory, weighted_sum
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, invert_filter, widen

# Inverse taps worked out one after the other, in time that grows like the square of their number.
_TERM_BY_TERM = 1 << 13


class Rows(Protocol):
    """The rows of a lower-triangular integer matrix on increments, its diagonal positive."""

    @property
    def longest(self) -> int:
        """How many rows there are."""
        ...

    @property
    def stationary(self) -> bool:
        """Whether every row is the one before, shifted by one."""
        ...

    def row(self, position: int) -> IntArray:
        """Entries 1..position of a row."""
        ...


@dataclass(frozen=True, eq=False)
class ListedRows:
    """A lower-triangular matrix, entry by entry."""

    matrix: IntArray
    stationary = False

    @property
    def longest(self) -> int:
        """The size of the matrix."""
        return len(self.matrix)

    def row(self, position: int) -> IntArray:
        """Entries 1..position of the listed row, shape (position,)."""
        return np.asarray(self.matrix[position - 1, :position])


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Row t has the entries `taps_{t-j} weights_j`, for as many rows as there are weights."""

    taps: IntArray
    weights: IntArray
    stationary = False

    @property
    def longest(self) -> int:
        """How many weights there are."""
        return len(self.weights)

    def row(self, position: int) -> IntArray:
        """Taps last to first, weighted."""
        return np.asarray(self.taps[:position][::-1] * self.weights[:position])


@dataclass(frozen=True)
class CausalCounter(KnownMoments):
    """`y_t = sum_{j<=t} row_tj (x_j - x_{j-1})`, `x_0 = 0`: decoded by substitution and a running sum.

    The memory grows with the position: every increment stays in it.
    """

    rows: Rows

    def rows_at(self, position: int) -> int:
        """Always 1: the row of the position."""
        return 1

    def fresh(self, lanes: int) -> Memory:
        """No increments yet: arrays of shape (0, lanes), and running values of shape (lanes,)."""
        return {
            "exact": np.zeros((0, lanes), dtype=np.int64),
            "last": np.zeros(lanes, dtype=np.int64),
            "decoded": np.zeros((0, lanes)),
            "sum": np.zeros(lanes),
        }

    def encode(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        """The row times all increments."""
        increments = np.concatenate([memory["exact"], (exact - memory["last"])[None]])
        return weighted_sum(self.rows.row(position), increments)[None]

    def decode(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The newest increment by substitution, added to the sum of the earlier ones."""
        row = self.rows.row(position).astype(np.float64)
        increment = (measured[0] - row[:-1] @ memory["decoded"]) / row[-1]
        estimate = memory["sum"] + increment
        return estimate, {"decoded": np.concatenate([memory["decoded"], increment[None]]), "sum": estimate}

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        """The increments with the newest one after them, and the value that the next is taken from."""
        value = exact.astype(np.int64)
        return {"exact": np.concatenate([memory["exact"], (value - memory["last"])[None]]), "last": value}

    def _worked_out(self, count: int, power: int) -> FloatArray:
        if self.rows.stationary:
            # Every position responds alike to noise at an earlier one.
            response = np.cumsum(_inverse(self.rows.row(count)[::-1]))
            return np.cumsum(response**power)
        count = min(count, self.rows.longest)
        matrix = np.zeros((count, count))
        for position in range(1, count + 1):
            matrix[position - 1, :position] = self.rows.row(position)
        increments = linalg.solve_triangular(matrix, np.eye(count), lower=True)
        return np.asarray((np.cumsum(increments, axis=0) ** power).sum(axis=1))


@dataclass(frozen=True)
class CausalTree(KnownMoments):
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

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        """The value, for every level with a node that ends here."""
        bounds = memory["exact"].copy()
        bounds[: self._complete(position)] = exact.astype(np.int64)
        return {"exact": bounds}

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


def _inverse(taps: IntArray) -> FloatArray:
    """The inverse taps: term by term, and for very many by Newton's doubling on power series."""
    impulse = np.zeros(min(len(taps), _TERM_BY_TERM))
    impulse[0] = 1.0
    inverse = invert_filter([int(tap) for tap in taps[: len(impulse)]], impulse)
    while len(inverse) < len(taps):
        from scipy import signal

        longer = min(2 * len(inverse), len(taps))
        residual = -signal.fftconvolve(taps[:longer].astype(np.float64), inverse)[:longer]
        residual[0] += 2.0
        inverse = signal.fftconvolve(inverse, residual)[:longer]
    return np.asarray(inverse)
