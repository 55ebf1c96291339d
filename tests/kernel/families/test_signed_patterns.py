"""Bounds on vectors of -1, 0 and 1 against every such vector, and against every change that one item can make."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.families import changes_of_two_counts
from dpwindows.kernel.families.held_patterns import Held, two_runs_bound
from dpwindows.kernel.families.norms import autocorrelation
from dpwindows.kernel.families.patterns import (
    held_bound,
    priced_bound,
    rolling_patterns_add_remove_l2,
    rolling_patterns_period_l2,
)
from dpwindows.kernel.families.runs import affected_ends, most_signed_runs, rolling_filter_item_l2
from dpwindows.kernel.families.signed_patterns import Prices, SignedLags, TwoCounts, symbol_maximum
from dpwindows.kernel.maps.filters import Filter
from dpwindows.strategies.search.fractional import integer_taps
from tests.kernel.cases import PRESENCE, bound_of
from tests.kernel.families.test_runs import rolling_changes
from tests.kernel.families.test_sensitivity import any_taps, contracting_taps
from tests.single_item import Ints

FREE = Prices(0, 0)


def some_taps(seed: int, count: int) -> tuple[int, ...]:
    rng = np.random.default_rng(seed)
    return any_taps(rng, count) if seed % 2 else contracting_taps(rng, count)


def costs(taps: tuple[int, ...], vectors: Ints) -> NDArray[np.int64]:
    """`g'Gg` on the unbounded horizon, straight from the filter."""
    moved = np.array([np.convolve(taps, one) for one in np.eye(vectors.shape[1], dtype=np.int64)])
    return np.asarray(((vectors @ moved) ** 2).sum(axis=1))


def signed_runs(vectors: Ints) -> Ints:
    return np.asarray(np.abs(np.diff(vectors, axis=1, prepend=0, append=0)).sum(axis=1) // 2)


# --- Any vector of signs ----------------------------------------------------------------------------------------------


@pytest.mark.quick(4)
@pytest.mark.parametrize("seed", range(10))
def test_no_vector_of_signs_exceeds_the_bound(seed: int) -> None:
    """All places, all patterns with few runs, those of one sign somewhere; any memory and any near distances."""
    places = 4 + seed % 5
    taps = some_taps(seed, places + 2)
    vectors = np.array(list(itertools.product((-1, 0, 1), repeat=places)))
    cost, runs = costs(taps, vectors), signed_runs(vectors)
    lags = SignedLags.of(taps, places)
    assert lags.shift == 0
    tightest = 9.0
    for memory, near in itertools.product((2, 3, 5, places), (0, 4, 6, places)):
        known = TwoCounts(places, 1, places, places, (1, 0), False)
        found = priced_bound(lags, known, memory, near, FREE)
        assert found >= cost.max()
        if memory >= places - 1:
            assert found == cost.max()
        for most, change in itertools.product((1, 2, 3), (1, lags.values[0] // 2, 3 * lags.values[0])):
            bound = priced_bound(
                lags, TwoCounts(places, 1, places, most, (1, 0), False), memory, near, Prices(0, change)
            )
            assert bound >= cost[runs <= most].max()
            tightest = min(tightest, bound / cost[runs <= most].max())
        first, last = 2, places - 1
        one_sign = vectors[:, first - 1 : last].min(axis=1) >= 0
        bound = priced_bound(lags, TwoCounts(places, 1, places, places, (first, last), False), memory, near, FREE)
        assert cost[one_sign].max() <= bound <= found
    assert tightest < 1.6


def test_the_symbol_is_at_most_its_bound_and_nearly_so() -> None:
    rng = np.random.default_rng(2)
    for count in (1, 2, 5, 40):
        far = np.rint(1e9 * rng.standard_normal(count))
        far[0] = 0.0
        grid = np.cos(np.arange(count)[:, None] * np.linspace(0, np.pi, 20_011)[None, :])
        true = float((2 * far @ grid).max())
        bound = symbol_maximum(far)
        assert true <= bound <= true + 1e-3 * float(np.abs(far).sum()) + 2
    assert symbol_maximum(np.zeros(4)) == 0


def test_rounded_lags_bound_the_exact_form() -> None:
    for seed in range(6):
        taps = tuple((1 << 40) * tap + seed for tap in some_taps(seed, 8))
        lags = SignedLags.of(taps, 7)
        assert lags.shift > 0
        exact = autocorrelation(taps)
        for _ in range(60):
            g = [int(v) for v in np.random.default_rng(seed).integers(-1, 2, size=7)]
            true = sum(g[i] * g[j] * exact[abs(i - j)] for i in range(7) for j in range(7))
            form = sum(g[i] * g[j] * lags.values[abs(i - j)] for i in range(7) for j in range(7))
            assert true <= form << lags.shift


# --- The changes of one item ------------------------------------------------------------------------------------------


def item_counts(length: int, starts: int, places: int) -> Ints:
    """Every count for k = 1 of a log that holds occurrences in the first `starts` steps only."""
    logs = np.array(list(itertools.product((0, 1), repeat=starts)))
    padded = np.pad(logs, ((0, 0), (length, places)))
    sums = np.cumsum(padded, axis=1)
    return np.unique((sums[:, length:] - sums[:, :-length] > 0).astype(np.int64)[:, :places], axis=0)


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("length", "starts"), [(1, 4), (2, 2), (2, 3), (2, 6), (3, 1), (3, 4), (3, 6), (4, 3), (4, 5), (5, 6)]
)
def test_no_item_counted_once_exceeds_the_bound(length: int, starts: int) -> None:
    places = length + starts - 1
    counts = item_counts(length, starts, places)
    whole = np.unique((counts[:, None] - counts[None]).reshape(-1, places), axis=0)
    begins = [np.arange(places) >= n for n in range(places)]
    cut = [whole * (begin & ~end) for begin in begins for end in [*begins[1:], np.zeros(places, dtype=bool)]]
    changes = np.unique(np.concatenate(cut), axis=0)
    for seed in range(8):
        taps = some_taps(seed, places + 2)
        true = costs(taps, changes).max()
        for reach in (places, places - 1):
            lags = SignedLags.of(taps, reach)
            shorter = costs(taps, changes[:, :reach]).max() if reach else 0
            for memory, near in itertools.product((2, 3, places), (0, 5, places)):
                found = held_bound(lags, Held(starts, length, reach), memory, near)
                assert found >= shorter
                if memory >= places - 1 and reach == places:
                    assert found == true
            if starts <= length + 1:
                assert two_runs_bound(lags, Held(starts, length, reach)) >= shorter
        if starts <= length + 1:
            assert two_runs_bound(SignedLags.of(taps, places), Held(starts, length, places)) == true


def test_a_coarse_clock_only_loosens() -> None:
    taps = integer_taps(0.5, 0.97, 300, 12)
    lags = SignedLags.of(taps, 150)
    bounds = [held_bound(lags, Held(90, length, 150), 3, 12) for length in (30, 32, 33, 40, 61)]
    # Held for longer, changes are fewer; a clock of two steps a tick forgets at most one step.
    assert bounds[0] >= bounds[1] >= bounds[3] >= bounds[4]
    assert bounds[1] <= bounds[2] * 1.05


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


# --- The price of starts and stops ------------------------------------------------------------------------------------


def comb_counts(k: int, length: int, places: int, phase: int) -> Ints:
    """Whether an item is counted that occurs at even spaces, k - 1/2 times in a window: about half of the time."""
    per_phase = 24 * (2 * k - 1)
    marks = np.arange(phase * 2 * length, per_phase * places, 48 * length) // per_phase
    log = np.bincount(marks, minlength=places)[:places]
    sums = np.cumsum(np.pad(log, (length, 0)))
    return np.asarray(sums[length:] - sums[:-length] >= k, dtype=np.int64)


@pytest.mark.quick(1)
@pytest.mark.parametrize(("k", "length", "places"), [(2, 5, 150), (3, 8, 240), (3, 12, 360), (4, 8, 240)])
def test_starts_and_stops_are_charged_for_all_k_minus_one_occurrences(k: int, length: int, places: int) -> None:
    """A filter that sees changes only, and two items as changeable as items can be: the best price leaves no room.

    The inequalities behind the price of starts hold with equality on average for such an item, for its starts and for
    its stops, and so for two items four times; `4 (k-1) N` is reached, `3 (k-1) N` is exceeded.
    """
    unit = 1 << 10
    taps = (unit, -unit)
    counts = [comb_counts(k, length, places, phase) for phase in range(24)]
    true = costs(taps, np.array([one - other for one, other in itertools.combinations(counts, 2)])).max()
    lags = SignedLags.of(taps, places)
    assert lags.shift == 0
    known = TwoCounts(k, length, places, min(most_signed_runs(k, length, places), places), (1, 0), True)
    prices = [Prices(2 * unit**2 * part // (16 * length), 0) for part in range(33)]
    least = min(priced_bound(lags, known, 3, 3, price) for price in prices)
    assert true <= least <= 1.4 * true
    assert (
        true
        <= bound_of(rolling_patterns_period_l2, Rolling(length), Filter(taps), places, (k,), ItemLevel())
        <= 1.4 * true
    )


# --- Long horizons ----------------------------------------------------------------------------------------------------


def plain(lags: SignedLags, known: TwoCounts | Held, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The bound with every place run through, and with most of them carried on."""
    for period in (10**9, 2):
        with monkeypatch.context() as patched:
            patched.setattr(changes_of_two_counts, "_CYCLE", period)
            if isinstance(known, Held):
                yield held_bound.__wrapped__(lags, known, 3, 6)
            else:
                prices = (Prices(lags.values[0] * part // 8, 0) for part in (1, 2, 3, 4, 6))
                yield min(priced_bound.__wrapped__(lags, known, 3, 6, price) for price in prices)


@pytest.mark.parametrize("length", [3, 7, 40])
def test_carrying_on_bounds_what_every_place_would_add(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taps = integer_taps(0.5, 0.9, 200, 12)
    places = 20 * length
    lags = SignedLags.of(taps, places)
    for apart in (False, True):
        known = TwoCounts(2, length, places, places, (1, 0), apart)
        exact, carried = plain(lags, known, monkeypatch)
        assert exact <= carried <= 1.6 * exact
    exact, carried = plain(lags, Held(places - length + 1, length, places), monkeypatch)
    assert exact <= carried <= 1.6 * exact


# More occurrences than any log has: a rule that leaves everything.
GENEROUS = CountingRule(max_occurrences=10**6)

# --- Against the bounds they replace ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "span", "k"), [(28, 365, 1), (28, 365, 3), (7, 30, 1), (28, 7, 1), (28, 28, 2)])
def test_never_above_charging_each_run_by_itself(length: int, span: int, k: int) -> None:
    taps = integer_taps(0.5, 0.97, 400, 24)
    bound = bound_of(rolling_patterns_period_l2, Rolling(length), Filter(taps), 365, (k,), ItemPerPeriod(span))
    assert bound <= bound_of(
        rolling_filter_item_l2, Rolling(length), Filter(taps), 365, (k,), ItemLevel(), rule=GENEROUS
    ) * (1 + 1e-6)
    # An item changed is one removed and one added.
    if span == 365:
        assert bound <= 0.9 * 4 * bound_of(
            rolling_patterns_add_remove_l2, Rolling(length), Filter(taps), 365, (k,), PRESENCE
        )


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
