r"""Certified sensitivities of rolling counts through any causal filter, and of cumulative ones through any matrix.

As in `dpwindows.kernel.bounds.sensitivity`, where it is shown what one neighbour can change, but with the bounds of
`dpwindows.kernel.bounds.run_patterns`, which keep the cross terms between runs and ask for no sign pattern. Every
function returns an integer bound on the squared L2 norm of the change of everything measured, over all thresholds
together.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.kernel.bounds.changes_of_two_counts import held_changes, price_of_all, priced_changes
from dpwindows.kernel.bounds.counted_by_rule import places_by_rule, runs_by_rule
from dpwindows.kernel.bounds.held_patterns import Held, two_runs_bound
from dpwindows.kernel.bounds.offset_patterns import priced_ones_bound
from dpwindows.kernel.bounds.period_sensitivity import affected_ends, most_signed_runs
from dpwindows.kernel.bounds.potentials import Check
from dpwindows.kernel.bounds.run_patterns import Lags, neighbour_bound, recent_bound, recent_bounds
from dpwindows.kernel.bounds.sensitivity import autocorrelation, interval_norms, most_runs
from dpwindows.kernel.bounds.signed_patterns import Charges, Prices, SignedLags, TwoCounts
from dpwindows.kernel.bounds.waves import Cycle, Grid, Paths, Wave, Waves
from dpwindows.kernel.proofs import proves
from dpwindows.kernel.untrusted.pattern_search import (
    good_charges,
    good_charges_for_runs,
    good_prices,
    memory_for,
    place_price,
    price_of_disjoint,
    walk,
)
from dpwindows.kernel.untrusted.wave_search import good_waves

# The most places for which chains of neighbouring runs are searched.
LONGEST_CHAIN = 512
# Cells of the tables for patterns of few ones.
_PRICED_CELLS = 4_000_000
# Bits of what all places would be charged alone, in `waves_bound`.
_WAVE_BITS = 29
# The longest span for which all pairs of runs are tried for k = 1.
_PAIRED = 128


@proves("rolling-patterns-event")
@lru_cache(maxsize=256)
def rolling_patterns_event_l2(taps: tuple[int, ...], length: int, steps: int, thresholds: tuple[int, ...]) -> int:
    """Rolling counts, one occurrence added or removed.

    Proof. On a finite horizon rows of the unbounded filter are dropped, which lowers norms. The changes lie in
    N = min(W, T) consecutive ends. *One threshold k*: a 0/1 pattern, up to its sign, of at most k runs; for k = 1 one
    interval, whose cost q(n) is exact for each n = 1..N; for larger k both bounds of `run_patterns` hold. *Several*:
    each threshold i changes on a pattern g_i of at most k_i runs, the g_i have disjoint supports, so
    `sum ones_i <= N`, and thresholds are measured apart. For any price p >= 0
    `sum g_i'G g_i <= p N + sum_i max(g'Gg - p ones)`, each maximum over patterns of at most k_i runs. QED.
    """
    reach = min(length, steps)
    if thresholds == (1,):
        return max(interval_norms(taps, reach))
    lags = Lags.of(taps, reach, max(thresholds))
    if len(thresholds) == 1:
        bounds = [recent_bound(lags, thresholds[0], memory_for(reach, thresholds[0]))]
        if reach <= LONGEST_CHAIN:
            bounds.append(_least_over_places(lags, thresholds[0], shortest=1))
        return min(bounds) << lags.shift

    price = price_of_disjoint(lags, thresholds)
    memories = {k: memory_for(reach, k) for k in thresholds}
    total = price * reach
    for memory in set(memories.values()):
        alike = [k for k in thresholds if memories[k] == memory]
        total += sum(recent_bounds(lags, alike, memory, price))
    return total << lags.shift


@proves("rolling-patterns-presence")
@lru_cache(maxsize=256)
def rolling_patterns_add_remove_l2(
    taps: tuple[int, ...],
    length: int,
    steps: int,
    thresholds: tuple[int, ...],
    rule: CountingRule = EVERY_OCCURRENCE,
) -> int:
    """Rolling counts, one item added or removed.

    Proof. For each threshold k the change is f, a 0/1 pattern in T places with at most k starts in any W+1
    consecutive steps, so with at most `R = k ceil(T/(W+1))` runs. For k = 1, an item that starts being counted at
    step t has an occurrence at t, so it is counted at least until t+W-1: every run has at least W places, but one
    that the horizon cuts, which is the last. Rows beyond the horizon are dropped, which lowers norms. So both bounds
    of `run_patterns` hold for R runs in T places, for k = 1 with runs of at least W but for the last. By a rule of
    counting there are fewer runs, each as long as it was, and fewer ones (`counted_by_rule`): a price for every one
    bounds these (`offset_patterns.priced_ones_bound`). Thresholds are measured apart; their squared norms add. QED.
    """
    total = 0
    for k in thresholds:
        runs, places = runs_by_rule(rule, k, most_runs(k, length, steps)), places_by_rule(rule, k, length, steps)
        shortest = min(length, steps) if k == 1 else 1
        lags = Lags.of(taps, steps, runs)
        bounds = [recent_bound(lags, runs, memory_for(steps, runs))]
        if steps <= LONGEST_CHAIN:
            bounds.append(_least_over_places(lags, runs, shortest=shortest))
        found = min(bounds) << lags.shift
        if places < steps:
            exact = autocorrelation(taps)[:steps]
            exact += [0] * (steps - len(exact))
            found = min(found, priced_ones_bound(exact, 0, runs, places, shortest, _PRICED_CELLS))
        total += found
    return total


@proves("rolling-patterns-period")
@lru_cache(maxsize=256)
def rolling_patterns_period_l2(
    taps: tuple[int, ...],
    length: int,
    span: int,
    steps: int | None,
    thresholds: tuple[int, ...],
    rule: CountingRule = EVERY_OCCURRENCE,
) -> int:
    """Rolling counts, one item changed within `span` steps; `steps` is the horizon, or None if there is none.

    An item changed arbitrarily, the formal item level, is one changed within a span of all steps.

    Proof. The span begins at step p; places 1..N are the windows that end at p, p+1, ..., `N = min(W+L-1, T)` of them.
    g is 0 at other ends (`period_sensitivity`). Where the horizon cuts the places off earlier, the same change on a
    longer horizon costs no less: M is causal, so rows up to a step do not see what comes later. On the unbounded
    horizon there are more rows still. One threshold: for L = 1 g has one sign and at most k runs in W consecutive
    places, the change of `rolling_patterns_event_l2` for one threshold. For k = 1 `two_runs_bound` or `held_bound`,
    or `waves_bound` if the span is all of the horizon. Otherwise `priced_bound`, with the most runs and the places of
    one sign from `period_sensitivity`; if the span is all of the horizon, nothing is counted before. Each bound holds
    whatever the memory, the near distances and the prices are. Where a rule of counting leaves fewer runs
    (`counted_by_rule`; an item changed within all steps), the automaton for k = 1 takes a price for changes as
    `priced_changes` does: what `2 runs` of them are worth is added. Thresholds are measured apart and change
    independently; squared norms add. QED.

    Raises:
        ValueError: there is a rule of counting, and the span is not all steps.
    """
    if rule != EVERY_OCCURRENCE and span != steps:
        raise ValueError("a rule of counting is for an item that changes within all steps")
    span = span if steps is None else min(span, steps)
    places = affected_ends(length, span, steps)
    if span == 1:
        return sum(rolling_patterns_event_l2(taps, length, places, (k,)) for k in thresholds)
    lags = SignedLags.of(taps, places)
    total = 0
    for k in thresholds:
        without = most_runs(k, length, places)
        allowed = runs_by_rule(rule, k, without)
        if allowed == 0:
            continue  # no item is ever counted
        if k == 1:
            held = Held(span, length, places)
            waves = waves_bound(taps, length, places) if span == steps else None
            # Where there are few places, all pairs of runs are tried.
            if span <= min(length + 1, _PAIRED):
                found = two_runs_bound(lags, held)
            elif waves is not None:
                found = -(-waves >> lags.shift)
            else:
                found = held_bound(lags, good_charges(lags, held), held)
            total += found if allowed == without else min(found, limited_bound(lags, held, 2 * allowed))
        else:
            single = (span, min(length, places)) if span <= length else (1, 0)
            runs = min(most_signed_runs(k, length, span), places)
            runs = runs if allowed == without else min(runs, 2 * allowed)
            counts = TwoCounts(k, length, places, runs, single, span == steps)
            charged, prices = good_prices(lags, counts)
            total += priced_bound(lags, charged, counts, prices)
    return total << lags.shift


def held_bound(lags: SignedLags, charged: Charges, known: Held) -> int:
    """Bound on `g'Gg / 2^shift` over all changes for k = 1, and a table that proves it (`held_changes`)."""
    automaton = held_changes(lags, charged, known)
    check = Check(automaton)
    walk(automaton, period=known.length, tick=automaton.every, check=check)
    return check.bound()


def waves_bound(taps: tuple[int, ...], length: int, places: int) -> int | None:
    """Bound on `g'Gg` over all changes for k = 1 of one item within all steps (`dpwindows.kernel.bounds.waves`).

    None where no wave makes up the filter's autocorrelation.

    Proof. An item that starts being counted at a step occurs there, so it is counted at the W-1 ends after it too, or
    up to the horizon; it may start at any step, and nothing is counted before the first. So g = f - f' for two paths of
    `Paths`. It is charged at least `g'Gg / 2^shift`, and at most what `Waves.bound` tells, whatever the wave, the grid,
    the jumps, the clock and the cycle are; they are made anew here, as Python's own numbers, which do not wrap. QED.
    """
    exact = autocorrelation(taps)[:places]
    exact += [0] * (places - len(exact))
    shift = max(0, (places * exact[0]).bit_length() - _WAVE_BITS)
    lags = [value / (1 << shift) for value in exact]
    try:
        if (proposed := good_waves(lags, length)) is None:
            return None
        waves, cycle = proposed
        wave, grid, paths = waves.wave, waves.grid, waves.paths
        found = Waves.of(
            lags,
            Wave(complex(wave.pole), complex(wave.amplitude)),
            Grid(int(grid.nodes), float(grid.reach)),
            Paths(length, int(paths.jump), int(paths.clock)),
        ).bound(places, Cycle(int(cycle.settling), int(cycle.jumps)))
    except ValueError:
        # What is proposed makes no table.
        return None
    return None if found is None else found << shift


def limited_bound(lags: SignedLags, known: Held, runs: int) -> int:
    """As `held_bound`, for changes of at most so many runs of either sign: a price for changes pays for these.

    Proof. g begins and ends at 0, so `sum |g_t - g_{t-1}|` is at most `2 runs`. Times a price >= 0, and added to what
    is charged, that only raises it. QED.
    """
    charged, price = good_charges_for_runs(lags, known, runs)
    automaton = replace(held_changes(lags, charged, known), prices=Prices(0, price))
    check = Check(automaton)
    walk(automaton, period=known.length, tick=automaton.every, check=check)
    return check.bound() + 2 * price * runs


def priced_bound(lags: SignedLags, charged: Charges, known: TwoCounts, prices: Prices) -> int:
    """Bound on `g'Gg / 2^shift` over all changes, for any prices, and a table that proves it (`priced_changes`)."""
    automaton = priced_changes(lags, charged, known, prices)
    check = Check(automaton)
    walk(automaton, period=known.length, check=check)
    return check.bound() + price_of_all(known, prices)


def _least_over_places(lags: Lags, runs: int, *, shortest: int) -> int:
    """The neighbour bound at a good price for places; every price gives a bound."""
    price = place_price(lags, runs, shortest=shortest, rounds=16)
    return neighbour_bound(lags, runs, price, shortest=shortest)
