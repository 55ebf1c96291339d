"""Grouped steps: compressed designs against all neighbours, in singleton streams and in others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.grouped_steps import GroupedSteps, grouped_unit
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.measure import Measurement, measure
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import candidates, compressed
from tests.kernel.made_up import UNITS
from tests.kernel.truth import Looseness, kind, largest_norm, matrix_of
from tests.single_item import Changes, SingleItem, all_logs, differences, squares


def _compressed(steps: int, thresholds: tuple[int, ...]) -> Iterator[Design]:
    windows = [Cumulative(), Rolling(2), Rolling(4), AnyWindow(), AnyWindow(2), AnyWindow(3)]
    for window, unit, law in itertools.product(windows, UNITS, (GAUSSIAN, LAPLACE)):
        problem = Problem(window, steps, thresholds, unit, law, 1.0, singleton=True)
        yield from compressed.designs(problem, candidates)


@lru_cache(maxsize=8)
def _all_differences(steps: int, most: int, thresholds: tuple[int, ...], unit: Unit) -> Changes:
    logs = all_logs(steps, most)
    if most == 1 and isinstance(unit, EventLevel):
        # In a singleton stream an occurrence is added only to a step that holds none.
        found = []
        for step in range(steps):
            free = logs[logs[:, step] == 0]
            more = free.copy()
            more[:, step] = 1
            found.append(np.stack([squares(more, k) - squares(free, k) for k in thresholds], axis=1))
        return Changes.of([np.concatenate(found)[:, :, *np.triu_indices(steps)]])
    return Changes.of(differences(logs, AnyWindow(), thresholds, unit))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("most", "thresholds"),
    [
        *((1, (1, 2)), (2, (1,)), (2, (2, 3))),
        *(
            pytest.param(*case, marks=pytest.mark.search(0))
            for case in ((1, (1,)), (1, (2,)), (1, (2, 3)), (2, (2,)), (2, (1, 2)))
        ),
    ],
    ids=str,
)
def test_compressed_designs(thresholds: tuple[int, ...], most: int) -> None:
    """Logs of an item in singleton streams (`most` = 1), and in others too: grouping needs no promise to be private."""
    found = Looseness()
    steps = 7 if most == 1 else 5
    for design in _compressed(steps, thresholds):
        unit = design.problem.unit
        changes = _all_differences(steps, most, thresholds, unit)
        true = largest_norm(changes, matrix_of(design, over=AnyWindow()), design.problem.law)
        found.add((design.strategy, kind(design.problem.window), unit.name), design.sensitivity, true)
    assert len(found.seen) > 18
    found.show(f"compressed, T={steps}, at least {thresholds}, at most {most} a step")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_compressed_designs_on_streams_of_several_items(unit: Unit) -> None:
    """Neighbours as pairs of whole singleton streams over three items, not as differences of one item."""
    steps, items = 4, 3
    streams = list(itertools.product(range(items + 1), repeat=steps))  # the item of each step, 0 for none

    def total(stream: Sequence[int], design: Design) -> NDArray[Any]:
        logs = [tuple(int(seen == item) for seen in stream) for item in range(1, items + 1)]
        return sum((design.encode(SingleItem(log), 1) for log in logs), np.zeros(design.rows, dtype=np.int64))

    def neighbouring(first: Sequence[int], second: Sequence[int]) -> bool:
        changed = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
        if isinstance(unit, EventLevel):
            return len(changed) == 1 and 0 in changed[0]
        if isinstance(unit, ItemLevel):
            return any(all({a, b} <= {0, item} for a, b in changed) for item in range(1, items + 1))
        return any(item not in first and all((a, b) == (0, item) for a, b in changed) for item in range(1, items + 1))

    pairs = np.array(
        [
            (i, j)
            for (i, first), (j, second) in itertools.combinations(enumerate(streams[:128]), 2)
            if neighbouring(first, second) or neighbouring(second, first)
        ]
    )
    for window, law in itertools.product((Cumulative(), Rolling(2), AnyWindow()), (GAUSSIAN, LAPLACE)):
        for design in compressed.designs(Problem(window, steps, (1,), unit, law, 1.0, singleton=True), candidates):
            encoded = np.array([total(stream, design) for stream in streams[:128]], dtype=np.int64)
            moved = abs(encoded[pairs[:, 0]] - encoded[pairs[:, 1]])
            assert design.rows * int(moved.max()) ** 2 < 1 << 63
            worst = int((moved if law == LAPLACE else moved**2).sum(axis=1).max())
            assert 0 < worst <= design.sensitivity


@pytest.mark.parametrize(("span", "size", "groups"), [(1, 3, 1), (2, 3, 2), (4, 3, 2), (5, 3, 3), (7, 7, 2), (8, 7, 2)])
def test_a_span_meets_so_many_groups(span: int, size: int, groups: int) -> None:
    met = max(len({step // size for step in range(first, first + span)}) for first in range(size))
    assert met == groups
    assert grouped_unit(ItemPerPeriod(span), size) == ItemPerPeriod(groups)
    assert grouped_unit(EventLevel(), size) == EventLevel()


@pytest.mark.quick(1)
@pytest.mark.parametrize(("thresholds", "most"), [((1,), 1), ((1, 2), 1)])
def test_compressed_designs_within_a_period(thresholds: tuple[int, ...], most: int) -> None:
    steps, found = 6, Looseness()
    for window, span in itertools.product((Cumulative(), Rolling(2), Rolling(4), AnyWindow(), AnyWindow(3)), (1, 2, 3)):
        unit = ItemPerPeriod(span)
        changes = _all_differences(steps, most, thresholds, unit)
        for law in (GAUSSIAN, LAPLACE):
            problem = Problem(window, steps, thresholds, unit, law, 1.0, singleton=True)
            for design in compressed.designs(problem, candidates):
                true = largest_norm(changes, matrix_of(design, over=AnyWindow()), law)
                found.add((design.strategy, kind(window), unit.name), design.sensitivity, true)
    found.show(f"compressed, at least {thresholds}")
    assert len(found.seen) > 12


def test_grouped_steps_are_certified_for_the_occurrences_that_count_only() -> None:
    """One item moves every group of steps; a bound for items that occur once, of which all occurrences count, is none.

    An inner design that was bounded for fewer occurrences than the log is counted by would be charged for less.
    """
    problem = Problem(Rolling(2), 8, (1,), ItemAddRemove(), LAPLACE, 1.0)
    groups = replace(problem, window=Rolling(1), steps=4)
    once = replace(groups, rule=CountingRule(max_occurrences=1))
    honest, boastful = (
        Design(problem, GroupedSteps(2, Design(inner, Series(Identity()), "")), "compressed")
        for inner in (groups, once)
    )
    moved = int(abs(boastful.encode(SingleItem((1,) * 8), 1)).sum())
    assert Design(once, Series(Identity()), "").certificate.bound < moved <= honest.certificate.bound
    with pytest.raises(NotCertifiedError):
        boastful.certificate  # noqa: B018
    with pytest.raises(NotCertifiedError):
        measure([Measurement(boastful, LAPLACE, 1.0)], PureDP(1.0), SingleItem((1,) * 8))
