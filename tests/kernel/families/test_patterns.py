"""Bounds of rolling counts with the cross terms between runs: against every neighbour, and against older bounds."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from dpwindows.ask.privacy import ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.patterns import (
    priced_bound,
    rolling_patterns_event_l2,
    rolling_patterns_period_l2,
)
from dpwindows.kernel.families.runs import (
    affected_ends,
    most_signed_runs,
    rolling_filter_l2,
)
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.signed_patterns import Prices, SignedLags, TwoCounts
from dpwindows.kernel.maps.filters import Filter
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search.fractional import integer_taps
from dpwindows.strategies.search.witnesses import with_witness
from tests.kernel.cases import PRESENCE, bound_of, case
from tests.kernel.item_changes import costs, rolling_changes
from tests.kernel.made_up import EVENT, arbitrary_taps, falling_taps, some_taps, toeplitz
from tests.kernel.truth import largest_norm
from tests.single_item import all_logs, differences


def dearest(taps: tuple[int, ...], steps: int, length: int, thresholds: tuple[int, ...], unit: Unit) -> int:
    """What a filter is moved by at most, over all neighbours."""
    pieces = differences(all_logs(steps, max(thresholds)), Rolling(length), thresholds, unit)
    return largest_norm(pieces, toeplitz(taps, steps), GAUSSIAN)


@pytest.mark.parametrize("thresholds", [(1,), (2,), (3,), (1, 2), (2, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_event_level_bounds_every_added_occurrence(thresholds: tuple[int, ...], seed: int) -> None:
    steps, length = 6, 3 + seed % 2
    rng = np.random.default_rng(seed)
    taps = (falling_taps if seed else arbitrary_taps)(rng, 8)
    worst = dearest(taps, steps, length, thresholds, EVENT)
    bound = rolling_patterns_event_l2(case(Rolling(length), Filter(taps), steps, thresholds))
    # Of one run, taps whose signs contract have a bound as sharp elsewhere.
    assert (bound is None) == (seed > 0 and thresholds == (1,))
    assert bound is None or bound >= worst


@pytest.mark.parametrize("thresholds", [(1,), (2,), (1, 2)])
@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_item_bounds_every_item(thresholds: tuple[int, ...], length: int, seed: int) -> None:
    steps = 7
    taps = (falling_taps if seed else arbitrary_taps)(np.random.default_rng(seed), 8)
    true = dearest(taps, steps, length, thresholds, PRESENCE)
    asked = Rolling(length), Filter(taps), steps, thresholds
    bound = rolling_patterns_period_l2(case(*asked, PRESENCE))
    # Taps whose signs contract have another bound.
    assert (bound is None) == (seed > 0)
    changed = bound_of(rolling_patterns_period_l2, *asked, ItemLevel())
    assert true <= changed
    if bound is not None:
        assert true <= bound <= changed
        assert changed <= 4 * bound * (1 + 1e-9)


@pytest.mark.parametrize("thresholds", [(2,), (3,), (10,), (1, 2), (3, 4)])
def test_never_above_charging_each_run_by_itself(thresholds: tuple[int, ...]) -> None:
    taps = integer_taps(0.49, 0.9, 365, 24)
    apart = bound_of(rolling_filter_l2, Rolling(28), Filter(taps), 365, thresholds)
    assert bound_of(rolling_patterns_event_l2, Rolling(28), Filter(taps), 365, thresholds) <= apart * (1 + 1e-6)


CASES = [(2, 1, 3), (2, 2, 2), (2, 2, 3), (2, 2, 4), (2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 3), (3, 3, 2)]


@pytest.mark.quick(1)
@pytest.mark.parametrize(("k", "length", "span"), CASES)
def test_no_change_of_an_item_exceeds_the_bound(k: int, length: int, span: int) -> None:
    places = affected_ends(length, span, None)
    changes = np.unique(np.concatenate([np.unique(part, axis=0) for part in rolling_changes(length, span, k)]), axis=0)
    single = (span, length) if span <= length else (1, 0)
    known = TwoCounts(k, length, places, min(most_signed_runs(k, length, span), places), single, False)
    for seed in range(6):
        taps = some_taps(seed, places + 1)
        true = costs(taps, changes).max()
        lags = SignedLags.of(taps, places)
        unit = lags.values[0]
        for memory, near in ((2, 0), (2, 5), (places, 0)):
            for start, change in itertools.product((0, unit // 9, unit // 3, unit, 4 * unit), (0, unit // 2, 2 * unit)):
                assert priced_bound(lags, known, memory, near, Prices(start, change)) >= true
        bound = bound_of(rolling_patterns_period_l2, Rolling(length), Filter(taps), None, (k,), ItemPerPeriod(span))
        assert true <= bound
        if seed % 2 == 0:
            assert bound <= 2.0 * true


@pytest.mark.quick(2)
@pytest.mark.search(8)
@pytest.mark.parametrize("span", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("thresholds", [(1,), (2,), (1, 2)])
def test_horizons_cut_changes_and_never_raise_them(span: int, thresholds: tuple[int, ...]) -> None:
    for seed in range(4):
        taps = some_taps(seed, 12)
        bounds = [
            bound_of(rolling_patterns_period_l2, Rolling(3), Filter(taps), steps, thresholds, ItemPerPeriod(span))
            for steps in (span, span + 1, span + 2)
        ]
        free = bound_of(rolling_patterns_period_l2, Rolling(3), Filter(taps), None, thresholds, ItemPerPeriod(span))
        assert max(bounds) <= free * (1 + 1e-9)
        assert (
            bound_of(rolling_patterns_period_l2, Rolling(3), Filter(taps), 50, thresholds, ItemPerPeriod(span)) == free
        )


@pytest.mark.parametrize(("length", "span", "k"), [(28, 365, 1), (28, 365, 3), (7, 30, 1), (28, 7, 1), (28, 28, 2)])
def test_an_item_that_changes_is_never_charged_above_each_run_by_itself(length: int, span: int, k: int) -> None:
    taps = integer_taps(0.5, 0.97, 400, 24)
    bound = bound_of(rolling_patterns_period_l2, Rolling(length), Filter(taps), 365, (k,), ItemPerPeriod(span))
    apart = bound_of(rolling_filter_l2, Rolling(length), Filter(taps), 365, (k,), ItemPerPeriod(span))
    assert bound <= apart * (1 + 1e-6)


def test_within_one_step_an_item_changes_as_an_event_does() -> None:
    taps = integer_taps(0.5, 0.9, 100, 16)
    for k in (1, 2, 3):
        found = [
            bound_of(rolling_patterns_period_l2, Rolling(6), Filter(taps), steps, (k,), ItemPerPeriod(1))
            for steps in (6, 50, None)
        ]
        assert len(set(found)) == 1
    both = bound_of(rolling_patterns_period_l2, Rolling(6), Filter(taps), None, (1, 3), ItemPerPeriod(1))
    assert both == sum(
        bound_of(rolling_patterns_period_l2, Rolling(6), Filter(taps), None, (k,), ItemPerPeriod(1)) for k in (1, 3)
    )


FOUND = json.loads((Path(__file__).parents[2] / "data" / "rolling-period-bounds.json").read_text())


@pytest.mark.quick(1)
@pytest.mark.search(2)
@pytest.mark.parametrize("part", range(6))
def test_no_bound_is_looser_than_it_was(part: int) -> None:
    """Rolling counts of an item changed within a period: bounds of a dynamic programme that no check came after."""
    for alpha, decay, length, span, steps, k, bound in FOUND[part::6]:
        taps = integer_taps(alpha, decay, 365, 20)
        assert (
            bound_of(
                rolling_patterns_period_l2, Rolling(length), Filter(taps), steps, (k,), ItemPerPeriod(span or steps)
            )
            <= bound
        )


def test_of_items_added_or_removed_runs_are_charged_one_by_one_where_signs_contract() -> None:
    for taps, proof in (((12, -5, -3, -1), "rolling-filter"), ((12, 5, -3), "rolling-patterns-period")):
        problem = Problem(Rolling(4), 20, (2,), ItemAddRemove(), GAUSSIAN, 1.0)
        assert with_witness(Design(problem, Series(Filter(taps)), "listed")).certificate.proof == proof
