"""From a budget to noise scales: proposals that `dpwindows.kernel.accounting.certify` proves before noise is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, PureDP
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, JOINT, LAPLACE, Law, gaussian_within
from dpwindows.strategies.search.pure_limits import pure_scale

# Relative head-room given to a scale computed in floating point; the exact check afterwards needs a little.
_HEADROOM = 1e-12
# The octaves of the least and of the largest mu^2 considered, noise scales of about 10^150 and 10^-150; and the bits of
# mu^2 after the first.
_MOST_OCTAVES, _BITS = 995, 36
# About how far from the end of what is proved floats are, in the last of these bits.
_STEP = 8


def laws_for(budget: Budget) -> tuple[Law, ...]:
    """The noise laws worth considering under a budget; a pure guarantee needs a pure law (`design_law`)."""
    if isinstance(budget, PureDP):
        return (LAPLACE,)
    return (GAUSSIAN, LAPLACE) if isinstance(budget, ApproxDP) else (GAUSSIAN,)


def design_law(law: Law) -> Law:
    """The law that strategies design for, where noise is of this one: Laplace noise for all pure laws."""
    return LAPLACE if law in JOINT else law


def scales(
    budget: Budget, law: Law, sensitivities: Sequence[int], shares: Sequence[float], rows: Sequence[int]
) -> list[float]:
    """Noise scales, in lattice units, for measurements that together spend the whole budget and no more.

    Args:
        budget: the total.
        law: the law of all the noise; must be one of `laws_for(budget)`.
        sensitivities: squared L2 bounds (Gaussian), or bounds in the norm of the law.
        shares: positive fractions that sum to at most 1: of rho and mu^2 (Gaussian), or of epsilon.
        rows: numbers measured, for the lattice term of the analytic route.

    Returns:
        One scale a measurement; `certify` holds for them.
    """
    if law != GAUSSIAN:
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
    return scales(budget, law, [fine**2 if law == GAUSSIAN else fine], [share], [1])[0] / fine


def limit_scale(budget: Budget, share: float) -> float:
    """What a limit per unit of Gaussian noise is multiplied by; under a pure budget the product holds for any noise."""
    return pure_scale(budget.epsilon * share) if isinstance(budget, PureDP) else unit_scale(budget, GAUSSIAN, share)


def _epsilon_of(budget: Budget) -> float:
    if isinstance(budget, (PureDP, ApproxDP)):
        return float(budget.epsilon)
    raise ValueError(f"Laplace noise is not used under {budget}")


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
    return _approximate_mu_squared(budget, Fraction(per_unit))


@lru_cache(maxsize=256)
def _approximate_mu_squared(budget: ApproxDP, per_unit: Fraction) -> float:
    """The largest `mu^2` that an approximate budget allows, with a lattice term of `per_unit` for each unit of it."""

    def squared_at(place: int) -> float:
        """The floating-point numbers with `_BITS` bits after the leading one, in order: a search rounds nothing."""
        octave, part = divmod(place, 1 << _BITS)
        return math.ldexp((1 << _BITS) + part, octave - _BITS)

    def holds(place: int) -> bool:
        squared = Fraction(squared_at(place))
        return gaussian_within(budget, squared, squared * per_unit)

    # Between next to nothing and a little over 2 epsilon.
    most = min(math.frexp(budget.epsilon + 80)[1] + 3, _MOST_OCTAVES)
    low, high = -_MOST_OCTAVES << _BITS, most << _BITS
    if not holds(low):
        raise InputError(f"{budget} is too small for any usable noise scale: choose a larger epsilon or delta")
    # A proof takes long: floats say about where the last one is, and it is looked for between proofs near there.
    about = _last(low, high, lambda place: _about_within(budget, squared_at(place), float(per_unit)))
    for place in (about - _STEP, about + _STEP):
        if low < place < high:
            low, high = (place, high) if holds(place) else (low, place)
    return squared_at(_last(low, high, holds))


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The last that holds, by halving: `low` does, and `high` does not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _about_within(budget: ApproxDP, squared: float, per_unit: float) -> bool:
    """What `gaussian_within` proves by its analytic route, in floating point (and for epsilons below 700)."""
    epsilon, mu = float(budget.epsilon), math.sqrt(squared)
    growth = math.exp(min(epsilon, 700.0))
    # scipy.special would take longer to load than most plans.
    least, most = ((epsilon / mu + way * mu / 2) / math.sqrt(2) for way in (-1, 1))
    delta = (math.erfc(least) - growth * math.erfc(most)) / 2
    return delta + (1 + growth) * squared * per_unit <= budget.delta


def _positive(scale: float) -> float:
    """A usable scale: the smallest normal number where it would vanish (noise that is always 0, and honest)."""
    if not math.isfinite(scale):
        raise InputError("the budget is too small for any usable noise scale: choose a larger epsilon or rho")
    return max(scale, 1e-300)
