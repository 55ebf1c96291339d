"""Limits that the counts of a series put on each other: where one window holds another, or consists of parts.

A series is a family with at most one window for each last step, such as rolling or cumulative windows: first steps
never fall, last steps rise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray

# More than any count.
UNKNOWN = np.iinfo(np.int64).max // 4
# How often parts are raised, for what is owed beyond this; numbers held at a time while sums over parts are worked out,
# and sums beyond which that is not done.
_ROUNDS, _HARDLY, _HELD, _MOST_SUMS = 80, 0.25, 1 << 22, 20_000_000_000
# A squared error below this is as good as none.
_EXACT = 1e-9
_MUCH = 4


@dataclass
class Series:
    """Counts of at least k in windows `first[i]..last[i]` (1-based, inclusive); `values` change as they are mended.

    Counts of exactly k, of the family `exact_of`, only have a bound from above, and bound nothing themselves.
    """

    k: int
    first: IntArray
    last: IntArray
    values: FloatArray
    exact_of: int | None = None

    def windows(self) -> tuple[IntArray, IntArray]:
        """First and last steps."""
        return self.first, self.last

    def largest_within(self, first: IntArray, last: IntArray) -> FloatArray:
        """The largest count of a window within first..last, 0 where there is none."""
        low = np.searchsorted(self.first, first, "left")
        high = np.searchsorted(self.last, last, "right")
        return np.maximum(_largest(self.values, low, high), 0)

    def least_around(self, first: IntArray, last: IntArray) -> FloatArray:
        """The least count of a window that holds first..last, `UNKNOWN` where there is none."""
        low = np.searchsorted(self.last, last, "left")
        high = np.searchsorted(self.first, first, "right")
        return -_largest(-self.values, low, high)

    @property
    def is_exact(self) -> bool:
        """True for counts of exactly k."""
        return self.exact_of is not None

    def rise_from_one_start(self) -> None:
        """Make windows with the same first step rise with their last: isotonic regression (SciPy)."""
        starts = np.flatnonzero(np.diff(self.first, prepend=0)).tolist()
        for begin, end in pairwise([*starts, len(self.first)]):
            if end - begin > 1:
                self.values[begin:end] = scipy.optimize.isotonic_regression(self.values[begin:end]).x


def _largest(values: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
    """The largest of `values[low:high]`, for many ranges; -UNKNOWN for empty ones."""
    found = np.full(low.shape, -UNKNOWN, dtype=values.dtype)
    size = np.maximum(high - low, 0)
    level, of_level = 0, values
    while len(of_level):
        # Ranges of 2^level to 2^(level + 1) - 1 numbers are the union of two of 2^level.
        here = (size >> level) == 1
        found[here] = np.maximum(of_level[low[here]], of_level[high[here] - (1 << level)])
        of_level = np.maximum(of_level[: -(1 << level)], of_level[1 << level :])
        level += 1
    return found


def raise_parts(distinct: Sequence[tuple[Series, float]]) -> None:
    """Bring distinct counts nearer, in place, to being no more than any sum over parts: inexact parts are raised.

    For each window the least sum over windows that together hold it is found. What the window has beyond that is shared
    out between it and them by their mean squared errors, so that exact counts hardly move.
    """
    # Errors of a huge budget are 0 in floating point; what is owed is then shared out alike.
    parts, errors = [one for one, _ in distinct], np.array([max(error, _EXACT) for _, error in distinct])
    for _ in range(_ROUNDS):
        owes = False
        for at, whole in enumerate(parts):
            # Starts with about as far to go are taken together; nothing is done where that is too much.
            for group in _alike(whole):
                owes |= _raise(parts, errors, at, group)
        if not owes:
            return


def _alike(whole: Series) -> Iterator[IntArray]:
    """Places of windows, in groups whose sums over parts are held at a time."""
    length = int((whole.last - whole.first).max()) + 1
    size = max(1, _HELD // (length + 1))
    starts = np.unique(whole.first)
    for begin in range(0, len(starts), size):
        some = starts[begin : begin + size]
        yield np.flatnonzero((whole.first >= some[0]) & (whole.first <= some[-1]))


def _raise(parts: Sequence[Series], errors: FloatArray, at: int, places: IntArray) -> bool:
    """Share out what some windows of one family owe; False if they owe hardly anything."""
    whole = parts[at]
    starts, row = np.unique(whole.first[places], return_inverse=True)
    offset = whole.last[places] - whole.first[places] + 1
    least, choice = _cheapest(starts, int(offset.max()), parts)
    owed = whole.values[places] - least[row, offset]
    owing = np.flatnonzero(owed > _HARDLY)
    if not len(owing):
        return False
    row, offset, owed = row[owing], offset[owing], owed[owing]
    moves = np.where(errors < errors[at] / _MUCH, 0.0, errors**0.5)
    path, sizes = list[tuple[IntArray, IntArray, IntArray]](), np.zeros(len(owing))
    while (offset > 0).any():
        walking = np.flatnonzero(offset > 0)
        used, last = choice[row[walking], offset[walking]], starts[row[walking]] + offset[walking] - 1
        path.append((walking, used, last))
        sizes[walking] += moves[used]
        for number, part in enumerate(parts):
            mine = walking[used == number]
            window = np.searchsorted(part.last, last[used == number])
            offset[mine] = np.maximum(part.first[window] - starts[row[mine]], 0)
    # Errors of neighbouring windows are nearly the same, so they add up.
    share = owed / (errors[at] + sizes**2)
    raised = [np.zeros(len(part.values)) for part in parts]
    for walking, used, last in path:
        for number, part in enumerate(parts):
            mine = used == number
            window = np.searchsorted(part.last, last[mine])
            np.maximum.at(raised[number], window, (share * sizes)[walking[mine]] * moves[number])
    whole.values[places[owing]] -= share * errors[at]
    for part, more in zip(parts, raised, strict=True):
        part.values = part.values + more
        part.rise_from_one_start()
    return True


def _cheapest(starts: IntArray, length: int, parts: Sequence[Series]) -> tuple[FloatArray, IntArray]:
    """Least sums over parts of windows of 0..length steps from each start, and the part that ends each."""
    least, choice = np.full((len(starts), length + 1), np.inf), np.zeros((len(starts), length + 1), dtype=np.int64)
    least[:, 0], rows = 0, np.arange(len(starts))
    by_last = [_by_last(part, int(starts[-1]) + length) for part in parts]
    for offset in range(1, length + 1):
        last = starts + offset - 1
        for number, (first, value) in enumerate(by_last):
            total = least[rows, np.maximum(first[last], starts) - starts] + value[last]
            better = total < least[:, offset]
            least[better, offset], choice[better, offset] = total[better], number
    return least, choice


def lower_to_sums(targets: Sequence[Series], parts: Sequence[Series], thresholds: Sequence[int]) -> None:
    """Lower counts, in place, to the least sum over windows that together hold the window.

    An item with at least k occurrences has at least i in one part or k + 1 - i in the rest. So for windows that follow
    each other and hold all steps of a window, least sums are found step by step, for every threshold.

    Raises:
        OverflowError: that would be more work than anybody waits for.
    """
    for target in targets:
        starts, inverse = np.unique(target.first, return_inverse=True)
        furthest = np.zeros(len(starts), dtype=np.int64)
        np.maximum.at(furthest, inverse, target.last - target.first + 1)
        length, wanted = int(furthest.max()), [k for k in thresholds if k <= target.k]
        if len(starts) * length * len(parts) * len(wanted) > _MOST_SUMS:
            raise OverflowError("the sums over parts of these windows are too many")
        size = max(1, _HELD // ((length + 1) * len(wanted)))
        least = np.empty(len(target.values), dtype=np.int64)
        for begin in range(0, len(starts), size):
            some = starts[begin : begin + size]
            sums = _least_sums(some, length, parts, wanted)
            mine = np.flatnonzero((inverse >= begin) & (inverse < begin + size))
            offset = target.last[mine] - target.first[mine] + 1
            least[mine] = sums[wanted.index(target.k), inverse[mine] - begin, offset]
        target.values = np.minimum(target.values, least)


def _least_sums(starts: IntArray, length: int, parts: Sequence[Series], wanted: Sequence[int]) -> IntArray:
    """Least sums over parts of windows of 0..length steps from each start: (thresholds, starts, length + 1)."""
    found = np.full((len(wanted), len(starts), length + 1), UNKNOWN, dtype=np.int64)
    found[:, :, 0] = 0
    by_last = [(part, _by_last(part, int(starts[-1]) + length)) for part in parts if part.k <= wanted[-1]]
    rows = np.arange(len(starts))
    for offset in range(1, length + 1):
        last = starts + offset - 1
        for part, (first, value) in by_last:
            before = np.maximum(first[last], starts) - starts
            for at, k in enumerate(wanted):
                # The rest has at least `other`, and other + part.k - 1 <= k.
                for rest, other in enumerate(wanted):
                    if other + part.k - 1 <= k:
                        total = found[rest, rows, before] + value[last]
                        np.minimum(found[at, :, offset], total, out=found[at, :, offset])
    return found


def _by_last(part: Series, steps: int) -> tuple[IntArray, NDArray[Any]]:
    """First step and count of the window that ends at each step; where there is none, more than any count."""
    first, value = np.ones(steps + 1, dtype=np.int64), np.full(steps + 1, UNKNOWN, dtype=part.values.dtype)
    held = part.last <= steps
    first[part.last[held]], value[part.last[held]] = part.first[held], part.values[held]
    return first, value


Finder = Callable[[IntArray, IntArray], tuple[NDArray[Any], NDArray[np.bool_]]]


def finder(known: Sequence[Series]) -> Finder:
    """Looks up windows: their counts, and which of them are known."""
    first, last, values = (
        np.concatenate([getattr(one, name) for one in known]) for name in ("first", "last", "values")
    )
    furthest = int(last.max()) + 1
    order = np.argsort(first * furthest + last, kind="stable")
    keys, values = (first * furthest + last)[order], values[order]

    def at(first: IntArray, last: IntArray) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        wanted = first * furthest + last
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return values[place], (keys[place] == wanted) & (first <= last)

    return at


def lower_to_overlaps(wholes: Sequence[Series], known: Sequence[Series]) -> None:
    """Lower distinct counts, in place: what (a, b) counts beyond (a, b - 1) is no more than for windows from a + 1.

    So `F(a, b) <= F(a + 1, b) + F(a, b - 1) - F(a + 1, b - 1)`, wherever the other three windows are released.
    """
    if not wholes:
        return
    at = finder(known)
    for whole in wholes:
        (inner, known_inner), (late, known_late), (early, known_early) = (
            at(whole.first + begin, whole.last - end) for begin, end in ((1, 1), (1, 0), (0, 1))
        )
        holds = known_inner & known_late & known_early
        whole.values = np.where(holds, np.minimum(whole.values, late + early - inner), whole.values)
