r"""How far one neighbour moves a measurement that is made in every group of a log, each time with noise of its own.

The groups of one level are numbered, and counting gives each group the answers of a log of its own (`count.groups`):
the rows that are counted in it. A stream keeps every item apart in each group and counts each row in the group of its
own values, or, where an item has one group, all rows of an item in the one that it was first in, which it keeps for
good (`stream.recencies`): so this is true at every step of it, late rows included. So what is measured in
all groups together is one vector with a block for each group, and a block is a function of that group's own log. A
neighbour moves the whole by the sum over blocks: of L1 norms under Laplace noise, and of squared L2 norms under
Gaussian noise, since the blocks share no coordinate. The numbers that it can change add up as well. What has to be
proved is which groups' logs may change, and how.

A value decides about its own row only (`count.query.groups`): whether a row is counted, and in which group, does not
depend on other rows, but where a rule for each *item* says so, and then it depends on the rows of that item alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from dpwindows.ask.groups import Grouping, Level
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.windows import Answers
from dpwindows.kernel.certificate import Certificate, NotCertifiedError
from dpwindows.kernel.designs import Design
from dpwindows.kernel.rules import proves


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


@proves("alike-in-groups")
def alike_in_groups(bound: int, most: int) -> int:
    """Neighbours whose logs differ in at most `most` groups, in each of them as neighbours by the same unit do.

    *Proof.* Where a group's log differs its block moves by at most `bound`, elsewhere not at all. Such neighbours are:

    - *One occurrence added or removed*, each row in the group of its own values. It belongs to a row, the row has one
      value in each group column, and the groups of a level are disjoint sets of values: the row is counted in one group
      or in none. How many occurrences it stands for does not matter, since the column of counts makes no groups
      (`count.events`). No other row's group depends on it. So one log gains or loses one occurrence: `most` is 1.
    - *One item added or removed.* Which groups an item is counted in is decided from its own rows, so the rows of other
      items are counted on both sides alike. The item's rows stand in the logs of at most as many groups as one item is
      counted in on the side on which it is there, and in none on the other: each gains or loses one item.
    - *One item changed within a period*, where an item is counted in every group that it has events in. Without a limit
      on an item's groups no rule looks at other rows: rows outside the period are counted in their own groups on both
      sides alike. So every group's log has one item changed within the period, or none. (With a limit, or with one
      group for all of an item's events, a change within the period may decide where events outside of it are counted:
      that is not covered.) QED.

    Args:
        bound: what one neighbour moves in one group.
        most: the most groups whose logs differ.
    """
    return bound * most


@proves("groups-of-a-changed-item")
def groups_of_a_changed_item(changed: int, moved: int, groups: int, most: int) -> int:
    """One item changed arbitrarily, where one item is counted in at most `most` of `groups` groups.

    *Proof.* As for an item added or removed, only logs of groups in which the item is counted on one side or the other
    may differ. Let b groups count it on both sides, and u and v on one side only: b + u <= most, b + v <= most and
    b + u + v <= groups. A log of the first kind has one item changed arbitrarily, and its block moves by at most
    `changed`; one of the others gains or loses one item, and its block moves by at most `moved`. So the whole moves by
    at most `b changed + (u + v) moved`, and for a given b there are at most `min(2 (most - b), groups - b)` of the
    others. The bound is the largest of these over b = 0..most. As both bounds hold for an item that is added or removed
    (one of its two histories may be empty), the smaller of them may be used for the others. QED.

    Args:
        changed: what one item changed arbitrarily moves in one group.
        moved: what one item added or removed moves in one group.
        groups: how many groups there are.
        most: the most of them that one item is counted in.
    """
    alone = min(changed, moved)
    return max(both * changed + min(2 * (most - both), groups - both) * alone for both in range(most + 1))


def certify_groups(design: Design, groups: Groups) -> Certificate:
    """What is proved of a design that is measured in every one of these groups; its proof is that about groups.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    grouping, count, unit = groups.grouping, groups.level.count, design.problem.unit
    if groups.level not in grouping.levels:
        raise NotCertifiedError(design.problem, groups)
    most, by_event = grouping.most(groups.level), grouping.group_of == "event"
    if isinstance(unit, ItemLevel):
        # A design certified for an item that changes has a certificate for one that is added or removed, too.
        presence = replace(design, problem=replace(design.problem, unit=ItemAddRemove())).certificate
        changed = partial(groups_of_a_changed_item, groups=count, most=most)
        return _apply(changed, "groups-of-a-changed-item", design.certificate, presence)
    match unit:
        case EventLevel() if by_event and grouping.max_groups is None:
            differing = 1
        case ItemAddRemove():
            differing = most
        case ItemPerPeriod() if by_event and most == count:
            differing = count
        case _:
            raise NotCertifiedError(design.problem, groups)
    return _apply(partial(alike_in_groups, most=differing), "alike-in-groups", design.certificate)


def _apply(bound: Callable[..., int], proof: str, *certificates: Certificate) -> Certificate:
    """A bound for all groups applied to everything that is proved of one."""
    squares = [one.squared for one in certificates if one.squared is not None]
    return Certificate(
        bound(*(one.bound for one in certificates)),
        proof,
        bound(*(one.moved for one in certificates)),
        bound(*squares) if len(squares) == len(certificates) else None,
    )
