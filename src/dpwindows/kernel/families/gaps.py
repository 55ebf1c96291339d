r"""Any windows at item level: every window is measured with the windows that contain it, for what lies between events.

Notation: as in `dpwindows.kernel.families.norms`; a window `(a, b)` has n = b - a + 1 steps, `C(i)` is the sum of
the first i + 1 taps (of all taps where there are no more), `w_n` the weight of windows of n steps.

**Measured** are, of the N items that occur within steps 1..T, and of the `U(a, b)` of them that do not occur in a..b:

    y(a, b) = w_n sum_{i, j >= 0} taps_i taps_j U(a - i, b + j) - offset N    for every window but 1..T,

and `total N` in its place. U is 0 for windows that reach beyond 1..T. All the windows that are summed contain a..b.
One filter runs over starts from the first to the last, the same over ends from the last to the first. Weights by length
are what makes it good: an item has few long gaps and may have many short ones.

**One item is a set of gaps.** Let an item occur in some steps, not none. A *gap* is a longest stretch s..e of steps in
which it does not occur; it has g = e - s + 1 steps. The log that holds this item alone has N = 1, and U(a, b) = 1 where
a..b lies within a gap, else 0. Let a..b lie within the gap s..e. A window that contains a..b and no occurrence lies in
the same gap, for it has steps of the gap and none of the two beside it. So the sum above is `C(i) C(j)` with i = a - s
and j = e - b, and i + j + n = g. If a..b lies in no gap, no window that contains it does, and the sum is 0. Hence

    y(a, b) = w_n C(i) C(j) - offset within a gap, and -offset elsewhere.

No window lies in two gaps, so sums over windows are sums over gaps and over the windows in none.

**The gaps of an item** that occurs in m steps: put a step behind the range, in which it occurs too. Each of these m + 1
steps ends a part that begins with the gap before it, or has no other step where it follows an occurrence. A part has
g + 1 steps, g = 0 without a gap; the parts fill T + 1 steps, and as m >= 1 there are two at least. So the largest sum
of charges over all items is that over the ways to cut T + 1 steps into two parts or more (`_worst_gaps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.privacy import ItemAddRemove, ItemLevel
from dpwindows.ask.queries import AnyWindow, WindowFamily
from dpwindows.ask.windows import Answers
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.designs import Shape
from dpwindows.kernel.maps.filters import convolve_exactly
from dpwindows.kernel.maps.integer_maps import IntArray, require_positive, widen
from dpwindows.kernel.rules import Case, rule


@dataclass(frozen=True)
class Gaps(Shape):
    """A filter over `len(weights)` steps: all windows of the range are measured, and those asked for are read.

    Attributes:
        taps: of the filter.
        weights: `weights[n - 1]` is that of windows of n steps.
        offset: how often the number of items is taken off.
        total: how often it is measured itself.

    Raises:
        ValueError: a weight or the total is not positive.
    """

    taps: tuple[int, ...]
    weights: tuple[int, ...]
    offset: int
    total: int

    def __post_init__(self) -> None:
        require_positive("the total and the weights of a filter over gaps", self.total, *self.weights)

    @property
    def steps(self) -> int:
        """The steps T of the range."""
        return len(self.weights)

    def rows(self, window: WindowFamily, steps: int) -> int:
        """One for each window."""
        return self.steps * (self.steps + 1) // 2

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        return self.encode_windows(answers.windows(k, 1, self.steps, 1, self.steps))

    def encode_windows(self, exact: IntArray) -> IntArray:
        """The numbers measured, by start and then by end, of window counts by start and end, shape (T, T)."""
        taps, everyone = np.array(self.taps, dtype=object), exact[0, -1]
        by_start = convolve_exactly(taps, everyone - exact)
        filtered = convolve_exactly(taps, by_start.T[::-1])[::-1].T
        first, last = np.triu_indices(self.steps)
        wide = widen(filtered[first, last], max(self.weights))
        items = widen(np.array([everyone]), max(abs(self.offset), self.total))
        numbers = wide * np.array(self.weights, dtype=wide.dtype)[last - first] - self.offset * items
        place = self.steps - 1
        return np.concatenate([numbers[:place], self.total * items, numbers[place + 1 :]])


def _covers_range(case: Case) -> bool:
    return case.thresholds == (1,) and case.measured.steps == case.problem.steps > 1


@rule(
    "any-gaps-squares",
    AnyWindow,
    (ItemLevel, ItemAddRemove),
    GAUSSIAN,
    Gaps,
    when="at least 1 alone, two steps or more",
)
def gap_filter_l2(case: Case) -> int | None:
    """Any windows, one item changed arbitrarily or added or removed: squared L2 bound of a filter over gaps.

    Proof. *Added or removed.* By the module docstring the squared norm is `total^2`, plus `(w_n C(i) C(j) - offset)^2`
    for the windows within gaps, plus `offset^2` for all others but 1..T, which lies in no gap. That is `total^2`, plus
    `offset^2` for every window but one, plus for each gap `sum (w_n C(i) C(j))^2 - 2 offset w_n C(i) C(j)` over
    i + j + n = g. The largest sum over sets of gaps is taken: attained.
    *Changed* from A to B, neither of them empty (else it is added or removed): N stays, and so does what offset takes
    off. A window's y changes by p - q, where p is `w_n C(i) C(j)` for the gap of A that it lies in, 0 if there is none,
    and q the same for B. If no C is negative, `(p - q)^2 <= p^2 + q^2`, otherwise at most twice that. The sums of p^2
    and of q^2 are each at most the largest over sets of gaps without an offset. The larger bound is returned. QED.
    """
    if not _covers_range(case):
        return None
    measured: Gaps = case.measured
    sums, weights = _sums(measured), _exact(measured.weights)
    squares = _sum_over_gaps(weights**2, sums**2)
    charges = squares - 2 * measured.offset * _sum_over_gaps(weights, sums)
    windows = measured.steps * (measured.steps + 1) // 2
    added = measured.total**2 + (windows - 1) * measured.offset**2 + _worst_gaps(charges.tolist())
    if not case.formal:
        return added
    return max(added, (2 if sums.min() >= 0 else 4) * _worst_gaps(squares.tolist()))


@rule(
    "any-gaps",
    AnyWindow,
    (ItemLevel, ItemAddRemove),
    LAPLACE,
    Gaps,
    when="at least 1 alone, two steps or more, no offset",
)
def gap_filter_l1(case: Case) -> int | None:
    """Any windows, one item changed arbitrarily or added or removed: L1 bound of a filter over gaps.

    Proof. *Added or removed.* N changes by 1 and the window a..b by `w_n |C(i) C(j)|` if it lies within a gap, else not
    at all: `total` plus, for a gap of g steps, the sum of that over i + j + n = g. The largest sum over sets of gaps is
    taken: attained. *Changed* from A to B, neither empty: N stays, and a window's number changes at most by what it
    changes when A is removed plus what it changes when B is added. The larger of both bounds is returned. An offset
    moves every window at once: there is no bound for one. QED.
    """
    measured: Gaps = case.measured
    if not _covers_range(case) or measured.offset:
        return None
    worst = _worst_gaps(_sum_over_gaps(_exact(measured.weights), abs(_sums(measured))).tolist())
    return max(measured.total + worst, 2 * worst) if case.formal else measured.total + worst


def _exact(values: Sequence[int]) -> NDArray[np.object_]:
    """Whole numbers of any size."""
    return np.array([int(value) for value in values], dtype=object)


def _sums(measured: Gaps) -> NDArray[np.object_]:
    """`C(0), ..., C(T-1)`."""
    steps, taps = measured.steps, measured.taps
    padded = [int(tap) for tap in taps[:steps]] + [0] * (steps - len(taps))
    return _exact(list(accumulate(padded)))


def _sum_over_gaps(by_length: NDArray[np.object_], along: NDArray[np.object_]) -> NDArray[np.object_]:
    """For gaps of g = 0..T-1 steps, `sum by_length_n along(i) along(j)` over i + j + n = g, n >= 1."""
    steps = len(by_length)
    sums = np.zeros(steps, dtype=object)
    sums[1:] = np.convolve(by_length, np.convolve(along, along)[:steps])[: steps - 1]
    return sums


def _worst_gaps(charges: Sequence[int]) -> int:
    """The largest sum of charges over the ways to cut T + 1 steps into parts, `charges[g]` for a part of g + 1 steps.

    There are T charges, so that there are two parts at least.
    """
    best = [0]
    for _ in range(len(charges) + 1):
        best.append(max(charge + before for charge, before in zip(charges, reversed(best), strict=False)))
    return best[-1]
