"""Smoothed estimates: an unbiased estimate of the error decides how much to smooth.

A linear smoother S reads an estimate y = x + n of true counts x. For weights w over several smoothers, with
`d_i = S_i y - y`, the expected squared error of `y + sum w_i d_i` is, up to the known noise of y,

    E |sum w_i d_i|^2 + 2 sum w_i tr(C (S_i - I)),

where C is the covariance of the noise (Stein's identity, which for linear smoothers holds for noise of any law). The
trace is public: it is the mean of `n'(S_i - I)n` over noise that is simulated here, by the same decoder. So the weights
of least estimated error are found from the released numbers alone, and where smoothing would hurt they are near 0.
Counts that smoothing would move far are moved no further than `FURTHEST` standard errors, so that one lively day stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice

import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.release.consistency.rows import AT_ONCE, in_order, row_lengths, rows_by_start_at

# Smoothing may move a number by this many standard errors.
FURTHEST = 2.0
# Half widths of the lines fitted along a series, in steps, and of those fitted across periods, in periods.
_HALF_WIDTHS, _PERIODS = (1, 2, 3, 5, 8, 13, 21, 34), (1, 2, 4, 8)
# Half widths along ends and along starts, as parts of a window's length.
_SHARES = ((0.05, 0.05), (0.1, 0.1), (0.2, 0.2), (0.4, 0.4), (0.8, 0.8), (0.4, 0.05), (0.05, 0.4))
# Numbers that are worked on at a time where there may be millions, which bounds memory.
_AT_ONCE = 1 << 15
# Of a number's squared error, at least this part is taken to remain, however well smoothing seems to do.
_LEAST_ERROR = 0.25

# What smoothers make, one after another, of numbers of shape (n,), or of many such at once: shape (m, n).
Smoothers = Callable[[FloatArray], Iterator[FloatArray]]


@dataclass(frozen=True)
class Smoothed:
    """Smoothed numbers and about how large their mean squared error is, number by number."""

    values: FloatArray
    squared_error: FloatArray


def traces(simulated: Callable[[], Iterator[FloatArray]], smoothers: Smoothers, parts: NDArray[np.uint8]) -> FloatArray:
    """What smoothing does to noise: `tr(C (S - I))` over each part of the numbers; shape (smoothers, parts).

    `simulated` gives noise of the covariance C, again and again, each of shape (n,). `parts` are the numbers of the
    parts that these are in, from 0 on without gaps, shape (n,).
    """
    found, noises = [], simulated()
    at_once = max(1, _AT_ONCE // len(parts))
    while len(noise := np.array(list(islice(noises, at_once)))):
        sums = []
        for moved in smoothers(noise):
            moved -= noise
            moved *= noise
            sums.append([moved[:, part].sum(axis=1) for part in _masks(parts)])
            del moved
        found.append(np.array(sums))
        del noise
    return np.asarray(np.concatenate(found, axis=2).mean(axis=2))


def _masks(parts: NDArray[np.uint8]) -> Iterator[NDArray[np.bool_]]:
    """Which numbers are in each part, one part after another."""
    return (parts == part for part in range(int(parts.max()) + 1))


def smooth(
    estimate: FloatArray,
    variances: Callable[[], FloatArray],
    smoothers: Smoothers,
    known: FloatArray,
    parts: NDArray[np.uint8],
) -> Smoothed:
    """The mixture of smoothers of least estimated error, in each part of the numbers by itself.

    The numbers with noise, and their variances when they are asked for, have the shape (n,). `known` are the `traces`
    of the noise, `parts` as there.
    """
    # In single precision: there may be millions, and they only have to be near.
    moves = np.empty((len(known), len(estimate)), dtype=np.float32)
    rows = iter(moves)
    for found in smoothers(estimate):
        np.subtract(found, estimate, out=next(rows), casting="same_kind")
        del found
    values, squared_error = estimate.copy(), variances()
    for at, part in enumerate(_masks(parts)):
        some = np.array_split(np.flatnonzero(part), -(-int(part.sum()) // _AT_ONCE))
        gram, trace = reduce(np.add, (own @ own.T for own in _doubles(moves, some))), known[:, at]
        weights = _least(gram, -trace)
        change = float(weights @ gram @ weights + 2 * weights @ trace) / sum(map(len, some))
        noise_mean = float(squared_error[part].mean())
        for places, own in zip(some, _doubles(moves, some), strict=True):
            reach = FURTHEST * np.sqrt(squared_error[places])
            values[places] += np.clip(weights @ own, -reach, reach)
        squared_error[part] *= min(1.0, max(_LEAST_ERROR, 1 + change / noise_mean)) if noise_mean > 0 else 1.0
    return Smoothed(values, squared_error)


def _doubles(moves: NDArray[np.float32], some: Iterable[IntArray]) -> Iterator[FloatArray]:
    """Moves of some numbers at a time, in double precision."""
    return (moves[:, places].astype(np.float64) for places in some)


def _least(gram: FloatArray, gain: FloatArray) -> FloatArray:
    """Weights w >= 0 with sum at most 1 that minimise `w'Gw - 2 w'g`."""
    size = float(np.trace(gram))
    if size <= 0:
        return np.zeros(len(gain))
    lower = np.linalg.cholesky(gram + 1e-6 * size * np.eye(len(gain)))
    target = np.linalg.solve(lower, gain)
    weights = np.asarray(scipy.optimize.nnls(lower.T, target)[0])
    if weights.sum() > 1:
        # A large price for weights that do not sum to 1.
        price = 1e3 * size**0.5
        weights = np.asarray(
            scipy.optimize.nnls(np.vstack([lower.T, np.full(len(gain), price)]), np.append(target, price))[0]
        )
    return weights


def series_smoothers(segments: Sequence[slice], periods: Sequence[int]) -> Smoothers:
    """Lines fitted around each number of a series, and around those of the same phase of each period.

    Each of the `segments` is smoothed by itself; periods are of a series of one.
    """

    def smoothers(series: FloatArray) -> Iterator[FloatArray]:
        for half in _HALF_WIDTHS:
            yield np.concatenate([_along(series[..., segment], half) for segment in segments], axis=-1)
        for period in periods if len(segments) == 1 else ():
            for half in _PERIODS:
                found = np.empty_like(series)
                for phase in range(min(period, series.shape[-1])):
                    found[..., phase::period] = _along(series[..., phase::period], half)
                yield found

    return smoothers


def _along(series: FloatArray, half: int) -> FloatArray:
    places = np.arange(series.shape[-1])
    low, high = np.maximum(places - half, 0), np.minimum(places + half, len(places) - 1)
    return _lines(series, low, high)


def window_smoothers(steps: int, longest: int) -> Smoothers:
    """Planes, nearly: lines fitted along ends and then along starts, wider for longer windows.

    The windows are any of at most `longest` steps, in canonical order.
    """
    by_end_lengths = row_lengths(steps, longest)
    by_start_lengths = by_end_lengths[::-1]
    places = in_order(steps, longest)

    def by_starts(table: FloatArray) -> Iterator[tuple[slice, NDArray[np.bool_], FloatArray]]:
        """Some starts at a time: where their windows stand in canonical order, which places are windows, the places."""
        for begin in range(0, steps, AT_ONCE):
            lengths = by_start_lengths[begin : begin + AT_ONCE]
            inside = np.arange(int(lengths[0])) < lengths[:, None]
            some = slice(places[begin].start, places[begin + len(lengths) - 1].stop)
            yield some, inside, rows_by_start_at(table, begin, *inside.shape)

    def in_windows(table: FloatArray, windows: FloatArray) -> FloatArray:
        found = np.empty_like(windows)
        for some, inside, rows in by_starts(table):
            found[..., some] = rows[..., inside]
        return found

    def smoothers(windows: FloatArray) -> Iterator[FloatArray]:
        # One table for all, and none of what was made of it before: for millions of windows every table counts.
        table = np.zeros((*windows.shape[:-1], steps + AT_ONCE, longest))
        for along_ends, along_starts in _SHARES:
            for some, inside, into in by_starts(table):
                rows = np.zeros(into.shape)
                rows[..., inside] = windows[..., some]
                into[:] = _smoothed_rows(rows, inside.sum(axis=1), along_ends)
            for begin in range(0, steps, AT_ONCE):
                lengths = by_end_lengths[begin : begin + AT_ONCE]
                rows = table[..., begin : begin + len(lengths), : int(lengths[-1])]
                rows[:] = _smoothed_rows(rows, lengths, along_starts)
            yield in_windows(table, windows)

    return smoothers


def _smoothed_rows(rows: FloatArray, lengths: IntArray, share: float) -> FloatArray:
    """Lines fitted along rows of `lengths` numbers each, wider from place to place; beyond them stands whatever."""
    places = np.arange(rows.shape[-1])
    half = np.floor(share * (places + 1)).astype(np.int64)
    return _lines(rows, np.maximum(places - half, 0), np.minimum(places + half, len(places) - 1), lengths)


def _lines(rows: FloatArray, low: IntArray, high: IntArray, lengths: IntArray | None = None) -> FloatArray:
    """The value at each place of the line fitted to places low..high of its row, the last axis.

    Where `lengths` are given, rows end after these places, and so do the stretches that lines are fitted to.
    """
    places = np.arange(rows.shape[-1], dtype=np.float64)
    level = rows[..., :1]
    moved = rows - level
    first, last = low, high
    if lengths is not None:
        # Numbers beyond a row's end are 0, so that running sums stay as they are there.
        moved[..., places >= lengths[:, None]] = 0.0
        last = np.minimum(high, lengths[:, None] - 1)
        first = np.minimum(low, last)
    total = _within(moved, low, high)
    moved *= places
    moment = _within(moved, low, high)
    count, centre = (last - first + 1).astype(np.float64), (last + first) / 2
    spread = np.maximum(count * (count**2 - 1) / 12, 1e-300)
    slope = np.where(count > 1, (moment - centre * total) / spread, 0.0)
    return np.asarray(level + total / count + slope * (places - centre))


def _within(rows: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
    """Sums of places low..high of each row; the same places of every row, or of every table of rows."""
    sums = np.zeros((*rows.shape[:-1], rows.shape[-1] + 1))
    np.cumsum(rows, axis=-1, out=sums[..., 1:])
    return np.asarray(sums.take(high + 1, axis=-1) - sums.take(low, axis=-1))
