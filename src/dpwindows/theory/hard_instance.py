"""The result of every construction: a log whose window counts answer a hard problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpwindows.ask.privacy import Unit
from dpwindows.ask.queries import WindowFamily
from dpwindows.errors import InputError

Ints = NDArray[np.int64]
# Exact counts give exact answers, noisy estimates noisy ones: readers are linear.
Reader = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class HardInstance:
    """An event log, the windows to ask, and the linear `read` from their counts to the hard problem's answers.

    `histories` say how often each item occurs in each of T steps, shape (items, T). The windows, `first` and `last`
    steps from 1 on, are of one family; asked are the items with at least `k` occurrences. By the `unit` neighbouring
    hard problems become neighbouring logs, `distance` neighbours apart for one element that is added or removed.
    """

    histories: Ints
    k: int
    window: WindowFamily
    unit: Unit
    distance: int
    first: Ints
    last: Ints
    read: Reader

    @property
    def horizon(self) -> int:
        """The number of steps T."""
        return int(self.histories.shape[1])

    def table(self) -> pa.Table:
        """The log as a table of item, time (step less 1) and count, for `Plan.run` over T integer steps."""
        item, step = np.nonzero(self.histories)
        return pa.table({"item": item, "time": step, "count": self.histories[item, step]})

    @property
    def window_counts(self) -> Ints:
        """The exact counts of the windows asked, in their order, from the definition."""
        sums = np.pad(np.cumsum(self.histories, axis=1), ((0, 0), (1, 0)))
        return np.asarray((sums[:, self.last] - sums[:, self.first - 1] >= self.k).sum(axis=0))


def spread_over_slots(histories: Ints) -> Ints:
    """Every step becomes a group with a slot for each item, where only that item occurs.

    Lemma (slots). If every item occurs at most once in any step, the result is a singleton log: at most one event in
    each step, over all items. A window of whole groups holds of each item what the window of the old steps held.
    Proof: a step of the result belongs to one group and one slot, so to one old step and one item; a whole group holds
    every slot. QED.
    """
    items, steps = histories.shape
    spread = np.zeros((items, steps, items), dtype=np.int64)
    spread[np.arange(items), :, np.arange(items)] = histories
    return spread.reshape(items, steps * items)


def require_at_least(name: str, value: int, least: int) -> None:
    """Refuse a whole number below `least`.

    Raises:
        InputError: it is.
    """
    if value < least:
        raise InputError(f"{name} must be at least {least}, got {value}")
