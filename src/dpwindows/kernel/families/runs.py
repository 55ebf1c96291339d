r"""Rolling counts by their runs: at most so many stretches of change, each of which costs what its length does.

Notation: as in `dpwindows.kernel.families.norms`.

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

**What one whole item changes.** Let `f` be the answers of the log that holds that item alone. Under add/remove
`g = f` (up to sign); under the formal item-level relation `g = f - f'`.

- *Cumulative*: `f` is 1 from the k-th occurrence on; `f - f'` is an interval of one sign.
- *Rolling*: call t a start if f is 1 at t and not at t-1. If `t_0 < ... < t_j` are starts with `t_j <= t_0 + W`, then
  step t_j - 1's window holds every occurrence in `t_0..t_j - 1` (its first step is `t_j - W <= t_0`), among them
  at least one at each start `t_0..t_{j-1}` (a count rises only where something occurs), and fewer than k in all:
  `j <= k-1`. So **any W+1 consecutive steps hold at most k starts**, and f has at most `k ceil(T/(W+1))` runs. Of
  `f - f'` more is said below and in `dpwindows.kernel.families.signed_patterns`.

**What an item changes within L steps.** The **span** is the steps p..p+L-1; the two logs of the one item are equal
outside it and arbitrary inside. Every bound holds for every p, and none needs a horizon: a horizon of T steps only
drops what lies beyond it. An item changed arbitrarily is one changed within all T steps.

Only the ends t = p..p+L+W-2 see the span: **g lies in W+L-1 consecutive places**. Write `right(t)` for the
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
  W+1 consecutive steps (shown above). The first r-1 places have at most r-1 runs. In the
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
"""

from __future__ import annotations

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.families.counted_by_rule import places_by_rule, runs_by_rule
from dpwindows.kernel.families.norms import has_contracting_signs, interval_norms, runs_bound
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.filters import Filter
from dpwindows.kernel.rules import Case, rule


def most_starts(k: int, length: int, steps: int) -> int:
    """How often one item can start being counted in a rolling window: `k ceil(T/(W+1))` (module docstring)."""
    return k * -(-steps // (length + 1))


def most_runs(k: int, length: int, steps: int) -> int:
    """The most runs of one item's rolling counts: one for each start, and at least a step between two."""
    return min(most_starts(k, length, steps), (steps + 1) // 2)


def affected_ends(length: int, span: int, steps: int | None) -> int:
    """The number of consecutive rolling windows that see a span: `W+L-1`, and no more than there are."""
    return length + span - 1 if steps is None else min(length + span - 1, steps)


def most_signed_runs(k: int, length: int, span: int) -> int:
    """The most runs, of either sign, of a change within a span: `2kn + min(k+r-1, 2k)` (module docstring)."""
    blocks, rest = divmod(span - 1, length + 1)
    return 2 * k * blocks + min(k + rest, 2 * k)


# --- Filters with contracting signs ---------------------------------------------------------------------------------


@rule("rolling-filter-event", Rolling, EventLevel, GAUSSIAN, Filter, when="taps whose signs contract")
def rolling_filter_event_l2(case: Case) -> int | None:
    """Rolling counts, one occurrence added or removed, through a filter with contracting signs.

    Proof. The changes lie in at most W consecutive ends (and T). One threshold k: at most k runs of one sign with
    gaps between them. Several together: at most `sum k` runs over all, of total length at most W, and thresholds are
    measured apart, so their squared norms add. Each run costs q of its length. QED.
    """
    if not has_contracting_signs(case.measured.taps):
        return None
    norms = interval_norms(case.measured.taps, case.reach)
    return runs_bound(norms, sum(case.thresholds), case.reach, gaps=len(case.thresholds) == 1)


@rule("rolling-filter-presence", Rolling, ItemAddRemove, GAUSSIAN, Filter, when="taps whose signs contract, a horizon")
def rolling_filter_add_remove_l2(case: Case) -> int | None:
    """Rolling counts, one item added or removed, through a filter with contracting signs.

    Proof. For each threshold `g = f` is 0/1 with at most `k ceil(T/(W+1))` runs in T steps, at least one step apart.
    By a rule of counting there are fewer runs and places (`counted_by_rule`). The squared norms of the thresholds add.
    QED.
    """
    if case.steps is None or not has_contracting_signs(case.measured.taps):
        return None
    norms, total = interval_norms(case.measured.taps, case.steps), 0
    for k in case.thresholds:
        runs = runs_by_rule(case.rule, k, most_starts(k, case.length, case.steps))
        places = places_by_rule(case.rule, k, case.length, case.steps)
        total += runs_bound(norms, runs, case.steps, gaps=True, places=places)
    return total


@rule(
    "rolling-filter-item",
    Rolling,
    ItemLevel,
    GAUSSIAN,
    Filter,
    when="taps whose signs contract, a horizon, a rule that bounds what an item adds",
)
def rolling_filter_item_l2(case: Case) -> int | None:
    """Rolling counts, one item changed within all steps, through a filter with contracting signs.

    Where a rule leaves few occurrences, this is below what keeps the cross terms between runs.

    Proof. One threshold. Let `S+` and `S-` be the sums of q over the runs of g of either sign, `S = S+ + S-`. Runs are
    disjoint, so with `A_ij = 1_i' G 1_j` for two runs, `A_ij <= 0` for i != j and `sum_{j != i} |A_ij| <= A_ii =
    q(n_i)` (signs lemma). In `||M g||^2 <= sum_ij s_i s_j A_ij` pairs of one sign add nothing; the pairs of unlike
    signs add `2 sum_{i in +, j in -} |A_ij|`, at most `2 S+` and at most `2 S-`, so at most S. S is at most
    `runs_bound` of the runs and places of the module docstring, of which a rule of counting leaves fewer
    (`counted_by_rule`). Thresholds are measured apart and change independently; squared norms add. A finite horizon
    drops rows, which lowers norms. QED.
    """
    if case.steps is None or not case.rule.bounded or not has_contracting_signs(case.measured.taps):
        return None
    norms, total = interval_norms(case.measured.taps, case.steps), 0
    for k in case.thresholds:
        runs = min(most_signed_runs(k, case.length, case.steps), 2 * runs_by_rule(case.rule, k, case.steps))
        places = min(case.steps, 2 * places_by_rule(case.rule, k, case.length, case.steps))
        total += 2 * runs_bound(norms, runs, case.steps, gaps=False, places=places)
    return total


# --- Anchored differences -------------------------------------------------------------------------------------------


@rule("rolling-differences-event", Rolling, EventLevel, LAPLACE, AnchoredDifferences)
def rolling_differences_event_l1(case: Case) -> int:
    """Rolling counts, one occurrence added or removed, through anchored differences.

    Proof. Over all thresholds at most `min(sum k, W)` runs, each changing two differences by 1; and the W (or T) ends
    concerned hold at most `ceil(W / every)` anchors, each of which changes by at most 1 for at most one threshold,
    their supports being disjoint. QED.
    """
    measured: AnchoredDifferences = case.measured
    runs = min(sum(case.thresholds), case.reach)
    return 2 * runs * measured.step_weight + -(-case.reach // measured.every) * measured.anchor_weight


@rule("rolling-differences-item", Rolling, (ItemLevel, ItemAddRemove), LAPLACE, AnchoredDifferences, when="a horizon")
def rolling_differences_item_l1(case: Case) -> int | None:
    """Rolling counts, one item changed arbitrarily or added or removed, through anchored differences.

    Proof. For each threshold f has at most `k ceil(T/(W+1))` runs (and at most `ceil(T/2)`), each with two ends; a
    formal change is `f - f'`, with the ends of both. At every anchor g is -1, 0 or 1, and it is not 0 at more anchors
    than there are places where f or f' is 1. By a rule of counting there are fewer runs and places (`counted_by_rule`).
    QED.
    """
    if case.steps is None:
        return None
    measured: AnchoredDifferences = case.measured
    items, total = 2 if case.formal else 1, 0
    for k in case.thresholds:
        runs = runs_by_rule(case.rule, k, most_runs(k, case.length, case.steps))
        places = items * places_by_rule(case.rule, k, case.length, case.steps)
        anchors = min(-(-case.steps // measured.every), places)
        total += items * 2 * runs * measured.step_weight + anchors * measured.anchor_weight
    return total


@rule("rolling-differences-period", Rolling, ItemPerPeriod, LAPLACE, AnchoredDifferences)
def rolling_differences_period_l1(case: Case) -> int | None:
    """Rolling counts, one item changed within L steps, through anchored differences.

    Proof. Every run of g has two ends, and each end changes one difference by 1 (where runs of unlike signs touch, two
    ends change the same one). g lies in at most W+L-1 consecutive places, which hold at most `ceil((W+L-1) / every)`
    anchors; at every anchor it is -1, 0 or 1. L1 norms of thresholds add. QED.
    """
    if case.span is None:
        return None
    measured: AnchoredDifferences = case.measured
    reach = affected_ends(case.length, case.span, case.steps)
    runs = sum(min(most_signed_runs(k, case.length, case.span), reach) for k in case.thresholds)
    anchors = len(case.thresholds) * -(-reach // measured.every)
    return 2 * runs * measured.step_weight + anchors * measured.anchor_weight
