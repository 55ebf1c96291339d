"""The windows of a family in their one canonical order, and the protocol that exact answers follow."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.periods import cuts_first, ends_with, first_steps, sizes
from dpwindows.ask.queries import (
    AnyWindow,
    Cumulative,
    LostItems,
    Rolling,
    RollingTogether,
    ToDate,
    Tumbling,
    WindowFamily,
)

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
    if isinstance(window, RollingTogether):
        return len(window.lengths) * steps
    if isinstance(window, LostItems):
        return 1
    return len(first_steps(window, steps)) if isinstance(window, Tumbling) else steps


def longest_window(window: WindowFamily, steps: int) -> int:
    """The most steps any window of the family spans within the horizon."""
    match window:
        case Rolling(length=length):
            return min(length, steps)
        case RollingTogether(lengths=lengths):
            return min(max(lengths), steps)
        case AnyWindow(max_length=int(length)):
            return min(length, steps)
        case Tumbling() | ToDate():
            return int(sizes(window, steps).max())
    return steps


def fit_to_range(window: WindowFamily, steps: int | None) -> WindowFamily:
    """The family as it is counted over a range of `steps` steps (None: without end).

    A rolling window that never ends before the range does holds everything since the start.
    """
    endless = isinstance(window, Rolling) and steps is not None and window.length >= steps
    return Cumulative() if endless else window


def window_steps(window: WindowFamily, steps: int) -> tuple[StepArray, StepArray]:
    """First and last step of every window (1-based, inclusive), by first step and then by last for `any`.

    All others come by last step.
    """
    last = np.arange(1, steps + 1, dtype=np.int64)
    match window:
        case Cumulative():
            return np.ones_like(last), last
        case Rolling():
            return np.maximum(1, last - longest_window(window, steps) + 1), last
        case RollingTogether(lengths=lengths):
            each = [window_steps(Rolling(length), steps) for length in lengths]
            return np.concatenate([first for first, _ in each]), np.tile(last, len(lengths))
        case Tumbling():
            first = first_steps(window, steps)
            return first, np.append(first[1:] - 1, steps)
        case ToDate():
            return np.repeat(first_steps(window, steps), sizes(window, steps)), last
        case LostItems():
            return np.ones(1, dtype=np.int64), last[-1:]
    longest = longest_window(window, steps)
    spans = np.minimum(longest, steps - last + 1)
    first = np.repeat(last, spans)
    # One step on, but for where a first step begins anew; summed in place, for there may be millions.
    end = np.ones(len(first), dtype=np.int64)
    end[np.cumsum(spans[:-1])] = 2 - spans[:-1]
    np.cumsum(end, out=end)
    return first, end


def are_complete(window: WindowFamily, first: StepArray, last: StepArray, steps: int | None) -> NDArray[np.bool_]:
    """Which windows are not cut short by the ends of the range.

    Args:
        window: their family.
        first: their first steps.
        last: their last steps.
        steps: the steps of the range, None if it has no end.
    """
    match window:
        case Rolling(length=length):
            # A window longer than any range is cut wherever it ends.
            return last >= min(length, np.iinfo(np.int64).max)
        case Tumbling() | ToDate():
            whole = (first > 1) | (not cuts_first(window))
            cut_last = isinstance(window, Tumbling) and steps is not None and not ends_with(window, steps)
            return np.asarray(whole & ~(cut_last & (last == steps)))
    return np.ones(len(last), dtype=np.bool_)
