"""The error of several thresholds of one query beside the least that any noise has for all of them together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from dpwindows.plan.planned import Planned
from dpwindows.strategies.in_periods import together_limit
from dpwindows.strategies.search.noise_scales import limit_scale


@dataclass(frozen=True)
class Together:
    """Root mean squares over all thresholds of a query, in counts, and the one over the other.

    `rms` is the forecast, `limit` a lower bound as `Forecast` has one for each threshold: here the whole budget is for
    all of them. With groups `by` names the columns that make them.
    """

    window: str
    k: tuple[int, ...]
    rms: float
    limit: float
    ratio_to_limit: float
    by: tuple[str, ...] | None

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON; without groups without their names."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def limits_together(planned: Planned) -> Iterator[Together]:
    """For each query of several thresholds at least, in the order asked; not where one of them has no limit."""
    entries = iter(planned.forecast())
    for allotment in planned.allotments:
        own = list(islice(entries, len(allotment.query.measures)))
        known = [entry.limit for entry in own if entry.limit is not None]
        if len(own) == 1 or len(known) < len(own):
            continue
        # The squared errors of thresholds add up, and so do their bounds.
        least, error = (math.sqrt(sum(one**2 for one in some) / len(own)) for some in (known, [e.rms for e in own]))
        thresholds = allotment.measurement.design.problem.thresholds
        jointly = together_limit(allotment.query.window, thresholds, planned.unit, planned.timeline.steps)
        if jointly is not None:
            least = max(least, jointly * limit_scale(planned.budget, planned.share_of(allotment)) * (1 - 1e-9))
        by = None if allotment.by is None else tuple(allotment.by)
        yield Together(own[0].window, thresholds, error, least, error / least, by)
