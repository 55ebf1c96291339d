"""Which window of whole groups of steps is nearest to each window of the steps themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.queries import AnyWindow, Rolling, WindowFamily
from dpwindows.ask.windows import count_windows, longest_window, window_steps
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.problem import Problem

Integers = NDArray[np.int64]


def nearest_windows(window: WindowFamily, steps: int, size: int, inner: Problem) -> tuple[Integers, FloatArray]:
    """For each window the position of the grouped one that answers it, and how many steps its ends are moved.

    Args:
        window: the family.
        steps: the steps of the range.
        size: how many steps a group has.
        inner: what is measured of groups.
    """

    def steps_before(groups: Integers) -> Integers:
        return np.minimum(groups * size, steps)

    def nearest_boundary(ends: Integers) -> Integers:
        """The group boundary nearest to the end of a step, as the number of groups before it."""
        low = ends // size
        high = np.minimum(low + 1, inner.steps)
        return np.where(steps_before(high) - ends < ends - steps_before(low), high, low)

    first, last = window_steps(window, steps)
    start, end = nearest_boundary(first - 1), nearest_boundary(last)
    end = np.maximum(end, start + 1)
    over = end > inner.steps
    start, end = np.where(over, start - 1, start), np.where(over, end - 1, end)
    if isinstance(window, Rolling):
        start = np.maximum(0, end - window.length // size)
    moved = np.abs(steps_before(start) - (first - 1)) + np.abs(steps_before(end) - last)
    return _position(inner, start, end), moved.astype(np.float64)


def _position(inner: Problem, start: Integers, end: Integers) -> Integers:
    """Where the window of groups start+1..end is listed."""
    if not isinstance(inner.window, AnyWindow):
        return end - 1
    longest = longest_window(inner.window, inner.steps)
    full = np.maximum(0, start - (inner.steps - longest))
    listed = start * longest - full * (full - 1) // 2
    position = listed + (end - start - 1)
    assert int(position.max()) < count_windows(inner.window, inner.steps)
    return np.asarray(position)
