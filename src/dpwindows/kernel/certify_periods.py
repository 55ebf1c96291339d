"""Certificates of tumbling counts and of counts to date, found from those of rolling and cumulative counts.

A period's windows see only the events of the period (`dpwindows.kernel.bounds.periods`). So one problem stands for all
periods, and its row of the table in `dpwindows.kernel.certify` gives the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpwindows.ask.periods import first_steps, sizes
from dpwindows.ask.privacy import EventLevel, ItemPerPeriod
from dpwindows.ask.queries import Cumulative, PeriodFamily, Rolling, ToDate, Tumbling
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.bounds.periods import periods_met, periods_met_at_most, tumbling_bound
from dpwindows.kernel.certify import Certificate, NotCertifiedError, require_own
from dpwindows.kernel.certify_series import along_time, cumulative_costs, moved_along_time
from dpwindows.kernel.families.lines import lines_bound, lines_of_periods
from dpwindows.kernel.maps.integer_maps import IntegerMap
from dpwindows.kernel.maps.repeated import Repeated
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.proofs import name_of


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
        fewest: a lower bound on the steps of any period but the first and the last; 0 if the calendar alone says it.
        most: an upper bound on the steps of any period; read without a horizon only.
    """
    window, unit = problem.window, problem.unit
    assert isinstance(window, PeriodFamily)
    if horizon is None:
        spanned = periods_met_at_most(fewest, unit.steps) if isinstance(unit, ItemPerPeriod) else None
        return Layout(None, most, 1 if isinstance(unit, EventLevel) else spanned, fewest)
    firsts = first_steps(window, horizon)
    spanned = periods_met(firsts, horizon, unit.steps) if isinstance(unit, ItemPerPeriod) else len(firsts)
    every = sizes(window, horizon)
    between = int(every[1:-1].min(initial=fewest or horizon))
    return Layout(len(firsts), int(every.max()), 1 if isinstance(unit, EventLevel) else spanned, between)


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


def bound_in_periods(problem: Problem, measured: IntegerMap, advise: Advise) -> tuple[int, str]:
    """Tumbling counts as one series through a map, or counts to date through a map repeated for every period.

    Returns:
        The bound and the name of its proof.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    require_own(problem, measured)
    layout = layout_of(problem, problem.steps, 0, 0)
    series = series_of(problem, layout)
    match problem.window, measured:
        case Tumbling(), _:
            bound, _ = along_time(series, measured, layout.count, advise)
            return tumbling_bound(bound), name_of(tumbling_bound)
        case ToDate() as window, Repeated(map=one, lengths=lengths, causal=causal) if lengths == tuple(
            sizes(window, problem.steps).tolist()
        ):
            return _bound_to_date(series, layout, one, layout.longest, advise, cut=causal)
    raise NotCertifiedError(problem, measured)


def _bound_to_date(
    series: Problem, layout: Layout, measured: IntegerMap, longest: int, advise: Advise, *, cut: bool
) -> tuple[int, str]:
    """Counts to date, of periods of at most `longest` steps.

    Args:
        series: the problem that stands for all periods.
        layout: the periods.
        measured: the map that is applied to each.
        longest: the positions that it is read for.
        advise: who is asked for the free choices of a bound.
        cut: rows beyond the end of a period are not measured; otherwise a change may move all that the map makes of it.
    """
    assert layout.changed is not None
    if isinstance(series.unit, EventLevel):
        return along_time(series, measured, longest, advise)
    costs = cumulative_costs(series, measured, longest)
    span = series.unit.steps if isinstance(series.unit, ItemPerPeriod) else layout.changed * longest
    lines = lines_of_periods(longest, layout.changed, span, layout.fewest)
    return lines_bound(lines, costs if cut else (0, max(costs)), len(series.thresholds)), name_of(lines_bound)


def certify_in_periods_of_stream(
    problem: Problem, measured: IntegerMap, horizon: int | None, fewest: int, most: int, advise: Advise
) -> Certificate:
    """The certificate of a stream's periods; its shape sees to it that each has from `fewest` to `most` steps.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    layout = layout_of(problem, horizon, fewest, most) if fewest >= 1 else None
    if layout is None or layout.changed is None or layout.longest > most:
        raise NotCertifiedError(problem, measured)
    series = series_of(problem, layout)
    if isinstance(problem.window, Tumbling):
        bound, _ = along_time(series, measured, layout.count, advise)
        moved = moved_along_time(series, measured, layout.count)
        return Certificate(tumbling_bound(bound), name_of(tumbling_bound), moved)
    # Its maps are read for as many positions as the shape lets a period have.
    series = replace(series, steps=most)
    moved = moved_along_time(series, measured, most) * layout.changed
    return Certificate(*_bound_to_date(series, layout, measured, most, advise, cut=True), moved)
