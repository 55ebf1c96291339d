"""Certificates of cumulative and of rolling counts: one series over time through one map.

They are the first two families of the table in `dpwindows.kernel.certify`. The last one, a single number, is here too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import Cumulative, LostItems, Rolling
from dpwindows.kernel.accounting import GAUSSIAN, JOINT, LAPLACE
from dpwindows.kernel.advice import Advise, apart
from dpwindows.kernel.bounds import offset_patterns, pattern_sensitivity, period_sensitivity, sensitivity
from dpwindows.kernel.bounds.counted_by_rule import items_that_lost
from dpwindows.kernel.certify import NotCertifiedError, direct, require_own
from dpwindows.kernel.families.lines import filter_costs, lines_bound, one_line
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.endless_counter import MOST_STEPS, EndlessCounter
from dpwindows.kernel.maps.filters import Filter, Identity, OffsetFilter
from dpwindows.kernel.maps.integer_maps import IntArray, IntegerMap
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.proofs import name_of

# Cross terms between runs are worked out up to this many cells (thresholds times squared length): a few seconds.
_CHAINED = 10_000_000
# Ranges of so many parts of a period more than it are nearly all of it.
_NEARLY_ALL = 4


def along_time(problem: Problem, measured: IntegerMap, steps: int | None, advise: Advise) -> tuple[int, str]:
    """Cumulative or rolling counts, one series over time through one map.

    Args:
        problem: window family, unit, law and thresholds; its `steps` are not read.
        measured: the map that is applied.
        steps: the horizon in steps, None if there is none.
        advise: who is asked for the free choices of a bound.

    Returns:
        The bound and the name of its proof.

    Raises:
        NotCertifiedError: no proof covers it.
        ValueError: an answer is none that is legal.
    """
    require_own(problem, measured)
    if isinstance(problem.window, LostItems):
        return _lost(problem, measured)
    match measured:
        case Filter(taps=taps) if problem.law == GAUSSIAN:
            return _filter(problem, taps, steps, advise)
        case AnchoredDifferences() if problem.law == LAPLACE and isinstance(problem.window, Rolling):
            return differences(problem, measured, steps)
        case MatrixCounter(weights=matrix) if (
            problem.law == GAUSSIAN and isinstance(problem.window, Rolling) and steps == len(matrix)
        ):
            return _matrix_on_rolling(problem, matrix, advise)
        case OffsetFilter():
            return _offset_filter(problem, measured, steps, advise)
        case Identity(unit=unit):
            return direct(problem, unit, steps)
    if isinstance(problem.window, Cumulative):
        costs = cumulative_costs(problem, measured, steps)
        return lines_bound(one_line(len(costs) - 1), costs, len(problem.thresholds)), name_of(lines_bound)
    raise NotCertifiedError(problem, measured)


def _lost(problem: Problem, measured: IntegerMap) -> tuple[int, str]:
    """The number of items that lost something by the rule, as it is."""
    if not isinstance(measured, Identity) or not problem.rule.bounded:
        raise NotCertifiedError(problem, measured)
    power = 2 if problem.law == GAUSSIAN else 1
    return items_that_lost(measured.unit, power, problem.thresholds), name_of(items_that_lost)


def _filter(problem: Problem, taps: tuple[int, ...], steps: int | None, advise: Advise) -> tuple[int, str]:
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
                add(pattern_sensitivity.rolling_patterns_event_l2, taps, length, reach, thresholds, advise)
        case Rolling(length=length), ItemPerPeriod(steps=period):
            add(pattern_sensitivity.rolling_patterns_period_l2, taps, length, period, steps, thresholds, advise)
            if steps is not None and period < steps <= period + period // _NEARLY_ALL:
                # An item that changes within a period changes within all steps, where sharper bounds may hold.
                whole = apart(advise, "all steps")
                add(pattern_sensitivity.rolling_patterns_period_l2, taps, length, steps, steps, thresholds, whole)
        case Rolling(length=length), ItemLevel() if steps is not None:
            if contracting and rule.bounded:
                add(period_sensitivity.rolling_filter_item_l2, taps, length, steps, thresholds, rule)
            add(pattern_sensitivity.rolling_patterns_period_l2, taps, length, steps, steps, thresholds, advise, rule)
        case Rolling(length=length), ItemAddRemove() if steps is not None:
            if contracting:
                add(sensitivity.rolling_filter_add_remove_l2, taps, length, steps, thresholds, rule)
            if not contracting or steps <= pattern_sensitivity.LONGEST_CHAIN:
                add(pattern_sensitivity.rolling_patterns_add_remove_l2, taps, length, steps, thresholds, advise, rule)
        case Cumulative(), EventLevel() if steps is not None and (contracting or len(thresholds) == 1):
            add(sensitivity.cumulative_filter_event_l2, taps, steps, thresholds)
        case Cumulative(), _ if steps is not None:
            add(lines_bound, one_line(steps), cumulative_costs(problem, Filter(taps), steps), len(thresholds))
        case _:
            raise NotCertifiedError(problem, Filter(taps))
    return min(found)


def _matrix_on_rolling(problem: Problem, matrix: IntArray, advise: Advise) -> tuple[int, str]:
    """Rolling counts through a matrix of integers on the increments."""
    if not isinstance(problem.window, Rolling) or not isinstance(problem.unit, ItemAddRemove):
        raise NotCertifiedError(problem, MatrixCounter(matrix))
    offset = offset_patterns.rolling_offset_add_remove_l2
    bound = offset(matrix, problem.window.length, len(matrix), problem.thresholds, advise, problem.rule)
    return bound, name_of(offset)


def _offset_filter(problem: Problem, measured: OffsetFilter, steps: int | None, advise: Advise) -> tuple[int, str]:
    """Rolling counts through a filter with a common offset."""
    bound, window = offset_patterns.rolling_offset_filter_add_remove_l2, problem.window
    covered = problem.law == GAUSSIAN and isinstance(problem.unit, ItemAddRemove) and steps == measured.length
    if not covered or not isinstance(window, Rolling):
        raise NotCertifiedError(problem, measured)
    try:
        return bound(measured, window.length, problem.thresholds, advise, problem.rule), name_of(bound)
    except ValueError:
        raise NotCertifiedError(problem, measured) from None


def differences(problem: Problem, measured: AnchoredDifferences, steps: int | None) -> tuple[int, str]:
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


def cumulative_costs(problem: Problem, measured: IntegerMap, steps: int | None) -> Sequence[int]:
    """For n = 0, 1, ... what a change in the last n of so many cumulative counts of one threshold costs.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    require_own(problem, measured)
    present = isinstance(problem.unit, ItemAddRemove)
    gaussian, ends = problem.law == GAUSSIAN, 1 if present else 2
    match measured:
        case Filter(taps=taps) if gaussian and steps is not None:
            return filter_costs(taps, steps, 2, formal=not present)
        case Identity(unit=unit) if problem.law not in JOINT and steps is not None:
            cell = unit**2 if gaussian else unit
            return range(0, cell * (steps + 1), cell)
        case TentTree(column_total=column) if problem.law == LAPLACE:
            return 0, ends * column
        case CausalTree(weights=weights) if problem.law == LAPLACE:
            return 0, ends * sum(weights)
        # Where it runs out of rows there is no bound.
        case MatrixCounter(weights=matrix) if gaussian and present and steps is not None and steps <= len(matrix):
            return 0, int((matrix.astype(object) ** 2).sum(axis=0).max())
        case EndlessCounter() if gaussian:
            return 0, ends * measured.column
    raise NotCertifiedError(problem, measured)


def moved_along_time(problem: Problem, measured: IntegerMap, steps: int | None) -> int:
    """How many numbers one neighbour can change where each looks back over as many ends as the map remembers."""
    if isinstance(problem.window, LostItems):
        return 1
    match measured:
        case Filter(taps=taps):
            memory = len(taps) - 1
        case Identity():
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
