"""Tumbling counts and counts to date, by the strategies for rolling and cumulative counts.

Tumbling counts are rolling counts of length 1 whose steps are periods, and counts to date are the cumulative counts of
each period by itself (`dpwindows.kernel.families.periods`). So one problem stands for all periods: strategies answer
it, and their designs are repeated in each period.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeGuard, TypeVar

from dpwindows.ask.periods import fewest_and_most, first_steps, sizes
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import Cumulative, PeriodFamily, Rolling, Tumbling, WindowFamily
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.periods import SeriesInPeriods, layout_of, periods_met, series_of
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search import limits
from dpwindows.strategies.search.pure_limits import many_neighbours, pure_scale

AnyDesign = TypeVar("AnyDesign", bound=Design)


def series_problem(problem: Problem, horizon: int | None) -> Problem:
    """The problem that stands for all periods; any other problem as it is.

    Args:
        problem: what is measured.
        horizon: the number of steps, None for a stream without an end.
    """
    if not isinstance(problem.window, PeriodFamily):
        return problem
    series = series_of(problem, layout_of(problem, horizon, *fewest_and_most(problem.window)))
    if isinstance(problem.window, Tumbling) and horizon is None:
        series = replace(series, steps=len(sizes(problem.window, problem.steps)))
    return series if horizon is None else replace(series, unit=series.unit.fit_to_range(series.steps))


def repeat_in_periods(problem: Problem, design: AnyDesign, horizon: int | None) -> AnyDesign | None:
    """What a strategy answered for the series problem, for all periods; None where it is no series."""
    if not isinstance(problem.window, PeriodFamily):
        return design
    if not isinstance(design.shape, Series):
        return None
    measured, window = design.shape.map, problem.window
    changed = dict[str, Any](problem=replace(problem, law=design.problem.law))
    if isinstance(design, StepDesign):
        fewest, most = fewest_and_most(window)
        if horizon is not None:
            most = int(sizes(window, horizon).max())
        changed |= {"shape": SeriesInPeriods(design.shape.causal, fewest, most, horizon), "horizon": horizon}
    else:
        # Maps of the whole series are as long as the longest period.
        continued = not isinstance(measured, (Filter, Identity, MatrixCounter))
        changed["shape"] = SeriesInPeriods.of_release(window, problem.steps, measured, continued=continued)
    return replace(design, **changed)


def limit(window: WindowFamily, k: int, unit: Unit, steps: int) -> float | None:
    """A lower bound on the rms error of any Gaussian noise, as `limits.limit`, for families with periods too.

    *Tumbling* counts are rolling counts of length 1. A span of L steps that meets m periods in a row may change all of
    their counts, with either sign, as m consecutive steps would those of length 1.

    *Counts to date*: each period by itself is answered no better than cumulative counts of its length n can be, at an
    error of l. At event level that bounds the mean over all steps. An item that changes within L steps may change all
    periods that lie in them, in each with either sign: with independent signs the weighted changes of the dual are
    block-diagonal, and the traces of their roots, `l sqrt(n)` for each, add up before they are squared. Of counts to
    date of an item added or removed nothing is known.
    """
    if not isinstance(window, PeriodFamily):
        return limits.limit(window, k, unit, steps)
    unit = unit.fit_to_range(steps)
    lengths = sizes(window, steps).tolist()
    if isinstance(window, Tumbling):
        if isinstance(unit, ItemPerPeriod):
            unit = ItemPerPeriod(periods_met(first_steps(window, steps), steps, unit.steps))
        # Independent signs on all of them.
        formal = isinstance(unit.fit_to_range(len(lengths)), ItemLevel)
        return math.sqrt(len(lengths)) if formal else limits.limit(Rolling(1), k, unit, len(lengths))
    if isinstance(unit, ItemAddRemove):
        return None
    roots = {length: limits.limit(Cumulative(), k, EventLevel(), length) for length in set(lengths)}
    if any(least is None for least in roots.values()):
        return None
    span = steps if isinstance(unit, ItemLevel) else unit.steps if isinstance(unit, ItemPerPeriod) else 1
    joint, inside = [0.0], 0
    for length in lengths:
        root = (roots[length] or 0.0) * math.sqrt(length)
        inside += length
        if inside <= span:
            joint[-1] += root
        else:
            joint, inside = [*joint, root], length
    return math.hypot(*joint) / math.sqrt(steps)


def together_limit(window: WindowFamily, thresholds: tuple[int, ...], unit: Unit, steps: int) -> float | None:
    """A lower bound as `limits.together_limit`, of tumbling counts too; None where no more is known than `limit`."""
    unit = unit.fit_to_range(steps)
    if isinstance(window, Tumbling) and isinstance(unit, (ItemLevel, ItemAddRemove)):
        return limits.together_limit(Rolling(1), thresholds, unit, len(sizes(window, steps)))
    return limits.together_limit(window, thresholds, unit, steps) if isinstance(window, Rolling) else None


def pure_limit(window: WindowFamily, k: int, unit: Unit, steps: int, epsilon: float) -> float | None:
    """A lower bound in counts, for noise of any distribution under a pure budget (`search.pure_limits`).

    An item may change all tumbling counts freely, as it may rolling counts of single steps.
    """
    # Under a budget so large that no noise is needed nothing is known.
    least = (limit(window, k, unit, steps) or 0.0) * pure_scale(epsilon)
    if least == 0.0:
        return None
    unit = unit.fit_to_range(steps)
    if not has_many_neighbours(window, unit):
        return least
    length, answers = (1, len(sizes(window, steps))) if isinstance(window, PeriodFamily) else (window.length, steps)
    return max(least, many_neighbours(answers, length, epsilon, changed=isinstance(unit, ItemLevel)))


def has_many_neighbours(window: WindowFamily, unit: Unit) -> TypeGuard[Rolling | Tumbling]:
    """Whether the bound of `pure_limit` may be that of many neighbours; `unit` is fit to the range."""
    return isinstance(unit, (ItemLevel, ItemAddRemove)) and isinstance(window, (Rolling, Tumbling))
