"""Plans over integer steps, as tests ask for them."""

from __future__ import annotations

from typing import Any

import dpwindows as dw
from dpwindows.ask.privacy import Budget, Unit
from dpwindows.ask.queries import Query, WindowFamily


def plan_of(*queries: Query | WindowFamily, steps: int, unit: Unit, budget: Budget, **more: Any) -> dw.Plan:
    """A plan of these queries over some steps; `more` are other arguments of `Plan`."""
    return dw.Plan(list(queries), timeline=dw.Timeline.of_steps(steps), unit=unit, budget=budget, **more)
