r"""The proof that measurements with given noise scales stay within a budget.

Noise is of these laws, all on the integers and drawn exactly:

- *discrete Laplace* of scale b, `P(z) ~ exp(-|z|/b)`: a measurement of L1 sensitivity D costs epsilon = D/b;
- *discrete Gaussian* of scale s, `P(z) ~ exp(-z^2 / (2 s^2))`: a measurement of squared L2 sensitivity D costs
  rho = D / (2 s^2) of zCDP (Canonne, Kamath, Steinke 2020, arXiv 2004.00010, Theorem 4);
- *discrete cube* and *discrete range* of scale b, each drawn for a whole vector: `P(z) ~ exp(-N(z)/b)` with a norm N,
  so a measurement that is moved by at most D in that norm costs epsilon = D/b (`dpwindows.kernel.joint_noise`).

Costs of measurements of the same log add up, epsilons under whatever pure law; for Gaussian noise
`mu^2 = sum D_i / s_i^2` is all that matters.

**(epsilon, delta) from Gaussian noise**, by the better of two routes:

1. *Analytic* (Balle, Wang 2018, arXiv 1805.06530). Continuous Gaussian noise gives
   `delta_G = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)`; rounding it to integers is post-processing
   as M x is integer. *Lemma.* The discrete Gaussian of scale s is within total variation `1 / (24 s^2)` of the
   rounded continuous one, for every s > 0. *Proof.* With `phi` the Gaussian density and u uniform on [-1/2, 1/2],
   the rounded law at x is `R(x) = phi(x) psi(x)`, `psi(x) = E[exp(-u^2/2s^2) cosh(x u / s^2)] >= 1 - E[u^2]/(2 s^2)
   = 1 - 1/(24 s^2)`. The discrete law is `P(x) = phi(x)/Z`, and `Z = sum phi = sum_j exp(-2 pi^2 s^2 j^2) >= 1` by
   Poisson summation. So `TV = sum (P - R)_+ = sum P (1 - Z psi)_+ <= sum P (1 - psi)_+ <= 1/(24 s^2)`. QED.
   Over all numbers measured the distances add up to `eta = sum rows_i / (24 s_i^2)`, and replacing the law on both
   neighbours gives `delta = delta_G + (1 + e^epsilon) eta`.
2. *Concentrated* (arXiv 2004.00010, Corollary 13). With rho = mu^2 / 2, for any alpha > 1:
   `delta = exp((alpha-1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1)`. Holds for the discrete law itself.

**(epsilon, delta) from Laplace noise.** Either by pure composition, or concentrated as well: discrete Laplace noise of
scale b on one number that changes by d is (|d|/b)-DP, hence `(d/b)^2 / 2`-zCDP (Bun, Steinke 2016, arXiv 1605.02065,
Proposition 1.4), and independent noise on all numbers makes that rho = D / (2 b^2) for *squared L2* sensitivity D, the
figure of a Gaussian of scale b. This route never charges more than advanced composition: for n parts that are
epsilon_0-DP that has `n epsilon_0 (e^epsilon_0 - 1) + sqrt(2 n ln(1/delta)) epsilon_0`, this at most
`n epsilon_0^2 / 2 + sqrt(2 n ln(1/delta)) epsilon_0`.

Every inequality is decided in exact rational or in ball arithmetic (Arb, through python-flint): a scale is used only
if its cost is *proved* within the budget. `dpwindows.strategies.search.noise_scales` proposes scales.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import flint

from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, PureDP, exact

Law = Literal["discrete Gaussian", "discrete Laplace", "discrete cube", "discrete range"]
GAUSSIAN: Law = "discrete Gaussian"
LAPLACE: Law = "discrete Laplace"
CUBE: Law = "discrete cube"
RANGE: Law = "discrete range"
# The laws that are drawn for a whole vector at once.
JOINT: frozenset[Law] = frozenset({CUBE, RANGE})
# The norm that what a neighbour moves is measured in; for Gaussian noise its square is certified.
NORMS: dict[Law, str] = {GAUSSIAN: "L2", LAPLACE: "L1", CUBE: "max", RANGE: "range"}

_PRECISION = 192
# Logarithms of alpha - 1 among which the order of the concentrated route is first sought.
_LOG_ORDERS = [*range(-24, 60), *range(60, 690, 5)]
_FINEST_STEP = 1e-6


@dataclass(frozen=True)
class Cost:
    """What one measurement is charged for: its noise and how far a neighbour can move it.

    `sensitivity` bounds the L1 norm (Laplace), the squared L2 norm (Gaussian) or the norm of a joint law, summed over
    the vectors that are drawn, of the change, in lattice units;
    `scale` is the noise scale in lattice units; `rows` is how many numbers are measured. `squared`, for Laplace noise,
    bounds the squared L2 norm where that is known too.

    Raises:
        ValueError: a bound is no whole number from 0 on, or the scale is not positive and finite.
    """

    law: Law
    sensitivity: int
    scale: float
    rows: int
    squared: int | None = None

    def __post_init__(self) -> None:
        # Numbers are measured as whole ones: a bound that is a fraction would be that of other numbers.
        bounds = (self.sensitivity, self.rows, 0 if self.squared is None else self.squared)
        whole = all(type(bound) is int and bound >= 0 for bound in bounds)
        if not (whole and math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"a cost needs a finite scale > 0, and whole sensitivity and rows >= 0, got {self}")


class BudgetExceededError(RuntimeError):
    """A measurement was about to cost more than its budget: a bug, stopped before any noise was drawn."""


def certify(budget: Budget, costs: Sequence[Cost]) -> None:
    """Prove that measurements with these costs stay within the budget together.

    Raises:
        BudgetExceededError: the proof fails, or the costs mix Gaussian noise with another.
    """
    if not _proved(budget, tuple(costs)):
        raise BudgetExceededError(f"the measurements cannot be proved to stay within {budget}")


@lru_cache(maxsize=64)
def _proved(budget: Budget, costs: tuple[Cost, ...]) -> bool:
    """Proves equal costs once: a stream asks at every step, an audit for every release."""
    laws = {cost.law for cost in costs}
    if laws and laws <= {LAPLACE, *JOINT}:
        epsilon = sum((Fraction(cost.sensitivity) / Fraction(cost.scale) for cost in costs), Fraction(0))
        return _pure_within(budget, epsilon) or (laws == {LAPLACE} and _laplace_concentrated(budget, costs))
    if laws == {GAUSSIAN}:
        squared = sum((Fraction(cost.sensitivity) / Fraction(cost.scale) ** 2 for cost in costs), Fraction(0))
        eta = sum((Fraction(cost.rows, 24) / Fraction(cost.scale) ** 2 for cost in costs), Fraction(0))
        return gaussian_within(budget, squared, eta)
    return False


def _pure_within(budget: Budget, epsilon: Fraction) -> bool:
    # An epsilon-DP mechanism is (epsilon, delta)-DP for every delta.
    return isinstance(budget, (PureDP, ApproxDP)) and epsilon <= exact(budget.epsilon)


def _laplace_concentrated(budget: Budget, costs: Sequence[Cost]) -> bool:
    if not isinstance(budget, ApproxDP) or any(cost.squared is None for cost in costs):
        return False
    squared = sum((Fraction(cost.squared or 0) / Fraction(cost.scale) ** 2 for cost in costs), Fraction(0))
    return _concentrated_within(budget, squared)


def gaussian_within(budget: Budget, squared: Fraction, eta: Fraction) -> bool:
    """Whether Gaussian noise is proved to stay within a budget, from `mu^2` and the lattice term (module docstring)."""
    if isinstance(budget, ZCDP):
        return squared / 2 <= exact(budget.rho)
    if isinstance(budget, ApproxDP):
        return _analytic_within(budget, squared, eta) or _concentrated_within(budget, squared)
    return False


def _analytic_within(budget: ApproxDP, squared: Fraction, eta: Fraction) -> bool:
    with flint.ctx.workprec(_PRECISION):
        epsilon, mu = ball_of(exact(budget.epsilon)), ball_of(squared).sqrt()
        growth = epsilon.exp()
        delta = _normal_cdf(mu / 2 - epsilon / mu) - growth * _normal_cdf(-mu / 2 - epsilon / mu)
        total = delta + (1 + growth) * ball_of(eta)
        return bool(total <= ball_of(exact(budget.delta)))


def _concentrated_within(budget: ApproxDP, squared: Fraction) -> bool:
    epsilon, rho = float(budget.epsilon), float(squared) / 2

    def log_delta(log_order: float) -> float:
        excess = math.exp(log_order)
        order = 1 + excess
        # log(1 - 1/order) = -log1p(1/excess)
        value = excess * (order * rho - epsilon) - order * math.log1p(1 / excess) - log_order
        return max(-1e100, min(value, 1e100))

    # Any order alpha proves something; the best one found on a grid, then on finer and finer ones around it, is tried.
    best, step = float(min(_LOG_ORDERS, key=log_delta)), 1.0
    while step > _FINEST_STEP:
        step /= 2
        best = min((best, best - step, best + step), key=log_delta)
    with flint.ctx.workprec(_PRECISION):
        alpha = ball_of(1 + Fraction(math.exp(best)))
        exponent = (alpha - 1) * (alpha * ball_of(squared) / 2 - ball_of(exact(budget.epsilon)))
        exponent += alpha * (1 - 1 / alpha).log() - (alpha - 1).log()
        return bool(exponent <= ball_of(exact(budget.delta)).log())


def ball_of(value: Fraction) -> flint.arb:
    """A ball around an exact fraction."""
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def floor_of(ball: flint.arb) -> int:
    """A whole number that is proved to be no larger than what a ball holds, whatever the precision is.

    It is one for all threads: another may change it at any moment, and a ball then only gets wider.
    """
    mantissa, exponent = map(int, ball.lower().man_exp())
    return mantissa << exponent if exponent >= 0 else mantissa >> -exponent


def _normal_cdf(x: flint.arb) -> flint.arb:
    return (-x / flint.arb(2).sqrt()).erfc() / 2
