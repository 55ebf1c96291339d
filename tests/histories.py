"""Exact answers straight from item histories: an independent stand-in for the engine, for small horizons."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

History = tuple[int, ...]


class HistoryAnswers:
    """The exact answers of a log given as one tuple of occurrences per step for every item."""

    def __init__(self, histories: Sequence[History], steps: int) -> None:
        self.steps = steps
        self._histories = [np.array(history) for history in histories]

    def _count(self, k: int, first: int, last: int) -> int:
        return sum(int(history[max(first, 1) - 1 : last].sum() >= k) for history in self._histories if last >= first)

    def cumulative(self, k: int) -> NDArray[Any]:
        return np.array([self._count(k, 1, t) for t in range(1, self.steps + 1)], dtype=np.int64)

    def rolling(self, k: int, length: int) -> NDArray[Any]:
        return np.array([self._count(k, t - length + 1, t) for t in range(1, self.steps + 1)], dtype=np.int64)

    def windows(self, k: int, first_start: int, starts: int, first_end: int, ends: int) -> NDArray[Any]:
        rows = range(first_start, first_start + starts)
        columns = range(first_end, first_end + ends)
        return np.array([[self._count(k, a, b) for b in columns] for a in rows], dtype=np.int64)


def all_histories(steps: int, most: int) -> list[History]:
    """Every history with at most `most` occurrences in each step."""
    return list(itertools.product(range(most + 1), repeat=steps))


def event_neighbours(histories: Sequence[History]) -> Iterator[tuple[int, int]]:
    """Positions of histories that differ in one occurrence."""
    index = {history: i for i, history in enumerate(histories)}
    for history, i in index.items():
        for step in range(len(history)):
            more = (*history[:step], history[step] + 1, *history[step + 1 :])
            if more in index:
                yield i, index[more]


def random_histories(rng: np.random.Generator, steps: int, items: int, most: int) -> list[History]:
    """Histories with few occurrences in most steps and many in some."""
    counts = rng.integers(0, most + 1, (items, steps)) * (rng.random((items, steps)) < 0.4)
    return [tuple(int(count) for count in row) for row in counts]
