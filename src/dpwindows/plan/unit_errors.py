"""The plans around one that was asked for, under one unit of noise, for a page with sliders.

An error is the noise scale that a budget buys for a sensitivity of 1, times the error at that scale, which depends on
what is asked, the unit and the horizon only. So a page that knows the second for some choices, and how to get the first
from a budget, knows what `plan` says of each of these choices under every budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

from dpwindows.ask.privacy import ZCDP, Budget, EventLevel, ItemLevel, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Measure, PeriodFamily, Query, Rolling, WindowFamily
from dpwindows.ask.timeline import Timeline
from dpwindows.errors import InputError, counted
from dpwindows.kernel.accounting import GAUSSIAN, JOINT, LAPLACE, Law
from dpwindows.kernel.designs import Design
from dpwindows.plan.allotment import Allotment
from dpwindows.plan.intervals import noise_of
from dpwindows.plan.plan import Plan
from dpwindows.plan.sharing import Part, allot_with_law, choose_joint, join_parts, split_joint, weights_of
from dpwindows.progress import show_progress
from dpwindows.reading.noise_moments import noise_variance
from dpwindows.strategies.in_periods import has_many_neighbours
from dpwindows.strategies.search.noise_scales import unit_scale
from dpwindows.strategies.strategy import PrescribedScale

_KS = (1, 3, 10)
_BUDGETS: dict[Law, Budget] = {GAUSSIAN: ZCDP(0.5), LAPLACE: PureDP(1.0)}
# Beyond these the least possible error takes long to find.
_LONGEST_LIMIT = 1024


@dataclass(frozen=True)
class _Choice:
    """What can be chosen besides the budget."""

    unit: Unit
    steps: int
    queries: tuple[Query, ...]


class _OneLaw(Plan):
    """A plan for a choice under one noise law: measured apart, and `together` where several can be."""

    def __init__(self, asked: Plan, choice: _Choice, law: Law) -> None:
        self._law, self.joint_noise, self.together = law, tuple[Allotment, ...](), tuple[Allotment, ...]()
        reach = max((one.window.length for one in choice.queries if isinstance(one.window, Rolling)), default=0)
        self._with_limits = law == GAUSSIAN and choice.unit == asked.unit and reach <= _LONGEST_LIMIT
        same = choice.steps == asked.timeline.steps
        super().__init__(
            choice.queries,
            timeline=asked.timeline if same else Timeline.of_steps(choice.steps),
            unit=choice.unit,
            budget=_BUDGETS[law],
            strategy=asked.strategy,
            criterion=asked.criterion,
            weights=weights_of(asked.queries, asked.weights),
            singleton=asked.singleton,
            estimate_loss=asked.estimate_loss,
            confidence=asked.confidence,
            max_draws=asked.max_draws,
            **asked.rule.__dict__,
        )

    def _allotted(self, parts: Sequence[Part], last_step: int | None) -> tuple[Allotment, ...]:
        apart = allot_with_law(self._law, self.budget, parts, partial(self._of_kind, joint=False))
        if self._law == LAPLACE:
            self.joint_noise = allot_with_law(self._law, self.budget, parts, partial(self._of_kind, joint=True))
        places = choose_joint(parts, self.unit, last_step) if self._law == GAUSSIAN and self.strategy == "auto" else []
        if places:
            joint = allot_with_law(self._law, self.budget, join_parts(parts, places), self._designs)
            self.together = split_joint(joint, apart, places)
        return apart

    def _of_kind(self, part: Part, law: Law, bits: int, *, joint: bool) -> Sequence[Design]:
        """The designs whose noise is drawn for all numbers at once, or the others; all, where there are none."""
        designs = self._designs(part, law, bits)
        return [one for one in designs if (one.problem.law in JOINT) is joint] or designs

    def _limit(self, allotment: Allotment, measure: Measure) -> float | None:
        return super()._limit(allotment, measure) if self._with_limits else None

    def limits(self) -> list[dict[str, Any]]:
        """What is counted in every row, and its least error under Gaussian noise and, where known, under any."""
        unit = self.unit.fit_to_range(self.timeline.steps)
        rows = [(at, measure) for at, one in enumerate(self.allotments) for measure in one.query.measures]
        found = []
        for (at, measure), entry in zip(rows, self.forecast(), strict=True):
            one = self.allotments[at]
            limit = None if entry.limit is None else entry.limit / unit_scale(self.budget, self._law, one.share)
            many = has_many_neighbours(one.measurement.design.problem.window, unit)
            found.append(
                {
                    "family": at,
                    "window": entry.window,
                    "measure": str(measure),
                    "limit": limit,
                    "pure_limit": None if many else limit,
                }
            )
        return found

    def measured(self, *plans: Sequence[Allotment]) -> dict[str, Any] | None:
        """What can be measured for every family: one choice for each of some plans, where these differ."""
        if any(isinstance(one.measurement.design.shape, PrescribedScale) for allotments in plans for one in allotments):
            return None
        first = plans[0]
        joint = sum(one.share for one in first if one.series is not None)
        shares = [one.share if one.series is None else joint for one in first]
        families = [
            [self._priced(one, share) for one in dict.fromkeys(alike)]
            for alike, share in zip(zip(*plans, strict=True), shares, strict=True)
        ]
        return {"law": self._law, "shares": shares, "families": families}

    def _priced(self, one: Allotment, share: float) -> dict[str, Any]:
        """A family's scale in lattice units where the budget buys a scale of 1, and its errors over that noise."""
        noise, scale = noise_of(one.measurement), unit_scale(self.budget, self._law, share)
        deviation = math.sqrt(noise_variance(noise.law, noise.scale, noise.size))
        asked = any(one.query.window == query.window for query in self.queries)
        measures = one.query.measures if asked else ()
        return {
            "noise": noise.law,
            "size": noise.size,
            "scale": noise.scale / scale,
            # Strategies are compared by a noise that is fine, but for noise that is drawn for all numbers at once.
            "score": one.chosen.error / (deviation if noise.law in JOINT else noise.scale),
            "errors": [one.forecast(measure, self.confidence, None).rms / deviation for measure in measures],
        }


def unit_errors(plan: Plan) -> dict[str, Any]:
    """The plans around one as plain values: its unit and two more, longer or shorter ranges and windows, several k.

    Returns:
        `units`, `horizons`, `lengths` (for each place the windows) and `counted`, the stops of the sliders; and
        `choices`, one for each combination of theirs, the last slider fastest, null where no strategy serves it. Of
        each choice `rows` say what is counted, with its least error for a noise scale of 1 at a sensitivity of 1;
        `apart` has one entry for each noise law, and `together` one where some windows can be measured as one. An entry
        has the families' `shares` of the budget and for each of the `families` what may measure it: its `noise` and
        the `scale` of that, the `score` that the choice is made by, and the `errors` of its rows.
    """
    units = list({unit.name: unit for unit in (plan.unit, EventLevel(), ItemLevel())}.values())
    windows = list(_windows_around(plan))
    horizons = _horizons_around(plan, max(map(_length, windows[-1])))
    counts = {"as asked": tuple(query.measures for query in plan.queries)}
    if len(same := set(counts["as asked"])) == 1:
        counts = {", ".join(map(str, *same)): counts["as asked"]}
    for k in _KS:
        one = ((Measure("at_least", k),),) * len(plan.queries)
        if one not in counts.values():
            counts[f"at least {k}"] = one
    sliders = list(product(units, horizons, windows, counts.values()))
    choices = []
    with show_progress("working out errors", len(sliders)) as advance:
        for unit, steps, families, measures in sliders:
            asked = tuple(Query(window, wanted) for window, wanted in zip(families, measures, strict=True))
            choices.append(_plans_of(plan, _Choice(unit, steps, asked)))
            advance(1)
    return {
        "units": [unit.name for unit in units],
        "horizons": horizons,
        "lengths": [[window.text for window in families] for families in windows],
        "counted": list(counts),
        "choices": choices,
    }


def _plans_of(plan: Plan, choice: _Choice) -> dict[str, Any] | None:
    plans = []
    for law in _BUDGETS:
        try:
            plans.append(_OneLaw(plan, choice, law))
        except InputError:
            continue
    apart = [one.measured(one.every_allotment, *([one.joint_noise] if one.joint_noise else [])) for one in plans]
    together = [one.measured(one.together) for one in plans if one.together]
    if not any(apart):
        return None
    return {
        "rows": plans[0].limits(),
        "apart": [found for found in apart if found is not None],
        "together": together[0] if together else None,
    }


def asked_of_sliders(plan: Plan) -> dict[str, Any]:
    """Where the sliders of a planner's page begin, and what was asked in a sentence."""
    budget = plan.budget.to_dict()
    queries = "; ".join(f"{query.window}: {', '.join(map(str, query.measures))}" for query in plan.queries)
    return {
        "kind": budget["kind"],
        "amount": budget.get("epsilon") or budget["rho"],
        "delta": budget.get("delta") or 1e-6,
        "unit": plan.unit.name,
        "horizon": plan.timeline.steps,
        "length": [query.window.text for query in plan.queries],
        "sentence": f"Asked: {queries}; {counted(plan.timeline.steps, 'step')}, {plan.unit.name} level, {plan.budget}.",
    }


def _length(window: WindowFamily) -> int:
    """The steps of a window's length that a slider changes; 0 where there are none."""
    match window:
        case Rolling(length):
            return length
        case AnyWindow(max_length=int(length)):
            return length
    return 0


def _windows_around(plan: Plan) -> Iterator[tuple[WindowFamily, ...]]:
    """The windows as asked, half as long and twice as long, where these are still windows of their own."""
    own = [query.window for query in plan.queries]
    seen = set[tuple[WindowFamily, ...]]()
    for times in (0.5, 1, 2):
        found = tuple(_of_length(window, max(1, int(times * _length(window)))) for window in own)
        fits = times <= 1 or max(map(_length, found)) <= plan.timeline.steps
        if fits and len(set(found)) == len(own) and found not in seen:
            seen.add(found)
            yield found


def _of_length(window: WindowFamily, length: int) -> WindowFamily:
    match window:
        case Rolling():
            return replace(window, length=length)
        case AnyWindow(max_length=int()):
            return replace(window, max_length=length)
    return window


def _horizons_around(plan: Plan, longest: int) -> list[int]:
    """The range as asked and one twice as long; one half as long with any windows, which are many."""
    steps, families = plan.timeline.steps, [query.window for query in plan.queries]
    if any(isinstance(window, PeriodFamily) for window in families):
        return [steps]
    if any(isinstance(window, AnyWindow) for window in families):
        return sorted({max(1, longest, steps // 2), steps})
    return [steps, 2 * steps]
