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
from dpwindows.kernel.bounds.item_thresholds import rolling_thresholds_l2
from dpwindows.kernel.certify import Certificate, NotCertifiedError, require_own
from dpwindows.kernel.maps.counters import CausalCounter, ListedRows, OffsetFilter, OffsetRows, TriangularCounter
from dpwindows.kernel.maps.integer_maps import CausalMap, IntArray, IntegerMap
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.proofs import name_of


def by_threshold(
    problem: Problem, maps: tuple[IntegerMap, ...] | tuple[CausalMap, ...], steps: int | None
) -> Certificate:
    """Rolling counts, each threshold through a matrix of its own.

    Args:
        problem: window, unit, law and thresholds; its `steps` are not read.
        maps: the map that is applied to each threshold's counts, in their order.
        steps: the horizon in steps, None if there is none.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    window, thresholds = problem.window, problem.thresholds
    # What holds the maps is the kernel's own too: another container might hand out others when they are applied.
    if type(maps) is not tuple:
        raise NotCertifiedError(problem, *maps)
    require_own(problem, *maps)
    covered = isinstance(problem.unit, ItemAddRemove | ItemLevel) and problem.law == GAUSSIAN
    matrices = [_matrix(one) for one in maps]
    if (
        not isinstance(window, Rolling)
        or not covered
        or problem.rule != EVERY_OCCURRENCE
        or len(maps) != len(thresholds)
        or any(matrix is None or _places(matrix) != (steps, steps) for matrix in matrices)
    ):
        raise NotCertifiedError(problem, *maps)
    formal = isinstance(problem.unit, ItemLevel)
    try:
        weights = [matrix for matrix in matrices if matrix is not None]
        bound = rolling_thresholds_l2(weights, window.length, thresholds, formal=formal)
    except (ValueError, OverflowError):  # numbers beyond floats have no good prices
        raise NotCertifiedError(problem, *maps) from None
    return Certificate(bound, name_of(rolling_thresholds_l2), _places(weights[0])[0])


def _places(matrix: IntArray | OffsetRows) -> tuple[int, ...]:
    """How many rows and columns there are."""
    return (matrix.longest,) * 2 if isinstance(matrix, OffsetRows) else matrix.shape


def _matrix(measured: IntegerMap | CausalMap) -> IntArray | OffsetRows | None:
    match measured:
        case OffsetFilter(matrix=rows) | CausalCounter(rows=OffsetRows() as rows):
            return rows
        case TriangularCounter(weights=matrix) | CausalCounter(rows=ListedRows(matrix=matrix)):
            return matrix
    return None
