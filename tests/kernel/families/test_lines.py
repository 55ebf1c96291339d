"""Bounds on what one item changes of windows on lines: against every neighbour, every staircase, and long searches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative
from dpwindows.ask.windows import count_windows
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families import lines
from dpwindows.kernel.families.crossed import Crossed
from dpwindows.kernel.families.lines import (
    Line,
    Lines,
    filter_costs,
    lines_bound,
    lines_of_starts,
    one_line,
)
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.maps.integer_maps import IntegerMap
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search.fractional import integer_taps
from tests.kernel.cases import bound_of
from tests.kernel.lines_met import any_costs, costliest_span, crossed_bound, crossing
from tests.kernel.made_up import (
    EVENT,
    THRESHOLDS,
    any_taps,
    contracting_taps,
    random_cases,
    series_design,
    tent_trees,
    toeplitz,
)
from tests.kernel.truth import truth, truth_up_to
from tests.single_item import Ints, all_logs, runs, squares

UNITS: tuple[Unit, ...] = (ItemAddRemove(), ItemLevel())


# --- Which places of a line change ------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", range(1, 10))
def test_lines_of_starts_change_in_the_places_that_a_span_meets(steps: int) -> None:
    rng = np.random.default_rng(steps)
    for longest, span in product(range(1, steps + 1), range(1, steps + 1)):
        costs = any_costs(rng, longest)
        windows = [[(a, b) for b in range(a, min(steps, a + longest - 1) + 1)] for a in range(1, steps + 1)]
        bound = lines_bound(lines_of_starts(longest, span, steps), costs, 1)
        assert bound == costliest_span([(1, line) for line in windows], costs, span, steps)
        # Longer windows than the horizon there are none.
        if longest == steps:
            assert lines_bound(lines_of_starts(longest + 3, span, steps), costs, 2) == 2 * bound
        # Without a horizon there are as many spans as can be, and lines are not cut.
        assert bound <= lines_bound(lines_of_starts(longest, span, None), costs, 1)


@pytest.mark.parametrize(("longest", "span"), [(1, 1), (1, 4), (5, 1), (4, 3), (5, 9), (3, 17)])
def test_lines_without_a_horizon_are_those_of_a_long_one(longest: int, span: int) -> None:
    costs = any_costs(np.random.default_rng(longest), longest)
    free = lines_bound(lines_of_starts(longest, span, None), costs, 2)
    far = 2 * longest + span - 2
    for steps in (far, far + 1, 300):
        windows = [[(a, b) for b in range(a, min(steps, a + longest - 1) + 1)] for a in range(1, steps + 1)]
        assert lines_bound(lines_of_starts(longest, span, steps), costs, 2) == free
        assert 2 * costliest_span([(1, line) for line in windows], costs, span, steps) == free


def test_the_last_cost_is_for_more_places_too() -> None:
    assert lines_bound(one_line(9), (0, 5), 2) == 10
    assert lines_bound(one_line(9), range(10), 2) == 18
    assert lines_bound(Lines([], range(1, 4), 2), (0, 5), 3) == 0


@pytest.mark.parametrize("factor", [1, 1 << 20, 3 << 40, 5 << 70])
def test_sums_beyond_64_bits_are_exact(factor: int) -> None:
    blocks = [crossing(1, (3, 2, 1), (1, 2, 3))]
    heavy = [crossing(1, *(tuple(factor * w for w in part) for part in ((3, 2, 1), (1, 2, 3))))]
    for power in (1, 2):
        small = crossed_bound((5, -2, 1), blocks, power, formal=True, span=2)
        assert crossed_bound((5, -2, 1), heavy, power, formal=True, span=2) == small * factor**power
        large = crossed_bound((5 * factor, -2 * factor, factor), blocks, power, formal=True, span=2)
        assert large == small * factor**power
    alike = Line(1, 3, 3, factor)
    assert lines_bound(Lines([alike, alike], range(1, 2), 1), (0, 1, 2, 1 << 61), 1) == factor << 62


def test_windows_that_meet_a_span_are_counted_one_by_one() -> None:
    for steps, longest, span in product((1, 2, 5, 8), (1, 2, 3, 8), (1, 2, 5)):
        met = [
            sum(
                a <= first + span - 1 and b >= first
                for a in range(1, steps + 1)
                for b in range(a, min(steps, a + longest - 1) + 1)
            )
            for first in range(1, steps + 1)
        ]
        assert lines_bound(lines_of_starts(longest, span, steps), range(longest + 1), 1) == max(met)


def test_a_period_as_long_as_the_horizon_is_item_level() -> None:
    taps = integer_taps(0.5, 0.95, 64, 16)
    for steps, length in ((9, 3), (20, 20), (20, 7)):
        costs = filter_costs(taps, length, 2, formal=True)
        for span in (steps, steps + 1, 10**6):
            bound = lines_bound(lines_of_starts(length, span, steps), costs, 2)
            assert bound == 2 * sum(costs[min(length, steps - a)] for a in range(steps))
            cells = lines_bound(lines_of_starts(length, span, steps), range(length + 1), 1)
            assert cells == count_windows(AnyWindow(length), steps)
    costs = filter_costs((5, -2, 1), 3, 2, formal=True)
    whole = sum(2 * n**2 * costs[n] for n in (1, 2, 3))
    assert crossed_bound((5, -2, 1), [crossing(1, (3, 2, 1), (1, 2, 3))], 2, formal=True, span=3) == whole


# --- Every neighbour on small horizons --------------------------------------------------------------------------------


def measurements(rng: np.random.Generator, asked: Problem, longest: int) -> Iterator[Design]:
    """Everything that measures any windows by lines, with parameters that no planner would choose."""
    taps, steps, fewer = any_taps(rng, longest), asked.steps, isinstance(asked.unit, ItemPerPeriod)
    tents = TentTree(longest, (longest // 2, longest // 3), 10)
    tree = CausalTree(int(rng.integers(2, 4)), tuple(rng.integers(1, 9, size=3).tolist()))
    along: IntegerMap = Filter(taps) if asked.law == GAUSSIAN else tree
    if asked.law == LAPLACE:
        yield Design(asked, Starts(longest, tents, continued=True), "test")
    weights = tuple(rng.integers(1, 17, size=steps).tolist())
    yield Design(asked, Crossed(int(rng.integers(1, steps + 1)), any_taps(rng, steps), weights), "test")
    for one in (along, Identity(3)):
        yield Design(asked, Starts(longest, one), "test")
        for horizon in (steps, *([None] if fewer else [])):
            yield StepDesign(asked, Starts(longest, one), "test", horizon=horizon)


@pytest.mark.quick(1)
@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
def test_no_neighbour_moves_any_windows_by_more_than_the_bound(law: Law) -> None:
    rng = np.random.default_rng(2)
    tightest: dict[tuple[str, str], float] = {}
    for steps, span, longest, ks, most in random_cases(rng, 30):
        for unit in (ItemPerPeriod(span), ItemLevel(), ItemAddRemove()):
            asked = Problem(AnyWindow(longest), steps, ks, unit, law, 1.0)
            for design in measurements(rng, asked, longest):
                true, found = truth_up_to(design, most), design.certificate
                assert true <= found.bound
                assert found.proof == "windows-on-lines"
                made = f"{type(design).__name__} {type(design.shape).__name__}"
                where = made, unit.name.partition(":")[0]
                tightest[where] = min(tightest.get(where, 9.0), found.bound / true)
                if unit == ItemAddRemove() and law == GAUSSIAN:
                    assert true == found.bound
    assert set(tightest.values()) == {1.0}


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
def test_streams_are_charged_as_releases_are(law: Law) -> None:
    """A horizon as long as the release cuts the lines alike."""
    rng = np.random.default_rng(6)
    for steps, longest, span in product((3, 8, 20), (1, 3, 8), (1, 4)):
        taps, longest = any_taps(rng, 4), min(longest, steps)
        for unit in (ItemPerPeriod(span), ItemLevel(), ItemAddRemove()):
            asked = Problem(AnyWindow(longest), steps, (1, 2), unit, law, 1.0)
            for along in (Identity(3), Filter(taps) if law == GAUSSIAN else CausalTree(2, (3, 1))):
                shape = Starts(longest, along)
                stream = StepDesign(asked, shape, "test", horizon=steps).certificate
                assert stream == Design(asked, shape, "test").certificate


@pytest.mark.parametrize("thresholds", THRESHOLDS, ids=str)
def test_cumulative_filters_with_any_taps(thresholds: tuple[int, ...]) -> None:
    """No signs are needed; thresholds may be passed at steps of their own choice, so the bound is attained."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        steps = int(rng.integers(1, 5))
        for unit in UNITS:
            taps = any_taps(rng, steps)
            design = series(steps, thresholds, unit, GAUSSIAN, Filter(taps))
            costs = filter_costs(taps, steps, 2, formal=isinstance(unit, ItemLevel))
            assert design.certificate.bound == lines_bound(one_line(steps), costs, len(thresholds)) == truth(design)


@pytest.mark.parametrize("thresholds", [(1,), (3,), (1, 2)], ids=str)
def test_weighted_counters_with_any_taps_and_weights(thresholds: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    for _ in range(40):
        steps = int(rng.integers(1, 6))
        taps = any_taps(rng, int(rng.integers(1, steps + 1)))
        weights = tuple(int(weight) for weight in rng.integers(1, 20, size=steps))
        design = series(
            steps, thresholds, ItemAddRemove(), GAUSSIAN, MatrixCounter(toeplitz(taps, steps) * np.array(weights))
        )
        assert truth(design) == design.certificate.bound


@pytest.mark.parametrize("thresholds", [(1,), (3,), (1, 2)], ids=str)
def test_matrices_of_increments(thresholds: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        steps = int(rng.integers(1, 6))
        matrix = np.tril(rng.integers(-9, 10, size=(steps, steps)))
        np.fill_diagonal(matrix, rng.integers(1, 9, size=steps))
        design = series(steps, thresholds, ItemAddRemove(), GAUSSIAN, MatrixCounter(matrix))
        assert truth(design) == design.certificate.bound


def trees(steps: int) -> list[CausalTree | TentTree]:
    """Trees of every branching, and trees of tents with levels that a planner would not choose."""
    found: list[CausalTree | TentTree] = [*tent_trees(steps)]
    branchings = range(2, max(3, steps + 1))
    return found + [CausalTree(one, weights) for one in branchings for weights in ((1,), (3, 1), (1, 1, 5))]


@pytest.mark.parametrize("thresholds", [(1,), (3,), (1, 2), (1, 2, 3)], ids=str)
def test_trees_of_any_kind(thresholds: tuple[int, ...]) -> None:
    for steps in range(1, 5):
        for found, unit in product(trees(steps), (EventLevel(), *UNITS)):
            design = series(steps, thresholds, unit, LAPLACE, found)
            true, bound = truth(design), design.certificate.bound
            assert true <= bound
            # The bound is reached where each end that moves has a node of its own on every level; tents overlap.
            moved_ends = 1 if isinstance(unit, ItemAddRemove) else 2
            apart = found.branching ** (found.levels - 1) if isinstance(found, CausalTree) else steps
            if steps > 3 and len(thresholds) == 1 and moved_ends * apart <= steps:
                assert true == bound


def series(steps: int, thresholds: tuple[int, ...], unit: Unit, law: Law, made: IntegerMap) -> Design:
    return Design(Problem(Cumulative(), steps, thresholds, unit, law, 1.0), Series(made), "test")


@pytest.mark.parametrize("thresholds", THRESHOLDS, ids=str)
def test_an_event_in_cumulative_filters(thresholds: tuple[int, ...]) -> None:
    """Of one threshold, without any signs, the line that cumulative counts are is attained."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        steps = int(rng.integers(1, 5))
        taps = contracting_taps(rng, steps) if len(thresholds) > 1 else any_taps(rng, steps)
        bounds = [bound_of(lines.cumulative_on_a_line, Cumulative(), Filter(taps), steps, thresholds)]
        if len(thresholds) > 1:
            bounds.append(bound_of(lines.cumulative_filter_event_l2, Cumulative(), Filter(taps), steps, thresholds))
        bound = min(bounds)
        true = truth(series_design(Cumulative(), steps, thresholds, EVENT, GAUSSIAN, Filter(taps)))
        assert true <= bound
        if len(thresholds) == 1:
            assert true == bound


@pytest.mark.parametrize("k", [1, 2, 3])
def test_an_item_changes_cumulative_counts_on_one_interval(k: int) -> None:
    series = np.unique(squares(all_logs(6, 2), k)[:, 0], axis=0)
    assert (np.diff(series, axis=1) >= 0).all()
    for first, second in itertools.product(series, repeat=2):
        change: Ints = first - second
        assert len(runs(abs(change))) <= 1
        assert {0, 1} >= set(change) or {-1, 0} >= set(change)


def test_an_item_changes_any_windows_below_a_staircase() -> None:
    for table in squares(all_logs(5, 2), 2):
        for a in range(5):
            assert (np.diff(table[a, a:]) >= 0).all()
            assert (np.diff(table[: a + 1, a]) <= 0).all()


def test_a_line_cannot_cost_less_than_nothing() -> None:
    with pytest.raises(ValueError, match="less than nothing"):
        lines_bound(Lines([Line(1, 2, 2), Line(1, 2, 2, -1)], range(1, 2), 1), [0, 1, 2], 1)
