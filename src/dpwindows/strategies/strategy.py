"""What a strategy is: its name, what it measures in a release and in a stream; and how designs are compared."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dpwindows import reading
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling
from dpwindows.kernel.accounting import GAUSSIAN, JOINT
from dpwindows.kernel.designs import Design, Shape, StepDesign, StepShape
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.problem import Criterion, Problem
from dpwindows.reading.noise_moments import noise_variance

# From a problem to a design, None where the strategy does not apply.
Batch = Callable[[Problem], Design | None]
# From a problem and a horizon (None: the stream has no end) to designs, none where the strategy does not apply.
Stream = Callable[[Problem, int | None], Iterator[StepDesign]]


@dataclass(frozen=True)
class Strategy:
    """One way to measure a window family.

    Attributes:
        name: what users call it.
        batch: its design for a release; None where it has nothing for releases.
        stream: its designs for a stream; None where it needs the future.
        outdone: whether another strategy always errs less on a problem; it is asked then by its name only.
    """

    name: str
    batch: Batch | None
    stream: Stream | None
    outdone: Callable[[Problem], bool] = lambda _: False


def to_stream(batch: Batch) -> Stream:
    """The designs that a strategy has for releases, measured step by step.

    They need nothing of the future, so a stream measures the same integers. Cumulative counts without a horizon have
    none, for their designs end with the range.
    """

    def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
        endless = isinstance(problem.window, Cumulative) and horizon is None
        if endless or not isinstance(problem.window, (Cumulative, Rolling, AnyWindow)):
            return
        design = batch(problem)
        if design is not None and isinstance(design.shape, StepShape):
            yield StepDesign(problem, design.shape, design.strategy, design.parameters, horizon=horizon)

    return stream


class PrescribedScale(Shape):
    """A shape that fixes its own noise scale instead of taking the least one that its sensitivity needs.

    The kernel proves the cost of that scale like any other.
    """

    @property
    @abstractmethod
    def prescribed(self) -> float:
        """The noise scale, in lattice units."""

    def counted(self, thresholds: tuple[int, ...]) -> tuple[int, ...]:
        """The thresholds whose exact answers are read to measure these."""
        return thresholds


# --- How strategies are compared --------------------------------------------------------------------------------------


def score(design: Design) -> float:
    """The error of a design in counts, at the noise that its certified bound needs: the smaller the better.

    The root of the mean (or the largest) over windows and thresholds of variance plus squared bias bound.
    """
    variances = [reading.of(design.at(k)).variance() for k in design.problem.thresholds[: 1 if design.alike else None]]
    bias = reading.of(design).bias_bound() if design.alike else None
    return score_of(noise_factor(design) ** 2 * np.concatenate(variances), bias, design.problem.criterion)


def score_of(variance: FloatArray, bias: FloatArray | None, criterion: Criterion) -> float:
    """The error of estimates with these variances and bias bounds, in counts, by a criterion."""
    squared = variance if bias is None else variance + bias**2
    return float(np.sqrt(squared.max() if criterion == "max" else squared.mean()))


def noise_factor(design: Design) -> float:
    """The noise of each measured number that the budget buys for this design's sensitivity, in lattice units."""
    law, per_unit = design.problem.law, design.problem.noise_per_unit
    if law in JOINT:
        return math.sqrt(noise_variance(law, per_unit * design.sensitivity, design.rows))
    reach = design.sensitivity**0.5 if law == GAUSSIAN else float(design.sensitivity)
    spread = 1.0 if law == GAUSSIAN else 2**0.5
    if isinstance(design.shape, PrescribedScale):
        return spread * design.shape.prescribed
    return spread * per_unit * reach
