"""What the plans of releases and of streams have in common: measurements, their noise, their errors.

A plan groups what is asked by window family, asks every strategy for a design of each, takes the one of least error,
and shares the budget out. Its forecast and the standard errors of a release come from one function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from dpwindows.ask.counting_rule import CountingRule, require_fit, require_loss
from dpwindows.ask.groups import Grouping
from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, EventLevel, PureDP, Unit
from dpwindows.ask.queries import Cumulative, LostItems, Measure, PeriodFamily, Query, Rolling, WindowFamily
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.windows import longest_window
from dpwindows.count.query.wanted import Wanted
from dpwindows.errors import InputError, counted
from dpwindows.kernel.accounting import GAUSSIAN, Law
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.periods import SeriesInPeriods
from dpwindows.kernel.families.series import Series as SeriesShape
from dpwindows.kernel.measure import EXACT, OPENDP, Measurement, Sampler
from dpwindows.kernel.problem import BOUNDED_UNITS, Criterion, Problem
from dpwindows.plan.allotment import Allotment, measured
from dpwindows.plan.plan_file import PlanValues
from dpwindows.plan.shapes import Forecast
from dpwindows.plan.sharing import (
    Part,
    allot,
    allot_with_law,
    choose_joint,
    choose_together,
    join_parts,
    parts_of,
    split_joint,
    weights_of,
)
from dpwindows.plan.workload import NOTED, Workload, plan_workload, require_limit
from dpwindows.strategies import paper
from dpwindows.strategies.in_periods import limit, pure_limit
from dpwindows.strategies.search.limits import occurrences_limit
from dpwindows.strategies.search.noise_scales import laws_for, limit_scale, unit_scale
from dpwindows.strategies.strategy import PrescribedScale

# The least possible error is worked out for series of at most this many steps, and for the first few k above 1.
_LONGEST_LIMIT, _MOST_LIMITS = 1 << 15, 3
_LOST = Query(LostItems(), (Measure("at_least", 1),))


class Forecasts(list[Forecast]):
    """The forecast of a plan: a list that a notebook shows as a table and a chart."""

    def _repr_html_(self) -> str:
        from dpwindows.report.notebook import forecast_html

        return forecast_html([entry.to_dict() for entry in self])


class Planned(PlanValues, ABC):
    """Everything asked, and the measurements that answer it within one budget.

    `Plan` and `StreamPlan` say which windows there are, how large a plan may be and which strategies serve it. They set
    what is asked, with named periods placed in a calendar, and `_work_out` the rest.

    Attributes:
        timeline: the range and step that measurements are worked out and forecast for.
        rule: which occurrences of an item count.
        grouping: the groups that everything is asked in, None for none.

    All others are the arguments of `Plan`.
    """

    queries: tuple[Query, ...]
    timeline: Timeline
    unit: Unit
    budget: Budget
    strategy: str
    criterion: Criterion
    noise: Sampler
    weights: Mapping[str, float] | Sequence[float] | None
    rule: CountingRule
    grouping: Grouping | None
    confidence: float
    max_draws: int
    singleton: bool = False
    estimate_loss: float | None = None

    def _work_out(self, last_step: int | None) -> None:
        """Work out the measurements of what is asked; the last step there will ever be is None if there is no end.

        Raises:
            InputError: something asked for is not legal.
        """
        queries, unit, grouping, estimate_loss = self.queries, self.unit, self.grouping, self.estimate_loss
        require_kind("unit", unit, BOUNDED_UNITS, "EventLevel(), ItemPerPeriod(steps), ItemLevel() or ItemAddRemove()")
        require_kind("budget", self.budget, (PureDP, ApproxDP, ZCDP), "PureDP(...), ApproxDP(...) or ZCDP(...)")
        if self.criterion not in ("rms", "max"):
            raise InputError(f"criterion must be rms or max, got {self.criterion!r}")
        if self.noise not in (EXACT, OPENDP):
            raise InputError(f"noise must be {EXACT} or {OPENDP}, got {self.noise!r}")
        if not (isinstance(self.confidence, (int, float)) and 0 < self.confidence < 1):
            raise InputError(f"confidence must lie strictly between 0 and 1, for example 0.95, got {self.confidence!r}")
        if any(query.counts_occurrences for query in queries):
            self._require_occurrences()
        require_fit(self.rule, queries, unit, last_step)
        require_loss(estimate_loss, self.rule)
        require_limit(self.max_draws)
        if grouping is not None:
            grouping.require_fit(unit, self.timeline.steps)
            if self.strategy == paper.NAME and not isinstance(unit, EventLevel):
                raise InputError("the strategy paper has no groups at item level: leave --strategy out")
        if not (self.weights is None or isinstance(self.weights, Mapping)):
            self.weights = list(self.weights)
        self._require_bearable()
        kept = 1 if estimate_loss is None else 1 - estimate_loss
        listed = weights_of(queries, self.weights)
        # Floating shares may sum to a hair over 1, which the head-room of the scales covers.
        parts = self._by_threshold(parts_of(queries, [weight / sum(listed) * kept for weight in listed], grouping))
        parts += [] if estimate_loss is None else [Part(_LOST, estimate_loss)]
        allotments = self._allotted(parts, last_step)
        self.allotments: tuple[Allotment, ...] = allotments if estimate_loss is None else allotments[:-1]
        self.loss: Allotment | None = None if estimate_loss is None else allotments[-1]
        self._require_series()

    def _require_occurrences(self) -> None:
        """Refuse occurrences where there is no bound for them."""
        if self.grouping is not None and not isinstance(self.unit, EventLevel):
            raise InputError(
                "occurrences in groups go with --unit event: elsewhere a limit on those of an item is needed, which "
                "would count in each group by itself. Leave out --by or --occurrences"
            )
        if self.strategy == paper.NAME:
            raise InputError("the strategy paper counts items and no occurrences: leave it or --occurrences out")

    def _by_threshold(self, parts: Sequence[Part]) -> list[Part]:
        """The parts, some of them by threshold where they err less for it, in the order asked."""
        return list(parts)

    def _allotted(self, parts: Sequence[Part], last_step: int | None) -> tuple[Allotment, ...]:
        """The allotments of least error for all parts."""
        return self._together(allot(self.budget, parts, self._designs), parts, last_step)

    def _together(
        self, apart: tuple[Allotment, ...], parts: Sequence[Part], last_step: int | None
    ) -> tuple[Allotment, ...]:
        """The allotments with rolling counts as one measurement, where no query errs more for it."""
        places = choose_joint(parts, self.unit, last_step)
        if not places or self.strategy != "auto" or GAUSSIAN not in laws_for(self.budget):
            return apart
        try:
            joint = allot_with_law(GAUSSIAN, self.budget, join_parts(parts, places), self._designs)
        except InputError:  # the budget is too small for Gaussian noise, and not for what measures them apart
            return apart
        return choose_together(split_joint(joint, apart, places), apart)

    @abstractmethod
    def _require_bearable(self) -> None:
        """Refuse, by `InputError`, what is too large to be planned, before it is planned."""

    @abstractmethod
    def _designs(self, part: Part, law: Law, bits: int) -> Sequence[Design]:
        """The designs that can measure a part, about 2^bits lattice units to a count; raises `InputError` if none."""

    def _problem(self, part: Part, window: WindowFamily, steps: int, law: Law, bits: int) -> Problem:
        """What is measured for a part: windows of this family over `steps` steps."""
        return Problem(
            window=window,
            steps=steps,
            thresholds=part.query.thresholds,
            unit=self.unit,
            law=law,
            noise_per_unit=unit_scale(self.budget, law, part.share),
            criterion=self.criterion,
            bits=bits,
            rule=self.rule,
            shares=part.shares,
        )

    @property
    def measurements(self) -> list[Measurement]:
        """What is measured, each with its noise, in the order drawn; one may serve several queries."""
        return measured(self.every_allotment)

    @property
    def every_allotment(self) -> tuple[Allotment, ...]:
        """What the plan assigns to every query, and last to the number of items that lost something, if asked for."""
        return self.allotments if self.loss is None else (*self.allotments, self.loss)

    @property
    def _asked(self) -> str:
        return ", ".join(f"{query.window}: {', '.join(map(str, query.measures))}" for query in self.queries)

    def _require_series(self) -> None:
        """Bounded runs are counted for one length of windows at a time: no strategy may read others."""
        designs = [measurement.design for measurement in self.measurements]
        others = {
            design.strategy
            for design in designs
            if not isinstance(design, StepDesign) and not isinstance(design.shape, SeriesShape | SeriesInPeriods)
        }
        if self.rule.max_runs is not None and others:
            raise InputError(
                f"--max-runs does not go with the strategy {', '.join(sorted(others))}, which reads counts of other "
                "windows than it releases: leave out --strategy and --singleton"
            )

    @property
    def thresholds(self) -> tuple[int, ...]:
        """Every k whose "at least k" counts are measured, or read to measure others."""
        designs = [measurement.design for measurement in self.measurements]
        read = {
            k
            for design in designs
            if isinstance(design.shape, PrescribedScale)
            for k in design.shape.counted(design.problem.thresholds)
        }
        return tuple(sorted(read.union(*(query.thresholds for query in self.queries))))

    @property
    def _reach(self) -> int | None:
        """The length of the longest rolling window where none but rolling and cumulative counts are read."""
        designs = [allotment.measurement.design for allotment in self.allotments]
        windows = [design.problem.window for design in designs if isinstance(design.shape, SeriesShape)]
        if len(windows) < len(designs) or not all(isinstance(window, Rolling | Cumulative) for window in windows):
            return None
        return max((window.length for window in windows if isinstance(window, Rolling)), default=1)

    @property
    def wanted(self) -> Wanted:
        """What is counted for a release."""
        asked = Wanted.of(self.queries, self.rule, self.timeline.steps, loss=self.loss is not None)
        return asked if asked.series else replace(asked, thresholds=self.thresholds, reach=self._reach)

    @property
    def workload(self) -> Workload:
        """How many numbers one release has, how many noise values it draws, and about what that takes."""
        return replace(plan_workload(self.every_allotment), noise=self.noise)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks worth telling whoever asked, one sentence each."""
        long = f"is at least as long as the {counted(self.timeline.steps, 'step')} of the range, so it means"
        notes = [
            f"{query.window} {long} cumulative here"
            for query in self.queries
            if isinstance(query.window, Rolling) and query.window.length >= self.timeline.steps
        ]
        if self.unit.fit_to_range(self.timeline.steps) != self.unit:
            notes.append(f"the period of {self.unit.name} {long} item here")
        if self.workload.draws > NOTED:
            notes.append(f"a release of this is {self.workload}")
        return tuple(notes)

    @cached_property
    def _forecast(self) -> tuple[Forecast, ...]:
        return tuple(
            allotment.forecast(measure, self.confidence, self._limit(allotment, measure))
            for allotment in self.allotments
            for measure in allotment.query.measures
        )

    def _limit(self, allotment: Allotment, measure: Measure) -> float | None:
        """The least rms error of noise with the measurement's share, in counts; None where it is not known.

        Of Gaussian noise, or under a pure budget of any.
        """
        if measure.kind == "occurrences":
            return self._limit_of_occurrences(allotment)
        ruled = self.rule.bounded or (self.rule.distinct_steps and measure.k > 1)
        if measure.kind != "at_least" or self.singleton or ruled:
            return None
        problem = allotment.measurement.design.problem
        window = problem.window if allotment.series is None else allotment.query.window
        bounded = isinstance(window, (Rolling, PeriodFamily))
        if (longest_window(window, problem.steps) if bounded else problem.steps) > _LONGEST_LIMIT:
            return None
        share = self.share_of(allotment)
        asked = (window, self._limit_k(measure.k), self.unit, problem.steps)
        if isinstance(self.budget, PureDP):
            return pure_limit(*asked, self.budget.epsilon * share)
        bound = limit(*asked)
        return None if bound is None else bound * limit_scale(self.budget, share) * (1 - 1e-9)

    def share_of(self, allotment: Allotment) -> float:
        """The share of the budget for all thresholds of a query, or for all families that are measured as one."""
        # The scale of noise is the least one but for the head-room it was given.
        if allotment.series is not None:
            return sum(one.share for one in self.allotments if one.series is not None)
        name, by = allotment.query.name, allotment.by
        return sum(one.share for one in self.allotments if one.query.name == name and one.by == by)

    def _limit_of_occurrences(self, allotment: Allotment) -> float | None:
        """The least rms error as `_limit` has it; not where all of an item's may not come in one step."""
        problem = allotment.measurement.design.problem
        if self.singleton or (self.rule.distinct_steps and self.rule.bounded):
            return None
        bound = occurrences_limit(problem.window, self.unit, problem.steps)
        if bound is None:
            return None
        return bound * (self.rule.max_occurrences or 1) * limit_scale(self.budget, allotment.share) * (1 - 1e-9)

    def forecast(self) -> Forecasts:
        """The error to expect of every measure asked for; computed without any data. A notebook shows it as a table."""
        return Forecasts(self._forecast)

    def _repr_html_(self) -> str:
        """A notebook shows what is asked, and the errors to expect."""
        from dpwindows.report.notebook import forecast_html

        return forecast_html([entry.to_dict() for entry in self._forecast], self.confidence, said=repr(self))

    def _limit_k(self, k: int) -> int:
        """The k whose least possible error stands for this one's: itself, or a smaller one where many are asked.

        Finding one takes a second or two. It holds for every larger k: the changes that it is derived from, of at most
        k runs where that matters, are among those for a larger k.
        """
        asked = sorted({measure.k for query in self.queries for measure in query.measures if measure.k > 1})
        told = [1, *asked[:: -(-len(asked) // _MOST_LIMITS) or 1]]
        return max(known for known in told if known <= k)


def require_kind(name: str, value: object, kinds: type | tuple[type, ...], wanted: str) -> None:
    """Check the type of an argument, which users without a type checker get wrong.

    Raises:
        InputError: it is none of these kinds.
    """
    if not isinstance(value, kinds):
        raise InputError(f"{name} must be {wanted}, got {value!r}")
