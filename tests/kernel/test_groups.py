"""Groups: bounds against every neighbour of one item on small horizons, changes of group among them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.ask.groups import Grouping, Level, Value, grouping
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.kernel.accounting import CUBE, GAUSSIAN, LAPLACE, RANGE, Law
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.groups import (
    Groups,
    alike_in_groups,
    certify_groups,
    groups_of_a_changed_item,
)
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import candidates, joint_noise
from dpwindows.strategies.paper.range_tree import RangeTree
from dpwindows.strategies.paper.shapes import CumulativeTree
from tests.grouped_logs import grouped_events
from tests.single_item import HistoryAnswers

# One item: how often it occurs in each group in each step, group after group.
Item = tuple[tuple[int, ...], ...]


def items(steps: int, groups: int, most: int) -> list[Item]:
    rows = list(itertools.product(range(most + 1), repeat=steps))
    return list(itertools.product(rows, repeat=groups))


def asked(groups: int, of: str = "event", max_groups: int | None = None) -> Grouping:
    found = grouping({"g": list(range(groups))}, group_of=of, max_groups=max_groups, totals=0.5)
    assert found is not None
    return found


@cache
def counted(item: Item, by: Grouping, steps: int) -> dict[Value | None, tuple[int, ...]]:
    """The item's history in every group, by the definition of groups, with the total as the last."""
    rows = [("u", step + 1, n, (g,)) for g, row in enumerate(item) for step, n in enumerate(row) if n]
    found: dict[Value | None, tuple[int, ...]] = {}
    for (key,), events in grouped_events(rows, by, lambda time: int(time)).items():
        history = [0] * steps
        for _, step, count in events:
            history[step - 1] += count
        found[key] = tuple(history)
    return found


def measured(design: Design, by: Grouping, level: Level, logs: list[Item]) -> NDArray[np.int64]:
    """What each log of one item measures in all groups of a level, thresholds one after another."""
    steps, keys = design.problem.steps, [key for (key,) in by.values_of(level)]

    @cache
    def vector(history: tuple[int, ...]) -> NDArray[np.int64]:
        answers = HistoryAnswers([history], steps)
        return np.concatenate(
            [np.asarray(design.encode(answers, k), dtype=np.int64) for k in design.problem.thresholds]
        )

    return np.array([np.concatenate([vector(counted(log, by, steps)[key]) for key in keys]) for log in logs])


def neighbours(unit: Unit, logs: list[Item]) -> Iterator[tuple[int, int]]:
    """Positions of logs of one item that are neighbours: here one is empty, or they differ as the unit allows."""
    arrays = [np.array(log) for log in logs]
    for one, other in itertools.combinations(range(len(logs)), 2):
        change = arrays[one] - arrays[other]
        match unit:
            case EventLevel() if abs(change).sum() == 1:
                yield one, other
            case ItemAddRemove() if not arrays[one].any() or not arrays[other].any():
                yield one, other
            case ItemLevel():
                yield one, other
            case ItemPerPeriod(steps=period):
                changed = np.flatnonzero(change.any(axis=0))
                if changed[-1] - changed[0] < period:
                    yield one, other


@cache
def pairs_of_neighbours(unit: Unit, steps: int, groups: int, most: int) -> NDArray[np.int64]:
    """The same as an array of shape (pairs, 2), for all designs at once."""
    return np.array(list(neighbours(unit, items(steps, groups, most))))


class Truth(NamedTuple):
    """How far a neighbour moves the measurement in all groups together, at most: by norm, and how many numbers."""

    l1: int
    squared_l2: int
    numbers: int
    largest: int
    ranges: int

    def of(self, law: Law) -> int:
        """In the norm of a law."""
        return {GAUSSIAN: self.squared_l2, LAPLACE: self.l1, CUBE: self.largest, RANGE: self.ranges}[law]


def every_truth(design: Design, by: Grouping, level: Level, most: int) -> Truth:
    """The exact sensitivities, by enumeration."""
    logs = items(design.problem.steps, len(by.columns[0].values), most)
    vectors = measured(design, by, level, logs)
    pairs = pairs_of_neighbours(design.problem.unit, design.problem.steps, len(by.columns[0].values), most)
    change = vectors[pairs[:, 0]] - vectors[pairs[:, 1]]
    moved = abs(change)
    # One vector after another: those of the thresholds, group by group.
    apart = change.reshape(len(change), -1, design.rows)
    ranges = np.maximum(apart.max(axis=2), 0) - np.minimum(apart.min(axis=2), 0)
    norms = (moved, moved**2, moved != 0, abs(apart).max(axis=2), ranges)
    return Truth(*(int(norm.sum(axis=1).max()) for norm in norms))


def truth(design: Design, by: Grouping, level: Level, most: int) -> int:
    """The exact sensitivity in the norm of the design's law."""
    return every_truth(design, by, level, most).of(design.problem.law)


WINDOWS: list[WindowFamily] = [Cumulative(), Rolling(2), AnyWindow()]
LAWS: list[Law] = [GAUSSIAN, LAPLACE]
PROOFS = {
    EventLevel: "alike-in-groups",
    ItemAddRemove: "alike-in-groups",
    ItemLevel: "groups-of-a-changed-item",
    ItemPerPeriod: "alike-in-groups",
}
# Steps, groups, and the most occurrences of one item in a step in a group.
SIZES = [(2, 3, 1), (3, 2, 1)]
CASES: list[tuple[Unit, str, int | None]] = [
    (EventLevel(), "event", None),
    (ItemAddRemove(), "item", None),
    (ItemLevel(), "item", None),
    (ItemAddRemove(), "event", 1),
    (ItemLevel(), "event", 1),
    (ItemAddRemove(), "event", 2),
    (ItemLevel(), "event", 2),
    (ItemPerPeriod(1), "event", 3),
    (ItemPerPeriod(2), "event", 3),
]


@pytest.mark.quick(8)
@pytest.mark.search(31)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize(("unit", "of", "limit"), CASES, ids=str)
def test_no_neighbour_moves_all_groups_by_more_than_is_certified(
    unit: Unit, of: str, limit: int | None, window: WindowFamily, law: Law
) -> None:
    beyond_one, joint = False, 0
    for (steps, groups, most), thresholds in itertools.product(SIZES, [(1,), (1, 2)]):
        by = asked(groups, of, limit)
        problem = Problem(window, steps, thresholds, unit, law, 1.0, bits=4, budget=PureDP(1.0))
        for design in candidates(problem):
            joint += design.strategy == joint_noise.NAME
            for level in by.levels:
                found, certificate = every_truth(design, by, level, most), certify_groups(design, Groups(by, level))
                assert found.of(design.problem.law) <= certificate.bound
                # Under Laplace noise nothing is charged for it.
                assert design.problem.law == LAPLACE or found.numbers <= certificate.moved * len(thresholds)
                assert (certificate.squared is None) == (design.certificate.squared is None)
                assert certificate.squared is None or found.squared_l2 <= certificate.squared
                assert certificate.proof == PROOFS[type(design.problem.unit)]
                beyond_one |= found.of(design.problem.law) > design.sensitivity
    whole = isinstance(unit, ItemLevel | ItemAddRemove) or unit == ItemPerPeriod(2)
    assert (joint > 0) == (whole and law == LAPLACE and not isinstance(window, AnyWindow))
    # One group's bound would do for events, and would be wrong for items that may be in several.
    several = limit == 2 or limit == 3 or (isinstance(unit, ItemLevel) and law == LAPLACE)
    assert not (beyond_one and isinstance(unit, EventLevel))
    assert beyond_one or not several or unit == ItemPerPeriod(1)


@pytest.mark.parametrize(("unit", "limit"), [(EventLevel(), None), (ItemAddRemove(), 2), (ItemLevel(), 2)], ids=str)
def test_squares_are_bounded_in_all_groups_where_they_are_in_one(unit: Unit, limit: int | None) -> None:
    """Under Laplace noise an (epsilon, delta) budget is proved from these."""
    by = asked(3, "event", limit)
    problem = Problem(Cumulative(), 2, (1,), unit, LAPLACE, 1.0)
    design = Design(problem, CumulativeTree(tree=RangeTree(2, 3), scale=1.0), "range-tree")
    one = design.certificate.squared
    for level in by.levels:
        found = certify_groups(design, Groups(by, level)).squared
        assert one is not None
        assert found is not None
        assert every_truth(design, by, level, 1).squared_l2 <= found <= 2 * by.most(level) * one
        if isinstance(unit, EventLevel):
            assert found == one


def test_an_item_that_changes_groups_is_charged_for_two_that_come_or_go() -> None:
    by, told_apart = asked(3, "event", 1), 0
    for law in LAWS:
        problem = Problem(Rolling(2), 9, (1,), ItemLevel(), law, 1.0, bits=4)
        for design in candidates(problem):
            if not isinstance(design.shape, Series):
                continue
            presence = replace(design, problem=replace(problem, unit=ItemAddRemove()))
            told_apart += presence.sensitivity < design.sensitivity
            expected = groups_of_a_changed_item(design.sensitivity, presence.sensitivity, groups=3, most=1)
            assert certify_groups(design, Groups(by, by.levels[0])).bound == expected
    assert told_apart


@pytest.mark.parametrize("law", LAWS)
def test_bounds_are_reached_where_every_answer_is_measured_by_itself(law: Law) -> None:
    for unit, limit in itertools.product([ItemAddRemove(), ItemLevel()], [1, 2, 3]):
        by = asked(3, "event", limit)
        design = next(one for one in candidates(Problem(Cumulative(), 2, (1,), unit, law, 1.0, bits=4), "direct"))
        for level in by.levels:
            assert truth(design, by, level, 1) == certify_groups(design, Groups(by, level)).bound


def test_an_event_may_move_a_whole_history_where_items_have_a_group() -> None:
    """Why that is refused: the truth is beyond any bound for one occurrence, and grows with the horizon."""
    by = asked(2, "item")
    design = candidates(Problem(Rolling(1), 3, (1,), EventLevel(), LAPLACE, 1.0, bits=4), "direct")[0]
    assert truth(design, by, by.levels[0], 1) > 3 * design.sensitivity
    with pytest.raises(NotCertifiedError):
        certify_groups(design, Groups(by, by.levels[0]))


@pytest.mark.parametrize(("of", "limit"), [("item", None), ("event", 1)])
def test_a_change_within_a_period_may_move_what_lies_outside_where_groups_are_limited(
    of: str, limit: int | None
) -> None:
    by = asked(2, of, limit)
    design = candidates(Problem(Rolling(1), 3, (1,), ItemPerPeriod(1), LAPLACE, 1.0, bits=4), "direct")[0]
    assert truth(design, by, by.levels[0], 1) > 2 * design.sensitivity
    with pytest.raises(NotCertifiedError):
        certify_groups(design, Groups(by, by.levels[0]))


def test_a_level_of_another_grouping_is_not_certified() -> None:
    design = candidates(Problem(Rolling(1), 3, (1,), EventLevel(), LAPLACE, 1.0, bits=4), "direct")[0]
    with pytest.raises(NotCertifiedError):
        certify_groups(design, Groups(asked(2), asked(3).levels[0]))
    with pytest.raises(NotCertifiedError):
        certify_groups(design, Groups(asked(2, "event", 2), asked(2, "event", 2).levels[0]))


def test_the_formulas() -> None:
    assert alike_in_groups(7, most=3) == 21
    for changed, moved, groups, most in itertools.product((1, 5, 10), (1, 4, 12), range(1, 6), range(1, 6)):
        if most > groups:
            continue
        # Every way in which an item may be in groups before and after.
        sizes = range(most + 1)
        worst = max(
            both * changed + (before - both + after - both) * min(changed, moved)
            for before, after in itertools.product(sizes, repeat=2)
            for both in range(min(before, after) + 1)
            if before + after - both <= groups
        )
        assert groups_of_a_changed_item(changed, moved, groups, most) == worst
