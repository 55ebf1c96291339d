"""Certificates of a design that is measured in every group of a level, from the certificate for one group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from dpwindows.ask.groups import Grouping, Level
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.windows import Answers
from dpwindows.kernel.bounds.groups import (
    group_of_an_event,
    groups_of_a_changed_item,
    groups_of_a_changed_period,
    groups_of_an_item,
)
from dpwindows.kernel.certify import Certificate, NotCertifiedError
from dpwindows.kernel.designs import Design
from dpwindows.kernel.proofs import name_of


@dataclass(frozen=True)
class Groups:
    """The groups that one design is measured in: those of one level of a grouping."""

    grouping: Grouping
    level: Level

    @property
    def cells(self) -> range:
        """The codes of its groups among all cells of the grouping."""
        return range(self.level.first, self.level.first + self.level.count)


class GroupedAnswers(Protocol):
    """Exact answers of every group of one log; `count.groups.GroupedAnswers` is the real one."""

    @property
    def grouping(self) -> Grouping:
        """The groups that the log was counted by."""
        ...

    @property
    def steps(self) -> int:
        """The horizon T."""
        ...

    def group(self, cell: int) -> Answers:
        """The answers of one group, by its code."""
        ...


def certify_groups(design: Design, groups: Groups) -> Certificate:
    """What is proved of a design that is measured in every one of these groups; its proof is that about groups.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    grouping, count = groups.grouping, groups.level.count
    if groups.level not in grouping.levels:
        raise NotCertifiedError(design.problem, groups)
    most, one = grouping.most(groups.level), design.certificate
    by_row = grouping.of == "event" and grouping.max_groups is None
    match design.problem.unit:
        case EventLevel() if by_row:
            return _certify_groups(group_of_an_event, name_of(group_of_an_event), one)
        case ItemAddRemove():
            return _certify_groups(partial(groups_of_an_item, most=most), name_of(groups_of_an_item), one)
        case ItemLevel():
            changed = partial(groups_of_a_changed_item, groups=count, most=most)
            return _certify_groups(changed, name_of(groups_of_a_changed_item), one, _presence(design))
        case ItemPerPeriod() if grouping.of == "event" and most == count:
            within = partial(groups_of_a_changed_period, groups=count)
            return _certify_groups(within, name_of(groups_of_a_changed_period), one)
    raise NotCertifiedError(design.problem, groups)


def _certify_groups(bound: Callable[..., int], proof: str, *certificates: Certificate) -> Certificate:
    """A bound for all groups applied to everything that is proved of one."""
    squares = [one.squared for one in certificates if one.squared is not None]
    return Certificate(
        bound(*(one.bound for one in certificates)),
        proof,
        bound(*(one.moved for one in certificates)),
        bound(*squares) if len(squares) == len(certificates) else None,
    )


def _presence(design: Design) -> Certificate:
    """The certificate for one item added or removed: a design certified for an item that changes has one, too."""
    return replace(design, problem=replace(design.problem, unit=ItemAddRemove())).certificate
