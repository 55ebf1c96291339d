r"""The two noise laws as the audit knows them: exact probabilities on the integers, from the formulas and nothing else.

Both are exponential families in one statistic, `|z|` (Laplace, `P(z) ~ e^{-|z|/b}`) and `z^2` (Gaussian,
`P(z) ~ e^{-z^2/2s^2}`). So for n independent draws whose statistic has the mean t, with `KL` the relative entropy of
the family's member of that mean to the stated one, Chernoff's bound is

    P(mean at least t, or at most t where t is below its expectation) <= e^{-n KL},

for every n and scale, small ones included: no approximation by a normal law.

Sums over integers are summed up to a scale of `_SUMMED`. Beyond, `sum e^{-z^2/2s^2} = s sqrt(2 pi)` up to a factor of
`1 + 2 e^{-2 pi^2 s^2}` (Poisson summation), and a distribution function is, by the midpoint formula of Euler and
Maclaurin, `Phi(x/s) + x phi(x/s) / (24 s^3)` at x = m + 1/2, off by less than `1 / s^4`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.kernel.accounting import LAPLACE, Law

Floats = NDArray[np.float64]
_SUMMED = 4096.0
# Beyond this many scales a Gaussian has less than e^-800.
_FURTHEST = 40
# Below this scale no draw but 0 has a probability that a floating-point number can hold.
_SILENT = 0.02
# Means of z^2 from which on the scale of that mean is its root, up to e^-70.
_PLAIN = 4.0


@dataclass(frozen=True)
class NoiseLaw:
    """A discrete law with its scale, in lattice units."""

    law: Law
    scale: float

    @property
    def _laplace(self) -> bool:
        return self.law == LAPLACE

    # --- Probabilities ------------------------------------------------------------------------------------------------

    def at_most(self, points: NDArray[np.int64]) -> Floats:
        """P(z <= m) for integers m."""
        if self._laplace:
            rate, low = 1 / self.scale, points < 0
            tail = np.exp(-np.where(low, -points, points + 1.0) * rate) / (1 + math.exp(-rate))
            return np.asarray(np.where(low, tail, 1 - tail))
        if self.scale <= _SUMMED:
            masses, most = self._masses
            return np.asarray(np.cumsum(masses)[np.clip(points + most, 0, 2 * most)] * (points >= -most))
        x = (points + 0.5) / self.scale
        density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
        return np.asarray(scipy.special.ndtr(x) + x * density / (24 * self.scale**2))

    def beyond(self, point: int) -> float:
        """P(|z| > m) for an integer m >= 0."""
        if self._laplace:
            return 2 * math.exp(-(point + 1) / self.scale) / (1 + math.exp(-1 / self.scale))
        return float(2 * self.at_most(np.array([-point - 1]))[0])

    def quantile(self, share: float) -> int:
        """An integer m with P(z <= m) near `share`: where to cut, never used as a probability."""
        if self._laplace:
            return round(math.copysign(self.scale, share - 0.5) * -math.log(max(2 * min(share, 1 - share), 1e-300)))
        return round(self.scale * float(scipy.special.ndtri(share)))

    @cached_property
    def none(self) -> float:
        """P(z = 0)."""
        return math.exp(-self._log_normaliser(self.scale))

    @cached_property
    def commonest(self) -> float:
        """The largest probability of one absolute value."""
        one = math.exp(-(1 / self.scale if self._laplace else 0.5 / self.scale**2)) if self.scale > 1e-3 else 0.0
        return max(self.none, min(1.0, 2 * self.none * one))

    @cached_property
    def alike(self) -> float:
        """The probability that two independent draws have the same absolute value."""
        if self._laplace:
            return self.none**2 * (1 - 4 / -math.expm1(2 / self.scale) if self.scale > 1 / 300 else 1.0)
        if self.scale <= _SUMMED:
            masses, _ = self._masses
            return float(2 * (masses**2).sum() - self.none**2)
        return 1 / (math.sqrt(math.pi) * self.scale) - self.none**2

    @cached_property
    def _masses(self) -> tuple[Floats, int]:
        """The Gaussian probabilities of -most..most."""
        if self.scale < _SILENT:
            return np.array([0.0, 1.0, 0.0]), 1
        most = math.ceil(_FURTHEST * self.scale) + 1
        weights = np.exp(-((np.arange(-most, most + 1) / self.scale) ** 2) / 2)
        return weights / weights.sum(), most

    # --- The statistic ------------------------------------------------------------------------------------------------

    def mean_statistic(self, noise: NDArray[np.int64]) -> float:
        """The mean of `|z| / b` or `z^2 / s^2`."""
        with np.errstate(over="ignore"):
            over = abs(noise.astype(np.float64)) / self.scale
            return float(over.mean() if self._laplace else (over**2).mean())

    def divergence(self, mean: float) -> float:
        """The relative entropy, in nats, of the family's member whose `mean_statistic` is this to the stated one."""
        if mean == 0:
            return self._log_normaliser(self.scale)
        if not math.isfinite(mean):
            return math.inf
        if self._laplace:
            plain = mean * self.scale
            fitting = 1 / math.asinh(1 / plain)
            entropy = mean - plain / fitting
        else:
            plain = mean * self.scale * self.scale
            fitting = _gaussian_scale(plain)
            entropy = (mean - plain / fitting**2) / 2
        return max(0.0, entropy + self._log_normaliser(self.scale) - self._log_normaliser(fitting))

    def _log_normaliser(self, scale: float) -> float:
        """The logarithm of the sum over all integers of `e^{-|z|/b}` or `e^{-z^2/2s^2}`."""
        if self._laplace:
            rate = 1 / scale
            return math.log1p(math.exp(-rate)) - math.log(-math.expm1(-rate))
        return _gaussian_log_sum(scale)


def _gaussian_log_sum(scale: float) -> float:
    if scale >= 3:
        return math.log(scale * math.sqrt(2 * math.pi))
    if scale < _SILENT:
        return 0.0
    return math.log1p(2 * math.fsum(math.exp(-((z / scale) ** 2) / 2) for z in range(1, 200)))


def _gaussian_scale(mean: float) -> float:
    """The scale at which `E[z^2]` is this."""
    if mean >= _PLAIN:
        return math.sqrt(mean)

    def off(log_scale: float) -> float:
        scale = math.exp(log_scale)
        weights = [(z * z, math.exp(-((z / scale) ** 2) / 2)) for z in range(1, 200)]
        total = 1 + 2 * math.fsum(weight for _, weight in weights)
        return 2 * math.fsum(square * weight for square, weight in weights) / total - mean

    low = math.log(0.03)
    return math.exp(float(scipy.optimize.brentq(off, low, math.log(4.0)))) if off(low) < 0 else math.exp(low)
