"""How the square of starts and ends may be cut into blocks for windows of bounded length.

Windows of at most m steps fill a band of the square. A band clips the rectangles on which one event changes the
answers, so it is not measured itself: starts are cut into blocks, and with each block whole ends are measured. Wide
blocks are met by fewer events twice; narrow ones are smaller problems.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpwindows.ask.windows import longest_window
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
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
    places = _places(width, extent)
    one_block = width == extent
    shares = {k: {k} if one_block else {1, (k + 1) // 2, k} for k in thresholds}
    others = {k + 1 - share for k, among in shares.items() for share in among if not one_block}
    counts = sorted(others.union(*shares.values()))
    found = dict(zip(counts, _chain_costs(norms, places, tuple(counts)), strict=True))
    # Starts times ends, in the nearer block and in the farther one, for every offset.
    costs = {count: np.sqrt(along[0] * along[1]) for count, along in found.items()}
    total = np.zeros(places.shape[2])
    for k in thresholds:
        if one_block:
            total += costs[k][0]
        else:
            total += np.max([costs[share][0] + costs[k + 1 - share][1] for share in shares[k]], axis=0)
    return float(total.max())


@lru_cache(maxsize=64)
def _places(width: int, extent: int) -> FloatArray:
    """Of starts and of ends, in the block nearer to the event and in the farther one, for every offset of the event.

    Shape (2, blocks, offsets); the farther block is there where it is not the same.
    """
    offsets = np.unique(np.rint(np.linspace(1, min(width, extent), _OFFSETS)))
    met = np.stack([offsets] if width == extent else [offsets, offsets + width])
    return np.stack([np.minimum(met, width), np.maximum(extent - met + 1, 0)])


def _chain_costs(norms: FloatArray, places: FloatArray, counts: tuple[int, ...]) -> FloatArray:
    """About the largest `sum A_ij^2` over chains of so many intervals: a few long ones, the others short.

    For every count of intervals, shape (counts, *places.shape).
    """
    intervals, long, part, first = _kinds(counts)
    across = places.reshape(1, -1)
    short = intervals - long
    low = part * across / intervals
    high = (across - short * low) / long
    lengths = np.stack([high, low, 2 * high, 2 * low, high + low, 3 * high])
    of_high, of_low, of_twice, of_low_twice, of_both, of_thrice = np.interp(lengths, np.arange(len(norms)), norms)
    next_high, next_low, mixed = 2 * of_high - of_twice, 2 * of_low - of_low_twice, of_high + of_low - of_both
    both = np.minimum(short, np.where(long == 1, 2, 1))
    beyond = np.where(short == 0, 2 * of_twice - of_high - of_thrice, 0)
    found = long * of_high**2 + short * of_low**2
    found += ((long - 1) * next_high**2 + np.maximum(short - both, 0) * next_low**2 + both * mixed**2) / 2
    found += np.maximum(long - 2, 0) * beyond**2 / 2
    return np.asarray(np.maximum.reduceat(found, first)).reshape(len(counts), *places.shape)


@lru_cache(maxsize=64)
def _kinds(counts: tuple[int, ...]) -> tuple[IntArray, IntArray, FloatArray, list[int]]:
    """The chains tried: their intervals, how many are long, what part the short ones have, and where counts begin."""
    kinds: list[tuple[int, int, float]] = []
    first = []
    for count in counts:
        first.append(len(kinds))
        few = sorted({min(count, 2**i) for i in range(count.bit_length() + 1)})
        kinds += [(count, long, part) for long in few[:-1] for part in _PARTS] + [(count, count, 1.0)]
    intervals, of_these, parts = (np.array(column)[:, None] for column in zip(*kinds, strict=True))
    return intervals, of_these, parts, first


def stream_widths(longest: int, horizon: int | None) -> list[int]:
    """Widths worth trying in a stream; with a horizon that windows may fill, everything in one block."""
    if horizon is not None and longest >= horizon:
        return [horizon]
    return [width for width in (longest, 2 * longest, 4 * longest) if horizon is None or width <= max(horizon, longest)]


def stream_extent(width: int, longest: int, horizon: int | None) -> int:
    """How many ends a stream measures with a block of starts."""
    whole = width + longest - 1
    return whole if horizon is None else min(whole, horizon)
