"""Any windows, in rows: made monotone, then whole numbers that are the counts of some log.

Windows of at most m steps stand in rows by their last step, the shortest first: `rows[b, j]` is the window of j + 1
steps that ends with step b + 1. Rows by first step look the same (`rows`). In both, counts never fall along
a row, because longer windows hold more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.release.consistency.rows import AT_ONCE, by_start, in_order, row_lengths, rows_by_end, rows_by_start
from dpwindows.release.consistency.series import UNKNOWN, Series

_ROUNDS = 10
# Windows with so many times the weight of most are exact beside them.
_EXACT = 100
# Numbers looked at while a table is bent, at most; and how much more than owed they are moved.
_MOVES, _RELAXED, _TINY = 300_000_000, 1.5, 1e-300


@dataclass
class Band:
    """Counts of at least k in all windows up to a longest: `values` in rows by last step, 0 where there is none.

    `weights` are one over the squared errors of these counts.
    """

    k: int
    values: FloatArray
    weights: FloatArray

    is_exact = False

    @property
    def longest(self) -> int:
        """The most steps of a window."""
        return int(self.values.shape[1])

    def of_length(self, length: int) -> Series:
        """Its windows of `length` steps."""
        last = np.arange(length, len(self.values) + 1)
        return Series(self.k, last - length + 1, last, self.values[length - 1 :, length - 1])

    def least_around(self, first: IntArray, last: IntArray) -> FloatArray:
        """The least counts around windows: their own, `UNKNOWN` where they are longer than its own."""
        place = last - first
        beyond = place >= self.longest
        found: FloatArray = self.values[last - 1, np.minimum(place, self.longest - 1, out=place)]
        found[beyond] = UNKNOWN
        return found

    def largest_within(self, first: IntArray, last: IntArray) -> FloatArray:
        """The largest count of its windows within first..last: that of a longest one."""
        short = last - first < self.longest
        beyond = self.of_length(self.longest).largest_within(first, last)
        return np.where(short, self.least_around(first, last), beyond)

    def largest_exact_within(self, first: IntArray, last: IntArray, weight: float) -> FloatArray:
        """The same of its windows that weigh more."""
        exact = Band(self.k, np.where(self.weights > weight, self.values, 0.0), self.weights)
        _largest_within(exact.values)
        return exact.largest_within(first, last)

    def windows(self) -> tuple[IntArray, IntArray]:
        """First and last step of every place of its rows; places that are no window are given one of one step."""
        last = np.broadcast_to(np.arange(1, len(self.values) + 1)[:, None], self.values.shape)
        first = last - np.arange(self.longest)
        return np.where(first >= 1, first, last), last

    def in_order(self, longest: int) -> IntArray:
        """The whole counts of all windows of at most `longest` steps, in canonical order; `UNKNOWN` for others."""
        places = in_order(len(self.values), longest)
        found = np.full(places[-1].stop, UNKNOWN, dtype=np.int64)
        for place, row in zip(places, rows_by_start(self.values), strict=True):
            own = found[place][: len(row)]
            own[:] = row[: len(own)]
        return found

    def clear(self) -> None:
        """Set what is no window to 0."""
        self.values[np.arange(self.longest) >= row_lengths(*self.values.shape)[:, None]] = 0


def _least_around(by_end: FloatArray) -> FloatArray:
    """For each window, in place, the least number of those that hold it."""
    for rows in (rows_by_start, rows_by_end):
        for row in rows(by_end):
            row[:] = np.minimum.accumulate(row[::-1])[::-1]
    return by_end


def _largest_within(by_end: FloatArray) -> None:
    """Put in place of each number, in place, the largest of the windows that its window holds."""
    for rows in (rows_by_start, rows_by_end):
        for row in rows(by_end):
            np.maximum.accumulate(row, out=row)


def leave_to_parts(bands: Sequence[Band], typical: Sequence[float]) -> None:
    """Raise windows of k >= 2, in place, to what more exact windows that hold them leave to them.

    An item with k occurrences in a window has i in its first part or j = k + 1 - i in the rest, so that
    `F_k(whole) <= F_i(part) + F_j(rest)`. Of what the parts lack each is given half; distinct counts (k = 1) are those
    of a log already and stay. Windows are taken by how exact they are, and then from long to short: what is left to a
    part it leaves to its own parts. `typical` are the weights of most windows, band by band.
    """
    exact = [
        np.floor(np.log(np.maximum(band.weights / weight, 1.0)) / np.log(_EXACT))
        for band, weight in zip(bands, typical, strict=True)
    ]
    for level in sorted({float(one) for each in exact for one in np.unique(each[each > 0])}, reverse=True):
        left = _Left(bands, [each >= level for each in exact])
        for _ in range(_ROUNDS):
            before = [each.copy() for each in left.least.values()]
            left.hand_on()
            if all(np.array_equal(*both) for both in zip(before, left.least.values(), strict=True)):
                break
        for band, each in zip(bands, exact, strict=True):
            if band.k > 1:
                np.maximum(band.values, left.least[band.k], out=band.values, where=each < level)


class _Left:
    """The least that windows have to count for `fixed` ones to keep their number, threshold by threshold."""

    def __init__(self, bands: Sequence[Band], fixed: Sequence[NDArray[np.bool_]]) -> None:
        self.values = {band.k: band.values for band in bands}
        self.least = {b.k: np.where(f, b.values, 0.0) for b, f in zip(bands, fixed, strict=True) if b.k > 1}
        self.most = {
            b.k: _least_around(np.where(f, b.values, np.inf)) for b, f in zip(bands, fixed, strict=True) if b.k > 1
        }
        if 1 in self.values:
            for k, most in self.most.items():
                shared = min(most.shape[1], self.values[1].shape[1])
                np.minimum(most[:, :shared], self.values[1][:, :shared], out=self.most[k][:, :shared])

    def hand_on(self) -> None:
        """From every window to its parts, and then to all that hold a window."""
        thresholds = sorted(self.values)
        for k in sorted(self.least, reverse=True):
            for n in range(self.least[k].shape[1] - 1, 0, -1):
                for i, j in _pairs(thresholds, k):
                    self._split(k, n, i, j)
        for k, least in self.least.items():
            _largest_within(least)
            np.minimum(least, self.most[k], out=least)

    def _split(self, k: int, n: int, i: int, j: int) -> None:
        """From windows of n + 1 steps to a first part, at least i, and the rest, at least j."""
        b = np.flatnonzero(self.least[k][:, n])[:, None]
        rest = np.arange(max(0, n - self.values[i].shape[1]), min(n, self.values[j].shape[1]))
        if not (b.size and rest.size):
            return
        first, last = (b - 1 - rest, n - 1 - rest), (b, rest)
        whole, one, other = self.least[k][b, n], self.values[i][first], self.values[j][last]
        if i == 1 or j == 1:
            shares = (one, whole - one) if i == 1 else (whole - other, other)
        else:
            lack = whole - one - other
            part = np.where(lack > 0, one + lack / 2, whole * one / np.maximum(one + other, _TINY))
            part = np.minimum(part, self.most[i][first])
            part = np.maximum(part, whole - self.most[j][last])
            shares = part, whole - part
        for threshold, places, share in ((i, first, shares[0]), (j, last, shares[1])):
            if threshold > 1:
                least = self.least[threshold]
                least[places] = np.maximum(least[places], np.minimum(share, self.most[threshold][places]))


def follow(by_end: FloatArray, moves: Mapping[int, FloatArray]) -> FloatArray:
    """Moves of windows of some lengths, by last step, handed on to windows of lengths between and beside them.

    Errors of windows that nearly coincide are nearly the same, so what another family tells of the error of one helps
    the others.
    """
    steps, longest = by_end.shape
    known = sorted(moves)
    found = np.zeros_like(by_end)
    for length in range(1, longest + 1):
        place = np.interp(np.log(length), np.log(known), np.arange(len(known)))
        low, share = int(place), place % 1
        beside = min(length / known[0], known[-1] / length, 1.0)
        last = np.arange(length, steps + 1)
        for at, part in ((low, 1 - share), (low + 1, share)):
            if part > 0:
                near = known[at]
                ends = (last, last - length + near)
                both = [moves[near][np.clip(end, near, steps) - 1] for end in ends]
                found[length - 1 :, length - 1] += beside * part * (both[0] + both[1]) / 2
    return by_end + found


def monotone(by_end: FloatArray, weights: FloatArray, typical: float) -> None:
    """Make a table, in place, nearly the nearest that never falls when a window grows, at either end, nor below 0.

    Dykstra's alternating projections, each by isotonic regression of rows (SciPy); weighted least squares. `typical` is
    the weight of most windows: what weighs much more is exact.
    """
    lengths = row_lengths(*by_end.shape)
    # What is owed to rows by start and to rows by end, as much as there are windows: there may be millions.
    owed = [np.split(np.zeros(int(lengths.sum())), np.cumsum(each)[:-1]) for each in (lengths[::-1], lengths)]
    for _ in range(_ROUNDS):
        for owing, rows in zip(owed, (rows_by_start, rows_by_end), strict=True):
            for owes, row, weight in zip(owing, rows(by_end), rows(weights), strict=True):
                # Rows by start are spread over the table: each is read and written once.
                held = row + owes
                rising = held
                if (held[1:] < held[:-1]).any():
                    rising = scipy.optimize.isotonic_regression(held, weights=weight).x
                row[:] = rising
                np.subtract(held, rising, out=owes)
    # What little is left to do is done exactly: windows are lowered to exact ones that hold them, and each is raised to
    # the largest that it holds.
    np.maximum(by_end, 0, out=by_end)
    _lower_to_exact(by_end, weights, typical)
    _largest_within(by_end)


def _lower_to_exact(by_end: FloatArray, weights: FloatArray, typical: float) -> None:
    """Lower windows, in place, to the least of the more exact windows that hold them, the most exact ones first."""
    heavy = weights > _EXACT * typical
    if not heavy.any():
        return  # Any windows alone may be millions.
    exact = np.full(weights.shape, -np.inf)
    np.log2(weights, out=exact, where=heavy)
    np.floor(exact, out=exact)
    for least in np.unique(exact[np.isfinite(exact)])[::-1]:
        around = _least_around(np.where(exact >= least, by_end, np.inf))
        np.minimum(by_end, around, out=by_end, where=exact < least)


def bend(by_end: FloatArray, weights: FloatArray, rounds: int) -> None:
    """Bring a table, in place, near one where a step adds to every shorter window what it adds to a longer one (k = 1).

    Each such inequality has four windows. They are met in turn, in four sets that share no window, each by a change
    that is small where numbers are exact; a little more than is owed, which is faster. Once no set is owed anything,
    nothing will be moved again.
    """
    steps, give, still = len(by_end), 1 / weights, 0
    for turn in range(4 * min(rounds, _MOVES // by_end.size)):
        moved = False
        # Last steps (the first is 1) and lengths of the longer windows of a set, of which those with fewer steps than
        # their length exist only in part. Rows in turn share no window with other rows.
        for first in range(2 + turn // 2 % 2, steps + 1, 2 * AT_ONCE):
            last_steps = np.arange(first, min(first + 2 * AT_ONCE, steps + 1), 2)
            rows = slice(first - 1, last_steps[-1], 2), slice(first - 2, last_steps[-1] - 1, 2)
            moved |= _bend_rows(
                [by_end[some] for some in rows], [give[some] for some in rows], last_steps, 2 + turn % 2
            )
        still = 0 if moved else still + 1
        if still == 4:
            return


def _bend_rows(counts: Sequence[FloatArray], give: Sequence[FloatArray], last_steps: IntArray, shortest: int) -> bool:
    """Mend the inequalities of windows of every second length from `shortest` (2 or 3) on; whether any did not hold.

    Given are the windows that end with these steps and those that end one step earlier, and how far each may move.
    """
    longest = min(counts[0].shape[1], int(last_steps[-1]))
    lengths = np.arange(shortest, longest + 1, 2)
    whole, short = slice(shortest - 1, longest, 2), slice(shortest - 2, longest - 1, 2)
    # The windows two steps shorter: where those have no steps, they count nothing and cannot change.
    none = 3 - shortest
    shorter = slice(shortest - 3 + 2 * none, longest - 2, 2)
    cells = [
        (counts[at][:, some], give[at][:, some]) for at, some in ((0, whole), (0, short), (1, short), (1, shorter))
    ]
    (whole_counts, room), (late, _), (early, _), (inner, inner_give) = cells
    owed = whole_counts - late - early
    owed[:, none:] += inner
    room = room + cells[1][1] + cells[2][1]
    room[:, none:] += inner_give
    np.maximum(owed, 0, out=owed)
    owed[last_steps[:, None] < lengths] = 0
    if not owed.any():
        return False
    owed *= _RELAXED
    owed /= np.maximum(room, _TINY, out=room)
    for (count, gives), sign in zip(cells[:3], (-1, 1, 1), strict=True):
        count += sign * owed * gives
    inner -= owed[:, none:] * inner_give
    return True


def whole_distinct(by_end: FloatArray, weights: FloatArray, most: IntArray | None = None) -> IntArray:
    """Whole numbers near a table that are the distinct counts of some log: k = 1.

    Let D(a) be what window (a, b) counts beyond (a, b - 1): items seen at b and not before since a. In a log D never
    falls in a, and grows from a to a + 1 by no more than the items whose last occurrence before b was at a, which are
    those of (a, b - 1) less those of (a + 1, b - 1). Conversely, D with both properties for every b is a log: D(a)
    items occur at b for the first time since a. Step by step, D is the nearest such function to what the table still
    wants, so that errors of rounding do not add up. A window's count never falls as its end moves on: to arrive at an
    exact window's count, the windows on the way to it weigh as much.

    Limits that grow with the window keep both properties: the least of what they leave is rising, and from place to
    place it rises by no more than those items.

    Args:
        by_end: the table. The memory of each row becomes that of its whole numbers.
        weights: one over the squared errors of its numbers, used up.
        most: what each window may count at most, no less for a longer one, shape as the table.

    Returns:
        Shape as given, 0 where a row has no windows.
    """
    steps, longest = by_end.shape
    for row in rows_by_start(weights):
        row[:] = np.maximum.accumulate(row[::-1])[::-1]
    found = by_end.view(np.int64)
    before = np.zeros(0, dtype=np.int64)
    for b in range(steps):
        if len(before) == longest:
            before = before[1:]
        held = np.append(before, 0)
        wanted = by_end[b, : len(held)][::-1] - held
        new = scipy.optimize.isotonic_regression(wanted, weights=weights[b, : len(held)][::-1]).x
        new = _within(np.rint(np.maximum(new, 0)).astype(np.int64), held[:-1] - held[1:])
        if most is not None:
            # By first step from the last: the least from each on.
            new = np.minimum(new, np.minimum.accumulate(most[b, : len(held)] - held[::-1])[::-1])
        before = held + new
        found[b, : len(before)] = before[::-1]
        found[b, len(before) :] = 0
    return found


def _within(new: IntArray, most: IntArray) -> IntArray:
    """A function near a rising one that rises, from place to place, by no more than `most`."""
    reach = np.concatenate([[0], np.cumsum(most)])
    below = np.minimum.accumulate(new - reach)
    above = np.maximum.accumulate((new - reach)[::-1])[::-1]
    between = np.minimum.accumulate((below + above) // 2) + reach
    return np.maximum.accumulate(between)


def lower_to_parts(bands: Sequence[Band]) -> None:
    """Lower counts of at least k >= 2, in place, to what the parts of their windows allow.

    An item with k occurrences in a window has i in its first part or k + 1 - i in the rest, so that
    `F_k(whole) <= F_i(part) + F_{k+1-i}(rest)`. Lengths are taken from short to long: the parts are done already.
    Tables that are monotone, and fall in k, stay so.
    """
    by_k = {band.k: band for band in bands}
    starting = {k: by_start(band.values) for k, band in by_k.items()}
    pairs = [(band, i, j) for band in bands if band.k > 1 for i, j in _pairs(sorted(by_k), band.k)]
    for length in range(2, max(band.longest for band in bands) + 1):
        for band, i, j in pairs:
            # Steps of the first part: neither part is longer than the windows that are known.
            least, most = max(1, length - by_k[j].longest), min(length - 1, by_k[i].longest)
            if length > band.longest or least > most:
                continue
            whole = band.values[length - 1 :, length - 1]
            first = starting[i][: len(whole), least - 1 : most]
            rest = by_k[j].values[length - 1 :, length - most - 1 : length - least][:, ::-1]
            np.minimum(whole, (first + rest).min(axis=1), out=whole)
            starting[band.k][: len(whole), length - 1] = whole


def _pairs(thresholds: Sequence[int], k: int) -> Iterable[tuple[int, int]]:
    """For each threshold of a part, the largest of the rest with `i + j - 1 <= k`."""
    for i in thresholds:
        rest = [j for j in thresholds if i + j - 1 <= k]
        if rest:
            yield i, rest[-1]
