"""Designs whose noise is drawn for a whole vector, and the norms that their laws are of."""

from __future__ import annotations

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import Unit
from dpwindows.ask.queries import ToDate, WindowFamily
from dpwindows.kernel.accounting import CUBE, RANGE, Law
from dpwindows.kernel.designs import Design, Shape
from dpwindows.kernel.families.periods import SeriesInPeriods
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.problem import Problem

LAWS: tuple[Law, ...] = (CUBE, RANGE)
STEPS = 4
Vector = tuple[int, ...]


def norm(law: Law, z: Vector) -> int:
    return max(map(abs, z)) if law == CUBE else max(0, *z) - min(0, *z)


def problem_of(
    window: WindowFamily, law: Law, unit: Unit, *ks: int, steps: int = STEPS, **more: CountingRule
) -> Problem:
    return Problem(window, steps, ks or (1,), unit, law, 1.0, **more)  # type: ignore[arg-type]


def design_of(window: WindowFamily, law: Law, unit: Unit, *ks: int, steps: int = STEPS) -> Design:
    shape: Shape = Series(Identity())
    if isinstance(window, ToDate):
        shape = SeriesInPeriods.of_release(window, steps, Identity(), continued=False)
    return Design(problem_of(window, law, unit, *ks, steps=steps), shape, "joint-noise")
