"""An oracle for groups, written from their definition alone: which rows are counted in which group.

A row is (item, time, count, values), with one value for each column that makes groups.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from dpwindows.ask.groups import Grouping

Row = tuple[Any, Any, int, tuple[Any, ...]]
Key = tuple[Any, ...]
Events = list[tuple[Any, int, int]]


def grouped_events(rows: Sequence[Row], grouping: Grouping, step_of: Callable[[Any], int | None]) -> dict[Key, Events]:
    """For every group, totals included, its events (item, step, count); None in a group stands for all values."""
    lists = [list(column.values) for column in grouping.columns]
    placed = [
        (
            item,
            time,
            step_of(time),
            count,
            tuple(listed.index(value) for listed, value in zip(lists, values, strict=True)),
        )
        for item, time, count, values in rows
        if all(value in listed for listed, value in zip(lists, values, strict=True)) and step_of(time) is not None
    ]
    if grouping.group_of == "item":
        firsts: dict[Any, Any] = {}
        for item, time, _, _, places in placed:
            firsts[item] = min(firsts.get(item, (time, places)), (time, places))
        placed = [(item, time, step, count, firsts[item][1]) for item, time, step, count, _ in placed]
    found: dict[Key, Events] = {}
    columns = range(len(lists))
    sizes = columns if grouping.totals else ()
    for kept in [tuple(columns), *itertools.chain.from_iterable(itertools.combinations(columns, n) for n in sizes)]:
        for places in itertools.product(*(range(len(lists[column])) for column in kept)):
            found[_key(lists, kept, places)] = []
        since: dict[Any, dict[Key, Any]] = defaultdict(dict)
        for item, time, _, _, places in placed:
            cell = tuple(places[column] for column in kept)
            since[item][cell] = min(since[item].get(cell, time), time)
        most = grouping.max_groups or len(placed)
        counted = {item: sorted(cells, key=lambda cell: (cells[cell], cell))[:most] for item, cells in since.items()}
        for item, _, step, count, places in placed:
            cell = tuple(places[column] for column in kept)
            if cell in counted[item]:
                assert step is not None
                found[_key(lists, kept, cell)].append((item, step, count))
    return found


def _key(lists: list[list[Any]], kept: tuple[int, ...], places: Sequence[int]) -> Key:
    named = dict(zip(kept, places, strict=True))
    return tuple(lists[column][named[column]] if column in named else None for column in range(len(lists)))
