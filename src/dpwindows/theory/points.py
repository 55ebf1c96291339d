r"""Window counts as range counts of a point set: the paper's algorithms rest on this.

A log is given by its rows, integer arrays (items, steps, counts) with steps 1..T. The point sets of rolling windows
depend on the block they are for; they are those of `dpwindows.strategies.paper.shapes.FixedWindowTrees`.
"""

from __future__ import annotations

import numpy as np

from dpwindows.theory.hard_instance import Ints, at_least


def occurrences(items: Ints, steps: Ints, counts: Ints) -> list[Ints]:
    """The steps of each item's occurrences, ascending, one array an item; a count of c is c occurrences."""
    order = np.lexsort((steps, items))
    each = np.repeat(order, counts[order])
    _, starts = np.unique(items[each], return_index=True)
    return np.split(steps[each], starts[1:]) if len(each) else []


def cumulative_points(items: Ints, steps: Ints, counts: Ints, k: int) -> Ints:
    """One point for each item that occurs at least k times: the step of its k-th occurrence; ascending.

    `CountAtLeast_k(1, t) = #{points <= t}`: the inverse of `constructions.range_queries`.
    """
    at_least("k", k, 1)
    return np.sort(np.array([own[k - 1] for own in occurrences(items, steps, counts) if len(own) >= k], dtype=np.int64))


def window_points(items: Ints, steps: Ints, counts: Ints, k: int, horizon: int) -> tuple[Ints, Ints]:
    """The paper's point sets x and x' of any windows, each of shape (points, 2).

    With `n` the number of items that occur, `CountAtLeast_k(a, b) = n - D(x) + D(x')`, where D counts the points with
    first coordinate <= a and second >= b: the inverse of `constructions.dominance_queries`.

    Proof. Let `s_1 <= ... <= s_m` be the occurrences of an item, with k zeros before and k times T+1 after. x holds
    the pairs `(s_l + 1, s_(l+k) - 1)`, x' the pairs `(s_(l+1) + 1, s_(l+k) - 1)`, over all l. If (a, b) holds j
    occurrences, `s_l < a and s_(l+k) > b` holds for k - j values of l if j < k and for none otherwise, and
    likewise k - 1 - j for x'. The difference is 1 iff the item is not counted. Pairs whose first coordinate exceeds T
    are in no window's count and are dropped: the paper's x' has such points, outside its own domain. QED.
    """
    at_least("k", k, 1)
    x, other = [np.zeros((0, 2), np.int64)], [np.zeros((0, 2), np.int64)]
    for own in occurrences(items, steps, counts):
        padded = np.concatenate([np.zeros(k, np.int64), own, np.full(k, horizon + 1)])
        end = padded[k:] - 1
        x.append(np.column_stack([padded[:-k] + 1, end]))
        other.append(np.column_stack([padded[1 : len(end) + 1] + 1, end]))
    return _inside(np.concatenate(x), horizon), _inside(np.concatenate(other), horizon)


def _inside(pairs: Ints, horizon: int) -> Ints:
    return pairs[pairs[:, 0] <= horizon]


def dominating(points: Ints, first: Ints, last: Ints) -> Ints:
    """D: for each window the points with a first coordinate <= its first step and a second >= its last."""
    within = (points[:, 0] <= first[:, None]) & (points[:, 1] >= last[:, None])
    return np.asarray(within.sum(axis=1))
