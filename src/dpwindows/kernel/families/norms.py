r"""What intervals and steps cost through a causal filter: the norms that many bounds are made of, exact.

Notation: `T` steps, `W` the rolling length, `k` a threshold, `S[u,[a,b]]` the occurrences of item `u` in steps a..b,
`g` the difference of the exact answers of two neighbouring logs. Answers of different items add up, and neighbours
differ in one item only, so `g` is always the difference of two single-item logs.

Bounds are integers: on the squared L2 norm (names ending in `_l2`) or on the L1 norm (`_l1`) of `M g`, over all
neighbours and all thresholds measured together, for the integer matrix `M` in use. All arithmetic is exact, or rounded
upward by a stated margin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

Thresholds = Sequence[int]
# Horizons up to which all O(T^2) interval norms are formed; beyond, what is the most of them is one bound for all.
_EXACT_HORIZON = 4096


def autocorrelation(taps: Sequence[int]) -> list[int]:
    """`r_m = sum_j taps_j taps_{j+m}` for m = 0..len(taps)-1, exact: coefficients of a product of polynomials."""
    whole = [int(tap) for tap in taps]  # NumPy's integers would wrap
    product = flint.fmpz_poly(whole) * flint.fmpz_poly(whole[::-1])
    return [int(product[len(whole) - 1 + distance]) for distance in range(len(whole))]


def has_contracting_signs(taps: Sequence[int]) -> bool:
    """Whether taps have the sign pattern that makes disjoint intervals cost no more together than apart.

    The pattern: `taps_0 > 0 >= taps_j`, `|taps_j|` not increasing for j >= 1, and a positive sum.

    Lemma (signs). Then `r_m <= 0` for every m >= 1 and `r_0 + 2 sum_{m<=n} r_m >= (sum taps)^2 > 0` for every n.
    Proof. `r_m = taps_0 taps_m + sum_{j>=1} taps_j taps_{j+m} <= -taps_0 |taps_m| + |taps_m| sum_{j>=1} |taps_j|`,
    since `|taps_{j+m}| <= |taps_m|`; and `sum_{j>=1} |taps_j| < taps_0`. The full sum over all lags, positive and
    negative, is `(sum taps)^2`; leaving out terms that are <= 0 can only raise it. Nothing depends on how the taps
    were found, rounded or truncated. QED.
    """
    tail = [-tap for tap in taps[1:]]
    ordered = all(first >= second for first, second in pairwise(tail))
    return taps[0] > 0 and ordered and all(tap >= 0 for tap in tail) and sum(taps) > 0


def interval_norms(taps: Sequence[int], longest: int) -> list[int]:
    """`q(n) = ||L 1_[0,n)||^2` for n = 0..longest, `L` the filter on an unbounded horizon; exact.

    `q(n+1) - q(n) = r_0 + 2 sum_{m=1..n} r_m`. For contracting signs (`has_contracting_signs`) these differences
    are positive and do not increase: **q is increasing and concave**, and for a set that is a union of disjoint
    intervals `||L 1||^2 <= sum q(|interval|)`, because the cross terms are sums of `r_m <= 0`. A finite horizon only
    drops rows of `L`, so the same bounds hold there.
    """
    lags = autocorrelation(taps)[:longest]
    rises = list(accumulate([lags[0], *(2 * lag for lag in lags[1:])]))
    rises += [rises[-1]] * (longest - len(rises))
    return [0, *accumulate(rises[:longest])]


def runs_bound(norms: Sequence[int], runs: int, length: int, *, gaps: bool, places: int) -> int:
    """The largest `sum q(n_i)` over at most `runs` disjoint runs in `length` consecutive steps.

    `norms` is q from `interval_norms` of contracting taps: increasing and concave, so for r runs the most even split
    of the largest total is best. The total is `length`, less the r-1 steps between runs where `gaps` are certain, and
    at most `places`.
    """
    best = norms[0]
    for count in range(1, min(runs, length) + 1):
        total = min(length - (count - 1 if gaps else 0), places)
        if total < count:
            break
        size, longer = divmod(total, count)
        best = max(best, longer * norms[size + 1] + (count - longer) * norms[size] if longer else count * norms[size])
    return best


def prefix_sums(taps: Sequence[int], steps: int) -> NDArray[Any]:
    """`C(m) = sum_{j<=m} taps_j` for m = 0..steps-1, shape (steps,): the answer to a step at 0 that stays; exact."""
    sums = list(accumulate(int(tap) for tap in taps[:steps]))
    sums += [sums[-1]] * (steps - len(sums))
    return np.array(sums, dtype=np.int64 if max(map(abs, sums)) < 1 << 62 else object)


def longest_interval_norm(taps: Sequence[int], steps: int) -> int:
    """The largest `||L 1_[x,y)||^2` over 1 <= x < y <= steps + 1, on the finite horizon, exact.

    Row t of `L 1_[x,y)` is `C(t-x) - C(t-y)`, with C = 0 before 0, so the norm for (x, y) is a sum over
    m = t - x = 0..steps-x of `(C(m) - C(m-n))^2`, n = y - x. It has the more terms the smaller x is: x = 1 is worst.
    For x = 1 it is the sum of the first T squares and of the first T - n, less twice that of `C(m) C(m-n)`.
    """
    response = [int(value) for value in prefix_sums(taps, steps)]
    squares = [0, *accumulate(value**2 for value in response)]
    pairs = [*autocorrelation(response), 0]
    return max(squares[-1] + squares[steps - n] - 2 * pairs[n] for n in range(1, steps + 1))


def step_norms(
    taps: Sequence[int], longest: int, size: Callable[[NDArray[Any]], NDArray[Any]], *, formal: bool
) -> list[int]:
    """The largest sum of `size` (squares or absolute values) that a step in the last n positions can cause; exact.

    For n = 0..longest: `sum_{i<n} size(C(i))`, or, for the difference of two steps (`formal`), the largest
    `sum_{i<n} size(C(i) - C(i-d))` over d = 1..n. (d = n is the single step.)
    """
    response = prefix_sums(taps, longest)
    if int(max(abs(response))) ** 2 * 4 * longest >= 1 << 62:
        response = response.astype(object)
    single = np.cumsum(size(response))
    best = single.copy()
    for distance in range(1, longest if formal else 1):
        # Before the second step there is only the first.
        both = size(response[distance:] - response[:-distance])
        both[0] += single[distance - 1]
        np.maximum(best[distance:], np.cumsum(both), out=best[distance:])
    return [0, *(int(value) for value in best)]


def formal_step_norms(taps: Sequence[int], longest: int) -> list[int]:
    """The largest squared norm that the difference of two steps in the last n positions can have, n = 0..longest.

    Exact up to 4,096 positions. Beyond, none costs more than what is the most in all of them (`longest_interval_norm`),
    nor, if the signs are contracting, than the norms q of intervals on the unbounded horizon, which grow with them.
    """
    if longest <= _EXACT_HORIZON:
        return step_norms(taps, longest, np.square, formal=True)
    most = longest_interval_norm(taps, longest)
    norms = interval_norms(taps, longest) if has_contracting_signs(taps) else [0, *[most] * longest]
    return [min(norm, most) for norm in norms]
