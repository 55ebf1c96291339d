"""Any windows through a product of two filters: bounds against every chain, and against the changes of whole logs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from dpwindows.ask.privacy import EventLevel, ItemLevel
from dpwindows.ask.queries import AnyWindow, Rolling
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families import rectangles
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.families.norms import interval_norms
from dpwindows.kernel.families.rectangles import (
    Lengths,
    any_nested_event_l2,
    any_weighted_event_l2,
    chain_costs,
    multiply_exactly,
    root_of_product,
)
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import BATCH
from dpwindows.strategies.nested_filter import event_cost
from dpwindows.strategies.search.fractional import integer_taps, real_interval_norms
from tests.kernel.cases import bound_of, case
from tests.kernel.made_up import contracting_taps
from tests.kernel.truth import event_changes
from tests.single_item import Ints, runs

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
@pytest.mark.parametrize("thresholds", [(2,), (3,), (10,), (1, 2)], ids=str)
def test_searches_see_nearly_the_certified_cost(thresholds: tuple[int, ...], longest: int | None) -> None:
    design = BATCH["nested-filter"](Problem(AnyWindow(longest), 90, thresholds, EVENT, GAUSSIAN, 4.0))
    assert design is not None
    assert isinstance(design.shape, Nested)
    places = min(90, 2 * design.shape.longest - 1)
    seen = event_cost(real_interval_norms(np.array(design.shape.taps, dtype=np.float64), places), places, thresholds)
    # Searches add up what thresholds cost; the bound knows that they share their intervals.
    assert 0.85 <= seen / design.sensitivity <= (1.1 if len(thresholds) == 1 else 1.3)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_an_event_changes_any_windows_on_at_most_k_rectangles(k: int) -> None:
    reached = 0
    for step, change in event_changes(6 if k < 3 else 5, min(k, 2), k):
        assert set(np.unique(change)) <= {0, 1}
        assert not change[step + 1 :].any()
        assert not change[:, :step].any()
        patterns = [pattern for pattern in np.unique(change, axis=0) if pattern.any()]
        reached = max(reached, len(patterns))
        assert len(patterns) <= k
        # Each pattern of ends is an interval, held by an interval of starts; no two patterns share an end.
        assert all(len(runs(pattern)) == 1 for pattern in patterns)
        assert all(len(runs((change == pattern).all(axis=1))) == 1 for pattern in patterns)
        assert not patterns or int(np.sum(patterns, axis=0).max()) <= 1
    assert reached == k


# --- Weighed windows --------------------------------------------------------------------------------------------------


def design(steps: int, taps: tuple[int, ...], weights: tuple[int, ...]) -> Design:
    problem = Problem(AnyWindow(len(weights)), steps, (1,), EventLevel(), GAUSSIAN, 1.0)
    return Design(problem, Nested(longest_window(problem.window, steps), taps, weights), "")


def in_full(taps: tuple[int, ...], weights: tuple[int, ...], steps: int) -> int:
    """By definition in Python's integers: every place of the occurrence, every occurrence before and after it."""
    longest, largest = len(weights), 0
    for place in range(1, steps + 1):
        for before in range(place):
            for after in range(place + 1, steps + 2):
                total = 0
                for a in range(max(1, place - longest + 1), place + 1):
                    along = sum(tap for i, tap in enumerate(taps) if before < a + i <= place)
                    for b in range(place, min(steps, a + longest - 1) + 1):
                        total += (
                            weights[b - a] * along * sum(tap for i, tap in enumerate(taps) if place <= b - i < after)
                        ) ** 2
                largest = max(largest, total)
    return largest


def weighted(taps: tuple[int, ...], weights: tuple[int, ...], steps: int | None) -> int:
    """The bound of any windows that weights are for."""
    shape = Nested(len(weights), taps, weights)
    return bound_of(any_weighted_event_l2, AnyWindow(len(weights)), shape, steps)


@pytest.mark.parametrize(("steps", "longest"), [(20, 5), (20, 14), (20, 20), (18, 18), (34, 3)])
def test_rounding_and_stretches_cost_little(steps: int, longest: int) -> None:
    taps = (2048, -1024, -256, -128, -64)
    weights = tuple(int(64 * (n / longest) ** 0.3) + 1 for n in range(1, longest + 1))
    exact = in_full(taps, weights, steps)
    assert exact <= weighted(taps, weights, steps) <= 1.06 * exact
    # A range without end has room for all that a long one has.
    assert weighted(taps, weights, None) == weighted(taps, weights, 2 * longest - 1)


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_places_of_a_stretch_take_the_limits_of_all_of_them(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the middle of a range costs most and is the last place of its stretch, too."""
    monkeypatch.setattr(rectangles, "_PARTS", parts)
    for steps in range(2, 12):
        taps, weights = (16, -8, -2, -1), tuple(range(3, 3 + steps))
        exact = in_full(taps, weights, steps)
        assert exact <= weighted(taps, weights, steps) <= weighted(taps, weights, None)


def test_large_numbers_are_rounded_up() -> None:
    generator = np.random.default_rng(5)
    for _ in range(20):
        taps = (1 << 30, *(-int(tap) for tap in generator.integers(0, 1 << 27, size=5)))
        weights = tuple(int(weight) for weight in generator.integers(1, 1 << 31, size=4))
        exact = in_full(taps, weights, 6)
        assert exact <= weighted(taps, weights, 6) <= 1.001 * exact


def test_sums_are_exact_or_refused() -> None:
    one = np.array([[1 << 26, (1 << 26) - 1]])
    assert multiply_exactly(one, np.array([[1 << 26], [1 << 26]]))[0, 0] == (1 << 53) - (1 << 26)
    for factor, other in ((one + 1, 1 << 26), (one, -1)):
        with pytest.raises(ArithmeticError):
            multiply_exactly(factor, np.array([[other], [1 << 26]]))


@pytest.mark.parametrize(
    ("taps", "weights"), [((1 << 31, -5), (1, 1)), ((5, -1), (1, 1 << 31)), ((5, -1), (1,) * 4097)], ids=["t", "w", "n"]
)
def test_numbers_that_would_wrap_are_refused(taps: tuple[int, ...], weights: tuple[int, ...]) -> None:
    asked = case(AnyWindow(len(weights)), Nested(len(weights), taps, weights), None)
    assert any_weighted_event_l2(asked) is None


@pytest.mark.parametrize(
    ("taps", "weights"), [((8, -4), (3, -4, 5)), ((8, -4), (3, 0, 5)), ((), (3, 4, 5)), ((8, -4), np.array((3, 4, 5)))]
)
def test_weights_that_are_not_positive_whole_numbers_are_not_certified(
    taps: tuple[int, ...], weights: tuple[int, ...]
) -> None:
    with pytest.raises((NotCertifiedError, ValueError)):
        _ = design(6, taps, weights).certificate


def test_other_thresholds_units_and_laws_have_no_bound() -> None:
    found = design(6, (8, -4, -1), (3, 4, 5))
    assert found.certificate.bound > 0
    for problem in (
        replace(found.problem, thresholds=(2,)),
        replace(found.problem, thresholds=(1, 2)),
        replace(found.problem, unit=ItemLevel()),
        replace(found.problem, law=LAPLACE),
        replace(found.problem, window=Rolling(3)),
        # The longest window is longer than weights are for.
        replace(found.problem, window=AnyWindow(4)),
    ):
        with pytest.raises(NotCertifiedError):
            _ = replace(found, problem=problem).certificate
