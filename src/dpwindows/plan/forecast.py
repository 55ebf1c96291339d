"""What to expect of a plan: the error of every number, known before any data is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpwindows.ask.queries import Measure
from dpwindows.plan.allotment import Allotment


@dataclass(frozen=True)
class Forecast:
    """What to expect of one measure of one window family.

    `rms` and `max` are over the standard errors that a release will carry, in counts; `half_width` is the root mean
    square half width of its intervals at the plan's confidence. `limit` is a proved lower bound on the rms of any
    additive Gaussian noise with this share of the budget, or with that of all families that are measured as one with
    this one (`dpwindows.strategies.search.limits`), and under a pure budget of additive noise of any distribution
    (`dpwindows.strategies.search.pure_limits`), in counts. `ratio_to_limit` is `rms` over it; both are None where no
    bound is known. Under an approximate budget Laplace noise is not bound by it: it may have a ratio below 1 where one
    neighbour changes few numbers, as with k = 1. `runner_up`
    is the next best strategy for this window family at the same share of the budget, and `runner_up_ratio` its error
    over the one chosen (below 1 where it needs another noise law than serves the whole plan best); None where there is
    no other. With groups, `by` names the columns that make them, none for totals, and all else holds for each of these
    groups; None without groups.
    """

    window: str
    measure: str
    k: int
    strategy: str
    rms: float
    max: float
    half_width: float
    limit: float | None
    ratio_to_limit: float | None
    noise: str
    proof: str
    runner_up: str | None
    runner_up_ratio: float | None
    by: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        values = dict(self.__dict__)
        by = values.pop("by")
        return values if by is None else values | {"by": list(by)}


class Forecasts(list[Forecast]):
    """The forecast of a plan: a list that a notebook shows as a table and a chart."""

    def _repr_html_(self) -> str:
        from dpwindows.report.notebook import forecast_html

        return forecast_html([entry.to_dict() for entry in self])


def forecast_of(allotment: Allotment, measure: Measure, confidence: float, limit: float | None) -> Forecast:
    """What to expect of one measure, from the measurement that serves it; `limit` is the least error possible."""
    variance = allotment.variance(measure)
    half_widths = allotment.half_widths(measure, confidence)
    measurement = allotment.measurement
    largest = float(np.sqrt(variance.max()))
    # Rounding must not make the mean of equal errors larger than the largest.
    rms = min(float(np.sqrt(variance.mean())), largest)
    runner_up = allotment.runner_up
    return Forecast(
        window=allotment.query.window.text,
        measure=measure.kind,
        k=measure.k,
        strategy=measurement.design.strategy,
        rms=rms,
        max=largest,
        half_width=float(np.sqrt((half_widths**2).mean())),
        limit=limit,
        ratio_to_limit=None if limit is None else rms / limit,
        noise=measurement.law,
        proof=measurement.design.proof,
        runner_up=None if runner_up is None else runner_up.strategy,
        runner_up_ratio=runner_up.error / allotment.chosen.error if runner_up and allotment.chosen.error else None,
        by=allotment.by,
    )
