r"""The least error of rolling counts where one item may change within L consecutive steps: from random changes of it.

`dual` bounds the error by any weights on changes that occur. Here these are the differences `g = f - f'` of what an
item is counted for (0 or 1 at each end of a window) in two logs that differ in L consecutive steps.

*They occur.* Let the item occur nowhere before the L steps. Within them let it occur at the steps of any set A in one
log and of any set A' in the other: f is 1 at those ends where A has a step among the last W, and f' is so for A'. That
is over W - 1 steps after the L. If it also occurs, in both logs, at a step n after the L, both count it for W steps
from there on, and g is 0 from n on. Two such differences are the same where only the L steps are elsewhere.

*Where the range ends.* What is left of g where the L steps, or ends after them, lie beyond the range occurs too: both
logs without what lies beyond. **Before its start that is false**, as nothing comes before step 1. So on short ranges
only those shifts have weights that begin in the range. On long ones g may be cut where it is looked at from step W on,
since the windows that end there lie in the range; the first W - 1 steps are then a mechanism of their own, for
cumulative counts.

For k > 1 the same changes occur with k occurrences at each step of A and A'.

*What is drawn.* The two logs take turns to count the item: one alone for a while, both for a while or not at all, then
the other one alone, in times that are as short as runs of W steps allow, or longer by chance. A and A' are what is
needed for this within the L steps. Weights are improved by multiplicative updates under stationary noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.strategies.search.dual import Shifts, circulant_bound, dual_bound, improve_weights
from dpwindows.strategies.search.spectrum import pair_counts

# The longest windows and periods that are looked at; the numbers in all changes that are drawn, and the most changes.
_LONGEST_WINDOW, LONGEST_PERIOD = 2048, 400
_NUMBERS, _MOST = 400_000, 6000
# How often weights are improved, and the longest range on which every shift has a weight of its own.
_ROUNDS, _DENSE = 150, 400
# Chances that both count for a while, and that the same log counts twice; mean times beyond what is needed.
_BOTH, _AGAIN, _LONGER = (0.1, 0.5, 0.9), (0.05, 0.3), (0.0, 0.05, 0.2, 0.6, 1.0)


def period_limit(steps: int, length: int, period: int, cumulative: Callable[[int], float]) -> float:
    """A lower bound on the rms error of rolling counts of `length` steps, per unit of Gaussian noise.

    One item changes within `period` steps. (What it can change within fewer it can change within these: long periods
    are cut.) `cumulative` bounds the error of cumulative counts, given the steps. 0 where windows are too long.
    """
    if length > _LONGEST_WINDOW:
        return 0.0
    drawn = changes(length, min(period, LONGEST_PERIOD))
    pairs = pair_counts(drawn)
    weights, _ = improve_weights(pairs, np.ones(len(drawn)), _ROUNDS)
    pairs = weights @ pairs
    if steps <= _DENSE:
        shifts = Shifts.of(steps, ((drawn.T * weights) @ drawn)[None])
        begins_inside = np.arange(1 - len(pairs), steps) >= 0
        return dual_bound(shifts, shifts.spread(np.ones(1)) * begins_inside)
    first, free = length - 1, steps - length + 1
    before = first * cumulative(first) ** 2 if first else 0.0
    return float(np.sqrt((free * circulant_bound(pairs, free, free) ** 2 + before) / steps))


def changes(length: int, period: int) -> FloatArray:
    """Changes g of rolling counts within a period, shape (changes, period + length - 1); see the module."""
    places = period + length - 1
    many = max(2, min(_MOST, _NUMBERS // places))
    draw = np.random.default_rng(0)
    turns = min(places, 2 + 2 * places // length)
    least, shape = max(1, length - period + 1), (many, turns)
    both = np.where(draw.random(shape) < draw.choice(_BOTH, (many, 1)), draw.integers(least, length + 1, shape), 0)
    before = np.pad(both, ((0, 0), (1, 0)))[:, :-1]
    longer = 1 / (1 + min(length, period) * draw.choice(_LONGER, (many, 1)))
    alone = np.maximum(1, length - before - both) + draw.geometric(np.broadcast_to(longer, shape)) - 1
    other = (both > 0) | (draw.random(shape) > draw.choice(_AGAIN, (many, 1)))
    turn = np.cumsum(other, axis=1) % 2
    kinds = np.stack([turn, np.full(shape, 2)], axis=2).reshape(many, -1)
    at = _filled(np.stack([alone, both], axis=2).reshape(many, -1), places)
    kind = np.take_along_axis(kinds, at, axis=1)
    one, two = (_count_within((kind == who) | (kind == 2), length, period) for who in (0, 1))
    until = draw.integers(period, 2 * places, many)
    drawn = (one.astype(np.float64) - two) * (np.arange(places) < until[:, None])
    ones = np.tri(places)[np.unique(np.geomspace(1, places, 30).astype(np.int64)) - 1]
    return np.unique(np.concatenate([drawn, ones]), axis=0)


def _filled(lengths: NDArray[np.int64], places: int) -> NDArray[np.int64]:
    """The number of the piece that every place is in, for consecutive pieces of these lengths: shape (rows, places)."""
    ends = np.minimum(np.cumsum(lengths, axis=1), places)
    passed = np.zeros((len(ends), places + 1), dtype=np.int64)
    np.add.at(passed, (np.arange(len(ends))[:, None], ends), 1)
    return np.asarray(np.minimum(np.cumsum(passed, axis=1)[:, :-1], lengths.shape[1] - 1))


def _count_within(wanted: NDArray[np.bool_], length: int, period: int) -> NDArray[np.bool_]:
    """The counts of an item that occurs at all steps of the period where it counts at wanted ends only."""
    occurs = _sums(wanted, length)[:, :period] == length
    return _sums(np.pad(occurs, ((0, 0), (length - 1, length - 1))), length) > 0


def _sums(values: NDArray[np.bool_], length: int) -> NDArray[np.int64]:
    """Sums over `length` places in a row."""
    sums = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1, dtype=np.int64)
    return np.asarray(sums[:, length:] - sums[:, :-length])
