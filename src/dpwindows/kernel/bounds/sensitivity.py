r"""Certified sensitivities: how far one neighbour can move a measurement, proved, from the integers actually used.

Notation: `T` steps, `W` the rolling length, `k` a threshold, `S[u,[a,b]]` the occurrences of item `u` in steps a..b,
`g` the difference of the exact answers of two neighbouring logs. Answers of different items add up, and neighbours
differ in one item only, so `g` is always the difference of two single-item logs.

Every function returns an integer: a bound on the squared L2 norm (names ending in `_l2`) or on the L1 norm (`_l1`)
of `M g`, over all neighbours and all thresholds measured together, for the integer matrix `M` in use. All
arithmetic is exact, or rounded upward by a stated margin.

**What one added occurrence changes (event level).** An occurrence of `u` added at step `s` raises `S[u,[a,t]]` by
one for the windows with a <= s <= t and no others, so "at least k" flips from 0 to 1 exactly where the old count
was k-1. For several thresholds together the changes have disjoint supports: a window has one old count. Removing is
the same with the other sign. With `left(a)` the old occurrences in a..s and `right(t)` those in s+1..t, the old
count is `left(a) + right(t)`; `left` does not increase with a, `right` does not decrease with t.

- *Cumulative*: a = 1, so the flips for threshold k are an interval of ends t, and intervals of different thresholds
  are disjoint.
- *Rolling*: the ends t concerned are s..s+W-1, and a = max(1, t-W+1) moves with t. If two flips for one threshold
  have equal `right`, then `left` is equal there too, both are constant between, and the two lie in one run. So runs
  have distinct `right` in 0..k-1: **at most k runs, of one sign, inside W consecutive steps**, with at least one step
  between runs (they are taken as long as they are); over all thresholds the total length is at most W.
- *Any window*: threshold k flips where `left(a) = i` and `right(t) = k-1-i`: **k rectangles `I_i x J_{k-1-i}`**, the
  `I_i` disjoint intervals of starts at or before s, the `J_j` disjoint intervals of ends at or after s (some empty).
  What they cost through a product of two filters is bounded in `dpwindows.kernel.bounds.rectangles`.

**What one whole item changes.** Let `f` be the answers of the log that holds that item alone. Under add/remove
`g = f` (up to sign); under the formal item-level relation `g = f - f'`.

- *Cumulative*: `f` is 1 from the k-th occurrence on; `f - f'` is an interval of one sign.
- *Rolling*: call t a start if f is 1 at t and not at t-1. If `t_0 < ... < t_j` are starts with `t_j <= t_0 + W`, then
  step t_j - 1's window holds every occurrence in `t_0..t_j - 1` (its first step is `t_j - W <= t_0`), among them
  at least one at each start `t_0..t_{j-1}` (a count rises only where something occurs), and fewer than k in all:
  `j <= k-1`. So **any W+1 consecutive steps hold at most k starts**, and f has at most `k ceil(T/(W+1))` runs. Of
  `f - f'` more is said in `dpwindows.kernel.bounds.period_sensitivity` and `dpwindows.kernel.bounds.signed_patterns`.
- *Any window*: for each start a, `f(a, .)` is 1 from some end on: one cumulative counter for each start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.kernel.bounds.counted_by_rule import places_by_rule, runs_by_rule
from dpwindows.kernel.proofs import proves

Thresholds = Sequence[int]
# Certificates use whole numbers; searches for parameters use the same formulas on floating-point norms.
Norm = TypeVar("Norm", int, float)

# Horizons up to which all O(T^2) interval norms are formed; beyond, what is the most of them is one bound for all.
_EXACT_HORIZON = 4096


# --- Norms of intervals under a causal filter ---------------------------------------------------------------------


def autocorrelation(taps: Sequence[int]) -> list[int]:
    """`r_m = sum_j taps_j taps_{j+m}` for m = 0..len(taps)-1, exact.

    As one product of two whole numbers, whose digits the taps are, in either order: a digit of the product is a sum
    that belongs to one m, and digits are so wide that none goes over into the next. Digits below 0 are raised by half
    the width, and what that adds is taken off the number again.
    """
    taps = [int(tap) for tap in taps]  # NumPy's integers would wrap
    width = (sum(map(abs, taps)) ** 2).bit_length() // 8 + 1
    half = 1 << 8 * width - 1

    def raised(count: int) -> int:
        return int.from_bytes(half.to_bytes(width, "little") * count, "little")

    def number(digits: list[int]) -> int:
        packed = b"".join((digit + half).to_bytes(width, "little") for digit in digits)
        return int.from_bytes(packed, "little") - raised(len(digits))

    count = 2 * len(taps) - 1
    product = (number(taps) * number(taps[::-1]) + raised(count)).to_bytes(width * count, "little")
    places = range(width * (len(taps) - 1), width * count, width)
    return [int.from_bytes(product[place : place + width], "little") - half for place in places]


def require_contracting_signs(taps: Sequence[int]) -> None:
    """Check the sign pattern that makes disjoint intervals cost no more together than apart.

    The pattern: `taps_0 > 0 >= taps_j`, `|taps_j|` not increasing for j >= 1, and a positive sum.

    Lemma (signs). Then `r_m <= 0` for every m >= 1 and `r_0 + 2 sum_{m<=n} r_m >= (sum taps)^2 > 0` for every n.
    Proof. `r_m = taps_0 taps_m + sum_{j>=1} taps_j taps_{j+m} <= -taps_0 |taps_m| + |taps_m| sum_{j>=1} |taps_j|`,
    since `|taps_{j+m}| <= |taps_m|`; and `sum_{j>=1} |taps_j| < taps_0`. The full sum over all lags, positive and
    negative, is `(sum taps)^2`; leaving out terms that are <= 0 can only raise it. Nothing depends on how the taps
    were found, rounded or truncated. QED.

    Raises:
        ValueError: the pattern does not hold (a bug in a strategy, never a fault of the input).
    """
    if not has_contracting_signs(taps):
        raise ValueError("the filter's integer taps do not have contracting signs")


def has_contracting_signs(taps: Sequence[int]) -> bool:
    """Whether taps have the sign pattern of `require_contracting_signs`."""
    tail = [-tap for tap in taps[1:]]
    ordered = all(first >= second for first, second in pairwise(tail))
    return taps[0] > 0 and ordered and all(tap >= 0 for tap in tail) and sum(taps) > 0


def interval_norms(taps: Sequence[int], longest: int) -> list[int]:
    """`q(n) = ||L 1_[0,n)||^2` for n = 0..longest, `L` the filter on an unbounded horizon; exact.

    `q(n+1) - q(n) = r_0 + 2 sum_{m=1..n} r_m`. For contracting signs (`require_contracting_signs`) these differences
    are positive and do not increase: **q is increasing and concave**, and for a set that is a union of disjoint
    intervals `||L 1||^2 <= sum q(|interval|)`, because the cross terms are sums of `r_m <= 0`. A finite horizon only
    drops rows of `L`, so the same bounds hold there.
    """
    lags = autocorrelation(taps)[:longest]
    rises = list(accumulate([lags[0], *(2 * lag for lag in lags[1:])]))
    rises += [rises[-1]] * (longest - len(rises))
    return [0, *accumulate(rises[:longest])]


def runs_bound(norms: Sequence[Norm], runs: int, length: int, *, gaps: bool, places: int | None = None) -> Norm:
    """The largest `sum q(n_i)` over at most `runs` disjoint runs in `length` consecutive steps.

    `norms` is q from `interval_norms` of contracting taps: increasing and concave, so for r runs the most even split
    of the largest total is best. The total is `length`, less the r-1 steps between runs where `gaps` are certain, and
    at most `places` where that is given.
    """
    best = norms[0]
    for count in range(1, min(runs, length) + 1):
        total = min(length - (count - 1 if gaps else 0), length if places is None else places)
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
    best = np.cumsum(size(response))
    for distance in range(1, longest if formal else 1):
        difference = response.copy()
        difference[distance:] -= response[: longest - distance]
        best = np.maximum(best, np.cumsum(size(difference)))
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


# --- Cumulative -----------------------------------------------------------------------------------------------------


@proves("cumulative-filter-event")
def cumulative_filter_event_l2(taps: Sequence[int], steps: int, thresholds: Thresholds) -> int:
    """Cumulative counts, one occurrence added or removed, measured through the filter `taps`.

    Proof. Each threshold changes on one interval, so it costs at most what `formal_step_norms` allows in all steps, and
    m thresholds at most m times that. If the signs are contracting the m intervals, being disjoint, also cost at most
    `runs_bound(q, m, T)`. Either bound holds; the smaller is returned. QED.
    """
    single = len(thresholds) * formal_step_norms(taps, steps)[-1]
    if len(thresholds) == 1:
        return single
    require_contracting_signs(taps)
    return min(single, runs_bound(interval_norms(taps, steps), len(thresholds), steps, gaps=False))


# --- Rolling --------------------------------------------------------------------------------------------------------


@proves("rolling-filter-event")
def rolling_filter_event_l2(taps: Sequence[int], length: int, steps: int, thresholds: Thresholds) -> int:
    """Rolling counts, one occurrence added or removed, through a filter with contracting signs.

    Proof. The changes lie in at most W consecutive ends (and T). One threshold k: at most k runs of one sign with
    gaps between them. Several together: at most `sum k` runs over all, of total length at most W, and thresholds are
    measured apart, so their squared norms add. Each run costs q of its length. QED.
    """
    require_contracting_signs(taps)
    reach = min(length, steps)
    norms = interval_norms(taps, reach)
    return runs_bound(norms, sum(thresholds), reach, gaps=len(thresholds) == 1)


@proves("rolling-filter-presence")
def rolling_filter_add_remove_l2(
    taps: Sequence[int], length: int, steps: int, thresholds: Thresholds, rule: CountingRule = EVERY_OCCURRENCE
) -> int:
    """Rolling counts, one item added or removed, through a filter with contracting signs.

    Proof. For each threshold `g = f` is 0/1 with at most `k ceil(T/(W+1))` runs in T steps, at least one step apart.
    By a rule of counting there are fewer runs and places (`counted_by_rule`). The squared norms of the thresholds add.
    QED.
    """
    require_contracting_signs(taps)
    norms = interval_norms(taps, steps)
    return sum(
        runs_bound(
            norms,
            runs_by_rule(rule, k, most_starts(k, length, steps)),
            steps,
            gaps=True,
            places=places_by_rule(rule, k, length, steps),
        )
        for k in thresholds
    )


@proves("rolling-differences-event")
def rolling_differences_event_l1(
    step_weight: int, anchor_weight: int, every: int, length: int, steps: int, thresholds: Thresholds
) -> int:
    """Rolling counts, one occurrence added or removed, through anchored differences.

    Proof. Over all thresholds at most `min(sum k, W)` runs, each changing two differences by 1; and the W (or T) ends
    concerned hold at most `ceil(W / every)` anchors, each of which changes by at most 1 for at most one threshold,
    their supports being disjoint. QED.
    """
    reach = min(length, steps)
    runs = min(sum(thresholds), reach)
    anchors = -(-reach // every)
    return 2 * runs * step_weight + anchors * anchor_weight


@proves("rolling-differences-item")
def rolling_differences_item_l1(
    step_weight: int,
    anchor_weight: int,
    every: int,
    length: int,
    steps: int,
    thresholds: Thresholds,
    *,
    formal: bool,
    rule: CountingRule = EVERY_OCCURRENCE,
) -> int:
    """Rolling counts, one item changed arbitrarily (`formal`) or added or removed, through anchored differences.

    Proof. For each threshold f has at most `k ceil(T/(W+1))` runs (and at most `ceil(T/2)`), each with two ends; a
    formal change is `f - f'`, with the ends of both. At every anchor g is -1, 0 or 1, and it is not 0 at more anchors
    than there are places where f or f' is 1. By a rule of counting there are fewer runs and places (`counted_by_rule`).
    QED.
    """
    items, total = 2 if formal else 1, 0
    for k in thresholds:
        runs = runs_by_rule(rule, k, most_runs(k, length, steps))
        anchors = min(-(-steps // every), items * places_by_rule(rule, k, length, steps))
        total += items * 2 * runs * step_weight + anchors * anchor_weight
    return total


def most_starts(k: int, length: int, steps: int) -> int:
    """How often one item can start being counted in a rolling window: `k ceil(T/(W+1))` (module docstring)."""
    return k * -(-steps // (length + 1))


def most_runs(k: int, length: int, steps: int) -> int:
    """The most runs of one item's rolling counts: one for each start, and at least a step between two."""
    return min(most_starts(k, length, steps), (steps + 1) // 2)


# --- Any window -----------------------------------------------------------------------------------------------------


@proves("any-trees-event")
def any_tree_event_l1(start_total: int, end_total: int, blocks_met: int, thresholds: Thresholds) -> int:
    """Any windows, one occurrence added or removed, through a tree of increments on starts and one on ends.

    In each block of starts a row is `sum_ij u_i v_j d_ij`, with `d_ij` the two-dimensional increments (differences
    along both axes, 0 outside the block), u a row of the tree on starts and v one of the tree on ends; every pair of
    rows is measured. The absolute weights of any one increment add up to at most `start_total` over the rows of every
    tree on starts in use, and to at most `end_total` over those of every tree on ends.

    Proof. In each block of starts an event meets (at most `blocks_met`), threshold k changes on k rectangles, of one
    sign: their increments are +1 or -1 at four corners each, or at fewer where a side lies on the block's edge. A unit
    increment at (i, j) moves the row (u, v) by `u_i v_j`, all rows by `sum |u_i| sum |v_j|` in L1, at most
    `start_total * end_total`. Norms of corners, rectangles, blocks and thresholds add. Taking an axis from its last
    position to its first leaves every rectangle a rectangle. QED.
    """
    return 4 * sum(thresholds) * blocks_met * start_total * end_total
