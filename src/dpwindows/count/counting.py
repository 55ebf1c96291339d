"""Counting the events of a source exactly, by the engine that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from dpwindows.ask.counting_rule import LOST
from dpwindows.ask.zones import Int64Array
from dpwindows.count.answers import ExactAnswers
from dpwindows.count.engines import signed_counts
from dpwindows.count.events import CountsFile
from dpwindows.count.groups import GroupedAnswers, span_of
from dpwindows.count.possible import SignedCounts
from dpwindows.count.query.first_runs import series_number
from dpwindows.count.request import CountRequest


def count_events(request: CountRequest) -> ExactAnswers:
    """Count events exactly, for every threshold in one reading, by the engine that the source belongs to.

    Raises:
        InputError: the source or a column is missing, unreadable or of the wrong type.
        EngineError: the engine failed (memory, disk, lock).
    """
    if request.columns.grouping is not None:
        raise ValueError("count_groups counts by groups")
    wanted = request.wanted
    numbers = {series_number(place): series for place, series in enumerate(wanted.series)}
    thresholds = [*wanted.thresholds, *[LOST] * wanted.loss]
    changes = by_threshold(signed_counts(request), [*thresholds, *numbers])
    _require_possible(request, changes)
    return ExactAnswers(
        request.timeline.steps,
        {k: changes[k] for k in thresholds},
        wanted.rule,
        {series: changes[number] for number, series in numbers.items()},
    )


def count_groups(request: CountRequest) -> GroupedAnswers:
    """Count the events of every group of the columns' grouping in one reading; otherwise as `count_events`.

    With `reach` the answers are for rolling windows of at most `reach` steps, and for cumulative ones: with many groups
    that is cheaper.

    Raises:
        ValueError: there are no groups, or the rule bounds what an item adds.
    """
    if request.columns.grouping is None:
        raise ValueError("no groups to count by")
    if request.wanted.rule.bounded:
        raise ValueError("groups are not counted by a rule that bounds what an item adds")
    wanted, grouping, span = request.wanted, request.columns.grouping, span_of(request.timeline)
    counted = signed_counts(replace(request, wanted=replace(wanted, span=span)))
    changes = {}
    places = {
        k: found[:, found[0] // span == found[1] // span]
        for k, found in by_threshold(counted, wanted.thresholds).items()
    }
    _require_possible(request, places)
    for k, (place, recency, delta) in places.items():
        step, near = place % span, recency % span
        if wanted.reach is not None:
            # Queries may leave recencies as they are: equal logs have equal signed counts all the same.
            near = np.maximum(near, step - wanted.reach)
        changes[k] = place // span, step, near, delta
    return GroupedAnswers(request.timeline.steps, grouping, changes, wanted.rule, wanted.reach)


def _require_possible(request: CountRequest, changes: Mapping[int, Int64Array]) -> None:
    """Check that counts which were made elsewhere can be of a log; see `SignedCounts`."""
    if isinstance(request.source, CountsFile):
        steps, grouping = request.timeline.steps, request.columns.grouping
        SignedCounts(str(request.source.path), changes, request.wanted, steps, grouping).require_possible()


def by_threshold(counted: pa.Table, thresholds: Sequence[int]) -> dict[int, Int64Array]:
    """The signed counts of every threshold: the rows step, recency and delta of an array."""
    # By DLPack: to_numpy would import pandas, which takes longer than counting a million events.
    columns = (counted[name].cast("int64").combine_chunks() for name in ("k", "step", "recency", "delta"))
    table = np.stack([np.from_dlpack(column) for column in columns])
    return {k: table[1:, table[0] == k] for k in thresholds}
