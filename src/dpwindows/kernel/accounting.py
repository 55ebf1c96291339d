r"""From a budget to noise scales, and the proof that given scales stay within a budget.

Two noise laws are used, both on the integers and drawn exactly:

- *discrete Laplace* of scale b, `P(z) ~ exp(-|z|/b)`: a measurement of L1 sensitivity D costs epsilon = D/b;
- *discrete Gaussian* of scale s, `P(z) ~ exp(-z^2 / (2 s^2))`: a measurement of squared L2 sensitivity D costs
  rho = D / (2 s^2) of zCDP (Canonne, Kamath, Steinke 2020, arXiv 2004.00010, Theorem 4).

Costs of measurements of the same log add up; for Gaussian noise `mu^2 = sum D_i / s_i^2` is all that matters.

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
if its cost is *proved* within the budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import flint
from scipy import optimize

from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, PureDP, exact
from dpwindows.errors import InputError

Law = Literal["discrete Gaussian", "discrete Laplace"]
GAUSSIAN: Law = "discrete Gaussian"
LAPLACE: Law = "discrete Laplace"

_PRECISION = 192
# Relative head-room given to a scale computed in floating point; the exact check afterwards needs a little.
_HEADROOM = 1e-12
# The logarithm of the least mu^2 considered: a noise scale of about 10^150.
_LEAST_EXPONENT = -690.0
# Logarithms of alpha - 1 among which the order of the concentrated route is first sought.
_LOG_ORDERS = [*range(-24, 60), *range(60, 690, 5)]


@dataclass(frozen=True)
class Cost:
    """What one measurement is charged for: its noise and how far a neighbour can move it.

    `sensitivity` bounds the L1 norm (Laplace) or the squared L2 norm (Gaussian) of the change, in lattice units;
    `scale` is the noise scale in lattice units; `rows` is how many numbers are measured. `squared`, for Laplace noise,
    bounds the squared L2 norm where that is known too.

    Raises:
        ValueError: a figure is negative, or the scale is not positive and finite.
    """

    law: Law
    sensitivity: int
    scale: float
    rows: int
    squared: int | None = None

    def __post_init__(self) -> None:
        bounds = (self.sensitivity, self.rows, self.squared or 0)
        if not (math.isfinite(self.scale) and self.scale > 0 and min(bounds) >= 0):
            raise ValueError(f"a cost needs a finite scale > 0, sensitivity >= 0 and rows >= 0, got {self}")


class BudgetExceededError(RuntimeError):
    """A measurement was about to cost more than its budget: a bug, stopped before any noise was drawn."""


def laws_for(budget: Budget) -> tuple[Law, ...]:
    """The noise laws worth considering under a budget (a pure guarantee needs Laplace)."""
    if isinstance(budget, PureDP):
        return (LAPLACE,)
    return (GAUSSIAN, LAPLACE) if isinstance(budget, ApproxDP) else (GAUSSIAN,)


def scales(
    budget: Budget, law: Law, sensitivities: Sequence[int], shares: Sequence[float], rows: Sequence[int]
) -> list[float]:
    """Noise scales, in lattice units, for measurements that together spend the whole budget and no more.

    Args:
        budget: the total.
        law: the law of all the noise; must be one of `laws_for(budget)`.
        sensitivities: L1 (Laplace) or squared L2 (Gaussian) bounds.
        shares: positive fractions that sum to at most 1: of epsilon (Laplace) or of rho and mu^2 (Gaussian).
        rows: numbers measured, for the lattice term of the analytic route.

    Returns:
        One scale a measurement; `certify` holds for them.
    """
    if law == LAPLACE:
        epsilon = _epsilon_of(budget)
        return [
            _positive(sensitivity / epsilon / share * (1 + _HEADROOM))
            for sensitivity, share in zip(sensitivities, shares, strict=True)
        ]
    squared = _mu_squared(budget, sensitivities, shares, rows)
    return [
        _positive(math.sqrt(sensitivity / share) / math.sqrt(squared) * (1 + _HEADROOM))
        for sensitivity, share in zip(sensitivities, shares, strict=True)
    ]


@lru_cache(maxsize=256)
def unit_scale(budget: Budget, law: Law, share: float = 1.0) -> float:
    """The scale for a sensitivity of 1 (L1 or L2) and a fine lattice, for comparing strategies before they exist."""
    fine = 1 << 80
    return scales(budget, law, [fine if law == LAPLACE else fine**2], [share], [1])[0] / fine


def certify(budget: Budget, costs: Sequence[Cost]) -> None:
    """Prove that measurements with these costs stay within the budget together.

    Raises:
        BudgetExceededError: the proof fails, or the costs mix laws.
    """
    laws = {cost.law for cost in costs}
    if laws == {LAPLACE}:
        epsilon = sum((Fraction(cost.sensitivity) / Fraction(cost.scale) for cost in costs), Fraction(0))
        proved = _laplace_within(budget, epsilon) or _laplace_concentrated(budget, costs)
    elif laws == {GAUSSIAN}:
        squared = sum((Fraction(cost.sensitivity) / Fraction(cost.scale) ** 2 for cost in costs), Fraction(0))
        eta = sum((Fraction(cost.rows, 24) / Fraction(cost.scale) ** 2 for cost in costs), Fraction(0))
        proved = _gaussian_within(budget, squared, eta)
    else:
        proved = False
    if not proved:
        raise BudgetExceededError(f"the measurements cannot be proved to stay within {budget}")


def noise_variance(law: Law, scale: float) -> float:
    """The variance of one draw, in squared lattice units (an upper bound, tight beyond scale 1, for the Gaussian)."""
    if law == LAPLACE:
        shrink = math.exp(-1 / scale) if scale > 1e-3 else 0.0
        return 2 * shrink / math.expm1(-1 / scale) ** 2
    if scale >= 3:
        return scale**2
    weights = [(z, math.exp(-(z**2) / (2 * scale**2))) for z in range(1, 64)] if scale > 1e-2 else []
    return 2 * sum(z**2 * weight for z, weight in weights) / (1 + 2 * sum(weight for _, weight in weights))


def _epsilon_of(budget: Budget) -> float:
    if isinstance(budget, (PureDP, ApproxDP)):
        return float(budget.epsilon)
    raise ValueError(f"Laplace noise is not used under {budget}")


def _laplace_within(budget: Budget, epsilon: Fraction) -> bool:
    # An epsilon-DP mechanism is (epsilon, delta)-DP for every delta.
    return isinstance(budget, (PureDP, ApproxDP)) and epsilon <= exact(budget.epsilon)


def _laplace_concentrated(budget: Budget, costs: Sequence[Cost]) -> bool:
    if not isinstance(budget, ApproxDP) or any(cost.squared is None for cost in costs):
        return False
    squared = sum((Fraction(cost.squared or 0) / Fraction(cost.scale) ** 2 for cost in costs), Fraction(0))
    return _concentrated_within(budget, squared)


def _gaussian_within(budget: Budget, squared: Fraction, eta: Fraction) -> bool:
    if isinstance(budget, ZCDP):
        return squared / 2 <= exact(budget.rho)
    if isinstance(budget, ApproxDP):
        return _analytic_within(budget, squared, eta) or _concentrated_within(budget, squared)
    return False


def _mu_squared(budget: Budget, sensitivities: Sequence[int], shares: Sequence[float], rows: Sequence[int]) -> float:
    """The largest `mu^2` found for which the budget is proved to hold."""
    if isinstance(budget, ZCDP):
        # The bound keeps the square finite; it is beyond any noise that matters.
        return min(2 * float(budget.rho), 1e300)
    assert isinstance(budget, ApproxDP)
    # With scales sqrt(D_i / (share_i mu^2)) the lattice term is a multiple of mu^2.
    per_unit = sum(
        Fraction(count, 24) * Fraction(share) / sensitivity
        for count, share, sensitivity in zip(rows, shares, sensitivities, strict=True)
    )

    def holds(exponent: float) -> bool:
        squared = Fraction(math.exp(exponent))
        return _gaussian_within(budget, squared, squared * per_unit)

    # Between next to nothing and a little over 2 epsilon.
    low, high = _LEAST_EXPONENT, min(math.log(budget.epsilon + 80) + 2, 690.0)
    if not holds(low):
        raise InputError(f"{budget} is too small for any usable noise scale: choose a larger epsilon or delta")
    while high - low > 1e-13 * max(1.0, abs(low)):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return math.exp(low)


def _analytic_within(budget: ApproxDP, squared: Fraction, eta: Fraction) -> bool:
    with flint.ctx.workprec(_PRECISION):
        epsilon, mu = _ball(exact(budget.epsilon)), _ball(squared).sqrt()
        growth = epsilon.exp()
        delta = _normal_cdf(mu / 2 - epsilon / mu) - growth * _normal_cdf(-mu / 2 - epsilon / mu)
        total = delta + (1 + growth) * _ball(eta)
        return bool(total <= _ball(exact(budget.delta)))


def _concentrated_within(budget: ApproxDP, squared: Fraction) -> bool:
    epsilon, rho = float(budget.epsilon), float(squared) / 2

    def log_delta(log_order: float) -> float:
        excess = math.exp(log_order)
        order = 1 + excess
        # log(1 - 1/order) = -log1p(1/excess)
        value = excess * (order * rho - epsilon) - order * math.log1p(1 / excess) - log_order
        return max(-1e100, min(value, 1e100))

    # Any order alpha proves something; the best one found on a grid, then nearby, is tried.
    coarse = min(_LOG_ORDERS, key=log_delta)
    found = optimize.minimize_scalar(log_delta, bounds=(coarse - 1, coarse + 1), method="bounded")
    with flint.ctx.workprec(_PRECISION):
        alpha = _ball(1 + Fraction(math.exp(float(found.x))))
        exponent = (alpha - 1) * (alpha * _ball(squared) / 2 - _ball(exact(budget.epsilon)))
        exponent += alpha * (1 - 1 / alpha).log() - (alpha - 1).log()
        return bool(exponent <= _ball(exact(budget.delta)).log())


def _ball(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def _normal_cdf(x: flint.arb) -> flint.arb:
    return (-x / flint.arb(2).sqrt()).erfc() / 2


def _positive(scale: float) -> float:
    """A usable scale: the smallest normal number where it would vanish (noise that is always 0, and honest)."""
    if not math.isfinite(scale):
        raise InputError("the budget is too small for any usable noise scale: choose a larger epsilon or rho")
    return max(scale, 1e-300)
