"""A grid of the errors under one unit of noise around what a plan asks, for a page with sliders.

An error is the noise scale that a budget buys for a sensitivity of 1, times the error at that scale, which depends on
window, k, unit and horizon only. So a page that knows the second on a grid, and how to get the first from a budget,
knows the error under every budget. Between the points of the grid it is read off straight lines in logarithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dpwindows import reading
from dpwindows.ask.privacy import EventLevel, ItemLevel, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, PeriodFamily, Rolling, WindowFamily
from dpwindows.errors import InputError, counted
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.problem import Problem
from dpwindows.plan.planned import Planned
from dpwindows.progress import show_progress
from dpwindows.strategies import candidates
from dpwindows.strategies.in_periods import limit
from dpwindows.strategies.scoring import noise_factor
from dpwindows.strategies.strategy import PrescribedScale

_KS = (1, 2, 4, 10)
_LAWS: tuple[Law, ...] = (GAUSSIAN, LAPLACE)
# Beyond these the least possible error takes long to find.
_LONGEST_LIMIT = 1024
_BITS = 24


@dataclass(frozen=True)
class _Point:
    window: WindowFamily
    k: int
    unit: Unit
    steps: int


def unit_errors(plan: Planned) -> dict[str, Any]:
    """The grid around a plan as plain values: lengths and horizon halved and doubled, its unit and two more, several k.

    Returns:
        `families`, each with `window`, `share`, `lengths` (null for families without), `horizons`, `ks`, `units`, and
        `errors` by law and `limit` (of the plan's own unit): one row for each unit, length and horizon, in this order,
        with one number for each k, null where nothing is known. Errors are in counts, for a noise scale of 1 at a
        sensitivity of 1.
    """
    units = list({unit.name: unit for unit in (plan.unit, EventLevel(), ItemLevel())}.values())
    ks = sorted({*_KS, *(measure.k for query in plan.queries for measure in query.measures)})
    axes = [(allotment, _axes(allotment.query.window, plan.timeline.steps)) for allotment in plan.allotments]
    total = sum(len(lengths) * len(horizons) for _, (lengths, horizons) in axes) * len(ks) * len(units)
    families = []
    with show_progress("working out errors", total) as advance:
        for allotment, (lengths, horizons) in axes:
            window = allotment.query.window
            rows = []
            for unit, length, steps in product(units, lengths, horizons):
                points = [_Point(_of_length(window, length), k, unit, steps) for k in ks]
                rows.append(_errors_of(points, plan))
                advance(len(ks))
            families.append(
                {
                    "window": window.text,
                    "share": allotment.share,
                    "lengths": None if lengths == [None] else lengths,
                    "horizons": horizons,
                    "ks": ks,
                    "units": [unit.name for unit in units],
                    "errors": {law: [[point[law] for point in row] for row in rows] for law in _LAWS},
                    "limit": [[point["limit"] for point in row] for row in rows],
                }
            )
    return {"families": families}


def asked_of_sliders(plan: Planned) -> dict[str, Any]:
    """Where the sliders of a planner's page begin, and what was asked in a sentence."""
    budget = plan.budget.to_dict()
    queries = "; ".join(f"{query.window}: {', '.join(map(str, query.measures))}" for query in plan.queries)
    together = [one.query.window.text for one in plan.allotments if one.series is not None]
    apart = (
        f" The plan measures {', '.join(together)} as one; under the sliders each is measured by itself, and errs more."
    )
    return {
        "kind": budget["kind"],
        "amount": budget.get("epsilon") or budget["rho"],
        "delta": budget.get("delta") or 1e-6,
        "unit": plan.unit.name,
        "horizon": plan.timeline.steps,
        "sentence": f"Asked: {queries}; {counted(plan.timeline.steps, 'step')}, {plan.unit.name} level, {plan.budget}."
        f"{apart if together else ''}",
    }


def _axes(window: WindowFamily, steps: int) -> tuple[list[int | None], list[int]]:
    horizons = sorted({max(2, steps // 2), steps, 2 * steps})
    if isinstance(window, Rolling) and window.length > horizons[0]:
        horizons = [steps, 2 * steps]
    match window:
        case PeriodFamily():
            return [None], [steps]
        case AnyWindow(max_length=None):
            return [None], horizons[:2]
        case AnyWindow(max_length=int(length)):
            return list(_around(length, horizons[0])), horizons[:2]
        case Rolling(length):
            return list(_around(length, horizons[0])), horizons
    return [None], horizons


def _around(length: int, most: int) -> Iterator[int]:
    """A length, its half and its double; but none that is nearly the shortest horizon, where errors fall off."""
    own = min(most, length)
    yield from sorted({max(1, own // 2), own, max(own, min(most // 2, 2 * length))})


def _of_length(window: WindowFamily, length: int | None) -> WindowFamily:
    match window:
        case Rolling() if length is not None:
            return replace(window, length=length)
        case AnyWindow() if length is not None:
            return replace(window, max_length=length)
    return window


def _errors_of(row: list[_Point], plan: Planned) -> list[dict[str, float | None]]:
    """Errors by law and the limit, for every k; where the first and the last k err alike, all between do."""
    errors: list[dict[str, float | None]] = [{} for _ in row]
    for law in _LAWS:
        first, last = _error(row[0], plan, law), _error(row[-1], plan, law)
        alike = first is not None and last is not None and abs(first - last) <= 1e-6 * first
        for at, point in enumerate(row):
            ends = {0: first, len(row) - 1: last}
            errors[at][law] = first if alike else ends[at] if at in ends else _error(point, plan, law)
    for at, point in enumerate(row):
        errors[at]["limit"] = _limit(point, plan)
    return errors


def _error(point: _Point, plan: Planned, law: Law) -> float | None:
    problem = Problem(
        window=point.window,
        steps=point.steps,
        thresholds=(point.k,),
        unit=point.unit,
        law=law,
        noise_per_unit=1.0,
        criterion=plan.criterion,
        bits=_BITS,
        singleton=plan.singleton,
        # Whole items have noise that is drawn for all numbers at once, and spends epsilon alone as Laplace noise does.
        budget=PureDP(1.0) if law == LAPLACE else None,
        rule=plan.rule,
    )
    try:
        design = candidates(problem, plan.strategy)[0]
    except InputError:
        return None
    if isinstance(design.shape, PrescribedScale):
        return None
    return float(noise_factor(design) * np.sqrt(reading.of(design.at(point.k)).variance().mean()))


def _limit(point: _Point, plan: Planned) -> float | None:
    reach = point.window.length if isinstance(point.window, Rolling) else point.steps
    if plan.singleton or point.unit != plan.unit or reach > _LONGEST_LIMIT:
        return None
    return limit(point.window, point.k, point.unit, point.steps)
