"""Reads the integers that a mechanism applies off its behaviour: it measures answers that are all 0 but one.

A design's `encode` is a linear map of exact answers. The probe records which answers it reads, then sets each of them
to 1, alone, to get its column of the matrix. Nothing is taken from the design's own description of itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, LOST, CountingRule
from dpwindows.ask.groups import Grouping, cells_of
from dpwindows.audit.counted import Source, answers_of, by_group
from dpwindows.audit.losses import Moved
from dpwindows.audit.neighbours import Ints, Pair
from dpwindows.errors import EngineError, InputError
from dpwindows.kernel.accounting import Law
from dpwindows.kernel.measure import Measurement

# Largest matrix, in entries, that is read off.
_LARGEST = 1 << 24
# Thresholds are audited below this: logs that reach them are made, with as many occurrences in a step.
_HIGHEST = 1 << 31


@dataclass(frozen=True)
class Table:
    """Exact answers of one log: `squares[k][group, a - 1, b - 1]` for the window (a, b).

    Without groups there is one group. Windows are asked of the first: with groups, take one of them by `group`.
    """

    squares: Mapping[int, NDArray[Any]]
    rule: CountingRule = EVERY_OCCURRENCE
    grouping: Grouping | None = None

    @property
    def steps(self) -> int:
        """The horizon T."""
        return int(next(iter(self.squares.values())).shape[-1])

    def __add__(self, other: Table) -> Table:
        """The answers of two logs together that have no item in common."""
        return replace(self, squares={k: square + other.squares[k] for k, square in self.squares.items()})

    def group(self, cell: int) -> Table:
        """The answers of one group, by its code."""
        return Table({k: square[cell : cell + 1] for k, square in self.squares.items()}, self.rule)

    def cumulative(self, k: int) -> NDArray[Any]:
        """The row of windows from step 1 on."""
        return self.rolling(k, self.steps)

    def rolling(self, k: int, length: int) -> NDArray[Any]:
        """Counts by end of the window, one for each step."""
        ends = np.arange(self.steps)
        return self._of(k, np.maximum(0, ends - length + 1), ends)

    def windows(self, k: int, first_start: int, starts: int, first_end: int, ends: int) -> NDArray[Any]:
        """Counts of a block of windows, by start and end."""
        return self._of(k, *np.ix_(first_start - 1 + np.arange(starts), first_end - 1 + np.arange(ends)))

    def _of(self, k: int, first: Ints, last: Ints) -> NDArray[Any]:
        square = self.squares[k][0] if k in self.squares else np.zeros((self.steps, self.steps), dtype=np.int64)
        return np.asarray(square[first, last])


@dataclass(frozen=True)
class _Recorder(Table):
    """Answers that are all 0, and remember which of them were asked for."""

    read: set[Source] = field(default_factory=set)

    def _of(self, k: int, first: Ints, last: Ints) -> NDArray[Any]:
        windows = [one.ravel().tolist() for one in np.broadcast_arrays(first, last)]
        self.read.update((k, low + 1, high + 1) for low, high in zip(*windows, strict=True) if low <= high)
        return super()._of(k, first, last)


@dataclass(frozen=True, eq=False)
class Part:
    """One measurement: its matrix over all thresholds, shape (rows of all thresholds, sources), and its noise.

    It is measured in the groups with these codes; without groups there is one, with code 0.
    """

    matrix: NDArray[Any]
    law: Law
    scale: float
    thresholds: int = 1
    cells: range = range(1)

    @property
    def rows(self) -> int:
        """How many numbers are measured, in all groups together."""
        return len(self.matrix) * len(self.cells)

    @property
    def vectors(self) -> int:
        """How many vectors are measured: one for each threshold in each group."""
        return self.thresholds * len(self.cells)

    def own(self, answers: NDArray[Any]) -> NDArray[Any]:
        """Its own groups' answers, shape (logs, groups, sources), from shape (logs, sources of all groups)."""
        sources = self.matrix.shape[1]
        by_cell = answers.reshape(len(answers), answers.shape[1] // sources, sources)
        return by_cell[:, self.cells.start : self.cells.stop]

    def apply(self, answers: Ints) -> NDArray[Any]:
        """What is measured of answers of shape (logs, sources of all groups), exactly: shape (logs, rows).

        As in a release: threshold by threshold, and in each group by group.
        """
        measured = self.times(self.own(answers))
        by_cell = measured.reshape(len(answers), len(self.cells), self.thresholds, len(self.matrix) // self.thresholds)
        return by_cell.swapaxes(1, 2).reshape(len(answers), self.rows)

    def times(self, answers: NDArray[Any]) -> NDArray[Any]:
        """The matrix times answers of shape (..., sources), exactly."""
        heaviest = max(1, int(abs(self.matrix).sum(axis=1).max())) * max(1, int(abs(answers).max(initial=0)))
        if heaviest < 1 << 53:
            # Every partial sum is an integer below 2^53, so this is exact.
            return np.asarray((answers.astype(np.float64) @ self.matrix.T.astype(np.float64)).astype(np.int64))
        return np.asarray(answers.astype(object) @ self.matrix.T.astype(object))


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A set of measurements as plain integers and scales.

    With `places` it is that of logs whose events are in these steps alone: histories and sources are by place.
    """

    steps: int
    sources: tuple[Source, ...]
    parts: tuple[Part, ...]
    rule: CountingRule = EVERY_OCCURRENCE
    grouping: Grouping | None = None
    places: tuple[int, ...] | None = None

    @property
    def groups(self) -> int:
        """In how many groups an event may be; 1 without groups."""
        return 1 if self.grouping is None else self.grouping.levels[0].count

    @property
    def slots(self) -> int:
        """How many numbers a history is: one for every step and group."""
        return self.steps * self.groups

    @property
    def most(self) -> int:
        """The most occurrences in a step that a history need have: more change no answer."""
        read = {k for k, _, _ in self.sources}
        most = 0 if self.rule.distinct_steps else self.rule.max_occurrences or 0
        return max(*read, most + (LOST in read), 1)

    @property
    def rows(self) -> int:
        """How many numbers are measured in all."""
        return sum(part.rows for part in self.parts)

    def answers(self, histories: Ints) -> Ints:
        """What is read of logs that hold one item each, from the definition: 0 or 1, or occurrences.

        Shape (histories, sources), with groups the sources of one group after another.
        """
        held = by_group(self.grouping, histories, self.steps)
        found = answers_of(self.rule, held.reshape(held.shape[0] * held.shape[1], self.steps), self._listed)
        return found.reshape(len(histories), held.shape[1] * len(self.sources))

    @cached_property
    def _listed(self) -> Ints:
        """The sources, shape (sources, 3)."""
        return np.array(self.sources, dtype=np.int64)

    def table(self, histories: Ints) -> Table:
        """What is read of one log with these items; 0 for all that is not read."""
        return self.holding(self.answers(histories).sum(axis=0))

    def holding(self, answers: Ints) -> Table:
        """One log with these answers, shape (sources of all groups,), and 0 for all that is not read."""
        by_cell, (k, first, last) = answers.reshape(self.cells, len(self.sources)), self._listed.T
        squares = {threshold: np.zeros(self.shape, dtype=np.int64) for threshold in self.thresholds}
        for threshold, square in squares.items():
            mine = k == threshold
            square[:, first[mine] - 1, last[mine] - 1] = by_cell[:, mine]
        return self.of(squares)

    def of(self, squares: Mapping[int, NDArray[Any]]) -> Table:
        """One log with these answers."""
        return Table(squares, self.rule, self.grouping)

    def read(self, answers: Table) -> Ints:
        """What is read of one log, as of `answers`: shape (1, sources of all groups)."""
        found = [answers.squares[k][:, first - 1, last - 1] for k, first, last in self.sources]
        return np.stack(found, axis=1).reshape(1, -1)

    @property
    def cells(self) -> int:
        """How many groups there are with all totals; 1 without groups."""
        return cells_of(self.grouping)

    @property
    def thresholds(self) -> list[int]:
        """Every threshold of which something is read."""
        return sorted({k for k, _, _ in self.sources})

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the answers of one threshold: groups, first steps and last steps."""
        return self.cells, self.steps, self.steps

    def moved(self, pair: Pair) -> list[Moved]:
        """How far the neighbour moves each measurement."""
        one, other = self.answers(np.array([pair.log, pair.neighbour]))
        return [
            Moved(part.law, part.scale, tuple(map(int, part.apply((other - one)[None])[0])), part.vectors)
            for part in self.parts
        ]


def probe(measurements: Sequence[Measurement]) -> Mechanism:
    """Read the integers that measurements apply off their designs.

    Raises:
        InputError: the matrix is too large to be read off, or a threshold is.
        EngineError: what is measured is no linear map of the answers, so that no privacy proof here speaks of it.
    """
    require_readable(measurements)
    whole = unread(measurements)
    found = replace(read_at(measurements, whole, range(1, whole.steps + 1)), places=None)
    _require_linear(measurements, found)
    return found


def unread(measurements: Sequence[Measurement]) -> Mechanism:
    """The answers that measurements read, and nothing of what they make of them.

    Raises:
        InputError: a threshold is too high for logs that reach it.
    """
    problem = measurements[0].design.problem
    return Mechanism(problem.steps, _sources(measurements), (), problem.rule, grouping_of(measurements))


def read_at(measurements: Sequence[Measurement], whole: Mechanism, places: Sequence[int]) -> Mechanism:
    """Read off what measurements apply to logs whose events are in a few steps, however long the horizon is.

    A window counts there what the places inside it hold. So there is one column for each stretch of places, of the
    windows that hold just these. Not for rules that bound runs, unless all steps are places.

    Args:
        measurements: whose integers are wanted.
        whole: what they read (`unread`).
        places: steps from 1, in ascending order.
    """
    steps = np.arange(1, whole.steps + 1)
    first, last = np.searchsorted(places, steps) + 1, np.searchsorted(places, steps, side="right")
    held = {(k, int(first[low - 1]), int(last[high - 1])) for k, low, high in whole.sources}
    sources = tuple(sorted((k, low, high) for k, low, high in held if low <= high))
    tables = (Table({k: np.outer(first == low, last == high).astype(np.int64)[None]}) for k, low, high in sources)
    columns = [[_encode_groups(one, [answers]) for one in measurements] for answers in tables]
    parts = tuple(_part(*one) for one in zip(measurements, zip(*columns, strict=True), strict=True))
    return replace(whole, steps=len(places), sources=sources, parts=parts, places=tuple(places))


def require_readable(measurements: Sequence[Measurement]) -> None:
    """Refuse measurements that are too large to be read off.

    Raises:
        InputError: the matrix is too large to be read off, or a threshold is.
    """
    rows, sources = _size(measurements)
    if rows * sources > _LARGEST:
        fewer = "" if grouping_of(measurements) is None else ", or name fewer groups (--values)"
        raise InputError(
            f"an audit reads every weight on every window, and here are {rows:,} x {sources:,} of them: audit the "
            f"plan with fewer steps (--steps), or bound the windows (any:MAX){fewer}"
        )


def is_readable(measurements: Sequence[Measurement]) -> bool:
    """Whether the integers of measurements are not too many to be read off.

    Raises:
        InputError: a threshold is too high for logs that reach it.
    """
    rows, sources = _size(measurements)
    return rows * sources <= _LARGEST


def _size(measurements: Sequence[Measurement]) -> tuple[int, int]:
    """How many numbers are measured, and of how many answers."""
    return sum(map(rows_of, measurements)), len(_sources(measurements))


def rows_of(measurement: Measurement) -> int:
    """How many numbers are measured, of all thresholds in all groups."""
    return measurement.design.rows * len(measurement.design.problem.thresholds) * len(measurement.cells)


def _sources(measurements: Sequence[Measurement]) -> tuple[Source, ...]:
    steps = measurements[0].design.problem.steps
    highest = max(k for one in measurements for k in one.design.problem.thresholds)
    if highest >= _HIGHEST:
        raise InputError(
            f"an audit makes logs that reach every threshold, here up to {highest:,}: audit thresholds below 2**31 "
            "(--at-least, --exactly)"
        )
    recorder = _Recorder({1: np.zeros((1, steps, steps), dtype=np.int64)})
    for one in measurements:
        _encode_groups(one, [recorder])
    return tuple(sorted(recorder.read))


def grouping_of(measurements: Sequence[Measurement]) -> Grouping | None:
    """The groups that everything is measured in, None for none.

    Raises:
        InputError: some measurements are in groups and others not, or in others.
    """
    found = {None if one.groups is None else one.groups.grouping for one in measurements}
    if len(found) > 1:
        raise InputError("an audit is of measurements in the same groups, and these are in several kinds of them")
    return next(iter(found), None)


def encode(measurement: Measurement, answers: Any) -> NDArray[Any]:
    """What noise is added to, as Python's integers: threshold by threshold, of one group after another."""
    held = [answers] if measurement.groups is None else [answers.group(cell) for cell in measurement.groups.cells]
    return _encode_groups(measurement, held).astype(object)


def _encode_groups(measurement: Measurement, groups: Sequence[Any]) -> NDArray[Any]:
    design = measurement.design
    return np.concatenate([design.encode(answers, k) for k in design.problem.thresholds for answers in groups])


def _part(measurement: Measurement, columns: Sequence[NDArray[Any]]) -> Part:
    thresholds = len(measurement.design.problem.thresholds)
    return Part(np.stack(columns, axis=1), measurement.law, measurement.scale, thresholds, measurement.cells)


def _require_linear(measurements: Sequence[Measurement], found: Mechanism) -> None:
    rng = np.random.default_rng(0)
    for _ in range(3):
        shape = (1, found.steps, found.steps)
        table = Table({k: np.triu(rng.integers(-1000, 1001, size=shape)) for k in found.thresholds})
        read = np.array([table.squares[k][0, first - 1, last - 1] for k, first, last in found.sources])
        for measurement, part in zip(measurements, found.parts, strict=True):
            if not np.array_equal(_encode_groups(measurement, [table]), part.times(read[None])[0]):
                raise EngineError(
                    f"what strategy {measurement.design.strategy!r} measures is no linear map of the exact answers: "
                    "this is a bug, and no release of this plan should be published"
                )
