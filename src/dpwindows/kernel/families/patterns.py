r"""Certified sensitivities of rolling counts through any causal filter.

What one neighbour can change is shown in `dpwindows.kernel.families.runs`. The bound of
`dpwindows.kernel.families.run_patterns`, used here, keeps cross terms between runs and asks for no sign pattern.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.advice import Advise, Question, ask
from dpwindows.kernel.families.changes_of_two_counts import (
    Held,
    held_changes,
    price_of_all,
    priced_changes,
    two_runs_bound,
)
from dpwindows.kernel.families.counted_by_rule import runs_by_rule
from dpwindows.kernel.families.norms import has_contracting_signs, interval_norms
from dpwindows.kernel.families.run_patterns import Lags, recent_bound
from dpwindows.kernel.families.runs import affected_ends, most_runs, most_signed_runs
from dpwindows.kernel.families.signed_patterns import Prices, SignedLags, TwoCounts, charges
from dpwindows.kernel.families.waves import waves_bound
from dpwindows.kernel.maps.filters import Filter
from dpwindows.kernel.rules import ITEM_UNITS, Case, rule

# The most places that a bound may be told to remember of patterns.
MOST_MEMORY = 16
# The fewest and the most places that a bound may be told to remember of signed patterns: states need two of them.
_LEAST_SIGNED_MEMORY, _MOST_SIGNED_MEMORY = 2, 7
# Prices that starts, over all places, and changes may have: sums of charges stay far within 64 bits.
_HIGHEST_PRICE = 1 << 58
# The longest span for which all pairs of runs are tried for k = 1.
_PAIRED = 128
# Cross terms between runs are worked out up to this many cells (thresholds times squared length): a few seconds.
_CHAINED = 10_000_000
# A period is nearly all of a range that is longer by no more than this part of the period.
_NEARLY_ALL = 4


@rule(
    "rolling-patterns-event",
    Rolling,
    EventLevel,
    GAUSSIAN,
    Filter,
    when="taps whose signs do not contract, or several runs and few places",
)
def rolling_patterns_event_l2(case: Case) -> int | None:
    """Rolling counts, one occurrence added or removed.

    Proof. On a finite horizon rows of the unbounded filter are dropped, which lowers norms. The changes lie in
    N = min(W, T) consecutive ends. *One threshold k*: a 0/1 pattern, up to its sign, of at most k runs; for k = 1 one
    interval, whose cost q(n) is exact for each n = 1..N; for larger k the bound of `run_patterns` holds. *Several*:
    each threshold i changes on a pattern g_i of at most k_i runs, the g_i have disjoint supports, so
    `sum ones_i <= N`, and thresholds are measured apart. For any price p >= 0
    `sum g_i'G g_i <= p N + sum_i max(g'Gg - p ones)`, each maximum over patterns of at most k_i runs. QED.
    """
    taps, reach, thresholds = case.measured.taps, case.reach, case.thresholds
    if has_contracting_signs(taps) and not (sum(thresholds) > 1 and sum(thresholds) * reach**2 <= _CHAINED):
        return None
    if len(thresholds) == 1:
        return _pattern_of_one_sign(taps, reach, *thresholds, case.advise)
    lags = Lags.of(taps, reach, max(thresholds))
    question = Question("rolling-patterns-event-disjoint", max(thresholds), (lags, thresholds))
    price, memory = ask(case.advise, question, [(0, lags.values[0]), (1, MOST_MEMORY)])
    total = price * reach + recent_bound(lags, thresholds, memory, price)
    return total << lags.shift


def _pattern_of_one_sign(taps: tuple[int, ...], reach: int, k: int, advise: Advise) -> int:
    """The most that the change of one threshold costs if it has one sign and at most k runs."""
    if k == 1:
        return max(interval_norms(taps, reach))
    lags = Lags.of(taps, reach, k)
    (memory,) = ask(advise, Question("rolling-patterns-event", k, (lags, k)), [(1, MOST_MEMORY)])
    return recent_bound(lags, (k,), memory) << lags.shift


@rule(
    "rolling-patterns-period",
    Rolling,
    ITEM_UNITS,
    GAUSSIAN,
    Filter,
    when="a horizon, if the item may change in all steps; of items added or removed, taps whose signs do not contract",
)
def rolling_patterns_period_l2(case: Case) -> int | None:
    """Rolling counts, one item changed within L steps, the span, or added or removed.

    An item changed arbitrarily, the formal item level, is one changed within a span of all steps; one that is added or
    removed is so too, with an empty log on one side: f' = 0. Where all steps are little more than the span, the bound
    for all of them holds too, and may be sharper.

    Proof. The span begins at step p; places 1..N are the windows that end at p, p+1, ..., `N = min(W+L-1, T)` of them.
    g is 0 at other ends (`families.runs`). Where the horizon cuts the places off earlier, the same change on a
    longer horizon costs no less: M is causal, so rows up to a step do not see what comes later. On the unbounded
    horizon there are more rows still. One threshold: for L = 1 g has one sign and at most k runs in W consecutive
    places, the change of `rolling_patterns_event_l2` for one threshold. For k = 1 `two_runs_bound` or `held_bound`,
    or `waves_bound` if the span is all of the horizon. Otherwise `priced_bound`, with the most runs and the places of
    one sign from `families.runs`; if the span is all of the horizon, nothing is counted before. Each bound holds
    whatever the memory, the near distances and the prices are. Where a rule of counting leaves fewer runs
    (`counted_by_rule`; an item changed within all steps), the automaton for k = 1 takes a price for changes as
    `priced_changes` does: what `2 runs` of them are worth is added. f has no more runs than it has starts, and g no
    more than f and f' together. Thresholds are measured apart and change independently; squared norms add. QED.
    """
    span, steps = case.span, case.steps
    if span is None or (not case.formal and has_contracting_signs(case.measured.taps)):
        return None
    # Questions about an item that comes or goes, and about all steps, are told apart from those about the span.
    bounds = [_changed_within(case, span, case.advise if case.formal else _apart(case.advise, "one log"))]
    if steps is not None and span < steps <= span + span // _NEARLY_ALL:
        bounds.append(_changed_within(case, steps, _apart(case.advise, "all steps")))
    return min(bounds)


def _apart(advise: Advise, name: str) -> Advise:
    return lambda question: advise(replace(question, apart=name))


def _changed_within(case: Case, span: int, advise: Advise) -> int:
    """The bound of `rolling_patterns_period_l2` for a span."""
    taps, length, steps = case.measured.taps, case.length, case.steps
    places = affected_ends(length, span, steps)
    if span == 1:
        return sum(_pattern_of_one_sign(taps, places, k, advise) for k in case.thresholds)
    lags, items = SignedLags.of(taps, places), 2 if case.formal else 1
    total = 0
    for k in case.thresholds:
        without = most_runs(k, length, places)
        allowed = runs_by_rule(case.rule, k, without)
        if allowed == 0:
            continue  # no item is ever counted
        question = Question("rolling-patterns-period", k, ())
        if k == 1:
            held = Held(span, length, places, items)
            # Where there are few places, all pairs of runs are tried.
            if case.formal and span <= min(length + 1, _PAIRED):
                least = two_runs_bound(lags, held)
            elif case.formal and span == steps and (waves := waves_bound(taps, length, places, advise)) is not None:
                least = -(-waves >> lags.shift)
            else:
                least = held_bound(lags, held, *ask(advise, replace(question, about=(lags, held)), _reach_limits(lags)))
            total += least if allowed == without else min(least, limited_bound(lags, held, items * allowed, advise))
        else:
            single = (span, min(length, places)) if span <= length else (1, 0)
            runs = min(most_signed_runs(k, length, span), places, items * allowed)
            counts = TwoCounts(k, length, places, runs, single, span == steps, items)
            limits = [*_reach_limits(lags), (0, _HIGHEST_PRICE // places), (0, _HIGHEST_PRICE)]
            memory, near, start, change = ask(advise, replace(question, about=(lags, counts)), limits)
            total += priced_bound(lags, counts, memory, near, Prices(start, change))
    return total << lags.shift


def _reach_limits(lags: SignedLags) -> list[tuple[int, int]]:
    """The limits of how many places are remembered, and of the largest near distance."""
    return [(_LEAST_SIGNED_MEMORY, _MOST_SIGNED_MEMORY), (0, lags.longest)]


@lru_cache(maxsize=64)
def held_bound(lags: SignedLags, known: Held, memory: int, near: int) -> int:
    """Bound on `g'Gg / 2^shift` over all changes for k = 1 (`held_changes`)."""
    return held_changes(lags, charges(lags, memory, near), known).dearest(known.length)


def limited_bound(lags: SignedLags, known: Held, runs: int, advise: Advise) -> int:
    """As `held_bound`, for changes of at most `runs` runs of either sign: a price for changes pays for these.

    Proof. g begins and ends at 0, so `sum |g_t - g_{t-1}|` is at most `2 runs`. Times a price >= 0, and added to what
    is charged, that only raises it. QED.
    """
    question = Question("rolling-patterns-period-limited", 1, (lags, known, runs))
    memory, near, price = ask(advise, question, [*_reach_limits(lags), (0, _HIGHEST_PRICE)])
    automaton = replace(held_changes(lags, charges(lags, memory, near), known), prices=Prices(0, price))
    return automaton.dearest(known.length) + 2 * price * runs


@lru_cache(maxsize=64)
def priced_bound(lags: SignedLags, known: TwoCounts, memory: int, near: int, prices: Prices) -> int:
    """Bound on `g'Gg / 2^shift` over all changes, for any prices (`priced_changes`)."""
    automaton = priced_changes(lags, charges(lags, memory, near), known, prices)
    return automaton.dearest(known.length) + price_of_all(known, prices)
