"""Good tables, charges and prices for `dpwindows.pattern_sensitivity`: searches, of which no proof speaks.

Whatever is found here is checked there: a bound holds for every choice of what is remembered, of near distances and of
prices, and only with a table that `dpwindows.potentials` accepts. What is found decides how good the bound is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpwindows.changes_of_two_counts import held_changes, price_of_all, priced_changes
from dpwindows.held_patterns import Held
from dpwindows.potentials import NEVER, Automaton, Check, Table
from dpwindows.signed_patterns import Charges, Prices, SignedLags, TwoCounts, charges

# Periods after which what places add is taken for settled, and over which it is taken to be the same again.
SETTLING, CYCLE = 4, 16
# Places remembered of signed patterns: while near distances are sought, and in the bound; for k = 1, and for larger k.
_LEAST_MEMORY, _HELD_MEMORY, _SOUGHT_MEMORY, _PRICED_MEMORY = 3, 4, 4, 6
# Near distances that are tried: parts of the windows' length for k = 1, and of the mean length of runs for larger k.
_HELD_NEAR, _PRICED_NEAR = (0.0, 0.15, 0.25, 0.4, 0.6), (0.4, 0.6, 0.9)
# Steps between two prices.
_PARTS = 1024


# --- Tables -----------------------------------------------------------------------------------------------------------


def walk(automaton: Automaton, *, period: int, tick: int = 1, check: Check | None = None) -> int:
    """The least table from the last place to the first, handed to a check place by place; its bound.

    Where many places are alike, what one cycle of `CYCLE` periods adds is taken for all of them.

    Args:
        automaton: whose table.
        period: places of one length of windows.
        tick: how many places apart places of one kind are, where they are alike.
        check: what the table is handed to.
    """
    settling, cycle = (rounded * period // tick * tick for rounded in (SETTLING, CYCLE))
    place, values, marked = automaton.places, automaton.ends(automaton.places), None
    alike = _alike(automaton, tick)
    mark_at = 0
    while place:
        if not mark_at and alike[place] >= settling + 2 * cycle:
            mark_at = place - settling
        if place == mark_at:
            marked = values
            if check:
                check.mark()
        if marked is not None and place == mark_at - cycle:
            times = int(alike[place]) // cycle
            reached = marked > NEVER // 2
            rise = max(0, int((values - marked)[reached].max()))
            values, place, marked = np.where(reached, values + times * rise, values), place - times * cycle, None
            if check:
                check.repeated(times, rise)
            continue
        values = _earlier(automaton, values, place)
        place -= 1
        if check:
            check.earlier(values)
    return max(0, int(values[automaton.entries].max()))


def _alike(automaton: Automaton, tick: int) -> list[int]:
    """For each place, how many places from it towards the first are like those a tick later."""
    found = [0] * (automaton.places + 1)
    kinds = [automaton.kind(place) for place in range(1, automaton.places + 1)]
    for place in range(1, automaton.places + 1 - tick):
        found[place] = found[place - 1] + 1 if kinds[place - 1] == kinds[place - 1 + tick] else 0
    return found


def _earlier(automaton: Automaton, values: Table, place: int) -> Table:
    """The least values before a place, from those after it."""
    found = automaton.ends(place - 1).copy()
    for moves in automaton.moves(place):
        best = (values[moves.targets] + moves.charges).max(axis=0)
        np.maximum(found[moves.states], best, out=found[moves.states])
    return found


# --- Charges and prices -----------------------------------------------------------------------------------------------


def good_charges(lags: SignedLags, known: Held) -> Charges:
    """Charges of the changes for k = 1, with good near distances."""

    def cost(charged: Charges) -> int:
        changes = held_changes(lags, charged, known)
        return walk(changes, period=known.length, tick=changes.every)

    tried = sorted({min(lags.longest, max(_LEAST_MEMORY, round(known.length * share))) for share in _HELD_NEAR})
    found = {near: cost(charges(lags, _LEAST_MEMORY, near)) for near in tried}
    near = min(found, key=lambda near: found[near])
    finer = charges(lags, _HELD_MEMORY, near)
    return finer if cost(finer) <= found[near] else charges(lags, _LEAST_MEMORY, near)


def good_prices(lags: SignedLags, known: TwoCounts) -> tuple[Charges, Prices]:
    """Charges of the changes for larger k, with good near distances, and good prices."""
    run = known.places / known.runs
    tried = sorted({min(lags.longest, max(_SOUGHT_MEMORY, round(run * share))) for share in _PRICED_NEAR})
    found = {near: _best_prices(lags, charges(lags, _SOUGHT_MEMORY, near), known) for near in tried}
    near = min(found, key=lambda near: found[near][0])
    value, prices = found[near]
    finer = charges(lags, _PRICED_MEMORY, near)
    better = _priced(lags, finer, known, prices) <= value
    return finer if better else charges(lags, _SOUGHT_MEMORY, near), prices


def _priced(lags: SignedLags, charged: Charges, known: TwoCounts, prices: Prices) -> int:
    changes = priced_changes(lags, charged, known, prices)
    return walk(changes, period=known.length) + price_of_all(known, prices)


def _best_prices(lags: SignedLags, charged: Charges, known: TwoCounts) -> tuple[int, Prices]:
    """Where the bound, a convex function of two prices, is nearly least, and its value there.

    One of the two inequalities is usually of little use: each price is sought alone, then both between the two points.
    """
    most = 4 * (lags.values[0] + charged.change)
    highest = Prices(2 * most // known.length, most)
    seen: dict[Prices, int] = {}

    def at(prices: Prices) -> int:
        if prices not in seen:
            seen[prices] = _priced(lags, charged, known, prices)
        return seen[prices]

    start = least(lambda price: at(Prices(price, 0)), highest.start, 8)
    change = least(lambda price: at(Prices(0, price)), highest.change, 8)
    least(lambda part: at(Prices(start * part // _PARTS, change * (_PARTS - part) // _PARTS)), _PARTS, 6)
    best = min(seen, key=lambda prices: seen[prices])
    return seen[best], best


def least(bound: Callable[[int], int], highest: int, rounds: int = 14) -> int:
    """Where a convex function of a price in 0..highest is nearly least, by golden section."""
    ratio = (5**0.5 - 1) / 2
    low, high = 0.0, float(highest)
    inner, outer = high - ratio * (high - low), low + ratio * (high - low)
    at_inner, at_outer = bound(int(inner)), bound(int(outer))
    for _ in range(rounds):
        if at_inner <= at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - ratio * (high - low)
            at_inner = bound(int(inner))
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + ratio * (high - low)
            at_outer = bound(int(outer))
    return int(inner if at_inner <= at_outer else outer)
