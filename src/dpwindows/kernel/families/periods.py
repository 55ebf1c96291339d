"""Tumbling counts and counts to date: one map from period to period, or anew in each period.

Steps fall into consecutive **periods**, the same for every log: they come from a calendar or a number of steps, never
from data. What occurs in one period is in no window of another. So a period's windows see a log of their own, the
events of the period's steps, and

- *an event* lies in one step, so it changes the log of **one** period, by one occurrence;
- *an item changed within L consecutive steps* changes the logs of the periods that these steps meet
  (`periods_met`), in each of them within its part of the span;
- *an item changed, added or removed* changes the log of every period, in each as the whole log was changed.

The counts to date of a period are the cumulative counts of its own log, which goes on without events where the series
of a shorter period is continued by its last value. So they are lines (`dpwindows.kernel.families.lines`), one for each
period; and one event changes what it changes of the cumulative counts of one of them.

So one problem stands for all periods (`series_of`), and the rules for its windows give the certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.periods import ends_with, first_steps, place_of, sizes
from dpwindows.ask.privacy import EventLevel, ItemPerPeriod
from dpwindows.ask.queries import Cumulative, PeriodFamily, Rolling, ToDate, Tumbling, WindowFamily
from dpwindows.ask.windows import Answers, count_windows
from dpwindows.ask.zones import Int64Array
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.designs import StepAnswers, StepShape
from dpwindows.kernel.families.lines import Line, Lines, count_moved, line_costs, lines_bound
from dpwindows.kernel.families.series import series
from dpwindows.kernel.maps.integer_maps import CausalMap, IntArray, IntegerMap, Memory
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import ALL_UNITS, ITEM_UNITS, Case, certify, rule

# The most steps that a period may have: bounds are worked out for each.
LONGEST_PERIOD = 1 << 20


@dataclass(frozen=True)
class SeriesInPeriods(StepShape):
    """One series. Tumbling: a number at the last step of each period; to date: one at every step.

    Attributes:
        map: for tumbling counts its positions are the periods, for counts to date the steps of a period.
        fewest: every period but the first and the last has this many steps or more, which the certificate rests on.
        most: no period has more steps.
        last: the step after which there are no more, None if there is no end: it cuts the last window.
        continued: in a release, measure the counts to date of all periods as far as the longest period, continued by
            their last value. Otherwise the map has a row for each position, and those beyond a period are left out.

    Raises:
        ValueError: periods are too long, or continued is neither yes nor no.
    """

    map: IntegerMap
    fewest: int
    most: int
    last: int | None
    continued: bool = False

    def __post_init__(self) -> None:
        if self.most > LONGEST_PERIOD or type(self.continued) is not bool:
            raise ValueError(f"periods have at most {LONGEST_PERIOD} steps, and are continued or not, got {self}")

    @classmethod
    def of_release(cls, window: PeriodFamily, steps: int, measured: IntegerMap, *, continued: bool) -> SeriesInPeriods:
        """A map in the periods of a release of `steps` steps."""
        every = sizes(window, steps)
        return cls(measured, int(every[1:-1].min(initial=steps)), int(every.max()), steps, continued)

    def is_for(self, case: Case) -> bool:
        """The calendar has no other periods than the certificate counts on."""
        return _as_series(case) is not None

    def moved(self, case: Case) -> int:
        """What is moved in one period, in every period that a change can meet."""
        found = _as_series(case)
        assert found is not None, "`is_for` says so"
        layout, once = found
        assert layout.changed is not None
        moved = count_moved(once) * (1 if isinstance(case.problem.window, Tumbling) else layout.changed)
        # Without rows beyond a period there is a number for each window, and no two windows end at one step.
        return moved if case.steps is None or self.continued else min(moved, case.steps)

    # --- All at once ---

    def rows(self, window: WindowFamily, steps: int) -> int:
        if isinstance(window, Tumbling):
            return self.map.rows(count_windows(window, steps))
        return int(self.rows_measured(window, steps).sum())

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        return self.encode_series(window, series(window, answers, k))

    def encode_series(self, window: WindowFamily, exact: IntArray) -> IntArray:
        """The map applied to the exact series of a family, shape (windows, ...), as one or in each period."""
        if isinstance(window, Tumbling):
            return self.map.encode(exact)
        lengths = sizes(_in_periods(window), len(exact))
        ends = np.cumsum(lengths)
        places = np.minimum(ends - lengths + np.arange(self.most)[:, None], ends - 1)
        return apply_along_each(self.map.encode, exact[places])[self.rows_measured(window, len(exact))]

    def rows_measured(self, window: WindowFamily, steps: int) -> NDArray[np.bool_]:
        """Marks the rows that are measured of the counts to date of each period, shape (periods, rows of the map)."""
        lengths = sizes(_in_periods(window), steps)[:, None]
        rows = np.arange(self.map.rows(self.most))
        return np.asarray((rows < lengths) | self.continued)

    # --- Step by step ---

    @property
    def causal(self) -> CausalMap:
        """The map of a stream."""
        return self.map  # type: ignore[return-value]

    def _require_planned(self, window: PeriodFamily, step: int, memory: Memory) -> None:
        """Check that a step follows those before it in the calendar that the certificate counts on.

        The rules of time zones change: a month that began an hour earlier by newer ones would be measured twice.

        Raises:
            ValueError: a period has more or fewer steps, or other ones, than were planned.
        """
        period, place = place_of(window, step)
        before = int(memory["place"][0])
        # The first period may be cut. The last one is not followed by another.
        short = place == 1 and period > 2 and before < self.fewest
        if short or place > self.most or place not in (1, before + 1):
            raise ValueError(
                f"step {step} is number {place} of a period of {window}, after number {before}, and periods have "
                f"{self.fewest} to {self.most} steps: the rules of the time zone are not those it was planned with"
            )

    def position(self, window: WindowFamily, step: int) -> int | None:
        """The position of the map that a step is, None if nothing is measured at it."""
        window = _in_periods(window)
        period, place = place_of(window, step)
        if isinstance(window, ToDate):
            return place
        return period if step == self.last or ends_with(window, step) else None

    def reach(self, window: WindowFamily) -> int:
        """No period is longer."""
        return self.most

    def rows_at(self, window: WindowFamily, step: int) -> int:
        position = self.position(window, step)
        return 0 if position is None else self.causal.rows_at(position)

    def fresh(self) -> Memory:
        """The map's memory before its first position, of one lane, and the place of a step in its period."""
        return self.causal.fresh(1) | {"place": np.zeros(1, dtype=np.int64)}

    def _own(self, position: int, memory: Memory) -> Memory:
        """The memory of the map; at the first step of a period one of nothing."""
        return self.causal.fresh(1) if position == 1 else memory

    def encode_step(
        self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory
    ) -> tuple[IntArray, Memory]:
        self._require_planned(_in_periods(window), answers.step, memory)
        position = self.position(window, answers.step)
        place = {"place": np.array(place_of(_in_periods(window), answers.step)[1:], dtype=np.int64)}
        if position is None:
            return np.zeros(0, dtype=np.int64), memory | place
        newest = _newest(window, answers, k)
        measured, after = self.causal.encode_step(position, newest, self._own(position, memory))
        return measured.ravel(), after | place


def apply_along_each(apply: Callable[[IntArray], IntArray], columns: IntArray) -> IntArray:
    """A function of columns, shape (n, columns), applied to an array of shape (n, periods, ...): by period and row."""
    applied = apply(columns.reshape(len(columns), -1))
    return np.moveaxis(applied.reshape(len(applied), *columns.shape[1:]), 1, 0)


def _in_periods(window: WindowFamily) -> PeriodFamily:
    if not isinstance(window, PeriodFamily):
        raise ValueError(f"{window} has no periods")
    return window


def _newest(window: WindowFamily, answers: StepAnswers, k: int) -> IntArray:
    """The count of the period so far, shape (1,)."""
    _, place = place_of(_in_periods(window), answers.step)
    return np.asarray(answers.recent[k][place - 1])[None].astype(np.int64)


# --- How steps fall into periods --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """How the steps of a problem fall into periods.

    Attributes:
        count: how many periods there are, None if there is no end of them.
        longest: the most steps that one has.
        changed: the most periods that one neighbour can change, None if all.
        fewest: a lower bound on the steps of any period but the first and the last.
    """

    count: int | None
    longest: int
    changed: int | None
    fewest: int


def layout_of(problem: Problem, horizon: int | None, fewest: int, most: int) -> Layout:
    """The layout of a problem's periods.

    Args:
        problem: its window is a family with periods, its unit says what a neighbour is.
        horizon: the number of steps, None if there is no end.
        fewest: a lower bound on the steps of any period but the first and the last.
        most: an upper bound on the steps of any period; with a horizon the calendar says it.
    """
    window, unit = problem.window, problem.unit
    assert isinstance(window, PeriodFamily)
    if horizon is None:
        count, longest, between, spanned = None, most, fewest, None
        if isinstance(unit, ItemPerPeriod):
            spanned = periods_met_at_most(fewest, unit.steps)
    else:
        firsts, every = first_steps(window, horizon), sizes(window, horizon)
        count, longest, between = len(firsts), int(every.max()), int(every[1:-1].min(initial=fewest))
        spanned = periods_met(firsts, horizon, unit.steps) if isinstance(unit, ItemPerPeriod) else count
    return Layout(count, longest, 1 if isinstance(unit, EventLevel) else spanned, between)


def series_of(problem: Problem, layout: Layout) -> Problem:
    """The problem that stands for all periods: one step a period for tumbling counts, the longest period for to date.

    Its `singleton` promise is gone: a period may hold many events. So is a bound on runs, which is one on rolling
    counts of the steps; a bound on an item's occurrences holds for those of a period as well.
    """
    unit, problem = problem.unit, replace(problem, rule=replace(problem.rule, max_runs=None))
    if isinstance(problem.window, Tumbling):
        if isinstance(unit, ItemPerPeriod):
            assert layout.changed is not None
            unit = ItemPerPeriod(layout.changed)
        steps = layout.count or problem.steps
        return replace(problem, window=Rolling(1), steps=steps, unit=unit, singleton=False)
    return replace(problem, window=Cumulative(), steps=layout.longest, singleton=False)


def periods_met(firsts: Int64Array, steps: int, span: int) -> int:
    """The most periods that `span` consecutive ones of the steps 1..steps meet, exact.

    Proof. The periods met are consecutive. A span that meets period j first may be moved to begin with the last step of
    j (or, where it would leave the range, cut there): it still meets j, and no period less behind. So the spans that
    begin with the last step of a period are enough. QED.

    Args:
        firsts: the first step of each period, ascending, beginning with 1.
        steps: the horizon.
        span: the steps within which an item may change.
    """
    last = np.append(firsts[1:] - 1, steps)
    reached = np.searchsorted(firsts, last + min(span, steps) - 1, side="right")
    return int((reached - np.arange(len(firsts))).max())


def periods_met_at_most(fewest: int, span: int) -> int:
    """A bound on the periods that `span` consecutive steps meet, where all periods but the first have `fewest` or more.

    Proof. Of n >= 2 periods met in a row all but the first and the last lie in the span, and are not the first there
    is; of those two it holds one step or more each: `span >= (n-2) fewest + 2`. QED.

    Raises:
        ValueError: periods may have no steps.
    """
    if fewest < 1:
        raise ValueError(f"every period has a step at least, not {fewest}")
    return 1 if span == 1 else (span - 2) // fewest + 2


# --- Certificates -----------------------------------------------------------------------------------------------------


def _as_series(case: Case) -> tuple[Layout, Case] | None:
    """How the periods lie, and the case of the one series that stands for all; None for a shape of other periods."""
    shape: SeriesInPeriods = case.measured
    if case.steps != shape.last or shape.fewest < 1:
        return None
    layout = layout_of(case.problem, case.steps, shape.fewest, shape.most)
    if layout.changed is None or layout.longest > shape.most:
        return None
    # A map to date is read as far as a period may last.
    steps = layout.count if isinstance(case.problem.window, Tumbling) else shape.most
    return layout, replace(case, problem=series_of(case.problem, layout), measured=shape.map, steps=steps)


_LAWS = GAUSSIAN, LAPLACE


@rule("one-series-for-periods", ToDate, EventLevel, _LAWS, SeriesInPeriods, when="a rule for cumulative counts")
@rule(
    "one-series-for-periods", Tumbling, ALL_UNITS, _LAWS, SeriesInPeriods, when="a rule for rolling counts of length 1"
)
def series_for_periods(case: Case) -> int | None:
    """Counts in periods, or to date by one event: what one series costs that stands for all periods.

    Proof. *Tumbling counts* are rolling counts of length 1 on a log whose steps are the periods. Give every
    occurrence the number of its period in place of that of its step. The tumbling counts of the log are the rolling
    counts of length 1 of what results, number by number. Neighbours stay neighbours (module docstring): one
    occurrence stays one; an item changed, added or removed stays so; and a change within L steps is one within the
    periods they meet, which are consecutive. So a bound for these neighbours is one for the tumbling counts.
    (Measured directly at event level it is 1: one window changes, for one threshold.)
    *Counts to date* by one event: the occurrence lies in one period, and changes the counts of no other. These are
    the cumulative counts of the period's own log, which gains or loses one occurrence. A shorter period is a longer
    one that is cut, or that goes on without events. QED.
    """
    found = _as_series(case)
    return None if found is None else certify(found[1])[0]


@rule(
    "windows-on-lines",
    ToDate,
    ITEM_UNITS,
    _LAWS,
    SeriesInPeriods,
    when="costs of a line for the map",
)
def to_date_on_lines(case: Case) -> int | None:
    """Counts to date of items: a forward line for each period that a change meets."""
    found, unit = _as_series(case), case.problem.unit
    if found is None:
        return None
    layout, once = found
    longest, costs = once.horizon, line_costs(once, once.steps)
    if costs is None or layout.changed is None:
        return None
    if case.measured.continued:
        # Rows beyond the end of a period are measured too: a change may move all that the map makes of it.
        costs = 0, max(costs)
    span = unit.steps if isinstance(unit, ItemPerPeriod) else layout.changed * longest
    lines = lines_of_periods(longest, layout.changed, span, layout.fewest)
    return lines_bound(lines, costs, len(case.thresholds))


def lines_of_periods(longest: int, met: int, span: int, fewest: int) -> Lines:
    """Counts to date of the periods that one span meets, a forward line for each, from the period's first step.

    A span that meets r >= 2 periods holds one step or more of the last, and all r-2 in between. So of the first it
    holds at most L - 1 - (r-2) times the steps that one in between has, and these are all of its places that change.
    Each of the others may change as a whole. A span that meets fewer periods costs no more: each as a whole at most.

    Args:
        longest: the most steps of a period.
        met: the most periods that a span meets.
        span: the steps within which an item may change.
        fewest: a lower bound on the steps of any period but the first and the last of the range.
    """
    left = longest if met == 1 else min(longest, span - 1 - (met - 2) * fewest)
    return Lines([Line(1, longest, longest, met - 1), Line(1, left, left)], range(1, 2), 1)
