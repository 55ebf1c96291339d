r"""The least error of any additive Gaussian mechanism: how far a plan is from the best possible.

A mechanism adds Gaussian noise of covariance C, of any shape, to the exact answers of one query, d numbers; its
guarantee is that of noise of unit scale at unit sensitivity if `g' C^-1 g <= 1` for every change g that one neighbour
can make. `limit` bounds the root mean square of the d standard errors, `sqrt(tr C / d)`, from below, by the duality of
`dual`. The bounds are for Gaussian noise: under approximate budgets Laplace noise may undercut them where one neighbour
changes few numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.ask.windows import longest_window, window_steps
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.strategies.search.any_limits import any_limit
from dpwindows.strategies.search.drawn_items import drawn_changes
from dpwindows.strategies.search.dual import (
    Averages,
    Intervals,
    Listed,
    Shifts,
    Suffixes,
    circulant_bound,
    dual_bound,
    improve_weights,
    improved,
    root_trace,
)
from dpwindows.strategies.search.item_limits import History, histories
from dpwindows.strategies.search.period_limits import LONGEST_PERIOD, period_limit
from dpwindows.strategies.search.spectrum import ROUNDS, grid_size, interval_weights, pair_counts

# Horizons up to which T x T matrices are used, and how often the weights of random histories are improved.
_DENSE, _AVERAGED = 400, 12
# Those up to which the windows that hold two steps are counted.
_TOGETHER = 1024
# The longest stretch that random histories are told apart in by one matrix, and weights that are left out.
_WIDE, _NEGLIGIBLE = 1024, 1e-3
# Up to this length filters have searched for weights of intervals. Of longer ones a fourth of the rounds claims 0.02 %
# less, in a fourth of the time.
_SEARCHED = 366
# The most occurrences in a window that are drawn: a larger k is taken for this one. The most numbers, of steps and
# thresholds, that changes of several thresholds are told apart in.
_MOST_DRAWN, _MOST_TOGETHER = 16, 1200
# Of rolling windows this long few lie in the range that is worked out at once.
_LONG = 100
# Horizons up to which all changes of any windows are enumerated.
_SQUARE_EVENT, _SQUARE_ITEM = 16, 10


@lru_cache(maxsize=128)
def limit(window: WindowFamily, k: int, unit: Unit, steps: int) -> float | None:
    """A lower bound on the rms error of "at least k" over the windows, per unit of Gaussian noise; None if unknown.

    In units of the noise scale that the budget buys for a sensitivity of 1. Valid for a query alone and jointly with
    others: leaving answers out of a joint release leaves a mechanism for the rest.

    Of series the answers of some steps in a row are also a mechanism for a range that begins with them, of logs without
    an event before: over such blocks the squared errors add up.
    """
    jointly = _over_all(window, k, unit, steps)
    series = isinstance(window, (Rolling, Cumulative)) and isinstance(unit, (EventLevel, ItemPerPeriod))
    if not series or steps <= _DENSE:
        return jointly
    squared = _square_over_blocks(steps, lambda size: limit(window, k, unit, size) or 0.0)
    return max(jointly or 0.0, math.sqrt(squared / steps))


@lru_cache(maxsize=32)
def together_limit(window: Rolling, thresholds: tuple[int, ...], unit: Unit, steps: int) -> float | None:
    """As `limit`, for several thresholds together: on the rms error over all of them; None where no more is known.

    Of *windows of one step* an item may do in each what it likes: its changes in one are those that an item makes of as
    many cumulative counts, one for each threshold, with independent signs; or, if it is added or removed, as many as it
    has occurrences for, by chance. Of longer windows occurrences are drawn (`drawn_items`).
    """
    number, changed = len(thresholds), isinstance(unit, ItemLevel)
    if not isinstance(unit, (ItemLevel, ItemAddRemove)) or window.length >= steps:
        return None
    if window.length > 1:
        if steps * number > _MOST_TOGETHER or thresholds[-1] > _MOST_DRAWN:
            return None
        return _average_bound([_mean_products(drawn_changes(steps, window.length, thresholds, changed=changed))])
    if changed:
        return math.sqrt(steps) * _interval_limit(number, number)
    # Counted for 0, 1, ... or all thresholds, as often each.
    counted = np.tri(number + 1, number, -1)
    mean = counted.mean(axis=0)
    spread = counted.T @ counted / (number + 1) - np.outer(mean, mean)
    return root_trace(spread, mean, steps) / math.sqrt(steps * number)


@lru_cache(maxsize=32)
def occurrences_limit(window: WindowFamily, unit: Unit, steps: int) -> float | None:
    """The same for occurrences, of which one item has at most one; None on long ranges. N of them err N times as much.

    One that comes in step t changes the windows that hold t, `g_t`. With a step drawn at random `E[g g'] = G'G / T`,
    the rows of G being these; for an item that changes, from one step to another drawn apart, it is twice that less the
    means. The trace of the root is the sum of the singular values of G, the roots of the eigenvalues of `G G'`: how
    many windows hold both of two steps.
    """
    if steps > _TOGETHER:
        return None
    first, last = window_steps(window, steps)
    held = np.zeros((steps, steps))
    np.add.at(held, (first - 1, last - 1), 1.0)
    both = np.triu(held.cumsum(axis=0)[:, ::-1].cumsum(axis=1)[:, ::-1])
    both += np.triu(both, 1).T
    spread = both / steps
    if isinstance(unit, ItemLevel):
        centred = spread - spread.mean(axis=0)
        spread = 2 * (centred - centred.mean(axis=1, keepdims=True))
    values = np.linalg.eigvalsh(spread)
    return float(np.sqrt(np.maximum(values, 0.0)).sum() / math.sqrt(len(first))) * (1 - 1e-9)


def _square_over_blocks(steps: int, bound: Callable[[int], float]) -> float:
    """The sum of squared errors over blocks of steps, each of which errs by no less than the bound of its size."""
    blocks, rest = divmod(steps, _DENSE)
    return sum(count * size * bound(size) ** 2 for count, size in ((blocks, _DENSE), (1, rest)) if count * size)


def _over_all(window: WindowFamily, k: int, unit: Unit, steps: int) -> float | None:
    """A lower bound from changes of the whole range."""
    if isinstance(unit, ItemPerPeriod):
        return limit(window, k, ItemLevel(), steps) if unit.steps >= steps else _within(window, k, unit.steps, steps)
    if not isinstance(unit, (EventLevel, ItemLevel, ItemAddRemove)):
        return None
    if isinstance(window, AnyWindow):
        return _square_limit(window, unit, steps)
    length = window.length if isinstance(window, Rolling) else steps
    reach = min(length, steps)
    if isinstance(unit, EventLevel) or reach == steps:
        if isinstance(unit, ItemAddRemove):
            return _suffix_limit(steps)
        single = _interval_limit(steps, reach)
        return single if k == 1 or reach == steps else max(single, _runs_limit(steps, reach, k))
    changed = isinstance(unit, ItemLevel)
    least_error = _item_limit(steps, reach, changed=changed)
    return least_error if k == 1 or reach == 1 else max(least_error, _drawn_limit(steps, reach, k, changed=changed))


def _within(window: WindowFamily, k: int, period: int, steps: int) -> float | None:
    """One item that changes within a period shorter than the range.

    It may change by one occurrence, so the bound for an event holds, and cumulative counts change no more than by one.
    Rolling counts change in more ways (`period_limits`). Each block as long as a period may change like an item: long
    periods are looked at in this way.
    """
    least_error = limit(window, k, EventLevel(), steps)
    if least_error is None or not isinstance(window, Rolling) or window.length >= steps:
        return least_error
    least_error = max(
        least_error, period_limit(steps, window.length, period, lambda first: _interval_limit(first, first))
    )
    if period > LONGEST_PERIOD:
        item = limit(window, k, ItemLevel(), period) or 0.0
        least_error = max(least_error, item * float(np.sqrt(steps // period * period / steps)))
    return least_error


# --- Sets of changes ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _interval_limit(steps: int, reach: int) -> float:
    """One event, or a cumulative count of an item that changes: every interval of at most `reach` steps occurs."""
    weights, _ = interval_weights(reach, grid_size(reach), ROUNDS if reach <= _SEARCHED else ROUNDS // 4)
    # Pairs at distance d: sum_{n > d} w_n (n - d).
    least_error = circulant_bound(np.cumsum(np.cumsum(weights[::-1]))[::-1], steps, steps)
    if steps <= _DENSE:
        intervals = Intervals(steps, reach)
        least_error = max(least_error, dual_bound(intervals, intervals.spread(weights), mirrored=True))
    return least_error


def _runs_limit(steps: int, reach: int, k: int) -> float:
    """One event, rolling counts, k > 1: patterns of at most k runs in `reach` places, after the first `reach` steps.

    Every such pattern occurs there: let the event be at the first run's first step s, with k-1 other occurrences of
    its item before or at s. At the end of each run but the last let one of them, W steps old, leave the window; at
    the start of the next let a new one enter; and let one enter at the end of the last run. That needs steps before
    s, where a second run begins beyond step W. Parts of patterns are patterns. So the steps from W+1 on have the bound
    for long horizons, or that of all shifts that meet them; the first W steps are a mechanism of their own, for a
    cumulative count.
    """
    patterns, weights = run_weights(reach, k)
    free = steps - reach
    least_error = circulant_bound(weights @ pair_counts(patterns), free, steps)
    if free > 0 and steps <= _DENSE:
        shifts = Shifts.of(free, patterns[:, :, None] * patterns[:, None, :])
        block = dual_bound(shifts, shifts.spread(weights), mirrored=True)
        least_error = max(
            least_error, float(np.sqrt((free * block**2 + reach * _interval_limit(reach, reach) ** 2) / steps))
        )
    return least_error


@lru_cache(maxsize=64)
def _suffix_limit(steps: int) -> float:
    """Beyond the dense horizon, that of blocks: a suffix of the horizon is one of the block it begins in."""
    squared = _square_over_blocks(steps, lambda size: dual_bound(Suffixes(size), np.full(size, 1.0 / size)))
    return float(np.sqrt(squared / steps))


@lru_cache(maxsize=64)
def _item_limit(steps: int, length: int, *, changed: bool) -> float:
    """One item added or removed, or changed, for k = 1 and so for every k: from random histories of it (`item_limits`).

    A long range is cut into stretches of one size with W steps between them that are left out, where runs of one
    stretch end. Let the item do in each what it does in the others, drawn anew, and, if it changes, with a sign drawn
    anew. Then `E[g g']` has E[f f'] of a stretch less the product of the means on its diagonal, once for each, and
    besides the product of all means, which are 0 with such signs (`root_trace`). The weights of histories are those of
    a shorter range. A stretch less, as long as may be, is another bound: the rest is claimed to be without an error.
    """
    drawn = histories(length, changed=changed)
    least_error = _long_limit(steps, length, drawn, changed=changed) if length > _LONG else 0.0
    if steps <= _DENSE:
        return least_error or _average_bound([one.from_the_start(steps) for one in drawn])
    return max(least_error, _in_stretches(steps, length, partial(_weighed, length, changed=changed), changed=changed))


def _drawn_limit(steps: int, length: int, k: int, *, changed: bool) -> float:
    """The same for k > 1, from random occurrences (`drawn_items`), and so for every larger k.

    Of an item with one occurrence more at the steps 1, W + 1, 2 W + 1, ..., each window holds one of these.
    """

    @cache
    def products(size: int) -> FloatArray:
        return _mean_products(drawn_changes(size, length, [min(k, _MOST_DRAWN)], changed=changed))

    # Of one stretch there are no steps between that would be left out; what is not in it is claimed without an error.
    within = min(steps, _WIDE)
    alone = _average_bound([products(within)]) * math.sqrt(within / steps)
    return alone if within == steps else max(alone, _in_stretches(steps, length, products, changed=changed))


def _mean_products(changes: NDArray[np.float32]) -> FloatArray:
    """Of changes of the shape (thresholds, steps, changes)."""
    rows = changes.reshape(-1, changes.shape[-1])
    return np.asarray((rows @ rows.T).astype(np.float64) / rows.shape[1])


def _in_stretches(steps: int, length: int, products: Callable[[int], FloatArray], *, changed: bool) -> float:
    """The bound from `E[g g']` over stretches of any size; 0 where windows are too long for it."""
    count = -(-(steps + length) // (_WIDE + length))
    tried = [(count, (steps + length) // count - length), (count - 1, _WIDE)] if 6 * length <= _WIDE else []
    traces = []
    for times, size in tried:
        if times:
            square = products(size)
            # An item is counted or not: its mean is its mean square.
            mean = np.zeros(size) if changed else np.diag(square).copy()
            traces.append(root_trace(square - np.outer(mean, mean), mean, times))
    return max(traces, default=0.0) / math.sqrt(steps)


def _weighed(length: int, size: int, *, changed: bool) -> FloatArray:
    """The mean products of the histories for k = 1, by their weights."""
    drawn = zip(histories(length, changed=changed), _weights(length, changed=changed), strict=True)
    return np.asarray(sum(weight * one.from_the_start(size) for one, weight in drawn if weight > _NEGLIGIBLE))


@lru_cache(maxsize=16)
def _weights(length: int, *, changed: bool) -> FloatArray:
    """Of the histories over a range that they are weighed for; they sum to 1."""
    squares = np.array([one.from_the_start(_DENSE) for one in histories(length, changed=changed)])
    _, weights = improved(Averages(squares), np.full(len(squares), 1.0 / len(squares)), _AVERAGED)
    return np.asarray(weights / weights.sum())


def _long_limit(steps: int, length: int, drawn: list[History], *, changed: bool) -> float:
    """A lower bound where windows are so long that few histories begin within a stretch.

    The first W steps are a mechanism of their own, for a cumulative count, and so are blocks of the others.
    """
    squared = length * (_interval_limit(length, length) if changed else _suffix_limit(length)) ** 2
    squared += _square_over_blocks(steps - length, lambda size: _average_bound([one.later_on(size) for one in drawn]))
    return float(np.sqrt(squared / steps))


def _average_bound(squares: list[FloatArray]) -> float:
    rounds = _AVERAGED if len(squares) > 1 else 1
    return dual_bound(Averages(np.array(squares)), np.full(len(squares), 1.0 / len(squares)), rounds)


@lru_cache(maxsize=64)
def _square_limit(window: AnyWindow, unit: Unit, steps: int) -> float:
    """Any windows, from changes with k = 1 (they occur for every k, with k-fold occurrences).

    On short ranges these are all changes, on longer ones random ones (`any_limits`).
    """
    event, longest = isinstance(unit, EventLevel), longest_window(window, steps)
    if steps <= (_SQUARE_EVENT if event else _SQUARE_ITEM):
        return _enumerated(steps, longest, event=event)
    return any_limit(steps, longest, event=event, changed=isinstance(unit, ItemLevel))


def _enumerated(steps: int, longest: int, *, event: bool) -> float:
    first, last = np.triu_indices(steps)
    released = last - first < longest
    changes = _event_squares(steps) if event else _item_squares(steps)
    rows = np.unique(np.array([change[first, last][released] for change in changes]), axis=0)
    return dual_bound(Listed(rows), np.full(len(rows), 1.0 / len(rows)), rounds=150)


def _event_squares(steps: int) -> Iterator[FloatArray]:
    for low, step, high in product(range(steps), repeat=3):
        if low <= step <= high:
            square = np.zeros((steps, steps))
            square[low : step + 1, step : high + 1] = 1.0
            yield square


def _item_squares(steps: int) -> Iterator[FloatArray]:
    for occurs in product((0, 1), repeat=steps):
        before = np.concatenate([[0], np.cumsum(occurs)])
        yield (before[None, 1:] - before[:-1, None] > 0).astype(float)


# --- Patterns of several runs -----------------------------------------------------------------------------------------


# Patterns drawn, how often they are improved, by how many flips each time, and how many of these are kept.
_DRAWN, _IMPROVED, _FLIPS, _KEPT = 150, 12, 3, 40
# Updates of weights in each round and at the end, their power, and weights that are dropped.
_UPDATES, _LAST_UPDATES, _POWER, _DROPPED = 12, 60, 1.8, 1e-5


@lru_cache(maxsize=32)
def run_weights(reach: int, runs: int) -> tuple[FloatArray, FloatArray]:
    """Patterns of at most `runs` runs in `reach` places, shape (patterns, places), and weights that sum to 1.

    Patterns drawn at random are improved by flips of single places, as long as these raise the true cost `g'Gg` under
    the noise that is best for the weights so far, and are weighed anew. Each gives a valid bound.
    """
    runs = min(runs, (reach + 1) // 2)
    patterns = drawn = _draw(reach, runs)
    weights, lags = improve_weights(pair_counts(patterns), np.ones(len(patterns)), _LAST_UPDATES, _POWER)
    for _ in range(_IMPROVED):
        patterns, weights = patterns[weights > _DROPPED], weights[weights > _DROPPED]
        flipped = np.unique(_flip(np.vstack([patterns, drawn[::7]]), lags, runs), axis=0)
        dearest = np.argsort(-(pair_counts(flipped) @ np.append(lags[:1], 2 * lags[1:])), kind="stable")[:_KEPT]
        patterns = np.vstack([patterns, flipped[dearest]])
        weights = np.append(weights * (9 * len(dearest) / weights.sum()), np.ones(len(dearest)))
        weights, lags = improve_weights(pair_counts(patterns), weights, _UPDATES, _POWER)
    return patterns, improve_weights(pair_counts(patterns), weights, _LAST_UPDATES, 1.0)[0]


def _draw(reach: int, runs: int) -> FloatArray:
    """Single runs, and runs with ends that are evenly spaced or near it."""
    draw, places = np.random.default_rng(0), np.arange(reach)
    rows = [places < length for length in np.unique(np.rint(np.geomspace(1, reach, 24)))]
    for _ in range(_DRAWN):
        count, gap = int(draw.integers(1, runs + 1)), 0.6 * draw.random()
        period = reach / (count - gap)
        even = np.add.outer(np.arange(count) * period, [0.0, (1 - gap) * period]).ravel()
        ends = even + draw.choice((0.0, 0.3, 1.0)) * gap * period * draw.normal(size=2 * count)
        rows.append(np.searchsorted(np.rint(np.sort(ends)), places, side="right") % 2 == 1)
    patterns = np.unique(np.array(rows, dtype=np.float64), axis=0)
    return patterns[patterns.any(axis=1) & (_count_runs(patterns) <= runs)]


def _count_runs(patterns: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(np.diff(patterns, axis=1, prepend=0.0), 0).sum(axis=1))


def _flip(patterns: FloatArray, lags: FloatArray, runs: int) -> FloatArray:
    """Patterns improved by the best flip of one place, a few times as long as there is one."""
    places, patterns = np.arange(patterns.shape[1]), patterns.copy()
    gram = lags[np.abs(places[:, None] - places)]
    for _ in range(_FLIPS):
        # A flip between two ones joins two runs, one between two zeros begins a run.
        sign, beside = 1 - 2 * patterns, np.pad(patterns, ((0, 0), (1, 1)))
        count = _count_runs(patterns)[:, None] + sign * (1 - beside[:, :-2] - beside[:, 2:])
        gain = np.where(count <= runs, 2 * sign * (patterns @ gram) + gram[0, 0], -np.inf)
        best = gain.argmax(axis=1)
        better = gain.max(axis=1) > 1e-9 * gram[0, 0]
        patterns[better, best[better]] = 1 - patterns[better, best[better]]
    return patterns
