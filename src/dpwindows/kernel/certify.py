"""Certificates: how far one neighbour can move what is measured, derived from the very integers that are applied.

One table says which proof covers which measurement, by window family, unit of privacy, noise law and kind of map.
What it does not list is refused. The functions read the integers of the maps in use, so no caller can state a bound
smaller than the proved one.

| windows | map | event | item within L steps | item, changed | item, added or removed |
|---|---|---|---|---|---|
| cumulative | filter | interval | interval | interval | longest column |
| | tree of increments | two ends | two ends | two ends | one end |
| | counter, matrix of increments | - | - | - | longest column |
| | counter without end | two ends | two ends | two ends | one end |
| rolling | filter | runs | signed runs | signed runs | runs |
| | matrix of increments | - | - | - | runs less an offset |
| | filter with an offset | - | - | - | runs less an offset |
| | differences and anchors | runs | signed runs | runs of both | runs |
| | several thresholds, a matrix for each | - | - | runs inside runs, twice | runs inside runs |
| any | filters on both axes | rectangles | - | - | - |
| | filters on both axes, of the windows inside | rectangles | - | - | - |
| | the same, weighed by length, k = 1 | rectangles | - | - | - |
| | trees on both axes | corners | - | - | - |
| | counter for every start | - | starts met | starts | starts |
| | counters crossed | - | lines met | lines | lines |
| | filter over gaps, k = 1 | - | - | gaps of both | gaps |
| all | none: every answer by itself | windows met | windows met | all windows | all windows |
| none: items that lost something | none | - | - | one item | one item |
| all but any, noise for all at once | none | - | cube | cube | cube, or one direction |

Here stand the rows of any windows, and of answers measured by themselves; those of cumulative and rolling counts, and
of the items that lost something by a rule of counting, stand in `certify_series`. Tumbling counts and counts to date
are certified by the rows of rolling and cumulative counts, in `certify_periods`; rolling counts of several lengths that
are measured as one in `certify_together`, those of several thresholds with a map for each in `certify_thresholds`, and
series whose noise is drawn for all numbers at once in `certify_joint`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, LostItems, Rolling, RollingTogether, ToDate, Tumbling
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN, JOINT, LAPLACE
from dpwindows.kernel.bounds import period_sensitivity, rectangles, sensitivity
from dpwindows.kernel.bounds.counted_by_rule import places_by_rule
from dpwindows.kernel.bounds.gaps import gap_filter_l1, gap_filter_l2
from dpwindows.kernel.bounds.weighted_rectangles import any_weighted_event_l2
from dpwindows.kernel.families.lines import CrossedBlock, crossed_lines, filter_costs, lines_bound, lines_of_starts
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.endless_counter import EndlessCounter
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.maps.gaps import GapFilter
from dpwindows.kernel.maps.integer_maps import IntegerMap
from dpwindows.kernel.maps.matrix_filters import MatrixFilter
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.problem import BOUNDED_UNITS, Problem
from dpwindows.kernel.proofs import name_of

# Where the kernel's maps are.
_MAPS = "dpwindows.kernel.maps."
# What they are made of beside one another.
_PLAIN = (int, bool, type(None))
# What a problem, its window, its unit and its rule are.
_WINDOWS = (Cumulative, Rolling, RollingTogether, AnyWindow, Tumbling, ToDate, LostItems)
_ASKED = ((Problem,), _WINDOWS, BOUNDED_UNITS, (CountingRule,))


@dataclass(frozen=True)
class Certificate:
    """What is proved of one measurement.

    Attributes:
        bound: the most that one neighbour can move all that is measured, over all thresholds together: the L1 norm
            under Laplace noise, the squared L2 norm under Gaussian noise, in (squared) lattice units; under a joint law
            its norm, summed over the vectors that are drawn.
        proof: name of the proof (`dpwindows.kernel.proofs`).
        moved: under Gaussian noise, which is charged for it, the most numbers of one threshold that one neighbour can
            change. Under Laplace noise nothing reads it.
        squared: under Laplace noise, a bound on the squared L2 norm too, where it is known.
    """

    bound: int
    proof: str
    moved: int
    squared: int | None = None


class NotCertifiedError(ValueError):
    """No proof covers a measurement: a strategy proposed what the table does not list."""

    def __init__(self, problem: Problem, *maps: object) -> None:
        kinds = " and ".join(type(one).__name__ for one in maps)
        super().__init__(
            f"no proof covers {problem.window} windows through {kinds} for unit {problem.unit.name!r} "
            f"with {problem.law} noise"
        )


def require_own(problem: Problem, *maps: IntegerMap | MatrixFilter | GapFilter) -> None:
    """Refuse maps that no bound is for: of classes that are not the kernel's, or with weights that it does not cover.

    A bound is derived from a map's integers and holds for what its class encodes: a class derived from it might encode
    anything. Bounds that add weights up would take one that is negative off another. Taps of filters and rows of
    counters may have any sign; their bounds take them as they are.

    Raises:
        NotCertifiedError: a map is one of these.
    """
    for measured in maps:
        if not _is_own(measured):
            raise NotCertifiedError(problem, measured)
        match measured:
            case Identity(unit=unit):
                sizes: tuple[int, ...] = (unit,)
            case AnchoredDifferences():
                sizes = (measured.every, measured.step_weight, measured.anchor_weight)
            case CausalTree(weights=weights, branching=branching):
                sizes = (branching - 1, *weights)
            case GapFilter(weights=weights, total=total):
                sizes = (total, *weights)
            case EndlessCounter(bits=bits):
                sizes = (bits + 1, 63 - bits)
            case _:
                continue
        if min(sizes) < 1:
            raise NotCertifiedError(problem, measured)


def require_plain(problem: Problem, shape: Any, horizon: int | None) -> None:
    """Refuse what is asked in other classes than ours, no steps, and a shape of the kernel's with other numbers.

    A class derived from a window might read its length otherwise once it is certified, and what bounds do with other
    numbers than whole ones may wrap.

    Raises:
        NotCertifiedError: the problem, the shape or the horizon is made of anything else.
    """
    asked = (type(problem), type(problem.window), type(problem.unit), type(problem.rule))
    if any(known not in legal for known, legal in zip(asked, _ASKED, strict=True)):
        raise NotCertifiedError(problem, shape)
    if any(type(steps) is not int or steps < 1 for steps in (problem.steps, 1 if horizon is None else horizon)):
        raise NotCertifiedError(problem, shape)
    ours = type(shape).__module__.startswith("dpwindows.kernel.")
    parts = [getattr(shape, place.name) for place in fields(shape) if place.name != "inner"] if ours else []
    if not all(map(_is_own, parts)):
        raise NotCertifiedError(problem, shape)


def _is_own(part: Any) -> bool:
    """Whether a map, and all that it is made of, is of the kernel's own classes, or whole numbers and lists of them.

    Bounds cut a fraction off and add up in the type they are given: 0.9 would cost nothing, and small types wrap.
    """
    if type(part) in _PLAIN:
        return True
    if type(part) is np.ndarray:
        # What is measured must stay what was certified; and one number in an array wraps where a whole number grows.
        if part.flags.writeable or not part.ndim:
            return False
        return part.dtype == np.int64 or (part.dtype == object and all(map(_is_own, part.flat)))
    if type(part) is tuple:
        return all(map(_is_own, part))
    held = [getattr(part, place.name) for place in fields(part)] if is_dataclass(part) else []
    return type(part).__module__.startswith(_MAPS) and all(map(_is_own, held))


# --- Every answer by itself -------------------------------------------------------------------------------------------


def direct(problem: Problem, unit: int, steps: int | None) -> tuple[int, str]:
    """Every answer measured as it is, on a lattice of `unit` to a count, for every window family.

    Args:
        problem: window family, unit, law and thresholds; its `steps` are not read.
        unit: lattice units to one count.
        steps: the horizon in steps, None if there is none.

    Returns:
        The bound and the name of its proof.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    if isinstance(problem.window, LostItems) or problem.law in JOINT:
        # It has one window, and no shape but a series of one number measures no more than that; `certify_joint`.
        raise NotCertifiedError(problem, Identity(unit))
    cells = _windows_met(problem, steps)
    if not isinstance(problem.unit, EventLevel):
        whole = len(problem.thresholds) * cells
        # Of a rule of counting that leaves fewer rolling windows: those of the item, or of both if it changes.
        if isinstance(problem.window, Rolling) and isinstance(problem.unit, (ItemLevel, ItemAddRemove)):
            places = [places_by_rule(problem.rule, k, problem.window.length, cells) for k in problem.thresholds]
            whole = min(whole, sum(places) * (2 if isinstance(problem.unit, ItemLevel) else 1))
        cells = whole
    return cells * unit ** _power(problem), name_of(lines_bound)


def _windows_met(problem: Problem, steps: int | None) -> int:
    """The most windows that one neighbour can change, each for one threshold: lines of one place.

    Windows from one start are as many lines of one place as they are places of one line.
    """
    match problem.window, _span(problem.unit, steps):
        case Rolling(length=length), int(span):
            return period_sensitivity.affected_ends(length, span, steps)
        case Cumulative(), int() if steps is not None:
            return steps
        case AnyWindow(max_length=most), int(span) if (
            longest := most if steps is None else longest_window(problem.window, steps)
        ):
            return lines_bound(lines_of_starts(longest, span, steps), range(longest + 1), 1)
    raise NotCertifiedError(problem, Identity(1))


def _span(unit: Unit, steps: int | None) -> int | None:
    """The steps within which two neighbours differ: one for an event, all for a whole item; None if there is no end."""
    match unit:
        case EventLevel():
            return 1
        case ItemPerPeriod(steps=period):
            return period if steps is None else min(period, steps)
        case ItemLevel() | ItemAddRemove():
            return steps
    return None


def _power(problem: Problem) -> int:
    """The power of the norm that the noise law is charged for."""
    return 2 if problem.law == GAUSSIAN else 1


# --- Any windows ------------------------------------------------------------------------------------------------------


def blocks(
    problem: Problem,
    axes: Sequence[tuple[IntegerMap, IntegerMap]],
    width: int,
    extent: int,
    most: int | None = None,
) -> tuple[int, str]:
    """Any windows in blocks of starts, one tree on the starts of a block times one tree on its ends.

    Args:
        problem: window family, unit, law and thresholds.
        axes: the tree on the starts and the tree on the ends of every block, as they are applied.
        width: the starts of a block, in steps.
        extent: the ends that are measured with a block, in steps from its first start; fewer where the horizon cuts.
        most: how many blocks there are, None if there is no end of them.

    Returns:
        The bound and the name of its proof.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    require_own(problem, *(one for pair in axes for one in pair))
    totals = [(_column_total(starts), _column_total(ends)) for starts, ends in axes]
    event = isinstance(problem.window, AnyWindow) and isinstance(problem.unit, EventLevel)
    if not event or problem.law != LAPLACE or min(total for pair in totals for total in pair) < 1:
        raise NotCertifiedError(problem, *axes[0])
    corners = sensitivity.any_tree_event_l1
    met = -(-extent // width) if most is None else min(-(-extent // width), most)
    along_starts, along_ends = (max(column) for column in zip(*totals, strict=True))
    return corners(along_starts, along_ends, met, problem.thresholds), name_of(corners)


def nested(
    problem: Problem, taps: tuple[int, ...], longest: int, steps: int | None, weights: tuple[int, ...] = ()
) -> tuple[int, str, int]:
    """Any windows, each of at most `longest` steps measured with those inside it by one filter on starts and on ends.

    Args:
        problem: window family, unit, law and thresholds.
        taps: the taps of the filter.
        longest: the steps of the longest window of the range that is inside a measured one.
        steps: the steps that are measured, None if there is no end of them.
        weights: of windows by length, if they are weighed: for at least 1 alone.

    Returns:
        The bound, the name of its proof, and how many of the windows of at most `longest` steps a neighbour changes.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    require_own(problem, Filter(taps))
    event = isinstance(problem.window, AnyWindow) and isinstance(problem.unit, EventLevel)
    moved = lines_bound(lines_of_starts(longest, 1, steps), range(longest + 1), 1)
    if event and problem.law == GAUSSIAN and weights and len(weights) == longest and problem.thresholds == (1,):
        require_own(problem, Filter(weights))
        if not taps or min(weights) < 1:
            raise NotCertifiedError(problem, Filter(weights))
        return any_weighted_event_l2(taps, weights, steps), name_of(any_weighted_event_l2), moved
    if not event or problem.law != GAUSSIAN or weights or not sensitivity.has_contracting_signs(taps):
        raise NotCertifiedError(problem, Filter(taps))
    bound = rectangles.any_nested_event_l2
    return bound(taps, longest, steps, problem.thresholds), name_of(bound), moved


def _column_total(measured: IntegerMap) -> int:
    """What the weights of one increment add up to over the rows of a tree; 0 for other maps."""
    match measured:
        case TentTree():
            return measured.column_total
        case CausalTree(weights=weights):
            return sum(weights)
    return 0


def along_starts(
    problem: Problem, measured: IntegerMap, longest: int, steps: int | None, *, cut: bool
) -> tuple[int, str, int]:
    """Any windows of at most `longest` steps: for every start one map along its windows.

    Args:
        problem: window family, unit, law and thresholds; its `steps` are not read.
        measured: the map that is applied.
        longest: the steps of the longest window.
        steps: the horizon in steps, None if there is none.
        cut: what the map makes of windows within the horizon is measured; otherwise the series of late starts are
            continued by their last value.

    Returns:
        The bound, the name of its proof, and how many windows of one threshold a neighbour can change.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    require_own(problem, measured)
    span, formal = _span(problem.unit, steps), not isinstance(problem.unit, ItemAddRemove)
    if not isinstance(problem.window, AnyWindow) or span is None:
        raise NotCertifiedError(problem, measured)
    match measured:
        case Identity(unit=unit) if cut:
            return *direct(problem, unit, steps), _windows_met(problem, steps)
        case Filter(taps=taps) if problem.law == GAUSSIAN and cut and _is_item(problem):
            costs: Sequence[int] = filter_costs(taps, longest, 2, formal=formal)
        # What is continued by its last value has no more increments.
        case TentTree() if problem.law == LAPLACE and not cut and _is_item(problem):
            costs = (0, (2 if formal else 1) * _column_total(measured))
        case CausalTree() if problem.law == LAPLACE and cut and _is_item(problem):
            costs = (0, (2 if formal else 1) * _column_total(measured))
        case _:
            raise NotCertifiedError(problem, measured)
    lines = lines_of_starts(longest, span, steps)
    bound = lines_bound(lines, costs, len(problem.thresholds))
    return bound, name_of(lines_bound), lines_bound(lines, range(longest + 1), 1)


def crossed(
    problem: Problem, taps: tuple[int, ...], weights: tuple[int, ...], blocks: Sequence[CrossedBlock]
) -> tuple[int, str]:
    """Any windows at item level: in each block a filtered counter for every start and every end; as `blocks`.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    along = Filter(taps)
    require_own(problem, along, Filter(weights))
    span, formal = _span(problem.unit, problem.steps), not isinstance(problem.unit, ItemAddRemove)
    item = isinstance(problem.window, AnyWindow) and _is_item(problem)
    if not item or problem.law in JOINT or span is None or min(weights) < 1:
        raise NotCertifiedError(problem, along)
    power, longest = _power(problem), max(len(block.end_weights) for block in blocks)
    costs = filter_costs(taps, longest, power, formal=formal)
    lines = crossed_lines(blocks, power, span, problem.steps)
    return lines_bound(lines, costs, len(problem.thresholds)), name_of(lines_bound)


def gaps(problem: Problem, measured: GapFilter) -> tuple[int, str]:
    """Any windows at item level, at least 1: each with the windows that contain it; as `blocks`.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    require_own(problem, measured)
    whole = isinstance(problem.window, AnyWindow) and measured.steps == problem.steps > 1
    if whole and isinstance(problem.unit, (ItemLevel, ItemAddRemove)) and problem.thresholds == (1,):
        formal = isinstance(problem.unit, ItemLevel)
        if problem.law == GAUSSIAN:
            return gap_filter_l2(measured, formal=formal), name_of(gap_filter_l2)
        if problem.law == LAPLACE and measured.offset == 0:
            return gap_filter_l1(measured, formal=formal), name_of(gap_filter_l1)
    raise NotCertifiedError(problem, measured)


def _is_item(problem: Problem) -> bool:
    return isinstance(problem.unit, (ItemPerPeriod, ItemLevel, ItemAddRemove))
