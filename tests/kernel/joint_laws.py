"""Designs whose noise is drawn for a whole vector, and the norms that their laws are of."""

from __future__ import annotations

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.periods import sizes
from dpwindows.ask.privacy import Unit
from dpwindows.ask.queries import ToDate, WindowFamily
from dpwindows.kernel.accounting import CUBE, RANGE, Law
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.maps.integer_maps import IntegerMap
from dpwindows.kernel.maps.repeated import Repeated
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


def map_of(window: WindowFamily, steps: int = STEPS) -> IntegerMap:
    if isinstance(window, ToDate):
        lengths = tuple(sizes(window, steps).tolist())
        return Repeated(Identity(), lengths, causal=True)
    return Identity()


def design_of(window: WindowFamily, law: Law, unit: Unit, *ks: int, steps: int = STEPS) -> Design:
    return Design(problem_of(window, law, unit, *ks, steps=steps), Series(map_of(window, steps)), "joint-noise")
