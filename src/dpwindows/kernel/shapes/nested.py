"""Any windows, each measured with windows inside it: what no log can change is not measured, and is known in decoding.

The number of the window a..b is a weighted sum over the windows inside it, `taps_i taps_j` the weight of that from
a + i to b - j: one filter on starts, taken last to first, times the same on ends. A window that ends before it starts
is 0 in every log, and so is whatever lies inside it. So no such number is measured, decoding puts 0 in its place, and
no estimate has a part in noise of that kind.

`NestedDesign` measures the windows that are asked for and no others; its estimates are then determined. All arrays have
a row for each length and a column for each start (or each end): both filters run along the lengths.
`NestedShape` does the same in a stream: what is inside a window has ended when the window ends.
`ExtendedDesign` measures windows of all lengths, and also a few that reach beyond both ends of the range: what they
say of the windows inside them lowers the error of long windows, which is why there is something to fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.windows import Answers, count_windows, longest_window, window_steps
from dpwindows.kernel.certify import Certificate, NotCertifiedError
from dpwindows.kernel.certify import nested as certified
from dpwindows.kernel.maps.filters import CausalFilter, convolve_exactly, inverse_taps, invert_filter
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, Memory
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import StepAnswers
from dpwindows.kernel.shapes.design import NamedDesign

# Starts of which exact answers are read at a time, at least.
_AT_ONCE = 256


@dataclass(frozen=True)
class NestedDesign(NamedDesign):
    """The windows that are asked for, each measured once, in their canonical order."""

    taps: tuple[int, ...] = field(kw_only=True)

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the filter over windows of at most the length asked for."""
        return Certificate(*certified(self.problem, self.taps, self._longest, self.problem.steps))

    @property
    def rows(self) -> int:
        """One number for each window."""
        return count_windows(self.problem.window, self.problem.steps)

    @property
    def _longest(self) -> int:
        return longest_window(self.problem.window, self.problem.steps)

    @cached_property
    def _measured(self) -> NDArray[np.bool_]:
        """Which lengths there are, for each start: shape (starts, lengths), in canonical order."""
        return np.arange(self._longest) < self.problem.steps - np.arange(self.problem.steps)[:, None]

    def encode(self, answers: Answers, k: int) -> IntArray:
        """The filter along the lengths of the windows with one start, then of those with one end."""
        taps = np.array(self.taps, dtype=object)
        by_end = by_ends(convolve_exactly(taps, self._exact(answers, k)))
        return np.asarray(by_starts(convolve_exactly(taps, by_end)).T[self._measured])

    def _exact(self, answers: Answers, k: int) -> IntArray:
        """The exact answers by length and start, 0 where a window would end after the range."""
        steps, longest = self.problem.steps, self._longest
        exact = np.zeros((longest, steps), dtype=np.int64)
        width = max(longest, _AT_ONCE)
        for first in range(1, steps + 1, width):
            starts, ends = min(width, steps - first + 1), min(width + longest - 1, steps - first + 1)
            block = answers.windows(k, first, starts, first, ends)
            for start in range(starts):
                found = block[start, start : start + longest]
                exact[: len(found), first - 1 + start] = found
        return exact

    def decode(self, measured: FloatArray) -> FloatArray:
        """The inverse filter along the lengths, for windows with one start and for those with one end."""
        by_end = by_ends(invert_filter(self.taps, self._by_length(measured)))
        return np.asarray(by_starts(invert_filter(self.taps, by_end)).T[self._measured])

    def weights(self, combination: FloatArray) -> FloatArray:
        """What a combination of the estimates puts on each number measured: `decode`, transposed."""
        return np.asarray(nested_weights(self.taps, self._by_length(combination)).T[self._measured])

    def _by_length(self, values: FloatArray) -> FloatArray:
        found = np.zeros(self._measured.shape)
        found[self._measured] = values
        return found.T

    def variance(self) -> FloatArray:
        """By length alone: the squared weights of the windows inside."""
        return self._variance

    @cached_property
    def _variance(self) -> FloatArray:
        return self._moment(2)

    def fourth_moment(self) -> FloatArray:
        """The same with fourth powers."""
        return self._moment(4)

    def _moment(self, power: int) -> FloatArray:
        by_length = nested_moments(self.taps, self._longest, power)
        return np.broadcast_to(by_length, self._measured.shape)[self._measured]


def nested_moments(taps: tuple[int, ...], longest: int, power: int) -> FloatArray:
    """Second or fourth moments of the weights of a window's estimate, for lengths 1..longest.

    With c the inverse taps the weight of the window from a + i to b - j is `c_i c_j`, for i + j less than the length.
    """
    powers = inverse_taps(taps, longest) ** power
    return np.cumsum(np.convolve(powers, powers)[:longest])


def by_ends(by_start: IntArray) -> IntArray:
    """Values by length and start, by length and end; windows that end after the last start are left out."""
    found = np.zeros_like(by_start)
    for more, row in enumerate(by_start):
        found[more, more:] = row[: len(row) - more]
    return found


def by_starts(by_end: IntArray) -> IntArray:
    """The same back again."""
    found = np.zeros_like(by_end)
    for more, row in enumerate(by_end):
        found[more, : len(row) - more] = row[more:]
    return found


def nested_weights(taps: tuple[int, ...], by_start: FloatArray) -> FloatArray:
    """What a combination of estimates, by length and start, puts on the numbers measured: decoding transposed."""
    by_end = by_ends(invert_filter(taps, by_start[::-1])[::-1])
    return by_starts(invert_filter(taps, by_end[::-1])[::-1])


@dataclass(frozen=True)
class NestedShape:
    """In a stream, all windows of at most `longest` steps that end at the step, by first step.

    The filter on ends runs along the windows with one start, which are one step longer at every step: a causal filter
    whose lanes, the lengths, move on by one with every step. That on starts runs along the lanes.
    """

    longest: int
    taps: tuple[int, ...]

    @property
    def reach(self) -> int:
        """The longest window's steps."""
        return self.longest

    @property
    def _ends(self) -> CausalFilter:
        return CausalFilter(self.taps[: self.longest])

    def rows_at(self, step: int) -> int:
        """One for each window."""
        return min(self.longest, step)

    def fresh(self) -> Memory:
        """The causal filter's, by length."""
        return self._ends.fresh(self.longest)

    def _exact(self, answers: StepAnswers, k: int) -> IntArray:
        """The exact counts by length, 0 for windows that would start before step 1."""
        exact = np.zeros(self.longest, dtype=np.int64)
        there = self.rows_at(answers.step)
        exact[:there] = answers.recent[k][:there]
        return exact

    def encode(self, answers: StepAnswers, k: int, memory: Memory) -> IntArray:
        """The newest value of the filter on ends, for all lengths, then the filter on starts."""
        filtered = self._ends.encode(answers.step, self._exact(answers, k), memory)[0]
        return convolve_exactly(np.array(self.taps, dtype=object), filtered)[: self.rows_at(answers.step)][::-1]

    def decode(self, answers: StepAnswers, k: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """Both filters undone, that on starts first."""
        by_length = np.zeros(self.longest)
        by_length[: len(measured)] = invert_filter(self.taps, measured[::-1])
        estimates, decoded = self._ends.decode(answers.step, by_length[None], memory)
        estimates[len(measured) :] = 0
        kept = self._ends.remember(answers.step, self._exact(answers, k), memory) | decoded
        return estimates[: len(measured)][::-1], {name: _one_step_longer(lanes) for name, lanes in kept.items()}

    def moment(self, step: int, power: int) -> FloatArray:
        """By length alone, as in a release."""
        return self._known(power)[: self.rows_at(step)][::-1]

    def moments(self, steps: int, power: int) -> None:
        """By step: windows come by start in a release, by end in a stream."""

    @cached_property
    def _moments(self) -> dict[int, FloatArray]:
        return {}

    def _known(self, power: int) -> FloatArray:
        if power not in self._moments:
            self._moments[power] = nested_moments(self.taps, self.longest, power)
        return self._moments[power]

    def certificate(self, problem: Problem, horizon: int | None) -> Certificate:
        """The certificate of the filter over windows of at most so many steps."""
        if self.longest != longest_window(problem.window, horizon or self.longest):
            raise NotCertifiedError(problem, self)
        return Certificate(*certified(problem, self.taps, self.longest, horizon))


def _one_step_longer(lanes: NDArray[Any]) -> NDArray[Any]:
    """Values by length, by the length of the windows with the same starts that end a step later."""
    found = np.zeros_like(lanes)
    found[:, 1:] = lanes[:, :-1]
    return found


@dataclass(frozen=True)
class ExtendedDesign(NamedDesign):
    """All windows of the range, and those that reach up to `beyond` steps beyond one of its ends or both.

    The answers of windows beyond the range do not exist: what is measured there sums windows inside it.

    Decoding. Let A be the filter on one axis (steps + beyond rows), and C lower-triangular with `C'C = A'A`. Starts are
    taken last to first and ends first to last, so M = A x A (a tensor product) and C x C give each window weights on
    windows inside it alone: with D the cells of windows that do not exist and U the others, `(C x C)_DU = 0`. So the
    rows of M that are measured, which are all with weights on U, have on U the Gram matrix `(C x C)_UU' (C x C)_UU`,
    and least squares over the windows that exist is `(C x C)_UU^-1 (C x C)_UU'^-1 (M'y)_U`. Both inverses are those of
    triangles: restricting `C^-1 x C^-1` to U gives the first, and its transpose the second. Its covariance is
    `(C x C)_UU^-1 (C x C)_UU'^-1`, so variances are sums of squares of `C^-1 x C^-1` over U. Nothing is iterated.
    """

    taps: tuple[int, ...] = field(kw_only=True)
    beyond: int = field(kw_only=True)

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the filter over windows of any length."""
        bound, proof, _ = certified(self.problem, self.taps, self.problem.steps, self.problem.steps)
        return Certificate(bound, proof, self.rows)

    @property
    def rows(self) -> int:
        """All of the extended square but the windows that do not exist."""
        steps = self.problem.steps
        return (steps + self.beyond) ** 2 - steps * (steps - 1) // 2

    def _exist(self, size: int) -> NDArray[np.bool_]:
        """Which cells stand for windows, by start from the last one back and by end from the first one on."""
        places = np.arange(size)
        return np.asarray(places[:, None] + places >= self.problem.steps - 1)

    @cached_property
    def _asked(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The cells of the windows asked for, in canonical order."""
        first, last = window_steps(self.problem.window, self.problem.steps)
        return self.problem.steps - first, last - 1

    def encode(self, answers: Answers, k: int) -> IntArray:
        """The filter on both axes of the extended square, where there is something to measure."""
        steps, size = self.problem.steps, self.problem.steps + self.beyond
        taps = np.array(self.taps, dtype=object)
        exact = np.zeros((size, steps), dtype=np.int64)
        exact[:steps] = answers.windows(k, 1, steps, 1, steps)[::-1]
        half = convolve_exactly(taps, exact)
        ends = np.zeros((size, size), dtype=half.dtype)
        ends[:steps] = half.T
        return np.asarray(convolve_exactly(taps, ends).T[self._exist(size)])

    @cached_property
    def _triangle(self) -> tuple[FloatArray, FloatArray]:
        """`C^-1`, and `C'^-1 A'`."""
        from scipy import linalg

        steps = self.problem.steps
        column = np.zeros(steps + self.beyond)
        known = self.taps[: len(column)]
        column[: len(known)] = np.array(known, dtype=np.float64)
        axis = linalg.toeplitz(column, np.zeros(steps))
        # Cholesky's factor of the matrix with rows and columns reversed, reversed: lower-triangular, C'C = A'A.
        lower = np.linalg.cholesky((axis.T @ axis)[::-1, ::-1]).T[::-1, ::-1]
        inverse = linalg.solve_triangular(lower, np.eye(steps), lower=True)
        return inverse, inverse.T @ axis.T

    def decode(self, measured: FloatArray) -> FloatArray:
        """Least squares over the windows that exist."""
        inverse, turned = self._triangle
        exist = self._exist(len(turned[0]))
        found = np.zeros(exist.shape)
        found[exist] = measured
        fitted = np.where(self._exist(self.problem.steps), turned @ found @ turned.T, 0.0)
        return np.asarray((inverse @ fitted @ inverse.T)[self._asked])

    def weights(self, combination: FloatArray) -> FloatArray:
        """What a combination of the estimates puts on each number measured: `decode`, transposed."""
        inverse, turned = self._triangle
        found = np.zeros((self.problem.steps, self.problem.steps))
        found[self._asked] = combination
        fitted = np.where(self._exist(self.problem.steps), inverse.T @ found @ inverse, 0.0)
        return np.asarray((turned.T @ fitted @ turned)[self._exist(len(turned[0]))])

    def variance(self) -> FloatArray:
        """Sums of squares over the windows that exist."""
        return self._variance

    @cached_property
    def _variance(self) -> FloatArray:
        squares = self._triangle[0] ** 2
        # For each start and end: the sum over all starts with which that end makes a window.
        reached = np.cumsum(squares[:, ::-1], axis=1)
        return np.asarray((reached @ squares.T)[self._asked])

    def fourth_moment(self) -> None:
        """Not worked out: the noise is Gaussian."""
