"""From what is asked, for whom and under which budget, to measurements with noise scales: before any data is seen.

A `Plan` groups what is asked by window family, asks every strategy for a design of each, takes the one of least
error, and shares the budget out. Its forecast and the standard errors of a release come from one function.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dpwindows.ask.calendar import Calendar
from dpwindows.ask.counting_rule import CountingRule, require_fit
from dpwindows.ask.groups import GroupOf, Value, grouping
from dpwindows.ask.periods import placed
from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, ItemPerPeriod, PureDP, Unit
from dpwindows.ask.queries import Cumulative, Measure, PeriodFamily, Query, Rolling, WindowFamily, normalise
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.whole_numbers import MAX_DRAWS
from dpwindows.ask.windows import count_windows, longest_window
from dpwindows.count.first_runs import Series
from dpwindows.count.wanted import Wanted
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, Law, laws_for, scales, unit_scale
from dpwindows.kernel.groups import Groups
from dpwindows.kernel.measure import Measurement
from dpwindows.kernel.problem import BOUNDED_UNITS, Criterion, Problem
from dpwindows.kernel.shapes.causal import StepDesign
from dpwindows.kernel.shapes.design import Design, PrescribedScale
from dpwindows.kernel.shapes.series import SeriesDesign
from dpwindows.plan.allotment import Allotment, Alternative
from dpwindows.plan.forecast import Forecast, Forecasts, forecast_of
from dpwindows.plan.parts import Part, cells_of, error_in, parts_of, require_groups
from dpwindows.plan.plan_file import PlanValues
from dpwindows.plan.workload import NOTED, Workload, least, of_plan, require_limit, require_within
from dpwindows.strategies import candidates
from dpwindows.strategies.in_periods import limit

if TYPE_CHECKING:
    from dpwindows.count.events import EngineSettings
    from dpwindows.ledger.ledger import Ledger
    from dpwindows.release.release import Release

MAX_ROWS = 5_000_000
# One count is about 2^24 lattice units unless the noise is so wide that a coarser lattice must do.
BITS, _FEWEST_BITS = 24, 8
_WIDEST_SCALE, _HIGHEST_SCALE = 2.0**50, 2.0**55
# Noise, in counts, beyond which no lattice is coarse enough.
_MOST_NOISE = 2.0**45
# The least possible error is worked out for series of at most so many steps, and for so many k above 1.
_LONGEST_LIMIT, _MOST_LIMITS = 1 << 15, 3


class Plan(PlanValues):
    """A release worked out before any data is seen: what will be measured, with what noise, and how exact it will be.

    Args:
        queries: what is asked; queries on one window family are measured together.
        timeline: the public range and step.
        unit: the unit of privacy.
        budget: what the whole release may spend.
        strategy: `auto`, or the name of one strategy for every query.
        criterion: `rms` or `max`, the error over a query's windows that strategies are chosen by.
        weights: relative importance of the window families, by canonical text or in the order asked (default: all
            alike). Shares of the budget are in proportion, which minimises the weighted geometric mean of the errors.
        singleton: a public promise that every step holds at most one event over all items.
        distinct_steps: an item counts at most once in a step, so that "at least k" asks for k different steps.
        max_occurrences: count only the first so many occurrences of each item within the range (item levels only).
        max_runs: count each item in its first so many runs of being counted only (rolling counts, item levels only).
        confidence: coverage of each interval by itself.
        max_draws: the most noise values that one release may draw; `workload` tells how many this one does.
        by: columns of the log that make groups, each with the public list of its values, such as
            `{"origin": ["EWR", "JFK", "LGA"]}`; of several columns all combinations. Rows of other values are ignored.
        group_of: `event` (the default: each event is in the group of its own row) or `item` (each item is in one group,
            that of its first event).
        max_groups: at item level with groups of events, the most groups that one item counts in: its first ones. The
            budget pays for so many.
        totals: the share of the budget, between 0 and 1, for totals over all groups, and over all values of each
            choice of columns; by default there are none, since distinct counts of groups do not add up to one.

    Raises:
        InputError: something asked for is not legal, more than 5,000,000 numbers would be released, or more than
            `max_draws` noise values drawn.
    """

    def __init__(
        self,
        queries: Query | WindowFamily | Iterable[Query | WindowFamily],
        *,
        timeline: Timeline,
        unit: Unit,
        budget: Budget,
        strategy: str = "auto",
        criterion: Criterion = "rms",
        weights: Mapping[str, float] | Sequence[float] | None = None,
        singleton: bool = False,
        distinct_steps: bool = False,
        max_occurrences: int | None = None,
        max_runs: int | None = None,
        confidence: float = 0.95,
        max_draws: int = MAX_DRAWS,
        by: Mapping[str, Iterable[Value]] | None = None,
        group_of: GroupOf | None = None,
        max_groups: int | None = None,
        totals: float | None = None,
    ) -> None:
        asked = normalise([queries] if isinstance(queries, (Query, WindowFamily)) else queries)
        _require_kind("timeline", timeline, Timeline, "a Timeline")
        self.queries = self._placed(asked, timeline)
        _require_kind("unit", unit, BOUNDED_UNITS, "EventLevel(), ItemPerPeriod(steps), ItemLevel() or ItemAddRemove()")
        _require_kind("budget", budget, (PureDP, ApproxDP, ZCDP), "PureDP(...), ApproxDP(...) or ZCDP(...)")
        self.timeline, self.unit, self.budget = timeline, unit, budget
        self.strategy, self.criterion, self.singleton = strategy, criterion, singleton
        self.confidence, self.max_draws = confidence, max_draws
        self.weights = weights if weights is None or isinstance(weights, Mapping) else list(weights)
        if criterion not in ("rms", "max"):
            raise InputError(f"criterion must be rms or max, got {criterion!r}")
        if not (isinstance(confidence, (int, float)) and 0 < confidence < 1):
            raise InputError(f"confidence must lie strictly between 0 and 1, for example 0.95, got {confidence!r}")
        self.distinct_steps, self.max_occurrences, self.max_runs = distinct_steps, max_occurrences, max_runs
        self.rule = CountingRule(distinct_steps, max_occurrences, max_runs)
        require_fit(self.rule, self.queries, unit, self._last_step)
        require_limit(max_draws)
        self.grouping = grouping(by, group_of=group_of, max_groups=max_groups, totals=totals)
        self.group_of, self.max_groups, self.totals = group_of, max_groups, totals
        self.by = None if self.grouping is None else {one.name: list(one.values) for one in self.grouping.columns}
        require_groups(self.grouping, unit, timeline.steps, strategy)
        if self.grouping is not None and self.rule.bounded:
            raise InputError(
                "--max-runs and --max-occurrences do not go with --by: each group would be bounded by itself, and a "
                "total in another way than its groups. Leave out one of them (--max-groups bounds groups)"
            )
        self._require_room()
        self._require_bearable(
            least(self.queries, self.timeline.steps, cells_of(self.grouping)), max_draws, at_least=True
        )
        parts = parts_of(self.queries, _shares(self.queries, weights), self.grouping)
        self.allotments = _least_error(self._possible(parts), [part.share for part in parts])
        self._require_series()
        self._require_bearable(self.workload, max_draws)

    def __repr__(self) -> str:
        asked = ", ".join(f"{query.window}: {', '.join(map(str, query.measures))}" for query in self.queries)
        return f"Plan({asked}; {self.timeline}; {self.unit.name} level; {self.budget})"

    @property
    def thresholds(self) -> tuple[int, ...]:
        """Every k whose "at least k" counts are measured, or read to measure others."""
        designs = [allotment.measurement.design for allotment in self.allotments]
        read = {k for design in designs if isinstance(design, PrescribedScale) for k in design.counted}
        return tuple(sorted(read.union(*(_thresholds(query) for query in self.queries))))

    @property
    def _last_step(self) -> int | None:
        """The last step there will be, None if there is no end of them."""
        return self.timeline.steps

    @property
    def wanted(self) -> Wanted:
        """What is counted for a release."""
        if self.rule.max_runs is None:
            return Wanted(self.thresholds, self.rule)
        series: set[Series] = set()
        thresholds: set[int] = set()
        for allotment in self.allotments:
            problem = allotment.measurement.design.problem
            if isinstance(problem.window, Rolling):
                series |= {(k, problem.window.length) for k in problem.thresholds}
            else:
                thresholds |= set(problem.thresholds)
        return Wanted(tuple(sorted(thresholds)), self.rule, tuple(sorted(series)))

    @property
    def workload(self) -> Workload:
        """How many numbers one release has, how many noise values it draws, and about what that takes."""
        return of_plan(self.allotments)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks worth telling whoever asked, one sentence each."""
        long = f"is at least as long as the {self.timeline.steps} steps of the range, so it means"
        found = [
            f"{query.window} {long} cumulative here"
            for query in self.queries
            if isinstance(query.window, Rolling) and query.window.length >= self.timeline.steps
        ]
        if isinstance(self.unit, ItemPerPeriod) and self.unit.steps >= self.timeline.steps:
            found.append(f"the period of {self.unit.name} {long} item here")
        if self.workload.draws > NOTED:
            found.append(f"a release of this is {self.workload}")
        return tuple(found)

    @cached_property
    def _forecast(self) -> tuple[Forecast, ...]:
        return tuple(
            forecast_of(allotment, measure, self.confidence, self._limit(allotment, measure))
            for allotment in self.allotments
            for measure in allotment.query.measures
        )

    def _limit(self, allotment: Allotment, measure: Measure) -> float | None:
        """The least rms error of Gaussian noise with the allotment's share, in counts; None where it is not known."""
        ruled = self.rule.bounded or (self.rule.distinct_steps and measure.k > 1)
        if measure.kind != "at_least" or self.singleton or ruled or GAUSSIAN not in laws_for(self.budget):
            return None
        problem = allotment.measurement.design.problem
        window = problem.window
        bounded = isinstance(window, (Rolling, PeriodFamily))
        if (longest_window(window, problem.steps) if bounded else problem.steps) > _LONGEST_LIMIT:
            return None
        bound = limit(window, self._limit_k(measure.k), self.unit, problem.steps)
        # The scale is the least one but for the head-room it was given.
        return None if bound is None else bound * unit_scale(self.budget, GAUSSIAN, allotment.share) * (1 - 1e-9)

    def forecast(self) -> Forecasts:
        """The error to expect of every measure asked for; computed without any data. A notebook shows it as a table."""
        return Forecasts(self._forecast)

    def _repr_html_(self) -> str:
        """A notebook shows what is asked, and the errors to expect."""
        from dpwindows.report.notebook import forecast_html

        return forecast_html([entry.to_dict() for entry in self._forecast], self.confidence, said=repr(self))

    def run(
        self,
        events: Any,
        *,
        item: str,
        time: str,
        count: str | None = None,
        time_format: str | None = None,
        item_type: str | None = None,
        delimiter: str | None = None,
        columns: Sequence[str] | None = None,
        table: str | None = None,
        engine: str | None = None,
        settings: EngineSettings | None = None,
        ledger: Ledger | None = None,
        consistent: bool = True,
    ) -> Release:
        """Read an event log and release every number asked for, once, with fresh noise.

        Guarantee: the release satisfies the plan's budget for the plan's unit of privacy. Without a ledger every call
        is a new release and spends the budget again. With one, the budget is recorded there before noise is drawn, and
        the same call on the same data returns the release that was stored.

        Args:
            events: a path (file, glob, directory, DuckDB or SQLite database), data frame, Arrow table or DuckDB
                relation; a database's connection address or SQLAlchemy engine; a Spark data frame or Spark session.
            item: name of the column that identifies items.
            time: name of the column that holds times.
            count: name of an optional column of multiplicities; an event is one occurrence, not one row.
            time_format: what times are whose type does not say it: `epoch-s`, `epoch-ms`, `epoch-us` or a pattern of
                strptime such as "%m/%d/%Y"; ISO 8601 text (`iso`) needs none.
            item_type: `integer` if items are the whole numbers that values such as 13085.0 stand for; rows whose item
                stands for none are ignored. By default items are what they are, and floating-point ones are refused.
            delimiter: of CSV files, a character or `spaces` for runs of them; by default that of the line of names.
            columns: the names of all columns of CSV files without a line of names.
            table: table to read where `events` is a database or a Spark session.
            engine: name of the engine that counts; by default the source tells. The same as `settings.engine`.
            settings: memory limit, spill directory, threads, progress and access of the engine.
            ledger: the dataset whose total budget this release is part of.
            consistent: fill the column `consistent`, a table of whole numbers that agree with one another; a release
                that a ledger has stored keeps what it was stored with.

        Raises:
            OverBudgetError: the ledger does not hold the plan's budget; nothing was drawn, and no data was read
                unless a release of the same request is stored.
            InputError: the log cannot be read as asked, or the ledger does not admit the plan; nothing was spent.
            EngineError: the engine failed, and nothing was spent; or the ledger could not be written, and the message
                says what was spent.
        """
        from dpwindows.count.events import csv_layout, engine_settings
        from dpwindows.release.run import run_plan

        return run_plan(
            self,
            events,
            item=item,
            time=time,
            count=count,
            time_format=time_format,
            item_type=item_type,
            layout=csv_layout(delimiter, columns),
            table=table,
            settings=engine_settings(settings, engine),
            ledger=ledger,
            consistent=consistent,
        ).release

    def _limit_k(self, k: int) -> int:
        """The k whose least possible error is told for this one: itself, or where many are asked one that is smaller.

        Finding one takes a second or two. It holds for every larger k: the changes that it is derived from, of at most
        k runs where that matters, are among those for a larger k.
        """
        asked = sorted({measure.k for query in self.queries for measure in query.measures if measure.k > 1})
        told = [1, *asked[:: -(-len(asked) // _MOST_LIMITS) or 1]]
        return max(known for known in told if known <= k)

    def _placed(self, queries: tuple[Query, ...], timeline: Timeline) -> tuple[Query, ...]:
        """The queries with their named periods as the calendar of the range has them."""
        return placed(queries, Calendar.of(timeline), timeline.steps)

    def _require_bearable(self, work: Workload, max_draws: int, *, at_least: bool = False) -> None:
        require_within(work, max_draws, at_least=at_least)

    def _require_series(self) -> None:
        """Bounded runs are counted for one length of windows at a time: no strategy may read others."""
        designs = [allotment.measurement.design for allotment in self.allotments]
        others = {design.strategy for design in designs if not isinstance(design, SeriesDesign | StepDesign)}
        if self.rule.max_runs is not None and others:
            raise InputError(
                f"--max-runs does not go with the strategy {', '.join(sorted(others))}, which reads counts of other "
                "windows than it releases: leave out --strategy and --singleton"
            )

    def _require_room(self) -> None:
        rows = sum(count_windows(query.window, self.timeline.steps) * len(query.measures) for query in self.queries)
        rows *= cells_of(self.grouping)
        if rows > MAX_ROWS:
            raise InputError(
                f"{rows:,} numbers would be released, more than the {MAX_ROWS:,} that are allowed: "
                "bound the windows' length (any:MAX), use coarser steps, or ask for fewer measures"
                f"{'' if self.grouping is None else ' or groups'}"
            )

    def _possible(self, parts: Sequence[Part]) -> list[tuple[Allotment, ...]]:
        """One set of measurements for each noise law that can serve the budget."""
        found, refusals = [], []
        for law in laws_for(self.budget):
            try:
                found.append(self._allot(law, parts))
            except InputError as refusal:
                refusals.append(refusal)
        if not found:
            raise refusals[0]
        return found

    def _allot(self, law: Law, parts: Sequence[Part]) -> tuple[Allotment, ...]:
        shares = [part.share for part in parts]
        if max(unit_scale(self.budget, law, share) for share in shares) > _MOST_NOISE:
            raise self._too_small()
        bits = BITS
        while True:
            ranked = [self._ranked_in(part, law, bits) for part in parts]
            # Scales come from what is certified, so at first any will do.
            measured = [
                Measurement(best, law, 1.0, part.groups) for (best, *_), part in zip(ranked, parts, strict=True)
            ]
            found = scales(
                self.budget,
                law,
                [one.certificate.bound for one in measured],
                shares,
                [one.cost.rows for one in measured],
            )
            found = [
                one.design.scale if isinstance(one.design, PrescribedScale) else scale
                for one, scale in zip(measured, found, strict=True)
            ]
            if max(found) <= _WIDEST_SCALE or (bits == _FEWEST_BITS and max(found) <= _HIGHEST_SCALE):
                break
            if bits == _FEWEST_BITS:
                raise self._too_small()
            bits = max(_FEWEST_BITS, bits - math.ceil(math.log2(max(found) / _WIDEST_SCALE)))
        return tuple(
            Allotment(part.query, replace(one, scale=scale), part.share, *_alternatives(weighed, part.groups))
            for part, one, weighed, scale in zip(parts, measured, ranked, found, strict=True)
        )

    def _too_small(self) -> InputError:
        return InputError(
            f"{self.budget} is too small for what is asked: the noise would be {_MOST_NOISE:.0e} counts or more; "
            "choose a larger budget or ask for less"
        )

    def _ranked_in(self, part: Part, law: Law, bits: int) -> list[Design]:
        """The designs of a part, best first where each is measured in all groups."""
        found = self._ranked(part.query, law, part.share, bits)
        return sorted(found, key=lambda design: error_in(design, part.groups))

    def _ranked(self, query: Query, law: Law, share: float, bits: int) -> list[Design]:
        window = query.window
        if isinstance(window, Rolling) and window.length >= self.timeline.steps:
            window = Cumulative()
        problem = Problem(
            window=window,
            steps=self.timeline.steps,
            thresholds=_thresholds(query),
            unit=self.unit,
            law=law,
            noise_per_unit=unit_scale(self.budget, law, share),
            criterion=self.criterion,
            bits=bits,
            singleton=self.singleton,
            budget=part_of(self.budget, share),
            rule=self.rule,
        )
        return candidates(problem, self.strategy)


def _require_kind(name: str, value: object, kinds: type | tuple[type, ...], wanted: str) -> None:
    if not isinstance(value, kinds):
        raise InputError(f"{name} must be {wanted}, got {value!r}")


def _thresholds(query: Query) -> tuple[int, ...]:
    return tuple(sorted({k for measure in query.measures for k in measure.thresholds}))


def _shares(queries: Sequence[Query], weights: Mapping[str, float] | Sequence[float] | None) -> list[float]:
    texts = [query.window.text for query in queries]
    if isinstance(weights, Mapping):
        if unknown := set(weights) - set(texts):
            raise InputError(f"weights name windows that are not asked for: {', '.join(sorted(unknown))}")
        weights = [weights.get(text, 1.0) for text in texts]
    weights = list(weights) if weights is not None else [1.0] * len(texts)
    if len(weights) != len(texts):
        raise InputError(f"{len(weights)} weights were given for {len(texts)} window families: {', '.join(texts)}")
    if not all(isinstance(weight, (int, float)) and math.isfinite(weight) and weight > 0 for weight in weights):
        raise InputError(f"weights must be finite and greater than 0, got {weights}")
    # Floating shares may sum to a hair over 1, which the head-room of the scales covers.
    return [weight / sum(weights) for weight in weights]


def part_of(budget: Budget, share: float) -> Budget | None:
    """A share of a budget by basic composition; None where a part of it is too small for a floating-point number."""
    try:
        match budget:
            case PureDP(epsilon):
                return PureDP(epsilon * share)
            case ApproxDP(epsilon, delta):
                return ApproxDP(epsilon * share, delta * share)
            case ZCDP(rho):
                return ZCDP(rho * share)
    except InputError:
        return None
    raise ValueError(f"unknown budget {budget!r}")


def _least_error(plans: Sequence[tuple[Allotment, ...]], shares: Sequence[float]) -> tuple[Allotment, ...]:
    """The noise law whose designs have the least weighted geometric mean error; the others become alternatives.

    One law serves the whole plan: a family that another would serve better cannot have it, so that is none.
    """

    def mean_log(allotments: tuple[Allotment, ...]) -> float:
        errors = [allotment.chosen.error for allotment in allotments]
        return sum(share * math.log(max(error, 1e-300)) for share, error in zip(shares, errors, strict=True))

    best = min(plans, key=mean_log)
    passed = [plan for plan in plans if plan is not best]
    return tuple(
        replace(
            allotment,
            others=allotment.others
            + tuple(found for plan in passed if (found := plan[i].chosen).error >= allotment.chosen.error),
        )
        for i, allotment in enumerate(best)
    )


def _alternatives(weighed: Sequence[Design], groups: Groups | None) -> tuple[Alternative, tuple[Alternative, ...]]:
    first, *rest = (Alternative(design.strategy, error_in(design, groups)) for design in weighed)
    return first, tuple(rest)
