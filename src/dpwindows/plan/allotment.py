"""What one query gets of a plan: the measurement that serves it, its share of the budget, and how exact it will be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpwindows.ask.queries import Measure, Query
from dpwindows.ask.windows import count_windows
from dpwindows.kernel.accounting import GAUSSIAN, noise_variance
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.measure import Measurement
from dpwindows.plan.intervals import half_width_factors, half_widths


@dataclass(frozen=True)
class Alternative:
    """A strategy that was weighed for a query, and its error in counts by the plan's criterion."""

    strategy: str
    error: float


@dataclass(frozen=True)
class Allotment:
    """One query with the measurement that serves it, its share of the budget, and what else was weighed."""

    query: Query
    measurement: Measurement
    share: float
    chosen: Alternative
    others: tuple[Alternative, ...]

    def variance(self, measure: Measure) -> FloatArray:
        """Variance of the released estimate of each window, in squared counts."""
        noise = noise_variance(self.measurement.law, self.measurement.scale)
        return self.measurement.design.variance() * noise * len(measure.thresholds)

    def std_errors(self, measure: Measure) -> FloatArray:
        """Standard error of the released estimate of each window, in counts: what plan and release both report."""
        return np.sqrt(self.variance(measure))

    def bias_bounds(self) -> FloatArray:
        """Bound on the bias of each window's estimate, in counts (0 for unbiased designs)."""
        bias = self.measurement.design.bias_bound()
        return np.zeros(self._windows) if bias is None else bias

    @property
    def _windows(self) -> int:
        problem = self.measurement.design.problem
        return count_windows(problem.window, problem.steps)

    def half_widths(self, measure: Measure, confidence: float) -> FloatArray:
        """Half width of each window's interval, in counts: a quantile of the noise, widened by the bias bound."""
        design, std_errors = self.measurement.design, self.std_errors(measure)
        if self.measurement.law == GAUSSIAN:
            half = half_width_factors(np.zeros(self._windows), confidence, self._windows) * std_errors
        else:
            # An exact count is the difference of two independent estimates, which halves the kurtosis.
            half = half_widths(
                std_errors, design.variance(), design.fourth_moment(), len(measure.thresholds), confidence
            )
        return half + self.bias_bounds()
