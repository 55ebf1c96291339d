"""Budgets into noise scales: against dp-accounting, and against sums over the discrete laws at 60 digits."""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import FrameType
from typing import Any

import dp_accounting
import flint
import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from mpmath import mp

from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, EventLevel, PureDP
from dpwindows.ask.queries import Cumulative, Rolling
from dpwindows.ask.timeline import Timeline
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, BudgetExceededError, Cost, Law, certify, floor_of
from dpwindows.plan.plan import Plan
from dpwindows.reading.noise_moments import noise_variance
from dpwindows.strategies.search.noise_scales import laws_for, scales, unit_scale

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
DELTAS = (1e-12, 1e-9, 1e-6, 1e-3, 0.1)
GRID = [ApproxDP(epsilon, delta) for epsilon, delta in itertools.product(EPSILONS, DELTAS)]
FINE = 1 << 60


@pytest.fixture(autouse=True)
def _digits() -> None:
    mp.dps = 60


def is_certified(budget: Budget, *costs: Cost) -> bool:
    try:
        certify(budget, costs)
    except BudgetExceededError:
        return False
    return True


def gaussian_delta(epsilon: float, mu: mpmath.mpf) -> mpmath.mpf:
    """delta of the continuous Gaussian mechanism, by Balle and Wang's formula."""
    e = mpmath.mpf(epsilon)
    return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


# --- Gaussian noise under (epsilon, delta) ----------------------------------------------------------------------------


@pytest.mark.parametrize("budget", GRID, ids=str)
def test_scales_agree_with_dp_accounting_on_a_fine_lattice(budget: ApproxDP) -> None:
    (scale,) = scales(budget, GAUSSIAN, [FINE**2], [1.0], [1000])
    theirs = float(dp_accounting.get_sigma_gaussian(budget.epsilon, budget.delta))
    ours = scale / FINE
    # Theirs is a floating root to within 1e-12 or so; ours may not be smaller beyond that.
    assert theirs * (1 - 1e-9) <= ours <= theirs * (1 + 1e-6)


@pytest.mark.parametrize("budget", GRID, ids=str)
def test_the_scale_found_is_the_least_that_is_certified(budget: ApproxDP) -> None:
    (scale,) = scales(budget, GAUSSIAN, [FINE**2], [1.0], [7])
    assert is_certified(budget, Cost(GAUSSIAN, FINE**2, scale, 7))
    assert not is_certified(budget, Cost(GAUSSIAN, FINE**2, scale * (1 - 1e-9), 7))


@pytest.mark.quick(5)
@pytest.mark.parametrize("budget", GRID, ids=str)
def test_delta_of_the_scale_found_at_sixty_digits(budget: ApproxDP) -> None:
    """By whichever route it was certified; computed here from the formulas alone."""
    for sensitivity, rows in ((1, 1), (1, 1000), (100, 10), (2**30, 10**5)):
        (scale,) = scales(budget, GAUSSIAN, [sensitivity], [1.0], [rows])
        analytic, concentrated = _deltas(budget.epsilon, sensitivity, scale, rows)
        assert min(analytic, concentrated) <= budget.delta
        # And nothing much is given away. (Where delta is large and many rows are measured on a coarse lattice, the
        # search for alpha stops short; no one asks for that.)
        if budget.delta < 0.1:
            assert min(_deltas(budget.epsilon, sensitivity, scale * 0.999, rows)) > budget.delta * 0.99


def _deltas(epsilon: float, sensitivity: int, scale: float, rows: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """(analytic with the lattice term, concentrated) of one measurement."""
    squared = mpmath.mpf(sensitivity) / mpmath.mpf(scale) ** 2
    analytic = gaussian_delta(epsilon, mpmath.sqrt(squared))
    analytic += (1 + mpmath.exp(epsilon)) * rows / (24 * mpmath.mpf(scale) ** 2)
    rho = squared / 2

    def log_delta(above: Any, known: Any, log: Callable[[Any], Any]) -> Any:
        """By how far alpha is above 1."""
        return above * ((1 + above) * known - epsilon) + (1 + above) * log(above / (1 + above)) - log(above)

    # Convex in alpha: golden section on a logarithmic scale. What floats leave of it is far below what is tested.
    low, high, about = -30.0, 60.0, float(rho)
    for _ in range(90):
        left, right = low + (high - low) * 0.382, low + (high - low) * 0.618
        if log_delta(math.exp(left), about, math.log) < log_delta(math.exp(right), about, math.log):
            high = right
        else:
            low = left
    return analytic, mpmath.exp(log_delta(mpmath.exp(low), rho, mpmath.log))


def test_the_lattice_term_is_charged() -> None:
    """A coarse lattice with many rows: the continuous mechanism alone would pass at a scale that is refused."""
    budget, sensitivity, rows = ApproxDP(1.0, 1e-3), 400, 20
    (scale,) = scales(budget, GAUSSIAN, [sensitivity], [1.0], [rows])
    mu = mpmath.sqrt(sensitivity) / mpmath.mpf(scale)
    alone = gaussian_delta(1.0, mu)
    eta = mpmath.mpf(rows) / (24 * mpmath.mpf(scale) ** 2)
    for factor in (1, 0.97, 0.95, 0.9):
        smaller = scale * factor
        analytic, concentrated = _deltas(1.0, sensitivity, smaller, rows)
        assert is_certified(budget, Cost(GAUSSIAN, sensitivity, smaller, rows)) == (
            min(analytic, concentrated) <= budget.delta
        )
    continuous = float(dp_accounting.get_sigma_gaussian(1.0, 1e-3)) * 20
    assert not is_certified(budget, Cost(GAUSSIAN, sensitivity, continuous * 1.0001, rows))
    # Adding eta without its growth by 1 + e^epsilon would certify a scale that is refused here.
    too_small = _scale_for(lambda s: _analytic(sensitivity, s) + rows / (24 * s**2), 1e-3)
    assert alone + eta < budget.delta
    assert not is_certified(budget, Cost(GAUSSIAN, sensitivity, too_small * 1.0001, rows))


def _analytic(sensitivity: int, scale: float) -> float:
    return float(gaussian_delta(1.0, mpmath.sqrt(sensitivity) / mpmath.mpf(scale)))


def _scale_for(delta: object, wanted: float) -> float:
    assert callable(delta)
    low, high = 1.0, 1e6
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if delta(middle) > wanted else (low, middle)
    return high


def test_rows_are_charged_wherever_the_analytic_route_is_used() -> None:
    budget = ApproxDP(1.0, 1e-6)
    sizes = [scales(budget, GAUSSIAN, [1 << 40], [1.0], [rows])[0] for rows in (1, 10**4, 10**6, 10**8)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    # The concentrated route knows no rows, and bounds what a coarse lattice can cost.
    assert sizes[-1] <= sizes[0] * 1.08


@pytest.mark.parametrize("scale", [0.2, 0.25, 0.3, 0.5, 0.8, 1.0, 1.7, 3.0, 10.0, 50.0])
def test_lattice_lemma_by_direct_summation(scale: float) -> None:
    """The discrete Gaussian is within total variation 1 / (24 s^2) of the rounded continuous one."""
    s = mpmath.mpf(scale)
    span = int(14 * scale) + 6
    weights = [mpmath.exp(-mpmath.mpf(x * x) / (2 * s * s)) for x in range(-span, span + 1)]
    total = mpmath.fsum(weights)
    half = mpmath.mpf(1) / 2
    rounded = [mpmath.ncdf((x + half) / s) - mpmath.ncdf((x - half) / s) for x in range(-span, span + 1)]
    distance = mpmath.fsum(abs(w / total - r) for w, r in zip(weights, rounded, strict=True)) / 2
    assert distance <= 1 / (24 * s * s)
    if scale >= 3:
        assert distance >= 1 / (24 * s * s) * mpmath.mpf("0.45")


def discrete_delta(law: Law, scale: float, shift: int, epsilon: float) -> mpmath.mpf:
    """delta(epsilon) between the discrete law and itself shifted, by summation."""
    s, e = mpmath.mpf(scale), mpmath.exp(mpmath.mpf(epsilon))
    span = int((30 if law == GAUSSIAN else 200) * scale) + 2 * shift + 20

    def weight(x: int) -> mpmath.mpf:
        return mpmath.exp(-mpmath.mpf(x * x) / (2 * s * s)) if law == GAUSSIAN else mpmath.exp(-mpmath.mpf(abs(x)) / s)

    weights = {x: weight(x) for x in range(-span, span + shift + 1)}
    total = mpmath.fsum(weights[x] for x in range(-span, span + 1))
    return (
        mpmath.fsum(max(mpmath.mpf(0), weights[x] - e * weights[x - shift]) for x in range(shift - span, span)) / total
    )


@pytest.mark.quick(17)
@pytest.mark.parametrize("shift", [1, 2, 5, 13])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_the_discrete_gaussian_itself_keeps_the_budget(shift: int, epsilon: float, delta: float) -> None:
    """The noise that is really drawn, on one number moved by an integer shift: no continuous law is involved."""
    (scale,) = scales(ApproxDP(epsilon, delta), GAUSSIAN, [shift**2], [1.0], [1])
    if scale <= 150:
        assert discrete_delta(GAUSSIAN, scale, shift, epsilon) <= delta


@pytest.mark.parametrize(("shift", "scale"), [(1, 0.3), (1, 0.9), (2, 1.5), (3, 8.0)])
def test_no_budget_is_certified_that_the_discrete_gaussian_breaks(shift: int, scale: float) -> None:
    for epsilon in (0.05, 0.3, 1.0, 3.0):
        true = discrete_delta(GAUSSIAN, scale, shift, epsilon)
        for delta in (true * mpmath.mpf("0.99"), true / 2):
            if 1e-300 < delta < 1:
                assert not is_certified(ApproxDP(epsilon, float(delta)), Cost(GAUSSIAN, shift**2, scale, 1))


@pytest.mark.parametrize(("shift", "epsilon"), [(1, 0.5), (1, 3.0), (4, 1.0)])
def test_the_discrete_laplace_itself_is_pure(shift: int, epsilon: float) -> None:
    (scale,) = scales(PureDP(epsilon), LAPLACE, [shift], [1.0], [1])
    assert discrete_delta(LAPLACE, scale, shift, epsilon) == 0
    assert discrete_delta(LAPLACE, scale, shift, epsilon * 0.999) > 0


# --- Exact rationals: zCDP and Laplace --------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [1e-9, 0.001, 0.1, 0.5, 1.0, 7.0, 1e6])
def test_zcdp_is_exact(rho: float) -> None:
    for sensitivity in (1, 3, 10**9, 2**61 + 1):
        (scale,) = scales(ZCDP(rho), GAUSSIAN, [sensitivity], [1.0], [1])
        assert Fraction(sensitivity) / (2 * Fraction(scale) ** 2) <= Fraction(rho)
        assert scale == pytest.approx(math.sqrt(sensitivity / (2 * rho)), rel=1e-11)
        assert not is_certified(ZCDP(rho), Cost(GAUSSIAN, sensitivity, scale * (1 - 1e-9), 1))
    # On the line itself: 2 / (2 * 1) = 1, and one unit in the last place less.
    assert is_certified(ZCDP(1.0), Cost(GAUSSIAN, 2, 1.0, 10**9))
    assert not is_certified(ZCDP(1.0), Cost(GAUSSIAN, 2, float(np.nextafter(1.0, 0)), 1))
    assert not is_certified(ZCDP(float(np.nextafter(1.0, 0))), Cost(GAUSSIAN, 2, 1.0, 1))


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 3.0, 50.0])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_laplace_is_exact(epsilon: float, delta: float | None) -> None:
    budget = PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    for sensitivity in (1, 7, 10**12):
        (scale,) = scales(budget, LAPLACE, [sensitivity], [1.0], [1])
        assert Fraction(sensitivity) / Fraction(scale) <= Fraction(epsilon)
        assert scale == pytest.approx(sensitivity / epsilon, rel=1e-11)
        assert not is_certified(budget, Cost(LAPLACE, sensitivity, scale * (1 - 1e-9), 1))
    assert is_certified(PureDP(1.0), Cost(LAPLACE, 3, 3.0, 1))
    assert not is_certified(PureDP(1.0), Cost(LAPLACE, 3, float(np.nextafter(3.0, 0)), 1))


# --- Several measurements ---------------------------------------------------------------------------------------------


def test_many_laplace_measurements_cost_what_they_do_as_concentrated_noise() -> None:
    """400 numbers of which one neighbour changes each by 1: rho = 400 / (2 b^2), at any order alpha."""
    epsilon, delta = 1.0, 1e-6

    def log_delta(scale: float) -> float:
        rho, orders = 200 / scale**2, 1 + np.geomspace(1e-2, 1e4, 200_001)
        values = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
        return float(values.min())

    low, high = 20.0, 400.0
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (low, middle) if log_delta(middle) <= math.log(delta) else (middle, high)
    enough, little = (Cost(LAPLACE, 400, high * factor, 400, squared=400) for factor in (1 + 1e-6, 1 - 1e-6))
    budget = ApproxDP(epsilon, delta)
    assert enough.sensitivity / enough.scale > 3 * epsilon, "far more than they cost one by one"
    assert is_certified(budget, enough)
    assert not is_certified(budget, little)
    # Squares of every measurement, or none; and no pure guarantee.
    assert not is_certified(budget, enough, replace(enough, scale=1e9, squared=None))
    assert not is_certified(PureDP(epsilon), enough)


@pytest.mark.parametrize("least", [1e-6, 1e-30, 1e-45])
def test_many_laplace_measurements_are_concentrated_noise_under_the_least_budgets_too(least: float) -> None:
    """The order that proves it is about `1 / epsilon` there."""
    count, budget = 10**6, ApproxDP(least, least)
    cost = Cost(LAPLACE, count, 1e4 / least, count, count)
    assert is_certified(budget, cost)
    assert not is_certified(budget, replace(cost, squared=None))
    assert not is_certified(budget, replace(cost, scale=1e2 / least))


@pytest.mark.parametrize("budget", [PureDP(0.7), ApproxDP(0.7, 1e-6), ZCDP(0.2)], ids=str)
def test_shares_are_of_one_budget(budget: Budget) -> None:
    shares = [0.2, 0.3, 0.5]
    sensitivities, rows = [10**12, 10**13, 5 * 10**12], [10, 20, 30]
    for law in laws_for(budget):
        found = scales(budget, law, sensitivities, shares, rows)
        costs = [Cost(law, *each) for each in zip(sensitivities, found, rows, strict=True)]
        certify(budget, costs)
        charged = [Fraction(c.sensitivity) / Fraction(c.scale) ** (1 if law == LAPLACE else 2) for c in costs]
        for share, charge in zip(shares, charged, strict=True):
            assert float(charge / sum(charged)) == pytest.approx(share, rel=1e-9)
        for i in range(3):
            smaller = [
                Cost(law, c.sensitivity, c.scale * (1 - (1e-8 if i == j else 0)), c.rows) for j, c in enumerate(costs)
            ]
            assert not is_certified(budget, *smaller)
        assert not is_certified(budget, *costs, costs[0])


def test_gaussian_costs_add_as_one_joint_measurement() -> None:
    """Squared sensitivities over squared scales add; epsilons and deltas of the parts do not."""
    budget = ApproxDP(1.0, 1e-6)
    (one,) = scales(budget, GAUSSIAN, [4 * FINE], [1.0], [4])
    assert is_certified(budget, *[Cost(GAUSSIAN, FINE, one, 1)] * 4)
    assert not is_certified(budget, *[Cost(GAUSSIAN, FINE, one, 1)] * 5)


def test_laws_do_not_mix_and_fit_their_budgets() -> None:
    wide = {law: Cost(law, 1, 1e9, 1) for law in (GAUSSIAN, LAPLACE)}
    assert not is_certified(ApproxDP(1.0, 1e-6), *wide.values())
    assert not is_certified(PureDP(1.0), wide[GAUSSIAN])
    assert not is_certified(ZCDP(1.0), wide[LAPLACE])
    assert not is_certified(ZCDP(1.0))
    assert is_certified(ApproxDP(1.0, 1e-6), wide[LAPLACE])
    assert laws_for(PureDP(1.0)) == (LAPLACE,)
    assert laws_for(ZCDP(1.0)) == (GAUSSIAN,)
    assert set(laws_for(ApproxDP(1.0, 0.1))) == {GAUSSIAN, LAPLACE}
    with pytest.raises(ValueError, match="Laplace noise is not used"):
        scales(ZCDP(1.0), LAPLACE, [1], [1.0], [1])


@pytest.mark.parametrize(
    ("sensitivity", "scale", "rows"),
    [(1, math.nan, 1), (1, math.inf, 1), (1, 0.0, 1), (1, -1.0, 1), (-1, 1.0, 1), (1, 1.0, -1)],
)
def test_costs_that_are_none_are_refused(sensitivity: int, scale: float, rows: int) -> None:
    """A regression: a negative sensitivity would pay for others, an infinite scale would cost nothing."""
    for law in (GAUSSIAN, LAPLACE):
        with pytest.raises(ValueError, match="finite scale > 0"):
            Cost(law, sensitivity, scale, rows)


# --- The ends of the number line --------------------------------------------------------------------------------------

EXTREMES: list[Budget] = [
    *(PureDP(epsilon) for epsilon in (5e-324, 1e-300, 1e-12, 1e12, 1e300, 1.7e308)),
    *(ZCDP(rho) for rho in (5e-324, 1e-300, 1e-12, 1e12, 1e300, 1e308, 1.7e308)),
    *(
        ApproxDP(epsilon, delta)
        for epsilon in (5e-324, 1e-160, 1e-12, 700.0, 1e5, 1e12, 1e300, 1.7e308)
        for delta in (5e-324, 1e-300, 1e-6, 0.5, 1 - 2**-53)
    ),
]


def scales_or_refusal(budget: Budget, law: Law) -> list[float] | str:
    try:
        return scales(budget, law, [1 << 40, 3], [0.25, 0.75], [10, 10])
    except InputError as refusal:
        return str(refusal)


@pytest.mark.parametrize("budget", EXTREMES, ids=str)
def test_extreme_budgets_give_certified_scales_or_a_refusal(budget: Budget) -> None:
    """A regression: ApproxDP(1e-160, 1e-6) never came back, ZCDP(1e308) failed its own certificate, and twice the
    largest epsilon and a part of the least one ended in arithmetic errors.
    """
    size = budget.to_dict().get("epsilon") or budget.to_dict()["rho"]
    for law in laws_for(budget):
        found = scales_or_refusal(budget, law)
        if isinstance(found, str):
            assert "choose a larger" in found
            assert size < 1e-12
        else:
            assert all(math.isfinite(scale) and scale > 0 for scale in found)
            certify(budget, [Cost(law, 1 << 40, found[0], 10), Cost(law, 3, found[1], 10)])


@pytest.mark.quick(25)
@pytest.mark.search(29)
@pytest.mark.parametrize("budget", EXTREMES, ids=str)
def test_extreme_budgets_give_plans_or_a_refusal(budget: Budget) -> None:
    def plan() -> Plan | str:
        try:
            return Plan([Rolling(3), Cumulative()], timeline=Timeline.of_steps(9), unit=EventLevel(), budget=budget)
        except InputError as refusal:
            return str(refusal)

    found = plan()
    if isinstance(found, str):
        assert "too small" in found
    else:
        certify(budget, [allotment.measurement.cost for allotment in found.allotments])
        assert all(math.isfinite(row.max) for row in found.forecast())


@pytest.mark.parametrize("value", [10**400, 10**309, -(10**400)])
def test_integers_beyond_the_floating_range_are_refused(value: int) -> None:
    """A regression: PureDP(10**400) ended in an OverflowError."""
    for make in (PureDP, ZCDP, lambda epsilon: ApproxDP(epsilon, 1e-6)):
        with pytest.raises(InputError, match="finite and greater than 0"):
            make(value)


def test_unit_scale_is_the_noise_of_sensitivity_one() -> None:
    assert unit_scale(ApproxDP(1.0, 1e-6), GAUSSIAN) == pytest.approx(4.2246788, rel=1e-6)
    assert unit_scale(ZCDP(0.5), GAUSSIAN) == pytest.approx(1.0, rel=1e-9)
    assert unit_scale(ZCDP(0.5), GAUSSIAN, 0.25) == pytest.approx(2.0, rel=1e-9)
    assert unit_scale(PureDP(0.5), LAPLACE, 0.5) == pytest.approx(4.0, rel=1e-9)


# --- Variance of one draw ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-3, 0.02, 0.1, 0.3, 0.7, 1.0, 2.0, 2.99, 3.01, 5.0, 40.0])
def test_variance_of_one_draw_by_direct_summation(scale: float) -> None:
    s = mpmath.mpf(scale)
    for law, span in ((GAUSSIAN, int(25 * scale) + 25), (LAPLACE, int(150 * scale) + 25)):
        weights = [
            mpmath.exp(-mpmath.mpf(x * x) / (2 * s * s)) if law == GAUSSIAN else mpmath.exp(-mpmath.mpf(abs(x)) / s)
            for x in range(-span, span + 1)
        ]
        total = mpmath.fsum(weights)
        exact = mpmath.fsum(w * x * x for w, x in zip(weights, range(-span, span + 1), strict=True)) / total
        assert noise_variance(law, scale) == pytest.approx(float(exact), rel=1e-9, abs=1e-300)


def test_variance_of_wide_noise() -> None:
    assert noise_variance(GAUSSIAN, 1e15) == pytest.approx(1e30)
    assert noise_variance(LAPLACE, 1e15) == pytest.approx(2e30)
    assert noise_variance(GAUSSIAN, 1e-300) == 0
    assert noise_variance(LAPLACE, 1e-300) == 0


@pytest.mark.parametrize(
    ("sensitivity", "rows", "squared"), [(0.5, 1, None), (1, 1.0, None), (1, 1, 0.5), (-1, 1, None)]
)
def test_costs_are_whole_numbers(sensitivity: Any, rows: Any, squared: Any) -> None:
    """Numbers are measured as whole ones: what one neighbour moves by 1 must not be paid as a fraction of it."""
    with pytest.raises(ValueError, match="whole sensitivity and rows"):
        Cost(LAPLACE, sensitivity, 1.0, rows, squared)


@pytest.mark.parametrize("precision", [2, 53, 500])
@pytest.mark.parametrize("value", [Fraction(0), Fraction(7), Fraction(-7), Fraction(10**90, 7), Fraction(1, 2**9000)])
def test_whole_numbers_below_a_ball_are_so_at_any_precision(value: Fraction, precision: int) -> None:
    with flint.ctx.workprec(400):
        balls = [sign * flint.arb(flint.fmpq(value.numerator, value.denominator)) for sign in (1, -1)]
    with flint.ctx.workprec(precision):
        for sign, ball in zip((1, -1), balls, strict=True):
            least, true = floor_of(ball), math.floor(sign * value)
            assert least <= true
            assert precision < 400 or least == true


def test_another_thread_may_change_the_precision_between_any_two_steps() -> None:
    """It is one for the whole process; and numbers are made of balls after the budget is spent."""
    dice, own, found = random.Random(3), sys.gettrace(), flint.ctx.prec
    with flint.ctx.workprec(400):
        ball = flint.arb(flint.fmpq(10**90, 7))

    def change(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        if frame.f_code is not floor_of.__code__:
            return None
        frame.f_trace_opcodes = True
        flint.ctx.prec = dice.choice((53, 400))
        return change

    sys.settrace(change)
    try:
        least = [floor_of(ball) for _ in range(100)]
    finally:
        sys.settrace(own)
        flint.ctx.prec = found
    assert all(10**90 // 7 - 10**75 < one <= 10**90 // 7 for one in least)
    assert len(set(least)) == 2
