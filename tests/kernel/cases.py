"""One bound asked by itself: tests name what is measured, and not the case that a rule is asked about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, Unit
from dpwindows.ask.queries import WindowFamily
from dpwindows.kernel.accounting import GAUSSIAN, Law
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import Case
from dpwindows.strategies.search.witnesses import searched

EVENT, PRESENCE = EventLevel(), ItemAddRemove()


def case(
    window: WindowFamily,
    measured: Any,
    steps: int | None,
    thresholds: tuple[int, ...] = (1,),
    unit: Unit = EVENT,
    law: Law = GAUSSIAN,
    rule: CountingRule = EVERY_OCCURRENCE,
    advise: Advise = searched,
) -> Case:
    """What a rule is asked; without a horizon a forecast is for one step."""
    return Case(Problem(window, steps or 1, thresholds, unit, law, 1.0, rule=rule), measured, steps, advise)


def bound_of(bound: Callable[[Case], int | None], *asked: Any, **named: Any) -> int:
    """The bound of a case that it is for."""
    found = bound(case(*asked, **named))
    assert found is not None
    return found
