"""Good memory, near distances and prices for `kernel.families.patterns`: searches that no proof rests on.

A bound holds for every choice of what is remembered, of near distances and of prices; a good one makes it small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.dearest_path import Table
from dpwindows.kernel.families.changes_of_two_counts import Held, held_changes, price_of_all, priced_changes
from dpwindows.kernel.families.patterns import held_bound, priced_bound
from dpwindows.kernel.families.run_patterns import (
    Lags,
    PriceOfOnes,
    RecentPlaces,
    recent_bound,
)
from dpwindows.kernel.families.signed_patterns import Charges, Prices, SignedLags, TwoCounts, charges

# Places remembered of signed patterns: while near distances are sought, and in the bound; for k = 1, and for larger k.
_LEAST_MEMORY, _HELD_MEMORY, _SOUGHT_MEMORY, _PRICED_MEMORY = 3, 4, 4, 6
# Near distances that are tried: parts of the windows' length for k = 1, and of the mean length of runs for larger k.
_HELD_NEAR, _PRICED_NEAR = (0.0, 0.15, 0.25, 0.4, 0.6), (0.4, 0.6, 0.9)
# Steps between two prices.
_PARTS = 1024
# Work allowed in the table of recent places (cells filled), and the most places it may remember.
CELLS = 20_000_000
_MOST_MEMORY = 16
# Cells filled while a price for disjoint patterns is sought, and the most tangents.
_SEARCH_CELLS, _TANGENTS = 2_000_000, 12
# How many lengths of runs and gaps are tried while a price is sought.
_TRIED = 96
# Places that are enough to seek prices in, and runs in them.
_FEW, _RUNS = 512, 16
# Halvings of a price for every one, and the part of a place's own cost that pairs across wide gaps may be.
_PRICE_ROUNDS, _NEGLIGIBLE = 11, 1e-4


# --- Charges and prices -----------------------------------------------------------------------------------------------


def good_charges(lags: SignedLags, known: Held) -> tuple[int, int]:
    """What to remember of the changes for k = 1, and the largest near distance."""

    def cost(memory: int, near: int) -> int:
        return held_bound(lags, known, memory, near)

    tried = sorted({min(lags.longest, max(_LEAST_MEMORY, round(known.length * share))) for share in _HELD_NEAR})
    costs = {near: cost(_LEAST_MEMORY, near) for near in tried}
    near = min(costs, key=lambda near: costs[near])
    return (_HELD_MEMORY if cost(_HELD_MEMORY, near) <= costs[near] else _LEAST_MEMORY), near


def good_charges_for_runs(lags: SignedLags, known: Held, runs: int) -> tuple[int, int, int]:
    """As `good_charges` for changes of at most `runs` runs, with a good price for a change."""
    memory, near = good_charges(lags, known)
    charged = charges(lags, memory, near)
    changes = held_changes(lags, charged, known)

    def cost(price: int) -> int:
        priced = replace(changes, prices=Prices(0, price))
        return priced.dearest(known.length) + 2 * price * runs

    return memory, near, least(cost, 4 * (lags.values[0] + charged.change), 10)


def good_prices(lags: SignedLags, known: TwoCounts) -> tuple[int, int, int, int]:
    """What to remember of the changes for larger k, the largest near distance, and good prices."""
    run = known.places / known.runs
    tried = sorted({min(lags.longest, max(_SOUGHT_MEMORY, round(run * share))) for share in _PRICED_NEAR})
    best = {near: _best_prices(lags, charges(lags, _SOUGHT_MEMORY, near), known) for near in tried}
    near = min(best, key=lambda near: best[near][0])
    value, prices = best[near]
    better = priced_bound(lags, known, _PRICED_MEMORY, near, prices) <= value
    return _PRICED_MEMORY if better else _SOUGHT_MEMORY, near, prices.start, prices.change


def _priced(lags: SignedLags, charged: Charges, known: TwoCounts, prices: Prices) -> int:
    changes = priced_changes(lags, charged, known, prices)
    return changes.dearest(known.length) + price_of_all(known, prices)


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


# --- Runs of one sign ------------------------------------------------------------------------------------------------


def memory_for(length: int, runs: int, cells: int = CELLS) -> int:
    """How many recent places `recent_bound` can remember within an allowance of work."""
    runs = min(runs, (length + 1) // 2)
    affordable = (cells // (length * (runs + 1))).bit_length() - 1
    return max(1, min(length - 1, affordable, _MOST_MEMORY))


def some_lengths(places: int) -> NDArray[np.int64]:
    """All lengths 1..places, or for many places a selection that thins out."""
    if places <= _TRIED:
        return np.arange(1, places + 1)
    few = _TRIED // 4
    grown = np.rint(np.geomspace(few, places, _TRIED - few + 1)).astype(np.int64)
    return np.unique(np.concatenate([np.arange(1, few), grown]))


def place_price(lags: Lags, runs: int, *, shortest: int, rounds: int) -> int:
    """A price at which the best chain of some lengths just fits into the places.

    It chooses among valid bounds, so it need not be exact.
    """
    some = some_lengths(lags.length)
    sizes = np.unique(np.append(some, min(shortest, lags.length)))
    return _over_places(lags, lambda price: best_chain(lags, sizes, some, runs, price, shortest=shortest), rounds)[1]


def good_prices_for_ones(lags: Lags, mean: PriceOfOnes, runs: int, shortest: int) -> tuple[int, int, int]:
    """A price for every one, a price for places, and the widest gap worth its pairs, for `offset_patterns`.

    They make `mean.of(price) + neighbour_bound`, a convex function of both prices, nearly least. In many places they
    are sought in fewer, for what a place is worth is the same there.
    """
    places = max(_FEW, _RUNS * shortest)
    if 2 * places <= lags.length:
        parts = lags.length // places
        fewer = PriceOfOnes(mean.offset * parts, mean.places // parts, mean.shift)
        short = Lags(lags.values[: lags.length // parts], lags.shift)
        return good_prices_for_ones(short, fewer, -(-runs // parts), shortest)
    some = some_lengths(lags.length)
    sizes = np.unique(np.concatenate([some, np.arange(shortest, shortest + 16)]))
    sizes = sizes[sizes <= lags.length]
    widest = _reach(lags)
    prices: dict[int, int] = {}

    def cost(price: int) -> int:
        most, prices[price] = _over_places(
            lags, lambda by: best_chain(lags, sizes, some, runs, by, shortest=shortest, price=price, widest=widest)
        )
        return mean.of(price) + (most << lags.shift)

    # No price lowers a bound where ones cost nothing and are as many as they can be.
    highest = lags.values[0] if mean.offset or mean.places < lags.length else 0
    price = least(cost, highest, _PRICE_ROUNDS)
    cost(price)
    return price, prices[price], widest


def _over_places(
    lags: Lags, chain_at: Callable[[int], tuple[int, list[int]]], rounds: int = _PRICE_ROUNDS
) -> tuple[int, int]:
    """The least value of a chain's bound over prices of places, nearly, and the price: by halving where chains fit.

    The higher the price, the shorter the chain.
    """
    value, chain = chain_at(0)
    best = (value, 0)
    low, high = 0, lags.values[0]
    for _ in range(rounds if sum(chain) > lags.length else 0):
        middle = (low + high) // 2
        value, chain = chain_at(middle)
        best = min(best, (value + middle * lags.length, middle))
        low, high = (middle, high) if sum(chain) > lags.length else (low, middle)
    return best


def _reach(lags: Lags) -> int:
    """The distance beyond which lags add up to next to nothing."""
    beyond = np.cumsum(np.abs(np.array(lags.values, dtype=np.float64))[::-1])[::-1]
    return max(1, int((beyond > lags.values[0] * _NEGLIGIBLE).sum()))


def price_of_disjoint(lags: Lags, runs: tuple[int, ...]) -> int:
    """A price for every one at which `recent_bound`, for disjoint patterns, bounds them best; nearly.

    The sum falls with the price by the ones that the best patterns have together, and every place is paid for: least is
    where these turn from too many into few enough. That price is sought from tangent to tangent.
    """
    free = (lags.length * len(runs)).bit_length()
    # Ones are counted in the lowest bits, for which as many are left out of the lags as do not fit in.
    lost = Lags.fitting([value << free for value in lags.values], max(runs)).shift
    coarse = Lags(tuple(value >> lost << free for value in lags.values), 0)
    memory = min(memory_for(lags.length, count, _SEARCH_CELLS) for count in runs)

    def tangent(price: int) -> tuple[int, int]:
        """The ones of patterns that are best at a price, and what these cost without it."""
        bound = recent_bound(coarse, runs, memory, max(0, (price >> lost << free) - 1))
        ones = bound % (1 << free)
        return ones, (bound >> free << lost) + price * ones

    empty = len(runs) * (coarse.positive_pairs(memory) >> free << lost)
    (many, dear), (few, cheap), price = tangent(1 << lost), (0, empty), 0
    for _ in range(_TANGENTS if many > lags.length else 0):
        price = min((dear - cheap) // (many - few), lags.values[0])
        ones, cost = tangent(price)
        if cost - price * ones <= max(dear - price * many, cheap - price * few):
            break
        many, dear, few, cheap = (ones, cost, few, cheap) if ones > lags.length else (many, dear, ones, cost)
    return price


def recent_patterns(lags: Lags, runs: tuple[int, ...], memory: int, price: int = 0) -> list[list[int]]:
    """Patterns that attain `recent_bound`, one for each number of runs: for designing filters."""
    if lags.length < 2:
        return [[1] for _ in runs]
    recent = RecentPlaces(lags, runs, min(memory, lags.length - 1), price)
    tables = [recent.last]
    for place in range(lags.length, 1, -1):
        tables.append(recent.before(place, tables[-1]))
    return [_followed(recent, tables[::-1], min(count, recent.rows - 1)) for count in runs]


def _followed(recent: RecentPlaces, tables: Sequence[Table], left: int) -> list[int]:
    """The pattern that adds the most with so many runs left; a table tells what is left after each place."""
    size, state, pattern = len(recent.gains), 0, []
    for table in tables:
        begun = min(left, 1 - state % 2 if state < size else 0)
        if state < size - 1:
            zero, one, gain = 2 * state % size, (2 * state + 1) % size, recent.gains[state]
        else:
            # A run of more than m places, or of m that becomes one.
            zero, one, gain = size - 2, state + 1, recent.rises[recent.memory + 1 + state - size]
        may = left or recent.rows == 1 or state % 2 or state >= size
        pattern.append(int(bool(may) and table[left - begun, one] + gain > table[left, zero]))
        state, left = (one, left - begun) if pattern[-1] else (zero, left)
    return pattern


# --- Columns: what a bound counts, as a linear function of the autocorrelation --------------------------------------


def counted_by_memory(pattern: Sequence[int], memory: int) -> NDArray[np.float64]:
    """How many pairs at each distance `recent_bound` counts in a pattern (ones at distance 0)."""
    ones = np.array(pattern, dtype=np.int64)
    ends = np.flatnonzero(np.diff(ones, prepend=0, append=0))
    # Within runs: n - d for each run of n > d ones.
    longer = np.cumsum(np.bincount(ends[1::2] - ends[0::2], minlength=len(ones) + 1)[::-1])[::-1]
    pairs = np.cumsum(longer[:0:-1])[::-1].astype(np.float64)
    near = min(memory + 1, len(ones))
    pairs[:near] = [ones[d:] @ ones[: len(ones) - d] for d in range(near)]
    return pairs


def counted_by_neighbours(chain: Sequence[int], length: int) -> NDArray[np.float64]:
    """How many pairs at each distance `neighbour_bound` counts in a chain `n_1, g_1, n_2, ...`."""
    distances = np.arange(length)

    def span(n: int) -> NDArray[np.float64]:
        return np.asarray(np.maximum(float(n) - distances, 0.0), dtype=np.float64)

    runs, gaps = list(chain[0::2]), list(chain[1::2])
    pairs = sum((span(n) for n in runs), np.zeros(length))
    for gap, (n, after) in zip(gaps, pairwise(runs), strict=True):
        pairs += span(n + gap + after) - span(n + gap) - span(gap + after) + span(gap)
    return np.asarray(pairs, dtype=np.float64)


# --- Chains -----------------------------------------------------------------------------------------------------------


# Less than any value that can be reached.
_NEVER = -(1 << 61)


def best_chain(
    lags: Lags,
    sizes: NDArray[np.int64],
    widths: NDArray[np.int64],
    runs: int,
    place_price: int,
    *,
    shortest: int = 1,
    price: int = 0,
    widest: int | None = None,
) -> tuple[int, list[int]]:
    """The best chain of runs with lengths from `sizes` and gaps from `widths`, as `n_1, g_1, n_2, ...`: not proved.

    What `kernel.families.run_patterns.neighbour_bound` counts, with the chain itself.

    Its value is `sum q(n_i) + sum 2 c - place_price (sum n_i + sum g_i) - price sum n_i`; a gap wider than `widest`,
    if that is given, counts as `widest + 1` places that no pair spans.
    """
    lags.require_price(place_price)
    lags.require_price(price)
    norms, pairs = _pairs_across(lags, tuple(sizes.tolist()), tuple(widths.tolist()))
    alone = norms[sizes] - (place_price + price) * sizes
    gaps, worth = widths, pairs
    if widest is not None:
        # One gap more stands for all wider ones, with 0 for its pairs; not where lags beyond are positive.
        widest = max(widest, max(distance for distance, lag in enumerate(lags.values) if lag > 0 or distance == 0))
        few = int(np.searchsorted(widths, widest, side="right"))
        far = np.where(np.add.outer(sizes, sizes) + widest + 1 <= lags.length, 0, _NEVER)
        gaps, worth = np.append(widths[:few], widest + 1), np.concatenate([pairs[:few], far[None]])
    worth = worth - place_price * gaps[:, None, None]
    links = np.maximum(worth.max(axis=0), _NEVER)
    inner = np.where(sizes >= shortest, 0, _NEVER)
    chain, history = alone, []
    best = (int(alone.max()), 0, int(alone.argmax()))
    for count in range(1, min(runs, (lags.length + shortest) // (shortest + 1))):
        history.append(np.maximum(chain + inner, _NEVER))
        before, chain = chain, np.maximum((links + history[-1]).max(axis=1), _NEVER) + alone
        if (chain <= before).all():
            break  # one run more gains nowhere, so two gain no more than one: what is added only grows with the chain
        if int(chain.max()) > best[0]:
            best = (int(chain.max()), count, int(chain.argmax()))
    value, count, last = best
    backwards = [int(sizes[last])]
    for earlier in history[:count][::-1]:
        following, last = last, int((links[last] + earlier).argmax())
        backwards += [int(gaps[worth[:, last, following].argmax()]), int(sizes[last])]
    return value, backwards[::-1]


# Prices are tried one after the other with the same lags.
@lru_cache(maxsize=2)
def _pairs_across(lags: Lags, sizes: tuple[int, ...], widths: tuple[int, ...]) -> tuple[Table, Table]:
    """The norms, and `2 c(n, g, n')` by gap and the lengths beside it; `_NEVER` where they do not fit in."""
    norms, length = np.array(lags.norms(), dtype=np.int64), lags.length
    runs, gaps = np.array(sizes, dtype=np.int64), np.array(widths, dtype=np.int64)
    totals = runs[:, None] + runs + gaps[:, None, None]
    beside = norms[np.minimum(gaps[:, None] + runs, length)]
    pairs = norms[np.minimum(totals, length)] - beside[:, :, None] - beside[:, None, :] + norms[gaps][:, None, None]
    pairs[totals > length] = _NEVER
    return norms, pairs
