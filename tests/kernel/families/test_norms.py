"""Norms of steps and intervals against their definition, and the signs that make intervals cost no more together."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling
from dpwindows.kernel.families import lines, rectangles
from dpwindows.kernel.families import norms as norms_of
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.families.norms import step_norms
from dpwindows.kernel.families.runs import rolling_filter_l2
from dpwindows.kernel.maps.filters import Filter
from tests.kernel.cases import case
from tests.kernel.made_up import UNITS, any_taps, contracting_taps, toeplitz
from tests.single_item import all_logs, runs


def test_interval_norms_are_the_norms_of_intervals() -> None:
    rng = np.random.default_rng(10)
    for _ in range(50):
        taps = contracting_taps(rng, int(rng.integers(1, 9)))
        norms = norms_of.interval_norms(taps, 12)
        for n in range(13):
            response = np.convolve(taps, np.ones(n, dtype=np.int64)) if n else np.zeros(1, dtype=np.int64)
            assert norms[n] == int((response**2).sum())
        rises = np.diff(norms)
        assert (rises > 0).all()
        assert (np.diff(rises) <= 0).all()


def test_disjoint_intervals_cost_no_more_together_than_apart() -> None:
    """The signs lemma itself, over every 0/1 vector of ten steps."""
    rng = np.random.default_rng(11)
    vectors = all_logs(10, 1)
    for _ in range(20):
        taps = contracting_taps(rng, 10)
        norms = norms_of.interval_norms(taps, 10)
        full = np.array([np.convolve(taps, unit) for unit in np.eye(10, dtype=np.int64)]).T
        together = ((vectors @ full.T) ** 2).sum(axis=1)
        for vector, cost in zip(vectors, together, strict=True):
            assert cost <= sum(norms[end - first] for first, end in runs(vector))
        lags = norms_of.autocorrelation(taps)
        assert all(lag <= 0 for lag in lags[1:])
        assert all(lags[0] + 2 * sum(lags[1 : n + 1]) >= sum(taps) ** 2 for n in range(len(lags)))


def test_autocorrelation_does_not_wrap() -> None:
    taps = (3 << 40, -(1 << 40), -(1 << 39))
    assert norms_of.autocorrelation(taps) == [sum(taps[j] * taps[j + lag] for j in range(3 - lag)) for lag in range(3)]


@pytest.mark.parametrize("gaps", [True, False])
def test_runs_bound_is_the_best_split(gaps: bool) -> None:
    rng = np.random.default_rng(12)
    for _ in range(10):
        norms = norms_of.interval_norms(contracting_taps(rng, 9), 9)
        for length, most in itertools.product(range(1, 10), range(1, 6)):
            best = 0
            for count in range(1, most + 1):
                for split in itertools.product(range(1, length + 1), repeat=count):
                    if sum(split) + (count - 1 if gaps else 0) <= length:
                        best = max(best, sum(norms[n] for n in split))
                if count >= 4:
                    break
            if most <= 4:
                assert norms_of.runs_bound(norms, most, length, gaps=gaps, places=length) == best
            else:
                assert norms_of.runs_bound(norms, most, length, gaps=gaps, places=length) >= best


@pytest.mark.parametrize("steps", [1, 2, 5, 12])
def test_the_largest_norm_of_a_change_is_that_of_an_interval(steps: int) -> None:
    rng = np.random.default_rng(13)
    for _ in range(30):
        taps = any_taps(rng, int(rng.integers(1, steps + 4)))
        matrix = toeplitz(taps, steps)
        costs = [int(((matrix[:, x:y].sum(axis=1)) ** 2).sum()) for x in range(steps) for y in range(x + 1, steps + 1)]
        assert norms_of.formal_step_norms(taps, steps)[-1] == max(costs)


def test_the_largest_norm_of_a_change_is_exact_for_huge_taps() -> None:
    taps = (1 << 62, -(1 << 61), -(1 << 60))
    matrix = toeplitz(taps, 3).astype(object)
    costs = [int(((matrix[:, x:y].sum(axis=1)) ** 2).sum()) for x in range(3) for y in range(x + 1, 4)]
    norms = norms_of.formal_step_norms(taps, 3)
    assert norms[-1] == max(costs)
    assert norms == [0, *(norms_of.formal_step_norms(taps, n)[-1] for n in (1, 2, 3))]


def test_horizon_free_bounds_of_long_horizons(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(14)
    for _ in range(20):
        taps = contracting_taps(rng, 9)
        exact = norms_of.formal_step_norms(taps, 9)
        with monkeypatch.context() as patched:
            patched.setattr(norms_of, "_EXACT_HORIZON", 3)
            free = norms_of.formal_step_norms(taps, 9)
            assert all(one <= other for one, other in zip(exact, free, strict=True))
            assert free[-1] == exact[-1]
            loose = [int(tap) for tap in rng.integers(-9, 10, size=6)]
            every = norms_of.step_norms(loose, 9, np.square, formal=True)
            assert norms_of.formal_step_norms(loose, 9) == [0, *[every[-1]] * 9]


def test_products_of_taps_are_exact_whatever_their_size() -> None:
    rng = np.random.default_rng(15)
    for count in (1, 2, 5, 40):
        for size in (0, 1, 3, 1 << 40, 1 << 90):
            taps = [int(tap) * size // 3 for tap in rng.integers(-9, 10, size=count)]
            exact = [sum(taps[j] * taps[j + m] for j in range(count - m)) for m in range(count)]
            assert norms_of.autocorrelation(taps) == exact


def test_the_longest_interval_is_the_dearest_difference_of_two_steps() -> None:
    rng = np.random.default_rng(16)
    for steps in (1, 2, 7, 30):
        for count in (1, 3, 9, 40):
            taps = [int(tap) for tap in rng.integers(-9, 10, size=count)]
            every = norms_of.step_norms(taps, steps, np.square, formal=True)
            assert norms_of.longest_interval_norm(taps, steps) == every[steps]


def test_prefix_sums_are_exact_beyond_64_bits() -> None:
    """A regression: they were summed in 64 bits and wrapped."""
    taps = [1 << 62, 1 << 62, 1 << 62, -5]
    found = [int(value) for value in norms_of.prefix_sums(taps, 6)]
    assert found == [1 << 62, 2 << 62, 3 << 62, (3 << 62) - 5, (3 << 62) - 5, (3 << 62) - 5]
    assert [int(value) for value in norms_of.prefix_sums([2, -1], 4)] == [2, 1, 1, 1]
    assert [int(value) for value in norms_of.prefix_sums([2, -1, -1], 2)] == [2, 1]


BROKEN_SIGNS = [(1, 1), (-1, 0), (0, 0), (5, -1, -2), (5, -2, 1), (2, -1, -1), (2, -3), (1, 0, -1, 0), (3, -1, -1, -1)]


@pytest.mark.parametrize("taps", BROKEN_SIGNS, ids=str)
def test_violated_signs_are_refused(taps: tuple[int, ...]) -> None:
    assert not norms_of.has_contracting_signs(taps)
    week, cumulative, nested = (Rolling(3), Filter(taps)), (Cumulative(), Filter(taps)), (AnyWindow(), Nested(9, taps))
    for thresholds in ((1,), (2,), (1, 2)):
        for unit in UNITS:
            assert rolling_filter_l2(case(*week, 9, thresholds, unit)) is None
        assert lines.cumulative_filter_event_l2(case(*cumulative, 9, thresholds)) is None
        assert rectangles.any_nested_event_l2(case(*nested, 9, thresholds)) is None


@pytest.mark.parametrize("taps", [(1,), (1, 0), (3, -2), (3, -1, -1), (9, -4, -3, -1, 0)], ids=str)
def test_good_signs_are_accepted(taps: tuple[int, ...]) -> None:
    assert norms_of.has_contracting_signs(taps)
    assert norms_of.interval_norms(taps, 3)[3] > 0


def test_norms_beyond_64_bits_are_exact() -> None:
    taps = (1 << 40, -(1 << 39), -7)
    for formal in (True, False):
        shifts = range(1, 7) if formal else [6]
        response = [1 << 40, 1 << 39, *((1 << 39) - 7 for _ in range(4))]
        for n, norm in enumerate(step_norms(taps, 6, np.square, formal=formal)):
            sizes = [sum((response[i] - (response[i - d] if i >= d else 0)) ** 2 for i in range(n)) for d in shifts]
            assert norm == max(sizes)
