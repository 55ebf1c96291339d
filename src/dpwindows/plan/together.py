"""Several rolling windows measured as one: which queries may be, and whether all of them err less for it.

Day, week and month at event level come from one history, so one filter on all three costs less than three filters with
a third of the budget each. The shares stay what the weights make them: a share says how the gain is spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpwindows.ask.privacy import EventLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import Measure, Query, Rolling, RollingTogether
from dpwindows.plan.allotment import Allotment, Alternative
from dpwindows.plan.parts import Part
from dpwindows.strategies.scoring import score_of

_DISTINCT = (Measure("at_least", 1),)
# How many families are measured as one at most, and their longest window.
_MOST, LONGEST = 8, 512
# An error may be larger than another by rounding alone.
_ROUNDING = 1e-9


def together(parts: Sequence[Part], unit: Unit, steps: int | None) -> list[int]:
    """The places of the parts that can be measured as one: rolling counts of distinct items, without groups.

    Args:
        parts: what is asked.
        unit: the unit of privacy.
        steps: the horizon, None if there is none; windows as long as it are cumulative.
    """
    if not (isinstance(unit, EventLevel) or unit == ItemPerPeriod(1)):
        return []
    found = [at for at, part in enumerate(parts) if part.groups is None and _fits(part.query, steps)]
    return found if 2 <= len(found) <= _MOST else []


def _fits(query: Query, steps: int | None) -> bool:
    window = query.window
    if not isinstance(window, Rolling) or query.measures != _DISTINCT:
        return False
    return window.length <= LONGEST and (steps is None or window.length < steps)


def joined(parts: Sequence[Part], places: Sequence[int]) -> list[Part]:
    """The parts with those at the places as one, which comes first."""
    lengths = [window.length for at in places if isinstance(window := parts[at].query.window, Rolling)]
    shares = tuple(parts[at].share for at in places)
    one = Part(Query(RollingTogether(tuple(lengths)), _DISTINCT), sum(shares), shares=shares)
    return [one, *(part for at, part in enumerate(parts) if at not in places)]


def spread(
    allotments: Sequence[Allotment], apart: Sequence[Allotment], places: Sequence[int]
) -> tuple[Allotment, ...] | None:
    """The allotments of `joined` parts, one for each query again; None where a query errs more than apart.

    Args:
        allotments: of the joined parts, the joint one first.
        apart: what every query gets by itself.
        places: of the queries that are measured as one.
    """
    one, others = allotments[0], iter(allotments[1:])
    found = []
    for at, before in enumerate(apart):
        if at not in places:
            found.append(next(others))
            continue
        mine = replace(one, query=before.query, share=before.share, series=places.index(at))
        criterion = one.measurement.design.problem.criterion
        error = score_of(mine.variance(_DISTINCT[0]), None, criterion)
        chosen = Alternative(one.measurement.design.strategy, error)
        found.append(replace(mine, chosen=chosen, others=(before.chosen, *before.others)))
    better = all(
        after.chosen.error <= before.chosen.error * (1 + _ROUNDING) for after, before in zip(found, apart, strict=True)
    )
    return tuple(found) if better else None
