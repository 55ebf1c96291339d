r"""Certified sensitivities at item level, any windows: what one item changes lies below staircases.

Notation: as in `dpwindows.sensitivity`; `a` is a window's first step, `b` its last, `tau(b)` the step of the item's
k-th most recent occurrence at the end of step b (0 where it has fewer than k).

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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpwindows.sensitivity import Thresholds, step_norms


@dataclass(frozen=True)
class Line:
    """A line of a block as it is measured: its weight, and how many windows (a <= b) it holds."""

    weight: int
    length: int


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


def crossed_counters_l1(taps: Sequence[int], lines: Sequence[Line], thresholds: Thresholds, *, formal: bool) -> int:
    """Any windows, one item changed arbitrarily (`formal`) or added or removed: L1 bound of crossed counters.

    Proof. As for `crossed_counters_l2`, with absolute values in place of squares, and weights in place of squared
    weights: L1 norms of lines and thresholds add, and sums of absolute values over i < m are at most those over
    i < n. QED.
    """
    norms = step_norms(taps, _longest(lines), np.abs, formal=formal)
    return len(thresholds) * sum(line.weight * norms[line.length] for line in lines)


def _longest(lines: Sequence[Line]) -> int:
    return max(line.length for line in lines)
