r"""The guarantee of several releases of one log together, when each may be chosen after seeing the others.

An `Account` adds up charges in the order of spending and says whether they stay within a total. Budgets, queries and
their number may depend on everything published before. A rule that holds for charges fixed beforehand need not hold
then, so each rule here comes with its proof. All sums are of exact rational numbers (`privacy.exact`); the one
logarithm is bounded from the safe side by ball arithmetic.

Notation: P and Q are the laws of the whole transcript under two neighbouring logs, `L = ln P/Q` at the transcript,
`L_i` the part of it that charge i contributes given everything before it, so `L = sum L_i`. The claims are shown for
P against Q; neighbours are symmetric.

**Total pure.** Only pure charges; epsilons add. *Proof.* `L_i <= epsilon_i` at every transcript, so `L` is at most the
sum along the path taken, which never exceeds the total.

**Total rho.** Rho charges count rho, pure ones `epsilon^2 / 2` (Bun, Steinke 2016, arXiv 1605.02065, Proposition 1.4);
approximate ones are refused: (epsilon, delta) with delta > 0 implies no zCDP. *Proof.* Given the past,
`E_P exp((a-1) L_i) <= exp((a-1) a rho_i)` for every order a > 1, so `exp((a-1) (L - a sum rho_i))` has expectation at
most 1 after each charge if it had before: it is a supermartingale although rho_i depends on the past. As
`sum rho_i <= rho` on every path, `E_P exp((a-1) L) <= exp((a-1) a rho)`. (Feldman, Zrnic 2021, arXiv 2008.11193.)

**Total (epsilon, delta), as long as no rho charge is made.** Epsilons add, and deltas add (Rogers, Roth, Ullman, Vadhan
2016, arXiv 1605.08294). *Proof* by induction on the number of charges: let S be a set of transcripts, y the first
answer, `(e, d)` its charge, which is fixed before it. What follows is `(epsilon - e, delta - d)` given y by induction,
so `P(S) <= E_P min(1, e^(epsilon-e) Q(S|y)) + delta - d`. A function f of y with values in [0, 1] has
`E_P f <= e^e E_Q f + d`. Hence `P(S) <= e^epsilon Q(S) + delta`.

**Total (epsilon, delta), from the first rho charge on.** Let `(E, D)` be spent by then, `e = epsilon - E`,
`d = delta - D`. One order a > 1 is fixed at that moment, as a function of e and d alone. From then on a rho charge
counts `a rho`, a pure one `min(epsilon_i, a epsilon_i^2 / 2)`, and their sum must stay within

    cap = e - (ln c - ln d) / (a-1),      c = (1 - 1/a)^a / (a-1).

*Proof.* Both figures bound the Renyi divergence of order a given the past, so with R the sum along the path
`N = exp((a-1) (L - R))` is a supermartingale, L counted from that moment on. For every x,
`(1 - e^-x)_+ <= c e^((a-1) x)`: the maximum of `(1 - e^-x) e^(-(a-1) x)` is at `e^x = a/(a-1)` and equals c. So

    E_P (1 - e^(e - L))_+ <= c E_P exp((a-1) (L - e)) = c E_P [N exp((a-1) (R - e))] <= c exp((a-1) (cap - e)) = d,

which is to say that what follows that moment is (e, d) whatever preceded; the induction of the case before ends there.
(The bound is that of Canonne, Kamath, Steinke 2020, arXiv 2004.00010, Corollary 13.)

*Why the order is fixed, and all of d is set aside.* Choosing the order, or how much of delta goes to the conversion,
after the outcome is known is not safe, although every outcome by itself would be within the total. Spend rho; where
the loss came out close to epsilon, spend the rest on more rho; where it did not, spend the rest of delta on an answer
that fails altogether with that probability. Either way the books balance, and together the two ways lose up to
2 delta. For the same reason no approximate charge is taken after the first rho charge.

**Streams.** A stream is charged its whole budget when it begins and answers later, in between other releases. That
changes nothing: a pure or (epsilon, delta) mechanism that answers over time, to any questions, is a post-processing of
one that answers at once (Vadhan, Zhang 2023, arXiv 2207.08335), so its loss may be counted when it was charged; a rho
charge of ours is a sum of parts, one a step, each of a rho bounded given the past and with a sum at most rho on every
path, so the supermartingales above take its parts wherever they come. See also Haney et al. 2023, arXiv 2309.05901.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import flint

from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, PureDP, exact

_PRECISION = 256
_ZERO = Fraction(0)
# a - 1 is first sought among powers of 2^16, then among the powers of 2 around the best, then on a finer grid.
_COARSE, _WIDEST, _FINE = 16, 1024, 16


class CannotComposeError(ValueError):
    """A charge of this kind has no place under this total; the message says why."""


@dataclass(frozen=True)
class Charge:
    """What one release costs, exactly: an epsilon with a delta of 0 or more, or a rho."""

    epsilon: Fraction = _ZERO
    delta: Fraction = _ZERO
    rho: Fraction = _ZERO

    @classmethod
    def of(cls, budget: Budget) -> Charge:
        """The charge of a release that satisfies a budget; raises `ValueError` if the budget is of no known kind."""
        match budget:
            case PureDP(epsilon):
                return cls(epsilon=exact(epsilon))
            case ApproxDP(epsilon, delta):
                return cls(epsilon=exact(epsilon), delta=exact(delta))
            case ZCDP(rho):
                return cls(rho=exact(rho))
        raise ValueError(f"unknown budget {budget!r}")

    @property
    def as_rho(self) -> Fraction:
        """The rho that a pure or a rho charge implies."""
        return self.rho + self.epsilon**2 / 2


@dataclass(frozen=True)
class Account:
    """Charges added up under one total; `account_for` opens one. `left` and `spent` are in the terms of the total.

    Under an (epsilon, delta) total, `order` is that of the conversion, once a rho charge was made. From then on `spent`
    holds the whole delta and, as epsilon, that of the guarantee reached so far.
    """

    total: Charge
    spent: Charge = Charge()
    order: Fraction | None = None

    def plus(self, charge: Charge, times: int = 1) -> Account:
        """The account after one more charge, or several alike, within the total or not.

        Raises:
            CannotComposeError: a charge of this kind has no place under this total.
        """
        if self.total.rho:
            if charge.delta:
                raise CannotComposeError(
                    "the total is a rho, which a release with a delta does not keep: ask for rho, or for epsilon alone"
                )
            return replace(self, spent=Charge(rho=self.spent.rho + times * charge.as_rho))
        if not self.total.delta and (charge.delta or charge.rho):
            raise CannotComposeError(
                "the total is pure, and only pure releases stay pure together: ask for epsilon without delta"
            )
        if self.order is not None:
            return self._with_order(charge, times, self.order)
        if charge.rho:
            return self._opened().plus(charge, times)
        spent = Charge(self.spent.epsilon + times * charge.epsilon, self.spent.delta + times * charge.delta)
        return replace(self, spent=spent)

    def _opened(self) -> Account:
        left = self.left
        if left.delta <= 0:
            raise CannotComposeError(
                "under an (epsilon, delta) total a rho is converted, which takes some delta, and none is left: ask for "
                "epsilon alone"
            )
        order = conversion_order(left.epsilon, left.delta)
        converted = self.spent.epsilon + left.epsilon - renyi_cap(left.epsilon, left.delta, order)
        return replace(self, spent=Charge(converted, self.total.delta), order=order)

    def _with_order(self, charge: Charge, times: int, order: Fraction) -> Account:
        if charge.delta:
            raise CannotComposeError(
                "this total has been shared by rho since the first rho was spent, and all the delta that was left then "
                "was set aside for converting it: ask for rho, or for epsilon alone"
            )
        renyi = order * charge.rho or min(charge.epsilon, order * charge.epsilon**2 / 2)
        return replace(self, spent=Charge(self.spent.epsilon + times * renyi, self.spent.delta))

    @property
    def left(self) -> Charge:
        """What is left for one more charge, negative beyond the total; where rho is shared, as epsilon or rho."""
        spent, total = self.spent, self.total
        epsilon, rho = total.epsilon - spent.epsilon, total.rho - spent.rho
        return Charge(epsilon, total.delta - spent.delta, rho if self.order is None else epsilon / self.order)

    @property
    def within(self) -> bool:
        """True if the total is proved to hold."""
        left = self.left
        return min(left.epsilon, left.delta, left.rho) >= 0


def account_for(total: Budget) -> Account:
    """An account without charges; raises as `Charge.of`."""
    return Account(Charge.of(total))


def renyi_cap(epsilon: Fraction, delta: Fraction, order: Fraction) -> Fraction:
    """A Renyi divergence of this order that is proved to imply (epsilon, delta): the cap of the module's proof.

    Rounded down; it may be negative, where the order is of no use.
    """
    with flint.ctx.workprec(_PRECISION):
        one_less = _ball(order - 1)
        # Each form of ln(1 - 1/a) is exact where the other cancels.
        shrink = _ball(-1 / order).log1p() if order > 2 else _ball((order - 1) / order).log()
        log_c = _ball(order) * shrink - one_less.log()
        return _floor(_ball(epsilon) - (log_c - _ball(delta).log()) / one_less)


@lru_cache(maxsize=1024)
def conversion_order(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The order, among those of a fixed grid, under which the most rho fits into (epsilon, delta)."""

    def rho(order: Fraction) -> Fraction:
        return renyi_cap(epsilon, delta, order) / order

    def best(exponents: range) -> int:
        return max(exponents, key=lambda exponent: rho(1 + Fraction(2) ** exponent))

    coarse = best(range(-_WIDEST, _WIDEST, _COARSE))
    power = best(range(coarse - _COARSE, coarse + _COARSE))
    steps = range(_FINE // 2, 2 * _FINE + 1)
    return max((1 + Fraction(2) ** power * Fraction(step, _FINE) for step in steps), key=rho)


def _ball(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def _floor(ball: flint.arb) -> Fraction:
    """A fraction below every number of the ball."""
    mantissa, exponent = ball.lower().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
