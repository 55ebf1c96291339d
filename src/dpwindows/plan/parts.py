"""The parts of a plan that are measured separately: every query, and with groups each query at each level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpwindows.ask.groups import Grouping
from dpwindows.ask.privacy import EventLevel, Unit
from dpwindows.ask.queries import Query
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design
from dpwindows.kernel.groups import Groups, certify_groups
from dpwindows.strategies import paper
from dpwindows.strategies.scoring import score


@dataclass(frozen=True)
class Part:
    """One query that is measured by itself with a share of the budget, in groups or not.

    Of several families that are measured as one, `shares` are those of each.
    """

    query: Query
    share: float
    groups: Groups | None = None
    shares: tuple[float, ...] = ()


def parts_of(queries: Sequence[Query], shares: Sequence[float], grouping: Grouping | None) -> list[Part]:
    """The parts of a plan; those of totals take their share of each query's share."""
    if grouping is None:
        return [Part(query, share) for query, share in zip(queries, shares, strict=True)]
    levels = list(zip(grouping.levels, grouping.shares(), strict=True))
    return [
        Part(query, share * part, Groups(grouping, level))
        for query, share in zip(queries, shares, strict=True)
        for level, part in levels
    ]


def cells_of(grouping: Grouping | None) -> int:
    """The number of groups, totals included, that every query is answered in; 1 without groups."""
    return 1 if grouping is None else sum(level.count for level in grouping.levels)


def require_groups(grouping: Grouping | None, unit: Unit, steps: int, strategy: str) -> None:
    """Check that groups go with the unit of privacy and the strategy.

    Raises:
        InputError: they do not.
    """
    if grouping is None:
        return
    grouping.require_fit(unit, steps)
    if strategy == paper.NAME and not isinstance(unit, EventLevel):
        raise InputError("the strategy paper has no groups at item level: leave --strategy out")


def error_in(design: Design, groups: Groups | None) -> float:
    """The error of a design in counts, by its problem's criterion, where it is measured in all of these groups."""
    if groups is None:
        return score(design)
    growth = certify_groups(design, groups).bound / design.sensitivity
    return score(design) * (growth**0.5 if design.problem.law == GAUSSIAN else growth)
