"""What to expect of a plan: the error of every number, known before any data is read."""

from __future__ import annotations

import numpy as np

from dpwindows.ask.queries import Measure
from dpwindows.plan.allotment import Allotment
from dpwindows.plan.shapes import Forecast


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
        by=None if allotment.by is None else list(allotment.by),
    )
