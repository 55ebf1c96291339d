"""Whether signed counts can be of any log: what they must obey, whoever counted them.

Counts that somebody else made are checked before anything is spent on them. What is checked is true of every log, so
that none is refused by mistake; counts that pass may still be of another log than is meant. With the notation of
`answers`, for every window [a, t]:

1. An item leaves a recency only after it has reached it: no h_t[a] is below 0.
2. A window that ends later holds no fewer items: of each step, the changes of recencies from a on add up to at least 0.
   They add up to at most the items of that step, where these are counted. For k = 1 an item reaches the recency of the
   step itself, and no other.
3. At least k holds no fewer items than at least k + 1, than the first runs of at least k, and, for every k that the
   bound of occurrences admits, than the items that lost something by it.
4. An item with at least k_1 < k_2 < ... occurrences brings as many of them: occurrences are at least the sum of
   (k_j - k_{j-1}) times the items with at least k_j. With a bound N they are at most N times the items.
5. Where each item has one group, a total is the sum of its groups. Where events have one, occurrences of a total are
   those of its groups (or more, where an item counts in some of its groups only), an item of m groups is one of their
   total, and an item of the total is one of a group.

Sums over all windows are looked at together (`_first_below`), in a time of n log n for n signed counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.counting_rule import LOST
from dpwindows.ask.groups import Grouping, Level, cells_of
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.ask.zones import Int64Array
from dpwindows.count.query.first_runs import series_number
from dpwindows.count.query.wanted import Wanted
from dpwindows.errors import InputError

_LARGEST = 2.0**62
# The numbers of a table, of steps by recencies, in which changes are added up at once.
_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class SignedCounts:
    """Signed counts of a log, to be looked at before they are used.

    Attributes:
        what: what messages call them.
        changes: for each number k of `Wanted.sql` the rows step, recency and delta of an array, in which no two columns
            have the same step and recency. With groups these two are places in cells (`recency_sql`).
        wanted: what was counted.
        steps: the steps of the range.
        grouping: the groups, None for none.
    """

    what: str
    changes: Mapping[int, Int64Array]
    wanted: Wanted
    steps: int
    grouping: Grouping | None = None

    def require_possible(self) -> None:
        """Check that they can be of a log; raises `InputError`, which says where and why, if they cannot."""
        for k in self.changes:
            self._require_rows(k)
        total = sum(float(np.abs(table[2].astype(np.float64)).sum()) for table in self.changes.values())
        if total * max(cells_of(self.grouping), *self.changes) >= _LARGEST:
            raise self._impossible("they add up to more than 64 bits hold")
        for k in self._items:
            self._require_moves(k)
        for more, fewer in self._chains():
            self._require_no_fewer(
                self.changes[more], self.changes[fewer], f"more {self._name(fewer)} than {self._name(more)}"
            )
        if OCCURRENCES in self.wanted.thresholds:
            self._require_occurrences(self.changes[OCCURRENCES])
        if self.grouping is not None:
            for level in self.grouping.levels[1:]:
                self._require_total(self.grouping, level)

    # --- what is counted, and where ---------------------------------------------------------------------------------

    @property
    def _span(self) -> int:
        """The places of a cell; without groups all steps are in cell 0."""
        return self.steps + 1

    @property
    def _thresholds(self) -> list[int]:
        return [k for k in self.wanted.thresholds if k != OCCURRENCES]

    @property
    def _items(self) -> dict[int, int]:
        """The numbers that counts of items stand under, and the k of each."""
        series = {series_number(place): k for place, (k, _) in enumerate(self.wanted.series)}
        return {k: k for k in self._thresholds} | series

    def _chains(self) -> list[tuple[int, int]]:
        """Pairs of numbers, the first of which counts no fewer items in any window than the second."""
        runs = [(k, number) for number, k in self._items.items() if number != k and k in self._thresholds]
        most = self.wanted.rule.max_occurrences
        bounding = [k for k in self._thresholds if most is not None and k <= most] if self.wanted.loss else []
        return [*pairwise(self._thresholds), *runs, *((k, LOST) for k in bounding[-1:])]

    def _name(self, k: int) -> str:
        """What a number counts, in words."""
        if k == LOST:
            return "items that lost something"
        if k not in self._items:
            return "occurrences"
        return f"items with at least {k:,}" if k > 0 else f"items in the first runs of at least {self._items[k]:,}"

    def _where(self, place: int) -> str:
        if self.grouping is None:
            return f"step {place:,}"
        cell, step = divmod(place, self._span)
        level = next(level for level in reversed(self.grouping.levels) if level.first <= cell)
        values = self.grouping.values_of(level)[cell - level.first]
        named = zip(self.grouping.names, values, strict=True)
        group = ", ".join(f"{name}={'all' if value is None else value}" for name, value in named)
        return f"step {step:,} of the group {group}"

    def _impossible(self, why: str) -> InputError:
        return InputError(
            f"{self.what} cannot be of any log: {why}. Run the query as it was printed, on the types that it was "
            "printed for, and hand over its whole result"
        )

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _require_rows(self, k: int) -> None:
        """What each row must be, by itself."""
        step, recency, delta = self.changes[k]
        cell, within, near = step // self._span, step % self._span, recency % self._span
        here = (within >= 1) & (step >= 1) & (cell < cells_of(self.grouping))
        self._require(k, here, f"steps are from 1 to {self.steps:,}")
        self._require(
            k, (near >= 1) & (recency <= step) & (recency // self._span == cell), "a recency is from 1 to the step"
        )
        if k == LOST:
            self._require(k, (near == 1) & (delta >= 0), "an item that lost something has lost it for good")
        elif k not in self._items:
            self._require(k, (recency == step) & (delta >= 0), "occurrences stay in the step that they are of")
        else:
            least, rule = self._items[k], self.wanted.rule
            if rule.max_occurrences is not None and least > rule.max_occurrences:
                self._require(k, delta == 0, f"no item counts more than {rule.max_occurrences} times")
            if rule.distinct_steps:
                self._require(k, near <= within - least + 1, f"{least:,} different steps lie further apart")
            if least == 1:
                self._require(k, (recency == step) | (delta <= 0), "an item was last seen in the step in which it is")

    def _require(self, k: int, holds: NDArray[np.bool_], why: str) -> None:
        if not holds.all():
            step, recency, delta = self.changes[k][:, int(np.argmin(holds))].tolist()
            raise self._impossible(f"in the row of k {k}, step {step}, recency {recency} and delta {delta}: {why}")

    # --- sums ---------------------------------------------------------------------------------------------------------

    def _require_moves(self, k: int) -> None:
        """What the changes of one recency, and those of one step, add up to."""
        table, named = self.changes[k], self._name(k)
        step, recency, left = _running(table, by=1)
        if (left < 0).any():
            at = int(np.argmax(left < 0))
            raise self._impossible(
                f"in {self._where(step[at])} more of the {named} leave {self._where(recency[at])} than have come to it"
            )
        step, recency, moved = _running(table, by=0)
        if (moved < 0).any():
            at = int(np.argmax(moved < 0))
            raise self._impossible(
                f"there are fewer {named} from {self._where(recency[at])} to {self._where(step[at])} than to the step "
                "before that"
            )
        if 1 in self._thresholds:
            steps, items = self._seen
            place = np.searchsorted(steps, step)
            known = np.append(steps, -1)[place] == step
            beyond = moved > np.where(known, np.append(items, 0)[place], 0)
            if beyond.any():
                where = self._where(step[np.argmax(beyond)])
                raise self._impossible(f"more items come to be {named} in {where} than occur in it")

    @cached_property
    def _seen(self) -> tuple[Int64Array, Int64Array]:
        """The steps in which items occur, ascending, and the number of these; where items of at least 1 are counted."""
        step, recency, delta = self.changes[1]
        own = (step == recency) & (delta > 0)
        order = np.argsort(step[own])
        return step[own][order], delta[own][order]

    def _require_no_fewer(self, more: Int64Array, fewer: Int64Array, why: str) -> None:
        place = _first_below(np.hstack([more, _times(-1, fewer)]))
        if place is not None:
            raise self._impossible(f"a window that ends in {self._where(place)} holds {why}")

    def _require_occurrences(self, occurrences: Int64Array) -> None:
        """What the items that are counted say of occurrences."""
        if not self._thresholds:
            return
        added = zip(self._thresholds, np.diff([0, *self._thresholds]).tolist(), strict=True)
        brought = np.hstack([_times(more, self.changes[k]) for k, more in added])
        self._require_no_fewer(occurrences, brought, "fewer occurrences than its items have")
        rule, total = self.wanted.rule, int(occurrences[2].sum())
        if 1 in self._thresholds and rule.distinct_steps and total != int(self._seen[1].sum()):
            raise self._impossible("with --distinct-steps there are as many occurrences as items in each step")
        if 1 in self._thresholds and rule.max_occurrences is not None:
            most = rule.max_occurrences * int(self.changes[1][2].sum())
            if total > most:
                raise self._impossible(f"there are {total:,} occurrences, and by --max-occurrences at most {most:,}")

    def _require_total(self, grouping: Grouping, level: Level) -> None:
        """What the groups of all columns say of the totals of a level."""
        groups, limits = grouping.levels[0], grouping.limits_groups
        if limits and level.count > grouping.most(groups):
            return  # of totals an item may be in others than of groups, where it was first seen in several at once
        most = min(grouping.most(groups), groups.count // level.count)
        for k, table in self.changes.items():
            cell = table[0] // self._span
            totals = table[:, (cell >= level.first) & (cell < level.first + level.count)]
            parts = self._added(table[:, cell < groups.count], grouping, level)
            # Of what is there once in all groups together the sums are the same, and elsewhere those of one.
            alike = k == OCCURRENCES and not self.wanted.rule.distinct_steps
            least = 1 if alike or grouping.group_of == "item" else most
            self._require_no_fewer(_times(least, totals), parts, f"fewer {self._name(k)} than its groups have")
            if grouping.group_of == "item" or (k in (1, OCCURRENCES) and not limits):
                self._require_no_fewer(parts, totals, f"more {self._name(k)} than its groups have")

    def _added(self, table: Int64Array, grouping: Grouping, level: Level) -> Int64Array:
        """The counts of all groups in the places of the totals that they are part of."""
        sizes = [len(column.values) for column in grouping.columns]
        digits = np.unravel_index(table[0] // self._span, sizes)
        total = np.full(table.shape[1], 0)
        for place in level.kept:
            total = total * sizes[place] + digits[place]
        begin = (level.first + total) * self._span
        return np.stack([begin + table[0] % self._span, begin + table[1] % self._span, table[2]])


def _times(factor: int, table: Int64Array) -> Int64Array:
    return np.stack([table[0], table[1], factor * table[2]])


def _running(table: Int64Array, *, by: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Steps, recencies and running sums of the changes of each step (0), from the last recency on, or recency (1)."""
    step, recency, delta = table[:, np.lexsort((-table[1], table[0]) if by == 0 else (table[0], table[1]))]
    own = (step, recency)[by]
    sums = np.cumsum(delta)
    first = np.flatnonzero(np.diff(own, prepend=own[:1] - 1))
    before = (sums - delta)[first]
    return step, recency, sums - np.repeat(before, np.diff(np.append(first, len(own))))


def _first_below(table: Int64Array) -> int | None:
    """The step of a window of which the changes add up to less than 0: those at most at its end, of recencies in it.

    None if there is no such window. Within a step what adds comes first, so that no sum on the way is lower than both
    that before the step and that after it.
    """
    table = table[:, np.lexsort((-table[2], table[0]))]
    step, recency, delta = table

    def search(low: int, high: int, cuts: Int64Array, sums: Int64Array) -> int | None:
        """Look among the changes low..high-1. `sums` are the least before them, of starts up to each cut."""
        steps, row = np.unique(step[low:high], return_inverse=True)
        if len(steps) * len(cuts) <= _AT_ONCE or high == low + 1:
            after = np.zeros((len(steps), len(cuts)), dtype=np.int64)
            np.add.at(after, (row, np.searchsorted(cuts, recency[low:high])), delta[low:high])
            after = after[:, ::-1].cumsum(axis=1)[:, ::-1].cumsum(axis=0) + sums
            below = (after < 0).any(axis=1)
            return int(steps[np.argmax(below)]) if below.any() else None
        for begin, end in pairwise((low, (low + high) // 2, high)):
            # Between two of its own recencies a half treats all starts alike.
            own, place = np.unique(recency[begin:end], return_inverse=True)
            last = np.searchsorted(cuts, own)
            found = search(begin, end, own, np.minimum.reduceat(sums[: last[-1] + 1], np.append(0, last[:-1] + 1)))
            if found is not None:
                return found
            added = np.zeros_like(sums)
            np.add.at(added, last[place], delta[begin:end])
            sums = sums + added[::-1].cumsum()[::-1]
        return None

    cuts = np.unique(recency)
    return search(0, len(step), cuts, np.zeros_like(cuts)) if len(step) else None
