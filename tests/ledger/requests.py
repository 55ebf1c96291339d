"""Requests that ledger tests spend for."""

from __future__ import annotations

from typing import Any

from dpwindows.ask.privacy import Budget, EventLevel, Unit
from dpwindows.ask.timeline import Timeline
from dpwindows.ledger.request import Request


def request(
    budget: Budget,
    start: int = 0,
    end: int | None = 10,
    *,
    unit: Unit | None = None,
    timeline: Timeline | None = None,
    what: str = "rolling:7",
    **changes: Any,
) -> Request:
    """A request over integer time, endless where it has no end."""
    asked = {"queries": [{"window": what, "measures": [["at_least", 1]]}]}
    values: dict[str, Any] = {"kind": "release", "item": "who", "time": "at", "endless": end is None} | changes
    return Request(
        asked=asked,
        budget=budget,
        unit=unit or EventLevel(),
        timeline=timeline or Timeline(start, start + 1 if end is None else end, 1),
        **values,
    )
