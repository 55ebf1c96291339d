"""The exact audit: that it finds the truth, proves what holds, and flags what does not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpwindows as dw
from dpwindows.ask.privacy import ApproxDP, Budget, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.audit import Pair, audit_exactly, audit_measurements
from dpwindows.audit.losses import (
    Bounds,
    Moved,
    analytic_delta,
    concentrated_delta,
    epsilon_at,
    gaussian_delta,
    laplace_delta,
    mu_squared,
    pure_epsilon,
)
from dpwindows.audit.neighbours import Histories, changes
from dpwindows.audit.probe import probe
from dpwindows.audit.search import search
from dpwindows.count.answers import ExactAnswers
from dpwindows.errors import EngineError, InputError
from dpwindows.kernel.accounting import CUBE, GAUSSIAN, LAPLACE, RANGE, Law
from dpwindows.kernel.certificate import Certificate
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.kernel.measure import Measurement
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import BATCH, REFERENCES, candidates, compressed
from dpwindows.strategies.search.noise_scales import laws_for, scales, unit_scale
from dpwindows.strategies.strategy import PrescribedScale
from dpwindows.theory import constructions
from dpwindows.theory.hard_instance import HardInstance
from tests.audit.asked import BUDGETS, IN_GROUPS, UNITS
from tests.kernel.truth import largest_norm, matrices_of
from tests.plans import plan_of
from tests.single_item import all_logs, differences

BY: dict[str, Any] = {"by": {"g": ["a", "b"]}, "totals": 0.3}
FAMILIES: tuple[WindowFamily, ...] = (Cumulative(), Rolling(1), Rolling(2), Rolling(3), AnyWindow(), AnyWindow(2))


# --- Every mechanism ------------------------------------------------------------------------------------------------


def mechanisms(steps: int, thresholds: tuple[int, ...]) -> Iterator[tuple[str, Measurement, Budget]]:
    """Every strategy, the paper's too, in every cell it applies to, with the noise that spends all of the budget."""
    known = {**BATCH, **REFERENCES}
    for window, unit, budget in itertools.product(FAMILIES, UNITS, BUDGETS):
        for law, (name, strategy) in itertools.product(laws_for(budget), known.items()):
            problem = Problem(window, steps, thresholds, unit, law, unit_scale(budget, law), budget=budget)
            if (design := strategy(problem)) is not None:
                yield name, Measurement(design, design.problem.law, scale_of(design, budget)), budget


def scale_of(design: Design, budget: Budget) -> float:
    if isinstance(design, PrescribedScale):
        return design.scale
    rows = design.rows * len(design.problem.thresholds)
    return scales(budget, design.problem.law, [design.sensitivity], [1.0], [rows])[0]


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "thresholds"), [(4, (1,)), (3, (1, 2))], ids=str)
def test_every_strategy_is_within_its_claim_over_every_neighbour(steps: int, thresholds: tuple[int, ...]) -> None:
    met = set()
    for name, measurement, budget in mechanisms(steps, thresholds):
        problem = measurement.design.problem
        found = audit_measurements([measurement], budget, problem.unit)
        cell = (name, str(problem.window), problem.unit.name, problem.law, budget.kind)
        assert found.exhaustive, cell
        assert found.verdict == "within the claim", (cell, found)
        met.add((name, problem.unit.name, problem.law))
    # One is for several thresholds, and two are for a single one.
    elsewhere = {"threshold-filters"} if len(thresholds) == 1 else {"gap-filter", "notch-filter"}
    assert {name for name, _, _ in met} == {*BATCH, *REFERENCES} - elsewhere
    every = set(itertools.product((unit.name for unit in UNITS), (GAUSSIAN, LAPLACE)))
    assert {(unit, law) for _, unit, law in met} == every | {("item", CUBE), ("item-add-remove", RANGE)}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
def test_several_queries_are_within_one_claim_together(unit: Unit, budget: Budget) -> None:
    plan = plan_of(Rolling(2).at_least(1, 2), Cumulative(), AnyWindow(2).exactly(1), unit=unit, budget=budget, steps=4)
    found = audit_exactly(plan)
    assert found.exhaustive
    assert found.verdict == "within the claim"
    parts = [audit_measurements([one.measurement], budget, unit) for one in plan.allotments]
    # Each part alone costs less than all of them together.
    assert all(part.loss.bounds.high < found.loss.bounds.high for part in parts)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_compressed_streams_and_the_paper_on_them_are_within_the_claim(unit: Unit) -> None:
    """Over all neighbours, not only over those in singleton streams."""
    for window, budget in itertools.product((Cumulative(), Rolling(2), AnyWindow()), BUDGETS):
        for law in laws_for(budget):
            problem = Problem(window, 5, (1,), unit, law, unit_scale(budget, law), singleton=True, budget=budget)
            for design in compressed.designs(problem, candidates):
                made = Measurement(design, design.problem.law, scale_of(design, budget))
                assert audit_measurements([made], budget, unit).verdict == "within the claim"
            paper = REFERENCES["paper"](problem)
            if paper is not None:
                found = audit_measurements([Measurement(paper, law, scale_of(paper, budget))], budget, unit)
                assert found.verdict == "within the claim"


@pytest.mark.search(7)
@pytest.mark.quick(2)
@pytest.mark.parametrize("thresholds", [(1,), (2,), (1, 2)], ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_the_worst_pair_is_the_worst_of_an_independent_enumeration(unit: Unit, thresholds: tuple[int, ...]) -> None:
    for window, law in itertools.product(FAMILIES, (GAUSSIAN, LAPLACE)):
        problem = Problem(window, 4, thresholds, unit, law, 1.0)
        for strategy in BATCH.values():
            if (design := strategy(problem)) is None:
                continue
            budget: Budget = dw.ZCDP(1.0) if law == GAUSSIAN else PureDP(1.0)
            found = audit_measurements([Measurement(design, law, 1.0)], budget, unit)
            moved = probe([Measurement(design, law, 1.0)]).moved(found.worst)
            reached = mu_squared(moved) if law == GAUSSIAN else pure_epsilon(moved)
            assert reached == _largest(design, window, unit)


def _largest(design: Design, window: WindowFamily, unit: Unit) -> int:
    """Straight from the definition, with another enumeration of neighbours and another reading of the matrix."""
    thresholds = design.problem.thresholds
    pieces = differences(all_logs(4, max(thresholds) + 1), window, thresholds, unit)
    return largest_norm(pieces, matrices_of(design), design.problem.law)


HARD: list[tuple[HardInstance, HardInstance]] = [
    (constructions.range_queries([3, 1, 2], 4, 2), constructions.range_queries([3, 0, 2], 4, 2)),
    (
        constructions.linear_queries([[1, 0], [0, 1], [1, 1]], [1, 1], 3),
        constructions.linear_queries([[1, 0], [0, 1], [1, 1]], [0, 1], 3),
    ),
    (constructions.marginals_rolling([[1, 0], [1, 1]], 2, 2), constructions.marginals_rolling([[1, 0], [0, 1]], 2, 2)),
    (constructions.marginals_any([[1, 0, 1], [1, 1, 0]], 1), constructions.marginals_any([[1, 0, 1], [0, 0, 1]], 1)),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
@pytest.mark.parametrize(("one", "other"), HARD, ids=lambda log: str(log.window))
def test_hard_instances_are_no_worse_than_the_worst_pair(
    one: HardInstance, other: HardInstance, budget: Budget
) -> None:
    """Logs of several items, made for lower bounds, that differ in one element of their hard problem."""
    plan = plan_of(one.window.at_least(one.k), unit=one.unit, budget=budget, steps=one.horizon)
    found = audit_exactly(plan)
    mechanism = probe(plan.measurements)
    change = mechanism.answers(other.histories).sum(axis=0) - mechanism.answers(one.histories).sum(axis=0)
    moved = [
        Moved(part.law, part.scale, tuple(int(value) for value in part.apply(change[None])[0]))
        for part in mechanism.parts
    ]
    loss = pure_epsilon if mechanism.parts[0].law == LAPLACE else mu_squared
    assert found.verdict == "within the claim"
    assert 0 < loss(moved) <= loss(mechanism.moved(found.worst))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_logs_with_one_occurrence_and_with_several_are_told_apart(most: int) -> None:
    """An item may move all of its occurrences: what is charged is reached."""
    plan = plan_of(Rolling(2).occurrences(), unit=ItemLevel(), budget=PureDP(1.0), steps=4, max_occurrences=most)
    found = audit_exactly(plan)
    assert found.exhaustive
    assert found.of_certified == 1.0


# --- Broken mechanisms ----------------------------------------------------------------------------------------------


@pytest.mark.quick(13)
@pytest.mark.search(16)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.parametrize("budget", [*BUDGETS, ApproxDP(0.3, 0.05)], ids=str)
@pytest.mark.parametrize("window", [Cumulative(), Rolling(2), AnyWindow(2)], ids=str)
def test_half_the_noise_is_flagged(window: WindowFamily, unit: Unit, budget: Budget) -> None:
    plan = plan_of(window.at_least(2), unit=unit, budget=budget, steps=4)
    (allotment,) = plan.allotments
    halved = replace(allotment.measurement, scale=allotment.measurement.scale / 2)
    assert audit_measurements([allotment.measurement], budget, unit).verdict == "within the claim"
    found = audit_measurements([halved], budget, unit)
    assert found.verdict == "beyond the claim"
    assert found.loss.bounds.low > found.loss.claimed


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
def test_a_weaker_units_noise_is_flagged(budget: Budget) -> None:
    """Item level proper under the noise of item add/remove, and of one event."""
    for window, weaker in ((Cumulative(), ItemAddRemove()), (Rolling(2), EventLevel()), (AnyWindow(), EventLevel())):
        plan = plan_of(window, unit=weaker, budget=budget, steps=4)
        measurements = plan.measurements
        assert audit_measurements(measurements, budget, weaker).verdict == "within the claim"
        assert audit_measurements(measurements, budget, ItemLevel()).verdict == "beyond the claim"


def test_two_queries_that_each_spend_the_whole_budget_are_flagged() -> None:
    for budget in BUDGETS:
        alone = [plan_of(window, unit=EventLevel(), budget=budget, steps=5) for window in (Rolling(2), Cumulative())]
        measurements = [plan.allotments[0].measurement for plan in alone]
        if len({measurement.law for measurement in measurements}) == 1:
            assert audit_measurements(measurements, budget, EventLevel()).verdict == "beyond the claim"


def test_exact_counts_under_the_bound_of_at_least_counts_are_flagged() -> None:
    """Exactly k needs two thresholds; the noise of one is not enough for both."""
    for budget in BUDGETS:
        for window in (Cumulative(), AnyWindow()):
            # A filter over gaps has no bound for two thresholds at all.
            strategy = "crossed-counters" if isinstance(window, AnyWindow) else "auto"
            plan = plan_of(window.at_least(1), unit=ItemLevel(), budget=budget, steps=5, strategy=strategy)
            one = plan.allotments[0].measurement
            problem = replace(one.design.problem, thresholds=(1, 2))
            both = replace(one, design=replace(one.design, problem=problem))
            assert audit_measurements([both], budget, ItemLevel()).verdict == "beyond the claim"


def test_the_papers_cumulative_factor_is_flagged() -> None:
    """A moved point is two changes; the printed proof allows for one."""
    for unit in (EventLevel(), ItemLevel()):
        for budget in (PureDP(1.0), ApproxDP(0.1, 1e-3)):
            plan = plan_of(Cumulative(), unit=unit, budget=budget, steps=8, strategy="paper")
            honest = plan.allotments[0].measurement
            assert audit_measurements([honest], budget, unit).verdict == "within the claim"
            halved = replace(honest, scale=honest.scale / 2)
            assert audit_measurements([halved], budget, unit).verdict == "beyond the claim"


@dataclass(frozen=True)
class _FirstOrRest:
    """Step 1 moves one number by 4, step 2 ten numbers by 1: the worst pair depends on the norm."""

    problem: Problem
    strategy: str = "test"
    certificate: Certificate = field(default_factory=lambda: Certificate(10, "none", moved=11))
    proof: str = "none"
    rows: int = 11

    def encode(self, answers: ExactAnswers, k: int) -> IntArray:
        first, second = (int(value) for value in answers.rolling(k, 1))
        return np.array([4 * first, *[second] * 10])


def first_or_rest(law: Law, scale: float) -> Measurement:
    design = _FirstOrRest(Problem(Rolling(1), 2, (1,), EventLevel(), law, 1.0))
    return Measurement(design, law, scale)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scale", "verdict", "worst"),
    [(1.0, "beyond the claim", (0, 1)), (2.0, "within the claim", (0, 1)), (1.1, "beyond the claim", (0, 1))],
)
def test_laplace_noise_is_not_pure_because_the_pair_of_largest_squares_is(
    scale: float, verdict: str, worst: tuple[int, int]
) -> None:
    """At scale 1 step 1 costs epsilon 4, step 2 costs 10 and a delta far above the claim at 5."""
    found = audit_measurements([first_or_rest(LAPLACE, scale)], ApproxDP(5.0, 1e-6), EventLevel())
    assert found.verdict == verdict
    assert {found.worst.log, found.worst.neighbour} == {(0, 0), worst}


def test_laplace_noise_that_is_not_pure_is_judged_by_the_largest_squares() -> None:
    """Every number of step 2 is one of ten parts, and step 1 is the larger square."""
    found = audit_measurements([first_or_rest(LAPLACE, 20.0)], ApproxDP(0.4, 0.9), EventLevel())
    assert found.verdict == "within the claim"
    assert found.loss.name == "delta"


@pytest.mark.parametrize(
    ("measurements", "budget"),
    [
        ([first_or_rest(GAUSSIAN, 20.0)], PureDP(1.0)),
        ([first_or_rest(LAPLACE, 3.0)], dw.ZCDP(0.6)),
        ([first_or_rest(LAPLACE, 300.0), first_or_rest(GAUSSIAN, 300.0)], ApproxDP(1.0, 1e-6)),
        ([], PureDP(1.0)),
    ],
)
def test_noise_without_a_guarantee_of_the_claims_kind_is_refused(
    measurements: list[Measurement], budget: Budget
) -> None:
    with pytest.raises(InputError, match=r"no guarantee|one law"):
        audit_measurements(measurements, budget, EventLevel())


@dataclass(frozen=True)
class _Crooked(Design):
    """Measures squares of answers."""

    def encode(self, answers: object, k: int) -> IntArray:
        return np.asarray(super().encode(answers, k) ** 2)  # type: ignore[arg-type]


def test_what_is_no_linear_map_is_refused() -> None:
    problem = Problem(Rolling(1), 3, (1,), EventLevel(), LAPLACE, 1.0)
    measurement = Measurement(_Crooked(problem, Series(Identity()), "test"), LAPLACE, 1.0)
    with pytest.raises(EngineError, match="no linear map"):
        audit_measurements([measurement], PureDP(1.0), EventLevel())


def test_what_is_too_large_to_be_read_is_refused() -> None:
    plan = plan_of(AnyWindow(), unit=EventLevel(), budget=dw.ZCDP(1.0), steps=120)
    with pytest.raises(InputError, match="fewer steps"):
        audit_exactly(plan)


# --- Neighbours -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [*UNITS, ItemPerPeriod(1), ItemPerPeriod(9)], ids=lambda unit: unit.name)
@pytest.mark.parametrize(("steps", "groups", "most"), [(1, 1, 1), (3, 1, 2), (4, 1, 1), (3, 2, 1)])
def test_pairs_are_all_neighbours_and_only_these(unit: Unit, steps: int, groups: int, most: int) -> None:
    """Changes of group among them: a step has a number for each group."""
    histories = Histories(steps, most, groups)
    found = set()
    for first, second in histories.pairs(unit, np.arange(histories.count)):
        pairs = zip(histories.read(first).tolist(), histories.read(second).tolist(), strict=True)
        found |= {frozenset((tuple(one), tuple(other))) for one, other in pairs}

    def are(one: IntArray, other: IntArray) -> bool:
        changed = np.flatnonzero((one != other).reshape(steps, groups).any(axis=1))
        match unit:
            case EventLevel():
                return int(abs(one - other).sum()) == 1
            case ItemPerPeriod(steps=period):
                return bool(len(changed)) and changed[-1] - changed[0] < period
            case ItemAddRemove():
                return not one.any() or not other.any()
        return len(changed) > 0

    logs = list(itertools.product(range(most + 1), repeat=steps * groups))
    pairs_of_logs = itertools.combinations(logs, 2)
    wanted = {frozenset((one, other)) for one, other in pairs_of_logs if are(np.array(one), np.array(other))}
    assert {pair for pair in found if len(pair) == 2} == wanted
    assert len(found) <= histories.count_pairs(unit, histories.count)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_what_a_search_edits_stays_a_pair_of_neighbours(unit: Unit) -> None:
    rng = np.random.default_rng(0)
    for change in changes(unit, 6):
        log, other = rng.integers(0, 3, size=(2, 6))
        one, neighbour = change.realise(log, other)
        outside = (np.arange(6) < change.low) | (np.arange(6) >= change.high)
        assert np.array_equal(one[outside], neighbour[outside])
        if isinstance(unit, EventLevel):
            assert abs(neighbour - one).sum() == 1
        if isinstance(unit, ItemAddRemove):
            assert not one.any()
        if isinstance(unit, ItemPerPeriod):
            assert (one != neighbour).sum() <= 2


def test_a_unit_that_is_not_known_is_refused() -> None:
    class Other(Unit):
        name = "other"

    with pytest.raises(InputError, match="other"):
        changes(Other(), 3)


def test_a_picture_shows_both_logs_and_where_they_differ() -> None:
    picture = Pair((0, 1, 2, 0), (0, 1, 3, 0)).picture()
    assert picture.splitlines() == [
        "from step 1",
        "log         .12.",
        "neighbour   .13.",
        "changed       ^",
    ]
    wide = Pair((0,) * 50, (12,) + (0,) * 49).picture(width=60)
    assert [line for line in wide.splitlines() if line.startswith("from")] == [
        "from step 1",
        "from step 17",
        "from step 33",
        "from step 49",
    ]
    assert " 12" in wide


# What is asked in how many steps, and the least share of the truth that a search finds.
SEARCHED: list[tuple[Any, Unit, int, float, dict[str, Any]]] = [
    *((asked, unit, 6, 0.95, {}) for unit in UNITS for asked in (Cumulative(), Rolling(3).at_least(2), AnyWindow())),
    *((Rolling(2), unit, 4, 0.9, {"group_of": of, "max_groups": limit, **BY}) for unit, of, limit in IN_GROUPS),
]


@pytest.mark.quick(2)
@pytest.mark.search(12)
@pytest.mark.parametrize(("asked", "unit", "steps", "least", "groups"), SEARCHED, ids=str)
@pytest.mark.parametrize("budget", [PureDP(1.0), dw.ZCDP(0.5)], ids=lambda budget: budget.kind)
def test_the_search_finds_what_enumeration_does(
    asked: Any, unit: Unit, steps: int, least: float, groups: dict[str, Any], budget: Budget
) -> None:
    plan = plan_of(asked, unit=unit, budget=budget, steps=steps, **groups)
    mechanism, exact = probe(plan.measurements), audit_exactly(plan)
    gaussian = mechanism.parts[0].law == GAUSSIAN
    pair, tried = search(mechanism, unit, 2 if gaussian else 1, seed=1)
    loss = mu_squared if gaussian else pure_epsilon
    assert tried > 500
    assert exact.exhaustive
    worst = loss(mechanism.moved(exact.worst))
    assert least * worst <= loss(mechanism.moved(pair)) <= worst


def test_long_horizons_are_searched_and_say_so() -> None:
    plan = plan_of(Rolling(7).at_least(2), unit=ItemLevel(), budget=dw.ZCDP(0.5), steps=30)
    found = audit_exactly(plan)
    assert not found.exhaustive
    assert found.verdict == "within the claim"
    assert found.of_certified > 0.8
    assert "search" in found.to_dict()["compared"]
    halved = [replace(one.measurement, scale=one.measurement.scale / 2) for one in plan.allotments]
    assert audit_measurements(halved, dw.ZCDP(0.5), ItemLevel()).verdict == "beyond the claim"


# --- Losses ---------------------------------------------------------------------------------------------------------


def _law(law: Law, scale: float, support: FloatArray) -> FloatArray:
    weights = np.exp(-(support**2) / (2 * scale**2)) if law == GAUSSIAN else np.exp(-abs(support) / scale)
    return np.asarray(weights / weights.sum())


def _hockey_stick(law: Law, scale: float, change: tuple[int, ...], epsilon: float) -> float:
    """By summation over a piece of the lattice that holds all but 1e-12 of both laws."""
    reach = math.ceil(8 * scale if law == GAUSSIAN else 32 * scale) + max(map(abs, change))
    support = np.arange(-reach, reach + 1, dtype=np.float64)
    one, other = np.ones(1), np.ones(1)
    for d in change:
        one = np.multiply.outer(one, _law(law, scale, support)).ravel()
        other = np.multiply.outer(other, _law(law, scale, support - d)).ravel()
    return float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())


@pytest.mark.parametrize("change", [(1,), (4,), (-2, 1), (1, 1)], ids=str)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("scale", [0.8, 2.5, 12.0])
def test_deltas_hold_what_summation_gives(change: tuple[int, ...], epsilon: float, scale: float) -> None:
    at = Fraction(epsilon)
    true = _hockey_stick(GAUSSIAN, scale, change, epsilon)
    bounds = gaussian_delta([Moved(GAUSSIAN, scale, change)], at)
    assert bounds.low - 1e-11 <= true <= bounds.high + 1e-11
    # The gap closes as the lattice gets finer: it is the lattice's, not the bounds'.
    fine = gaussian_delta([Moved(GAUSSIAN, scale * 2**24, tuple(d * 2**24 for d in change))], at)
    assert fine.high - fine.low < 1e-6
    exact = laplace_delta([Moved(LAPLACE, scale, change)], at)
    assert exact.high - exact.low < 1e-12
    assert exact.high == pytest.approx(_hockey_stick(LAPLACE, scale, change, epsilon), abs=1e-10)


def test_the_pure_loss_is_where_delta_vanishes() -> None:
    moved = [Moved(LAPLACE, 3.0, (1, -2, 0))]
    assert pure_epsilon(moved) == 1
    above, below = (laplace_delta(moved, Fraction(at)) for at in (1.0, 0.99))
    assert above.low == 0.0
    assert above.high < 1e-30
    assert below.low > 1e-4


def test_nothing_moved_is_nothing_lost() -> None:
    still = [Moved(GAUSSIAN, 3.0, (0, 0))]
    assert gaussian_delta(still, Fraction(0)) == Bounds(0.0, 0.0)
    assert laplace_delta([Moved(LAPLACE, 3.0, (0,))], Fraction(0)) == Bounds(0.0, 0.0)
    assert mu_squared(still) == pure_epsilon(still) == 0


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.6])
def test_laplace_losses_of_several_scales_are_bounded_on_a_grid(epsilon: float) -> None:
    moved = [Moved(LAPLACE, 3.0, (1, 1)), Moved(LAPLACE, 7.5, (2,))]
    support = np.arange(-250, 251, dtype=np.float64)
    one, other = np.ones(1), np.ones(1)
    for d, scale in ((1, 3.0), (2, 7.5)):
        one = np.multiply.outer(one, _law(LAPLACE, scale, support)).ravel()
        other = np.multiply.outer(other, _law(LAPLACE, scale, support - d)).ravel()
    # The second number of the first part moves by 1 as well: its loss is one of two values, with these probabilities.
    q = math.exp(-1 / 3.0)
    true = sum(
        float(np.maximum(p * one - math.exp(epsilon) * r * other, 0.0).sum())
        for p, r in ((1 / (1 + q), q / (1 + q)), (q / (1 + q), 1 / (1 + q)))
    )
    found = laplace_delta(moved, Fraction(epsilon))
    assert found.low <= true + 1e-12
    assert true - 1e-12 <= found.high <= found.low + 2e-3


def test_large_laplace_losses_are_bounded_on_a_grid() -> None:
    """A change of 100,000 at scale 100,000 is all but that of the continuous law."""
    found = laplace_delta([Moved(LAPLACE, 1e5, (100_000,))], Fraction(1, 2))
    continuous = 1 - math.exp((0.5 - 1) / 2)
    assert found.low <= continuous <= found.high <= found.low + 1e-3


@pytest.mark.parametrize("rho", [0.01, 0.1, 2.0])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_concentrated_deltas_are_above_the_gaussian_one(rho: float, epsilon: float) -> None:
    concentrated = concentrated_delta(Fraction(rho), Fraction(epsilon))
    gaussian = analytic_delta(2 * Fraction(rho), Fraction(0), Fraction(epsilon))
    assert gaussian < concentrated
    # The older conversion is weaker.
    gap = (epsilon - rho) ** 2 / (4 * rho) if epsilon > rho else 0.0
    assert concentrated <= math.exp(-gap) * (1 + 1e-9)


def test_epsilon_is_read_off_the_curve() -> None:
    squared = Fraction(1)
    epsilon = epsilon_at(0.05, lambda at: analytic_delta(squared, Fraction(0), at))
    assert analytic_delta(squared, Fraction(0), Fraction(epsilon)) <= 0.05
    assert analytic_delta(squared, Fraction(0), Fraction(epsilon - 1e-6)) > 0.05
