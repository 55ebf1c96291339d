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
        raise InputError(f"the wanted standard error must be a finite number of counts above 0, got {target!r}")
    search = _Search(plan, float(target))
    search.bracket()
    search.narrow()
    if search.best is None:
        raise search.refusal or InputError(
            f"no {name} up to {_value(_HIGHEST):g} brings the standard error of every query down to {target:g} counts"
        )
    return search.best


class _Search:
    """Two positions on the grid of three-digit numbers: one whose budget is `enough`, a lower one that is `short`."""

    def __init__(self, plan: Callable[[float], Plan], target: float) -> None:
        self._plan, self._target = plan, target
        self.enough: int | None = None
        self.short: int | None = None
        self.best: Plan | None = None
        self.refusal: InputError | None = None
        self._errors: dict[int, float] = {}

    def bracket(self) -> None:
        """Find both positions from budget 1 on, supposing that error and budget are about inverse to each other."""
        position = 0
        while self.enough is None or self.short is None:
            error = self._try(position)
            edge = _HIGHEST if self.enough is None else _LOWEST
            if position == edge:
                return
            # A step beyond where the target should be; larger ones where the guess was no good.
            ahead = 2.0 if not math.isfinite(error) else math.log10(max(error / self._target, 1e-12))
            step = max(0.02, 1.05 * abs(ahead), 0.3 if len(self._errors) > 3 else 0.0)
            position += round(_DECADE * step) * (1 if self.enough is None else -1)
            position = min(max(position, _LOWEST), _HIGHEST)

    def narrow(self) -> None:
        """Interpolate until the two positions are neighbours; beside each guess look a little to the other side."""
        reach = 1
        while self.short is not None and self.enough is not None and self.enough - self.short > 1:
            guess = self._interpolate(self.short, self.enough)
            self._try(min(max(guess, self.short + 1), self.enough - 1))
            if self.enough - self.short > 1:
                beside = self.enough - reach if guess >= self.enough else self.short + reach
                self._try(min(max(beside, self.short + 1), self.enough - 1))
                reach *= 4

    def _interpolate(self, short: int, enough: int) -> int:
        above, below = self._errors[short], self._errors[enough]
        if not math.isfinite(above) or not 0 < below < above:
            return (short + enough) // 2
        low, high = math.log(_value(short)), math.log(_value(enough))
        share = math.log(above / self._target) / math.log(above / below)
        return _position(math.exp(low + share * (high - low)))

    def _try(self, position: int) -> float:
        try:
            plan = self._plan(_value(position))
            error = worst_error(plan)
        except InputError as refusal:
            # Refused at every budget: the request is at fault. At small ones only: the budget is.
            self.refusal, error = refusal, math.inf
        self._errors[position] = error
        if error <= self._target:
            self.enough, self.best, self.refusal = position, plan, None
        else:
            self.short = position
        return error


def _value(position: int) -> float:
    """The three-digit number at a position, as its decimal text reads."""
    decade, digits = divmod(position, _DECADE)
    return float(f"{digits + 100}e{decade - 2}")


def _position(value: float) -> int:
    """The position of the least three-digit number that is at least `value`, up to rounding."""
    decade = math.floor(math.log10(value))
    return decade * _DECADE + math.ceil(value / 10.0**decade * 100 - 1e-9) - 100
