"""`filter`: a fractional-difference filter along time, for cumulative and rolling counts under Gaussian noise.

The filter is causal and has finitely many taps, so it serves batch and continual release alike. Its two parameters are
chosen for the least error at the sensitivity that it is charged for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import Cumulative, Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.advice import from_witness
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.counted_by_rule import runs_by_rule
from dpwindows.kernel.families.runs import affected_ends, changed_runs, most_signed_runs
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.filters import Filter
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import Case
from dpwindows.strategies.search.choice import apart_from_noise
from dpwindows.strategies.search.fractional import LONGEST, integer_taps, real_interval_norms, real_taps, search
from dpwindows.strategies.search.spectrum import pair_counts

NAME = "filter"
# Up to this horizon the search charges a cumulative filter exactly as the certificate does.
_EXACT_SEARCH = 512

Cost = Callable[[FloatArray], float]


def design(problem: Problem) -> Design | None:
    """The filter of least error, or None where it does not apply."""
    if problem.law != GAUSSIAN or not isinstance(problem.window, (Cumulative, Rolling)):
        return None
    alpha, decay = _search(apart_from_noise(problem))
    taps = integer_taps(alpha, decay, problem.steps, problem.bits)
    parameters = {"alpha": alpha, "decay": decay, "taps": len(taps), "bits": problem.bits}
    return Design(problem, Series(Filter(taps)), NAME, parameters)


@lru_cache(maxsize=512)
def _search(problem: Problem) -> tuple[float, float]:
    """The exponent and the decay of least error."""
    horizon = min(problem.steps, LONGEST)
    rolling = isinstance(problem.window, Rolling)
    cost = _rolling_cost(problem, horizon) if rolling else _cumulative_cost(problem, horizon)

    def error(alpha: float, decay: float) -> float:
        taps, inverse = real_taps(alpha, decay, horizon), real_taps(-alpha, decay, horizon)
        variance = np.cumsum(inverse**2)
        worst = variance[-1] if problem.criterion == "max" else variance.mean()
        return float(np.sqrt(cost(taps) * worst))

    return search(error, problem.window.length if isinstance(problem.window, Rolling) else horizon)


def _cumulative_cost(problem: Problem, horizon: int) -> Cost:
    """The certified bound of cumulative counts in floating point, from taps: of all counts from the first step on.

    Or, where an item may go as well, of the dearest interval, and over long ranges about that of the longest one.
    """
    if isinstance(problem.unit, ItemAddRemove):
        return lambda taps: float((np.cumsum(taps) ** 2).sum())
    if len(problem.thresholds) > 1 or horizon > _EXACT_SEARCH:
        return lambda taps: float(real_interval_norms(taps, horizon)[-1])

    def dearest_interval(taps: FloatArray) -> float:
        # A row for each interval: the response less itself as many steps later as it has places.
        response = np.cumsum(taps)
        later = np.append(response, 0.0)[_places_before(horizon)]
        return float(((response - later) ** 2).sum(axis=1).max())

    return dearest_interval


@lru_cache(maxsize=16)
def _places_before(horizon: int) -> IntArray:
    """For a few interval lengths and every place: the place that lies this far before it, or -1 if none does.

    The lengths find the longest norm well enough for a search.
    """
    lengths = sorted({min(horizon, max(1, round(horizon * share))) for share in np.linspace(0.02, 1, 24)})
    return np.asarray(np.maximum(np.arange(horizon) - np.array(lengths)[:, None], -1))


# --- Rolling counts ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Runs:
    """The dearest changes of one threshold, nearly: runs of one sign or, where these cost more, of either by turns.

    Attributes:
        most: how many runs of one sign there are at most.
        places: how many places they take at most.
        gaps: whether a place is left between two of them.
        turns: stretches that are filled by turns, each as its first place, its end and how many runs it has.
    """

    most: int
    places: int
    gaps: bool
    turns: tuple[tuple[int, int, int], ...] = ()


def _rolling_cost(problem: Problem, horizon: int) -> Cost:
    """The certified bound of rolling counts in floating point, from taps."""
    reach, changes = _changes(problem, horizon)

    def cost(taps: FloatArray) -> float:
        norms = real_interval_norms(taps, reach)
        return sum(_runs_cost(norms, reach, runs) for runs in changes)

    return cost


def _changes(problem: Problem, horizon: int) -> tuple[int, list[_Runs]]:
    """In how many places the filter is charged for changes, and those of each threshold."""
    assert isinstance(problem.window, Rolling)
    length, unit, thresholds, rule = problem.window.length, problem.unit, problem.thresholds, problem.rule
    if isinstance(unit, (ItemPerPeriod, ItemLevel)):
        span = min(unit.steps, horizon) if isinstance(unit, ItemPerPeriod) else horizon
        reach = affected_ends(length, span, horizon)
        return reach, [_signed_runs(k, length, span, reach, rule) for k in thresholds]
    changes = changed_runs(Case(problem, None, horizon, from_witness({}))) or []
    reach = changes[0].within
    return reach, [_Runs(one.most, one.places, one.gaps) for one in changes]


def _runs_cost(norms: FloatArray, reach: int, runs: _Runs) -> float:
    """`families.norms.runs_bound` for norms in floating point, of all numbers of runs at once; for the search.

    With q(n) the cost of n places and q(0) = 0, unit changes a_i at x_i cost `-1/2 sum a_i a_j q(|x_i - x_j|)`.
    """
    shorter, size, longer, size_of_longer = _splits(runs.most, reach, runs.places, gaps=runs.gaps)
    costs = longer * norms[size_of_longer] + shorter * norms[size]
    plain = float(costs.max(initial=float(norms[0])))
    return max(plain, -float(_turns(len(norms), runs.turns) @ norms)) if runs.turns else plain


@lru_cache(maxsize=64)
def _splits(runs: int, length: int, places: int, *, gaps: bool) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The even split for every number of runs: how many shorter ones of how many places, and as much of longer ones."""
    counts = np.arange(1, min(runs, length) + 1)
    totals = np.minimum(length - gaps * (counts - 1), places)
    counts, totals = counts[totals >= counts], totals[totals >= counts]
    size, longer = np.divmod(totals, counts)
    return counts - longer, size, longer, np.minimum(size + 1, length)


def _signed_runs(k: int, length: int, span: int, reach: int, rule: CountingRule) -> _Runs:
    """Changes that are near the worst: runs of one sign, and runs of either sign by turns.

    One item can start being counted `k - 1/2` times in W steps and be out as long as it is counted: two such items, in
    turn, make runs of `W / (2k-1)`. Where the span is short there are turns in its first and last places only.
    """
    runs = min(most_signed_runs(k, length, span), 2 * runs_by_rule(rule, k, reach))
    plain = _Runs(runs if 2 * span > length else k, reach, gaps=False)
    if span == 1:
        return plain
    if span > length:
        return replace(plain, turns=((0, reach, min(runs, round(reach * (2 * k - 1) / length))),))
    outer = min(span - 1, reach - 1)
    return replace(plain, turns=((0, outer, runs // 2), (reach - outer, reach, runs // 2)))


@lru_cache(maxsize=16)
def _turns(places: int, stretches: tuple[tuple[int, int, int], ...]) -> FloatArray:
    """`sum a_i a_j` over the pairs of these changes at every distance 0..places-1."""
    changes = np.zeros(places)
    sign = 1.0
    for first, last, runs in stretches:
        for begin, end in pairwise(np.rint(np.linspace(first, last, max(1, runs) + 1)).astype(int)):
            changes[begin] += sign
            changes[end] -= sign
            sign = -sign
    return pair_counts(changes)
