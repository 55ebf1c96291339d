"""How far one neighbour can move what is measured: derived from the very integers that are applied, never handed in.

One table says which proof covers which measurement, by window family, unit of privacy, noise law and kind of map.
What it does not list is refused. The functions take the integers of the maps in use, so that no caller can state a
smaller bound than the one proved.

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

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import AnyWindow, Cumulative, LostItems, Rolling
from dpwindows.ask.windows import count_windows, longest_window
from dpwindows.kernel.accounting import GAUSSIAN, JOINT, LAPLACE
from dpwindows.kernel.bounds import (
    period_sensitivity,
    rectangles,
    sensitivity,
    staircases,
    stream_starts,
)
from dpwindows.kernel.bounds.counted_by_rule import places_by_rule
from dpwindows.kernel.bounds.gaps import gap_filter_l1, gap_filter_l2
from dpwindows.kernel.bounds.weighted_rectangles import any_weighted_event_l2
from dpwindows.kernel.maps.counters import CausalCounter, ListedRows
from dpwindows.kernel.maps.differences import AnchoredDifferences, CausalAnchors
from dpwindows.kernel.maps.endless_counter import MOST_STEPS
from dpwindows.kernel.maps.filters import CausalFilter, CausalIdentity, Filter, Identity
from dpwindows.kernel.maps.gaps import GapFilter
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap
from dpwindows.kernel.maps.matrix_filters import MatrixFilter
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree, Tree
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.proofs import name_of

# Where the kernel's maps are.
_MAPS = "dpwindows.kernel.maps."
# What they are made of beside one another.
_PLAIN = (int, bool, type(None))


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


def require_own(problem: Problem, *maps: IntegerMap | CausalMap | MatrixFilter | GapFilter) -> None:
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
            case Identity(unit=unit) | CausalIdentity(unit=unit):
                sizes: tuple[int, ...] = (unit,)
            case AnchoredDifferences() | CausalAnchors():
                sizes = (measured.every, measured.step_weight, measured.anchor_weight)
            case CausalTree(weights=weights, branching=branching):
                sizes = (branching - 1, *weights)
            case Tree(branching=branching):
                sizes = (branching - 1,)
            case GapFilter(weights=weights, total=total):
                sizes = (total, *weights)
            case CausalCounter(rows=ListedRows(matrix=matrix)):
                # Entries above the diagonal are not applied, and might take off what a bound adds up.
                sizes = (0 if np.triu(matrix, 1).any() else 1,)
            case _:
                continue
        if min(sizes) < 1:
            raise NotCertifiedError(problem, measured)


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
    event = isinstance(problem.unit, EventLevel)
    met = _windows_met(problem, steps) if event else 0
    changed = 0 if event else _windows_changed(problem, steps)
    cells = sensitivity.direct_cells(met, changed, problem.thresholds, event=event)
    if isinstance(problem.window, Rolling) and isinstance(problem.unit, (ItemLevel, ItemAddRemove)):
        places = [places_by_rule(problem.rule, k, problem.window.length, changed) for k in problem.thresholds]
        cells = min(cells, sum(places) * (2 if isinstance(problem.unit, ItemLevel) else 1))
    power = 2 if problem.law == GAUSSIAN else 1
    return cells * unit**power, name_of(sensitivity.direct_cells)


def _windows_met(problem: Problem, steps: int | None) -> int:
    """The most windows that hold one step: for any windows those of the step in the middle."""
    match problem.window:
        case Rolling(length=length):
            return length if steps is None else min(length, steps)
        case Cumulative() if steps is not None:
            return steps
        case AnyWindow(max_length=int(longest)) if steps is None:
            return longest * (longest + 1) // 2
        case AnyWindow() if steps is not None:
            return sensitivity.windows_holding_a_step(steps, longest_window(problem.window, steps))
    raise NotCertifiedError(problem, Identity(1))


def _windows_changed(problem: Problem, steps: int | None) -> int:
    """The most windows that one changed item can change."""
    match problem.window, problem.unit:
        case Rolling(length=length), ItemPerPeriod(steps=period):
            return period_sensitivity.affected_ends(length, period, steps)
        case AnyWindow(), ItemPerPeriod(steps=period) if steps is not None:
            return period_sensitivity.any_cells_period(longest_window(problem.window, steps), period, steps)
        case AnyWindow(max_length=int(longest)), ItemPerPeriod(steps=period):
            return period_sensitivity.any_cells_period(longest, period, None)
    if steps is None:
        raise NotCertifiedError(problem, Identity(1))
    return count_windows(problem.window, steps)


# --- Any windows ------------------------------------------------------------------------------------------------------


def blocks(
    problem: Problem,
    axes: Sequence[tuple[IntegerMap, IntegerMap | CausalMap]],
    width: int,
    extent: int,
    most: int | None = None,
) -> tuple[int, str]:
    """Any windows in blocks of starts, one map on the starts of a block times one map on its ends.

    Args:
        problem: window family, unit, law and thresholds.
        axes: the map on the starts and the map on the ends of every block, as they are applied.
        width: the starts of a block, in steps.
        extent: the ends that are measured with a block, in steps from its first start; fewer where the horizon cuts.
        most: how many blocks there are, None if there is no end of them.

    Returns:
        The bound and the name of its proof.

    Raises:
        NotCertifiedError: no proof covers it, or the maps of different blocks are not cut from one.
    """
    maps = [one for pair in axes for one in pair]
    require_own(problem, *maps)
    if isinstance(problem.window, AnyWindow) and isinstance(problem.unit, EventLevel):
        if problem.law == GAUSSIAN and (taps := _common_taps(axes, extent)) is not None:
            bound = rectangles.any_tensor_event_l2
            return bound(taps, width, extent, problem.thresholds), name_of(bound)
        totals = [(_column_total(starts), _column_total(ends)) for starts, ends in axes]
        if problem.law == LAPLACE and all(min(pair) > 0 for pair in totals):
            corners = sensitivity.any_tree_event_l1
            met = -(-extent // width) if most is None else min(-(-extent // width), most)
            along_starts, along_ends = (max(column) for column in zip(*totals, strict=True))
            return corners(along_starts, along_ends, met, problem.thresholds), name_of(corners)
    raise NotCertifiedError(problem, *axes[0])


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
    require_own(problem, Filter(longest, taps))
    event = isinstance(problem.window, AnyWindow) and isinstance(problem.unit, EventLevel)
    moved = sensitivity.windows_holding_a_step(2 * longest if steps is None else steps, longest)
    if event and problem.law == GAUSSIAN and weights and len(weights) == longest and problem.thresholds == (1,):
        require_own(problem, Filter(longest, weights))
        if not taps or min(weights) < 1:
            raise NotCertifiedError(problem, Filter(longest, weights))
        return any_weighted_event_l2(taps, weights, steps), name_of(any_weighted_event_l2), moved
    if not event or problem.law != GAUSSIAN or weights or not sensitivity.has_contracting_signs(taps):
        raise NotCertifiedError(problem, Filter(longest, taps))
    bound = rectangles.any_nested_event_l2
    return bound(taps, longest, steps, problem.thresholds), name_of(bound), moved


def _common_taps(axes: Sequence[tuple[IntegerMap, IntegerMap | CausalMap]], extent: int) -> tuple[int, ...] | None:
    """The taps of the longest of some filters if all others do the same on their axis and they contract, else None.

    A filter does the same as a longer one if it has all the taps that its axis is long enough for. One that is cut
    shorter is another filter, whose intervals may cost more: what the missing taps take off is missing.
    """
    found: list[tuple[tuple[int, ...], int]] = []
    for one in (one for pair in axes for one in pair):
        match one:
            case Filter(taps=taps, length=places):
                found.append((taps, places))
            case CausalFilter(taps=taps):
                found.append((taps, extent))
            case _:
                return None
    longest = max((taps for taps, _ in found), key=len)
    alike = all(taps == longest[: len(taps)] and len(taps) >= min(len(longest), places) for taps, places in found)
    return longest if alike and sensitivity.has_contracting_signs(longest) else None


def _column_total(measured: IntegerMap | CausalMap) -> int:
    """What the weights of one increment add up to over the rows of a tree; 0 for other maps."""
    match measured:
        case Tree() | TentTree():
            return measured.column_total
        case CausalTree(weights=weights):
            return sum(weights)
    return 0


def counters(problem: Problem, measured: IntegerMap, longest: int, *, causal: bool) -> tuple[int, str]:
    """Any windows of at most `longest` steps: for every start one map along its windows; as `blocks`.

    With `causal` only the lengths that exist within the horizon are measured; otherwise the series of late starts are
    continued by their last value.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    steps, thresholds, unit, item = problem.steps, problem.thresholds, problem.unit, _is_item(problem)
    require_own(problem, measured)
    if not isinstance(problem.window, AnyWindow):
        raise NotCertifiedError(problem, measured)
    match measured:
        case Identity(unit=fine) if causal:
            return direct(problem, fine, steps)
        case Filter(taps=taps) if problem.law == GAUSSIAN and causal and isinstance(unit, ItemPerPeriod):
            bound = period_sensitivity.any_counters_period_l2
            return bound(taps, longest, unit.steps, steps, thresholds), name_of(bound)
        case Filter(taps=taps) if problem.law == GAUSSIAN and causal and item:
            whole, formal = sensitivity.any_counters_l2, isinstance(unit, ItemLevel)
            return whole(taps, longest, steps, thresholds, formal=formal), name_of(whole)
        case Tree() | TentTree() if problem.law == LAPLACE and not causal and isinstance(unit, ItemPerPeriod):
            tree = period_sensitivity.any_counters_period_l1
            return tree(measured.column_total, longest, unit.steps, steps, thresholds), name_of(tree)
    raise NotCertifiedError(problem, measured)


def start_counters(problem: Problem, measured: CausalMap, longest: int, horizon: int | None) -> tuple[int, str, int]:
    """Any windows of a stream: for every start one causal map along its windows.

    Returns:
        The bound, the name of its proof, and how many numbers of one threshold a neighbour can change.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    require_own(problem, measured)
    if not isinstance(problem.window, AnyWindow):
        raise NotCertifiedError(problem, measured)
    if isinstance(measured, CausalIdentity):
        bound, proof = direct(problem, measured.unit, horizon)
        event = isinstance(problem.unit, EventLevel)
        return bound, proof, _windows_met(problem, horizon) if event else _windows_changed(problem, horizon)
    if not _is_item(problem) or (horizon is None and not isinstance(problem.unit, ItemPerPeriod)):
        raise NotCertifiedError(problem, measured)
    starts = MOST_STEPS if horizon is None else horizon
    if isinstance(problem.unit, ItemPerPeriod):
        starts = min(starts, longest + problem.unit.steps - 1)
    formal = not isinstance(problem.unit, ItemAddRemove)
    match measured:
        case CausalFilter(taps=taps) if problem.law == GAUSSIAN:
            squared = stream_starts.start_counters_l2
            return squared(taps, longest, starts, problem.thresholds, formal=formal), name_of(squared), starts * longest
        case CausalTree(weights=weights) if problem.law == LAPLACE:
            tree = stream_starts.start_trees_l1
            return tree(weights, starts, problem.thresholds, formal=formal), name_of(tree), starts * longest
    raise NotCertifiedError(problem, measured)


def crossed(problem: Problem, taps: Sequence[int], blocks: Sequence[staircases.CrossedBlock]) -> tuple[int, str]:
    """Any windows at item level: in each block a filtered counter for every start and every end; as `blocks`.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    along = Filter(1, tuple(taps))
    require_own(problem, along)
    if not isinstance(problem.window, AnyWindow) or not _is_item(problem) or problem.law in JOINT:
        raise NotCertifiedError(problem, along)
    gaussian, thresholds = problem.law == GAUSSIAN, problem.thresholds
    if isinstance(problem.unit, ItemPerPeriod):
        period = staircases.crossed_counters_period_l2 if gaussian else staircases.crossed_counters_period_l1
        return period(taps, blocks, problem.unit.steps, problem.steps, thresholds), name_of(period)
    bound = staircases.crossed_counters_l2 if gaussian else staircases.crossed_counters_l1
    lines, formal = staircases.lines_of(blocks), isinstance(problem.unit, ItemLevel)
    return bound(taps, lines, thresholds, formal=formal), name_of(bound)


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
