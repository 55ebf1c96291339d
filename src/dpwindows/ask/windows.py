"""The windows of a family in their one canonical order, and the protocol that exact answers follow."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily

StepArray = NDArray[np.int64]


class Answers(Protocol):
    """Exact answers of one log, by threshold: what the kernel measures. `ExactAnswers` is the real one."""

    @property
    def steps(self) -> int:
        """The horizon T."""
        ...

    def cumulative(self, k: int) -> NDArray[Any]:
        """Items with at least k occurrences in steps 1..t, for t = 1..T; integers of shape (T,)."""
        ...

    def rolling(self, k: int, length: int) -> NDArray[Any]:
        """Items with at least k occurrences in steps max(1, t-length+1)..t, for t = 1..T; shape (T,)."""
        ...

    def windows(self, k: int, first_start: int, starts: int, first_end: int, ends: int) -> NDArray[Any]:
        """Items with at least k occurrences in steps a..b; shape (starts, ends), 0 where b < a.

        a runs over `first_start..first_start+starts-1`, b over `first_end..first_end+ends-1`, all within 1..T.
        """
        ...


def count_windows(window: WindowFamily, steps: int) -> int:
    """How many windows the family has in a horizon of `steps` steps."""
    if isinstance(window, AnyWindow):
        longest = longest_window(window, steps)
        return longest * steps - longest * (longest - 1) // 2
    return steps


def longest_window(window: WindowFamily, steps: int) -> int:
    """The most steps any window of the family spans within the horizon."""
    match window:
        case Rolling(length=length):
            return min(length, steps)
        case AnyWindow(max_length=int(length)):
            return min(length, steps)
    return steps


def window_steps(window: WindowFamily, steps: int) -> tuple[StepArray, StepArray]:
    """First and last step of every window (1-based, inclusive), by first step and then by last for `any`.

    Cumulative and rolling windows come by last step.
    """
    last = np.arange(1, steps + 1, dtype=np.int64)
    match window:
        case Cumulative():
            return np.ones_like(last), last
        case Rolling():
            return np.maximum(1, last - longest_window(window, steps) + 1), last
    longest = longest_window(window, steps)
    spans = np.minimum(longest, steps - last + 1)
    first = np.repeat(last, spans)
    within = np.arange(len(first)) - np.repeat(np.cumsum(spans) - spans, spans)
    return first, first + within
