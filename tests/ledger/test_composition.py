"""Adaptive composition: exact sums, the proved conversion, and an adversary that chooses after seeing answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise

import mpmath  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, PureDP, exact
from dpwindows.ledger.composition import Account, CannotComposeError, Charge, account_for, conversion_order, renyi_cap

# The losses of a mechanism with finitely many outcomes, under one of the two logs: pairs of probability and loss.
Losses = list[tuple[float, float]]


def _pure(epsilon: float) -> Losses:
    likely = 1 / (1 + math.exp(-epsilon))
    return [(likely, epsilon), (1 - likely, -epsilon)]


def _approximate(epsilon: float, delta: float) -> Losses:
    return [(delta, math.inf), *((probability * (1 - delta), loss) for probability, loss in _pure(epsilon))]


def _gaussian(rho: float) -> Losses:
    """A Gaussian answer sorted into bins, which is a post-processing of it."""
    shift = math.sqrt(2 * rho)
    edges = [-math.inf, *(shift + x for x in (-2, -1.2, -0.5, 0, 0.5, 1, 1.4, 1.8, 2.2, 2.6, 3, 3.5)), math.inf]
    bins = [
        (norm.cdf(high - shift) - norm.cdf(low - shift), norm.cdf(high) - norm.cdf(low))
        for low, high in pairwise(edges)
    ]
    return [(p, math.log(p / q)) for p, q in bins]


def _worst(budget: ApproxDP, start: Account, moves: list[tuple[Budget, Losses]], rounds: int) -> float:
    """The largest delta at the budget's epsilon that an adversary reaches who picks each move after seeing the last."""

    @cache
    def after(account: Account, move: int) -> Account | None:
        try:
            moved = account.plus(Charge.of(moves[move][0]))
        except CannotComposeError:
            return None
        return moved if moved.within else None

    @cache
    def value(account: Account, loss: float, left: int) -> float:
        best = max(0.0, 1 - math.exp(min(0.0, budget.epsilon - loss)))
        if left == 0 or math.isinf(loss):
            return best
        for move, (_, losses) in enumerate(moves):
            if (moved := after(account, move)) is not None:
                best = max(best, sum(p * value(moved, loss + one, left - 1) for p, one in losses))
        return best

    return value(start, 0.0, rounds)


@dataclass(frozen=True)
class _Hindsight(Account):
    """The rule that looks safe and is not: whatever conversion suits the charges made so far, with the delta left."""

    def plus(self, charge: Charge, times: int = 1) -> Account:
        spent = self.spent
        return _Hindsight(
            self.total,
            Charge(
                spent.epsilon + times * charge.epsilon,
                spent.delta + times * charge.delta,
                spent.rho + times * charge.rho,
            ),
        )

    @property
    def within(self) -> bool:
        left = Charge(self.total.epsilon - self.spent.epsilon, self.total.delta - self.spent.delta)
        if min(left.epsilon, left.delta) < 0 or not self.spent.rho:
            return min(left.epsilon, left.delta) >= 0
        if not left.delta:
            return False
        return self.spent.rho * conversion_order(left.epsilon, left.delta) <= renyi_cap(
            left.epsilon, left.delta, conversion_order(left.epsilon, left.delta)
        )


TOTAL = ApproxDP(1.0, 0.01)


def _moves() -> list[tuple[Budget, Losses]]:
    opened = exact(TOTAL.epsilon), exact(TOTAL.delta)
    order = conversion_order(*opened)
    most = float(renyi_cap(*opened, order) / order)
    rhos = [round(most * part, 4) for part in (0.25, 0.5, 0.72)]
    return [
        *((ZCDP(rho), _gaussian(rho)) for rho in rhos),
        (PureDP(0.2), _pure(0.2)),
        (PureDP(0.5), _pure(0.5)),
        (ApproxDP(1e-9, 0.009), _approximate(1e-9, 0.009)),
        (ApproxDP(0.3, 0.003), _approximate(0.3, 0.003)),
    ]


def test_an_adaptive_adversary_stays_within_the_total() -> None:
    # Most of the total is reached, so the adversary is no straw man.
    assert 0.9 * TOTAL.delta <= _worst(TOTAL, account_for(TOTAL), _moves(), 4) <= TOTAL.delta


def test_the_same_adversary_beats_a_conversion_chosen_in_hindsight() -> None:
    # So the search above is strong enough to notice, and the rule strict for a reason.
    assert _worst(TOTAL, _Hindsight(Charge.of(TOTAL)), _moves(), 3) > 1.05 * TOTAL.delta


def _account(total: Budget, *charged: Budget) -> Account:
    account = account_for(total)
    for budget in charged:
        account = account.plus(Charge.of(budget))
    return account


def test_budgets_are_the_decimals_they_are_written_as() -> None:
    # In binary 3 * 0.1 > 0.3 and 10 * 0.1 > 1.
    assert _account(PureDP(1.0), *[PureDP(0.1)] * 10).within
    assert not _account(PureDP(1.0), *[PureDP(0.1)] * 10, PureDP(1e-300)).within
    assert _account(PureDP(0.3), *[PureDP(0.1)] * 3).left.epsilon == 0
    assert _account(ZCDP(0.7), *[ZCDP(0.07)] * 10).left.rho == 0
    assert exact(10**400 // 10**390) == 10**10
    assert exact(1e-6) == Fraction(1, 10**6)


decimals = st.integers(1, 10**6).map(lambda numerator: numerator / 10**4)


@given(decimals, st.lists(decimals, max_size=8))
def test_pure_and_rho_totals_add_up_exactly(total: float, parts: list[float]) -> None:
    scaled = [round(part * 10**4) for part in parts]
    pure = _account(PureDP(total), *map(PureDP, parts))
    assert pure.within == (sum(scaled) <= round(total * 10**4))
    assert pure.left.epsilon == Fraction(round(total * 10**4) - sum(scaled), 10**4)
    rho = _account(ZCDP(total), *(PureDP(part) if i % 2 else ZCDP(part) for i, part in enumerate(parts)))
    halves = sum((scaled[i] ** 2 if i % 2 else 2 * 10**4 * scaled[i]) for i in range(len(scaled)))
    assert rho.left.rho == Fraction(round(total * 10**4), 10**4) - Fraction(halves, 2 * 10**8)


@given(decimals, st.integers(1, 999), st.lists(st.tuples(decimals, st.integers(0, 400)), max_size=8))
def test_epsilons_and_deltas_add_up_exactly(total: float, delta: int, parts: list[tuple[float, int]]) -> None:
    budgets = [ApproxDP(part, d / 1000) if d else PureDP(part) for part, d in parts]
    account = _account(ApproxDP(total, delta / 1000), *budgets)
    left = account.left
    assert left.delta == Fraction(delta - sum(d for _, d in parts), 1000)
    assert left.epsilon == Fraction(round(total * 10**4) - sum(round(part * 10**4) for part, _ in parts), 10**4)
    assert account.within == (min(left.delta, left.epsilon) >= 0)


@given(decimals, st.integers(1, 10))
def test_alike_charges_may_be_added_at_once(part: float, times: int) -> None:
    for total in (PureDP(5.0), ZCDP(5.0), ApproxDP(5.0, 1e-6)):
        charge = Charge.of(PureDP(part))
        one_by_one = account_for(total)
        for _ in range(times):
            one_by_one = one_by_one.plus(charge)
        assert account_for(total).plus(charge, times) == one_by_one
    shared = account_for(ApproxDP(5.0, 1e-6)).plus(Charge.of(ZCDP(0.01)))
    assert shared.plus(charge, 2) == shared.plus(charge).plus(charge)


BUDGETS = [(1.0, 1e-6), (0.1, 1e-9), (10.0, 1e-5), (1e-4, 1e-3), (1e6, 1e-6), (1e-3, 1e-300), (3.0, 0.5), (1e12, 1e-9)]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_conversion_is_proved_and_tight(epsilon: float, delta: float) -> None:
    """Checked in another arithmetic: the cap implies delta, and no order allows noticeably more rho."""
    opened = exact(epsilon), exact(delta)
    order = conversion_order(*opened)
    with mpmath.workdps(120):

        def log_delta(a: mpmath.mpf, divergence: mpmath.mpf) -> mpmath.mpf:
            return (a - 1) * (divergence - mpmath.mpf(epsilon)) + a * mpmath.log(1 - 1 / a) - mpmath.log(a - 1)

        def rho(log_order: float) -> mpmath.mpf:
            a = 1 + mpmath.exp(log_order)
            log_c = a * mpmath.log(1 - 1 / a) - mpmath.log(a - 1)
            return (mpmath.mpf(epsilon) - (log_c - mpmath.log(delta)) / (a - 1)) / a

        a = mpmath.mpf(order.numerator) / order.denominator
        cap = renyi_cap(*opened, order)
        reached = log_delta(a, mpmath.mpf(cap.numerator) / cap.denominator)
        # The decimal and the binary delta differ in the 17th digit.
        assert mpmath.log(delta) * (1 if delta > 0.1 else 1 + mpmath.mpf(10) ** -14) - 1e-14 <= reached
        assert reached <= mpmath.log(delta) + mpmath.mpf(10) ** -13 * max(1, epsilon)
        centre = float(mpmath.log(a - 1))
        best = max(rho(centre + step / 50) for step in range(-500, 501))
        assert 0 < mpmath.mpf(cap.numerator) / cap.denominator / a <= best * (1 + mpmath.mpf(10) ** -12)
        assert mpmath.mpf(cap.numerator) / cap.denominator / a >= best * mpmath.mpf("0.998")


def test_rho_and_epsilon_share_a_converted_total() -> None:
    total = ApproxDP(1.0, 1e-6)
    shared = account_for(total).plus(Charge.of(ZCDP(0.01)))
    assert shared.within
    assert shared.left.delta == 0
    before = shared.left.rho
    after = shared.plus(Charge.of(PureDP(0.05)))
    # A small epsilon counts as epsilon^2 / 2, and never more than itself at the order of the conversion.
    assert before - after.left.rho == Fraction(1, 800)
    assert shared.left.epsilon - shared.plus(Charge.of(PureDP(0.5))).left.epsilon == Fraction(1, 2)
    assert not after.plus(Charge(rho=after.left.rho + Fraction(1, 10**30))).within
    assert after.plus(Charge(rho=after.left.rho)).within
    # What was spent before the first rho counts as it is.
    late = account_for(total).plus(Charge.of(PureDP(0.1))).plus(Charge.of(ZCDP(0.01)))
    assert late.left.rho < after.left.rho


REFUSED = [
    (PureDP(1.0), ApproxDP(0.1, 1e-9), "pure"),
    (PureDP(1.0), ZCDP(0.1), "pure"),
    (ZCDP(1.0), ApproxDP(0.1, 1e-9), "rho"),
]


@pytest.mark.parametrize(("total", "charge", "said"), REFUSED)
def test_kinds_that_do_not_compose_are_refused(total: Budget, charge: Budget, said: str) -> None:
    with pytest.raises(CannotComposeError, match=said):
        account_for(total).plus(Charge.of(charge))


def test_no_delta_is_taken_after_the_first_rho_and_no_rho_without_delta() -> None:
    total = ApproxDP(1.0, 1e-6)
    with pytest.raises(CannotComposeError, match="set aside"):
        _account(total, ZCDP(0.001), ApproxDP(0.1, 1e-9))
    with pytest.raises(CannotComposeError, match="none is left"):
        _account(total, ApproxDP(0.1, 1e-6), ZCDP(0.001))


@pytest.mark.parametrize("total", [PureDP(1.0), ZCDP(1.0), ApproxDP(1.0, 1e-6)], ids=str)
def test_a_total_that_is_exceeded_says_so(total: Budget) -> None:
    """Each kind by the part that it is a total of."""
    parts: list[Budget] = [total]
    if isinstance(total, ApproxDP):
        parts = [ApproxDP(1.0, 1e-9), ApproxDP(0.1, 1e-6)]
    for part in parts:
        once = account_for(total).plus(Charge.of(part))
        assert once.within
        assert not once.plus(Charge.of(part)).within


def test_the_first_rho_charges_may_be_alike_too() -> None:
    account = account_for(ApproxDP(1.0, 1e-6))
    rho = Charge(rho=Fraction(1, 500))
    assert account.plus(rho, 3) == account.plus(rho).plus(rho).plus(rho)


@pytest.mark.parametrize("order", [Fraction(101, 100), Fraction(3, 2), Fraction(2), Fraction(22), Fraction(10**6)])
def test_the_cap_is_rounded_down(order: Fraction) -> None:
    """To the last digit: against the formula in far more digits than the bound is computed with."""
    with mpmath.workdps(400):
        for epsilon, delta in [(Fraction(1), Fraction(1, 10**6)), (Fraction(1, 7), Fraction(1, 3))]:
            a = mpmath.mpf(order.numerator) / order.denominator
            log_c = a * mpmath.log(1 - 1 / a) - mpmath.log(a - 1)
            log_delta = mpmath.log(mpmath.mpf(delta.numerator) / delta.denominator)
            exact_cap = mpmath.mpf(epsilon.numerator) / epsilon.denominator - (log_c - log_delta) / (a - 1)
            cap = renyi_cap(epsilon, delta, order)
            below = exact_cap - mpmath.mpf(cap.numerator) / cap.denominator
            assert 0 <= below <= mpmath.mpf(2) ** -200 * (1 + abs(exact_cap))


# A ledger works its order out anew whenever it is read: another order would change what is spent in it.
ORDERS = [
    ("1", "1e-6", Fraction(22)),
    ("0.5", "1e-9", Fraction(65)),
    ("3", "1e-5", Fraction(15, 2)),
    ("8", "0.5", Fraction(81, 64)),
    ("0.001", "1e-12", Fraction(32769)),
]


@pytest.mark.parametrize(("epsilon", "delta", "order"), ORDERS)
def test_the_order_of_ledgers_written_before_stays(epsilon: str, delta: str, order: Fraction) -> None:
    assert conversion_order(Fraction(epsilon), Fraction(delta)) == order


def test_budgets_beyond_all_use_have_an_order_too() -> None:
    """A tiny epsilon wants an order of about its inverse: the search must reach that far."""
    epsilon, delta = Fraction(1, 10**30), Fraction(1, 10**40)
    order = conversion_order(epsilon, delta)
    assert 10**30 < order < 10**33
    assert renyi_cap(epsilon, delta, order) > 0


def test_budgets_that_nobody_proved_anything_of_are_refused() -> None:
    for ask in (Charge.of, account_for):
        with pytest.raises(ValueError, match="unknown budget"):
            ask(Budget())
