r"""Window counts as range counts of a point set: the paper's algorithms rest on this.

A log is given by its histories, how often each item occurs in each step: shape (items, T). The point sets of rolling
windows depend on the block they are for; they are those of `dpwindows.strategies.paper.shapes.FixedWindowTrees`.
"""

from __future__ import annotations

import numpy as np

from dpwindows.theory.hard_instance import Ints


def cumulative_points(histories: Ints, k: int) -> Ints:
    """One point for each item that occurs at least k times: the step of its k-th occurrence; ascending.

    `CountAtLeast_k(1, t) = #{points <= t}`: the inverse of `constructions.range_queries`.
    """
    reached = np.cumsum(histories, axis=1) >= k
    return np.sort(reached.argmax(axis=1)[reached.any(axis=1)] + 1)


def window_points(histories: Ints, k: int) -> tuple[Ints, Ints]:
    """The paper's point sets x and x' of any windows, each of shape (points, 2).

    With n items, `CountAtLeast_k(a, b) = n - D(x) + D(x')`, where D counts the points with first coordinate <= a and
    second >= b: the inverse of `constructions.dominance_queries`.

    Proof. Let `s_1 <= ... <= s_m` be the occurrences of an item, with k zeros before and k times T+1 after. x holds
    the pairs `(s_l + 1, s_(l+k) - 1)`, x' the pairs `(s_(l+1) + 1, s_(l+k) - 1)`, over all l. If (a, b) holds j
    occurrences, `s_l < a and s_(l+k) > b` holds for k - j values of l if j < k and for none otherwise, and
    likewise k - 1 - j for x'. The difference is 1 iff the item is not counted. Pairs whose first coordinate exceeds T
    are in no window's count and are dropped: the paper's x' has such points, outside its own domain. QED.
    """
    steps = histories.shape[1]
    places = np.arange(steps + 2)
    pairs: tuple[list[Ints], list[Ints]] = ([], [])
    for times in np.pad(histories, ((0, 0), (1, 1)), constant_values=k):
        occurs = np.repeat(places, times)
        end = occurs[k:] - 1
        for points, first in zip(pairs, (occurs[:-k] + 1, occurs[1 : len(end) + 1] + 1), strict=True):
            points.append(np.column_stack([first, end])[first <= steps])
    return np.concatenate(pairs[0]), np.concatenate(pairs[1])


def dominating(points: Ints, first: Ints, last: Ints) -> Ints:
    """D: for each window the points with a first coordinate <= its first step and a second >= its last."""
    within = (points[:, 0] <= first[:, None]) & (points[:, 1] >= last[:, None])
    return np.asarray(within.sum(axis=1))
