r"""The privacy loss of one pair of neighbours under the noise in use, in exact rational or in ball arithmetic.

A measurement adds independent discrete noise to integers, and the neighbour moves these by integers d.

- *Discrete Laplace*, scale b: the worst ratio of probabilities is `exp(sum |d_i| / b_i)`, and it is reached (by every
  output that lies beyond both centres). The pure loss is that sum, a rational number.
- *Discrete cube and range*, scale b: the worst ratio for one vector is `exp(N(d) / b)` up to the rounding of b, N the
  norm of the law, and it is reached (`dpwindows.kernel.joint_noise`); vectors that are drawn apart add up.
- *Discrete Gaussian*, scale s: with `mu^2 = sum d_i^2 / s_i^2` the Rényi divergence of order a is at most `a mu^2 / 2`,
  with equality at a = 2 (and every integer a), so the least rho of zCDP is `mu^2 / 2` exactly.
- *Gaussian, (epsilon, delta)*: the log-ratio `sum (d_i^2 - 2 d_i x_i) / (2 s_i^2)` is linear in the output x. For the
  continuous Gaussian `delta_G = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)`. The discrete law is within
  total variation `1 / (24 s^2)` of the rounded continuous one for each number that moves (the lemma of
  `dpwindows.kernel.accounting`; together eta). Rounding is post-processing, which gives the upper end
  `delta_G + (1 + e^epsilon) eta`. It also moves the log-ratio by at most `sum |d_i| / (2 s_i^2)`, so the half-space
  where it exceeds epsilon has at least probability `Phi(mu/2 - epsilon/mu - h)` on one side and at most
  `Phi(-mu/2 - epsilon/mu + h)` on the other, `h = sum |d_i| / (2 s_i^2 mu)`: that gives the lower end.
- *Laplace, (epsilon, delta)*. One number moved by d has loss `d/b` for noise x <= 0, `(d - 2x)/b` for 0 < x < d, and
  `-d/b` beyond. It falls in x, so its distribution function is that of the noise: `P(x >= X) = q^X / (1 + q)` for
  X >= 1, `q = e^(-1/b)`. Losses of independent numbers add up: generating polynomials on a grid of width h multiply,
  and `delta = sum_l P(l) (1 - e^(epsilon - l h))_+`. Losses rounded up to the grid give the upper end, rounded down the
  lower one; with one scale they are integers over b, and on the grid 1/b both ends are the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import flint
import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.kernel.accounting import CUBE, GAUSSIAN, JOINT, LAPLACE, Law

# Of what a neighbour moves: how many numbers, the norm of pure noise, or the squared L2 norm.
Power = Literal[0, 1, 2]

_PRECISION = 192
_LARGEST_EPSILON = 1e4
# Points of the grid of Laplace losses: the most where the grid is exact, and their number where it is not.
_EXACT_GRID, _COARSE_GRID = 20_000, 4096


@dataclass(frozen=True)
class Moved:
    """How far a neighbour moves the numbers of one measurement, in lattice units, and their noise.

    A joint law is drawn for each of the vectors that the numbers consist of.
    """

    law: Law
    scale: float
    change: tuple[int, ...]
    vectors: int = 1


def norms(law: Law, moved: NDArray[Any], vectors: int = 1) -> NDArray[Any]:
    """The norm of each row, shape (..., numbers) to (...): squared for Gaussian noise, exact for integers.

    A joint law is drawn for each of the `vectors`, of equal length, that a row consists of.
    """
    if law == GAUSSIAN:
        return np.asarray((moved * moved).sum(axis=-1))
    if law == LAPLACE:
        return np.asarray(abs(moved).sum(axis=-1))
    apart = moved.reshape(*moved.shape[:-1], vectors, -1)
    highest, lowest = apart.max(axis=-1, initial=0), apart.min(axis=-1, initial=0)
    return np.asarray((np.maximum(highest, -lowest) if law == CUBE else highest - lowest).sum(axis=-1))


def norms_of(power: Power, law: Law, moved: NDArray[Any], vectors: int = 1) -> NDArray[Any]:
    """The norm that pure noise of this law is charged for (1), the squared L2 norm (2), or how many numbers move (0).

    Shapes are those of `norms`.
    """
    if power == 0:
        return np.asarray((moved != 0).sum(axis=-1))
    return norms(GAUSSIAN if power == 2 else law, moved, vectors)


def scaled_sum(values: Iterable[tuple[int, float]], power: int) -> Fraction:
    """`sum n / s^power` over pairs of an integer n and a scale s; exact."""
    return sum((Fraction(number) / Fraction(scale) ** power for number, scale in values), Fraction(0))


def pure_epsilon(moved: Sequence[Moved]) -> Fraction:
    """The worst log-ratio under noise of pure laws; exact."""
    return scaled_sum(
        ((int(norms(part.law, np.array(part.change, dtype=object), part.vectors)), part.scale) for part in moved), 1
    )


def least_joint_delta(moved: Sequence[Moved], epsilon: Fraction) -> float:
    """A lower bound on the delta at epsilon where some of the noise is joint, from the outcomes of largest loss.

    Let a set of outcomes have the chance P under one log, and the largest log-ratio e' (`pure_epsilon`) in each. Then
    `delta >= P (1 - e^(epsilon - e'))`. It is reached, *for a Laplace number that moves*, if its noise is 0 or on the
    side away from the neighbour: 1/2 at least. *For a vector of n numbers of the cube law* moved by v, if the number
    with the largest `|v_i|` is the farthest one, on the side away from v_i: one of 2 n ways that are alike, of which
    there always is one. *For one of the range law*, which is the differences of n independent numbers to one more, all
    alike, if of these n + 1 the one that is to be the largest is, and the one that is to be the smallest: one of
    n (n + 1) ways, not less than 2 n. What is drawn apart is independent.
    """
    chance = 1.0
    for part in moved:
        vectors = part.vectors if part.law in JOINT else len(part.change)
        changes = np.array(part.change, dtype=object).reshape(vectors, -1)
        size = changes.shape[1]
        chance *= (1 / (size * (size + 1))) ** int((changes != 0).any(axis=1).sum())
    # Rounded down by more than floating point is off.
    return chance * -math.expm1(float(epsilon - pure_epsilon(moved))) * (1 - 1e-9)


def mu_squared(moved: Sequence[Moved]) -> Fraction:
    """`sum d^2 / s^2`; exact."""
    return scaled_sum(((sum(d * d for d in part.change), part.scale) for part in moved), 2)


@dataclass(frozen=True)
class Bounds:
    """A quantity proved to lie between two numbers."""

    low: float
    high: float


def gaussian_delta(moved: Sequence[Moved], epsilon: Fraction) -> Bounds:
    """The delta at epsilon under Gaussian noise (module docstring)."""
    squared = mu_squared(moved)
    if squared == 0:
        return Bounds(0.0, 0.0)
    eta = lattice_term((sum(d != 0 for d in part.change), part.scale) for part in moved)
    rounding = scaled_sum(((sum(map(abs, part.change)), part.scale) for part in moved), 2) / 2
    with flint.ctx.workprec(_PRECISION):
        shift = ball(rounding) / ball(squared).sqrt()
        low = _hockey_stick(squared, epsilon, eta=-eta, shift=shift)
        high = _hockey_stick(squared, epsilon, eta=eta, shift=flint.arb(0))
        return Bounds(max(0.0, lower(low)), min(1.0, upper(high)))


def lattice_term(numbers: Iterable[tuple[int, float]]) -> Fraction:
    """The eta of Gaussian noise: how many numbers move, with their scale."""
    return scaled_sum(numbers, 2) / 24


def analytic_delta(squared: Fraction, eta: Fraction, epsilon: Fraction) -> float:
    """An upper bound on delta at epsilon for Gaussian noise of this `mu^2` and lattice term."""
    if squared == 0:
        return 0.0
    with flint.ctx.workprec(_PRECISION):
        return upper(_hockey_stick(squared, epsilon, eta=eta, shift=flint.arb(0)))


def _hockey_stick(squared: Fraction, epsilon: Fraction, *, eta: Fraction, shift: flint.arb) -> flint.arb:
    mu, at = ball(squared).sqrt(), ball(epsilon)
    growth = at.exp()
    delta = _normal(mu / 2 - at / mu - shift) - growth * _normal(-mu / 2 - at / mu + shift)
    return delta + (1 + growth) * ball(eta)


def concentrated_delta(rho: Fraction, epsilon: Fraction) -> float:
    """An upper bound on delta at epsilon for anything that is rho-zCDP (arXiv 2004.00010, Corollary 13).

    `exp((a-1)(a rho - epsilon)) (1-1/a)^a / (a-1)` holds for every order a > 1; a good one is searched, then the bound
    is evaluated in ball arithmetic.
    """
    if rho == 0:
        return 0.0

    def exponent(log_excess: float) -> flint.arb:
        excess = ball(Fraction(math.exp(log_excess)))
        order = 1 + excess
        return excess * (order * ball(rho) - ball(epsilon)) + order * (excess / order).log() - excess.log()

    with flint.ctx.workprec(_PRECISION):
        start = min(range(-20, 40), key=lambda at: float(exponent(at)))
        found = scipy.optimize.minimize_scalar(
            lambda at: float(exponent(at)), bounds=(start - 1, start + 1), method="bounded", options={"xatol": 1e-10}
        )
        return upper(exponent(float(found.x)).exp())


def laplace_delta(moved: Sequence[Moved], epsilon: Fraction) -> Bounds:
    """The delta at epsilon under Laplace noise (module docstring)."""
    sizes = Counter((abs(d), part.scale) for part in moved for d in part.change if d)
    if not sizes:
        return Bounds(0.0, 0.0)
    width = _grid(sizes)
    with flint.ctx.workprec(_PRECISION):
        low, high = (_laplace_delta(sizes, width, epsilon, up=up) for up in (False, True))
        return Bounds(max(0.0, lower(low)), min(1.0, upper(high)))


def _grid(sizes: Counter[tuple[int, float]]) -> Fraction:
    """The exact grid of losses where there is one of reasonable size, a coarse one otherwise."""
    scales = {scale for _, scale in sizes}
    total = sum(size * count for (size, _), count in sizes.items())
    if len(scales) == 1 and total <= _EXACT_GRID:
        return 1 / Fraction(scales.pop())
    return scaled_sum(((size * count, scale) for (size, scale), count in sizes.items()), 1) / _COARSE_GRID


def _laplace_delta(sizes: Counter[tuple[int, float]], width: Fraction, epsilon: Fraction, *, up: bool) -> flint.arb:
    law, lowest = flint.arb_poly([1]), 0
    for (size, scale), count in sizes.items():
        first, masses = _loss_masses(size, Fraction(scale), width, up=up)
        law, lowest = law * flint.arb_poly(masses) ** count, lowest + first * count
    delta = flint.arb(0)
    for index in range(law.length() - 1, -1, -1):
        gain = 1 - (ball(epsilon) - (lowest + index) * ball(width)).exp()
        if gain <= 0:
            break
        delta += law[index] * gain.max(flint.arb(0))
    return delta


def _loss_masses(size: int, scale: Fraction, width: Fraction, *, up: bool) -> tuple[int, list[flint.arb]]:
    """The rounded loss of one number moved by `size`: its lowest point of the grid, and the masses from there on."""
    q, reach = (-1 / ball(scale)).exp(), math.ceil(size / scale / width)

    def below(point: int) -> flint.arb:
        """The probability of a loss up to this point of the grid, itself counted where losses are rounded up."""
        left = (size - point * width * scale) / 2
        least = math.ceil(left) if up else math.floor(left) + 1
        if least > size:
            return flint.arb(0)
        return flint.arb(1) if least <= 0 else q**least / (1 + q)

    points = range(-reach - 1, reach + 1) if up else range(-reach, reach + 2)
    cumulated = [below(point) for point in points]
    return -reach, [second - first for first, second in pairwise(cumulated)]


def epsilon_at(delta: float, delta_at: Callable[[Fraction], float]) -> float:
    """The least epsilon found at which an upper bound on delta, falling in epsilon, is at most `delta`."""
    low, high = 0.0, 1e-3
    while high < _LARGEST_EPSILON and delta_at(Fraction(high)) > delta:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(Fraction(middle)) <= delta else (middle, high)
    return high


def ball(value: Fraction) -> flint.arb:
    """The rational number as a ball."""
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def _normal(x: flint.arb) -> flint.arb:
    return (-x / flint.arb(2).sqrt()).erfc() / 2


def lower(x: flint.arb) -> float:
    """A floating-point number below every number of the ball."""
    return math.nextafter(float(x.lower()), -math.inf)


def upper(x: flint.arb) -> float:
    """A floating-point number above every number of the ball."""
    return math.nextafter(float(x.upper()), math.inf)
