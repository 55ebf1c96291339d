"""`filter`: a fractional-difference filter along time, for cumulative and rolling counts under Gaussian noise.

Causal and with finite taps, so the same strategy serves batch and continual release. Its two parameters are chosen
for the least error at the very sensitivity it is charged for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import Cumulative, Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.bounds import period_sensitivity, sensitivity
from dpwindows.kernel.bounds.pattern_sensitivity import rolling_patterns_event_l2, rolling_patterns_period_l2
from dpwindows.kernel.maps.integer_maps import Filter
from dpwindows.kernel.shapes import BOUNDED_UNITS, Design, Problem, SeriesDesign
from dpwindows.strategies.search.fractional import LONGEST, integer_taps, real_interval_norms, real_taps, search

NAME = "filter"
# Up to this horizon the search charges a cumulative filter exactly as the certificate does.
_EXACT_SEARCH = 512
# Cross terms between runs are worked out up to this many cells (thresholds times squared length): a few seconds.
_CHAINED = 10_000_000


def design(problem: Problem) -> Design | None:
    """The filter of least error, or None where it does not apply."""
    if not isinstance(problem.unit, BOUNDED_UNITS):
        return None
    if problem.law != GAUSSIAN or not isinstance(problem.window, (Cumulative, Rolling)):
        return None
    horizon = min(problem.steps, LONGEST)
    reach = problem.window.length if isinstance(problem.window, Rolling) else horizon

    def error(alpha: float, decay: float) -> float:
        taps, inverse = real_taps(alpha, decay, horizon), real_taps(-alpha, decay, horizon)
        variance = np.cumsum(inverse**2)
        worst = variance[-1] if problem.criterion == "max" else variance.mean()
        return float(np.sqrt(_real_bound(problem, taps, horizon) * worst))

    alpha, decay = search(error, reach)
    taps = integer_taps(alpha, decay, problem.steps, problem.bits)
    bound, proof = _certified(problem, taps)
    return SeriesDesign(
        problem,
        NAME,
        bound,
        proof,
        {"alpha": alpha, "decay": decay, "taps": len(taps), "bits": problem.bits},
        map=Filter(problem.steps, taps),
    )


def _certified(problem: Problem, taps: tuple[int, ...]) -> tuple[int, str]:
    """The certified squared L2 sensitivity of integer taps, and the name of its proof."""
    steps, thresholds = problem.steps, problem.thresholds
    if isinstance(problem.window, Rolling):
        length = problem.window.length
        if isinstance(problem.unit, (ItemPerPeriod, ItemLevel)):
            return _certified_signed(problem, taps, length)
        if isinstance(problem.unit, EventLevel):
            bound, proof = sensitivity.rolling_filter_event_l2, "rolling_filter_event_l2"
        else:
            bound, proof = sensitivity.rolling_filter_add_remove_l2, "rolling_filter_add_remove_l2"
        apart = bound(taps, length, steps, thresholds)
        reach = min(length, steps)
        if isinstance(problem.unit, EventLevel) and sum(thresholds) > 1 and sum(thresholds) * reach**2 <= _CHAINED:
            together = rolling_patterns_event_l2(taps, length, steps, thresholds)
            if together < apart:
                return together, "dpwindows.kernel.bounds.pattern_sensitivity.rolling_patterns_event_l2"
        return apart, f"dpwindows.kernel.bounds.sensitivity.{proof}"
    if isinstance(problem.unit, ItemAddRemove):
        response = [int(value) for value in sensitivity.prefix_sums(taps, steps)]
        value = sensitivity.cumulative_counter_add_remove_l2(response, [1] * steps, steps, thresholds)
        return value, "dpwindows.kernel.bounds.sensitivity.cumulative_counter_add_remove_l2"
    if isinstance(problem.unit, EventLevel):
        value = sensitivity.cumulative_filter_event_l2(taps, steps, thresholds)
        return value, "dpwindows.kernel.bounds.sensitivity.cumulative_filter_event_l2"
    value = sensitivity.cumulative_filter_item_l2(taps, steps, thresholds)
    return value, "dpwindows.kernel.bounds.sensitivity.cumulative_filter_item_l2"


def _certified_signed(problem: Problem, taps: tuple[int, ...], length: int) -> tuple[int, str]:
    """Rolling counts of an item that changes: the lesser of two bounds."""
    span = problem.unit.steps if isinstance(problem.unit, ItemPerPeriod) else problem.steps
    arguments = taps, length, span, problem.steps, problem.thresholds
    apart = period_sensitivity.rolling_filter_period_l2(*arguments)
    together = rolling_patterns_period_l2(*arguments)
    if together < apart:
        return together, "dpwindows.kernel.bounds.pattern_sensitivity.rolling_patterns_period_l2"
    return apart, "dpwindows.kernel.bounds.period_sensitivity.rolling_filter_period_l2"


def _real_bound(problem: Problem, taps: np.ndarray, horizon: int) -> float:
    """The same bounds in floating point, for the search."""
    if isinstance(problem.window, Rolling):
        return _real_rolling(problem, taps, horizon)
    response = np.cumsum(taps)
    if isinstance(problem.unit, ItemAddRemove):
        return float((response**2).sum())
    if len(problem.thresholds) == 1 and horizon <= _EXACT_SEARCH:
        # Row n of this matrix is the response less itself n steps later: all intervals at once.
        padded = np.concatenate([response, np.zeros(horizon)])
        later = np.array([np.roll(padded, n)[:horizon] for n in _lengths(horizon)])
        return float(((response - later) ** 2).sum(axis=1).max())
    return float(real_interval_norms(taps, horizon)[-1])


def _lengths(horizon: int) -> list[int]:
    """A few interval lengths, dense near both ends, that find the longest norm well enough for a search."""
    return sorted({min(horizon, max(1, round(horizon * share))) for share in np.linspace(0.02, 1, 24)})


def _real_rolling(problem: Problem, taps: np.ndarray, horizon: int) -> float:
    assert isinstance(problem.window, Rolling)
    length, unit = problem.window.length, problem.unit
    if isinstance(unit, (ItemPerPeriod, ItemLevel)):
        span = min(unit.steps, horizon) if isinstance(unit, ItemPerPeriod) else horizon
        reach = period_sensitivity.affected_ends(length, span, horizon)
        norms = [float(value) for value in real_interval_norms(taps, reach)]
        return sum(_real_signed(norms, k, length, span, reach) for k in problem.thresholds)
    event = isinstance(unit, EventLevel)
    reach = min(length, horizon) if event else horizon
    norms = [float(value) for value in real_interval_norms(taps, reach)]
    if event:
        return sensitivity.runs_bound(norms, sum(problem.thresholds), reach, gaps=len(problem.thresholds) == 1)
    return sum(
        sensitivity.runs_bound(norms, sensitivity.most_starts(k, length, horizon), reach, gaps=True)
        for k in problem.thresholds
    )


def _real_signed(norms: Sequence[float], k: int, length: int, span: int, reach: int) -> float:
    """The cost of changes that are near the worst: runs of one sign, and runs of either sign by turns.

    One item can start being counted `k - 1/2` times in W steps and be out as long as it is counted: two such items, in
    turn, make runs of `W / (2k-1)`. Where the span is short there are turns in its first and last places only.
    """
    runs = period_sensitivity.most_signed_runs(k, length, span)
    plain = sensitivity.runs_bound(norms, runs if 2 * span > length else k, reach, gaps=False)
    if span == 1:
        return plain
    if span > length:
        return max(plain, _turns_cost(norms, [(0, reach, min(runs, round(reach * (2 * k - 1) / length)))]))
    outer = min(span - 1, reach - 1)
    return max(plain, _turns_cost(norms, [(0, outer, runs // 2), (reach - outer, reach, runs // 2)]))


def _turns_cost(norms: Sequence[float], stretches: Sequence[tuple[int, int, int]]) -> float:
    """The cost of runs by turns that fill each stretch: its first place, its end, and how many runs.

    With q(n) the cost of n places, unit changes a_i at x_i cost `-1/2 sum a_i a_j q(|x_i - x_j|)`.
    """
    changes = np.zeros(len(norms) + 1)
    sign = 1.0
    for first, last, runs in stretches:
        for begin, end in pairwise(np.rint(np.linspace(first, last, max(1, runs) + 1)).astype(int)):
            changes[begin] += sign
            changes[end] -= sign
            sign = -sign
    places = np.flatnonzero(changes)
    apart = np.array(norms)[np.abs(places[:, None] - places[None, :])]
    return float(-(changes[places][:, None] * apart * changes[places][None, :]).sum() / 2)
