"""The estimates of each window family, threshold by threshold, smoothed as far as that is known to help."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpwindows import reading
from dpwindows.ask.queries import AnyWindow, Measure
from dpwindows.ask.windows import longest_window, window_steps
from dpwindows.kernel.designs import Design
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.plan.intervals import estimate_variance
from dpwindows.reading.noise_moments import common_share
from dpwindows.release.consistency.rows import row_lengths
from dpwindows.release.consistency.smoothing import (
    Smoothed,
    Smoothers,
    series_smoothers,
    smooth,
    traces,
    window_smoothers,
)

if TYPE_CHECKING:
    from dpwindows.plan.allotment import Allotment
    from dpwindows.plan.planned import Planned

# Steps after which activity may repeat itself, for steps of one hour, day, week or month.
_PERIODS = {"1h": (24, 168), "1d": (7,), "1w": (52,), "1mo": (12,)}
# Noise is simulated for about this many numbers of each family; how often at least, and at most.
_SIMULATED, _LEAST_OFTEN, _MOST_OFTEN = 200_000, 2, 64
# Public: what is simulated is the same for every release of a plan, so that a table follows from its estimates.
_SEED = 20


@dataclass(frozen=True)
class Known:
    """What is public of one window family, the same for each of its groups.

    `parts` numbers the part of the family that each window is in. `traces` are those of the estimates of each
    threshold, None where none are known.
    """

    allotment: Allotment
    steps: int
    smoothers: Smoothers
    parts: NDArray[np.uint8]
    traces: dict[int, FloatArray | None]

    @property
    def windows(self) -> tuple[IntArray, IntArray]:
        """First and last steps, worked out anew each time: there may be millions."""
        return window_steps(self.allotment.query.window, self.steps)

    @property
    def is_any(self) -> bool:
        """True for any windows."""
        return isinstance(self.allotment.query.window, AnyWindow)

    @property
    def asked(self) -> list[tuple[str, int]]:
        """Kind and k of every measure, in the order asked."""
        return [(measure.kind, measure.k) for measure in self.allotment.query.measures]


@dataclass(frozen=True)
class Family:
    """One window family with the smoothed counts of each threshold, and of exactly k where no more is known.

    Or with the estimates of its occurrences.
    """

    known: Known
    at_least: dict[int, Smoothed]
    exact: dict[int, Smoothed]
    occurrences: FloatArray | None = None


def known_of(plan: Planned, allotment: Allotment) -> Known:
    """What is public of the family that an allotment serves."""
    window, steps = allotment.query.window, plan.timeline.steps
    measurement = allotment.measurement
    if isinstance(window, AnyWindow):
        longest = longest_window(window, steps)
        octaves = np.ceil(np.log2(np.arange(1, longest + 1)))
        by_length = np.minimum(octaves, max(1, octaves[-1] - 1)).astype(np.uint8)
        parts = np.concatenate([by_length[:lengths] for lengths in row_lengths(steps, longest)[::-1].tolist()])
        smoothers = window_smoothers(steps, longest)
    else:
        first, last = window_steps(window, steps)
        parts = np.zeros(len(first), dtype=np.uint8)
        smoothers = series_smoothers(_segments(first, last), _PERIODS.get(plan.timeline.step_text, ()))
    size = float(estimate_variance(measurement, Measure("at_least", 1), np.ones(1))[0]) ** 0.5
    found: dict[int, FloatArray | None] = {}
    traced = {}
    for k in () if allotment.query.counts_occurrences else measurement.design.problem.thresholds:
        design = measurement.design.at(k)
        if id(design) not in found:
            # A biased decoder is no linear map of its noise.
            linear = reading.of(design).bias_bound() is None
            drawn = partial(_simulated, allotment, design, len(parts), size, common_share(measurement.law))
            found[id(design)] = traces(drawn, smoothers, parts) if linear else None
        traced[k] = found[id(design)]
    return Known(allotment, steps, smoothers, parts, traced)


def _segments(first: IntArray, last: IntArray) -> list[slice]:
    """Stretches of counts that are like one another: all of a series, unless it starts anew now and then."""
    anew = np.flatnonzero(first[1:] > last[:-1]) + 1
    if len(anew) == len(first) - 1:
        return [slice(0, len(first))]
    return [slice(begin, end) for begin, end in pairwise([0, *anew.tolist(), len(first)])]


def _simulated(allotment: Allotment, design: Design, rows: int, size: float, common: float) -> Iterator[FloatArray]:
    """Noise as the estimates have it, in mean and covariance: for traces only, no noise of a release."""
    generator = np.random.default_rng(_SEED)

    def noise() -> FloatArray:
        drawn = generator.standard_normal(design.rows)
        drawn *= size * math.sqrt(1 - common)
        if common:
            drawn += size * math.sqrt(common) * generator.standard_normal()
        return drawn

    for _ in range(min(_MOST_OFTEN, max(_LEAST_OFTEN, _SIMULATED // rows))):
        yield allotment.own(reading.of(design).decode(noise()))


def family_of(known: Known, estimates: Sequence[FloatArray]) -> Family:
    """The smoothed counts of one group, from the estimates of its measures.

    Exactly k, where at least k or k + 1 is known, is told by at-least counts.
    """
    if known.allotment.query.counts_occurrences:
        return Family(known, {}, {}, *estimates)
    measured = dict(zip(known.asked, estimates, strict=True))
    at_least = {k: values for (kind, k), values in measured.items() if kind == "at_least"}
    exact = {k: values for (kind, k), values in measured.items() if kind == "exactly"}
    for k in [*sorted(exact), *sorted(exact, reverse=True)]:
        if k in at_least and k + 1 not in at_least:
            at_least[k + 1] = at_least[k] - exact[k]
        elif k + 1 in at_least and k not in at_least:
            at_least[k] = at_least[k + 1] + exact[k]

    def smoothed(estimate: FloatArray, *thresholds: int) -> Smoothed:
        def variances() -> FloatArray:
            return reduce(np.add, (known.allotment.variance(Measure("at_least", k)) for k in thresholds))

        traced = [found for k in thresholds if (found := known.traces[k]) is not None]
        if len(traced) < len(thresholds):
            return Smoothed(estimate, variances())
        return smooth(estimate, variances, known.smoothers, np.sum(traced, axis=0), known.parts)

    return Family(
        known,
        {k: smoothed(values, k) for k, values in at_least.items()},
        # The difference of two counts, each with noise of its own.
        {k: smoothed(values, k, k + 1) for k, values in exact.items() if k not in at_least},
    )
