"""How strategies are compared: the error of a design at the noise that its certified bound needs."""

from __future__ import annotations

import math

import numpy as np

from dpwindows import reading
from dpwindows.kernel.accounting import GAUSSIAN, JOINT
from dpwindows.kernel.designs import Design
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.problem import Criterion
from dpwindows.reading.noise_moments import noise_variance
from dpwindows.strategies.strategy import PrescribedScale


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
