"""Lines of windows: which of them a span meets, window by window, and crossed blocks of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpwindows.kernel.families.crossed import CrossedFilters, crossed_lines
from dpwindows.kernel.families.lines import filter_costs, lines_bound
from dpwindows.kernel.families.starts import Block

Crossing = tuple[Block, CrossedFilters]

Window = tuple[int, int]


def crossing(first: int, start_weights: tuple[int, ...], end_weights: tuple[int, ...]) -> Crossing:
    """A block of windows with a line for each start and each end."""
    return Block(first, len(start_weights), len(end_weights)), CrossedFilters((1,), start_weights, end_weights)


def crossed_bound(
    taps: Sequence[int], blocks: Sequence[Crossing], power: int, *, formal: bool, span: int | None = None
) -> int:
    """The bound of crossed counters for one threshold, where the last block ends at the horizon."""
    last, _ = blocks[-1]
    steps = last.first + last.ends - 1
    costs = filter_costs(taps, max(block.ends for block, _ in blocks), power, formal=formal)
    return lines_bound(crossed_lines(blocks, power, span or steps, steps), costs, 1)


def costliest_span(lines: Sequence[tuple[int, Sequence[Window]]], costs: Sequence[int], span: int, steps: int) -> int:
    """The largest sum over all spans of the range, from the windows themselves: (times, the windows in order)."""
    totals = []
    for p in range(1, steps - span + 2):
        total = 0
        for times, windows in lines:
            met = [a <= p + span - 1 and b >= p for a, b in windows]
            # What a span meets lies at the end of a line.
            assert met == sorted(met)
            total += times * costs[sum(met)]
        totals.append(total)
    return max(totals)


def any_costs(rng: np.random.Generator, most: int) -> list[int]:
    return [0, *np.cumsum(rng.integers(0, 9, size=most)).tolist()]
