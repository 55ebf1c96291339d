"""How the square of starts and ends may be cut into blocks for windows of bounded length.

Windows of at most m steps fill a band of the square. The band is not measured itself, for it clips the rectangles that
one event changes: starts are cut into blocks, and with each block all of its ends are measured. Fewer events meet two
wide blocks; narrow blocks are smaller problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

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


def event_cost(norms: FloatArray, places: int, thresholds: tuple[int, ...]) -> float:
    """About `rectangles.any_nested_event_l2`, for interval norms in floating point; for searches only.

    At a few places of the event, for chains of one or two lengths in place of the costliest ones (`_chain_costs`).
    """
    counts = tuple(sorted(set(thresholds)))
    chains = dict(zip(counts, _chain_costs(norms, places, counts), strict=True))
    # Starts times ends, for every place of the event.
    return float(np.sum([np.sqrt(chains[k][0] * chains[k][1]) for k in thresholds], axis=0).max())


@lru_cache(maxsize=64)
def _places(places: int) -> FloatArray:
    """The numbers of starts and of ends that an event meets, at a few of its places: shape (2, offsets)."""
    offsets = np.unique(np.rint(np.linspace(1, places, _OFFSETS)))
    return np.stack([offsets, places - offsets + 1])


def _chain_costs(norms: FloatArray, places: int, counts: tuple[int, ...]) -> FloatArray:
    """About the largest `sum A_ij^2` over chains of some numbers of intervals: a few long ones, the others short.

    For every count of intervals, in the places of `_places`: shape (counts, 2, offsets).
    """
    chains = _chains(places, counts)
    of_high, of_low, of_twice, of_low_twice, of_both, of_thrice = np.interp(
        chains.lengths, np.arange(len(norms)), norms
    )
    next_high, next_low, mixed = 2 * of_high - of_twice, 2 * of_low - of_low_twice, of_high + of_low - of_both
    beyond = chains.all_long * (2 * of_twice - of_high - of_thrice)
    long, short, both, next_long, next_short, third_long = chains.times
    cost = long * of_high**2 + short * of_low**2
    cost += (next_long * next_high**2 + next_short * next_low**2 + both * mixed**2) / 2
    cost += third_long * beyond**2 / 2
    return np.asarray(np.maximum.reduceat(cost, chains.first)).reshape(len(counts), *_places(places).shape)


@dataclass(frozen=True)
class _Chains:
    """The chains tried for events at every place of `_places`: what does not depend on the norms of intervals.

    Attributes:
        lengths: whose norms are read: of a long interval, of a short one, of two long, of two short, of one of either
            and of three long ones, shape (6, chains, places).
        times: how often each of the terms of `_chain_costs` is taken, shape (6, chains, 1).
        all_long: 1 for chains without short intervals, else 0.
        first: where the chains of each count begin.
    """

    lengths: FloatArray
    times: FloatArray
    all_long: FloatArray
    first: list[int]


@lru_cache(maxsize=64)
def _chains(places: int, counts: tuple[int, ...]) -> _Chains:
    kinds: list[tuple[int, int, float]] = []
    first = []
    for count in counts:
        first.append(len(kinds))
        few = sorted({min(count, 2**i) for i in range(count.bit_length() + 1)})
        kinds += [(count, long, part) for long in few[:-1] for part in _PARTS] + [(count, count, 1.0)]
    # How many intervals, how many of these are long, and what part of the mean length the short ones have.
    intervals, long, part = (np.array(column)[:, None] for column in zip(*kinds, strict=True))
    across = _places(places).reshape(1, -1)
    short = intervals - long
    low = part * across / intervals
    high = (across - short * low) / long
    both = np.minimum(short, np.where(long == 1, 2, 1))
    times = [long, short, both, long - 1, np.maximum(short - both, 0), np.maximum(long - 2, 0)]
    return _Chains(
        lengths=np.stack([high, low, 2 * high, 2 * low, high + low, 3 * high]),
        times=np.array(times, dtype=np.float64),
        all_long=(short == 0).astype(np.float64),
        first=first,
    )


def stream_widths(longest: int, horizon: int | None) -> list[int]:
    """Widths worth trying in a stream; with a horizon that windows may fill, everything in one block."""
    if horizon is not None and longest >= horizon:
        return [horizon]
    return [width for width in (longest, 2 * longest, 4 * longest) if horizon is None or width <= max(horizon, longest)]


def stream_extent(width: int, longest: int, horizon: int | None) -> int:
    """How many ends a stream measures with a block of starts."""
    whole = width + longest - 1
    return whole if horizon is None else min(whole, horizon)
