"""An item changed within a period: bounds against every neighbour on small horizons, and what the proofs rest on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import EventLevel, ItemLevel, ItemPerPeriod, PureDP
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.grouped_steps import grouped_unit
from dpwindows.kernel.families.runs import (
    affected_ends,
    most_signed_runs,
    rolling_differences_period_l1,
    rolling_filter_item_l2,
)
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.filters import Filter
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import BATCH, candidates, compressed, paper
from dpwindows.strategies.search.witnesses import with_witness
from tests.kernel.cases import bound_of
from tests.kernel.families.test_sensitivity import (
    Looseness,
    contracting_taps,
    kind,
    largest_norm,
    matrix_of,
    matrix_over_all_windows,
)
from tests.single_item import Changes, Ints, all_logs, differences

QUICK = [(4, (1,), 1), (4, (1, 2), 2)]
SLOW = [(4, (3,), 3), (5, (2,), 2), (6, (1,), 1)]


def truth(design: Design, most: int) -> int:
    """The exact sensitivity over all logs with at most `most` occurrences a step."""
    problem = design.problem
    pieces = differences(all_logs(problem.steps, most), problem.window, problem.thresholds, problem.unit)
    return largest_norm(pieces, matrix_of(design), problem.law)


# --- What a change within a period looks like -------------------------------------------------------------------------


def rolling_changes(length: int, span: int, k: int) -> Iterator[Ints]:
    """All changes of the windows that see a span, for every log of `length - 1` steps on either side of it."""
    inside = all_logs(span, k)
    for before, after in itertools.product(all_logs(length - 1, k) if length > 1 else np.zeros((1, 0), int), repeat=2):
        logs = np.hstack([np.tile(before, (len(inside), 1)), inside, np.tile(after, (len(inside), 1))])
        sums = np.cumsum(np.pad(logs, ((0, 0), (1, 0))), axis=1)
        answers = np.unique(sums[:, length:] - sums[:, :-length] >= k, axis=0).astype(np.int64)
        assert answers.shape[1] == affected_ends(length, span, None)
        yield (answers[:, None] - answers[None]).reshape(-1, answers.shape[1])


SPANS = [(1, w, n) for w in (1, 2, 3, 4) for n in (1, 2, 3, 4, 5, 6)] + [(1, 5, 7), (2, 1, 4), (3, 2, 3)]
SPANS += [(2, w, n) for w in (2, 3) for n in (1, 2, 3, 4)] + [(3, 3, 1), (3, 3, 2), (2, 4, 2)]


@pytest.mark.parametrize(("k", "length", "span"), SPANS)
def test_runs_and_signs_of_a_change_within_a_period(k: int, length: int, span: int) -> None:
    reached = 0
    for changes in rolling_changes(length, span, k):
        ends = np.abs(np.diff(changes, axis=1, prepend=0, append=0)).sum(axis=1)
        reached = max(reached, int(ends.max()) // 2)
        if span <= length:
            middle = changes[:, span - 1 : length]
            assert not ((middle.min(axis=1) < 0) & (middle.max(axis=1) > 0)).any()
    places = affected_ends(length, span, None)
    assert reached <= most_signed_runs(k, length, span)
    if k == 1:
        assert reached == min(places, most_signed_runs(k, length, span))


def test_the_most_runs_grow_with_the_period() -> None:
    assert [most_signed_runs(1, 4, span) for span in range(1, 12)] == [1, 2, 2, 2, 2, 3, 4, 4, 4, 4, 5]
    assert [most_signed_runs(3, 9, span) for span in (1, 2, 3, 4, 10, 11, 20)] == [3, 4, 5, 6, 6, 9, 12]


# --- Every strategy in every cell -------------------------------------------------------------------------------------

FAMILIES: list[WindowFamily] = [
    Cumulative(),
    *(Rolling(length) for length in (1, 2, 3, 5)),
    AnyWindow(),
    *(AnyWindow(longest) for longest in (1, 2, 4)),
]
# Certified over true sensitivity: what is not named must be exact.
CEILINGS: dict[tuple[str, str], float] = {
    ("filter", "rolling"): 1.9,
    ("optimal-filter", "rolling"): 1.1,
    ("notch-filter", "rolling"): 1.1,
    ("anchored-differences", "rolling"): 2.4,
    ("crossed-counters", "any"): 1.6,
    ("crossed-counters", "any:m"): 1.6,
    ("counters", "any"): 1.02,
    ("counters", "any:m"): 1.02,
    ("tree", "any"): 1.35,
    ("tree", "any:m"): 2.0,
}


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("steps", "thresholds", "most"),
    [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
    ids=str,
)
def test_every_strategy_in_every_cell(steps: int, thresholds: tuple[int, ...], most: int) -> None:
    found, served = Looseness(), set()
    for window, span in itertools.product(FAMILIES, range(1, steps + 1)):
        unit = ItemPerPeriod(span)
        changes = Changes.of(differences(all_logs(steps, most), window, thresholds, unit))
        for law, (name, strategy) in itertools.product((GAUSSIAN, LAPLACE), BATCH.items()):
            made = strategy(Problem(window, steps, thresholds, unit, law, noise_per_unit=1.0))
            if made is not None:
                design = with_witness(made)
                served.add((name, kind(window)))
                true = largest_norm(changes, matrix_of(design), law)
                found.add((name, kind(window), unit.name), design.sensitivity, true)
    found.show(f"T={steps}, at least {thresholds}")
    for where in ("cumulative", "rolling", "any", "any:m"):
        assert sum(met == where for _, met in served) >= 2
    if steps >= 5:
        for (name, where, period), ratios in found.seen.items():
            assert max(ratios) <= CEILINGS.get((name, where), 1.0 + 1e-9), (name, where, period)


def test_the_paper_has_no_such_unit() -> None:
    for window, law in itertools.product(FAMILIES, (GAUSSIAN, LAPLACE)):
        asked = Problem(window, 6, (1,), ItemPerPeriod(2), law, 1.0, budget=PureDP(1.0))
        assert paper.design(asked) is None


# --- Parameters no planner would choose -------------------------------------------------------------------------------


def _series(steps: int, window: WindowFamily, ks: tuple[int, ...], span: int, law: Law, found: Any) -> Design:
    return Design(Problem(window, steps, ks, ItemPerPeriod(span), law, 1.0), Series(found), "test")


def random_cases(rng: np.random.Generator, count: int) -> Iterator[tuple[int, int, int, tuple[int, ...], int]]:
    """(steps, span, length, thresholds, most occurrences a step)."""
    shapes = [((1,), 7, 1), ((1,), 5, 2), ((2,), 5, 2), ((3,), 4, 3), ((1, 2), 4, 2), ((1, 3), 4, 3)]
    for i in range(count):
        ks, largest, most = shapes[i % len(shapes)]
        steps = int(rng.integers(2, largest + 1))
        yield steps, int(rng.integers(1, steps + 1)), int(rng.integers(1, steps + 1)), ks, most


@pytest.mark.slow
def test_filters_and_differences_with_any_parameters() -> None:
    rng = np.random.default_rng(1)
    for steps, span, length, ks, most in random_cases(rng, 60):
        for taps in (contracting_taps(rng, steps + 1), (101, -100)):
            # More occurrences than any of these logs has: a rule that leaves everything.
            rule = CountingRule(max_occurrences=1000)
            bound = bound_of(rolling_filter_item_l2, Rolling(length), Filter(taps), steps, ks, ItemLevel(), rule=rule)
            assert truth(_series(steps, Rolling(length), ks, span, GAUSSIAN, Filter(taps)), most) <= bound
        step, anchor, every = int(rng.integers(1, 9)), int(rng.choice([1, 7, 100])), int(rng.integers(1, steps + 2))
        found = AnchoredDifferences(every, step, anchor, offset=steps % every)
        asked = rolling_differences_period_l1, Rolling(length), found
        bound = bound_of(*asked, steps, ks, ItemPerPeriod(span), LAPLACE)
        assert truth(_series(steps, Rolling(length), ks, span, LAPLACE, found), most) <= bound
        assert bound <= bound_of(*asked, None, ks, ItemPerPeriod(span), LAPLACE)


def test_a_period_as_long_as_the_horizon_affects_every_end() -> None:
    for steps, length in ((9, 3), (20, 20), (20, 7)):
        for span in (steps, steps + 1, 10**6):
            assert affected_ends(length, span, steps) == steps


# --- Compressed designs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("span", "size", "groups"), [(1, 3, 1), (2, 3, 2), (4, 3, 2), (5, 3, 3), (7, 7, 2), (8, 7, 2)])
def test_a_span_meets_so_many_groups(span: int, size: int, groups: int) -> None:
    met = max(len({step // size for step in range(first, first + span)}) for first in range(size))
    assert met == groups
    assert grouped_unit(ItemPerPeriod(span), size) == ItemPerPeriod(groups)
    assert grouped_unit(EventLevel(), size) == EventLevel()


@pytest.mark.parametrize(("thresholds", "most"), [((1,), 1), ((1, 2), 1)])
def test_compressed_designs(thresholds: tuple[int, ...], most: int) -> None:
    steps, found = 6, Looseness()
    for window, span in itertools.product((Cumulative(), Rolling(2), Rolling(4), AnyWindow(), AnyWindow(3)), (1, 2, 3)):
        unit = ItemPerPeriod(span)
        changes = Changes.of(differences(all_logs(steps, most), AnyWindow(), thresholds, unit))
        for law in (GAUSSIAN, LAPLACE):
            problem = Problem(window, steps, thresholds, unit, law, 1.0, singleton=True)
            for design in compressed.designs(problem, candidates):
                true = largest_norm(changes, matrix_over_all_windows(design), law)
                found.add((design.strategy, kind(window), unit.name), design.sensitivity, true)
    found.show(f"compressed, at least {thresholds}")
    assert len(found.seen) > 12
