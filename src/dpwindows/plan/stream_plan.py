"""The plan of a stream: what is measured at every step, with what noise, and how exact it will be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpwindows.ask.calendar import Calendar
from dpwindows.ask.counting_rule import CountingRule, require_one_bound
from dpwindows.ask.groups import Grouping, GroupOf, Value, cells_of, grouping
from dpwindows.ask.periods import fewest_and_most, placed
from dpwindows.ask.privacy import Budget, ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, PeriodFamily, Query, Rolling, RollingTogether, WindowFamily, normalise
from dpwindows.ask.timeline import Timeline, TimePoint
from dpwindows.ask.whole_numbers import MAX_DRAWS
from dpwindows.ask.windows import fit_to_range
from dpwindows.errors import InputError, counted
from dpwindows.kernel.accounting import Law
from dpwindows.kernel.designs import Design, StepDesign, horizon_of
from dpwindows.kernel.families.periods import LONGEST_PERIOD
from dpwindows.kernel.maps.endless_counter import MOST_STEPS
from dpwindows.kernel.measure import EXACT, Sampler
from dpwindows.kernel.problem import Criterion
from dpwindows.plan.allotment import Allotment
from dpwindows.plan.description import ENDLESS, HORIZON, describe, guarantee
from dpwindows.plan.planned import Planned
from dpwindows.plan.sharing import Part
from dpwindows.plan.workload import MAX_ROWS, Workload, least_workload, require_within
from dpwindows.strategies import joint_filter, stream_candidates

# Steps over which families without a horizon are planned, and an unlimited stream is forecast.
FORECAST_STEPS = 4096


class StreamPlan(Planned):
    """A continual release worked out before any data is seen, with causal decoding throughout.

    Rolling and bounded any windows need no horizon at event level and at item level within a period, and are planned
    the same with and without one: their error does not grow with time. Cumulative counts have one strategy for a
    horizon and one without; whole items need a horizon but for cumulative counts.

    Args:
        queries: what is asked; queries on one window family are measured together.
        unit: the unit of privacy.
        budget: what the whole stream may spend, over all its steps.
        horizon: the number of steps after which the stream ends; None: it is unlimited.
        strategy: `auto`, or the name of one causal strategy for every query.
        criterion: `rms` or `max`, the error over windows that strategies are chosen by.
        noise: `exact`, or `opendp` for independent noise drawn by OpenDP, of the same laws (`dpwindows[opendp]`).
        weights: relative importance of the window families, as in `Plan`.
        distinct_steps: an item counts at most once in a step, as in `Plan`.
        max_occurrences: as in `Plan`; with a horizon only.
        max_runs: as in `Plan`; with a horizon only.
        confidence: coverage of each interval by itself.
        start: the first moment of the stream, needed for windows of weeks, months, quarters or years; `Stream.create`
            must be given the same.
        step: with `start`, the length of a step (default "1d").
        time_zone: with `start`, the zone (default "UTC").
        max_draws: the most noise values that the forecast may be about: those of all its steps together.
        by: columns that make groups, each with the public list of its values, as in `Plan`.
        group_of: as in `Plan`; with `item` an item is in the group of the first step it occurs in, and of several the
            first by the lists.
        max_groups: as in `Plan`; where items are protected a stream counts each in all groups, and pays for all.
        totals: as in `Plan`.

    `forecast()` is for the `horizon` steps, or for the first 4,096 steps of an unlimited stream.

    Raises:
        InputError: something asked for is not legal, or needs a horizon.
    """

    def __init__(
        self,
        queries: Query | WindowFamily | Iterable[Query | WindowFamily],
        *,
        unit: Unit,
        budget: Budget,
        horizon: int | None = None,
        strategy: str = "auto",
        criterion: Criterion = "rms",
        noise: Sampler = EXACT,
        weights: Mapping[str, float] | Sequence[float] | None = None,
        distinct_steps: bool = False,
        max_occurrences: int | None = None,
        max_runs: int | None = None,
        confidence: float = 0.95,
        start: TimePoint | None = None,
        step: str | int | None = None,
        time_zone: str | None = None,
        max_draws: int = MAX_DRAWS,
        by: Mapping[str, Iterable[Value]] | None = None,
        group_of: GroupOf | None = None,
        max_groups: int | None = None,
        totals: float | None = None,
    ) -> None:
        if horizon is not None and not 1 <= horizon <= MOST_STEPS:
            raise InputError(f"the horizon must be a whole number of steps from 1 to {MOST_STEPS:,}, got {horizon!r}")
        self.horizon = horizon
        groups = grouping(by, group_of=group_of, max_groups=max_groups, totals=totals)
        self.rule = CountingRule(distinct_steps, max_occurrences, max_runs)
        if groups is not None:
            _require_kept(groups, unit, self.rule)
        clock = None if start is None else Timeline.of_length(start, 1, step or "1d", time_zone or "UTC")
        self.start = clock.start if clock else None
        self.step = clock.step if clock else None
        self.time_zone = clock.time_zone if clock else None
        self.queries = placed(normalise(queries), Calendar.of(clock) if clock else None, horizon or FORECAST_STEPS)
        longest = max(_longest_period(query.window, horizon) for query in self.queries)
        # A forecast without a horizon is for a whole period or more.
        self.timeline = Timeline.of_steps(horizon or max(FORECAST_STEPS, 2 * longest))
        self.unit, self.budget, self.strategy, self.criterion, self.weights = unit, budget, strategy, criterion, weights
        self.grouping, self.confidence, self.max_draws, self.noise = groups, confidence, max_draws, noise
        self._work_out(horizon)
        self.allotments = tuple(self._with_forecast(allotment, self.timeline.steps) for allotment in self.allotments)

    def __repr__(self) -> str:
        steps = "unlimited" if self.horizon is None else counted(self.horizon, "step")
        return f"StreamPlan({self._asked}; {steps}; {self.unit.name} level; {self.budget})"

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks worth telling whoever asked, one sentence each."""
        if self.horizon is not None:
            return super().notes
        return (f"the stream has no end; errors are forecast for its first {self.timeline.steps:,} steps",)

    @property
    def designs(self) -> tuple[StepDesign, ...]:
        """What is measured for each window family."""
        designs = [measurement.design for measurement in self.measurements]
        return tuple(design for design in designs if isinstance(design, StepDesign))

    def _require_bearable(self) -> None:
        """Noise is drawn step by step, so the numbers of a step are bounded; planning holds the steps forecast."""
        groups = cells_of(self.grouping)
        rows = groups * sum(
            len(query.measures)
            * ((query.window.max_length or self.timeline.steps) if isinstance(query.window, AnyWindow) else 1)
            for query in self.queries
        )
        if rows > MAX_ROWS:
            raise InputError(
                f"{rows:,} numbers would be released at every step, more than the {MAX_ROWS:,} that are allowed: "
                f"bound the windows' length (any:MAX){'' if self.grouping is None else ', name fewer groups'} or use "
                "coarser steps"
            )
        planned = [
            least_workload([query], planned_steps(query.window, self.unit, self.horizon), groups)
            for query in self.queries
        ]
        require_within(sum(planned, Workload()), self.max_draws, at_least=True)

    def _designs(self, part: Part, law: Law, bits: int) -> Sequence[Design]:
        window = fit_to_range(part.query.window, self.horizon)
        problem = self._problem(part, window, planned_steps(window, self.unit, self.horizon), law, bits)
        horizon = horizon_of(window, self.unit, self.horizon)
        return (
            [joint_filter.design(problem, horizon)]
            if part.shares
            else stream_candidates(problem, horizon, self.strategy)
        )

    def describe(self) -> dict[str, Any]:
        """What a release of this stream says about how it is made: plain values, nothing of them from data."""
        described = describe(self)
        for name in ("timeline", "release_id", "released_at", "notes"):
            del described[name]
        return described | {
            "guarantee": guarantee(self, over="the stream"),
            "notes": list(self.notes),
            HORIZON: ENDLESS if self.horizon is None else self.horizon,
        }

    @staticmethod
    def _with_forecast(allotment: Allotment, steps: int) -> Allotment:
        """The allotment with its forecast over `steps` steps."""
        design = allotment.measurement.design
        assert isinstance(design, StepDesign)
        measured = replace(allotment.measurement, design=design.forecast_over(steps))
        return replace(allotment, measurement=measured)


def _require_kept(groups: Grouping, unit: Unit, rule: CountingRule) -> None:
    """Check that a stream can keep what groups ask for: which several of them an item was first in it does not."""
    if groups.group_of == "event":
        require_one_bound(rule)
    if isinstance(unit, ItemPerPeriod):
        groups.require_period(unit.name)
    if not groups.limits_groups:
        return
    most = groups.levels[0].count
    raise InputError(
        f"--max-groups {groups.max_groups} is for releases: a stream does not keep which groups an item was first in. "
        f"Give --group-of item, so that each item is in one group, or --max-groups {most}, all groups, at {most} times "
        f"the cost, or protect events (--unit event), which needs no limit"
    )


def planned_steps(window: WindowFamily, unit: Unit, horizon: int | None) -> int:
    """The steps that the measurement of a family is searched for in a stream."""
    if (bounded := horizon_of(window, unit, horizon)) is not None:
        return bounded
    # Every end that one neighbour can change must lie within the steps that a bound is for: those of W + L - 1.
    period = unit.steps if isinstance(unit, ItemPerPeriod) else 1
    match window:
        case Rolling(length=longest) | AnyWindow(max_length=int(longest)):
            pass
        case RollingTogether(lengths=lengths):
            longest = max(lengths)
        case _:
            longest = 1
    longest = max(longest, _longest_period(window, None))
    return max(FORECAST_STEPS, 4 * longest, longest + period)


def _longest_period(window: WindowFamily, horizon: int | None) -> int:
    """The most steps that a period of a family has; 1 for families without."""
    if not isinstance(window, PeriodFamily):
        return 1
    _, longest = fewest_and_most(window)
    longest = longest if horizon is None else min(longest, horizon)
    if longest > LONGEST_PERIOD:
        raise InputError(
            f"{window} may have {longest:,} steps in a period, and a stream keeps counts for each of them, at most "
            f"{LONGEST_PERIOD:,}: take coarser steps or shorter periods"
        )
    return longest
