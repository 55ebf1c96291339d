"""The shapes of the paper's cells, each with the noise scale that its construction prescribes.

Cumulative counts, and a cumulative tree for every start, take the shapes that other strategies have too; fixed windows
and the square of starts and ends are read through their point sets (`bounds` defines them and counts their changes).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpwindows.ask.queries import Rolling
from dpwindows.ask.windows import Answers, longest_window
from dpwindows.kernel.certify import Certificate
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, widen
from dpwindows.kernel.paper import bounds
from dpwindows.kernel.paper.range_tree import RangeTree
from dpwindows.kernel.shapes.counters import CountersDesign
from dpwindows.kernel.shapes.design import NamedDesign, PrescribedScale
from dpwindows.kernel.shapes.grouped import CompressedDesign
from dpwindows.kernel.shapes.series import SeriesDesign


@dataclass(frozen=True)
class Prescribed(NamedDesign, PrescribedScale):
    """A design whose noise scale is fixed by the paper's accounting."""

    scale: float = field(kw_only=True)

    @property
    def counted(self) -> tuple[int, ...]:
        """The thresholds whose exact answers are read."""
        return self.problem.thresholds


@dataclass(frozen=True)
class CumulativeTree(Prescribed, SeriesDesign):
    """Cumulative counts: one range tree over the steps at which items reach k occurrences."""

    @cached_property
    def certificate(self) -> Certificate:
        """By group privacy of the points that a neighbour moves."""
        tree = bounds.range_tree(self.problem, self.map)
        return bounds.certified(self.problem, bounds.cumulative(self.problem, tree), tree)


@dataclass(frozen=True)
class TreeForEveryStart(Prescribed, CountersDesign):
    """Any windows at item level: a cumulative range tree for every start."""

    @cached_property
    def certificate(self) -> Certificate:
        """By group privacy of the points that a neighbour moves in every tree."""
        tree = bounds.range_tree(self.problem, self.map)
        return bounds.certified(self.problem, bounds.every_start(self.problem, tree), tree)


@dataclass(frozen=True)
class FixedWindowTrees(Prescribed):
    """Rolling counts: in each block of 2W steps one range tree of arrivals and one of departures.

    Block j = 0, 1, ... has its middle at step m = jW and answers the windows that end at m .. m+W-1; steps before 1
    are empty, so block 0 answers the windows that are cut at step 1. As long as the window slides, the count goes up
    by what the extension to W+1 steps brings and down by what is lost when it is shortened again, both differences of
    exact rolling counts of lengths W and W+1.
    """

    tree: RangeTree = field(kw_only=True)

    @property
    def _length(self) -> int:
        window = self.problem.window
        assert isinstance(window, Rolling)
        return window.length

    @cached_property
    def blocks(self) -> int:
        """How many blocks there are."""
        return count_blocks(self.problem.steps, self._length)

    @cached_property
    def certificate(self) -> Certificate:
        """By group privacy of the arrivals and departures that a neighbour moves."""
        return bounds.certified(self.problem, bounds.fixed_window(self.problem, self.tree, self.blocks), self.tree)

    @property
    def rows(self) -> int:
        return 2 * self.blocks * self.tree.rows

    def encode(self, answers: Answers, k: int) -> IntArray:
        """Node sums of arrivals and departures: shape (nodes, blocks and blocks again), flattened."""
        arrivals, departures = self.points(answers, k)
        return self.tree.node_sums(np.concatenate([arrivals, departures], axis=1)).ravel()

    def points(self, answers: Answers, k: int) -> tuple[IntArray, IntArray]:
        """How many arrivals and departures there are at 0, 1, ... of each block: shape (2W, blocks), exact."""
        length, steps = self._length, self.problem.steps
        now = widen(np.concatenate([[0], answers.rolling(k, length)]), 4)
        longer = widen(np.concatenate([[0], answers.rolling(k, length + 1)]), 4)
        arrived, departed = longer.copy(), longer - now
        arrived[1:] -= now[:-1]
        # At its first end a block takes over what is counted there.
        arrived[::length], departed[::length] = now[::length], 0
        padded = np.zeros((2, self.blocks * length), dtype=now.dtype)
        padded[:, : steps + 1] = arrived, departed
        points = np.zeros((2, self.tree.length, self.blocks), dtype=now.dtype)
        points[:, :length] = padded.reshape(2, self.blocks, length).transpose(0, 2, 1)
        return points[0], points[1]

    def decode(self, measured: FloatArray) -> FloatArray:
        """Arrivals so far less departures so far, in the block that each window belongs to."""
        so_far = self.tree.decode(measured.reshape(self.tree.rows, 2 * self.blocks))
        return self._by_end(so_far[:, : self.blocks] - so_far[:, self.blocks :])

    def _by_end(self, by_block: FloatArray) -> FloatArray:
        return by_block[: self._length].T.ravel()[1 : self.problem.steps + 1]

    def variance(self) -> FloatArray:
        """Variance of each estimate, the difference of two prefixes, shape (steps,)."""
        return self._variance

    @cached_property
    def _variance(self) -> FloatArray:
        return self._by_end(np.repeat(2 * self.tree.variance()[:, None], self.blocks, axis=1))

    def fourth_moment(self) -> FloatArray:
        return self._by_end(np.repeat(2 * self.tree.fourth_moment()[:, None], self.blocks, axis=1))


def count_blocks(steps: int, length: int) -> int:
    """How many blocks serve windows of `length` steps: one for each multiple of it in 0..steps."""
    return steps // length + 1


def block_of(start: int, length: int) -> int:
    """The block that serves the window of `length` steps from `start` on: `floor((start - 1) / length) + 1`."""
    return (start - 1) // length + 1


@dataclass(frozen=True)
class TimeWindowTrees(Prescribed):
    """Any windows at event level: two range trees over points in the square of starts and ends.

    For threshold k the first tree holds `x`, the second `x'`; both are measured through the sums of the exact counts
    of at least 1..k and of at least 1..k-1 items, whose mixed differences they are. The universe is left out: it is a
    constant in both.
    """

    tree: RangeTree = field(kw_only=True)

    @property
    def counted(self) -> tuple[int, ...]:
        """Every threshold up to the largest one asked for."""
        return tuple(range(1, max(self.problem.thresholds) + 1))

    @cached_property
    def certificate(self) -> Certificate:
        """By group privacy of the points of both trees that a neighbour moves."""
        return bounds.certified(self.problem, bounds.time_window(self.problem, self.tree), self.tree)

    @property
    def rows(self) -> int:
        return 2 * self.tree.rows**2

    def encode(self, answers: Answers, k: int) -> IntArray:
        """Node sums of the points of both trees, one after the other."""
        return np.concatenate([self._node_sums(points) for points in self.points(answers, k)])

    def points(self, answers: Answers, k: int) -> tuple[IntArray, IntArray]:
        """The negated points of x and x' by first coordinate and by last, ends taken last to first; exact."""
        steps = self.problem.steps
        at_least = [answers.windows(i, 1, steps, 1, steps) for i in range(1, k + 1)]
        before = sum((widen(square, 4 * k) for square in at_least[:-1]), start=np.zeros((steps, steps), dtype=np.int64))
        return _mixed_differences(before + widen(at_least[-1], 4 * k)), _mixed_differences(before)

    def _node_sums(self, points: IntArray) -> IntArray:
        # The first map has put in one factor of the weight, the second must not put in another.
        along_ends = RangeTree(self.tree.length).node_sums(points.T)
        return self.tree.node_sums(along_ends.T).ravel()

    def decode(self, measured: FloatArray) -> FloatArray:
        """The points of x up to each start and back to each end, less those of x'."""
        nodes, prefixes = self.tree.rows, self.tree.prefixes
        first, second = measured.reshape(2, nodes, nodes) / self.tree.weight
        return self._asked(np.asarray(prefixes @ (prefixes @ (first - second).T).T))

    def _asked(self, square: FloatArray) -> FloatArray:
        """The released windows in canonical order, from a square whose ends come reversed."""
        steps = self.problem.steps
        spans = np.arange(steps)[None, :] - np.arange(steps)[:, None]
        return square[:, ::-1][(spans >= 0) & (spans < longest_window(self.problem.window, steps))]

    def variance(self) -> FloatArray:
        """One unit for each product of nodes used, in two trees."""
        return self._variance

    @cached_property
    def _variance(self) -> FloatArray:
        return self._asked(2 * np.outer(self.tree.nodes_used, self.tree.nodes_used) / float(self.tree.weight) ** 2)

    def fourth_moment(self) -> FloatArray:
        return self._asked(2 * np.outer(self.tree.nodes_used, self.tree.nodes_used) / float(self.tree.weight) ** 4)


def _mixed_differences(square: IntArray) -> IntArray:
    """Differences along starts, and along ends from the last to the first; 0 where the start is after the end."""
    flipped = np.diff(np.diff(square[:, ::-1], axis=0, prepend=0), axis=1, prepend=0)
    steps = len(square)
    starts, ends = np.arange(steps)[:, None], np.arange(steps)[None, ::-1]
    flipped[starts > ends] = 0
    return np.asarray(flipped)


@dataclass(frozen=True)
class CompressedTrees(CompressedDesign, PrescribedScale):
    """Time compression: a cell of the paper on groups of steps, for streams of at most one event a step."""

    inner: Prescribed

    @property
    def scale(self) -> float:  # type: ignore[override]
        """The scale that the inner design prescribes."""
        return self.inner.scale

    @property
    def counted(self) -> tuple[int, ...]:
        """The thresholds whose exact answers the inner design reads."""
        return self.inner.counted
