"""Signed counts of every log pass, and what no log can have is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpwindows.ask.counting_rule import LOST, CountingRule
from dpwindows.ask.groups import Grouping, grouping
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import Int64Array
from dpwindows.count import possible
from dpwindows.count.possible import SignedCounts
from dpwindows.count.query.wanted import Wanted
from dpwindows.errors import InputError
from tests.brute_force import first_occurrences, losers, once_a_step
from tests.grouped_logs import grouped_events
from tests.search import examples

STEPS = 6
TIMELINE = Timeline.of_steps(STEPS)
BY = {"a": ["x", "y", "z"], "b": ["p", "q"]}
GROUPINGS = {
    "none": None,
    "groups": grouping(BY),
    "totals": grouping(BY, totals=0.2),
    "of items": grouping(BY, group_of="item", totals=0.2),
    "at most one": grouping(BY, max_groups=1, totals=0.2),
    "at most two": grouping(BY, max_groups=2, totals=0.2),
}
WANTED = {
    "every": Wanted((OCCURRENCES, 1, 2, 3)),
    "some": Wanted((2, 5)),
    "occurrences": Wanted((OCCURRENCES,)),
    "steps": Wanted((OCCURRENCES, 1, 2, 3), CountingRule(distinct_steps=True)),
    "two": Wanted((OCCURRENCES, 1, 2, 3), CountingRule(max_occurrences=2), loss=True),
    "runs": Wanted((1, 2), CountingRule(max_runs=1), ((1, 2), (2, 3)), loss=True),
}
ROWS = st.lists(
    st.tuples(
        st.sampled_from("uvwst"),
        st.integers(1, STEPS),
        st.sampled_from([1, 1, 2, 4]),
        st.sampled_from(BY["a"]),
        st.sampled_from(BY["b"]),
    ),
    max_size=14,
)


def signed(events: list[tuple[Any, int, int]], k: int, begin: int = 0) -> Counter[tuple[int, int]]:
    """The signed counts of at least k, or of occurrences, from the definition, by places from `begin` on."""
    delta: Counter[tuple[int, int]] = Counter()
    for item in {item for item, _, _ in events}:
        own = sorted(step for who, step, count in events for _ in range(count) if who == item)
        if k == OCCURRENCES:
            delta.update((begin + step, begin + step) for step in own)
            continue
        before = None
        for step in range(1, STEPS + 1):
            seen = [at for at in own if at <= step]
            after = seen[-k] if len(seen) >= k else None
            if after != before:
                delta.update({(begin + step, begin + at): sign for at, sign in ((after, 1), (before, -1)) if at})
            before = after
    return delta


def table_of(delta: Mapping[tuple[int, int], int]) -> Int64Array:
    return np.array([(*at, number) for at, number in delta.items() if number], dtype=np.int64).reshape(-1, 3).T


def counts_of(rows: list[tuple[Any, ...]], wanted: Wanted, groups: Grouping | None) -> SignedCounts:
    """The signed counts of a log (item, step, count, a, b), from the definition."""
    changes: dict[int, Counter[tuple[int, int]]] = {k: Counter() for k in wanted.thresholds}
    cells: dict[int, Any] = {0: [row[:3] for row in rows]}
    if groups is not None:
        events = grouped_events([(*row[:3], row[3:]) for row in rows], groups, lambda step: int(step))
        keys = [key for level in groups.levels for key in groups.values_of(level)]
        cells = {(STEPS + 1) * cell: events[key] for cell, key in enumerate(keys)}
    most = wanted.rule.max_occurrences
    for begin, found in cells.items():
        held = once_a_step(found) if wanted.rule.distinct_steps else found
        for k, delta in changes.items():
            delta.update(signed(held if most is None else first_occurrences(held, most), k, begin))
    if most is not None:
        lost = np.diff([0, *(losers(rows_of(rows), step, occurrences=most) for step in range(1, STEPS + 1))])
        changes[LOST] = Counter({(step, 1): int(items) for step, items in enumerate(lost, 1)})
    return SignedCounts("counts.csv", {k: table_of(delta) for k, delta in changes.items()}, wanted, STEPS, groups)


def rows_of(rows: list[tuple[Any, ...]]) -> list[tuple[Any, int, int]]:
    return [row[:3] for row in rows]


@examples(400)
@given(ROWS, st.sampled_from(list(GROUPINGS)), st.sampled_from(["every", "some", "occurrences", "steps", "two"]))
def test_counts_of_a_log_are_possible(rows: list[tuple[Any, ...]], groups: str, wanted: str) -> None:
    chosen = None if wanted == "two" else GROUPINGS[groups]
    counts_of(rows, WANTED[wanted], chosen).require_possible()
