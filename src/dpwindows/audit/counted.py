"""Histories as rules of counting and of groups leave them: written from the definition, apart from the engines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpwindows.ask.counting_rule import LOST, CountingRule
from dpwindows.ask.groups import Grouping
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.audit.neighbours import Ints

# (k, first step, last step): the exact count of items with at least k occurrences in these steps; with `OCCURRENCES`
# for k that of occurrences, with `LOST` that of items that have lost something by the rule up to the last of them.
Source = tuple[int, int, int]


def counted(rule: CountingRule, histories: Ints) -> Ints:
    """The occurrences that count, by step, but for bounded runs; shape (histories, T)."""
    held = _occurrences(rule, histories)
    if rule.max_occurrences is not None:
        sums = np.minimum(np.cumsum(held, axis=1), rule.max_occurrences)
        held = np.diff(sums, axis=1, prepend=0)
    return held


def _occurrences(rule: CountingRule, histories: Ints) -> Ints:
    return np.minimum(histories, 1) if rule.distinct_steps else histories


def answers_of(rule: CountingRule, histories: Ints, sources: Sequence[Source] | Ints) -> Ints:
    """What the one item of each log counts in some windows: 0 or 1, or its occurrences; shape (histories, sources).

    With bounded runs a window that begins after step 1 is one of the rolling windows of its length. One that begins
    at step 1 is the same for rolling windows, in whose first steps there is one run at most, and cumulative ones.
    """
    held = np.cumsum(counted(rule, histories), axis=1)
    sums = np.concatenate([np.zeros((len(histories), 1), dtype=np.int64), held], axis=1)
    k, first, last = np.asarray(sources).T
    inside = sums[:, last] - sums[:, first - 1]
    found: Ints = np.where(k == OCCURRENCES, inside, inside >= k)
    lost = np.cumsum(_occurrences(rule, histories), axis=1) > held
    if rule.max_runs is not None:
        lengths = last - first + 1
        for threshold, length in {(int(k[at]), int(lengths[at])) for at in np.flatnonzero(first > 1)}:
            ends = np.arange(1, held.shape[1] + 1)
            rolling = sums[:, ends] - sums[:, np.maximum(ends - length, 0)] >= threshold
            begun = np.cumsum(np.diff(rolling.astype(np.int64), axis=1, prepend=0) == 1, axis=1)
            mine = (k == threshold) & (lengths == length) & (first > 1)
            found[:, mine] &= (begun <= rule.max_runs)[:, last[mine] - 1]
            lost |= begun > rule.max_runs
    found[:, k == LOST] = lost[:, last[k == LOST] - 1]
    return found


def by_group(grouping: Grouping | None, histories: Ints, steps: int) -> Ints:
    """The occurrences that each group holds of histories, by step: shape (histories, groups of all levels, steps).

    A history with groups lists its occurrences step by step, and in each step group by group
    (`dpwindows.audit.neighbours`). The events of a step are at one moment: the order of the lists decides which is
    first.
    """
    if grouping is None:
        return histories[:, None]
    sizes = tuple(len(column.values) for column in grouping.columns)
    held = histories.reshape(len(histories), steps, grouping.levels[0].count)
    if grouping.group_of == "item":
        first = (histories > 0).argmax(axis=1) % grouping.levels[0].count
        moved = np.zeros_like(held)
        moved[np.arange(len(held)), :, first] = held.sum(axis=2)
        held = moved
    found = []
    for level in grouping.levels:
        others = tuple(2 + place for place in range(len(sizes)) if place not in level.kept)
        own = held.reshape(len(held), steps, *sizes).sum(axis=others).reshape(len(held), steps, level.count)
        # Groups that an item is never in come last, and an item is in none of them.
        since = np.where(own.any(axis=1), (own > 0).argmax(axis=1), steps) * level.count + np.arange(level.count)
        place = since.argsort(axis=1).argsort(axis=1)
        found.append(np.where((place < grouping.most(level))[:, None], own, 0).swapaxes(1, 2))
    return np.concatenate(found, axis=1)
