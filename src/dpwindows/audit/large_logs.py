"""Made-up exact answers that are large, and logs of many items, for audits that small cases are not enough for.

A mechanism that looks at its data can behave on one item and small counts, and misbehave on millions. So audits try
answers of many sizes and forms, with up to 2^40 items, beside those that one item gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dpwindows.ask.groups import Grouping
from dpwindows.audit.neighbours import Ints, changes
from dpwindows.audit.probe import Counted, Mechanism, Table, tables_of
from dpwindows.release.groups import group_columns

if TYPE_CHECKING:
    from dpwindows.ask.privacy import Unit
    from dpwindows.count.answers import ExactAnswers
    from dpwindows.count.events import EventColumns
    from dpwindows.count.groups import GroupedAnswers
    from dpwindows.plan.planned import Planned

# Largest counts of the answers that are tried, beside 0.
SIZES = (1, 100, 1_999, 2_000, 2_001, 10**4, 10**5, 10**6, 2**24 + 1, 2**31 - 1, 2**31, 2**32 + 1, 10**12, 2**40)


@dataclass(frozen=True)
class LargeAnswers:
    """Exact answers with a name for reports."""

    name: str
    table: Counted


def flat(steps: int, thresholds: Sequence[int], size: int) -> Table:
    """Answers with one count, `size`, for every window and threshold."""
    return Table(steps, {k: np.triu(np.full((steps, steps), size, dtype=np.int64)) for k in thresholds})


def random(steps: int, thresholds: Sequence[int], size: int, rng: np.random.Generator) -> Table:
    """Independent counts of 0..size for every window and threshold."""
    return Table(steps, {k: np.triu(rng.integers(0, size + 1, size=(steps, steps))) for k in thresholds})


def spiked(steps: int, thresholds: Sequence[int], size: int, rng: np.random.Generator) -> Table:
    """A few windows with large counts, all others 0."""
    squares = {}
    for k in thresholds:
        chosen = rng.random((steps, steps)) < min(0.5, 3 / steps)
        squares[k] = np.triu(np.where(chosen, size, 0).astype(np.int64))
    return Table(steps, squares)


def crowd(histories: Ints, weights: Ints, thresholds: Sequence[int]) -> Table:
    """What a log holds whose items have the histories `histories[i]`, `weights[i]` of them each, from the definition.

    Args:
        histories: occurrences by item and step, shape (histories, steps).
        weights: items with each history, shape (histories,).
        thresholds: every k that is counted.
    """
    steps = histories.shape[1]
    sums = np.concatenate([np.zeros((len(histories), 1), dtype=np.int64), np.cumsum(histories, axis=1)], axis=1)
    squares = {k: np.zeros((steps, steps), dtype=np.int64) for k in thresholds}
    for first in range(steps):
        held = sums[:, first + 1 :] - sums[:, first, None]
        for k in thresholds:
            squares[k][first, first:] = ((held >= k) * weights[:, None]).sum(axis=0)
    return Table(steps, squares)


def added(mechanism: Mechanism, one: Counted, other: Counted) -> Counted:
    """The answers of two logs together that have no item in common."""
    return mechanism.of(
        [
            Table(first.steps, {k: square + second.squares[k] for k, square in first.squares.items()})
            for first, second in zip(tables_of(one), tables_of(other), strict=True)
        ]
    )


def large_answers(mechanism: Mechanism, rng: np.random.Generator) -> Iterator[LargeAnswers]:
    """Answers of every size in every form; of several groups every third is empty, the others are alike in kind."""
    steps, thresholds = mechanism.steps, sorted({k for k, _, _ in mechanism.sources})
    histories = random_histories(64, steps, max(1, min(3, max(thresholds))), rng)
    chances = np.full(len(histories), 1 / len(histories))

    def named(name: str, make: Callable[[], Table]) -> LargeAnswers:
        cells = range(mechanism.cells)
        return LargeAnswers(
            name, mechanism.of([make() if cell % 3 < 2 else flat(steps, thresholds, 0) for cell in cells])
        )

    for size in SIZES:
        yield named(f"{size:,} items in every window", partial(flat, steps, thresholds, size))
        yield named(f"up to {size:,} items in each window", partial(random, steps, thresholds, size, rng))
        yield named(f"{size:,} items in a few windows", partial(spiked, steps, thresholds, size, rng))

        def items(size: int = size) -> Table:
            return crowd(histories, rng.multinomial(size, chances), thresholds)

        yield named(f"a log of {size:,} items", items)


def random_histories(items: int, steps: int, most: int, rng: np.random.Generator) -> Ints:
    """Histories from rare to frequent occurrences, up to `most` in one step; shape (items, steps)."""
    share = rng.random((items, 1)) ** 2
    return np.where(rng.random((items, steps)) < share, rng.integers(1, most + 1, size=(items, steps)), 0)


def random_neighbours(
    unit: Unit, steps: int, groups: int, most: int, rng: np.random.Generator
) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of neighbouring histories without end, each of up to `most` occurrences in a step and group."""
    ways = changes(unit, steps, groups)
    while True:
        histories = random_histories(2, steps * groups, most, rng)
        yield ways[int(rng.integers(len(ways)))].realise(*histories)


def event_columns(grouping: Grouping | None) -> EventColumns:
    """The names of the columns of made-up logs: item, time and count, unless a group has a column of that name."""
    from dpwindows.count.events import EventColumns

    taken = {name.casefold() for name in (() if grouping is None else grouping.names)}

    def free(name: str) -> str:
        return name if name not in taken else free(f"{name}_")

    return EventColumns(free("item"), free("time"), free("count"), grouping=grouping)


def events_table(boundaries: pa.Array, histories: Mapping[str, Ints], grouping: Grouping | None = None) -> pa.Table:
    """A log with these histories by item: `event_columns`, with the start of the step as the time."""
    columns, groups = event_columns(grouping), 1 if grouping is None else grouping.levels[0].count
    names: list[str] = []
    steps: list[Ints] = [np.zeros(0, dtype=np.int64)]
    counts: list[Ints] = [np.zeros(0, dtype=np.int64)]
    for name, history in histories.items():
        held = np.flatnonzero(history)
        names += [name] * len(held)
        steps.append(held)
        counts.append(np.asarray(history, dtype=np.int64)[held])
    slots = np.concatenate(steps)
    return pa.table(
        {
            columns.item: pa.array(names, pa.string()),
            columns.time: boundaries.take(pa.array(slots // groups)),
            str(columns.count): pa.array(np.concatenate(counts)),
            **({} if grouping is None else group_columns(grouping, pa.array(slots % groups))),
        }
    )


def counted(plan: Planned, log: pa.Table) -> ExactAnswers | GroupedAnswers:
    """The exact counts of a log with `event_columns`, by the engine that a release of this plan is counted by.

    Raises:
        EngineError: the engine failed.
    """
    from dpwindows.count.counting import count_events, count_groups
    from dpwindows.count.events import EngineSettings
    from dpwindows.count.request import CountRequest

    columns, settings = event_columns(plan.grouping), EngineSettings(progress=False)
    request = CountRequest(log, columns, plan.timeline, plan.wanted, settings=settings)
    return count_events(request) if plan.grouping is None else count_groups(request)
