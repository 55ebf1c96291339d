"""What the charts of the benchmarks have beyond those of a release: logarithmic axes, axes of names, hollow dots."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpwindows.report import charts
from dpwindows.report.charts import Axis


class LogAxis(Axis):
    """An axis where equal distances are equal ratios."""

    def share(self, values: Any) -> Any:
        """Where values stand, from 0 at the low end to 1 at the high one."""
        low, high = math.log(self.low), math.log(self.high)
        return (np.log(np.asarray(values, dtype=np.float64)) - low) / (high - low)


def powers(values: Iterable[float]) -> Axis:
    """A logarithmic axis around values, marked at 1, 2 and 5 times the powers of ten, or at the powers alone."""
    ascending = sorted(values)
    low, high = ascending[0] / 1.15, ascending[-1] * 1.15
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    several = (1,) if math.log10(high / low) > 3 else (1, 2, 5)
    marks = [digit * 10.0**power for power in tens for digit in several]
    return LogAxis(low, high, tuple((at, f"{at:,g}") for at in marks if low <= at <= high))


def names(texts: Sequence[str]) -> Axis:
    """An axis of names, the first at its high end."""
    return Axis(0.5, len(texts) + 0.5, tuple((len(texts) - at, text) for at, text in enumerate(texts)))


def dot(x: float, y: float, colour: str, *, hollow: bool = False) -> str:
    """A dot at a place."""
    return charts.dot(x, y, f'fill="none" stroke="{colour}"' if hollow else f'fill="{colour}"')
