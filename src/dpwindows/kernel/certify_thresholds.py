"""How far one neighbour can move several thresholds, each measured through a map of its own: see `certify`.

| windows | maps | item added or removed | item changed arbitrarily |
|---|---|---|---|
| rolling | one matrix for each threshold | runs inside runs | four times that |
"""

from __future__ import annotations

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE
from dpwindows.ask.privacy import ItemAddRemove, ItemLevel
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.bounds.item_thresholds import rolling_thresholds_l2
from dpwindows.kernel.certify import Certificate, NotCertifiedError, require_own
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.filters import OffsetFilter
from dpwindows.kernel.maps.integer_maps import IntArray, IntegerMap
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.proofs import name_of


def by_threshold(problem: Problem, maps: tuple[IntegerMap, ...], steps: int | None, advise: Advise) -> Certificate:
    """Rolling counts, each threshold through a matrix of its own.

    Args:
        problem: window, unit, law and thresholds; its `steps` are not read.
        maps: the map that is applied to each threshold's counts, in their order.
        steps: the horizon in steps, None if there is none.
        advise: who is asked for the free choices of the bound.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    window, thresholds = problem.window, problem.thresholds
    # What holds the maps is the kernel's own too: another container might hand out others when they are applied.
    if type(maps) is not tuple:
        raise NotCertifiedError(problem, *maps)
    require_own(problem, *maps)
    covered = isinstance(problem.unit, ItemAddRemove | ItemLevel) and problem.law == GAUSSIAN
    matrices = [measured for one in maps if (measured := _matrix(one, steps)) is not None]
    if (
        not isinstance(window, Rolling)
        or not covered
        or problem.rule != EVERY_OCCURRENCE
        or steps is None
        or not len(matrices) == len(maps) == len(thresholds)
    ):
        raise NotCertifiedError(problem, *maps)
    formal = isinstance(problem.unit, ItemLevel)
    try:
        bound = rolling_thresholds_l2(matrices, window.length, thresholds, advise, formal=formal)
    except (ValueError, OverflowError):  # numbers beyond floats have no good prices
        raise NotCertifiedError(problem, *maps) from None
    return Certificate(bound, name_of(rolling_thresholds_l2), steps)


def _matrix(measured: IntegerMap, steps: int | None) -> IntArray | OffsetFilter | None:
    """What a bound is for of a map; None where there is none for so many steps."""
    if isinstance(measured, OffsetFilter):
        return measured if measured.length == steps else None
    square = isinstance(measured, MatrixCounter) and measured.weights.shape == (steps, steps)
    return measured.weights if square and isinstance(measured, MatrixCounter) else None
