"""Which queries for rolling windows are measured as one: those that all err less for it.

Day, week and month at event level change by one history, so one filter on all three costs less than three filters with
a third of the budget each. The weights of the queries still set their shares: a share says who gains how much.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from dpwindows.ask.privacy import EventLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import Measure, Query, Rolling, RollingTogether
from dpwindows.plan.allotment import Allotment, Alternative
from dpwindows.plan.parts import Part
from dpwindows.strategies.scoring import score_of
from dpwindows.strategies.search import choice

_DISTINCT = (Measure("at_least", 1),)
# How many families are measured as one at most; and the most cells (pairs of them times their longest window squared)
# that a filter is searched over, which takes a few seconds. Three families may have windows of 500 steps.
_MOST, _MOST_CELLS = 8, 1_500_000


def choose_joint(parts: Sequence[Part], unit: Unit, steps: int | None) -> list[int]:
    """The places of the parts that can be measured as one: rolling counts of distinct items, without groups.

    Where that are too many, or windows too long for a filter to be searched, the longest are measured apart.

    Args:
        parts: what is asked.
        unit: the unit of privacy.
        steps: the horizon, None if there is none; windows as long as it are cumulative.
    """
    if not (isinstance(unit, EventLevel) or unit == ItemPerPeriod(1)):
        return []
    lengths = {at: window.length for at, part in enumerate(parts) if (window := _rolling(part, steps)) is not None}
    while len(lengths) > _MOST or _cells(lengths.values()) > _MOST_CELLS:
        del lengths[max(lengths, key=lambda at: lengths[at])]
    return list(lengths) if len(lengths) > 1 else []


def _rolling(part: Part, steps: int | None) -> Rolling | None:
    """The windows of a part that can be measured with others; None where it cannot."""
    window = part.query.window
    if part.groups is not None or part.query.measures != _DISTINCT or not isinstance(window, Rolling):
        return None
    return window if steps is None or window.length < steps else None


def _cells(lengths: Collection[int]) -> int:
    count = len(lengths)
    return count * (count + 1) // 2 * max(lengths, default=0) ** 2


def join_parts(parts: Sequence[Part], places: Sequence[int]) -> list[Part]:
    """The parts with those at the places as one, which comes first."""
    lengths = [window.length for at in places if isinstance(window := parts[at].query.window, Rolling)]
    shares = tuple(parts[at].share for at in places)
    one = Part(Query(RollingTogether(tuple(lengths)), _DISTINCT), sum(shares), shares=shares)
    return [one, *(part for at, part in enumerate(parts) if at not in places)]


def split_joint(
    allotments: Sequence[Allotment], apart: Sequence[Allotment], places: Sequence[int]
) -> tuple[Allotment, ...] | None:
    """The allotments of joined parts, one for each query again; None where a query errs more than apart.

    Args:
        allotments: of the joined parts, the joint one first.
        apart: what every query gets by itself.
        places: of the queries that are measured as one.
    """
    one, others = allotments[0], iter(allotments[1:])
    split = []
    for at, before in enumerate(apart):
        if at not in places:
            split.append(next(others))
            continue
        mine = replace(one, query=before.query, share=before.share, series=places.index(at))
        criterion = one.measurement.design.problem.criterion
        error = score_of(mine.variance(_DISTINCT[0]), None, criterion)
        chosen = Alternative(one.measurement.design.strategy, error)
        split.append(replace(mine, chosen=chosen, others=(before.chosen, *before.others)))
    # Together where no query errs more for it.
    better = not any(
        choice.first_near_best([after.chosen.error, before.chosen.error])
        for after, before in zip(split, apart, strict=True)
    )
    return tuple(split) if better else None
