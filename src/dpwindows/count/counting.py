"""Counting the events of a source exactly, by the engine that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import Int64Array
from dpwindows.count.answers import ExactAnswers
from dpwindows.count.engines import engine_for
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.first_runs import Series, series_number
from dpwindows.count.groups import GroupedAnswers, span_of
from dpwindows.count.wanted import Wanted
from dpwindows.errors import InputError


def count_events(
    source: object,
    columns: EventColumns,
    timeline: Timeline,
    thresholds: Iterable[int],
    *,
    rule: CountingRule = EVERY_OCCURRENCE,
    series: Iterable[Series] = (),
    table: str | None = None,
    settings: EngineSettings | None = None,
) -> ExactAnswers:
    """Count the events of a source exactly, for every threshold k of `thresholds` in one reading.

    `rule` says which occurrences of an item count; where it bounds runs, `series` are the rolling counts that can be
    asked for, as pairs of a threshold and a length below the number of steps.

    `source` is the path of a Parquet, CSV, DuckDB or SQLite file (the last two with `table`), a glob, a directory, a
    pandas, Polars or Arrow table, a record batch reader, a DuckDB relation, the address or SQLAlchemy engine of a
    database, or a Spark data frame or session. It is not written to, and counted where it is by the engine it belongs
    to, or by `settings.engine`.

    Raises `InputError` if the source or a column is missing, unreadable or of the wrong type, and `EngineError` if
    the engine fails (memory, disk, lock).
    """
    if columns.grouping is not None:
        raise ValueError("count_groups counts by groups")
    asked = tuple(sorted(set(series)))
    wanted = _checked_thresholds(thresholds, asked)
    counted = _signed_counts(source, columns, timeline, Wanted(wanted, rule, asked), table, settings)
    numbers = {series_number(place): found for place, found in enumerate(asked)}
    changes = by_threshold(counted, [*wanted, *numbers])
    return ExactAnswers(
        timeline.steps,
        {k: changes[k] for k in wanted},
        rule,
        {found: changes[number] for number, found in numbers.items()},
    )


def count_groups(
    source: object,
    columns: EventColumns,
    timeline: Timeline,
    thresholds: Iterable[int],
    *,
    rule: CountingRule = EVERY_OCCURRENCE,
    table: str | None = None,
    settings: EngineSettings | None = None,
) -> GroupedAnswers:
    """Count the events of every group of `columns.grouping` in one reading; otherwise as `count_events`."""
    if columns.grouping is None:
        raise ValueError("no groups to count by")
    if rule.bounded:
        raise ValueError("groups are not counted by a rule that bounds what an item adds")
    wanted = _checked_thresholds(thresholds)
    span = span_of(timeline)
    counted = _signed_counts(source, columns, timeline, Wanted(wanted, rule, span=span), table, settings)
    changes = {}
    for k, (place, recency, delta) in by_threshold(counted, wanted).items():
        cell = place // span
        own = recency // span == cell
        changes[k] = cell[own], place[own] % span, recency[own] % span, delta[own]
    return GroupedAnswers(timeline.steps, columns.grouping, changes, rule)


def _signed_counts(
    source: object,
    columns: EventColumns,
    timeline: Timeline,
    wanted: Wanted,
    table: str | None,
    settings: EngineSettings | None,
) -> pa.Table:
    settings = settings or EngineSettings()
    engine = engine_for(source, settings)
    if columns.layout is not None and not getattr(engine, "READS_LAYOUTS", False):
        name = str(vars(engine)["__name__"]).rpartition(".")[2]
        raise columns.layout.refuse(
            f"the engine {name} reads none, or only those with a line of names that says its delimiter; duckdb does"
        )
    return engine.signed_counts(source, columns, timeline, wanted, table=table, settings=settings)


def _checked_thresholds(thresholds: Iterable[int], series: Sequence[Series] = ()) -> tuple[int, ...]:
    wanted = tuple(sorted(set(thresholds)))
    every = [*wanted, *(k for k, _ in series)]
    if not every:
        raise InputError("at least one threshold k is needed")
    for k in every:
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise InputError(f"a threshold k must be a whole number of at least 1, got {k!r}")
    # Running numbers, at most k times the rows of an item, must fit 64 bits.
    if max(every) >= 2**31:
        raise InputError(f"a threshold k must be below 2**31, got {max(every)}")
    return wanted


def by_threshold(counted: pa.Table, thresholds: Sequence[int]) -> dict[int, tuple[Int64Array, Int64Array, Int64Array]]:
    """The signed counts (step, recency, delta) of every threshold."""
    of, step, recency, delta = (_integers(counted, name) for name in ("k", "step", "recency", "delta"))
    return {k: (step[of == k], recency[of == k], delta[of == k]) for k in thresholds}


def _integers(counted: pa.Table, name: str) -> Int64Array:
    # By DLPack: to_numpy would import pandas, which takes longer than counting a million events.
    return np.from_dlpack(counted[name].cast("int64").combine_chunks()).astype(np.int64, copy=False)
