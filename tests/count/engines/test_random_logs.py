"""Random logs, a hundred in each query: every engine that runs here counts each of them as the definition says."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.groups import grouping
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EventColumns
from tests.brute_force import any_window, occurrences, once_a_step
from tests.count.engines.logs import ENGINES, EPOCH, MICROSECOND, NUMBERS, TEXTS, Put, step_of
from tests.counting import count_groups

LOGS_IN_A_QUERY = 100
TIMELINES = [
    Timeline("2021-03-11", "2021-03-17", "1d", "America/New_York"),
    Timeline("2021-11-07", "2021-11-07T06:00", "1h", "America/New_York"),
    Timeline("2021-04-03T20:00", "2021-04-03T23:00", "30m", "Australia/Lord_Howe"),
    Timeline("2020-01-15", "2020-07-15", "1mo", "Europe/Berlin"),
    Timeline(-7, 23, 5),
]


@pytest.mark.search(0)
@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("put", ENGINES)
def test_each_of_a_hundred_random_logs_is_counted_as_the_definition_says(
    put: Put, seed: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rng = random.Random(seed)
    timeline, weighted = rng.choice(TIMELINES), rng.random() < 0.5
    items: list[Any] = TEXTS if rng.random() < 0.5 else NUMBERS
    kind = rng.choice(["integer", "decimal", "text"] if timeline.is_integer else ["instant", "text", "date"])
    thresholds = sorted(rng.sample(range(1, 9), rng.randint(1, 3)))
    rule, bounds = CountingRule(rng.random() < 0.3), [int(bound) for bound in timeline.boundary_values]
    rows: list[tuple[Any, Any, Any, int]] = []
    for log in range(LOGS_IN_A_QUERY):
        own = rng.sample(items, rng.randint(1, 4))
        for _ in range(rng.randint(0, 14)):
            near = rng.choice(bounds) + rng.choice([-1, 0, 1])
            value = rng.choice([near, rng.randrange(bounds[0] - 5, bounds[-1] + 5)])
            time = None if rng.random() < 0.02 else _written(value, kind, rng)
            rows.append((rng.choice([*own, *own, None]), time, rng.choice([1, 1, 2, 3, 9, 2**40, 0, -1, None]), log))
    types = {"integer": pa.int64(), "decimal": pa.decimal128(38, 9), "text": pa.string(), "date": pa.date32()}
    type_ = types.get(kind, pa.timestamp("us", tz="UTC"))
    table = pa.table(
        {
            "item": pa.array([row[0] for row in rows]),
            "time": pa.array([row[1] for row in rows], type_),
            "count": pa.array([row[2] for row in rows], pa.int64()),
            "log": pa.array([row[3] for row in rows], pa.int64()),
        }
    )
    columns = EventColumns(
        "item", "time", "count" if weighted else None, grouping=grouping({"log": range(LOGS_IN_A_QUERY)})
    )
    asked = [OCCURRENCES, *thresholds]
    answers = count_groups(
        columns=columns, timeline=timeline, thresholds=asked, rule=rule, **vars(put(table, tmp_path, request))
    )
    steps = timeline.steps
    for log in range(LOGS_IN_A_QUERY):
        held = [
            (item, step_of(timeline, time), count if weighted else 1)
            for item, time, count, of in rows
            if of == log and item is not None and time is not None
        ]
        events = [
            (item, step, count) for item, step, count in held if step is not None and count is not None and count >= 1
        ]
        events = once_a_step(events) if rule.distinct_steps else events
        summed = [(item, step, min(count, 2**31 - 1)) for item, step, count in events]
        found = answers.group(log)
        assert found.windows(OCCURRENCES, 1, steps, 1, steps).tolist() == occurrences(summed, steps), log
        for k in thresholds:
            assert found.windows(k, 1, steps, 1, steps).tolist() == any_window(events, k, steps), (log, k)


def _written(value: int, kind: str, rng: random.Random) -> Any:
    """An integer time, or an instant of so many microseconds, as a column of a kind holds it."""
    moment = EPOCH + value * MICROSECOND
    match kind:
        case "instant":
            return moment
        case "date":
            return moment.date()
        case "decimal":
            return Decimal(value)
        case "text" if abs(value) > 10**6:
            offset = rng.choice([0, 0, 330, -180])
            clock: datetime = (moment + timedelta(minutes=offset)).replace(tzinfo=None)
            sign = "-" if offset < 0 else "+"
            return (
                f"{clock.isoformat(rng.choice('T '), 'microseconds')}{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
            )
        case "text":
            return str(value)
        case _:
            return value
