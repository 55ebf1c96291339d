"""Ledgers for tests, the requests that they spend for, and edits that no ledger makes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

from dpwindows.ask.privacy import Budget, EventLevel, PureDP, Unit
from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EventColumns
from dpwindows.ledger.ledger import Ledger
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
    """A request over integer time, endless where it has no end; changes are of its fields, or of its columns'."""
    asked = {"queries": [{"window": what, "measures": [["at_least", 1]]}]}
    reading = {field.name for field in fields(EventColumns)} & set(changes)
    columns = EventColumns(**{"item": "who", "time": "at"} | {name: changes.pop(name) for name in reading})
    values: dict[str, Any] = {"kind": "release", "columns": columns, "endless": end is None} | changes
    return Request(
        asked=asked,
        budget=budget,
        unit=unit or EventLevel(),
        timeline=timeline or Timeline(start, start + 1 if end is None else end, 1),
        **values,
    )


def make(
    path: str | Path, budget: Budget | None = None, unit: Unit | None = None, dataset: str = "d", **more: Any
) -> Ledger:
    """A new dataset, by default of epsilon = 1 at event level."""
    return Ledger.create(path, dataset, budget=budget or PureDP(1.0), unit=unit or EventLevel(), **more)


def edit(path: Path, *statements: str) -> None:
    """Change a file by SQL."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
