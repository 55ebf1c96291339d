"""Made-up exact answers that are large, and logs of many items, for audits that small cases are not enough for.

A mechanism that looks at its data can behave on one item and small counts, and misbehave on millions. So audits try
answers of many sizes and forms, with up to 2^40 items, beside those that one item gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dpwindows.ask.groups import Grouping
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.audit.neighbours import Ints, changes
from dpwindows.audit.probe import Mechanism, Table
from dpwindows.release.groups import group_columns

if TYPE_CHECKING:
    from dpwindows.ask.privacy import Unit
    from dpwindows.count.answers import ExactAnswers
    from dpwindows.count.events import EventColumns
    from dpwindows.count.groups import GroupedAnswers
    from dpwindows.plan.plan import Plan
    from dpwindows.plan.planned import Planned
    from dpwindows.release.release import Release

# Largest counts of the answers that are tried, beside 0.
SIZES = (1, 100, 1_999, 2_000, 2_001, 10**4, 10**5, 10**6, 2**24 + 1, 2**31 - 1, 2**31, 2**32 + 1, 10**12, 2**40)


def crowd(histories: Ints, weights: Ints, thresholds: Sequence[int]) -> dict[int, Ints]:
    """The squares of a `Table`, from the definition, of a log with `weights[g, i]` items of history i in group g.

    Histories are occurrences by item and step, shape (histories, steps); weights have the shape (groups, histories).
    """
    steps = histories.shape[1]
    sums = np.concatenate([np.zeros((len(histories), 1), dtype=np.int64), np.cumsum(histories, axis=1)], axis=1)
    squares = {k: np.zeros((len(weights), steps, steps), dtype=np.int64) for k in thresholds}
    for first in range(steps):
        held = sums[:, first + 1 :] - sums[:, first, None]
        for k in thresholds:
            squares[k][:, first, first:] = weights @ (held if k == OCCURRENCES else held >= k)
    return squares


def large_answers(mechanism: Mechanism, rng: np.random.Generator) -> Iterator[tuple[str, Table]]:
    """Answers of every size in every form, each with its name.

    Of several groups every third is empty, and the others are alike in kind.
    """
    shape, thresholds = mechanism.shape, mechanism.thresholds
    histories = random_histories(64, mechanism.steps, max(1, min(3, max(thresholds))), rng)
    chances = np.full(len(histories), 1 / len(histories))
    filled = np.arange(mechanism.cells)[:, None] % 3 < 2
    for size in SIZES:
        forms: dict[str, Callable[[], Any]] = {
            f"{size:,} items in every window": partial(np.full, shape, size),
            f"up to {size:,} items in each window": partial(rng.integers, 0, size + 1, size=shape),
            f"{size:,} items in a few windows": partial(_spiked, shape, size, rng),
        }
        for name, form in forms.items():
            yield name, mechanism.of({k: np.triu(form()) * filled[..., None] for k in thresholds})
        weights = rng.multinomial(size, chances, size=mechanism.cells) * filled
        yield f"a log of {size:,} items", mechanism.of(crowd(histories, weights, thresholds))


def _spiked(shape: tuple[int, ...], size: int, rng: np.random.Generator) -> Ints:
    """A few windows with large counts, all others 0."""
    return np.where(rng.random(shape) < min(0.5, 3 / shape[-1]), size, 0)


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


def released(plan: Plan, log: pa.Table) -> Release:
    """A release of a log with `event_columns`."""
    from dpwindows.count.events import EngineSettings

    columns = event_columns(plan.grouping)
    settings = EngineSettings(progress=False)
    return plan.run(log, item=columns.item, time=columns.time, count=columns.count, settings=settings)
