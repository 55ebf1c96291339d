"""Certified sensitivity of rolling counts of several lengths that are measured by one filter on all of them."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

import numpy as np
from flint import fmpz_poly
from numpy.typing import NDArray

from dpwindows.kernel.proofs import proves

Objects = NDArray[np.object_]


@proves("rolling-together-event")
@lru_cache(maxsize=64)
def rolling_together_event_l2(taps: tuple[int, ...], lengths: tuple[int, ...]) -> int:
    """At least 1 in rolling windows of several lengths, one occurrence added or removed, or an item within one step.

    Args:
        taps: the entries of the square matrices `M_0`, `M_1`, ... of a filter `y_t = sum_j M_j x_{t-j}`, row by row.
        lengths: of the windows; `x_t` holds one count for each.

    Returns:
        The largest squared L2 norm of a change of `y`, exact on an unbounded horizon.

    Proof. Of one item the occurrences at one step t change. Where it occurs there before and after the change, no
    count of at least 1 does. Otherwise call the log with an occurrence at t the larger one; let the item's previous
    occurrence be at t - p and its next at t + q. The window of length W that ends at t + i holds t for 0 <= i < W. In
    the smaller log the item is in it as well if t - p >= t + i - W + 1, that is i < W - p, or if t + q <= t + i, that
    is i >= q. So the count of length W differs, by 1 and with the sign of the change, for i in
    `I_W = [max(0, W - p), min(W, q))` and nowhere else, for all W with the same p and q. That windows are cut at step
    1 changes nothing: the item has no occurrence before it. Values of p or q above the longest W, or none, give the
    intervals of p or q equal to it: so p and q in 1..max W are all.
    On an unbounded horizon, with `g_i` the change of `x_{t+i}`, the squared norm of `sum_j M_j g_{i-j}` over all i is
    `sum_{U,V} sum_{i in I_U, j in I_V} R_UV[j - i]` with `R_UV[m] = sum_n <M_{n+m} e_U, M_n e_V>`. A finite horizon
    leaves out rows of y, which lowers norms. With D the second antiderivative of R,
    `D[m+1] - 2 D[m] + D[m-1] = R[m]`, the inner sum over `[a, b) x [c, d)` telescopes to
    `D[d-a] + D[c-b] - D[c-a] - D[d-b]`, and to 0 where an interval is empty. The maximum is taken over all p and q, in
    whole numbers of any size. QED.
    """
    lanes, longest = len(lengths), max(lengths)
    matrices = np.array(taps, dtype=object).reshape(-1, lanes, lanes)
    p, q = np.meshgrid(np.arange(1, longest + 1), np.arange(1, longest + 1), indexing="ij")
    intervals = [(np.maximum(0, length - p), np.minimum(length, q)) for length in lengths]
    total: Objects = np.zeros(p.shape, dtype=object)
    for u, (a, b) in enumerate(intervals):
        for v, (c, d) in enumerate(intervals[: u + 1]):
            # Pairs (u, v) and (v, u) sum to the same.
            sums = _antiderivative(matrices[:, :, u], matrices[:, :, v], longest)
            of_pair = sums[d - a + longest] + sums[c - b + longest] - sums[c - a + longest] - sums[d - b + longest]
            total += np.where((a < b) & (c < d), of_pair * (1 if u == v else 2), 0)
    return int(total.max())


def _antiderivative(one: Objects, other: Objects, longest: int) -> Objects:
    """D from -longest to longest, where `R[m] = sum_n <one_{n+m}, other_n>` for arrays of shape (taps, rows)."""
    count = len(one)
    # Coefficient count - 1 + m of the product of one with the other reversed is R[m].
    products = [
        fmpz_poly([int(tap) for tap in one[:, row]]) * fmpz_poly([int(tap) for tap in other[::-1, row]])
        for row in range(one.shape[1])
    ]
    lags = [
        sum(int(product[count - 1 + m]) for product in products) if abs(m) < count else 0
        for m in range(-longest, longest)
    ]
    return np.array([0, *accumulate(accumulate(lags))], dtype=object)
