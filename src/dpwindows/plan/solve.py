"""From the error one can accept to the smallest budget that gives it.

The error of a plan is that of its worst query: the root of the mean (or the largest, by the plan's criterion) over a
query's windows of variance plus squared bias bound. It falls as the budget grows. Budgets are searched among the
numbers of three digits, with the planner in the loop, so the answer is rounded up and can be typed in again::

    plan = dw.solve_epsilon([dw.Rolling(28)], target_std=10, delta=1e-6, timeline=..., unit=dw.EventLevel())
    plan.budget.epsilon
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dpwindows.ask.privacy import ZCDP, ApproxDP, PureDP, Unit
from dpwindows.ask.queries import Query, WindowFamily
from dpwindows.ask.timeline import Timeline
from dpwindows.errors import InputError
from dpwindows.plan.plan import Plan

# Numbers of three digits are counted from 1.00 = 0 on, 900 to a decade.
_DECADE = 900
_LOWEST, _HIGHEST = -12 * _DECADE, 12 * _DECADE
# So often, but for once, the next guess is where the error should be right.
_TRUSTED = 4


def solve_epsilon(
    queries: Iterable[Query | WindowFamily],
    *,
    target_std: float,
    timeline: Timeline,
    unit: Unit,
    delta: float | None = None,
    **options: Any,
) -> Plan:
    """The plan of the smallest epsilon, to three digits, whose worst query errs by at most `target_std` counts.

    Args:
        queries: what is asked, as for `Plan`.
        target_std: the standard error that is wanted, in counts, by the plan's criterion.
        timeline: the public range and step.
        unit: the unit of privacy.
        delta: the delta of an approximate budget; None or 0 for a pure one.
        options: further arguments of `Plan`: strategy, criterion, weights, singleton, confidence.

    Returns:
        A plan; its `budget` is what was solved for.

    Raises:
        InputError: something asked for is not legal, or no epsilon up to 10^12 is enough.

    The smallest epsilon considered is 10^-12: below it, whatever error is reached is owed to delta alone.
    """
    asked = list(queries)

    def plan(epsilon: float) -> Plan:
        budget = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
        return Plan(asked, timeline=timeline, unit=unit, budget=budget, **options)

    return _smallest(plan, target_std, "epsilon")


def solve_rho(
    queries: Iterable[Query | WindowFamily], *, target_std: float, timeline: Timeline, unit: Unit, **options: Any
) -> Plan:
    """The plan of the smallest rho of zero-concentrated privacy; otherwise as `solve_epsilon`."""
    asked = list(queries)

    def plan(rho: float) -> Plan:
        return Plan(asked, timeline=timeline, unit=unit, budget=ZCDP(rho), **options)

    return _smallest(plan, target_std, "rho")


def worst_error(plan: Plan) -> float:
    """The error of the plan's worst query, in counts, by its criterion."""
    squared = [
        allotment.variance(measure) + allotment.bias_bounds() ** 2
        for allotment in plan.allotments
        for measure in allotment.query.measures
    ]
    return float(np.sqrt(max(errors.max() if plan.criterion == "max" else errors.mean() for errors in squared)))


def _smallest(plan: Callable[[float], Plan], target: float, name: str) -> Plan:
    if isinstance(target, bool) or not isinstance(target, (int, float)) or not 0 < target < math.inf:
        raise InputError(f"target_std must be a finite number of counts above 0, got {target!r}")
    best: Plan | None = None
    refusal: InputError | None = None
    # Positions on the grid of three-digit numbers: budgets up to `short` are too small, and `enough` is large enough.
    short, enough, position, tries = _LOWEST - 1, _HIGHEST + 1, 0, 0
    before, power = (1.0, math.inf), 1.0
    while enough - short > 1:
        tries += 1
        try:
            found = plan(_value(position))
            error = worst_error(found)
        except InputError as refused:
            # Refused at every budget: the request is at fault. At small ones only: the budget is.
            refusal, error = refused, math.inf
        if error <= target:
            enough, best, refusal = position, found, None
        else:
            short = position
        # The error falls as a power of the budget, which two budgets tell. Where it is none, ever longer steps and then
        # halves find the way.
        value, ratio = _value(position), min(max(error / target, 1e-12), 100.0)
        if math.isfinite(before[1]) and math.isfinite(error) and before[1] != error:
            power = min(max(math.log(value / before[0]) / math.log(before[1] / error), 0.5), 8.0)
        before = value, error
        if tries % _TRUSTED:
            position = _position(min(max(value * ratio**power, 1e-12), 1e12))
        elif short < _LOWEST or enough > _HIGHEST:
            position += _DECADE * tries if ratio > 1 else -_DECADE * tries
        else:
            position = (short + enough) // 2
        position = min(max(position, short + 1), enough - 1)
    if best is None:
        raise refusal or InputError(
            f"no {name} up to {_value(_HIGHEST):g} brings the standard error of every query down to {target:g} counts"
        )
    return best


def _value(position: int) -> float:
    """The three-digit number at a position, as its decimal text reads."""
    decade, digits = divmod(position, _DECADE)
    return float(f"{digits + 100}e{decade - 2}")


def _position(value: float) -> int:
    """The position of the least three-digit number that is at least `value`, up to rounding."""
    decade = math.floor(math.log10(value))
    return decade * _DECADE + math.ceil(value / 10.0**decade * 100 - 1e-9) - 100
