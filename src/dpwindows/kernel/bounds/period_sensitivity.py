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
from itertools import accumulate

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.kernel.bounds.counted_by_rule import places_by_rule, runs_by_rule
from dpwindows.kernel.bounds.sensitivity import (
    Thresholds,
    formal_step_norms,
    interval_norms,
    require_contracting_signs,
    runs_bound,
)
from dpwindows.kernel.proofs import proves


def affected_ends(length: int, span: int, steps: int | None) -> int:
    """How many consecutive rolling windows see a span: `W+L-1`, and no more than there are."""
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


# --- Any window -----------------------------------------------------------------------------------------------------


@proves("any-counters-period")
def any_counters_period_l2(
    taps: Sequence[int], longest: int, span: int, steps: int | None, thresholds: Thresholds
) -> int:
    """Any windows of at most `longest` steps, one item changed within `span` steps: a filtered counter for every start.

    The counter of start a answers the ends a..a+m-1 (those within the horizon) as a series of its own from a on.

    Proof. For each start and threshold g is an interval of one sign on the ends >= p. A start a >= p within the span
    has n = m places for it (fewer where the horizon cuts its series), a start a = p-j before the span the last n = m-j
    of them; others none. The interval lies in the last n places of the series, so the filter answers the difference of
    two steps in the last n places: at most `formal_step_norms(...)[n]`. Squared norms of starts and thresholds add. The
    largest sum over all p is returned; without a horizon all p far from the first step are alike, and none exceeds
    them. QED.
    """
    longest = longest if steps is None else min(longest, steps)
    norms = formal_step_norms(taps, longest)
    sums = [0, *accumulate(norms)]
    if steps is None:
        return len(thresholds) * (span * norms[longest] + sums[longest])
    span = min(span, steps)
    series = [0, *accumulate(norms[min(longest, steps - a)] for a in range(steps))]

    def total(first: int) -> int:
        """For the span from step `first`: starts within it, and the starts first-1, first-2, ... before it."""
        within = series[first - 1 + span] - series[first - 1]
        room, last = steps - first + 1, longest - 1
        few = longest - min(last, first - 1)
        # The sum of norms[min(n, room)] over n = few..longest-1.
        cut = max(few, min(last, room) + 1)
        return within + sums[cut] - sums[few] + (last + 1 - cut) * norms[min(room, longest)]

    return len(thresholds) * max(total(first) for first in range(1, steps - span + 2))


@proves("any-trees-period")
def any_counters_period_l1(
    column_total: int, longest: int, span: int, steps: int | None, thresholds: Thresholds
) -> int:
    """Any windows of at most `longest` steps, one item changed within `span` steps: a tree for every start.

    Every row of the tree is a weighted sum of the increments of one start's series, and the absolute weights of any
    one increment, over all rows, add up to at most `column_total`.

    Proof. A span touches at most m+L-1 starts (and no more than there are). For each of them and each threshold g is an
    interval of one sign: two increments change by 1 at most, each of which moves the measurement by at most
    `column_total` in L1. The series of late starts are continued past the horizon by their last value, which has no
    increments there. Norms of starts and thresholds add. QED.
    """
    starts = longest + span - 1 if steps is None else min(longest + span - 1, steps)
    return 2 * column_total * starts * len(thresholds)


# --- Direct measurement ---------------------------------------------------------------------------------------------


def any_cells_period(longest: int, span: int, steps: int | None) -> int:
    """How many windows of at most `longest` steps a span can meet.

    Proof. `m` windows for each of the L starts in the span, and m-j for the start j steps before it. With a horizon:
    all windows but those that end before the span and those that begin after it. The windows within n steps are convex
    in n (one more step adds min(n+1, m)), so those left out are fewest when the steps outside are split evenly. QED.
    """
    if steps is None:
        return span * longest + longest * (longest - 1) // 2
    before, after = (steps - min(span, steps)) // 2, (steps - min(span, steps) + 1) // 2
    return _windows_within(steps, longest) - _windows_within(before, longest) - _windows_within(after, longest)


def _windows_within(steps: int, longest: int) -> int:
    longest = min(longest, steps)
    return longest * steps - longest * (longest - 1) // 2
