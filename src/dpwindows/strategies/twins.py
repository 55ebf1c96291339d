"""Designs of a release that need nothing of the future, as designs of a stream: the same integers, step by step."""

from __future__ import annotations

from collections.abc import Iterator

from dpwindows.ask.queries import Cumulative, Rolling
from dpwindows.kernel.maps.counters import CausalCounter, ListedRows, OffsetFilter, TriangularCounter
from dpwindows.kernel.maps.filters import CausalFilter, CausalIdentity, Filter, Identity
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import SeriesShape, StepDesign
from dpwindows.kernel.shapes.series import SeriesDesign
from dpwindows.kernel.shapes.thresholds import StepThresholds, ThresholdsDesign, ThresholdsShape
from dpwindows.strategies.strategy import Batch


def twins(batch: Batch, problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """The design that a strategy has for a release of cumulative or rolling counts, in a stream.

    Args:
        batch: the strategy for releases.
        problem: what is measured; its `steps` are those that the design is searched for.
        horizon: the steps after which the stream ends; None: cumulative counts have no twin.
    """
    endless = isinstance(problem.window, Cumulative) and horizon is None
    if endless or not isinstance(problem.window, (Cumulative, Rolling)):
        return
    design = batch(problem)
    if isinstance(design, SeriesDesign) and (found := _twin(design.map)) is not None:
        shape = SeriesShape(problem.window, found)
        yield StepDesign(problem, shape, design.strategy, horizon, dict(design.parameters))
    if isinstance(design, ThresholdsDesign) and isinstance(problem.window, Rolling):
        maps = tuple(found for one in design.maps if (found := _twin(one)) is not None)
        by_threshold = ThresholdsShape(problem.window, problem.thresholds, maps)
        yield StepThresholds(problem, by_threshold, design.strategy, horizon, dict(design.parameters))


def _twin(of: IntegerMap) -> CausalMap | None:
    """The causal side of a map; None where it needs the future."""
    match of:
        case Filter(taps=taps):
            return CausalFilter(taps)
        case Identity(unit=unit):
            return CausalIdentity(unit)
        case TriangularCounter(weights=weights):
            return CausalCounter(ListedRows(weights))
        case OffsetFilter(matrix=matrix):
            return CausalCounter(matrix)
    return None
