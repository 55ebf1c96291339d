r"""Certified sensitivities at item level, any windows: what one item changes lies below staircases.

Notation: as in `dpwindows.kernel.bounds.sensitivity`; `a` is a window's first step, `b` its last, `tau(b)` the step of
the item's k-th most recent occurrence at the end of step b (0 where it has fewer than k).

**One item is a staircase.** The log that holds one item alone has `f(a, b) = 1(tau(b) >= a)`. `tau` never decreases
and `tau(b) <= b`, so f is 0 where a > b, and

- *along ends*, from the first to the last, `f(a, .)` is 0 up to some end, at least up to `a - 1`, and 1 from then on;
- *along starts*, from the last to the first, `f(., b)` is 0 down to some start, at least down to `b + 1`, and 1 then.

So every line of the square of starts and ends, read from the side on which a > b, is a **step**: 0 first, 1 from some
position on, and that position lies among the line's last `length` ones, where `length` counts the windows (a <= b) on
the line. A block of the square (an interval of starts times an interval of ends) cuts lines, and cut steps are steps.

**Crossed counters** measure every line of a block, each through the same causal filter, times a whole weight of its
own. Lines are many, but a staircase crosses each only once: T + T steps bound the cost, where independent
counters for T starts bound the same error with no help from their neighbours.

Every function takes the integers in use and returns a bound on the squared L2 norm (`_l2`) or on the L1 norm (`_l1`)
of the change of everything measured, over all neighbours; all arithmetic is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.bounds.sensitivity import Thresholds, step_norms
from dpwindows.kernel.proofs import proves


@dataclass(frozen=True)
class Line:
    """A line of a block as it is measured: its weight, and how many windows (a <= b) it holds."""

    weight: int
    length: int


@proves("any-crossed-item-squares")
def crossed_counters_l2(taps: Sequence[int], lines: Sequence[Line], thresholds: Thresholds, *, formal: bool) -> int:
    """Any windows, one item changed arbitrarily (`formal`) or added or removed: squared L2 bound of crossed counters.

    Proof. *Added or removed.* Up to sign the change on a line of n windows is a step (module docstring) of m <= n
    ones at the end. A causal filter answers 0 before the step and `C(0), ..., C(m-1)` from it on (`C` the running
    sums of the taps), whose squared norm `sum_{i<m} C(i)^2` is largest for m = n. Lines are measured apart, so
    squared norms add, each times its weight squared. The bound is attained, whatever the taps: by the item that
    occurs at least k times in every step, for which m = n on every line.
    *Changed.* The change on a line is the difference of two steps of m and m' ones. If m > m' the filter answers
    `C(i) - C(i - (m - m'))`, i = 0..m-1, with C = 0 before 0 (the later step is the same answer, later): a sum of
    squares over i < m, at most the same sum over i < n. The largest over the difference m - m' = 1..n is taken.
    *Thresholds* are measured apart, and each changes by staircases of its own; squared norms add. QED.
    """
    norms = step_norms(taps, _longest(lines), np.square, formal=formal)
    return len(thresholds) * sum(line.weight**2 * norms[line.length] for line in lines)


@proves("any-crossed-item")
def crossed_counters_l1(taps: Sequence[int], lines: Sequence[Line], thresholds: Thresholds, *, formal: bool) -> int:
    """Any windows, one item changed arbitrarily (`formal`) or added or removed: L1 bound of crossed counters.

    Proof. As for `crossed_counters_l2`, with absolute values in place of squares, and weights in place of squared
    weights: L1 norms of lines and thresholds add, and sums of absolute values over i < m are at most those over
    i < n. QED.
    """
    norms = step_norms(taps, _longest(lines), np.abs, formal=formal)
    return len(thresholds) * sum(line.weight * norms[line.length] for line in lines)


@dataclass(frozen=True)
class CrossedBlock:
    """A block as it is measured: its first start, which is its first end too, and the weight of every line."""

    first: int
    start_weights: tuple[int, ...]
    end_weights: tuple[int, ...]


def lines_of(blocks: Sequence[CrossedBlock]) -> list[Line]:
    """Every line of every block with its weight: the starts' lines of a block and then its ends' lines."""
    found: list[Line] = []
    for block in blocks:
        starts, ends = len(block.start_weights), len(block.end_weights)
        found += [Line(weight, ends - place) for place, weight in enumerate(block.start_weights)]
        found += [Line(weight, min(place + 1, starts)) for place, weight in enumerate(block.end_weights)]
    return found


@proves("any-crossed-period-squares")
def crossed_counters_period_l2(
    taps: Sequence[int], blocks: Sequence[CrossedBlock], span: int, steps: int, thresholds: Thresholds
) -> int:
    """Any windows, one item changed within `span` consecutive steps: squared L2 bound of crossed counters.

    Proof. Let the span be p..p+L-1. A window (a, b) can change only if `a <= p+L-1` and `b >= p`. The line of start a
    of a block with ends F..E is read from its first end: nothing changes if a > p+L-1; otherwise the change is the
    difference of two steps that both lie in the last places, those of the ends `max(a, p)..E`, `n = E - max(a, p) + 1`
    of them (none if E < p). The line of end b of a block with starts F..S is read from its last start: nothing changes
    if b < p; otherwise the two steps lie in the last places, those of the starts `min(b, p+L-1, S)..F`, in number `n =
    min(b, p+L-1, S) - F + 1` (none if p+L-1 < F). The filter answers at most `step_norms(...)[n]` (as in
    `crossed_counters_l2`, where n is the whole line). Lines are measured apart: the squared norms add, times the weight
    squared; so do those of thresholds. The largest sum over all spans within the horizon is returned. Each summand is
    rounded up to a multiple of a power of two where sums would not fit into 64 bits. QED.
    """
    norms = step_norms(taps, _longest_of(blocks), np.square, formal=True)
    return len(thresholds) * _worst_span(norms, blocks, min(span, steps), steps, lambda weight: weight**2)


@proves("any-crossed-period")
def crossed_counters_period_l1(
    taps: Sequence[int], blocks: Sequence[CrossedBlock], span: int, steps: int, thresholds: Thresholds
) -> int:
    """Any windows, one item changed within `span` consecutive steps: L1 bound of crossed counters.

    Proof. As for `crossed_counters_period_l2`, with absolute values in place of squares, and weights in place of
    squared weights. QED.
    """
    norms = step_norms(taps, _longest_of(blocks), np.abs, formal=True)
    return len(thresholds) * _worst_span(norms, blocks, min(span, steps), steps, lambda weight: weight)


def _worst_span(
    norms: Sequence[int], blocks: Sequence[CrossedBlock], span: int, steps: int, cost: Callable[[int], int]
) -> int:
    """The largest sum over lines of `cost(weight) * norms[n]` over all places of the span."""
    shapes: dict[tuple[tuple[int, ...], tuple[int, ...]], NDArray[np.int64]] = {}
    lines = sum(len(block.start_weights) + len(block.end_weights) for block in blocks)
    heaviest = max(cost(weight) for block in blocks for weight in (*block.start_weights, *block.end_weights))
    # Rounded up so that either factor keeps half of the bits, or more where the other needs fewer.
    room, norm_bits, cost_bits = 58 - lines.bit_length(), max(norms).bit_length(), heaviest.bit_length()
    shift = max(0, norm_bits - max(room // 2, room - cost_bits))
    rest = max(0, cost_bits - (room - norm_bits + shift))
    coarse = np.array([-(-norm >> shift) for norm in norms], dtype=np.int64)
    totals = np.zeros(steps, dtype=np.int64)
    for block in blocks:
        shape = block.start_weights, block.end_weights
        if shape not in shapes:
            weights = [np.array([-(-cost(weight) >> rest) for weight in part], dtype=np.int64) for part in shape]
            shapes[shape] = _by_offset(coarse, weights[0], weights[1], span)
        found = shapes[shape]
        # Entry i is for the span that begins i - (span - 1) steps after the block's first step.
        offset = block.first - 1 - (span - 1)
        low, high = max(0, offset), min(steps, offset + len(found))
        totals[low:high] += found[low - offset : high - offset]
    return int(totals[: steps - span + 1].max()) << (shift + rest)


def _by_offset(
    norms: NDArray[np.int64], start_costs: NDArray[np.int64], end_costs: NDArray[np.int64], span: int
) -> NDArray[np.int64]:
    """What one block adds, for spans that begin from `span - 1` steps before the block to its last end."""
    starts, ends = np.arange(len(start_costs)), np.arange(len(end_costs))
    found = np.zeros(len(ends) + span - 1, dtype=np.int64)
    for i, first in enumerate(range(1 - span, len(ends))):
        last = first + span - 1
        by_start = np.where(starts <= last, len(ends) - np.maximum(starts, first), 0)
        by_end = np.where(ends >= first, np.minimum(np.minimum(ends, last), len(starts) - 1) + 1, 0)
        found[i] = (start_costs * norms[by_start]).sum() + (end_costs * norms[by_end]).sum()
    return found


def _longest(lines: Sequence[Line]) -> int:
    return max(line.length for line in lines)


def _longest_of(blocks: Sequence[CrossedBlock]) -> int:
    return max(len(block.end_weights) for block in blocks)
