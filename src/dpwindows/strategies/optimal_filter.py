"""`optimal-filter`: the stationary filter of least error for the very patterns it is charged for, Gaussian noise.

For rolling counts at event level (and for items within one step) and under item add/remove, and for cumulative counts
but for item add/remove. Its spectrum comes from `dpwindows.strategies.search.spectrum`: for single intervals the
optimum over all stationary noise; for several runs the optimum for the bound that certifies it (`run_patterns`), which
keeps the cross terms between runs. Its minimum-phase causal filter is rounded to integers and charged for what these
cost, whatever their signs. Causal, so batch and continual release share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemPerPeriod
from dpwindows.ask.queries import Cumulative, Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.bounds.counted_by_rule import runs_by_rule
from dpwindows.kernel.bounds.pattern_sensitivity import LONGEST_CHAIN
from dpwindows.kernel.bounds.run_patterns import Lags, best_chain
from dpwindows.kernel.bounds.sensitivity import most_runs
from dpwindows.kernel.maps.filters import Filter
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import StepDesign
from dpwindows.kernel.shapes.design import Design
from dpwindows.kernel.shapes.series import SeriesDesign
from dpwindows.kernel.untrusted.pattern_search import (
    counted_by_memory,
    counted_by_neighbours,
    memory_for,
    recent_patterns,
    some_lengths,
)
from dpwindows.strategies.search.fractional import LONGEST
from dpwindows.strategies.search.spectrum import Oracle, causal_taps, grid_size, interval_spectrum, patterns_spectrum
from dpwindows.strategies.twins import twins

NAME = "optimal-filter"
# Resolution, in bits, of autocorrelations handed to the bounds while a filter is designed.
_SEARCH_BITS = 40
# Cells of the tables of recent places filled in each round of the design, for few places and for many.
_FEW_PLACES, _CELLS_FOR_FEW, _CELLS_FOR_MANY = 64, 4_000_000, 1_000_000
# Runs at least this long on average are designed by their nearest neighbours, shorter ones by recent places.
_LONG_RUNS = 14
# Halvings of a price for places.
_PRICE_ROUNDS = 8


def design(problem: Problem) -> Design | None:
    """The filter, or None where it does not apply."""
    if problem.law != GAUSSIAN or not isinstance(problem.window, (Cumulative, Rolling)):
        return None
    steps, thresholds = problem.steps, problem.thresholds
    length = problem.window.length if isinstance(problem.window, Rolling) else steps
    if isinstance(problem.window, Cumulative):
        # Under add/remove changes are suffixes, which have better strategies.
        if isinstance(problem.unit, ItemAddRemove) or len(thresholds) > 1 or steps > LONGEST:
            return None
        spectrum = _interval_spectrum(steps)
    elif isinstance(problem.unit, EventLevel) or problem.unit == ItemPerPeriod(1):
        # Within one step an item changes each threshold by runs of one sign, as an event does, but all at once.
        runs = thresholds if isinstance(problem.unit, EventLevel) else thresholds[-1:]
        reach = min(length, steps)
        if reach > (LONGEST if runs == (1,) else LONGEST_CHAIN):
            return None
        spectrum = _interval_spectrum(reach) if runs == (1,) else _runs_spectrum(reach, runs, 1)
    elif not isinstance(problem.unit, ItemAddRemove):
        # Changes of both signs: filters that are best for runs of one sign are bad for them, and smooth ones are good.
        return None
    else:
        if steps > LONGEST_CHAIN:
            return None
        k = max(thresholds)
        runs = (max(1, runs_by_rule(problem.rule, k, most_runs(k, length, steps))),)
        spectrum = _runs_spectrum(steps, runs, min(length, steps) if k == 1 else 1)
    taps = _rounded(causal_taps(spectrum, LONGEST), problem.bits)
    return SeriesDesign(problem, NAME, {"taps": len(taps), "bits": problem.bits}, map=Filter(steps, taps))


def outdone(problem: Problem) -> bool:
    """True for items added or removed over many windows: `offset-filter` errs less there, by 8 % or more.

    Measured for 24 to 500 steps and windows of a quarter of them at most. To find the best spectrum for these takes
    most of the time of a plan.
    """
    many = isinstance(problem.window, Rolling) and max(24, 4 * problem.window.length) <= problem.steps <= LONGEST_CHAIN
    return many and isinstance(problem.unit, ItemAddRemove) and problem.rule == EVERY_OCCURRENCE


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """The same filter in a stream."""
    return twins(design, problem, horizon)


def _rounded(taps: FloatArray, bits: int) -> tuple[int, ...]:
    """The taps times `2^bits`, rounded; trailing zeros dropped."""
    scaled = [int(tap) for tap in np.rint(taps * 2.0**bits)]
    while len(scaled) > 1 and scaled[-1] == 0:
        scaled.pop()
    return tuple(scaled)


@lru_cache(maxsize=64)
def _interval_spectrum(reach: int) -> FloatArray:
    return interval_spectrum(reach, grid_size(reach))


@lru_cache(maxsize=64)
def _runs_spectrum(reach: int, runs: tuple[int, ...], shortest: int) -> FloatArray:
    """`log G` for one pattern in `reach` places for each number of runs, the patterns disjoint."""
    runs = tuple(min(count, (reach + 1) // 2) for count in runs)
    start = interval_spectrum(max(1, reach // sum(runs)), grid_size(reach))
    if len(runs) == 1 and reach // runs[0] >= _LONG_RUNS:
        columns, oracle, beyond = _by_neighbours(reach, runs[0], shortest)
    else:
        columns, oracle, beyond = _by_memory(reach, runs)
    distances = np.arange(reach)
    silent = len(runs) * np.where(distances > beyond, reach - distances, 0)
    rounds = 20 if reach <= _FEW_PLACES and len(runs) == 1 else 14
    return patterns_spectrum(start, columns, oracle, silent, rounds)


def _by_neighbours(reach: int, runs: int, shortest: int) -> tuple[list[FloatArray], Oracle, int]:
    """Columns to begin with, the oracle, and the distance beyond which pairs are not counted, for long runs."""
    some = some_lengths(reach)
    sizes = np.unique(np.append(some, min(shortest, reach)))

    def oracle(lags: FloatArray) -> FloatArray:
        whole = _whole(lags)

        def priced(price: int) -> tuple[int, FloatArray]:
            _, chain = best_chain(whole, sizes, some, runs, price, shortest=shortest)
            return sum(chain), counted_by_neighbours(chain, reach)

        return _filling(priced, whole.values[0], reach)

    columns = [counted_by_neighbours(chain, reach) for chain in _even_chains(reach, runs, shortest)]
    return columns, oracle, shortest + 2


def _by_memory(reach: int, runs: tuple[int, ...]) -> tuple[list[FloatArray], Oracle, int]:
    """The same for short runs, one pattern for each number of runs."""
    cells = _CELLS_FOR_FEW if reach <= _FEW_PLACES and len(runs) == 1 else _CELLS_FOR_MANY
    memory = min(memory_for(reach, count, cells) for count in runs)

    def oracle(lags: FloatArray) -> FloatArray:
        whole = _whole(lags)

        def priced(price: int) -> tuple[int, FloatArray]:
            found = recent_patterns(whole, runs, memory, price)
            pairs = [counted_by_memory(pattern, memory) for pattern in found]
            return sum(map(sum, found)), np.asarray(np.sum(pairs, axis=0))

        return _filling(priced, whole.values[0], reach)

    columns = [counted_by_memory([1] * length + [0] * (reach - length), memory) for length in range(1, reach + 1)]
    for chain in _even_chains(reach, runs[0] if len(runs) == 1 else 0, 1):
        pattern = [1 - place % 2 for place, count in enumerate(chain) for _ in range(count)]
        columns.append(counted_by_memory(pattern + [0] * (reach - len(pattern)), memory))
    return columns, oracle, memory


def _filling(priced: Callable[[int], tuple[int, FloatArray]], highest: int, places: int) -> FloatArray:
    """The pairs of a pattern that takes all places or fewer, or of a mixture of two that takes them all on average.

    Certificates charge for the mixture: they hold at every price for a place, and so at the price where the best
    pattern turns from one that is too large into one that is not.

    Args:
        priced: from a price to the places that the best pattern takes, and how many pairs it has at each distance.
        highest: a price at which none is too large.
        places: how many there are.
    """
    more, too_many = priced(0)
    if more <= places:
        return too_many
    low, high, less, few = 0, highest, 0, np.zeros(len(too_many))
    for _ in range(_PRICE_ROUNDS):
        middle = (low + high) // 2
        taken, pairs = priced(middle)
        if taken > places:
            low, more, too_many = middle, taken, pairs
        else:
            high, less, few = middle, taken, pairs
    share = (places - less) / (more - less)
    return np.asarray(share * too_many + (1 - share) * few)


def _even_chains(reach: int, runs: int, shortest: int) -> Iterator[list[int]]:
    """Runs and gaps of equal lengths that fill the places, and single runs."""
    yield from ([length] for length in some_lengths(reach))
    for count in some_lengths(min(runs, reach // (shortest + 1) + 1))[1:]:
        for gap in some_lengths(reach // (2 * count))[:32]:
            length, longer = divmod(reach - gap * (count - 1), count)
            if length >= shortest:
                chain = [length + 1, gap] * longer + [length, gap] * (count - longer)
                yield chain[:-1]


def _whole(lags: FloatArray) -> Lags:
    return Lags(tuple(int(np.ceil(lag / lags[0] * 2.0**_SEARCH_BITS)) for lag in lags), 0)
