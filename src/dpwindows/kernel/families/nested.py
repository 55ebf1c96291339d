r"""Any windows, each measured with windows inside it: what no log can change is not measured.

The number measured for the window a..b is a weighted sum over the windows inside it; the window from a + i to b - j
has the weight `taps_i taps_j`: one filter runs on starts, last to first, and one like it on ends. A window that ends
before it starts counts 0 in every log, and so does whatever lies inside it: no such number is measured. Just the
windows asked for are measured, each once. All arrays have a row for each length and a column for each start (or each
end): both filters run along the lengths.

Two bounds are for it, in `families.rectangles`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.queries import WindowFamily
from dpwindows.ask.windows import Answers, count_windows, longest_window
from dpwindows.kernel.designs import StepAnswers, StepShape
from dpwindows.kernel.families.lines import lines_bound, lines_of_starts
from dpwindows.kernel.maps.filters import Filter, convolve_exactly
from dpwindows.kernel.maps.integer_maps import IntArray, Memory, widen
from dpwindows.kernel.rules import Case

# The least number of starts whose exact answers are read at a time.
_AT_ONCE = 256


@dataclass(frozen=True)
class Nested(StepShape):
    """All windows of at most `longest` steps, in canonical order; in a stream those that end at the step, by start.

    In a stream the filter on ends runs along the windows with one start, which are one step longer at every step: a
    causal filter whose lanes, the lengths, move on by one with every step. That on starts runs along the lanes.

    Attributes:
        longest: the steps of the longest window that is measured.
        taps: of the filter.
        weights: of windows by their length, from 1 step on; without any, all are 1.
    """

    longest: int
    taps: tuple[int, ...]
    weights: tuple[int, ...] = ()

    def is_for(self, case: Case) -> bool:
        """The windows that are asked for are as long as those that are measured."""
        return self.longest == longest_window(case.problem.window, case.steps or self.longest)

    def moved(self, case: Case) -> int:
        """As many windows as hold any one step."""
        return lines_bound(lines_of_starts(self.longest, 1, case.steps), range(self.longest + 1), 1)

    def rows(self, window: WindowFamily, steps: int) -> int:
        """One number for each window."""
        return count_windows(window, steps)

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        """The filter along the lengths of the windows with one start, then of those with one end."""
        taps = np.array(self.taps, dtype=object)
        by_end = index_by_end(convolve_exactly(taps, self._exact(answers, k)))
        filtered = index_by_start(convolve_exactly(taps, by_end))
        return np.asarray(_weighed(filtered, self.weights).T[lengths_exist(self.longest, answers.steps)])

    def _exact(self, answers: Answers, k: int) -> IntArray:
        """The exact answers by length and start, 0 where a window would end after the range."""
        steps, longest = answers.steps, self.longest
        exact = np.zeros((longest, steps), dtype=np.int64)
        width = max(longest, _AT_ONCE)
        for first in range(1, steps + 1, width):
            starts, ends = min(width, steps - first + 1), min(width + longest - 1, steps - first + 1)
            block = answers.windows(k, first, starts, first, ends)
            for start in range(starts):
                counts = block[start, start : start + longest]
                exact[: len(counts), first - 1 + start] = counts
        return exact

    @property
    def along_ends(self) -> Filter:
        """The filter on ends, as far as windows are long."""
        return Filter(self.taps[: self.longest])

    def reach(self, window: WindowFamily) -> int:
        """The longest window's steps."""
        return self.longest

    def rows_at(self, window: WindowFamily, step: int) -> int:
        """One for each window that ends at the step."""
        return min(self.longest, step)

    def fresh(self) -> Memory:
        """The causal filter's, by length."""
        return self.along_ends.fresh(self.longest)

    def _newest(self, answers: StepAnswers, k: int) -> IntArray:
        """The exact counts by length, 0 for windows that would start before step 1."""
        exact = np.zeros(self.longest, dtype=np.int64)
        there = min(self.longest, answers.step)
        exact[:there] = answers.recent[k][:there]
        return exact

    def encode_step(
        self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory
    ) -> tuple[IntArray, Memory]:
        """The newest value of the filter on ends, for all lengths, then the filter on starts."""
        filtered, after = self.along_ends.encode_step(answers.step, self._newest(answers, k), memory)
        both = convolve_exactly(np.array(self.taps, dtype=object), filtered[0])[: self.rows_at(window, answers.step)]
        return _weighed(both, self.weights)[::-1], {name: one_step_longer(lanes) for name, lanes in after.items()}


def lengths_exist(longest: int, steps: int) -> NDArray[np.bool_]:
    """Marks the lengths that there are for each start: shape (starts, lengths), in canonical order."""
    return np.asarray(np.arange(longest) < steps - np.arange(steps)[:, None])


def one_step_longer(lanes: NDArray[Any]) -> NDArray[Any]:
    """Values by length, by the length of the windows with the same starts that end a step later."""
    longer = np.zeros_like(lanes)
    longer[:, 1:] = lanes[:, :-1]
    return longer


def _weighed(filtered: IntArray, weights: tuple[int, ...]) -> IntArray:
    """Exact integers by length times the weight of each length; as they are without weights."""
    if not weights:
        return filtered
    wide = widen(filtered, max(map(abs, weights)))
    by_length = np.array(weights[: len(filtered)], dtype=wide.dtype)
    return np.asarray(wide * by_length.reshape(-1, *[1] * (filtered.ndim - 1)))


def index_by_end(by_start: IntArray) -> IntArray:
    """Values by length and start, by length and end, in place; windows that end after the last start are left out."""
    for more, row in enumerate(by_start):
        row[more:] = row[: len(row) - more]
        row[:more] = 0
    return by_start


def index_by_start(by_end: IntArray) -> IntArray:
    """Values by length and end, by length and start, in place: what `index_by_end` gives, turned back."""
    for more, row in enumerate(by_end):
        row[: len(row) - more] = row[more:]
        row[len(row) - more :] = 0
    return by_end
