"""The reductions behind the lower bounds, run: a small hard problem, its log, the windows that answer it, the bound.

Every one of `constructions` is built on an instance that fits on a screen. Its windows are counted from the definition,
and their counts read back as the problem's answers, which are compared with those of the problem's own definition.
Where the paper counts by points (`points`), the counts are compared with range counts of the log's points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dpwindows.errors import EngineError
from dpwindows.theory import constructions as build
from dpwindows.theory.bounds import LOWER, Family, Growth, Level, Setting
from dpwindows.theory.hard_instance import HardInstance, Ints
from dpwindows.theory.points import cumulative_points, dominating, window_points
from dpwindows.theory.table import Lower, lower

# The small instances: points on a line and in a square, linear queries and the elements there are, a table.
_LINE, _LENGTH = np.array([3, 1, 5, 3]), 5
_SQUARE, _SIDE = np.array([[1, 2], [3, 1], [2, 3]]), 3
_QUERIES, _PRESENT = np.array([[0, 1, 0], [1, 1, 0], [1, 1, 1]]), np.array([1, 0, 1])
_TABLE = np.array([[1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 0, 1]])


class _Case(NamedTuple):
    """A reduction before it is run; `answers` are those of the problem's own definition."""

    name: str
    problem: str
    cell: tuple[Family, Level]
    log: HardInstance
    answers: Ints


@dataclass(frozen=True)
class Reduction:
    """One reduction on its small instance.

    Attributes:
        name: of the hard problem and of the windows that answer it.
        problem: the instance in words.
        log: the log with the windows asked.
        counts: the exact counts of these windows.
        answers: the problem's answers, read off the counts.
        points: how many points of the log the counts are range counts of; None where the paper has no points.
        bound: what no mechanism can beat on the log's window family; None where no constant is known.
        law: how the bound grows.
    """

    name: str
    problem: str
    log: HardInstance
    counts: Ints
    answers: Ints
    points: int | None
    bound: Lower | None
    law: Growth

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        log, bound = self.log, self.bound
        return {
            "name": self.name,
            "problem": self.problem,
            "steps": log.horizon,
            "k": log.k,
            "unit": log.unit.name,
            "neighbours_per_element": log.distance,
            "window": log.window.text,
            "log": log.histories.tolist(),
            "windows": np.column_stack([log.first, log.last]).tolist(),
            "counts": self.counts.tolist(),
            "answers": self.answers.tolist(),
            "points": self.points,
            "lower": None if bound is None else bound.value,
            "lower_of": None if bound is None else bound.of,
            "lower_holds_for": None if bound is None else bound.holds,
            "lower_law": self.law.formula,
        }


def reductions(k: int, epsilon: float, delta: float, *, singleton: bool) -> list[Reduction]:
    """Run every reduction for a threshold; two need k >= 2, one of these a bundle stream, and are left out else.

    Bounds are for (epsilon, delta), pure where delta is 0; in `singleton` logs there is at most one event a step.

    Raises:
        InputError: a parameter is out of range.
    """
    at = Setting(1, 1, k, epsilon, delta, singleton)
    return [_run(case, at) for case in _cases(k, singleton)]


def _cases(k: int, singleton: bool) -> Iterator[_Case]:
    line = f"points {_list(_LINE)} of 1..{_LENGTH}: how many are at most y, for y = 1..{_LENGTH}?"
    below = (_LINE[:, None] <= np.arange(1, _LENGTH + 1)).sum(axis=0)
    log = build.range_queries(_LINE, _LENGTH, k, singleton=singleton)
    yield _Case("1-D range queries, as cumulative counts", line, ("cumulative", "event"), log, below)
    log = build.as_rolling(log, log.horizon)
    yield _Case("1-D range queries, as rolling counts", line, ("rolling", "event"), log, below)
    if k > 1:
        subsets = f"elements {_list(_PRESENT)} (1 is present): how many does each of {_rows(_QUERIES)} select?"
        length = len(_QUERIES) + k if singleton else None
        log = build.linear_queries(_QUERIES, _PRESENT, k, length=length, singleton=singleton)
        yield _Case("linear queries, as rolling counts", subsets, ("rolling", "event"), log, _QUERIES @ _PRESENT)
    square = f"points {_rows(_SQUARE)}: how many are at most (y, z), for y and z = 1..{_SIDE}?"
    up_to = np.arange(1, _SIDE + 1)
    inside = ((_SQUARE[:, :1, None] <= up_to[:, None]) & (_SQUARE[:, 1:, None] <= up_to)).sum(axis=0)
    log = build.dominance_queries(_SQUARE, _SIDE, k, singleton=singleton)
    yield _Case("2-D range queries, as counts of any windows", square, ("any", "event"), log, inside)
    table, columns = f"rows {_rows(_TABLE)}: what is the sum of each column?", _TABLE.sum(axis=0)
    log = build.marginals_rolling(_TABLE, len(_TABLE) * k if singleton else 2, k, singleton=singleton)
    yield _Case("1-way marginals, as rolling counts", table, ("rolling", "item"), log, columns)
    if k > 1 and not singleton:
        name = "1-way marginals, as rolling counts, several to a window"
        log = build.dense_marginals_rolling(_TABLE, len(_TABLE[0]), k)
        yield _Case(name, table, ("rolling", "item"), log, columns)
    log = build.marginals_any(_TABLE, k, singleton=singleton)
    yield _Case("1-way marginals, as counts of any windows", table, ("any", "item"), log, columns)


def _run(case: _Case, at: Setting) -> Reduction:
    family, level = case.cell
    log, counts = case.log, case.log.window_counts
    answers, by_points = log.read(counts), _points(log, family) if level == "event" else None
    if not np.array_equal(answers, case.answers) or (by_points and not np.array_equal(by_points[1], counts)):
        raise EngineError(f"the windows do not answer the problem of {case.name!r}: this is a bug")
    own = replace(at, steps=log.horizon, length=getattr(log.window, "length", log.horizon))
    points = by_points[0] if by_points else None
    bound, law = lower(family, level, own), LOWER[family, level](own)
    return Reduction(case.name, case.problem, log, counts, answers, points, bound, law)


def _points(log: HardInstance, family: Family) -> tuple[int, Ints] | None:
    """The number of points that the paper makes of the log, and the windows' counts as range counts of them."""
    if family == "cumulative":
        line = cumulative_points(log.histories, log.k)
        return len(line), (line <= log.last[:, None]).sum(axis=1)
    if family == "any":
        x, other = window_points(log.histories, log.k)
        within, less = (dominating(points, log.first, log.last) for points in (x, other))
        return len(x) + len(other), len(log.histories) - within + less
    return None


def _list(values: Ints) -> str:
    return ", ".join(map(str, values.tolist()))


def _rows(values: Ints) -> str:
    return ", ".join(f"({_list(row)})" for row in values)
