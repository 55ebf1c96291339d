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
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.windows import Answers, count_windows, longest_window
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.certify import Certificate, NotCertifiedError
from dpwindows.kernel.certify import nested as certified
from dpwindows.kernel.maps.filters import CausalFilter, convolve_exactly
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, Memory, read_back, widen
from dpwindows.kernel.maps.lengths import by_ends, by_starts
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import StepAnswers
from dpwindows.kernel.shapes.design import NamedDesign
from dpwindows.kernel.untrusted.decoding.filters import invert_filter
from dpwindows.kernel.untrusted.decoding.nested import (
    ExtendedLeastSquares,
    nested_estimates,
    nested_moments,
    nested_weights,
    real_weights,
)

# Starts of which exact answers are read at a time, at least.
_AT_ONCE = 256


@dataclass(frozen=True)
class NestedDesign(NamedDesign):
    """The windows that are asked for, each measured once, in their canonical order.

    `weights` are those of windows by their length, from 1 step on; without any, all are 1.
    """

    taps: tuple[int, ...] = field(kw_only=True)
    weights: tuple[int, ...] = field(default=(), kw_only=True)

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the filter over windows of at most the length asked for.

        Raises:
            NotCertifiedError: no proof covers it.
        """
        return Certificate(*certified(self.problem, self.taps, self._longest, self.problem.steps, self.weights))

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
        filtered = by_starts(convolve_exactly(taps, by_end))
        return np.asarray(_weighed(filtered, self.weights).T[self._measured])

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
        """Both filters undone, along the lengths."""
        filtered = self._by_length(measured) / real_weights(self.weights, self._longest)[:, None]
        return np.asarray(nested_estimates(self.taps, filtered).T[self._measured])

    def noise_weights(self, combination: FloatArray) -> FloatArray:
        """What a combination of the estimates puts on each number measured: `decode`, transposed."""
        found = nested_weights(self.taps, self._by_length(combination))
        return np.asarray((found / real_weights(self.weights, self._longest)[:, None]).T[self._measured])

    def _by_length(self, values: FloatArray) -> FloatArray:
        found = np.zeros(self._measured.shape)
        found[self._measured] = values
        return found.T

    def variance(self) -> FloatArray:
        """By length alone."""
        return self._by_length_alone(self._length_variance)

    @cached_property
    def _length_variance(self) -> FloatArray:
        """The same, shape (longest,)."""
        return nested_moments(self.taps, self._longest, 2, self.weights)

    def fourth_moment(self) -> FloatArray:
        return self._by_length_alone(nested_moments(self.taps, self._longest, 4, self.weights))

    def _by_length_alone(self, by_length: FloatArray) -> FloatArray:
        return np.broadcast_to(by_length, self._measured.shape)[self._measured]


@dataclass(frozen=True)
class NestedShape:
    """In a stream, all windows of at most `longest` steps that end at the step, by first step.

    The filter on ends runs along the windows with one start, which are one step longer at every step: a causal filter
    whose lanes, the lengths, move on by one with every step. That on starts runs along the lanes. `weights` are as in
    a release.
    """

    longest: int
    taps: tuple[int, ...]
    weights: tuple[int, ...] = ()

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
        found = convolve_exactly(np.array(self.taps, dtype=object), filtered)[: self.rows_at(answers.step)]
        return _weighed(found, self.weights)[::-1]

    def decode(self, answers: StepAnswers, k: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """Both filters undone, that on starts first."""
        by_length = np.zeros(self.longest)
        filtered = measured[::-1] / real_weights(self.weights, self.longest)[: len(measured)]
        by_length[: len(measured)] = invert_filter(self.taps, filtered)
        kept = self._ends.remember(answers.step, self._exact(answers, k), memory)
        estimates, after = read_back(partial(self._ends.decode, answers.step, by_length[None]), memory, kept)
        estimates[len(measured) :] = 0
        return estimates[: len(measured)][::-1], {name: _one_step_longer(lanes) for name, lanes in after.items()}

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
            self._moments[power] = nested_moments(self.taps, self.longest, power, self.weights)
        return self._moments[power]

    def certificate(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of the filter over windows of at most so many steps.

        Raises:
            NotCertifiedError: no proof covers it, or other windows are asked for.
        """
        if self.longest != longest_window(problem.window, horizon or self.longest):
            raise NotCertifiedError(problem, self)
        return Certificate(*certified(problem, self.taps, self.longest, horizon, self.weights))


def _weighed(filtered: IntArray, weights: tuple[int, ...]) -> IntArray:
    """Exact integers by length times the weight of each length; as they are without weights."""
    if not weights:
        return filtered
    wide = widen(filtered, max(map(abs, weights)))
    by_length = np.array(weights[: len(filtered)], dtype=wide.dtype)
    return np.asarray(wide * by_length.reshape(-1, *[1] * (filtered.ndim - 1)))


def _one_step_longer(lanes: NDArray[Any]) -> NDArray[Any]:
    """Values by length, by the length of the windows with the same starts that end a step later."""
    found = np.zeros_like(lanes)
    found[:, 1:] = lanes[:, :-1]
    return found


@dataclass(frozen=True)
class ExtendedDesign(NamedDesign):
    """All windows of the range, and those that reach up to `beyond` steps beyond one of its ends or both.

    The answers of windows beyond the range do not exist: what is measured there sums windows inside it.
    """

    taps: tuple[int, ...] = field(kw_only=True)
    beyond: int = field(kw_only=True)

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the filter over windows of any length.

        Raises:
            NotCertifiedError: no proof covers it.
        """
        bound, proof, _ = certified(self.problem, self.taps, self.problem.steps, self.problem.steps)
        return Certificate(bound, proof, self.rows)

    @property
    def rows(self) -> int:
        """All of the extended square but the windows that do not exist."""
        steps = self.problem.steps
        return (steps + self.beyond) ** 2 - steps * (steps - 1) // 2

    @property
    def _read(self) -> ExtendedLeastSquares:
        """Made anew each time: it holds a large square for long ranges, and is quickly worked out."""
        return ExtendedLeastSquares(self.taps, self.problem.steps, self.beyond)

    def _rows(self, square: FloatArray) -> list[FloatArray]:
        """The windows asked for in the square, by start from the last one back and by end: for each start its own."""
        steps, longest = self.problem.steps, longest_window(self.problem.window, self.problem.steps)
        return [square[steps - 1 - start, start : start + longest] for start in range(steps)]

    def _in_order(self, square: FloatArray) -> FloatArray:
        return np.concatenate(self._rows(square))

    def encode(self, answers: Answers, k: int) -> IntArray:
        """The filter on both axes of the extended square, where there is something to measure."""
        steps, size = self.problem.steps, self.problem.steps + self.beyond
        taps = np.array(self.taps, dtype=object)
        exact = np.zeros((size, steps), dtype=np.int64)
        exact[:steps] = answers.windows(k, 1, steps, 1, steps)[::-1]
        half = convolve_exactly(taps, exact)
        # Large for long ranges, and not needed any more.
        del exact
        ends = np.zeros((size, size), dtype=half.dtype)
        ends[:steps] = half.T
        del half
        places = np.arange(size)
        # Where the end is no earlier than the start.
        return np.asarray(convolve_exactly(taps, ends).T[places[:, None] + places >= steps - 1])

    def decode(self, measured: FloatArray) -> FloatArray:
        """Least squares over the windows that exist."""
        return self._in_order(self._read.decode(measured))

    def noise_weights(self, combination: FloatArray) -> FloatArray:
        """What a combination of the estimates puts on each number measured: `decode`, transposed."""
        square = np.zeros((self.problem.steps, self.problem.steps))
        rows = self._rows(square)
        for row, own in zip(rows, np.split(combination, np.cumsum([len(row) for row in rows])[:-1]), strict=True):
            row[:] = own
        return self._read.weights(square)

    def variance(self) -> FloatArray:
        return self._variance

    @cached_property
    def _variance(self) -> FloatArray:
        return self._in_order(self._read.variance())

    def fourth_moment(self) -> None:
        """Not worked out: the noise is Gaussian."""
