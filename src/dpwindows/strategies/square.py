"""How the square of starts and ends may be cut into blocks for windows of bounded length.

Windows of at most m steps fill a band of the square. A band clips the rectangles on which one event changes the
answers, so it is not measured itself: starts are cut into blocks, and with each block whole ends are measured. Wide
blocks are met by fewer events twice; narrow ones are smaller problems.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dpwindows.ask.windows import longest_window
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.problem import Criterion, Problem

# Offsets of an event at which its cost is estimated, and lengths of short intervals as parts of the mean length.
_OFFSETS, _PARTS = 9, (0.0, 0.1, 0.3)

# Numbers in one block beyond which everything in one block is not tried.
_LARGEST_SQUARE = 1 << 23


def block_widths(problem: Problem) -> list[int]:
    """Widths worth trying: one, two and four times the longest window, and everything in one block of moderate size.

    A block is a square of numbers to measure, most of them beyond the longest window where it is much wider than that.
    """
    longest, steps = longest_window(problem.window, problem.steps), problem.steps
    narrow = {width for width in (longest, 2 * longest, 4 * longest) if width < steps}
    return sorted(narrow | {steps}) if not narrow or steps**2 <= _LARGEST_SQUARE else sorted(narrow)


def block_variance(along_starts: FloatArray, along_ends: FloatArray, longest: int, criterion: Criterion) -> float:
    """The mean, or the largest, product of a start's and an end's variance over the windows of one block.

    The first end is that of the first start; windows have at most `longest` steps.
    """
    starts = np.arange(len(along_starts))
    until = np.minimum(starts + longest, len(along_ends))
    if criterion == "max":
        return max(float(along_starts[a] * along_ends[a : until[a]].max()) for a in starts)
    totals = np.concatenate([[0.0], np.cumsum(along_ends)])
    return float(along_starts @ (totals[until] - totals[starts]) / (until - starts).sum())


def event_cost(norms: FloatArray, width: int, extent: int, thresholds: tuple[int, ...]) -> float:
    """About `rectangles.any_tensor_event_l2`, for interval norms in floating point; for searches only.

    At a few offsets of the event, for chains of one or two lengths in place of the costliest ones (`_chain_costs`), and
    for intervals shared evenly or not at all where it meets two blocks of starts.
    """
    offsets = np.unique(np.rint(np.linspace(1, min(width, extent), _OFFSETS)))
    met = np.concatenate([offsets, offsets + width])
    starts, ends = np.minimum(met, width), np.maximum(extent - met + 1, 0)

    def costs(intervals: int) -> FloatArray:
        """In the nearer block and in the farther one, for every offset."""
        found = _chain_costs(norms, np.concatenate([starts, ends]), intervals).reshape(2, 2, -1)
        return np.asarray(np.sqrt(found[0] * found[1]))

    total = np.zeros(len(offsets))
    for k in thresholds:
        if width == extent:
            total += costs(k)[0]
        else:
            shares = {1, (k + 1) // 2, k}
            tried = {share: costs(share) for share in shares | {k + 1 - share for share in shares}}
            total += np.max([tried[share][0] + tried[k + 1 - share][1] for share in shares], axis=0)
    return float(total.max())


def _chain_costs(norms: FloatArray, places: FloatArray, intervals: int) -> FloatArray:
    """About the largest `sum A_ij^2` over chains of so many intervals: a few long ones, the others short."""
    few = sorted({min(intervals, 2**i) for i in range(intervals.bit_length() + 1)})
    kinds = [(count, part) for count in few[:-1] for part in _PARTS] + [(intervals, 1.0)]
    long, part = (np.array(column)[:, None] for column in zip(*kinds, strict=True))
    short = intervals - long
    low = part * places / intervals
    high = (places - short * low) / long
    q = partial(np.interp, xp=np.arange(len(norms)), fp=norms)
    of_high, of_low = q(high), q(low)
    next_high, next_low, mixed = 2 * of_high - q(2 * high), 2 * of_low - q(2 * low), of_high + of_low - q(high + low)
    both = np.minimum(short, np.where(long == 1, 2, 1))
    beyond = np.where(short == 0, 2 * q(2 * high) - of_high - q(3 * high), 0)
    found = long * of_high**2 + short * of_low**2
    found += ((long - 1) * next_high**2 + np.maximum(short - both, 0) * next_low**2 + both * mixed**2) / 2
    return np.asarray((found + np.maximum(long - 2, 0) * beyond**2 / 2).max(axis=0))


def stream_widths(longest: int, horizon: int | None) -> list[int]:
    """Widths worth trying in a stream; with a horizon that windows may fill, everything in one block."""
    if horizon is not None and longest >= horizon:
        return [horizon]
    return [width for width in (longest, 2 * longest, 4 * longest) if horizon is None or width <= max(horizon, longest)]


def stream_extent(width: int, longest: int, horizon: int | None) -> int:
    """How many ends a stream measures with a block of starts."""
    whole = width + longest - 1
    return whole if horizon is None else min(whole, horizon)
