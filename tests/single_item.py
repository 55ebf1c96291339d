"""Logs of a few items, their exact answers straight from the definition, and all differences of neighbours.

Neighbouring logs differ in one item and answers add over items, so the differences of exact answers of two
neighbouring single-item logs are all the differences there are. A log is the item's occurrences in steps 1..T.
Nothing here is taken from the package but the names of what is asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemPerPeriod, Unit
from dpwindows.ask.queries import Cumulative, PeriodFamily, Rolling, ToDate, Tumbling, WindowFamily

Ints = NDArray[np.int64]
# Occurrences of one item in steps 1..T.
History = tuple[int, ...]
# Pairs are compared in pieces of about this many.
_PIECE = 1 << 18
# So many cells of -1, 0 and 1 are one number in base 3 that floats hold exactly.
_CELLS = 33


class HistoryAnswers:
    """Exact answers of a log in which items have these histories; an `Answers`."""

    def __init__(self, histories: Sequence[History], steps: int) -> None:
        self.steps = steps
        self._sums = np.array([[0, *itertools.accumulate(history)] for history in histories], dtype=np.int64)

    def _count(self, k: int, first: int, last: int) -> int:
        return int((self._sums[:, last] - self._sums[:, first - 1] >= k).sum()) if first <= last else 0

    def cumulative(self, k: int) -> NDArray[Any]:
        return self.rolling(k, self.steps)

    def rolling(self, k: int, length: int) -> NDArray[Any]:
        return np.array([self._count(k, max(1, t - length + 1), t) for t in range(1, self.steps + 1)], dtype=np.int64)

    def windows(self, k: int, first_start: int, starts: int, first_end: int, ends: int) -> NDArray[Any]:
        rows = range(first_start, first_start + starts)
        columns = range(first_end, first_end + ends)
        assert 1 <= rows[0] <= rows[-1] <= self.steps
        assert 1 <= columns[0] <= columns[-1] <= self.steps
        return np.array([[self._count(k, a, b) for b in columns] for a in rows], dtype=np.int64)


class SingleItem(HistoryAnswers):
    """Exact answers of the log that holds one item, with `counts[t - 1]` occurrences in step t."""

    def __init__(self, counts: History) -> None:
        super().__init__([counts], len(counts))


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
    return [tuple(row) for row in counts.tolist()]


@dataclass(frozen=True)
class TableAnswers:
    """Answers read from a table: `square[a - 1, b - 1]` for the window (a, b), the same for every threshold."""

    square: NDArray[Any]
    rule: CountingRule = EVERY_OCCURRENCE

    @property
    def steps(self) -> int:
        return len(self.square)

    def cumulative(self, k: int) -> NDArray[Any]:
        return np.array(self.square[0])

    def rolling(self, k: int, length: int) -> NDArray[Any]:
        ends = np.arange(self.steps)
        return np.asarray(self.square[np.maximum(0, ends - length + 1), ends])

    def windows(self, k: int, first_start: int, starts: int, first_end: int, ends: int) -> NDArray[Any]:
        rows = slice(first_start - 1, first_start - 1 + starts)
        return np.array(self.square[rows, first_end - 1 : first_end - 1 + ends])


def random_square(rng: np.random.Generator, steps: int, largest: int) -> Ints:
    """A table of arbitrary answers, 0 below the diagonal."""
    return np.asarray(np.triu(rng.integers(-largest, largest + 1, size=(steps, steps))))


def all_logs(steps: int, most: int) -> Ints:
    """Every log of one item with 0..most occurrences a step, shape (logs, steps)."""
    return np.array(list(itertools.product(range(most + 1), repeat=steps)), dtype=np.int64)


def squares(logs: Ints, k: int) -> Ints:
    """For every log the table of "at least k" over all windows (a, b), 0 below the diagonal."""
    sums = np.concatenate([np.zeros((len(logs), 1), dtype=np.int64), np.cumsum(logs, axis=1)], axis=1)
    return np.asarray(sums[:, None, 1:] - sums[:, :-1, None] >= k, dtype=np.int64)


def cells(window: WindowFamily, steps: int) -> tuple[Ints, Ints]:
    """The entries of the square that measurements of a family may use: for any windows all of them."""
    ends = np.arange(steps)
    match window:
        case Cumulative():
            return np.zeros_like(ends), ends
        case Rolling(length=length):
            return np.maximum(0, ends - length + 1), ends
        case Tumbling():
            last = [step for step in ends if step == steps - 1 or begins(window, int(step) + 2)]
            return np.array([first_of_period(window, int(step)) for step in last]), np.array(last)
        case ToDate():
            return np.array([first_of_period(window, int(step)) for step in ends]), ends
    rows, columns = np.triu_indices(steps)
    return rows, columns


def begins(window: PeriodFamily, step: int) -> bool:
    """Whether a period begins with a step (1-based): every so many steps, or each quarter where steps are months."""
    if isinstance(window.period, int):
        return (step - 1) % window.period == 0
    assert window.period == "quarter"
    assert window.calendar is not None
    assert window.calendar.step == "1mo"
    return (int(window.calendar.start[5:7]) - 1 + step - 1) % 3 == 0


def first_of_period(window: PeriodFamily, end: int) -> int:
    """The first step, 0-based, of the period of a step, 0-based."""
    return max([0, *(step for step in range(end + 1) if begins(window, step + 1))])


def joint_answers(logs: Ints, window: WindowFamily, thresholds: Sequence[int]) -> Ints:
    """Exact answers of all thresholds, shape (logs, thresholds, cells)."""
    rows, columns = cells(window, logs.shape[1])
    return np.stack([squares(logs, k)[:, rows, columns] for k in thresholds], axis=1)


def _unique(found: Ints) -> Ints:
    return found[_distinct(_packed(found.reshape(len(found), -1)))[0]]


def differences(logs: Ints, window: WindowFamily, thresholds: Sequence[int], unit: Unit) -> Iterator[Ints]:
    """All differences of exact answers between these logs and their neighbours, one of each sign, in pieces.

    Event level: every log against itself with one occurrence more, in every step. Item add/remove: every log against
    the empty one. Item level: every pair of logs; within a period, every pair that is equal outside some span of it.
    """
    answers = joint_answers(logs, window, thresholds)
    if isinstance(unit, EventLevel):
        found = []
        for step in range(logs.shape[1]):
            more = logs.copy()
            more[:, step] += 1
            found.append(_unique(joint_answers(more, window, thresholds) - answers))
        yield _unique(np.concatenate(found))
        return
    if isinstance(unit, ItemPerPeriod) and unit.steps < logs.shape[1]:
        for first in range(logs.shape[1] - unit.steps + 1):
            yield from _within_span(logs, answers, first, unit.steps)
        return
    answers = _unique(answers)
    if isinstance(unit, ItemAddRemove):
        yield answers
        return
    piece = max(1, _PIECE // len(answers))
    for start in range(0, len(answers), piece):
        yield (answers[start : start + piece, None] - answers[None]).reshape(-1, *answers.shape[1:])


def _within_span(logs: Ints, answers: Ints, first: int, span: int) -> Iterator[Ints]:
    """All differences between logs that are equal outside the steps first..first+span-1 (0-based)."""
    outside = np.delete(logs, np.arange(first, first + span), axis=1)
    groups = outside @ (1 + logs.max(initial=0)) ** np.arange(outside.shape[1])
    place, numbers = _distinct(_packed(answers.reshape(len(answers), -1)))
    # Every pair of a group, in groups of one size at a time.
    order = np.argsort(groups, kind="stable")
    _, begins, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    pairs = []
    for size in np.unique(sizes):
        members = numbers[order[begins[sizes == size][:, None] + np.arange(size)]]
        pairs.append((members[:, :, None] * len(place) + members[:, None, :]).ravel())
    one, other = divmod(pd.unique(np.concatenate(pairs)), len(place))
    distinct = answers[place]
    yield _unique(distinct[one] - distinct[other])


@dataclass(frozen=True)
class Changes:
    """Differences of exact answers where their sign does not matter, each change of one threshold held once.

    Norms of several thresholds are sums over thresholds, so that a norm is worked out once for each of `every`.

    Attributes:
        every: the changes of single thresholds, one of each sign, shape (changes, cells).
        which: the change of each threshold, shape (differences, thresholds).
    """

    every: Ints
    which: Ints

    @classmethod
    def of(cls, pieces: Iterable[Ints]) -> Changes:
        """The changes in differences of shape (pairs, thresholds, cells), which are -1, 0 or 1."""
        every: list[Ints] = []
        which: list[Ints] = []
        held = 0
        for piece in pieces:
            rows = piece.reshape(-1, piece.shape[2])
            first, numbers = _distinct(_codes(rows))
            pairs = numbers.reshape(piece.shape[:2])
            every.append(rows[first])
            which.append(pairs[_distinct(pairs)[0]] + held)
            held += len(first)
        rows = np.concatenate(every)
        first, numbers = _distinct(_codes(rows))
        pairs = numbers[np.concatenate(which)]
        return cls(rows[first], pairs[_distinct(pairs)[0]])


def _codes(rows: Ints) -> Ints:
    """Numbers that are the same for a row and its negative and differ otherwise, shape (rows, numbers)."""
    codes = _packed(rows)
    signs = np.sign(codes[np.arange(len(codes)), (codes != 0).argmax(axis=1)])
    return np.asarray(codes * signs[:, None])


def _packed(rows: Ints) -> Ints:
    """Numbers that are the same for equal rows of -1, 0 and 1 and differ otherwise, shape (rows, numbers)."""
    assert abs(rows).max(initial=0) <= 1
    powers = 3.0 ** np.arange(_CELLS)
    parts = [rows[:, start : start + _CELLS].astype(np.float64) for start in range(0, rows.shape[1], _CELLS)]
    return np.stack([part @ powers[: part.shape[1]] for part in parts], axis=1).astype(np.int64)


def _distinct(rows: Ints) -> tuple[Ints, Ints]:
    """Where each distinct row stands first, and which of these every row is."""
    found: Ints = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        # By hashing, where `np.unique` would sort.
        values, _ = pd.factorize(column)
        found, _ = pd.factorize(found * len(rows) + values)
    # Numbered as they appear: a row with a number above all before it is the first of its kind.
    so_far = np.maximum.accumulate(found)
    return np.flatnonzero(np.diff(so_far, prepend=-1)), found


def runs(row: Sequence[int] | Ints) -> list[tuple[int, int]]:
    """The maximal intervals [first, end) on which a 0/1 series is 1."""
    padded = [0, *map(int, row), 0]
    ends = [i for i in range(len(padded) - 1) if padded[i] != padded[i + 1]]
    return list(zip(ends[::2], ends[1::2], strict=True))
