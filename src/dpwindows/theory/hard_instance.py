"""The result of every construction: a log whose window counts answer a hard problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpwindows.ask.privacy import Unit
from dpwindows.ask.queries import AnyWindow, WindowFamily
from dpwindows.ask.timeline import Timeline
from dpwindows.errors import InputError

Ints = NDArray[np.int64]
# Exact counts give exact answers, noisy estimates noisy ones: readers are linear.
Reader = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class HardInstance:
    """An event log, the windows to ask, and the function from their counts back to the hard problem's answers.

    Attributes:
        items, steps, counts: the rows of the log, integer arrays of one length; steps are 1..horizon, counts >= 1, and
            rows of one item and step add up.
        horizon: number of steps T.
        k: the threshold; windows are asked for the items with at least k occurrences.
        window: the family to which all windows belong that are asked.
        unit: the unit of privacy: neighbouring hard problems become neighbouring logs by it.
        distance: how many neighbours apart the logs are if one element of the hard problem is added or removed.
        first, last: the windows asked, as first and last steps.
        read: from the counts of these windows, in their order, to the hard problem's answers. It is linear.
    """

    items: Ints
    steps: Ints
    counts: Ints
    horizon: int
    k: int
    window: WindowFamily
    unit: Unit
    distance: int
    first: Ints
    last: Ints
    read: Reader

    @property
    def timeline(self) -> Timeline:
        """Integer time: step t is the time t - 1, as in `table`."""
        return Timeline.of_steps(self.horizon)

    def table(self) -> pa.Table:
        """The log as a table with the columns item, time and count, for `Plan.run` with this `timeline`."""
        return pa.table({"item": self.items, "time": self.steps - 1, "count": self.counts})

    @property
    def histories(self) -> Ints:
        """Occurrences by item and step, shape (items, T)."""
        held = np.zeros((int(self.items.max(initial=0)) + 1, self.horizon), dtype=np.int64)
        np.add.at(held, (self.items, self.steps - 1), self.counts)
        return held

    @property
    def window_counts(self) -> Ints:
        """The exact counts of the windows asked, in their order, from the definition."""
        sums = np.pad(np.cumsum(self.histories, axis=1), ((0, 0), (1, 0)))
        return np.asarray((sums[:, self.last] - sums[:, self.first - 1] >= self.k).sum(axis=0))

    @property
    def positions(self) -> Ints:
        """Where the windows asked stand among all windows of the family, in the canonical order of a release."""
        if not isinstance(self.window, AnyWindow):
            return self.last - 1
        before = self.first - 1
        return np.asarray(before * self.horizon - before * (before - 1) // 2 + (self.last - self.first))


@dataclass(frozen=True)
class Rows:
    """Rows of a log under construction: items 0, 1, ..., steps from 1 on, counts (rows that count 0 are dropped)."""

    items: Ints
    steps: Ints
    counts: Ints

    @classmethod
    def of(cls, *parts: tuple[Any, Any, Any]) -> Rows:
        """Parts of (items, steps, counts), each broadcast to one shape."""
        flat = [[np.ravel(column) for column in np.broadcast_arrays(*part)] for part in parts]
        items, steps, counts = (np.concatenate(columns).astype(np.int64) for columns in zip(*flat, strict=True))
        kept = counts > 0
        return cls(items[kept], steps[kept], counts[kept])

    def spread(self, slots: int) -> Rows:
        """Every step becomes a group of `slots` steps, where item j has slot j.

        Lemma (slots). If every item occurs at most once in any step, and items are 0..slots-1, the result is a
        singleton log: at most one event in each step, over all items. A window of whole groups holds of each item
        what the window of the old steps held. Proof: a step of the result belongs to one group and one slot, so to
        one old step and one item; a whole group holds every slot. QED.
        """
        return Rows(self.items, (self.steps - 1) * slots + self.items + 1, self.counts)


def whole_numbers(name: str, values: Any, dimensions: int, low: int, high: int) -> Ints:
    """An integer array of the given number of dimensions, not empty, with entries in low..high.

    Raises:
        InputError: it is none.
    """
    array = np.asarray(values)
    if array.ndim != dimensions or array.size == 0 or array.dtype.kind not in "iub":
        raise InputError(
            f"{name} must be a non-empty array of whole numbers with {dimensions} axes, "
            f"got {array.dtype} of shape {array.shape}"
        )
    if array.min() < low or array.max() > high:
        raise InputError(f"{name} must lie in {low}..{high}, got {array.min()}..{array.max()}")
    return array.astype(np.int64)


def at_least(name: str, value: int, least: int) -> None:
    """Check a whole number.

    Raises:
        InputError: it is less than `least`.
    """
    if value < least:
        raise InputError(f"{name} must be at least {least}, got {value}")
