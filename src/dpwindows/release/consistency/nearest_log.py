"""The nearest distinct counts of any windows that a log can have: a quadratic program, solved exactly (Clarabel).

Of the items that occur at step s let m(p, s) have last occurred at step p, or before all windows that hold s. A table
of counts is that of some log, of fractions of items, if and only if no m is negative and of the items of step p no more
return than occurred there. Both are few inequalities of windows beside each other:

    F(a, b) + F(a + 1, b - 1) <= F(a + 1, b) + F(a, b - 1)   m(a, b) is not negative
    F(a, b) >= F(a, b - 1)                                   nor is that of items whose last one lies before all windows
    F(a, b) >= F(a + 1, b)                                   some of the items of step a are not back by step b

The second is needed for the longest window that ends at each step, and the third for the longest that starts there.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy
from clarabel import DefaultSettings, DefaultSolver, NonnegativeConeT, SolverStatus
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray

# Work that is worth while, as windows times the longest: about a second.
_MOST_WORK = 1_500_000
# How far from the nearest numbers are left, in typical errors.
_NEAR = 1e-6
# Weights that differ by more than this are as good as fixed, or as none.
_APART = 1e8
_SOLVED = (SolverStatus.Solved, SolverStatus.AlmostSolved)


def nearest_log(by_end: FloatArray, weights: FloatArray) -> bool:
    """Make a table, in place, the one of least weighted squared distance among those of logs; False if that takes long.

    The table has windows by last step, the shortest first (`rows`), k = 1.
    """
    steps, longest = by_end.shape
    if longest > longest_solved(steps):
        return False
    inside = _inside(steps, longest)
    given, weight = by_end[inside], weights[inside]
    typical = float(np.median(weight))
    weight = np.clip(weight / typical, 1 / _APART, _APART)
    limits = _limits(steps, longest)
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
    if found.status not in _SOLVED:
        return False
    by_end[inside] = given + np.array(found.x) / typical**0.5
    return True


def longest_solved(steps: int) -> int:
    """How many steps the windows may have of a table that is solved."""
    return math.isqrt(_MOST_WORK // steps)


def _inside(steps: int, longest: int) -> NDArray[np.bool_]:
    """Which places of a table by end are windows."""
    return np.less_equal(np.arange(longest), np.arange(steps)[:, None])


@lru_cache(maxsize=2)
def _limits(steps: int, longest: int) -> scipy.sparse.csc_matrix:
    """One row for each inequality: its product with the windows, in the order of `by_end[_inside]`, is not negative."""
    inside = _inside(steps, longest)
    number = np.full((steps + 1, longest + 1), -1, dtype=np.int64)
    number[1:, 1:][inside] = np.arange(inside.sum())

    def windows(first: IntArray, last: IntArray) -> IntArray:
        """Numbers of windows from `first` on to `last`, counted from 1; -1 for those of no steps."""
        return np.asarray(number[last, last - first + 1])

    last, place = (axis + 1 for axis in np.nonzero(inside))
    several = place > 1
    a, b = (last - place + 1)[several], last[several]
    ends = np.arange(1, steps + 1)
    longest_to, longest_from = np.maximum(ends - longest + 1, 1), np.minimum(ends + longest - 1, steps)
    parts = [
        ((windows(a + 1, b), 1), (windows(a, b - 1), 1), (windows(a, b), -1), (windows(a + 1, b - 1), -1)),
        ((windows(longest_to, ends), 1), (windows(longest_to, ends - 1), -1)),
        ((windows(ends, longest_from), 1), (windows(ends + 1, longest_from), -1)),
    ]
    rows, columns, signs, done = list[IntArray](), list[IntArray](), list[IntArray](), 0
    for part in parts:
        for column, sign in part:
            some = np.flatnonzero(column >= 0)
            rows.append(done + some)
            columns.append(column[some])
            signs.append(np.full(len(some), sign))
        done += len(part[0][0])
    entries = np.concatenate(signs).astype(np.float64), (np.concatenate(rows), np.concatenate(columns))
    return scipy.sparse.csc_matrix(entries, shape=(done, int(inside.sum())))
