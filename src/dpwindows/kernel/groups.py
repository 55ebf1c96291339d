r"""How far one neighbour moves a measurement that is made in every group of a log, each time with noise of its own.

The groups of one level are numbered, and counting gives each group the answers of a log of its own (`count.groups`):
the rows that are counted in it. A stream counts each row in the group of its own values and keeps every item apart in
each group (`stream.items`), so that this is true at every step of it, late rows included. So what is measured in all
groups together is one vector with a block for each group, and a block is a function of that group's own log. A
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
from dpwindows.kernel.rules import name_of, proves


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


@proves("group-of-an-event")
def group_of_an_event(bound: int) -> int:
    """One occurrence added or removed, each row in the group of its own values: what is moved in all groups together.

    *Proof.* The occurrence belongs to a row, the row has one value in each group column, and the groups of a level are
    disjoint sets of values: the row is counted in one group or in none. How many occurrences it stands for does not
    matter, since the column of counts makes no groups (`count.events`). No other row's group depends on it. So the logs
    of all other groups are the same on both sides, and their blocks do not move; the log of its own group gains or
    loses one occurrence of one item, which moves that block by at most `bound`. QED.

    Args:
        bound: what one occurrence moves in one group.
    """
    return bound


@proves("groups-of-an-item")
def groups_of_an_item(bound: int, most: int) -> int:
    """One item added or removed, where one item is counted in at most `most` groups.

    *Proof.* Which groups an item is counted in is decided from its own rows, so the rows of other items are counted on
    both sides alike. The item's rows stand in the logs of at most `most` groups on the side on which it is there, and
    in none on the other: each of these logs gains or loses one item with all of its occurrences in that group, and its
    block moves by at most `bound`. All other blocks stay. QED.

    Args:
        bound: what one item added or removed moves in one group.
        most: the most groups that one item is counted in.
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


@proves("groups-of-a-changed-period")
def groups_of_a_changed_period(bound: int, groups: int) -> int:
    """One item changed within a period, where an item is counted in every group that it has events in.

    *Proof.* Without a limit on an item's groups no rule looks at other rows: rows outside the period are counted in
    their own groups on both sides alike. So the log of each group has one item changed within the period, or none, and
    its block moves by at most `bound`. QED. (With a limit, or with one group for all of an item's events, a change
    within the period may decide where events outside of it are counted: that is not covered.)

    Args:
        bound: what one item changed within the period moves in one group.
        groups: how many groups there are.
    """
    return bound * groups


def certify_groups(design: Design, groups: Groups) -> Certificate:
    """What is proved of a design that is measured in every one of these groups; its proof is that about groups.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    grouping, count = groups.grouping, groups.level.count
    if groups.level not in grouping.levels:
        raise NotCertifiedError(design.problem, groups)
    most, one = grouping.most(groups.level), design.certificate
    by_row = grouping.group_of == "event" and grouping.max_groups is None
    match design.problem.unit:
        case EventLevel() if by_row:
            return _certify_groups(group_of_an_event, name_of(group_of_an_event), one)
        case ItemAddRemove():
            return _certify_groups(partial(groups_of_an_item, most=most), name_of(groups_of_an_item), one)
        case ItemLevel():
            changed = partial(groups_of_a_changed_item, groups=count, most=most)
            return _certify_groups(changed, name_of(groups_of_a_changed_item), one, _presence(design))
        case ItemPerPeriod() if grouping.group_of == "event" and most == count:
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
