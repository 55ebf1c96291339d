"""The kernel's table of proofs, row by row: which proof serves a cell, how loose its bound is, and what is refused.

Bounds that are too small are what `test_certificate` looks for. Here a bound must not be larger than it was seen to be
either, a cell must not lose its proof, and what the table does not list must be refused by name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest

from dpwindows.ask.periods import sizes
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import (
    AnyWindow,
    Cumulative,
    PeriodFamily,
    Rolling,
    ToDate,
    Tumbling,
    WindowFamily,
)
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import Design, StepDesign, StepShape
from dpwindows.kernel.families.blocks import Blocks
from dpwindows.kernel.families.crossed import Crossed
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.families.periods import SeriesInPeriods
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.endless_counter import EndlessCounter
from dpwindows.kernel.maps.filters import Filter, Identity, OffsetFilter
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search.witnesses import with_witness
from tests.kernel.truth import worst

STEPS, WIDTH = 4, 3
# Contracting signs, which the sharper bounds need, and others.
SMOOTH, ROUGH = (12, -3, -3, -3), (2, 3, -1)
UNITS: tuple[Unit, ...] = (EventLevel(), ItemPerPeriod(2), ItemLevel(), ItemAddRemove())
FAMILIES: dict[str, WindowFamily] = {
    window.text: window for window in (Cumulative(), Rolling(2), AnyWindow(), AnyWindow(2), Tumbling(3), ToDate(3))
}
TRIANGLE = np.tril(np.arange(1, 17).reshape(STEPS, STEPS))
OFFSET = OffsetFilter(SMOOTH, (7, 6, 5, 4), (1, 1, 1, 1), 0)
ENDS: dict[str, CausalMap] = {
    "smooth": Filter(SMOOTH),
    "rough": Filter(ROUGH),
    "tree": CausalTree(2, (3, 2)),
    "triangle": MatrixCounter(TRIANGLE),
    "offset": OFFSET,
    "endless": EndlessCounter(4),
    "differences": AnchoredDifferences(2, 2, 1),
    "alone": Identity(3),
}


def on_axis(name: str, size: int) -> IntegerMap:
    """A map of so many places."""
    made: dict[str, IntegerMap] = {
        "smooth": Filter(SMOOTH),
        "rough": Filter(ROUGH),
        "tree": CausalTree(2, (3, 2)),
        "tent": TentTree(size, (min(1, size - 1),), 3),
        "endless": EndlessCounter(4),
        "triangle": MatrixCounter(TRIANGLE[:size, :size]),
        "offset": OffsetFilter(SMOOTH, OFFSET.weights[:size], OFFSET.offsets[:size], 0),
        "differences": AnchoredDifferences(2, 2, 1, offset=size % 2),
        "alone": Identity(3),
    }
    return made[name]


# The maps that are of one length, as those on axes of blocks must be.
LENGTHS = ("tent", "triangle", "offset")
AXES = ("smooth", "rough", "tree", "tent", "endless", "triangle", "offset", "differences", "alone")


def released(problem: Problem) -> Iterator[tuple[str, Design]]:
    """Every kind of map in every shape of a release, by name."""
    window = problem.window
    if isinstance(window, PeriodFamily):
        periods = sizes(window, STEPS)
        length = len(periods) if isinstance(window, Tumbling) else int(periods.max())
        for name in AXES:
            shape = SeriesInPeriods.of_release(window, STEPS, on_axis(name, length), continued=True)
            yield name, Design(problem, shape, "")
        return
    if not isinstance(window, AnyWindow):
        for name in AXES:
            yield name, Design(problem, Series(on_axis(name, STEPS)), "")
        return
    longest = longest_window(window, STEPS)
    for name, along in ENDS.items():
        yield f"starts {name}", Design(problem, Starts(longest, along), "")
    for name in AXES:
        yield f"starts {name} continued", Design(problem, Starts(longest, on_axis(name, longest), continued=True), "")
    for name in LENGTHS:
        yield f"blocks {name}", Design(problem, blocks(*(on_axis(name, size) for size in range(1, STEPS + 1))), "")
    # Blocks of which one end is another map.
    mixed = blocks(on_axis("triangle", 1), *(on_axis("tent", size) for size in range(2, STEPS + 1)))
    yield "blocks tent, triangle", Design(problem, mixed, "")
    for name, taps in (("smooth", SMOOTH), ("rough", ROUGH)):
        yield f"nested {name}", Design(problem, Nested(longest, taps), "")
        yield f"crossed {name}", Design(problem, Crossed(WIDTH, taps, (2, 3, 3, 4)), "")


def blocks(*maps: IntegerMap) -> Blocks:
    """Blocks with maps on their axes that need not be trees."""
    return Blocks(WIDTH, cast("tuple[TentTree, ...]", maps))


def streamed(problem: Problem, horizon: int | None) -> Iterator[tuple[str, Design]]:
    """The same of a stream."""
    window = problem.window
    shapes: dict[str, StepShape] = {}
    if isinstance(window, (Cumulative, Rolling)):
        shapes = {name: Series(along) for name, along in ENDS.items()}
    elif isinstance(window, (Tumbling, ToDate)):
        shapes = {name: SeriesInPeriods(along, 3, 3, horizon) for name, along in ENDS.items()}
    else:
        assert isinstance(window, AnyWindow)
        longest = window.max_length or STEPS
        for name, along in ENDS.items():
            shapes[f"starts {name}"] = Starts(longest, along)
            for other in LENGTHS:
                shapes[f"blocks {other}, {name}"] = Starts(longest, along, width=WIDTH, across=on_axis(other, WIDTH))
        shapes |= {"nested smooth": Nested(longest, SMOOTH), "nested rough": Nested(longest, ROUGH)}
    for name, shape in shapes.items():
        yield name, StepDesign(problem, shape, "", horizon=horizon)


def designs(place: str, problem: Problem) -> Iterator[tuple[str, Design]]:
    if place == "release":
        return released(problem)
    return streamed(problem, STEPS if place == "stream" else None)


# Under each family a row for a map: the laws and the places it serves, and for an event, an item within two steps, an
# item changed and one added or removed the proof, with the most that its bound exceeds the truth here by if it does.
# `=` is the proof before it, `-` is refused; what is not listed is refused for all.
TABLE = """
cumulative
    alone; Gaussian Laplace; release stream: windows-on-lines | = | = | =
    endless; Gaussian; release stream endless: windows-on-lines 4.25 | = 3.46 | = 3.46 | = 2.37
    rough; Gaussian; release stream: windows-on-lines 1.94 | = | = | =
    smooth; Gaussian; release stream: cumulative-filter-event 1.18 | windows-on-lines | = | =
    tent; Laplace; release: windows-on-lines 1.34 | = 1.20 | = 1.20 | =
    tree; Laplace; release stream endless: windows-on-lines 1.25 | = | = | =
    triangle; Gaussian; release stream: - | - | - | windows-on-lines
rolling:2
    alone; Gaussian Laplace; endless: windows-on-lines | = | - | -
    alone; Gaussian Laplace; release stream: windows-on-lines | = | = | =
    differences; Laplace; endless: rolling-differences | = 1.50 | - | -
    differences; Laplace; release stream: rolling-differences | = 1.50 | = 1.64 | = 1.25
    rough; Gaussian; endless: rolling-patterns-event 1.18 | rolling-patterns-period 1.03 | - | -
    rough; Gaussian; release stream: rolling-patterns-event 1.18 | rolling-patterns-period 1.03 | = 1.08 |
        = 1.09
    smooth; Gaussian; endless: rolling-filter 1.03 | rolling-patterns-period 1.29 | - | -
    smooth; Gaussian; release stream: rolling-filter 1.03 | rolling-patterns-period 1.29 | = 1.09 |
        rolling-filter 1.40
    offset; Gaussian; release stream: - | rolling-chains-item 6.99 | = 4.21 | = 2.04
    triangle; Gaussian; release stream: - | rolling-chains-item 10.73 | = 7.67 | = 2.69
any
    blocks tent; Laplace; release: any-trees-event 3.70 | - | - | -
    blocks tent, tree; Laplace; stream endless: any-trees-event 3.37 | - | - | -
    crossed rough; Gaussian Laplace; release: - | windows-on-lines | = | =
    crossed smooth; Gaussian; release: - | windows-on-lines | = 1.07 | =
    crossed smooth; Laplace; release: - | windows-on-lines | = 1.05 | =
    nested smooth; Gaussian; endless: any-nested-event 3.27 | - | - | -
    nested smooth; Gaussian; release stream: any-nested-event 2.27 | - | - | -
    starts alone; Gaussian Laplace; endless: windows-on-lines 1.67 | = 1.75 | - | -
    starts alone; Gaussian Laplace; release stream: windows-on-lines | = | = | =
    starts rough; Gaussian; endless: - | windows-on-lines 1.69 | - | -
    starts rough; Gaussian; release stream: - | windows-on-lines | = | =
    starts smooth; Gaussian; endless: - | windows-on-lines 1.61 | - | -
    starts smooth; Gaussian; release stream: - | windows-on-lines | = 1.08 | =
    starts tent continued; Laplace; release: - | windows-on-lines 1.60 | = 1.60 | =
    starts tree; Laplace; endless: - | windows-on-lines 2.09 | - | -
    starts tree; Laplace; release stream: - | windows-on-lines 1.67 | = 1.49 | = 1.12
any:2
    blocks tent; Laplace; release: any-trees-event 3.70 | - | - | -
    blocks tent, tree; Laplace; stream endless: any-trees-event 3.37 | - | - | -
    crossed rough; Gaussian Laplace; release: - | windows-on-lines | = | =
    crossed smooth; Gaussian; release: - | windows-on-lines | = 1.07 | =
    crossed smooth; Laplace; release: - | windows-on-lines | = 1.05 | =
    nested smooth; Gaussian; release stream endless: any-nested-event 2.89 | - | - | -
    starts alone; Gaussian Laplace; endless: windows-on-lines | = | - | -
    starts alone; Gaussian Laplace; release stream: windows-on-lines | = | = | =
    starts rough; Gaussian; endless: - | windows-on-lines | - | -
    starts rough; Gaussian; release stream: - | windows-on-lines | = | =
    starts smooth; Gaussian; endless: - | windows-on-lines | - | -
    starts smooth; Gaussian; release stream: - | windows-on-lines | = | =
    starts tent continued; Laplace; release: - | windows-on-lines 1.39 | = 1.34 | =
    starts tree; Laplace; endless: - | windows-on-lines 1.77 | - | -
    starts tree; Laplace; release stream: - | windows-on-lines 1.77 | = 1.91 | = 1.12
tumbling:3
    alone; Gaussian Laplace; endless: one-series-for-periods | = 2.00 | - | -
    alone; Gaussian Laplace; release stream: one-series-for-periods | = | = | =
    differences; Laplace; endless: one-series-for-periods 2.50 | = 4.50 | - | -
    differences; Laplace; release stream: one-series-for-periods 1.25 | = 1.29 | = 1.29 | = 1.25
    rough; Gaussian; endless: one-series-for-periods 3.50 | = 8.50 | - | -
    rough; Gaussian; release stream: one-series-for-periods 1.08 | = 1.18 | = 1.18 | = 1.18
    smooth; Gaussian; endless: one-series-for-periods 1.19 | = 2.63 | - | -
    smooth; Gaussian; release stream: one-series-for-periods 1.12 | = 1.03 | = 1.03 | = 1.36
    offset; Gaussian; release: - | one-series-for-periods 3.49 | = 3.49 | = 1.73
    triangle; Gaussian; release: - | one-series-for-periods 4.80 | = 4.80 | = 1.67
to-date:3
    alone; Gaussian Laplace; endless: one-series-for-periods | windows-on-lines 1.34 | - | -
    alone; Gaussian Laplace; release: one-series-for-periods | windows-on-lines 1.50 | = | =
    alone; Gaussian Laplace; stream: one-series-for-periods | windows-on-lines 1.34 | = 1.50 | = 1.50
    endless; Gaussian; endless: one-series-for-periods 4.81 | windows-on-lines 6.41 | - | -
    endless; Gaussian; release: one-series-for-periods 4.81 | windows-on-lines 5.60 | = 4.34 | = 2.49
    endless; Gaussian; stream: one-series-for-periods 4.81 | windows-on-lines 6.41 | = 4.81 | = 2.80
    rough; Gaussian; endless: one-series-for-periods 2.00 | windows-on-lines 1.09 | - | -
    rough; Gaussian; release: one-series-for-periods 2.00 | windows-on-lines 1.84 | = | =
    rough; Gaussian; stream: one-series-for-periods 2.00 | windows-on-lines 1.09 | = 1.84 | = 1.84
    smooth; Gaussian; endless: one-series-for-periods 1.18 | windows-on-lines 1.41 | - | -
    smooth; Gaussian; release: one-series-for-periods 1.18 | windows-on-lines 1.29 | = | =
    smooth; Gaussian; stream: one-series-for-periods 1.18 | windows-on-lines 1.41 | = 1.29 | = 1.29
    tent; Laplace; release: one-series-for-periods 1.50 | windows-on-lines 2.00 | = 1.50 | =
    tree; Laplace; endless: one-series-for-periods 1.43 | windows-on-lines 2.50 | - | -
    tree; Laplace; release: one-series-for-periods 1.43 | windows-on-lines 2.50 | = 1.54 | =
    tree; Laplace; stream: one-series-for-periods 1.43 | windows-on-lines 2.50 | = 1.82 | = 1.25
    triangle; Gaussian; release: - | - | - | windows-on-lines 1.12
    triangle; Gaussian; stream: - | - | - | windows-on-lines 5.06
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
            found, (norm, moved) = with_witness(design).certificate, worst(design)
            met.add(cell)
            assert found.proof == listed[cell].proof, cell
            assert norm <= found.bound <= listed[cell].most * norm, cell
            if law == GAUSSIAN:
                assert moved <= found.moved, cell
            # Without an end a neighbour may change more windows than so few steps have.
            longer = place == "endless" and windows == "any"
            if name.endswith("alone") and not longer and not isinstance(design.problem.window, PeriodFamily):
                assert moved == found.moved, cell
    assert met == {cell for cell in listed if cell[:3] == (place, windows, law.split()[1])}


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_windows_longer_than_the_range_cost_what_the_range_has(unit: Unit, law: Law) -> None:
    design = Design(Problem(Rolling(9), STEPS, (1, 2), unit, law, 1.0), Series(Identity(3)), "")
    assert design.certificate.bound == worst(design)[0]


@pytest.mark.parametrize("name", ["smooth", "rough", "differences"])
def test_an_event_in_windows_longer_than_the_range_costs_as_in_those_of_its_length(name: str) -> None:
    """All of them begin with step 1, so that they are the same windows."""
    law: Law = LAPLACE if name == "differences" else GAUSSIAN
    longer, same = (
        Design(Problem(Rolling(length), STEPS, (1, 2), EventLevel(), law, 1.0), Series(on_axis(name, STEPS)), "")
        for length in (9, STEPS)
    )
    assert longer.certificate.bound == same.certificate.bound


@pytest.mark.parametrize("unit", UNITS[:2], ids=lambda unit: unit.name)
@pytest.mark.parametrize("taps", [(5,), (5, -1)], ids=str)
def test_a_neighbour_changes_as_many_numbers_as_the_window_and_the_filter_reach(
    taps: tuple[int, ...], unit: Unit
) -> None:
    window, steps = Rolling(2), 6
    design = StepDesign(Problem(window, steps, (1,), unit, GAUSSIAN, 1.0), Series(Filter(taps)), "", horizon=None)
    assert design.certificate.moved == worst(design)[1] < steps


@pytest.mark.parametrize("window", [Cumulative(), Rolling(2), Tumbling(3)], ids=lambda window: window.text)
def test_a_map_for_every_start_is_for_any_windows_only(window: WindowFamily) -> None:
    """Its bound would be that of one map, and there is one for every start."""
    for unit, law in itertools.product(UNITS, (GAUSSIAN, LAPLACE)):
        problem = Problem(window, STEPS, (1,), unit, law, 1.0)
        for name, cut in itertools.product(AXES, (True, False)):
            shape = Starts(STEPS, on_axis(name, STEPS), continued=not cut)
            for design in (Design(problem, shape, ""), StepDesign(problem, shape, "", horizon=STEPS)):
                with pytest.raises(NotCertifiedError):
                    _ = design.certificate
