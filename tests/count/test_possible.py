"""Signed counts of every log pass, and what no log can have is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpwindows.ask.counting_rule import LOST, CountingRule
from dpwindows.ask.groups import Grouping, grouping
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.ask.zones import Int64Array
from dpwindows.count import possible
from dpwindows.count.possible import SignedCounts
from dpwindows.count.query.first_runs import series_number
from dpwindows.count.query.wanted import Wanted
from dpwindows.errors import InputError
from tests.brute_force import first_occurrences, losers, once_a_step
from tests.grouped_logs import grouped_events
from tests.search import examples

STEPS = 6
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


@examples(150)
@given(ROWS, st.sampled_from(list(GROUPINGS)), st.sampled_from(["every", "some", "occurrences", "steps", "two"]))
def test_counts_of_a_log_are_possible(rows: list[tuple[Any, ...]], groups: str, wanted: str) -> None:
    chosen = None if wanted == "two" else GROUPINGS[groups]
    counts_of(rows, WANTED[wanted], chosen).require_possible()


def test_at_least_one_is_possible_where_a_log_has_it() -> None:
    """Of all changes by at most 1 in three steps, and 2 new items in each, those that pass are those of logs."""
    cells = [(step, recency) for step in range(1, 4) for recency in range(1, step + 1)]
    ranges = [range(3) if step == recency else range(-1, 1) for step, recency in cells]
    # An item does what it does in three steps; of each kind there are as many as there can be.
    sets = [steps for size in (1, 2, 3) for steps in combinations((1, 2, 3), size)]
    kinds = [signed([("u", step, 1) for step in steps], 1) for steps in sets]
    known = set()
    for items in product(range(3), repeat=len(kinds)):
        known.add(tuple(sum(number * kind[cell] for number, kind in zip(items, kinds, strict=True)) for cell in cells))
    wanted, passed = Wanted((1,)), 0
    for changes in product(*ranges):
        delta = dict(zip(cells, changes, strict=True))
        try:
            SignedCounts("counts.csv", {1: table_of(delta)}, wanted, 3).require_possible()
        except InputError:
            assert changes not in known
        else:
            assert changes in known
            passed += 1
    assert passed > 40


EVERY, RULED = WANTED["every"], WANTED["two"]
TOTALS = GROUPINGS["totals"]


def changed(
    rows: list[tuple[Any, ...]], wanted: Wanted, groups: Grouping | None, *changes: tuple[int, int, int, int]
) -> SignedCounts:
    """The counts of a log, with rows (k, step, recency, delta) added to them."""
    whole = counts_of(rows, wanted, groups)
    tables = {}
    for k, table in whole.changes.items():
        delta = Counter({(step, recency): number for step, recency, number in table.T.tolist()})
        delta.update({(step, recency): number for own, step, recency, number in changes if own == k})
        tables[k] = table_of(delta)
    return SignedCounts("counts.csv", tables, wanted, STEPS, groups)


TWICE = [("u", 2, 1, "x", "p"), ("u", 4, 1, "x", "p"), ("v", 4, 1, "y", "p")]
# A place in the group x and p is its step, and one in the total over all groups is 77 more.
CASES: dict[str, tuple[Wanted, Grouping | None, list[tuple[int, int, int, int]], str]] = {
    "beyond the range": (EVERY, None, [(1, 7, 7, 1)], "in the row of k 1, step 7, recency 7 and delta 1: steps"),
    "a recency to come": (EVERY, None, [(1, 3, 5, 1)], "a recency is from 1 to the step"),
    "no recency": (EVERY, None, [(1, 3, 0, 1)], "a recency is from 1 to the step"),
    "occurrences that leave": (EVERY, None, [(-1, 3, 3, -1)], "occurrences stay in the step"),
    "occurrences elsewhere": (EVERY, None, [(-1, 4, 3, 1)], "occurrences stay in the step"),
    "seen where it is not": (EVERY, None, [(1, 3, 1, 1)], "an item was last seen in the step in which it is"),
    "left before it came": (EVERY, None, [(1, 5, 3, -1), (1, 5, 5, 1)], "items with at least 1 leave step 3 than"),
    "a smaller window": (EVERY, None, [(1, 5, 4, -1)], "fewer items with at least 1 from step 4 to step 5 than"),
    "more twice than once": (Wanted((1, 2)), None, [(2, 4, 4, 1), (2, 4, 2, 1)], "items with at least 2"),
    "more three times": (Wanted((2, 3)), None, [(3, 4, 4, 1)], "holds more items with at least 3 than items with"),
    "more than occur": (Wanted((1, 2)), None, [(2, 3, 2, 1)], "come to be items with at least 2 in step 3 than"),
    "few occurrences": (EVERY, None, [(-1, 4, 4, -1)], "holds fewer occurrences than its items have"),
    "few for three times": (Wanted((-1, 3)), None, [(3, 4, 4, 2)], "holds fewer occurrences than its items have"),
    "near steps": (WANTED["steps"], None, [(2, 4, 4, 1)], "2 different steps lie further apart"),
    "more than a step has": (WANTED["steps"], None, [(-1, 4, 4, 1)], "as many occurrences as items"),
    "above the bound": (RULED, None, [(3, 4, 2, 1)], "no item counts more than 2 times"),
    "more than the bound": (RULED, None, [(-1, 4, 4, 2)], "there are 5 occurrences, and by --max"),
    "a loss that ends": (RULED, None, [(0, 4, 1, -1)], "an item that lost something has lost it for good"),
    "a loss without reason": (RULED, None, [(0, 3, 1, 1)], "more items that lost something than items with at least 2"),
    "too large": (EVERY, None, [(-1, 4, 4, 2**62)], "more than 64 bits hold"),
    "no such group": (EVERY, TOTALS, [(1, 92, 92, 1)], "in the row of k 1, step 92"),
    "a new group": (EVERY, TOTALS, [(1, 5, 5, 1), (-1, 5, 5, 1)], "a=x, b=all holds fewer occurrences than its"),
    "a lost total": (EVERY, TOTALS, [(-1, 81, 81, -1), (1, 81, 81, -1)], "a=all, b=all holds fewer"),
    "an empty total": (EVERY, TOTALS, [(1, 80, 80, 1), (-1, 80, 80, 1)], "a=all, b=all holds more"),
    "a total of items": (Wanted((1, 2)), GROUPINGS["of items"], [(2, 81, 81, 1)], "more items with at least 2 than"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_no_log_has_is_refused(case: str) -> None:
    wanted, groups, changes, why = CASES[case]
    counts_of(TWICE, wanted, groups).require_possible()
    with pytest.raises(InputError, match=r"^counts[.]csv cannot be of any log: ") as refusal:
        changed(TWICE, wanted, groups, *changes).require_possible()
    assert why in str(refusal.value)


def test_first_runs_are_no_more_than_all() -> None:
    """Of one item that comes back the first runs may leave something out, and add nothing."""
    wanted = Wanted((1,), CountingRule(max_runs=1), ((1, 2),))
    back = table_of({(2, 2): 1, (3, 2): -1, (3, 3): 1})
    for runs in (back, table_of({(2, 2): 1})):
        SignedCounts("counts.csv", {1: back, series_number(0): runs}, wanted, STEPS).require_possible()
    twice = table_of({(2, 2): 1, (3, 3): 1})
    with pytest.raises(InputError, match="more items in the first runs of at least 1 than items with at least 1"):
        SignedCounts("counts.csv", {1: back, series_number(0): twice}, wanted, STEPS).require_possible()


@examples(150)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(-2, 3)), max_size=40),
    st.sampled_from([1, 9, possible._AT_ONCE]),
)
def test_the_least_sum_over_windows_is_found(changes: list[tuple[int, int, int]], size: int) -> None:
    table = np.array(changes, dtype=np.int64).reshape(-1, 3).T
    least = [
        min(sum(d for s, r, d in changes if s <= end and r >= start) for start in range(1, 10)) for end in range(1, 10)
    ]
    wanted = next((end for end, low in enumerate(least, 1) if low < 0), None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(possible, "_AT_ONCE", size)
        assert possible._first_below(table) == wanted
