"""Consistent occurrences: whole numbers of occurrences in every step, whose sums are the counts of all windows.

They are what the estimates of all families are nearest to, by their errors, with no step below 0. A window holds no
fewer occurrences than its items of at least 1, 2, ... occurrences add up to: so where a window's sum is below its
estimates of these, it is drawn up to them, by their errors. What is still wrong then is mended in the counts of items
(`table`), which are held within these sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpwindows.ask.queries import Measure
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.release.consistency.families import Family

# Ranges beyond this take too long; rounds in which windows and steps change sides, which are few.
_LONGEST, _ROUNDS = 2048, 40
# Solutions until nothing is left of what the first was drawn to.
_DRAWN = 3
# The least squared error: budgets may be so large that there is none.
_LEAST = 1e-12


@dataclass(frozen=True)
class Occurrences:
    """Occurrences up to each step, whole and rising from 0, shape (T + 1,); as a table they bound every k."""

    totals: IntArray
    k = 0
    is_exact = False

    def least_around(self, first: IntArray, last: IntArray) -> IntArray:
        """The occurrences in windows."""
        return np.asarray(self.totals[last] - self.totals[first - 1])


@dataclass(frozen=True)
class _Windows:
    """Numbers of windows with their weights: of one family, or of what a family's windows hold at least."""

    first: IntArray
    last: IntArray
    values: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, family: Family, values: FloatArray, squared_error: FloatArray) -> _Windows:
        """A family weighs as much as one number for each step: numbers of many windows err alike."""
        first, last = family.known.windows
        share = family.known.steps / len(first)
        return cls(first, last, values, share / np.maximum(squared_error, _LEAST))

    def below(self, steps: FloatArray) -> _Windows:
        """Those of its windows whose steps add up to less."""
        totals = np.concatenate([[0.0], np.cumsum(steps)])
        chosen = totals[self.last] - totals[self.first - 1] < self.values
        return _Windows(*(part[chosen] for part in (self.first, self.last, self.values, self.weights)))


def fit_occurrences(families: Sequence[Family], steps: int) -> Occurrences | None:
    """The consistent occurrences of one group, None where none are asked for; `OverflowError` on very long ranges."""
    asked = [
        _Windows.of(family, family.occurrences, family.known.allotment.variance(Measure("occurrences")))
        for family in families
        if family.occurrences is not None
    ]
    if not asked:
        return None
    if steps > _LONGEST:
        raise OverflowError
    held = [
        _Windows.of(
            family,
            np.sum([one.values for one in family.at_least.values()], axis=0),
            np.sum([one.squared_error for one in family.at_least.values()], axis=0),
        )
        for family in families
        if family.at_least
    ]
    square, target = _normal_equations(asked, steps)
    # Steps that no family tells apart are shared out alike: each solution is drawn a little to the one before it.
    ridge = 1e-9 * max(float(np.diag(square).max()), _LEAST)
    square[np.diag_indices(steps)] += ridge
    found = np.zeros(steps)
    for _ in range(_DRAWN):
        found = _nonnegative(square, target + ridge * found)
    for _ in range(_ROUNDS if held else 0):
        below = [one.below(found) for one in held]
        more, up = _normal_equations(below, steps)
        before, found = found, _nonnegative(square + more, target + ridge * found + up)
        if np.allclose(before, found, rtol=0, atol=1e-6):
            break
        found = (before + found) / 2
    return Occurrences(np.rint(np.concatenate([[0.0], np.cumsum(found)])).astype(np.int64))


def _normal_equations(parts: Iterable[_Windows], steps: int) -> tuple[FloatArray, FloatArray]:
    """`A' W A` and `A' W y` for the windows' values y and weights W, A being 1 where a window holds a step."""
    held, target = np.zeros((steps, steps)), np.zeros(steps + 1)
    for part in parts:
        np.add.at(held, (part.first - 1, part.last - 1), part.weights)
        np.add.at(target, part.first - 1, part.weights * part.values)
        np.subtract.at(target, part.last, part.weights * part.values)
    # Of the windows that hold steps s <= t the first step is s or earlier, and the last t or later.
    both = np.triu(held.cumsum(axis=0)[:, ::-1].cumsum(axis=1)[:, ::-1])
    return both + np.triu(both, 1).T, np.cumsum(target[:-1])


def _nonnegative(square: FloatArray, target: FloatArray) -> FloatArray:
    """The x >= 0 of least `x' Q x - 2 b'x`: steps change sides until none is on a wrong one (block pivoting)."""
    free = np.ones(len(target), dtype=bool)
    found = np.zeros(len(target))
    near = 1e-9 * max(float(np.abs(target).max(initial=0.0)), _LEAST)
    for _ in range(_ROUNDS):
        found[:] = 0.0
        found[free] = np.linalg.solve(square[np.ix_(free, free)], target[free])
        wrong = np.where(free, found < 0, square @ found - target < -near)
        if not wrong.any():
            break
        free ^= wrong
    return np.maximum(found, 0.0)
