r"""Certified sensitivities when one item changes arbitrarily within `L` consecutive steps (`ItemPerPeriod`).

Notation as in `dpwindows.kernel.bounds.sensitivity`. The **span** is the steps p..p+L-1; the two logs of the one item
are equal outside it and arbitrary inside; f and f' are their answers, `g = f - f'`. Every bound holds for every p, and
none needs a horizon: `steps` may be None (a stream without an end); a horizon of T steps only drops what lies beyond
it.

**Cumulative.** As at item level: for each threshold f - f' is an interval of one sign, which begins in the span and may
last to the end (the bounds of `dpwindows.kernel.bounds.sensitivity` for an item changed arbitrarily serve both units).

**Rolling.** Only the ends t = p..p+L+W-2 see the span: **g lies in W+L-1 consecutive places**. Write `right(t)` for the
occurrences after the span up to t, `left(t)` for those in t-W+1..p-1: the two logs share them. Where g(t) is not 0 one
of the two counts is below k, so `left(t), right(t) <= k-1`; along t, left does not increase, right does not decrease.

*Runs.* A run of g is a maximal stretch of places where it is +1, or -1. With `L = n(W+1) + r`, 1 <= r <= W+1,

    g has at most `2kn + min(k+r-1, 2k)` runs.

(Proof of the two parts.)
- *Where right(t) = j >= 1 is constant*, t is after the span, nothing occurs while it is constant, so both counts do not
  increase: each of f and f' goes from 1 to 0 at most once and g has at most one run. That makes at most k-1 runs.
  *Where left(t) = i >= 1 is constant*, the window begins before the span, nothing leaves it, both counts do not
  decrease: at most one run again, k-1 together.
- *Where right(t) = 0* (a stretch that begins at p) f can start being counted in the span only, at most k times in any
  W+1 consecutive steps (`dpwindows.kernel.bounds.sensitivity`). The first r-1 places have at most r-1 runs. In the
  n(W+1)+1 steps of the span from there on, cut f and f' before the first of them: there are at most kn starts after
  that first step, for each. If both are 1 at that step, f and f' change at most 2kn+1 times each from there on, 4kn+2
  in all, and a run of g has two ends, but the last may lack one: 2kn+1 runs. Otherwise f and f' have together at most
  2kn+1 runs, and so has g (each run begins where one of the runs of f or f' begins or ends; counted by both ends,
  2(2kn+1)). With the k-1 for right >= 1: `2kn + k+r-1`.
- *Where left(t) = right(t) = 0* only occurrences in the span count. Up to step p+W-1 nothing leaves, so f starts at
  most once in p..p+W-1; at p+W it starts only if it had not before; so it starts at most once in the first W+1 steps of
  the span, and in the others at most k times for every W+1 of them begun. So f has at most 1+kn runs there, f' as many,
  and g at most 2+2kn (by ends again). With the k-1 for left >= 1 and the k-1 for right >= 1: `2kn + 2k`. QED.

*Signs.* If L <= W, the windows that end at p+L-1..p+W-1 hold the whole span: the counts differ by one constant there,
so g has one sign in those W-L+1 places; any other sign is found in the first and in the last L-1 places only. If L = 1
there are no such places: g has one sign.

**Any window of at most m steps.** Windows (a, b) that meet the span have `a <= p+L-1` and `b >= p`: **m+L-1 starts**,
and as many ends. For each start `f(a, .)` is 1 from some end on, so g is an interval of one sign on the ends >= p.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.kernel.bounds.counted_by_rule import places_by_rule, runs_by_rule
from dpwindows.kernel.bounds.sensitivity import (
    Thresholds,
    interval_norms,
    require_contracting_signs,
    runs_bound,
)
from dpwindows.kernel.proofs import proves


def affected_ends(length: int, span: int, steps: int | None) -> int:
    """The number of consecutive rolling windows that see a span: `W+L-1`, and no more than there are."""
    return length + span - 1 if steps is None else min(length + span - 1, steps)


def most_signed_runs(k: int, length: int, span: int) -> int:
    """The most runs, of either sign, of a change within a span: `2kn + min(k+r-1, 2k)` (module docstring)."""
    blocks, rest = divmod(span - 1, length + 1)
    return 2 * k * blocks + min(k + rest, 2 * k)


# --- Rolling --------------------------------------------------------------------------------------------------------


@proves("rolling-filter-item")
def rolling_filter_item_l2(
    taps: Sequence[int], length: int, steps: int, thresholds: Thresholds, rule: CountingRule = EVERY_OCCURRENCE
) -> int:
    """Rolling counts, one item changed within all steps, through a filter with contracting signs.

    Where a rule leaves few occurrences, this is below what keeps the cross terms between runs.

    Proof. One threshold. Let `S+` and `S-` be the sums of q over the runs of g of either sign, `S = S+ + S-`. Runs are
    disjoint, so with `A_ij = 1_i' G 1_j` for two runs, `A_ij <= 0` for i != j and `sum_{j != i} |A_ij| <= A_ii =
    q(n_i)` (signs lemma). In `||M g||^2 <= sum_ij s_i s_j A_ij` pairs of one sign add nothing; the pairs of unlike
    signs add `2 sum_{i in +, j in -} |A_ij|`, at most `2 S+` and at most `2 S-`, so at most S. S is at most
    `runs_bound` of the runs and places of the module docstring, of which a rule of counting leaves fewer
    (`counted_by_rule`). Thresholds are measured apart and change independently; squared norms add. A finite horizon
    drops rows, which lowers norms. QED.

    Raises:
        ValueError: the signs do not contract.
    """
    require_contracting_signs(taps)
    norms = interval_norms(taps, steps)
    total = 0
    for k in thresholds:
        runs = min(most_signed_runs(k, length, steps), 2 * runs_by_rule(rule, k, steps))
        places = min(steps, 2 * places_by_rule(rule, k, length, steps))
        total += 2 * runs_bound(norms, runs, steps, gaps=False, places=places)
    return total


@proves("rolling-differences-period")
def rolling_differences_period_l1(
    step_weight: int,
    anchor_weight: int,
    every: int,
    length: int,
    span: int,
    steps: int | None,
    thresholds: Thresholds,
) -> int:
    """Rolling counts, one item changed within `span` steps, through anchored differences.

    Proof. Every run of g has two ends, and each end changes one difference by 1 (where runs of unlike signs touch, two
    ends change the same one). g lies in at most W+L-1 consecutive places, which hold at most `ceil((W+L-1) / every)`
    anchors; at every anchor it is -1, 0 or 1. L1 norms of thresholds add. QED.
    """
    span = span if steps is None else min(span, steps)
    reach = affected_ends(length, span, steps)
    runs = sum(min(most_signed_runs(k, length, span), reach) for k in thresholds)
    return 2 * runs * step_weight + len(thresholds) * -(-reach // every) * anchor_weight
