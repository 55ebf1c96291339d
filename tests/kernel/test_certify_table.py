"""The kernel's table of proofs, row by row: which proof serves a cell, how loose its bound is, and what is refused.

Bounds that are too small are what `test_certify` looks for. Here a bound must not be larger than it was seen to be
either, a cell must not lose its proof, and what the table does not list must be refused by name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.periods import sizes
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import (
    AnyWindow,
    Cumulative,
    LostItems,
    PeriodFamily,
    Rolling,
    ToDate,
    Tumbling,
    WindowFamily,
)
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.bounds import pattern_sensitivity, sensitivity
from dpwindows.kernel.certify import NotCertifiedError, counters, direct, start_counters
from dpwindows.kernel.maps.counters import (
    CausalCounter,
    ListedRows,
    OffsetFilter,
    OffsetRows,
    TriangularCounter,
    WeightedCounter,
    WeightedRows,
)
from dpwindows.kernel.maps.differences import AnchoredDifferences, CausalAnchors
from dpwindows.kernel.maps.endless_counter import LogarithmicRows
from dpwindows.kernel.maps.filters import CausalFilter, CausalIdentity, Filter, Identity
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap
from dpwindows.kernel.maps.repeated import Repeated
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree, Tree
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.proofs import name_of
from dpwindows.kernel.shapes.blocks import BlocksDesign
from dpwindows.kernel.shapes.causal import BlocksShape, SeriesShape, Shape, StepDesign
from dpwindows.kernel.shapes.counters import CountersDesign
from dpwindows.kernel.shapes.crossed import CrossedDesign
from dpwindows.kernel.shapes.design import Design
from dpwindows.kernel.shapes.nested import NestedDesign, NestedShape
from dpwindows.kernel.shapes.periods import PeriodShape
from dpwindows.kernel.shapes.series import SeriesDesign
from tests.kernel.test_certify import worst

STEPS, WIDTH = 4, 3
# Contracting signs, which the sharper bounds need, and others.
SMOOTH, ROUGH = (12, -3, -3, -3), (2, 3, -1)
UNITS: tuple[Unit, ...] = (EventLevel(), ItemPerPeriod(2), ItemLevel(), ItemAddRemove())
FAMILIES: dict[str, WindowFamily] = {
    window.text: window for window in (Cumulative(), Rolling(2), AnyWindow(), AnyWindow(2), Tumbling(3), ToDate(3))
}
TRIANGLE = np.tril(np.arange(1, 17).reshape(STEPS, STEPS))
OFFSET = OffsetRows(SMOOTH, np.array([7, 6, 5, 4]), np.ones(STEPS, dtype=np.int64), 0)
ENDS: dict[str, CausalMap] = {
    "smooth": CausalFilter(SMOOTH),
    "rough": CausalFilter(ROUGH),
    "tree": CausalTree(2, (3, 2)),
    "weighted": CausalCounter(WeightedRows(np.array((5, 3, 2, 1)), np.array((4, 3, 2, 1)))),
    "triangle": CausalCounter(ListedRows(TRIANGLE)),
    "offset": CausalCounter(OFFSET),
    "endless": CausalCounter(LogarithmicRows(4)),
    "differences": CausalAnchors(2, 2, 1),
    "alone": CausalIdentity(3),
}


def on_axis(name: str, size: int) -> IntegerMap:
    """A map of so many places."""
    made: dict[str, IntegerMap] = {
        "smooth": Filter(size, SMOOTH),
        "rough": Filter(size, ROUGH),
        "tree": Tree(size, 2),
        "tent": TentTree(size, (min(1, size - 1),), 3),
        "weighted": WeightedCounter(size, (5, 3, 2, 1)[:size], (4, 3, 2, 1)[:size]),
        "triangle": TriangularCounter(TRIANGLE[:size, :size]),
        "offset": OffsetFilter(OffsetRows(SMOOTH, OFFSET.weights[:size], OFFSET.offsets[:size], 0)),
        "differences": AnchoredDifferences(size, 2, 2, 1),
        "alone": Identity(size, 3),
    }
    return made[name]


AXES = ("smooth", "rough", "tree", "tent", "weighted", "triangle", "offset", "differences", "alone")


def released(problem: Problem) -> Iterator[tuple[str, Design]]:
    """Every kind of map in every shape of a release, by name."""
    window = problem.window
    if isinstance(window, PeriodFamily):
        periods = tuple(sizes(window, STEPS).tolist())
        for name in AXES:
            if isinstance(window, Tumbling):
                yield name, SeriesDesign(problem, "", map=on_axis(name, len(periods)))
            else:
                once = on_axis(name, max(periods))
                yield name, SeriesDesign(problem, "", map=Repeated(once, periods, causal=False))
        return
    if not isinstance(window, AnyWindow):
        for name in AXES:
            yield name, SeriesDesign(problem, "", map=on_axis(name, STEPS))
        return
    for name in AXES:
        for causal in (True, False):
            counter = on_axis(name, window.max_length or STEPS)
            yield (
                f"starts {name}" if causal else f"starts {name} continued",
                CountersDesign(problem, "", map=counter, causal=causal),
            )
        yield (
            f"blocks {name}",
            BlocksDesign.made_of(problem, "", width=WIDTH, make_map=partial(on_axis, name)),
        )
    # Blocks of which one end is another map.
    yield (
        "blocks tree, alone",
        BlocksDesign.made_of(
            problem, "", width=WIDTH, make_map=lambda size: on_axis("tree" if size > 1 else "alone", size)
        ),
    )
    for name, taps in (("smooth", SMOOTH), ("rough", ROUGH)):
        yield f"nested {name}", NestedDesign(problem, "", taps=taps)
        yield f"crossed {name}", CrossedDesign(problem, taps, WIDTH, 0.5, 4, {})


def streamed(problem: Problem, horizon: int | None) -> Iterator[tuple[str, Design]]:
    """The same of a stream."""
    window = problem.window
    shapes: dict[str, Shape] = {}
    if isinstance(window, (Cumulative, Rolling)):
        shapes = {name: SeriesShape(window, along) for name, along in ENDS.items()}
    elif isinstance(window, (Tumbling, ToDate)):
        shapes = {name: PeriodShape(window, along, 3, 3, horizon) for name, along in ENDS.items()}
    else:
        assert isinstance(window, AnyWindow)
        longest = window.max_length or STEPS
        extent = WIDTH + longest - 1 if horizon is None else min(WIDTH + longest - 1, horizon)
        for name, along in ENDS.items():
            shapes[f"starts {name}"] = BlocksShape(longest, 1, longest, Identity(1), along)
            for other in ("smooth", "tree", "alone"):
                starts = on_axis(other, WIDTH)
                shapes[f"blocks {other}, {name}"] = BlocksShape(longest, WIDTH, extent, starts, along)
        shapes |= {"nested smooth": NestedShape(longest, SMOOTH), "nested rough": NestedShape(longest, ROUGH)}
    for name, shape in shapes.items():
        yield name, StepDesign(problem, shape, "", horizon)


def designs(place: str, problem: Problem) -> Iterator[tuple[str, Design]]:
    if place == "release":
        return released(problem)
    return streamed(problem, STEPS if place == "stream" else None)


# Under each family a row for a map: the laws and the places it serves, and for an event, an item within two steps, an
# item changed and one added or removed the proof, with the most that its bound exceeds the truth here by if it does.
# `=` is the proof before it, `-` is refused; what is not listed is refused for all.
TABLE = """
cumulative
    alone; Gaussian Laplace; release stream: every-answer-by-itself | = | = | =
    endless; Gaussian; stream endless: cumulative-counter-endless 4.25 | = 3.46 | = 3.46 | = 2.37
    rough; Gaussian; release stream: cumulative-filter-item 1.94 | = | = | cumulative-counter-presence
    smooth; Gaussian; release stream: cumulative-filter-event 1.18 | cumulative-filter-item |
        = | cumulative-counter-presence
    tent; Laplace; release: cumulative-tree 1.34 | = 1.20 | = 1.20 | =
    tree; Laplace; release: cumulative-tree 1.34 | = | = | =
    tree; Laplace; stream endless: cumulative-tree 1.25 | = | = | =
    triangle; Gaussian; release stream: - | - | - | cumulative-matrix-presence
    weighted; Gaussian; release stream: - | - | - | cumulative-counter-presence
rolling:2
    alone; Gaussian Laplace; endless: every-answer-by-itself | = | - | -
    alone; Gaussian Laplace; release stream: every-answer-by-itself | = | = | =
    differences; Laplace; endless: rolling-differences-event | rolling-differences-period 1.50 | - | -
    differences; Laplace; release stream: rolling-differences-event | rolling-differences-period 1.50 |
        rolling-differences-item 1.64 | = 1.25
    rough; Gaussian; endless: rolling-patterns-event 1.24 | rolling-patterns-period 1.03 | - | -
    rough; Gaussian; release stream: rolling-patterns-event 1.24 | rolling-patterns-period 1.03 |
        = 1.08 | rolling-patterns-presence 1.09
    smooth; Gaussian; endless: rolling-filter-event 1.03 | rolling-patterns-period 1.29 | - | -
    smooth; Gaussian; release stream: rolling-filter-event 1.03 | rolling-patterns-period 1.29 |
        = 1.09 | rolling-patterns-presence 1.16
    offset; Gaussian; release stream: - | - | - | rolling-offset-filter-presence 1.74
    triangle; Gaussian; release stream: - | - | - | rolling-offset-presence 2.69
any
    blocks smooth; Gaussian; release: any-filters-event 2.03 | - | - | -
    blocks smooth, smooth; Gaussian; endless: any-filters-event 4.47 | - | - | -
    blocks smooth, smooth; Gaussian; stream: any-filters-event 2.33 | - | - | -
    blocks tent; Laplace; release: any-trees-event 3.70 | - | - | -
    blocks tree; Laplace; release: any-trees-event 3.00 | - | - | -
    blocks tree, tree; Laplace; stream endless: any-trees-event 2.86 | - | - | -
    crossed rough; Gaussian; release: - | any-crossed-period-squares | any-crossed-item-squares | =
    crossed rough; Laplace; release: - | any-crossed-period | any-crossed-item | =
    crossed smooth; Gaussian; release: - | any-crossed-period-squares | any-crossed-item-squares 1.07 | =
    crossed smooth; Laplace; release: - | any-crossed-period | any-crossed-item 1.05 | =
    nested smooth; Gaussian; endless: any-nested-event 3.27 | - | - | -
    nested smooth; Gaussian; release stream: any-nested-event 2.27 | - | - | -
    starts alone; Gaussian Laplace; release stream: every-answer-by-itself | = | = | =
    starts rough; Gaussian; endless: - | stream-counters-item 2.57 | - | -
    starts rough; Gaussian; release: - | any-counters-period | any-counters-item | =
    starts rough; Gaussian; stream: - | stream-counters-item 2.06 | = 1.76 | = 1.76
    starts smooth; Gaussian; endless: - | stream-counters-item 2.09 | - | -
    starts smooth; Gaussian; release: - | any-counters-period | any-counters-item 1.08 | =
    starts smooth; Gaussian; stream: - | stream-counters-item 1.68 | = 1.52 | = 1.20
    starts tent continued; Laplace; release: - | any-trees-period 1.60 | - | -
    starts tree; Laplace; endless: - | stream-trees-item 2.09 | - | -
    starts tree; Laplace; stream: - | stream-trees-item 1.67 | = 1.49 | = 1.12
    starts tree continued; Laplace; release: - | any-trees-period 1.60 | - | -
any:2
    blocks smooth; Gaussian; release: any-filters-event 2.03 | - | - | -
    blocks smooth, smooth; Gaussian; stream endless: any-filters-event 2.33 | - | - | -
    blocks tent; Laplace; release: any-trees-event 3.70 | - | - | -
    blocks tree; Laplace; release: any-trees-event 3.00 | - | - | -
    blocks tree, tree; Laplace; stream endless: any-trees-event 2.86 | - | - | -
    crossed rough; Gaussian; release: - | any-crossed-period-squares | any-crossed-item-squares | =
    crossed rough; Laplace; release: - | any-crossed-period | any-crossed-item | =
    crossed smooth; Gaussian; release: - | any-crossed-period-squares | any-crossed-item-squares 1.07 | =
    crossed smooth; Laplace; release: - | any-crossed-period | any-crossed-item 1.05 | =
    nested smooth; Gaussian; release stream endless: any-nested-event 2.89 | - | - | -
    starts alone; Gaussian Laplace; endless: every-answer-by-itself | = | - | -
    starts alone; Gaussian Laplace; release stream: every-answer-by-itself | = | = | =
    starts rough; Gaussian; endless: - | stream-counters-item 1.41 | - | -
    starts rough; Gaussian; release: - | any-counters-period | any-counters-item | =
    starts rough; Gaussian; stream: - | stream-counters-item 1.41 | = 1.28 | = 1.28
    starts smooth; Gaussian; endless: - | stream-counters-item 1.14 | - | -
    starts smooth; Gaussian; release: - | any-counters-period | any-counters-item | =
    starts smooth; Gaussian; stream: - | stream-counters-item 1.14 | = 1.10 | = 1.10
    starts tent continued; Laplace; release: - | any-trees-period 1.39 | - | -
    starts tree; Laplace; endless: - | stream-trees-item 1.77 | - | -
    starts tree; Laplace; stream: - | stream-trees-item 1.77 | = 1.91 | = 1.12
    starts tree continued; Laplace; release: - | any-trees-period 1.20 | - | -
tumbling:3
    alone; Gaussian Laplace; endless: tumbling-periods | = 2.00 | - | -
    alone; Gaussian Laplace; release stream: tumbling-periods | = | = | =
    differences; Laplace; endless: tumbling-periods 2.50 | = 4.50 | - | -
    differences; Laplace; release stream: tumbling-periods 1.25 | = 1.29 | = 1.29 | = 1.25
    rough; Gaussian; endless: tumbling-periods 3.75 | = 8.50 | - | -
    rough; Gaussian; release stream: tumbling-periods 1.16 | = 1.18 | = 1.18 | = 1.18
    smooth; Gaussian; endless: tumbling-periods 1.19 | = 2.63 | - | -
    smooth; Gaussian; release stream: tumbling-periods 1.12 | = 1.03 | = 1.03 | = 1.36
    offset; Gaussian; release: - | - | - | tumbling-periods 1.78
    triangle; Gaussian; release: - | - | - | tumbling-periods 1.67
to-date:3
    alone; Gaussian Laplace; endless: to-date-periods | = 2.00 | - | -
    alone; Gaussian Laplace; release: to-date-periods | = 1.50 | = | =
    alone; Gaussian Laplace; stream: to-date-periods | = 2.00 | = 1.50 | = 1.50
    endless; Gaussian; endless: to-date-periods 4.81 | = 6.41 | - | -
    endless; Gaussian; stream: to-date-periods 4.81 | = 6.41 | = 4.81 | = 2.80
    rough; Gaussian; endless: to-date-periods 2.00 | = 2.00 | - | -
    rough; Gaussian; release: to-date-periods 2.00 | = 1.84 | = | =
    rough; Gaussian; stream: to-date-periods 2.00 | = 2.00 | = 1.84 | = 1.84
    smooth; Gaussian; endless: to-date-periods 1.18 | = 1.82 | - | -
    smooth; Gaussian; release: to-date-periods 1.18 | = 1.29 | = | =
    smooth; Gaussian; stream: to-date-periods 1.18 | = 1.82 | = 1.29 | = 1.29
    tent; Laplace; release: to-date-periods 1.50 | = 2.00 | = 1.50 | =
    tree; Laplace; endless: to-date-periods 1.43 | = 2.50 | - | -
    tree; Laplace; release: to-date-periods 1.34 | = 2.00 | = 1.34 | =
    tree; Laplace; stream: to-date-periods 1.43 | = 2.50 | = 1.82 | = 1.25
    triangle; Gaussian; release: - | - | - | to-date-periods 1.12
    triangle; Gaussian; stream: - | - | - | to-date-periods 5.06
    weighted; Gaussian; release: - | - | - | to-date-periods
    weighted; Gaussian; stream: - | - | - | to-date-periods 1.24
"""


@dataclass(frozen=True)
class Cell:
    """What serves a cell: the proof, and the largest ratio of its bound to the truth."""

    proof: str
    most: float


def table() -> dict[tuple[str, ...], Cell]:
    """Each cell that is served, by place, windows, law, unit and map."""
    found: dict[tuple[str, ...], Cell] = {}
    windows = proof = ""
    for line in TABLE.replace(" |\n       ", " |").strip().splitlines():
        if not line.startswith(" "):
            windows = line
            continue
        row, _, listed = line.strip().partition(": ")
        name, laws, places = row.split("; ")
        for unit, text in zip(UNITS, listed.split(" | "), strict=True):
            said, _, most = text.partition(" ")
            proof = proof if said == "=" else said
            for law in laws.split():
                for place in places.split():
                    if said != "-":
                        found[place, windows, law, unit.name, name] = Cell(proof, float(most or 1))
    return found


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("windows", FAMILIES)
@pytest.mark.parametrize("place", ["release", "stream", "endless"])
def test_the_table_serves_what_it_lists_and_nothing_else(place: str, windows: str, law: Law) -> None:
    listed, met = table(), set()
    for unit in UNITS:
        for name, design in designs(place, Problem(FAMILIES[windows], STEPS, (1, 2), unit, law, 1.0)):
            cell = (place, windows, law.split()[1], unit.name, name)
            if cell not in listed:
                with pytest.raises(NotCertifiedError):
                    _ = design.certificate
                continue
            found, (norm, moved) = design.certificate, worst(design)
            met.add(cell)
            assert found.proof == listed[cell].proof, cell
            assert norm <= found.bound <= listed[cell].most * norm, cell
            if law == GAUSSIAN:
                assert moved <= found.moved, cell
            if name.endswith("alone") and place != "release" and not isinstance(design.problem.window, PeriodFamily):
                assert moved == found.moved, cell
    assert met == {cell for cell in listed if cell[:3] == (place, windows, law.split()[1])}


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_windows_longer_than_the_range_cost_what_the_range_has(unit: Unit, law: Law) -> None:
    design = SeriesDesign(Problem(Rolling(9), STEPS, (1, 2), unit, law, 1.0), "", map=Identity(STEPS, 3))
    assert design.certificate.bound == worst(design)[0]


@pytest.mark.parametrize("name", ["smooth", "rough", "differences"])
def test_an_event_in_windows_longer_than_the_range_costs_as_in_those_of_its_length(name: str) -> None:
    """All of them begin with step 1, so that they are the same windows."""
    law: Law = LAPLACE if name == "differences" else GAUSSIAN
    longer, same = (
        SeriesDesign(Problem(Rolling(length), STEPS, (1, 2), EventLevel(), law, 1.0), "", map=on_axis(name, STEPS))
        for length in (9, STEPS)
    )
    assert longer.certificate.bound == same.certificate.bound


@pytest.mark.parametrize("unit", UNITS[:2], ids=lambda unit: unit.name)
@pytest.mark.parametrize("taps", [(5,), (5, -1)], ids=str)
def test_a_neighbour_changes_as_many_numbers_as_the_window_and_the_filter_reach(
    taps: tuple[int, ...], unit: Unit
) -> None:
    window, steps = Rolling(2), 6
    design = StepDesign(
        Problem(window, steps, (1,), unit, GAUSSIAN, 1.0), SeriesShape(window, CausalFilter(taps)), "", None
    )
    assert design.certificate.moved == worst(design)[1] < steps


def test_a_matrix_serves_rolling_counts_of_as_many_steps_as_it_has_rows() -> None:
    problem = Problem(Rolling(2), STEPS, (1,), ItemAddRemove(), GAUSSIAN, 1.0)
    shape = SeriesShape(Rolling(2), CausalCounter(ListedRows(TRIANGLE)))
    for horizon in (None, STEPS + 1):
        with pytest.raises(NotCertifiedError):
            _ = StepDesign(problem, shape, "", horizon).certificate


@pytest.mark.parametrize("window", [Cumulative(), Rolling(2), Tumbling(3)], ids=lambda window: window.text)
def test_a_map_for_every_start_is_for_any_windows_only(window: WindowFamily) -> None:
    """Its bound would be that of one map, and there is one for every start."""
    for unit, law in itertools.product(UNITS, (GAUSSIAN, LAPLACE)):
        problem = Problem(window, STEPS, (1,), unit, law, 1.0)
        with pytest.raises(NotCertifiedError):
            counters(problem, Identity(STEPS), STEPS, causal=True)
        with pytest.raises(NotCertifiedError):
            start_counters(problem, CausalIdentity(), STEPS, STEPS)


def test_the_one_number_of_lost_items_is_measured_by_a_series_only() -> None:
    rule = CountingRule(max_occurrences=2)
    problem = Problem(LostItems(), STEPS, (1,), ItemLevel(), GAUSSIAN, 1.0, rule=rule)
    with pytest.raises(NotCertifiedError):
        direct(problem, 1, STEPS)


def test_runs_are_charged_one_by_one_where_places_are_too_many_for_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_sensitivity, "LONGEST_CHAIN", 20)
    apart, chained = sensitivity.rolling_filter_add_remove_l2, pattern_sensitivity.rolling_patterns_add_remove_l2
    taps = (12, -5, -3, -1)
    for steps in (20, 21):
        problem = Problem(Rolling(4), steps, (2,), ItemAddRemove(), GAUSSIAN, 1.0)
        design = SeriesDesign(problem, "listed", map=Filter(steps, taps))
        charged = (design.certificate.bound, design.certificate.proof)
        bounds = [(bound(taps, 4, steps, (2,)), name_of(bound)) for bound in (apart, chained)]
        assert charged == (min(bounds) if steps == 20 else bounds[0])
        # Taps that do not contract have no other bound.
        other = replace(design, map=Filter(steps, (12, 5, -3)))
        assert other.certificate.proof == name_of(chained)
