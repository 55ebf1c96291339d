"""Vectors whose noise is drawn for all of them at once: how far one item moves them, and what has no bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, LostItems, Rolling, ToDate, Tumbling, WindowFamily
from dpwindows.kernel.accounting import CUBE, RANGE
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.periods import SeriesInPeriods
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.maps.filters import Filter, Identity
from tests.kernel.joint_laws import LAWS, STEPS, design_of, norm, problem_of
from tests.single_item import SingleItem, all_logs

WINDOWS: tuple[WindowFamily, ...] = (Cumulative(), Rolling(1), Rolling(2), Tumbling(2), ToDate(3))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_no_item_moves_its_vectors_further_than_is_certified(window: WindowFamily) -> None:
    """Every pair of neighbours of one item, for two thresholds drawn apart: and some pair moves them as far."""
    for law, unit in ((CUBE, ItemLevel()), (CUBE, ItemAddRemove()), (RANGE, ItemAddRemove())):
        design = design_of(window, law, unit, 1, 3)
        logs = [SingleItem(tuple(log)) for log in all_logs(STEPS, 3).tolist()]
        vectors = [np.array([design.encode(log, k) for k in (1, 3)]) for log in logs]
        absent = [np.zeros_like(vectors[0])] if isinstance(unit, ItemAddRemove) else vectors
        largest = max(
            sum(norm(law, tuple(row)) for row in (one - other).tolist()) for one in vectors for other in absent
        )
        assert largest == design.certificate.bound == 2
    changed: tuple[Unit, ...] = (ItemPerPeriod(2), ItemLevel())
    for one_unit in changed:
        assert design_of(window, CUBE, one_unit).proof == "item-in-a-cube"
    assert design_of(window, RANGE, ItemAddRemove()).proof == "item-in-one-direction"


def test_an_item_that_changes_moves_the_range_twice_as_far() -> None:
    """Why the range law is for items that are added or removed only."""
    one, other = SingleItem((1, 0, 0, 0)), SingleItem((0, 0, 1, 0))
    moved = (one.rolling(1, 1) - other.rolling(1, 1)).tolist()
    assert norm(RANGE, tuple(moved)) == 2
    for unit in (ItemLevel(), ItemPerPeriod(2), EventLevel()):
        with pytest.raises(NotCertifiedError):
            _ = design_of(Rolling(1), RANGE, unit).certificate


def test_nothing_else_is_certified_for_it() -> None:
    unit = ItemAddRemove()
    bounded = CountingRule(max_occurrences=1)
    in_periods = SeriesInPeriods.of_release(ToDate(3), STEPS, Identity(3), continued=True)
    for law in LAWS:
        refused = [
            design_of(Rolling(2), law, EventLevel()),
            replace(design_of(Rolling(2), law, unit), shape=Series(Identity(2))),
            replace(design_of(Rolling(2), law, unit), shape=Series(Filter((2, -1)))),
            replace(design_of(ToDate(3), law, unit), shape=in_periods),
            Design(problem_of(LostItems(), law, unit, rule=bounded), Series(Identity(1)), ""),
            Design(
                problem_of(AnyWindow(2), law, unit),
                Starts(2, Identity()),
                "",
            ),
        ]
        for design in refused:
            with pytest.raises(NotCertifiedError):
                _ = design.certificate
        assert replace(design_of(Rolling(2), law, unit), problem=problem_of(Rolling(2), law, unit, rule=bounded)).proof
        # Made step by step it is one vector all the same, and `measure_step` draws none.
        by_step = StepDesign(problem_of(Rolling(2), law, unit), Series(Identity()), "", horizon=STEPS)
        assert by_step.certificate == design_of(Rolling(2), law, unit).certificate


def test_a_law_that_is_drawn_for_all_numbers_at_once_needs_an_end_of_them() -> None:
    """A regression: an assertion failed where a stream without end was certified."""
    problem = problem_of(Rolling(2), CUBE, ItemPerPeriod(1))
    with pytest.raises(NotCertifiedError):
        _ = StepDesign(problem, Series(Identity()), "", horizon=None).certificate
