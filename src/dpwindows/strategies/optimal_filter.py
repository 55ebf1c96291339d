"""`optimal-filter`: the stationary filter of least error for the very patterns it is charged for, Gaussian noise.

It serves rolling counts at event level, and for items within one step; those of distinct items that change within a
period not longer than windows; and cumulative counts but for items added or removed.

Its spectrum comes from `dpwindows.strategies.search.spectrum`: for single intervals and for changes within a period the
optimum over all stationary noise; for several runs the optimum for the bound that certifies it (`run_patterns`), which
keeps the cross terms between runs. Its minimum-phase causal filter is rounded to integers and charged for what these
cost, whatever their signs. Causal, so batch and continual release share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemPerPeriod
from dpwindows.ask.queries import Cumulative, Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.run_patterns import Lags
from dpwindows.kernel.families.runs import affected_ends
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.filters import Filter
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search.fractional import LONGEST, as_integers
from dpwindows.strategies.search.pattern_search import counted_by_memory, memory_for, recent_patterns, some_lengths
from dpwindows.strategies.search.portable import product
from dpwindows.strategies.search.spectrum import (
    Column,
    Oracle,
    causal_taps,
    cost_of,
    grid_size,
    interval_spectrum,
    pair_counts,
    patterns_spectrum,
)

NAME = "optimal-filter"
# Resolution, in bits, of autocorrelations handed to the bounds while a filter is designed.
_SEARCH_BITS = 40
# Cells of the tables of recent places filled in each round of the design, for few places and for many.
_FEW_PLACES, _CELLS_FOR_FEW, _CELLS_FOR_MANY = 64, 4_000_000, 1_000_000
# The most places in which several runs are sought.
_MOST_OF_RUNS = 512
# The most prices for places that are tried with one filter, and the part of a cost that makes no difference.
_PRICES, _ALIKE = 8, 1e-6
# The most places in which all pairs of runs are tried.
_MOST_OF_TWO_RUNS = 128
# The most steps of cumulative counts.
_LONGEST_TO_DATE = 1 << 15
# How often the patterns that a filter makes dear are sought while it is designed.
_ROUNDS = 15


def design(problem: Problem) -> Design | None:
    """The filter, or None where it does not apply."""
    if problem.law != GAUSSIAN or not isinstance(problem.window, (Cumulative, Rolling)):
        return None
    spectrum = _spectrum(problem)
    if spectrum is None:
        return None
    longest = LONGEST if isinstance(problem.window, Rolling) else max(LONGEST, problem.steps)
    taps = as_integers(np.rint(causal_taps(spectrum, longest) * 2.0**problem.bits))
    return Design(problem, Series(Filter(taps)), NAME, {"taps": len(taps), "bits": problem.bits})


def _spectrum(problem: Problem) -> FloatArray | None:
    """`log G` of the filter, or None where it does not apply."""
    steps, thresholds, unit = problem.steps, problem.thresholds, problem.unit
    if isinstance(problem.window, Cumulative):
        # Under add/remove changes are suffixes, which have better strategies.
        alone = not isinstance(unit, ItemAddRemove) and len(thresholds) == 1 and steps <= _LONGEST_TO_DATE
        return _interval_spectrum(steps) if alone else None
    assert isinstance(problem.window, Rolling)
    length = problem.window.length
    if isinstance(unit, EventLevel) or unit == ItemPerPeriod(1):
        # Within one step an item changes each threshold by runs of one sign, as an event does, but all at once.
        runs, reach = thresholds if isinstance(unit, EventLevel) else thresholds[-1:], min(length, steps)
    elif isinstance(unit, ItemPerPeriod):
        reach = affected_ends(length, unit.steps, steps)
        if thresholds != (1,) or unit.steps > length + 1 or reach > _MOST_OF_TWO_RUNS:
            return None
        return _two_runs_spectrum(TwoRuns(length, unit.steps, reach))
    else:
        # Of items added or removed `offset-filter` errs less. Changes of both signs: filters that are best for runs of
        # one sign are bad for them, and smooth ones are good.
        return None
    if runs == (1,):
        return _interval_spectrum(reach) if reach <= LONGEST else None
    return _runs_spectrum(reach, runs) if reach <= _MOST_OF_RUNS else None


@lru_cache(maxsize=64)
def _interval_spectrum(reach: int) -> FloatArray:
    return interval_spectrum(reach, grid_size(reach))


@lru_cache(maxsize=64)
def _two_runs_spectrum(changes: TwoRuns) -> FloatArray:
    start = interval_spectrum(-(-changes.length // 2), grid_size(changes.places))
    return patterns_spectrum(start, changes.first, changes, np.zeros(changes.places, dtype=np.int64), _ROUNDS)


@lru_cache(maxsize=64)
def _runs_spectrum(reach: int, runs: tuple[int, ...]) -> FloatArray:
    """`log G` for one pattern in `reach` places for each number of runs, the patterns disjoint."""
    runs = tuple(min(count, (reach + 1) // 2) for count in runs)
    start = interval_spectrum(max(1, reach // sum(runs)), grid_size(reach))
    columns, oracle, beyond = _by_memory(reach, runs)
    distances = np.arange(reach)
    silent = len(runs) * np.where(distances > beyond, reach - distances, 0)
    return patterns_spectrum(start, columns, oracle, silent, _ROUNDS)


def _by_memory(reach: int, runs: tuple[int, ...]) -> tuple[list[FloatArray], Oracle, int]:
    """Columns to begin with, the oracle, and the distance beyond which pairs are not counted."""
    cells = _CELLS_FOR_FEW if reach <= _FEW_PLACES and len(runs) == 1 else _CELLS_FOR_MANY
    memory = min(memory_for(reach, count, cells) for count in runs)

    def priced(lags: Lags, price: int) -> tuple[int, FloatArray]:
        worst = recent_patterns(lags, runs, memory, price)
        pairs = [counted_by_memory(pattern, memory) for pattern in worst]
        return sum(map(sum, worst)), np.asarray(np.sum(pairs, axis=0))

    columns = [counted_by_memory([1] * length + [0] * (reach - length), memory) for length in range(1, reach + 1)]
    for chain in _even_chains(reach, runs[0] if len(runs) == 1 else 0):
        pattern = [1 - place % 2 for place, count in enumerate(chain) for _ in range(count)]
        columns.append(counted_by_memory(pattern + [0] * (reach - len(pattern)), memory))
    return columns, _Filling(reach, priced), memory


class _Filling:
    """The dearest pattern that takes all places or fewer, or mixture of two that takes them all on average.

    Certificates charge for the mixture: they hold at every price for a place, and so at the price where the best
    pattern turns from one that is too large into one that is not. That price is sought from pattern to pattern: where
    the best ones so far, one too large and one that is not, are worth the same. Patterns stay known, for with the next
    filter it is often the same ones that are dear.

    Args:
        places: how many there are.
        priced: from lags and a price to the places that the best pattern takes, and its pairs at each distance.
    """

    def __init__(self, places: int, priced: Callable[[Lags, int], tuple[int, FloatArray]]) -> None:
        self._places, self._priced = places, priced
        self._taken, self._pairs = np.zeros(1), np.zeros((1, places))

    def __call__(self, lags: FloatArray) -> list[FloatArray]:
        """Pairs at each distance of what was the dearest on the way, and last of the dearest; shape (places,) each."""
        whole = Lags(tuple(int(np.ceil(lag / lags[0] * 2.0**_SEARCH_BITS)) for lag in lags), 0)
        costs = cost_of(np.array(whole.values, dtype=np.float64))
        dearest: list[FloatArray] = []
        for _ in range(_PRICES):
            worth = product(self._pairs, costs)
            price, large, small = self._turning(worth)
            few, many = self._taken[small], self._taken[large]
            share = (self._places - few) / (many - few) if many > few else 0.0
            dearest.append(share * self._pairs[large] + (1 - share) * self._pairs[small])
            taken, pairs = self._priced(whole, min(int(price), whole.values[0]))
            gained = product(pairs, costs) - price * taken - (worth[small] - price * few)
            if gained <= _ALIKE * product(dearest[-1], costs):
                break
            self._taken, self._pairs = np.append(self._taken, taken), np.vstack([self._pairs, pairs])
        return dearest

    def _turning(self, worth: FloatArray) -> tuple[float, int, int]:
        """The price where known patterns turn from too large to not, and one of either kind that is best there."""
        large, small = int(worth.argmax()), 0
        if self._taken[large] <= self._places:
            return 0.0, large, large
        while True:
            price = float((worth[large] - worth[small]) / (self._taken[large] - self._taken[small]))
            left = worth - price * self._taken
            best = int(left.argmax())
            if left[best] <= left[small] + _ALIKE * worth[large]:
                return price, large, small
            large, small = (best, small) if self._taken[best] > self._places else (large, best)


def _even_chains(reach: int, runs: int) -> Iterator[list[int]]:
    """Runs and gaps of equal lengths that fill the places, and single runs."""
    yield from ([length] for length in some_lengths(reach))
    for count in some_lengths(min(runs, reach // 2 + 1))[1:]:
        for gap in some_lengths(reach // (2 * count))[:32]:
            length, longer = divmod(reach - gap * (count - 1), count)
            if length >= 1:
                chain = [length + 1, gap] * longer + [length, gap] * (count - longer)
                yield chain[:-1]


# --- Changes within a period not longer than windows ------------------------------------------------------------------


# How many of the dearest are told of each kind, and lengths of runs to begin with.
_TOLD, _BEGUN = 5, 12


@dataclass(frozen=True)
class TwoRuns:
    """The changes for windows of `length` steps within a period of `span`, in `places` window ends, for k = 1.

    A change is one run of changed counts, or two of any signs; there are few, so every one is tried. The certificate of
    the filter is over all of them, too (`dpwindows.kernel.families.changes_of_two_counts.two_runs_bound`).
    """

    length: int
    span: int
    places: int

    @property
    def first(self) -> list[Column]:
        """Pair counts of single runs, to begin with."""
        lengths = np.unique(np.linspace(1, self.places, _BEGUN).astype(int))
        return [self._pairs(int(ones), 0, 0, 1) for ones in lengths]

    def __call__(self, lags: FloatArray) -> list[Column]:
        """Pair counts at each distance of the dearest changes under an autocorrelation, the dearest last."""
        norms = np.concatenate([[0.0], np.cumsum(np.cumsum(np.concatenate([lags[:1], 2 * lags[1:]])))])
        one, zeros, other = self._pairs_of_runs
        between = norms[one + zeros + other] - norms[one + zeros] - norms[zeros + other] + norms[zeros]
        apart = norms[one] + norms[other]
        worst = [(float(norms[ones]), (ones, 0, 0, 1)) for ones in _places_of_largest(norms, np.arange(1, len(norms)))]
        # Between two runs of one sign the other log counts the item for W ends.
        possible = {-1: np.arange(len(zeros)), 1: np.flatnonzero(zeros >= self.length)}
        for sign, of_them in possible.items():
            costs = apart + sign * between
            places = _places_of_largest(costs, of_them)
            worst += [(float(costs[i]), (int(one[i]), int(zeros[i]), int(other[i]), sign)) for i in places]
        return [self._pairs(*runs) for _, runs in sorted(worst)]

    @cached_property
    def _pairs_of_runs(self) -> tuple[IntArray, IntArray, IntArray]:
        """The lengths of two runs and of the zeros between them, the longer run first; all that fit in."""
        outer = np.arange(1, min(self.span - 1, self.places) + 1)
        zeros = np.arange(self.length + 1 - self.span, self.places - 1)
        one, between, other = np.meshgrid(outer, zeros, outer, indexing="ij")
        fits = (one + between + other <= self.places) & (one >= other)
        return one[fits], between[fits], other[fits]

    def _pairs(self, one: int, zeros: int, other: int, sign: int) -> Column:
        change = np.zeros(self.places)
        change[:one], change[one + zeros : one + zeros + other] = 1, sign
        return pair_counts(change)


def _places_of_largest(costs: FloatArray, of_them: IntArray) -> list[int]:
    """The places of a few of the largest costs among some."""
    if not len(of_them):
        return []
    told = np.argsort(costs[of_them], kind="stable")[-_TOLD:]
    return [int(place) for place in of_them[told]]
