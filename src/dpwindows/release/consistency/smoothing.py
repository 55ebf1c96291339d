"""Smoothed estimates: how much smoothing helps is told by an unbiased estimate of the error, never assumed.

A linear smoother S reads an estimate y = x + n of true counts x. For weights w over several smoothers, with
`d_i = S_i y - y`, the expected squared error of `y + sum w_i d_i` is, up to the known noise of y,

    E |sum w_i d_i|^2 + 2 sum w_i tr(C (S_i - I)),

where C is the covariance of the noise (Stein's identity, which for linear smoothers holds for noise of any law). The
trace is public: it is the mean of `n'(S_i - I)n` over noise that is simulated here, by the same decoder. So the weights
of least estimated error are found from the released numbers alone, and where smoothing would hurt they are near 0.
Counts that smoothing would move far are moved no further than `FURTHEST` standard errors, so that one lively day stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray

# Smoothing may move a number by so many standard errors.
FURTHEST = 2.0
# Half widths of the lines fitted along a series, in steps, and of those fitted across periods, in periods.
_HALF_WIDTHS, _PERIODS = (1, 2, 3, 5, 8, 13, 21, 34), (1, 2, 4, 8)
# Half widths along ends and along starts, as parts of a window's length.
_SHARES = ((0.05, 0.05), (0.1, 0.1), (0.2, 0.2), (0.4, 0.4), (0.8, 0.8), (0.4, 0.05), (0.05, 0.4))
# Rows of windows smoothed at a time, and numbers of simulated noise, which bounds memory.
_ROWS, _AT_ONCE = 64, 1 << 15
# Of a number's noise, at least this part is taken to remain, however well smoothing seems to do.
_LEAST_ERROR = 0.01

# What smoothers make, one after another, of numbers of shape (n,), or of many such at once: shape (m, n).
Smoothers = Callable[[FloatArray], Iterator[FloatArray]]


@dataclass(frozen=True)
class Smoothed:
    """Smoothed numbers and about how large their mean squared error is, number by number."""

    values: FloatArray
    squared_error: FloatArray


def traces(simulated: Callable[[], Iterator[FloatArray]], smoothers: Smoothers, parts: NDArray[np.uint8]) -> FloatArray:
    """What smoothing does to noise: `tr(C (S - I))` over each part of the numbers, for each smoother.

    Args:
        simulated: noise of the covariance C, again and again, each of shape (n,).
        smoothers: what the smoothers make of numbers.
        parts: the number of the part that each number is in, from 0 on without gaps, shape (n,).

    Returns:
        Shape (smoothers, parts).
    """
    found, noises = [], simulated()
    at_once = max(1, _AT_ONCE // len(parts))
    while some := list(islice(noises, at_once)):
        noise = np.array(some)
        del some
        moved = ((noise * (made - noise)) for made in smoothers(noise))
        found.append(np.array([[one[:, part].sum(axis=1) for part in _masks(parts)] for one in moved]))
    return np.asarray(np.concatenate(found, axis=2).mean(axis=2))


def _masks(parts: NDArray[np.uint8]) -> Iterator[NDArray[np.bool_]]:
    """Which numbers are in each part, one part after another."""
    return (parts == part for part in range(int(parts.max()) + 1))


def smooth(
    estimate: FloatArray,
    variance: FloatArray,
    smoothers: Smoothers,
    known: FloatArray,
    parts: NDArray[np.uint8],
) -> Smoothed:
    """The mixture of smoothers of least estimated error, in each part of the numbers by itself.

    Args:
        estimate: numbers with noise, shape (n,).
        variance: the variance of each, shape (n,).
        smoothers: what the smoothers make of numbers.
        known: the `traces` of the noise.
        parts: as for `traces`.
    """
    # In single precision: there may be millions, and they only have to be near.
    moves = [(found - estimate).astype(np.float32) for found in smoothers(estimate)]
    values, squared_error = estimate.copy(), variance.copy()
    for at, part in enumerate(_masks(parts)):
        shifts = np.array([move[part] for move in moves], dtype=np.float64)
        gram, trace = shifts @ shifts.T, known[:, at]
        weights = _least(gram, -trace)
        reach = FURTHEST * np.sqrt(variance[part])
        values[part] += np.clip(weights @ shifts, -reach, reach)
        change = float(weights @ gram @ weights + 2 * weights @ trace) / int(part.sum())
        noise_mean = float(squared_error[part].mean())
        squared_error[part] *= min(1.0, max(_LEAST_ERROR, 1 + change / noise_mean)) if noise_mean > 0 else 1.0
    return Smoothed(values, squared_error)


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

    Args:
        segments: stretches of the series, each smoothed by itself.
        periods: periods of a series of one stretch.
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


def window_smoothers(by_start: Callable[[FloatArray], FloatArray], longest: int) -> Smoothers:
    """Planes, nearly: lines fitted along ends and then along starts, wider for longer windows.

    Args:
        by_start: puts windows in canonical order into rows, one for each start, the shortest window first.
        longest: the most steps of a window.
    """

    def smoothers(windows: FloatArray) -> Iterator[FloatArray]:
        rows = by_start(windows)
        lengths = row_lengths(rows.shape[-2], longest)[::-1]
        inside = np.arange(longest) < lengths[:, None]
        for along_ends, along_starts in _SHARES:
            # For millions of windows every table counts: each takes the place of the one before.
            smoothed = _shared(rows, lengths, along_ends)
            smoothed = turned(smoothed, forth=True)
            smoothed = _shared(smoothed, lengths[::-1], along_starts)
            smoothed = turned(smoothed, forth=False)
            yield smoothed[..., inside]

    return smoothers


def row_lengths(steps: int, longest: int) -> IntArray:
    """How many windows end at each step, shape (steps,)."""
    return np.asarray(np.minimum(np.arange(1, steps + 1), longest))


def turned(rows: FloatArray, *, forth: bool) -> FloatArray:
    """Rows of windows by start as rows by end (`forth`), or back: shape (..., steps, longest), the shortest first."""
    steps, longest = rows.shape[-2:]
    found = np.zeros_like(rows)
    for place in range(min(steps, longest)):
        if forth:
            found[..., place:, place] = rows[..., : steps - place, place]
        else:
            found[..., : steps - place, place] = rows[..., place:, place]
    return found


def _shared(rows: FloatArray, lengths: IntArray, share: float) -> FloatArray:
    places = np.arange(rows.shape[-1])
    half = np.floor(share * (places + 1)).astype(np.int64)
    found = np.empty_like(rows)
    for begin in range(0, len(lengths), _ROWS):
        some = slice(begin, begin + _ROWS)
        last = np.maximum(lengths[some, None] - 1, 0)
        high = np.minimum(places + half, last)
        # Places beyond a row's end are filled with whatever, and are never read.
        low = np.minimum(np.maximum(places - half, 0), high)
        found[..., some, :] = _lines(rows[..., some, :], low, high)
    return found


def _lines(rows: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
    """The value at each place of the line fitted to places low..high of its row, the last axis."""
    places = np.arange(rows.shape[-1], dtype=np.float64)
    level = rows[..., :1]
    total = _within(rows - level, low, high)
    moment = _within((rows - level) * places, low, high)
    count, centre = (high - low + 1).astype(np.float64), (high + low) / 2
    spread = np.maximum(count * (count**2 - 1) / 12, 1e-300)
    slope = np.where(count > 1, (moment - centre * total) / spread, 0.0)
    return np.asarray(level + total / count + slope * (places - centre))


def _within(rows: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
    """Sums of places low..high of each row; the same places of every row, or of every table of rows."""
    sums = np.zeros((*rows.shape[:-1], rows.shape[-1] + 1))
    np.cumsum(rows, axis=-1, out=sums[..., 1:])
    if low.ndim == 1:
        return np.asarray(sums[..., high + 1] - sums[..., low])
    at = np.arange(len(low))[:, None]
    return np.asarray(sums[..., at, high + 1] - sums[..., at, low])
