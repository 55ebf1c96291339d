"""Any windows through a product of two filters: bounds against every chain, and against the changes of whole logs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import AnyWindow
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families import rectangles
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.families.norms import interval_norms
from dpwindows.kernel.families.rectangles import Lengths, any_nested_event_l2, chain_costs, root_of_product
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import BATCH
from dpwindows.strategies.search.fractional import integer_taps, real_interval_norms
from dpwindows.strategies.square import event_cost
from tests.kernel.cases import bound_of
from tests.kernel.families.test_sensitivity import contracting_taps, largest_norm, matrix_of
from tests.single_item import Ints, all_logs, differences

EVENT = EventLevel()
WEIGHTS = [(1, 1, 1, 1, 1), (2, 1), (2, 2, 1), (3, 2, 1, 1), (4, 1, 1), (5, 5, 5, 2, 1)]


# --- Chains -----------------------------------------------------------------------------------------------------------


def nested(taps: Sequence[int], longest: int, steps: int | None, thresholds: tuple[int, ...]) -> int:
    """The bound of windows of at most some steps, each measured with those inside it."""
    shape = Nested(longest, tuple(taps))
    return bound_of(any_nested_event_l2, AnyWindow(longest), shape, steps, thresholds)


def compositions(places: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write at most `places` as a sum of so many lengths."""
    return (n for n in itertools.product(range(1, places + 1), repeat=parts) if sum(n) <= places)


def true_cost(taps: Sequence[int], chain: Sequence[int], weights: Sequence[int]) -> int:
    """`4 sum w_max(i,j) A_ij^2` straight from the filtered intervals."""
    ends = np.cumsum(chain)
    places = np.arange(ends[-1])
    inside = np.array([(places >= end - n) & (places < end) for n, end in zip(chain, ends, strict=True)])
    moved = np.array([np.convolve(np.array(taps, dtype=object), row.astype(object)) for row in inside])
    products = moved @ moved.T
    index = range(len(chain))
    return 4 * sum(weights[max(i, j)] * int(products[i, j]) ** 2 for i in index for j in index)


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_no_chain_costs_more_than_the_bound(weights: tuple[int, ...]) -> None:
    """All chains of a few places; up to three intervals the bound is the truth."""
    rng = np.random.default_rng(len(weights))
    places = 7
    for taps in [*(contracting_taps(rng, places) for _ in range(4)), (101, -100), (100, -60, -20, -19), (1,)]:
        found = chain_costs(interval_norms(taps, 2 * places), places, weights)
        longest = [0] * (places + 1)
        for parts in range(1, len(weights) + 1):
            for chain in compositions(places, parts):
                longest[sum(chain)] = max(longest[sum(chain)], true_cost(taps, chain, weights))
            true = list(itertools.accumulate(longest, max))
            bound = found[parts - 1]
            assert all(one >= other for one, other in zip(bound, true, strict=True))
            if parts <= 3:
                assert bound == true
            assert all(one <= 1.1 * other for one, other in zip(bound, true, strict=True))


def test_wide_classes_of_lengths_only_loosen(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    for places in (17, 25, 60):
        for taps in (contracting_taps(rng, places), integer_taps(0.5, 0.97, places, 12), (101, -100)):
            norms = interval_norms(taps, 2 * places)
            for weights in ([1] * 4, [3, 1, 1]):
                exact = chain_costs(norms, places, weights)
                with monkeypatch.context() as patched:
                    patched.setattr(rectangles, "_MOST_CELLS", 1)
                    coarse = chain_costs(norms, places, weights)
                for one, other in zip(coarse, exact, strict=True):
                    assert all(wide >= narrow for wide, narrow in zip(one, other, strict=True))
                    assert one[-1] <= 1.5 * other[-1]


def test_classes_hold_every_length_once_and_bound_their_sums() -> None:
    for places, count in ((1, 1), (16, 16), (17, 1), (1000, 40), (5000, 16)):
        lengths = Lengths.of(places, count)
        held = [n for low, high in lengths for n in range(low, high + 1)]
        assert held == list(range(1, places + 1))
        rng = np.random.default_rng(places)
        for _ in range(200):
            chosen = rng.integers(0, len(lengths.low), size=int(rng.integers(1, 6)))
            if lengths.high[chosen].sum() <= places:
                lowest = np.array([lengths.low[chosen].sum()])
                assert lengths.high[chosen].sum() <= lengths.largest_sum(lowest)[0] <= places


def test_norms_too_long_for_the_tables_are_rounded_against_us() -> None:
    for factor in (1 << 20, (1 << 40) + 12_345):
        taps = (100, -60, -20, -19)
        exact = chain_costs(interval_norms(taps, 40), 20, [1] * 5)
        large = chain_costs(interval_norms([factor * tap for tap in taps], 40), 20, [1] * 5)
        assert large[0] == [value * factor**4 for value in exact[0]]
        for one, other in zip(large, exact, strict=True):
            assert all(value * factor**4 <= bound for bound, value in zip(one, other, strict=True))
            assert one[-1] <= other[-1] * factor**4 * 1.0001


def test_roots_are_rounded_up() -> None:
    for first, second in itertools.product((0, 1, 2, 24, 25, 10**40), repeat=2):
        root = root_of_product(first, second)
        assert root**2 >= first * second
        assert root == 0 or (root - 1) ** 2 < first * second


# --- Changes on the unbounded horizon ---------------------------------------------------------------------------------


def chains(places: int, intervals: int) -> Ints:
    """Where the intervals of every chain end, empty ones included, in at most so many places; from 0 on."""
    inner = itertools.combinations_with_replacement(range(places + 1), intervals)
    return np.array([(0, *ends) for ends in inner])


def products(norms: Sequence[int], ends: Ints) -> Ints:
    """Inner products of the intervals of every chain, from the norms of the stretches between their ends."""
    between = np.array(norms)[abs(ends[:, :, None] - ends[:, None, :])]
    doubled = between[:, 1:, :-1] + between[:, :-1, 1:] - between[:, :-1, :-1] - between[:, 1:, 1:]
    return np.asarray(doubled // 2)


def largest_change(norms: Sequence[int], places: int, offset: int, thresholds: tuple[int, ...]) -> int:
    """The largest norm over all changes by an event at this place of a range, on the unbounded horizon."""
    most = max(thresholds)
    # Starts are counted backwards from the event, ends forwards.
    here, there = products(norms, chains(offset, most)), products(norms, chains(places - offset + 1, most))
    total = np.zeros((len(here), len(there)), dtype=np.int64)
    for k in thresholds:
        turned = there[:, :k, :k][:, ::-1, ::-1].reshape(len(there), -1)
        total += here[:, :k, :k].reshape(len(here), -1) @ turned.T
    return int(total.max())


@pytest.mark.quick(4)
@pytest.mark.parametrize("thresholds", [(1,), (2,), (3,), (4,), (1, 2), (2, 3), (1, 3), (1, 2, 3), (3, 4)], ids=str)
def test_no_change_on_the_unbounded_horizon_exceeds_the_bound(thresholds: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(thresholds))
    for places in (7, 1, 2, 3, 4, 5, 6):
        in_use = integer_taps(0.5, 0.9, places, 8)
        for taps in (*(contracting_taps(rng, places) for _ in range(3)), (101, -100), in_use):
            norms = interval_norms(taps, places)
            true = max(largest_change(norms, places, offset, thresholds) for offset in range(1, places + 1))
            bound = nested(taps, places, places, thresholds)
            assert true <= bound
            if places == 7 and thresholds in [(1,), (2,), (3,)]:
                # As many starts as ends, where the event is in the middle: reached.
                assert bound <= true + 1
            if taps == in_use and places > 4:
                assert bound <= (1.25 if len(thresholds) == 1 else 2.5) * true


# --- Whole logs -------------------------------------------------------------------------------------------------------


def true_sensitivity(taps: tuple[int, ...], shape: tuple[int, int, int], thresholds: tuple[int, ...]) -> int:
    """The largest norm over all logs of so many steps with so many occurrences a step at most."""
    steps, most, longest = shape
    window = AnyWindow(longest)
    design = Design(Problem(window, steps, thresholds, EVENT, GAUSSIAN, 1.0), Nested(longest, taps), "test")
    return largest_norm(differences(all_logs(steps, most), window, thresholds, EVENT), matrix_of(design), GAUSSIAN)


WHOLE = (6, 2, 6)
SHAPES = [(8, 1, 8), WHOLE, (9, 1, 3), (9, 1, 4), (7, 1, 2), (6, 2, 2), (6, 2, 3), (6, 1, 1)]


@pytest.mark.quick(2)
@pytest.mark.parametrize("thresholds", [(1,), (2,), (3,), (5,), (1, 2), (2, 3), (1, 2, 3), (1, 3, 5), (4, 5)], ids=str)
def test_no_log_exceeds_the_bound(thresholds: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(thresholds))
    for shape in SHAPES:
        steps, _, longest = shape
        in_use = integer_taps(0.5, 0.9, steps, 8)
        for taps in (contracting_taps(rng, steps), (101, -100), in_use):
            bound = nested(taps, longest, steps, thresholds)
            true = true_sensitivity(taps, shape, thresholds)
            assert true <= bound
            if shape == WHOLE and max(thresholds) <= 3 and taps == in_use:
                assert bound <= (1.5 if len(thresholds) == 1 else 1.8) * true


# --- Beside what it replaces, and what searches take for it -----------------------------------------------------------


def rectangles_alone(taps: Sequence[int], places: int, thresholds: tuple[int, ...]) -> int:
    """Half as much again as the rectangles by themselves, at most, for every threshold."""
    norms = interval_norms(taps, places)
    totals = [0] * (places + 1)
    for k in thresholds:
        best = [0] * (places + 1)
        for _ in range(min(k, places)):
            best = [max(best[n - m] + norms[m] ** 2 for m in range(n + 1)) for n in range(places + 1)]
        for offset in range(1, places + 1):
            starts, ends = offset, places - offset + 1
            whole = norms[starts] * norms[ends]
            totals[offset] += whole if k == 1 else 3 * (math.isqrt(best[starts] * best[ends]) + 1) // 2 + 1
    return max(totals)


def test_never_above_what_rectangles_cost_alone() -> None:
    rng = np.random.default_rng(5)
    for places, k in itertools.product((1, 2, 9, 16), (1, 2, 3, 4, 7)):
        for taps in (contracting_taps(rng, places), (101, -100), integer_taps(0.5, 0.97, places, 10)):
            for thresholds in ((k,), (k, k + 1)):
                new = nested(taps, places, places, thresholds)
                assert new <= rectangles_alone(taps, places, thresholds)


def test_in_use_it_saves_a_quarter() -> None:
    taps = integer_taps(0.52, 0.98, 365, 13)
    for thresholds in ((2,), (3,), (2, 3)):
        new, old = nested(taps, 365, 365, thresholds), rectangles_alone(taps, 365, thresholds)
        assert new <= 0.8 * old


@pytest.mark.quick(5)
@pytest.mark.parametrize("longest", [None, 20], ids=str)
@pytest.mark.parametrize("thresholds", [(1,), (2,), (3,), (10,), (1, 2)], ids=str)
def test_searches_see_nearly_the_certified_cost(thresholds: tuple[int, ...], longest: int | None) -> None:
    design = BATCH["nested-filter"](Problem(AnyWindow(longest), 90, thresholds, EVENT, GAUSSIAN, 4.0))
    assert design is not None
    assert isinstance(design.shape, Nested)
    places = min(90, 2 * design.shape.longest - 1)
    seen = event_cost(real_interval_norms(np.array(design.shape.taps, dtype=np.float64), places), places, thresholds)
    # Searches add up what thresholds cost; the bound knows that they share their intervals.
    assert 0.85 <= seen / design.sensitivity <= (1.1 if len(thresholds) == 1 else 1.3)
