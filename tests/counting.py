"""Exact counts of a log in one line, for tests that count many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpwindows.ask.timeline import Timeline
from dpwindows.count import counting
from dpwindows.count.answers import ExactAnswers
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.groups import GroupedAnswers
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest


def count_events(*asked: Any, **how: Any) -> ExactAnswers:
    """The answers for what `request` is given."""
    return counting.count_events(request(*asked, **how))


def in_steps(source: object, columns: EventColumns, timeline: Timeline, k: int = 1, **how: Any) -> list[int]:
    """The items with at least k occurrences in each step."""
    return [int(count) for count in count_events(source, columns, timeline, [k], **how).rolling(k, 1)]


def count_groups(*asked: Any, **how: Any) -> GroupedAnswers:
    """The answers in every group for what `request` is given."""
    return counting.count_groups(request(*asked, **how))


def request(
    source: object,
    columns: EventColumns,
    timeline: Timeline,
    thresholds: Iterable[int],
    *,
    table: str | None = None,
    settings: EngineSettings | None = None,
    **wanted: Any,
) -> CountRequest:
    """A request for these thresholds; `wanted` has further fields of `Wanted`."""
    return CountRequest(
        source, columns, timeline, Wanted(tuple(thresholds), **wanted), table, settings or EngineSettings()
    )
