"""An oracle for window counts, written from the definition alone and sharing nothing with the package.

A log is a list of (item, step, count) with steps 1..T. S[u, [a, b]] adds the counts of item u in steps a..b;
CountAtLeast_k(a, b) is the number of items u with S[u, [a, b]] >= k.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)
Log = Iterable[tuple[Hashable, int, int]]


def count_at_least(log: Log, k: int, first: int, last: int) -> int:
    """The number of items with at least k occurrences in steps first..last."""
    sums: dict[Hashable, int] = defaultdict(int)
    for item, step, count in log:
        if first <= step <= last:
            sums[item] += count
    return sum(1 for total in sums.values() if total >= k)


def cumulative(log: Log, k: int, steps: int) -> list[int]:
    """The windows (1, t), t = 1..steps."""
    events = list(log)
    return [count_at_least(events, k, 1, t) for t in range(1, steps + 1)]


def rolling(log: Log, k: int, steps: int, length: int) -> list[int]:
    """The windows (max(1, t - length + 1), t), t = 1..steps."""
    events = list(log)
    return [count_at_least(events, k, max(1, t - length + 1), t) for t in range(1, steps + 1)]


def any_window(log: Log, k: int, steps: int) -> list[list[int]]:
    """Row a - 1, column b - 1 holds the window (a, b); 0 where b < a."""
    events = list(log)
    return [[count_at_least(events, k, a, b) for b in range(1, steps + 1)] for a in range(1, steps + 1)]


def occurrences(log: Log, steps: int) -> list[list[int]]:
    """Row a - 1, column b - 1 holds the occurrences in the window (a, b), of all items together; 0 where b < a."""
    events = list(log)
    each = [sum(count for _, at, count in events if at == step) for step in range(1, steps + 1)]
    return [[sum(each[a : b + 1]) for b in range(steps)] for a in range(steps)]


def once_a_step(log: Iterable[tuple[Item, int, int]]) -> list[tuple[Item, int, int]]:
    """The log in which an item occurs at most once in a step."""
    return [(item, step, 1) for item, step in dict.fromkeys((item, step) for item, step, _ in log)]


def first_occurrences(log: Iterable[tuple[Item, int, int]], most: int) -> list[tuple[Item, int, int]]:
    """The log with the first `most` occurrences of each item, step by step."""
    left: dict[Item, int] = defaultdict(lambda: most)
    found = []
    for item, step, count in sorted(log, key=lambda event: event[1]):
        counted = min(count, left[item])
        left[item] -= counted
        if counted:
            found.append((item, step, counted))
    return found


def rolling_in_first_runs(log: Log, k: int, steps: int, length: int, most: int) -> list[int]:
    """The windows (max(1, t - length + 1), t), each item counted in its first `most` runs only."""
    events = list(log)
    total = [0] * steps
    for item in {item for item, _, _ in events}:
        counted = rolling([event for event in events if event[0] == item], k, steps, length)
        runs = 0
        for at, now in enumerate(counted):
            runs += now > (counted[at - 1] if at else 0)
            total[at] += now if runs <= most else 0
    return total


def losers(
    log: Log,
    steps: int,
    *,
    occurrences: int | None = None,
    runs: int | None = None,
    series: Iterable[tuple[int, int]] = (),
) -> int:
    """Items with more than so many occurrences; or with more runs than so many of one of the series (k, length)."""
    events, asked, found = [event for event in log if event[1] <= steps], list(series), 0
    for item in {item for item, _, _ in events}:
        own = [event for event in events if event[0] == item]
        more = occurrences is not None and sum(count for _, _, count in own) > occurrences
        for k, length in () if runs is None else asked:
            counted = [0, *rolling(own, k, steps, length)]
            more |= sum(now > before for before, now in pairwise(counted)) > (runs or 0)
        found += more
    return found
