"""Certificates of tumbling counts and of counts to date, found from those of rolling and cumulative counts.

A period's windows are those of a log of its own (`dpwindows.kernel.bounds.periods`). So what is measured of them is
certified by the row of the table in `dpwindows.kernel.certify` for one problem that stands for all periods.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpwindows.ask.periods import first_steps, sizes
from dpwindows.ask.privacy import EventLevel, ItemPerPeriod
from dpwindows.ask.queries import Cumulative, PeriodFamily, Rolling, ToDate, Tumbling
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.bounds.periods import periods_met, periods_met_at_most, to_date_bound, tumbling_bound
from dpwindows.kernel.certify import Certificate, NotCertifiedError, require_own
from dpwindows.kernel.certify_series import along_time, moved_along_time
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap
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
    """

    count: int | None
    longest: int
    changed: int | None


def layout_of(problem: Problem, horizon: int | None, fewest: int, most: int) -> Layout:
    """The layout of a problem's periods.

    Args:
        problem: its window is a family with periods, its unit says what a neighbour is.
        horizon: the number of steps, None if there is no end.
        fewest: every period but the first and the last has so many steps or more; read without a horizon only.
        most: every period has at most so many steps; likewise.
    """
    window, unit = problem.window, problem.unit
    assert isinstance(window, PeriodFamily)
    if horizon is None:
        spanned = periods_met_at_most(fewest, unit.steps) if isinstance(unit, ItemPerPeriod) else None
        return Layout(None, most, 1 if isinstance(unit, EventLevel) else spanned)
    firsts = first_steps(window, horizon)
    spanned = periods_met(firsts, horizon, unit.steps) if isinstance(unit, ItemPerPeriod) else len(firsts)
    return Layout(len(firsts), int(sizes(window, horizon).max()), 1 if isinstance(unit, EventLevel) else spanned)


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


def in_periods(problem: Problem, measured: IntegerMap, advise: Advise) -> tuple[int, str]:
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
        case Tumbling(), _ if measured.length == layout.count:
            bound, _ = along_time(series, measured, layout.count, advise)
            return tumbling_bound(bound), name_of(tumbling_bound)
        case ToDate() as window, Repeated(map=one, lengths=lengths) if (
            lengths == tuple(sizes(window, problem.steps).tolist()) and one.length == layout.longest
        ):
            assert layout.changed is not None
            bound, _ = along_time(series, one, layout.longest, advise)
            return to_date_bound(bound, layout.changed), name_of(to_date_bound)
    raise NotCertifiedError(problem, measured)


def in_periods_of_stream(
    problem: Problem, measured: CausalMap, horizon: int | None, fewest: int, most: int, advise: Advise
) -> Certificate:
    """The same in a stream, whose shape sees that no period has more or fewer steps than `layout_of` is told.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    layout = layout_of(problem, horizon, fewest, most)
    if layout.changed is None or layout.longest > most:
        raise NotCertifiedError(problem, measured)
    series = series_of(problem, layout)
    if isinstance(problem.window, Tumbling):
        bound, _ = along_time(series, measured, layout.count, advise)
        moved = moved_along_time(series, measured, layout.count)
        return Certificate(tumbling_bound(bound), name_of(tumbling_bound), moved)
    # Its maps are read for as many positions as the shape lets a period have.
    series = replace(series, steps=most)
    bound, _ = along_time(series, measured, most, advise)
    moved = moved_along_time(series, measured, most) * layout.changed
    return Certificate(to_date_bound(bound, layout.changed), name_of(to_date_bound), moved)
