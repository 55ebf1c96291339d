"""Certificates of cumulative and of rolling counts: one series over time through one map.

They are the first two families of the table in `dpwindows.kernel.certify`. The last one, a single number, is here too.
"""

from __future__ import annotations

from collections.abc import Callable

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import Cumulative, LostItems, Rolling
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.bounds import offset_patterns, pattern_sensitivity, period_sensitivity, sensitivity
from dpwindows.kernel.bounds.counted_by_rule import items_that_lost
from dpwindows.kernel.certify import NotCertifiedError, direct, require_own
from dpwindows.kernel.maps.counters import (
    CausalCounter,
    ListedRows,
    OffsetFilter,
    OffsetRows,
    TriangularCounter,
    WeightedCounter,
    WeightedRows,
)
from dpwindows.kernel.maps.differences import AnchoredDifferences, CausalAnchors
from dpwindows.kernel.maps.endless_counter import MOST_STEPS, LogarithmicRows, cumulative_unlimited_l2
from dpwindows.kernel.maps.filters import CausalFilter, CausalIdentity, Filter, Identity
from dpwindows.kernel.maps.integer_maps import CausalMap, IntArray, IntegerMap
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree, Tree
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.proofs import name_of

# Cross terms between runs are worked out up to this many cells (thresholds times squared length): a few seconds.
_CHAINED = 10_000_000
# Ranges of so many parts of a period more than it are nearly all of it.
_NEARLY_ALL = 4


def along_time(problem: Problem, measured: IntegerMap | CausalMap, steps: int | None) -> tuple[int, str]:
    """Cumulative or rolling counts, one series over time through one map.

    Args:
        problem: window family, unit, law and thresholds; its `steps` are not read.
        measured: the map that is applied.
        steps: the horizon in steps, None if there is none.

    Returns:
        The bound and the name of its proof.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    require_own(problem, measured)
    if isinstance(problem.window, LostItems):
        return _lost(problem, measured)
    match measured:
        case Filter(taps=taps) | CausalFilter(taps=taps) if problem.law == GAUSSIAN:
            return _filter(problem, taps, steps)
        case AnchoredDifferences() | CausalAnchors() if problem.law == LAPLACE and isinstance(problem.window, Rolling):
            return differences(problem, measured, steps)
        case TriangularCounter(weights=matrix) | CausalCounter(rows=ListedRows(matrix=matrix)) if (
            problem.law == GAUSSIAN and isinstance(problem.window, Rolling) and steps == len(matrix)
        ):
            return _matrix_on_rolling(problem, matrix)
        case OffsetFilter(matrix=OffsetRows() as rows) | CausalCounter(rows=OffsetRows() as rows):
            return _offset_filter(problem, rows, steps)
        case Identity(unit=unit) | CausalIdentity(unit=unit):
            return direct(problem, unit, steps)
    if isinstance(problem.window, Cumulative):
        return _counter(problem, measured, steps)
    raise NotCertifiedError(problem, measured)


def _lost(problem: Problem, measured: IntegerMap | CausalMap) -> tuple[int, str]:
    """The number of items that lost something by the rule, as it is."""
    if not isinstance(measured, Identity) or not problem.rule.bounded:
        raise NotCertifiedError(problem, measured)
    power = 2 if problem.law == GAUSSIAN else 1
    return items_that_lost(measured.unit, power, problem.thresholds), name_of(items_that_lost)


def _filter(problem: Problem, taps: tuple[int, ...], steps: int | None) -> tuple[int, str]:
    found: list[tuple[int, str]] = []
    contracting = sensitivity.has_contracting_signs(taps)
    thresholds, rule = problem.thresholds, problem.rule

    def add(bound: Callable[..., int], *arguments: object) -> None:
        found.append((bound(*arguments), name_of(bound)))

    match problem.window, problem.unit:
        case Rolling(length=length), EventLevel():
            reach = length if steps is None else min(length, steps)
            if contracting:
                add(sensitivity.rolling_filter_event_l2, taps, length, reach, thresholds)
            if not contracting or (sum(thresholds) > 1 and sum(thresholds) * reach**2 <= _CHAINED):
                add(pattern_sensitivity.rolling_patterns_event_l2, taps, length, reach, thresholds)
        case Rolling(length=length), ItemPerPeriod(steps=period):
            if contracting:
                add(period_sensitivity.rolling_filter_period_l2, taps, length, period, steps, thresholds)
            add(pattern_sensitivity.rolling_patterns_period_l2, taps, length, period, steps, thresholds)
            if steps is not None and period < steps <= period + period // _NEARLY_ALL:
                # An item that changes within a period changes within all steps, where sharper bounds may hold.
                add(pattern_sensitivity.rolling_patterns_period_l2, taps, length, steps, steps, thresholds)
        case Rolling(length=length), ItemLevel() if steps is not None:
            if contracting:
                add(period_sensitivity.rolling_filter_period_l2, taps, length, steps, steps, thresholds, rule)
            add(pattern_sensitivity.rolling_patterns_period_l2, taps, length, steps, steps, thresholds, rule)
        case Rolling(length=length), ItemAddRemove() if steps is not None:
            if contracting:
                add(sensitivity.rolling_filter_add_remove_l2, taps, length, steps, thresholds, rule)
            if not contracting or steps <= pattern_sensitivity.LONGEST_CHAIN:
                add(pattern_sensitivity.rolling_patterns_add_remove_l2, taps, length, steps, thresholds, rule)
        case Cumulative(), ItemAddRemove() if steps is not None:
            response = [int(value) for value in sensitivity.prefix_sums(taps, steps)]
            add(sensitivity.cumulative_counter_add_remove_l2, response, [1] * steps, steps, thresholds)
        case Cumulative(), EventLevel() if steps is not None and (contracting or len(thresholds) == 1):
            add(sensitivity.cumulative_filter_event_l2, taps, steps, thresholds)
        case Cumulative(), (ItemPerPeriod() | ItemLevel() | EventLevel()) if steps is not None:
            # One occurrence more is a change of one item.
            add(sensitivity.cumulative_filter_item_l2, taps, steps, thresholds)
        case _:
            raise NotCertifiedError(problem, Filter(1, taps))
    return min(found)


def _matrix_on_rolling(problem: Problem, matrix: IntArray) -> tuple[int, str]:
    """Rolling counts through a matrix of integers on the increments."""
    if not isinstance(problem.window, Rolling) or not isinstance(problem.unit, ItemAddRemove):
        raise NotCertifiedError(problem, TriangularCounter(matrix))
    offset = offset_patterns.rolling_offset_add_remove_l2
    bound = offset(matrix, problem.window.length, len(matrix), problem.thresholds, problem.rule)
    return bound, name_of(offset)


def _offset_filter(problem: Problem, rows: OffsetRows, steps: int | None) -> tuple[int, str]:
    """Rolling counts through a filter with a common offset."""
    bound, window = offset_patterns.rolling_offset_filter_add_remove_l2, problem.window
    covered = problem.law == GAUSSIAN and isinstance(problem.unit, ItemAddRemove) and steps == rows.longest
    if not covered or not isinstance(window, Rolling):
        raise NotCertifiedError(problem, OffsetFilter(rows))
    try:
        return bound(rows, window.length, problem.thresholds, problem.rule), name_of(bound)
    except ValueError:
        raise NotCertifiedError(problem, OffsetFilter(rows)) from None


def differences(problem: Problem, measured: AnchoredDifferences | CausalAnchors, steps: int | None) -> tuple[int, str]:
    """Rolling counts through anchored differences, Laplace noise; as `along_time`.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    assert isinstance(problem.window, Rolling)
    weights = (measured.step_weight, measured.anchor_weight, measured.every)
    length, thresholds = problem.window.length, problem.thresholds
    match problem.unit:
        case ItemPerPeriod(steps=period):
            bound = period_sensitivity.rolling_differences_period_l1
            return bound(*weights, length, period, steps, thresholds), name_of(bound)
        case EventLevel():
            reach = length if steps is None else min(length, steps)
            event = sensitivity.rolling_differences_event_l1
            return event(*weights, length, reach, thresholds), name_of(event)
        case ItemLevel() | ItemAddRemove() if steps is not None:
            item, formal = sensitivity.rolling_differences_item_l1, isinstance(problem.unit, ItemLevel)
            return item(*weights, length, steps, thresholds, formal=formal, rule=problem.rule), name_of(item)
    raise NotCertifiedError(problem, measured)


def _counter(problem: Problem, measured: IntegerMap | CausalMap, steps: int | None) -> tuple[int, str]:
    """Cumulative counts through sums of increments."""
    present = isinstance(problem.unit, ItemAddRemove)
    if not _as_long(measured, steps):
        raise NotCertifiedError(problem, measured)
    ends, thresholds = 1 if present else 2, problem.thresholds
    match measured:
        case Tree() | TentTree() if problem.law == LAPLACE:
            bound = sensitivity.cumulative_tree_l1
            return bound(measured.column_total, ends, thresholds), name_of(bound)
        case CausalTree(weights=weights) if problem.law == LAPLACE:
            bound = sensitivity.cumulative_tree_l1
            return bound(sum(weights), ends, thresholds), name_of(bound)
        case WeightedCounter(taps=taps, weights=weights) if problem.law == GAUSSIAN and present:
            column = sensitivity.cumulative_counter_add_remove_l2
            return column(taps, weights, len(weights), thresholds), name_of(column)
        case CausalCounter(rows=WeightedRows(taps=listed, weights=scaled)) if problem.law == GAUSSIAN and present:
            column = sensitivity.cumulative_counter_add_remove_l2
            return column([int(tap) for tap in listed], [int(w) for w in scaled], len(scaled), thresholds), name_of(
                column
            )
        case TriangularCounter(weights=matrix) | CausalCounter(rows=ListedRows(matrix=matrix)) if (
            problem.law == GAUSSIAN and present
        ):
            columns = pattern_sensitivity.cumulative_triangular_add_remove_l2
            return columns(matrix, thresholds), name_of(columns)
        case CausalCounter(rows=LogarithmicRows() as rows) if problem.law == GAUSSIAN:
            return cumulative_unlimited_l2(rows, ends, thresholds), name_of(cumulative_unlimited_l2)
    raise NotCertifiedError(problem, measured)


def _as_long(measured: IntegerMap | CausalMap, steps: int | None) -> bool:
    """Whether a counter that lists its weights has some for every step: where it runs out of them there is no bound."""
    match measured:
        case WeightedCounter(weights=weights):
            return steps == len(weights)
        case CausalCounter(rows=ListedRows() | WeightedRows() as rows):
            return steps is not None and steps <= rows.longest
    return True


def moved_along_time(problem: Problem, measured: CausalMap, steps: int | None) -> int:
    """How many numbers one neighbour can change where each looks back over as many ends as the map remembers."""
    match measured:
        case CausalFilter(taps=taps):
            memory = len(taps) - 1
        case CausalIdentity():
            memory = 0
        case _:
            memory = MOST_STEPS
    most = MOST_STEPS if steps is None else steps
    match problem.window, problem.unit:
        case Rolling(length=length), EventLevel():
            changed = length
        case Rolling(length=length), ItemPerPeriod(steps=period):
            changed = length + period - 1
        case _:
            changed = most
    return min(most, changed + memory)
