"""Every engine counts every log alike, to the last integer, and as the definition says."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from dpwindows.ask.counting_rule import LOST, CountingRule
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.ask.timeline import Timeline
from dpwindows.count.answers import ExactAnswers
from dpwindows.count.events import EventColumns
from dpwindows.count.query.wanted import MOST_IN_A_ROW
from dpwindows.errors import InputError
from tests.brute_force import (
    any_window,
    cumulative,
    first_occurrences,
    losers,
    occurrences,
    once_a_step,
    rolling,
    rolling_in_first_runs,
)
from tests.count.engines.logs import (
    ENGINES,
    LOGS,
    THRESHOLDS,
    Log,
    Put,
    in_clickhouse,
    in_datafusion,
    in_postgresql,
    in_spark,
)
from tests.counting import count_events


def counting(put: Put, log: Log, directory: Path, request: pytest.FixtureRequest) -> Callable[..., ExactAnswers]:
    """What counts a log once it has been put somewhere, for thresholds and what else is wanted."""
    place = put(log.table, directory, request)
    columns = EventColumns("item", "time", "count" if log.weighted else None)
    where: dict[str, Any] = {"table": place.table, "settings": place.settings}
    return partial(count_events, place.source, columns, log.timeline, **where)


def summed(events: list[tuple[Any, int, int]]) -> list[tuple[Any, int, int]]:
    """The events with as many occurrences as one row may add to a sum."""
    return [(item, step, min(count, MOST_IN_A_ROW)) for item, step, count in events]


@pytest.mark.quick(12)
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
@pytest.mark.parametrize("put", ENGINES)
def test_every_engine_counts_as_the_definition_says(
    put: Put, log: Log, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # To compile queries takes longer than to count a few rows, so Spark does so for every fourth log.
    if put is in_spark and log in LOGS[::4]:
        request.getfixturevalue("spark_of_users")
    answers = counting(put, log, tmp_path, request)([OCCURRENCES, *THRESHOLDS])
    steps = log.timeline.steps
    assert answers.windows(OCCURRENCES, 1, steps, 1, steps).tolist() == occurrences(summed(log.events), steps)
    assert sum(map(sum, log.windows[1])) > 0
    for k in THRESHOLDS:
        assert answers.windows(k, 1, steps, 1, steps).tolist() == log.windows[k]


# With and without counts, items as text and as numbers.
RULED = [LOGS[place] for place in (0, 1, 2, 3)]


# What the definition says of these logs is worked out once for all engines; a log is told by its place in RULED.


@cache
def held(place: int, once: bool, most: int | None = None) -> list[tuple[Any, int, int]]:
    """The events that count: one of an item in a step, the first so many of an item."""
    events = once_a_step(RULED[place].events) if once else RULED[place].events
    return events if most is None else first_occurrences(events, most)


@cache
def windows(place: int, k: int, rule: CountingRule) -> list[list[int]]:
    return any_window(held(place, rule.distinct_steps, rule.max_occurrences), k, RULED[place].timeline.steps)


@cache
def bounded(place: int, k: int, length: int, rule: CountingRule) -> list[int]:
    assert rule.max_runs is not None
    events, steps = held(place, rule.distinct_steps), RULED[place].timeline.steps
    return rolling_in_first_runs(events, k, steps, length, rule.max_runs)


@cache
def lost(place: int, rule: CountingRule, series: tuple[tuple[int, int], ...]) -> list[int]:
    bound: dict[str, Any] = {"occurrences": rule.max_occurrences, "runs": rule.max_runs, "series": series}
    steps = range(1, RULED[place].timeline.steps + 1)
    return [losers(held(place, rule.distinct_steps), step, **bound) for step in steps]


# Rules and values of columns have nothing to do with one another: engines that are slow see each rule with two logs.
SLOW = (in_spark, in_clickhouse, in_datafusion)
RULED_PUT = [
    pytest.param(*engine.values, place, id=f"{engine.id}-{RULED[place].name}", marks=[*engine.marks, *further])
    for engine in ENGINES
    for place in range(len(RULED))
    for further in ([pytest.mark.search(0)] if engine.values[0] in SLOW and place in (1, 2) else [],)
]
RULES = [
    CountingRule(distinct_steps=True),
    CountingRule(max_occurrences=4),
    CountingRule(distinct_steps=True, max_occurrences=3),
]


@pytest.mark.parametrize(("put", "place"), RULED_PUT)
def test_every_engine_enforces_what_counts(
    put: Put, place: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    log = RULED[place]
    count, steps = counting(put, log, tmp_path, request), log.timeline.steps
    for rule in RULES:
        answers = count([OCCURRENCES, 1, 2, 3], rule=rule)
        assert answers.rule == rule
        own = held(place, rule.distinct_steps, rule.max_occurrences)
        assert answers.windows(OCCURRENCES, 1, steps, 1, steps).tolist() == occurrences(summed(own), steps)
        for k in (1, 2, 3):
            assert answers.windows(k, 1, steps, 1, steps).tolist() == windows(place, k, rule)


@pytest.mark.parametrize("others", [[], [1]], ids=str)
@pytest.mark.parametrize("place", range(2), ids=lambda place: RULED[place].name)
@pytest.mark.parametrize("put", ENGINES)
def test_every_engine_counts_occurrences_alone_and_beside_distinct_items(
    put: Put, place: int, others: list[int], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """No look at the items is needed then, or only one at the row before."""
    log = RULED[place]
    steps = log.timeline.steps
    answers = counting(put, log, tmp_path, request)([OCCURRENCES, *others])
    assert answers.windows(OCCURRENCES, 1, steps, 1, steps).tolist() == occurrences(summed(log.events), steps)
    for k in others:
        assert answers.windows(k, 1, steps, 1, steps).tolist() == log.windows[k]


@pytest.mark.quick(3)
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize(("put", "place"), RULED_PUT)
def test_every_engine_counts_items_in_their_first_runs(
    put: Put, place: int, once: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    log = RULED[place]
    count, steps = counting(put, log, tmp_path, request), log.timeline.steps
    series = [(k, length) for k in (1, 2, 7) for length in (1, 2, 4)]
    events, fewer = held(place, once), 0
    # Where queries take long, every pair of a log, a rule and a number of runs, and not all three.
    for most in (1 + (place + once) % 2,) if put in SLOW else (1, 2):
        rule = CountingRule(once, max_runs=most)
        answers = count([2], rule=rule, series=series)
        assert answers.cumulative(2).tolist() == cumulative(events, 2, steps)
        for k, length in series:
            assert answers.rolling(k, length).tolist() == bounded(place, k, length, rule)
            fewer += sum(rolling(events, k, steps, length)) - sum(bounded(place, k, length, rule))
    assert fewer > 0


LOSSES = [*RULES[1:], CountingRule(max_occurrences=1), CountingRule(max_runs=1), CountingRule(True, max_runs=2)]


@pytest.mark.quick(3)
@pytest.mark.parametrize(("put", "place"), RULED_PUT)
def test_every_engine_counts_the_items_that_lost_something(
    put: Put, place: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Step by step, and nothing else changes for it."""
    log = RULED[place]
    count, steps = counting(put, log, tmp_path, request), log.timeline.steps
    found = set()
    for rule in LOSSES[place % 2 :: 2] if put in SLOW else LOSSES:
        series = () if rule.max_runs is None else ((1, 1), (2, 3), (7, 2))
        answers = count([1, 2], rule=rule, series=series, loss=True)
        assert answers.cumulative(LOST).tolist() == lost(place, rule, series)
        items = len({item for item, _, _ in log.events})
        found |= {0 < number < items for number in lost(place, rule, series)}
        for k in (1, 2):
            assert answers.cumulative(k).tolist() == windows(place, k, rule)[0]
            if rule.max_runs is None:
                assert answers.windows(k, 1, steps, 1, steps).tolist() == windows(place, k, rule)
        for k, length in series:
            assert answers.rolling(k, length).tolist() == bounded(place, k, length, rule)
    assert True in found


COUNTS = [1, 0, -1, None, 2, 3, 2**62, -(2**62), 7]


@pytest.mark.parametrize(("count", "tell"), [("integer", int), ("decimal", Decimal), ("text", str)])
@pytest.mark.parametrize("put", ENGINES)
def test_which_counts_count(
    put: Put, count: str, tell: Callable[[int], Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Rows without a count, or with one below 1, take nothing from the other rows of their item."""
    rows = [(str(place), 0, None if number is None else tell(number)) for place, number in enumerate(COUNTS)]
    rows += [("sum", 0, tell(number)) for number in (2, -9, 0, 2)]
    log = Log(f"counts {count}", Timeline.of_steps(1), "integer", rows, True, count)
    answers = counting(put, log, tmp_path, request)(range(1, 9))
    held = [number for number in [*COUNTS, 4] if number is not None]
    for k in range(1, 9):
        assert answers.cumulative(k).tolist() == [sum(number >= k for number in held)]


@pytest.mark.parametrize(("role", "value"), [("time", "-0.5"), ("count", "1.000000001")])
@pytest.mark.parametrize("put", ENGINES)
def test_a_fraction_is_refused_and_not_rounded(
    put: Put, role: str, value: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    whole = {"item": "a", "time": Decimal(1), "count": Decimal(1)}
    rows = [(row["item"], row["time"], row["count"]) for row in (whole, whole | {role: Decimal(value)})]
    log = Log(f"fraction of {role}", Timeline.of_steps(3), "decimal", rows, True, "decimal")
    # SQLite holds a float, or the text that it was given.
    message = f"the {role} column '{role}' (holds decimals, and not all of them are whole|is of .*REAL|is text)"
    with pytest.raises(InputError, match=message) as caught:
        counting(put, log, tmp_path, request)([1])
    # What a server refuses it also writes into its own log, so values are not named there.
    if put in (in_postgresql, *SLOW):
        assert value not in str(caught.value)
