r"""Rolling counts by their runs: how many stretches of change a neighbour makes, and what each costs by its length.

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

from dataclasses import dataclass

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.families.counted_by_rule import places_by_rule, runs_by_rule
from dpwindows.kernel.families.norms import has_contracting_signs, interval_norms, runs_bound
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.filters import Filter
from dpwindows.kernel.rules import ALL_UNITS, Case, rule


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


@dataclass(frozen=True)
class Runs:
    """What one neighbour can change of one threshold, or of all of them at event level.

    Attributes:
        most: how many runs there are at most.
        within: how many consecutive places they lie in.
        places: how many places they have together at most.
        gaps: whether a place lies between any two of them.
        signed: whether they have either sign.
    """

    most: int
    within: int
    places: int
    gaps: bool
    signed: bool


def changed_runs(case: Case) -> list[Runs] | None:
    """The changes that a neighbour makes of rolling counts; None for whole items without an end of steps.

    Proof (module docstring). *One occurrence*: for one threshold k at most k runs within W consecutive places (and T),
    a place between any two. For several thresholds `sum k` runs, whose supports are disjoint: at most W places in all.
    *An item added or removed*: g = f for each threshold, of one sign. *An item changed within L steps*: g for each
    threshold, of one sign if L = 1. By a rule of counting f has fewer runs and places, and g at most twice as many
    (`counted_by_rule`). QED.
    """
    if case.span is None:
        return None
    length, rule, within = case.length, case.rule, affected_ends(case.length, case.span, case.steps)
    if isinstance(case.problem.unit, EventLevel):
        runs = min(sum(case.thresholds), within)
        return [Runs(runs, within, within, gaps=len(case.thresholds) == 1, signed=False)]
    items, changes = 2 if case.formal else 1, []
    for k in case.thresholds:
        runs = most_signed_runs(k, length, case.span) if case.formal else most_runs(k, length, within)
        runs = min(runs, within, items * runs_by_rule(rule, k, within))
        places = min(within, items * places_by_rule(rule, k, length, within))
        changes.append(Runs(runs, within, places, gaps=not case.formal, signed=case.formal and case.span > 1))
    return changes


@rule(
    "rolling-filter", Rolling, ALL_UNITS, GAUSSIAN, Filter, when="taps whose signs contract, a horizon for whole items"
)
def rolling_filter_l2(case: Case) -> int | None:
    """Rolling counts, through a filter with contracting signs: each run is charged by itself.

    Proof. Let a change have the runs of `changed_runs`, `A_ij = 1_i' G 1_j` for two of them, and S be the sum of
    `A_ii`, which is q of the run's length: at most `runs_bound`. `A_ij <= 0` for i != j, and `sum_{j != i} |A_ij| <=
    A_ii` (signs lemma). *One sign*: `||M g||^2 <= sum_ij A_ij <= S`. *Either sign*: in `sum_ij s_i s_j A_ij` pairs of
    one sign add nothing, those of unlike signs at most `2 S+` and at most `2 S-`, with S+ and S- the sums over the runs
    of either sign; so at most S, and the whole at most 2 S. Thresholds are measured apart, so squared norms add. A
    finite horizon drops rows, which lowers norms. QED.
    """
    changes, taps = changed_runs(case), case.measured.taps
    if changes is None or not has_contracting_signs(taps):
        return None
    norms = interval_norms(taps, changes[0].within)
    return sum(
        (2 if one.signed else 1) * runs_bound(norms, one.most, one.within, gaps=one.gaps, places=one.places)
        for one in changes
    )


@rule("rolling-differences", Rolling, ALL_UNITS, LAPLACE, AnchoredDifferences, when="a horizon for whole items")
def rolling_differences_l1(case: Case) -> int | None:
    """Rolling counts, through anchored differences: each run moves two differences, and the anchors in it.

    Proof. Every run (`changed_runs`) has two ends, and each end changes one difference by 1; where runs of unlike signs
    touch, two ends change the same one. n consecutive places hold at most `ceil(n / every)` anchors, of which no more
    change than there are places in runs, each by 1 at most. At event level this is so of all thresholds together, as
    their supports are disjoint; otherwise L1 norms of thresholds add. QED.
    """
    measured: AnchoredDifferences = case.measured
    changes = changed_runs(case)
    if changes is None:
        return None
    ends = 2 * sum(one.most for one in changes)
    anchors = sum(min(-(-one.within // measured.every), one.places) for one in changes)
    return ends * measured.step_weight + anchors * measured.anchor_weight
