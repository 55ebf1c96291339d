"""Plans that audits are tried on, and wrong ways to draw noise that they must find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpwindows as dw
from dpwindows.ask.privacy import ApproxDP, Budget, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP, Unit
from dpwindows.kernel.accounting import Law

UNITS: tuple[Unit, ...] = (EventLevel(), ItemPerPeriod(2), ItemLevel(), ItemAddRemove())
# Unit, what has a group, and the limit on an item's groups.
IN_GROUPS: list[tuple[Unit, str, int | None]] = [
    (EventLevel(), "event", None),
    (ItemAddRemove(), "event", 1),
    (ItemAddRemove(), "item", None),
    (ItemLevel(), "event", 1),
    (ItemLevel(), "event", 2),
    (ItemLevel(), "item", None),
    (ItemPerPeriod(1), "event", 2),
]
BUDGETS: tuple[Budget, ...] = (PureDP(1.0), ApproxDP(1.0, 1e-6), dw.ZCDP(0.5))

Ints = NDArray[np.int64]
# As `draw_noise` of the kernel: of a law, a scale and a count.
Draw = Callable[..., Ints]


def scaled(factor: float) -> Callable[[Draw], Draw]:
    return lambda draw: lambda law, scale, count, *more: draw(law, scale * factor, count, *more)


def first_again(draw: Draw) -> Draw:
    """Every call has the noise of the first of its length and scale."""
    known: dict[tuple[float, int], Ints] = {}
    return lambda law, scale, count, *more: known.setdefault((scale, count), draw(law, scale, count, *more))


def every_second_call_again(draw: Draw) -> Draw:
    last: list[Ints] = []

    def drawn(law: Law, scale: float, count: int, *more: Any) -> Ints:
        if last and len(last[0]) == count:
            return last.pop()
        last[:] = [draw(law, scale, count, *more)]
        return last[0]

    return drawn


def without_the_first(draw: Draw) -> Draw:
    """The noise of one row is missing: a number is released exactly."""

    def drawn(*asked: Any) -> Ints:
        noise = draw(*asked)
        noise[0] = 0
        return noise

    return drawn


def half_again(draw: Draw) -> Draw:
    """Both halves of a vector are one vector of half the length."""

    def drawn(law: Law, scale: float, count: int, *more: Any) -> Ints:
        return np.tile(draw(law, scale, -(-count // 2), *more), 2)[:count]

    return drawn
