"""The shapes of the paper's cells, each with the noise scale that it prescribes.

Cumulative counts, a cumulative tree for every start, fixed windows and the square of starts and ends are measured
through their point sets (`bounds` defines them and counts their changes).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.ask.windows import Answers
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.certificate import Certificate, NotCertifiedError
from dpwindows.kernel.designs import Shape
from dpwindows.kernel.families.grouped_steps import GroupedSteps
from dpwindows.kernel.maps.integer_maps import IntArray, widen
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.paper import bounds
from dpwindows.strategies.paper.bounds import Touched
from dpwindows.strategies.paper.range_tree import RangeTree
from dpwindows.strategies.strategy import PrescribedScale


@dataclass(frozen=True)
class TreeShape(PrescribedScale):
    """A shape of one kind of range tree."""

    tree: RangeTree
    scale: float = 1.0

    @property
    def prescribed(self) -> float:
        return self.scale

    @abstractmethod
    def touched(self, problem: Problem) -> Touched:
        """What a neighbour can touch of the trees.

        Raises:
            NotCertifiedError: they are none for this window or unit.
        """

    def certify(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """By group privacy of the points that a neighbour moves.

        Raises:
            NotCertifiedError: the trees are none for this window or unit, or runs are bounded.
        """
        # Counts that are each limited to some runs of an item are not the counts of one log, as trees of points are.
        if problem.rule.max_runs is not None and not isinstance(problem.window, Cumulative):
            raise NotCertifiedError(problem, self.tree)
        return bounds.certified(problem, self.touched(problem), self.tree.weight)

    def _touched(self, problem: Problem, applies: bool, trees: int, points: Callable[[int], int]) -> Touched:
        # Not of a class derived from it, which might encode anything; nor with a fraction as weight, which sums of
        # nodes are cut down to.
        own = type(self.tree) is RangeTree and type(self.tree.weight) is int and self.tree.weight >= 1
        if not (own and applies and isinstance(problem.unit, (EventLevel, ItemLevel, ItemAddRemove))):
            raise NotCertifiedError(problem, self.tree)
        rows = self.rows(problem.window, problem.steps)
        return Touched(trees, tuple(points(k) for k in problem.thresholds), self.tree.levels, rows)


@dataclass(frozen=True)
class CumulativeTree(TreeShape):
    """Cumulative counts: one range tree over the steps at which items reach k occurrences."""

    def touched(self, problem: Problem) -> Touched:
        applies = isinstance(problem.window, Cumulative)
        return self._touched(problem, applies, 1, lambda _: bounds.cumulative_points(problem.unit))

    def rows(self, window: WindowFamily, steps: int) -> int:
        return self.tree.rows

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        return self.tree.encode(answers.cumulative(k))


@dataclass(frozen=True)
class TreeForEveryStart(TreeShape):
    """Any windows at item level: a cumulative range tree for every start.

    The series of late starts are continued past the horizon by their last value, which adds no change.
    """

    def touched(self, problem: Problem) -> Touched:
        applies = isinstance(problem.window, AnyWindow) and not isinstance(problem.unit, EventLevel)
        return self._touched(problem, applies, problem.steps, lambda _: bounds.cumulative_points(problem.unit))

    def rows(self, window: WindowFamily, steps: int) -> int:
        return self.tree.rows * steps

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        """Node sums of shape (nodes, starts), flattened."""
        steps, longest = answers.steps, self.tree.length
        by_length = np.zeros((longest, steps), dtype=np.int64)
        for start in range(1, steps + 1):
            counts = answers.windows(k, start, 1, start, min(longest, steps - start + 1))[0]
            by_length[:, start - 1] = counts[np.minimum(np.arange(longest), len(counts) - 1)]
        return self.tree.encode(by_length).ravel()


@dataclass(frozen=True)
class FixedWindowTrees(TreeShape):
    """Rolling counts: in each block of 2W steps one range tree of arrivals and one of departures.

    Block j = 0, 1, ... has its middle at step m = jW and answers the windows that end at m .. m+W-1; steps before 1
    are empty, so block 0 answers the windows that are cut at step 1. As long as the window slides, the count goes up
    by what the extension to W+1 steps brings and down by what is lost when it is shortened again, both differences of
    exact rolling counts of lengths W and W+1.
    """

    def touched(self, problem: Problem) -> Touched:
        applies = isinstance(problem.window, Rolling) and self.tree.length == 2 * problem.window.length
        trees = bounds.fixed_window_trees(problem.unit, self.blocks(problem.steps))
        return self._touched(problem, applies, trees, lambda k: bounds.fixed_window_points(problem.unit, k))

    @property
    def length(self) -> int:
        """The length of the windows."""
        return self.tree.length // 2

    def blocks(self, steps: int) -> int:
        """How many blocks there are: one for each multiple of the length in 0..steps."""
        return steps // self.length + 1

    def rows(self, window: WindowFamily, steps: int) -> int:
        return 2 * self.blocks(steps) * self.tree.rows

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        """Node sums of arrivals and departures: shape (nodes, blocks and blocks again), flattened."""
        arrivals, departures = self.points(answers, k)
        return self.tree.node_sums(np.concatenate([arrivals, departures], axis=1)).ravel()

    def points(self, answers: Answers, k: int) -> tuple[IntArray, IntArray]:
        """How many arrivals and departures there are at 0, 1, ... of each block: shape (2W, blocks), exact."""
        length, steps = self.length, answers.steps
        blocks = self.blocks(steps)
        now = widen(np.concatenate([[0], answers.rolling(k, length)]), 4)
        longer = widen(np.concatenate([[0], answers.rolling(k, length + 1)]), 4)
        arrived, departed = longer.copy(), longer - now
        arrived[1:] -= now[:-1]
        # At its first end a block takes over what is counted there.
        arrived[::length], departed[::length] = now[::length], 0
        padded = np.zeros((2, blocks * length), dtype=now.dtype)
        padded[:, : steps + 1] = arrived, departed
        points = np.zeros((2, self.tree.length, blocks), dtype=now.dtype)
        points[:, :length] = padded.reshape(2, blocks, length).transpose(0, 2, 1)
        return points[0], points[1]


def block_of(start: int, length: int) -> int:
    """The block that serves the window of `length` steps from `start` on: `floor((start - 1) / length) + 1`."""
    return (start - 1) // length + 1


@dataclass(frozen=True)
class TimeWindowTrees(TreeShape):
    """Any windows at event level: two range trees over points in the square of starts and ends.

    For threshold k the first tree holds `x`, the second `x'`; both are measured through the sums of the exact counts
    of at least 1..k and of at least 1..k-1 items, whose mixed differences they are. The universe is left out: it is a
    constant in both.
    """

    def counted(self, thresholds: tuple[int, ...]) -> tuple[int, ...]:
        """Every threshold up to the largest one asked for."""
        return tuple(range(1, max(thresholds) + 1))

    def touched(self, problem: Problem) -> Touched:
        applies = isinstance(problem.window, AnyWindow) and isinstance(problem.unit, EventLevel)
        along_one_axis = self._touched(problem, applies, 2, bounds.time_window_points)
        return replace(along_one_axis, nodes_per_point=along_one_axis.nodes_per_point**2)

    def rows(self, window: WindowFamily, steps: int) -> int:
        return 2 * self.tree.rows**2

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        """Node sums of the points of both trees, one after the other."""
        return np.concatenate([self._node_sums(points) for points in self.points(answers, k)])

    def points(self, answers: Answers, k: int) -> tuple[IntArray, IntArray]:
        """The negated points of x and x' by first coordinate and by last, ends taken last to first; exact."""
        steps = answers.steps
        at_least = [answers.windows(i, 1, steps, 1, steps) for i in range(1, k + 1)]
        before = sum((widen(square, 4 * k) for square in at_least[:-1]), start=np.zeros((steps, steps), dtype=np.int64))
        return _mixed_differences(before + widen(at_least[-1], 4 * k)), _mixed_differences(before)

    def _node_sums(self, points: IntArray) -> IntArray:
        # The first map has put in one factor of the weight, the second must not put in another.
        along_ends = RangeTree(self.tree.length).node_sums(points.T)
        return self.tree.node_sums(along_ends.T).ravel()


def _mixed_differences(square: IntArray) -> IntArray:
    """Differences along starts, and along ends from the last to the first; 0 where the start is after the end."""
    flipped = np.diff(np.diff(square[:, ::-1], axis=0, prepend=0), axis=1, prepend=0)
    steps = len(square)
    starts, ends = np.arange(steps)[:, None], np.arange(steps)[None, ::-1]
    flipped[starts > ends] = 0
    return np.asarray(flipped)


@dataclass(frozen=True)
class CompressedTrees(GroupedSteps, PrescribedScale):
    """Time compression: a cell of the paper on groups of steps, for streams of at most one event a step."""

    @property
    def _inner(self) -> TreeShape:
        assert isinstance(self.inner.shape, TreeShape)
        return self.inner.shape

    @property
    def prescribed(self) -> float:
        """The scale that the inner design prescribes."""
        return self._inner.scale

    def counted(self, thresholds: tuple[int, ...]) -> tuple[int, ...]:
        """The thresholds whose exact answers the inner design reads."""
        return self._inner.counted(thresholds)


# What the kernel measures for whoever asks for the strategy `paper`, and for nobody else.
ADMITTED: tuple[type[Shape], ...] = (
    CumulativeTree,
    TreeForEveryStart,
    FixedWindowTrees,
    TimeWindowTrees,
    CompressedTrees,
)
