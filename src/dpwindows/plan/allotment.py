"""What a plan assigns to one query: its measurement, its share of the budget, and the error to expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpwindows import reading
from dpwindows.ask.queries import Measure, Query
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.measure import Measurement
from dpwindows.plan.intervals import estimate_variance, half_widths
from dpwindows.plan.shapes import Forecast


@dataclass(frozen=True)
class Alternative:
    """A strategy that was weighed for a query, and its error in counts by the plan's criterion."""

    strategy: str
    error: float


@dataclass(frozen=True)
class Allotment:
    """One query with the measurement that serves it, its share of the budget, and what else was weighed.

    Where one measurement serves several queries, `series` is the place of this one among them; otherwise it is None.
    """

    query: Query
    measurement: Measurement
    share: float
    chosen: Alternative
    others: tuple[Alternative, ...]
    series: int | None = None

    @property
    def groups(self) -> int:
        """The number of groups that each number is measured in; 1 without groups."""
        return 1 if self.measurement.groups is None else self.measurement.groups.level.count

    @property
    def by(self) -> tuple[str, ...] | None:
        """The columns that make its groups, none for totals over all; None without groups."""
        groups = self.measurement.groups
        return None if groups is None else tuple(groups.grouping.names[place] for place in groups.level.kept)

    @property
    def runner_up(self) -> Alternative | None:
        """The best of the other strategies; the chosen one with another noise law is no other."""
        others = (other for other in self.others if other.strategy != self.chosen.strategy)
        return min(others, key=lambda other: other.error, default=None)

    def variance(self, measure: Measure) -> FloatArray:
        """Variance of the released estimate of each window, in squared counts."""
        return estimate_variance(self.measurement, measure, self._squares(measure))

    def _squares(self, measure: Measure) -> FloatArray:
        """Sums of squares of the weights on unit noise, of a measure's thresholds; their mean if there are several."""
        design = self.measurement.design
        thresholds = measure.thresholds[: 1 if design.alike else None]
        return self._mean([reading.of(design.at(k)).variance() for k in thresholds])

    def _mean(self, values: Sequence[FloatArray]) -> FloatArray:
        return self.own(values[0] if all(one is values[0] for one in values) else np.mean(values, axis=0))

    def own(self, values: FloatArray) -> FloatArray:
        """The values of this query's windows, from one value for each estimate of the measurement."""
        if self.series is None:
            return values
        windows = self.measurement.design.problem.steps
        return values[self.series * windows : (self.series + 1) * windows]

    def std_errors(self, measure: Measure) -> FloatArray:
        """Standard error of the released estimate of each window, in counts: what plan and release both report."""
        return np.sqrt(self.variance(measure))

    def bias_bounds(self) -> FloatArray:
        """Bound on the bias of each window's estimate, in counts; a single 0 for all of them where there is none."""
        design = self.measurement.design
        first = reading.of(design.at(design.problem.thresholds[0]))
        bias = first.bias_bound()
        return np.zeros(1) if bias is None else self.own(bias)

    def half_widths(self, measure: Measure, confidence: float) -> FloatArray:
        """Half width of each window's interval, in counts: a quantile of the noise, widened by the bias bound."""
        fourths = partial(self._fourth_moment, measure)
        half = half_widths(self.measurement, measure, self._squares(measure), fourths, confidence)
        half += self.bias_bounds()
        return half

    def forecast(self, measure: Measure, confidence: float, limit: float | None) -> Forecast:
        """What to expect of one measure; `limit` is the least error possible."""
        variance, half_widths = self.variance(measure), self.half_widths(measure, confidence)
        largest = float(np.sqrt(variance.max()))
        # Rounding must not make the mean of equal errors larger than the largest.
        rms = min(float(np.sqrt(variance.mean())), largest)
        other, error = self.runner_up, self.chosen.error
        return Forecast(
            window=self.query.window.text,
            measure=measure.kind,
            k=measure.written_k,
            strategy=self.measurement.design.strategy,
            rms=rms,
            max=largest,
            half_width=float(np.sqrt((half_widths**2).mean())),
            limit=limit,
            ratio_to_limit=None if limit is None else rms / limit,
            noise=self.measurement.law,
            proof=self.measurement.design.proof,
            runner_up=None if other is None else other.strategy,
            runner_up_ratio=other.error / error if other and error else None,
            by=None if self.by is None else list(self.by),
        )

    def _fourth_moment(self, measure: Measure) -> FloatArray | None:
        known = [reading.of(self.measurement.design.at(k)).fourth_moment() for k in measure.thresholds]
        moments = [one for one in known if one is not None]
        return self._mean(moments) if len(moments) == len(known) else None


def measured(allotments: Sequence[Allotment]) -> list[Measurement]:
    """The measurements of some allotments, one that serves several queries once: where its first query is."""
    return [allotment.measurement for allotment in allotments if not allotment.series]


def served_by(allotments: Sequence[Allotment]) -> list[int]:
    """For each allotment the place of its measurement among those that are `measured`."""
    firsts = [allotment for allotment in allotments if not allotment.series]
    joint = [place for place, allotment in enumerate(firsts) if allotment.series == 0]
    own = iter(range(len(firsts)))
    return [joint[0] if allotment.series else next(own) for allotment in allotments]
