r"""Certified sensitivities at item level, any windows: one item changes what is measured gap by gap.

Notation: as in `dpwindows.kernel.bounds.sensitivity`; a window `(a, b)` has n = b - a + 1 steps, `C(i)` is the sum of
the first i + 1 taps (of all taps where there are no more), `w_n` the weight of windows of n steps.

**Measured** are, of the N items that occur within steps 1..T, and of the `U(a, b)` of them that do not occur in a..b:

    y(a, b) = w_n sum_{i, j >= 0} taps_i taps_j U(a - i, b + j) - offset N    for every window but 1..T,

and `total N`. U is 0 for windows that reach beyond 1..T. All the windows that are summed contain a..b (`maps.gaps`).

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
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.maps.gaps import GapFilter
from dpwindows.kernel.proofs import proves


@proves("any-gaps-squares")
def gap_filter_l2(measured: GapFilter, *, formal: bool) -> int:
    """Any windows, one item changed arbitrarily (`formal`) or added or removed: squared L2 bound of a filter over gaps.

    Args:
        measured: the map, as it is applied.
        formal: whether an item may be changed arbitrarily.

    Proof. *Added or removed.* By the module docstring the squared norm is `total^2`, plus `(w_n C(i) C(j) - offset)^2`
    for the windows within gaps, plus `offset^2` for all others but 1..T, which lies in no gap. That is `total^2`, plus
    `offset^2` for every window but one, plus for each gap `sum (w_n C(i) C(j))^2 - 2 offset w_n C(i) C(j)` over
    i + j + n = g. The largest sum over sets of gaps is taken: attained.
    *Changed* from A to B, neither of them empty (else it is added or removed): N stays, and so does what offset takes
    off. A window's y changes by p - q, where p is `w_n C(i) C(j)` for the gap of A that it lies in, 0 if there is none,
    and q the same for B. If no C is negative, `(p - q)^2 <= p^2 + q^2`, otherwise at most twice that. The sums of p^2
    and of q^2 are each at most the largest over sets of gaps without an offset. The larger bound is returned. QED.
    """
    sums, weights = _sums(measured), _exact(measured.weights)
    squares = _sum_over_gaps(weights**2, sums**2)
    charges = squares - 2 * measured.offset * _sum_over_gaps(weights, sums)
    added = measured.total**2 + (measured.rows - 1) * measured.offset**2 + _worst_gaps(charges.tolist())
    if not formal:
        return added
    return max(added, (2 if sums.min() >= 0 else 4) * _worst_gaps(squares.tolist()))


@proves("any-gaps")
def gap_filter_l1(measured: GapFilter, *, formal: bool) -> int:
    """Any windows, one item changed arbitrarily (`formal`) or added or removed: L1 bound of a filter over gaps.

    Arguments as for `gap_filter_l2`.

    Raises:
        ValueError: the map has an offset, which moves every window at once.

    Proof. *Added or removed.* N changes by 1 and the window a..b by `w_n |C(i) C(j)|` if it lies within a gap, else not
    at all: `total` plus, for a gap of g steps, the sum of that over i + j + n = g. The largest sum over sets of gaps is
    taken: attained. *Changed* from A to B, neither empty: N stays, and a window's number changes at most by what it
    changes when A is removed plus what it changes when B is added. The larger of both bounds is returned. QED.
    """
    if measured.offset:
        raise ValueError("an L1 bound is for maps without an offset")
    worst = _worst_gaps(_sum_over_gaps(_exact(measured.weights), abs(_sums(measured))).tolist())
    return max(measured.total + worst, 2 * worst) if formal else measured.total + worst


def _exact(values: Sequence[int]) -> NDArray[np.object_]:
    """Whole numbers of any size."""
    return np.array([int(value) for value in values], dtype=object)


def _sums(measured: GapFilter) -> NDArray[np.object_]:
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
