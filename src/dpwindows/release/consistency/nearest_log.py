"""The nearest distinct counts of any windows that a log can have: a quadratic program, solved exactly (Clarabel).

Of the items that occur at step s let m(p, s) have last occurred at step p, or before all windows that hold s. A table
of counts is that of some log, of fractions of items, if and only if no m is negative and of the items of step p no more
return than occurred there. Both are few inequalities of windows beside each other:

    F(a, b) + F(a + 1, b - 1) <= F(a + 1, b) + F(a, b - 1)   m(a, b) is not negative
    F(a, b) >= F(a, b - 1)                                   nor is that of items whose last one lies before all windows
    F(a, b) >= F(a + 1, b)                                   some of the items of step a are not back by step b

The second is needed for the longest window that ends at each step, and the third for the longest that starts there.
Windows that are longer still, and begin at one step, gain at each step no less than 0, and no more than the longest do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import scipy
from clarabel import DefaultSettings, DefaultSolver, NonnegativeConeT
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray

# How far from the nearest numbers are left, in typical errors.
_NEAR = 1e-3
# Weights that differ by more than this are as good as fixed, or as none.
_APART = 1e8
# Places of windows, each with its sign in a row of inequalities.
_Part = list[tuple[IntArray, int]]


@dataclass(frozen=True)
class Longer:
    """Counts, and their weights, of windows that begin at one step and end at each of some steps, one after another.

    The first of them is one step longer than the longest of a table. `joined` are counts of the same windows in other
    families, as arrays of one number, with their places and weights: each becomes part of a window, and follows it.
    """

    first: int
    last: IntArray
    values: FloatArray
    weights: FloatArray
    joined: list[tuple[int, FloatArray, float]] = field(default_factory=list)

    def with_joined(self) -> tuple[FloatArray, FloatArray]:
        """The counts with what is joined to them, by weights, and these weights together."""
        values, weights = self.values.copy(), self.weights.copy()
        for place, value, weight in self.joined:
            weights[place] += weight
            values[place] += (value[0] - values[place]) * weight / weights[place]
        return values, weights


def nearest_log(by_end: FloatArray, weights: FloatArray, typical: float, longer: Sequence[Longer] = ()) -> bool:
    """Make a table, in place, the one of least weighted squared distance among those of logs; False if none is found.

    The table has windows by last step, the shortest first (`rows`), k = 1. Values of `longer` windows change with it.
    `typical` is the weight of most windows.
    """
    steps, longest = by_end.shape
    inside = _inside(steps, longest)
    beyond = [one.with_joined() for one in longer]
    given = np.concatenate([by_end[inside], *(values for values, _ in beyond)])
    weight = np.concatenate([weights[inside], *(own for _, own in beyond)])
    weight = np.clip(weight / typical, 1 / _APART, _APART)
    limits = _limits_with(steps, longest, longer)
    settings = DefaultSettings()
    settings.verbose, settings.tol_gap_abs, settings.tol_gap_rel, settings.tol_feas = False, _NEAR, _NEAR, _NEAR
    # What is looked for is the change, in typical errors: so no number is large.
    found = DefaultSolver(
        scipy.sparse.diags(weight, format="csc"),
        np.zeros(len(given)),
        -limits,
        limits @ given * typical**0.5,
        [NonnegativeConeT(limits.shape[0])],
        settings,
    ).solve()
    # Where the solver stops early it is near all the same.
    change = np.array(found.x) / typical**0.5
    if not np.isfinite(change).all():
        return False
    own, *others = np.split(given + change, np.cumsum([inside.sum(), *(len(one.last) for one in longer)])[:-1])
    by_end[inside] = own
    for one, values in zip(longer, others, strict=True):
        one.values[:] = values
        for place, value, _ in one.joined:
            value[0] = values[place]
    return True


def _inside(steps: int, longest: int) -> NDArray[np.bool_]:
    """Which places of a table by end are windows."""
    return np.less_equal(np.arange(longest), np.arange(steps)[:, None])


@lru_cache(maxsize=2)
def _numbers(steps: int, longest: int) -> IntArray:
    """For each last step and length, from 1 on, the place of a window in `by_end[_inside]`; -1 where there is none."""
    inside = _inside(steps, longest)
    number = np.full((steps + 1, longest + 1), -1, dtype=np.int64)
    number[1:, 1:][inside] = np.arange(inside.sum())
    return number


@lru_cache(maxsize=2)
def _limits(steps: int, longest: int) -> scipy.sparse.csc_matrix:
    """One row for each inequality: its product with the windows, in the order of `by_end[_inside]`, is not negative."""
    number = _numbers(steps, longest)
    last, length = np.nonzero(number >= 0)
    b, n = last[length > 1], length[length > 1]
    ends = np.arange(1, steps + 1)
    most = np.minimum(ends, longest)
    # The longest window from each step on ends here.
    until = np.minimum(ends + longest - 1, steps)
    return _rows(
        [
            [(number[b, n - 1], 1), (number[b - 1, n - 1], 1), (number[b, n], -1), (number[b - 1, n - 2], -1)],
            [(number[ends, most], 1), (number[ends - 1, most - 1], -1)],
            [(number[until, until - ends + 1], 1), (number[until, until - ends], -1)],
        ],
        int(number.max()) + 1,
    )


def _limits_with(steps: int, longest: int, longer: Sequence[Longer]) -> scipy.sparse.csc_matrix:
    """The same with longer windows, which come last: a step adds no more to them than to the longest of the table."""
    number, limits = _numbers(steps, longest), _limits(steps, longest)
    parts, done = list[_Part](), limits.shape[1]
    for one in longer:
        own = done + np.arange(len(one.last))
        before = np.concatenate([[number[one.last[0] - 1, longest]], own[:-1]])
        added = [(number[one.last, longest], 1), (number[one.last - 1, longest - 1], -1)]
        parts += [[(own, 1), (before, -1)], [*added, (own, -1), (before, 1)]]
        done += len(own)
    limits = limits.copy()
    limits.resize(limits.shape[0], done)
    return scipy.sparse.vstack([limits, _rows(parts, done)], format="csc") if parts else limits


def _rows(parts: Sequence[_Part], columns: int) -> scipy.sparse.csc_matrix:
    """Rows of signs at the places of windows; places below 0 are of windows of no steps, which count nothing."""
    rows, places, signs, done = list[IntArray](), list[IntArray](), list[IntArray](), 0
    for part in parts:
        for place, sign in part:
            some = np.flatnonzero(place >= 0)
            rows.append(done + some)
            places.append(place[some])
            signs.append(np.full(len(some), sign))
        done += len(part[0][0])
    entries = np.concatenate(signs).astype(np.float64), (np.concatenate(rows), np.concatenate(places))
    return scipy.sparse.csc_matrix(entries, shape=(done, columns))
