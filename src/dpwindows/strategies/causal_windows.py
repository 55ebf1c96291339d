"""Causal strategies for any windows: every window that ends at a step is released when the step is closed.

Starts are cut into blocks, one map on the starts of a block and a causal one on its ends. At event level a block is at
least as wide as the longest window, and both maps are filters (Gaussian noise) or trees (Laplace noise); what one event
changes is what it changes in batch, for blocks are measured whole (`dpwindows.strategies.square`). At item level every
start is a block of its own, with one counter along its ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemPerPeriod
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.bounds import rectangles, sensitivity
from dpwindows.kernel.maps.causal import CausalFilter, CausalIdentity, CausalMap
from dpwindows.kernel.maps.integer_maps import Filter, FloatArray, Identity, Tree
from dpwindows.kernel.shapes import Problem
from dpwindows.kernel.step_shapes import BlocksShape, StepDesign
from dpwindows.strategies.causal_series import best_tree
from dpwindows.strategies.search.fractional import LONGEST, integer_taps, real_interval_norms, real_taps, search
from dpwindows.strategies.square import event_cost

_BRANCHINGS = (2, 3, 4, 6, 8, 12, 16, 24, 32)


def crossed_filters(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """A filter on the starts of a block times a filter on its ends; event level, Gaussian noise."""
    if problem.law != GAUSSIAN or not _applies(problem) or not isinstance(problem.unit, EventLevel):
        return
    longest = longest_window(problem.window, problem.steps)
    for width, backward in product(_widths(longest, horizon), (True, False)):
        extent = _extent(width, longest, horizon)
        error = partial(_filters_error, problem, (width, longest, extent), backward)
        alpha, decay = search(error, longest)
        bits = problem.bits // 2 + 1
        taps = integer_taps(alpha, decay, extent, bits)
        bound = rectangles.any_tensor_event_l2(taps, width, extent, problem.thresholds)
        shape = BlocksShape(longest, width, extent, Filter(width, taps[:width]), CausalFilter(taps), backward)
        parameters = {"alpha": alpha, "decay": decay, "taps": len(taps), "width": width, "bits_per_axis": bits}
        proof = "dpwindows.kernel.bounds.rectangles.any_tensor_event_l2"
        moved = _moved(shape)
        yield StepDesign(
            problem, shape, "tensor-filter", bound, moved, proof, parameters | {"starts_backward": backward}
        )


def _filters_error(problem: Problem, sizes: tuple[int, int, int], backward: bool, alpha: float, decay: float) -> float:
    """Error of real filters on one block, up to a constant."""
    width, longest, extent = sizes
    taps = real_taps(alpha, decay, min(extent, LONGEST))
    inverse = np.zeros(extent)
    inverse[: len(taps)] = real_taps(-alpha, decay, len(taps))
    variance = np.cumsum(inverse**2)
    # The window from the block's start a on that spans n + 1 ends is at place a + n of ends.
    starts = np.arange(width)
    until = np.minimum(starts + longest, extent)
    along_starts = variance[width - 1 - starts] if backward else variance[starts]
    if problem.criterion == "max":
        typical = float((along_starts * variance[until - 1]).max())
    else:
        totals = np.concatenate([[0.0], np.cumsum(variance)])
        spans = totals[until] - totals[starts]
        typical = float((along_starts * spans).sum() / (until - starts).sum())
    return float(np.sqrt(typical * event_cost(real_interval_norms(taps, extent), width, extent, problem.thresholds)))


def crossed_trees(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """A tree on the starts of a block times a tree on its ends; event level, Laplace noise."""
    if problem.law != LAPLACE or not _applies(problem) or not isinstance(problem.unit, EventLevel):
        return
    longest = longest_window(problem.window, problem.steps)
    for width in _widths(longest, horizon):
        extent = _extent(width, longest, horizon)
        met = -(-extent // width)
        starts = min((Tree(width, b) for b in _below(width)), key=lambda tree: tree.levels * _rms(tree.variance()))
        _, ends = min((best_tree("rms", b, extent) for b in _below(extent)), key=lambda found: found[0])
        bound = crossed_trees_l1(starts.levels, ends.weights, met, problem.thresholds)
        shape = BlocksShape(longest, width, extent, starts, ends)
        parameters = {"start_branching": starts.branching, "branching": ends.branching, "weights": list(ends.weights)}
        proof = "dpwindows.strategies.causal_windows.crossed_trees_l1"
        yield StepDesign(problem, shape, "tree", bound, 0, proof, parameters | {"width": width})


def crossed_trees_l1(
    start_levels: int, end_weights: tuple[int, ...], blocks_met: int, thresholds: tuple[int, ...]
) -> int:
    """Any windows, one occurrence added or removed, through a tree on a block's starts and a weighted one on its ends.

    Proof. In each block of starts an event meets (at most `blocks_met`), threshold k changes on k rectangles
    (`dpwindows.kernel.bounds.sensitivity`), whose two-dimensional increments are +1 or -1 at four corners each. A corner is in one
    node of each level of either tree, and changes the product of two nodes by the weight of the ends' level. QED.
    """
    return 4 * sum(thresholds) * blocks_met * start_levels * sum(end_weights)


def start_counters(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """One counter along the ends of every start; item level, any noise."""
    if not _applies(problem) or isinstance(problem.unit, EventLevel):
        return
    longest = longest_window(problem.window, problem.steps)
    starts = _starts_moved(problem, longest, horizon)
    formal = not isinstance(problem.unit, ItemAddRemove)
    counter: CausalMap
    parameters: dict[str, Any]
    if problem.law == GAUSSIAN:
        alpha, decay = search(lambda alpha, decay: _counter_error(problem, longest, formal, alpha, decay), longest)
        taps = integer_taps(alpha, decay, longest, problem.bits)
        counter, bound = CausalFilter(taps), start_counters_l2(taps, longest, starts, problem.thresholds, formal=formal)
        proof, parameters = "start_counters_l2", {"alpha": alpha, "decay": decay, "taps": len(taps)}
    else:
        _, tree = min((best_tree(problem.criterion, b, longest) for b in _below(longest)), key=lambda found: found[0])
        counter, bound = tree, start_trees_l1(tree.weights, starts, problem.thresholds, formal=formal)
        proof, parameters = "start_trees_l1", {"branching": tree.branching, "weights": list(tree.weights)}
    shape = BlocksShape(longest, 1, longest, Identity(1), counter)
    yield StepDesign(
        problem,
        shape,
        "counters",
        bound,
        starts * longest,
        f"dpwindows.strategies.causal_windows.{proof}",
        parameters,
    )


def _starts_moved(problem: Problem, longest: int, horizon: int | None) -> int:
    """How many starts have windows that one neighbour can change: all, or those of windows that meet the period."""
    if isinstance(problem.unit, ItemPerPeriod):
        met = longest + problem.unit.steps - 1
        return met if horizon is None else min(met, horizon)
    assert horizon is not None, "item level needs a horizon"
    return horizon


def start_counters_l2(
    taps: tuple[int, ...], longest: int, starts: int, thresholds: tuple[int, ...], *, formal: bool
) -> int:
    """Any windows of at most `longest` steps, one item changed in the windows of `starts` starts: squared L2.

    Proof. For each start a and threshold `f(a, .)` is 1 from some end on, for an item at all and for what it was
    before. One item added or removed: the counter's filter answers `C(0), C(1), ...`, at most `sum_{m<n} C(m)^2` over
    n <= longest ends. Changed in any way (`formal`): `f - f'` is one interval of one sign, at most the longest norm of
    an interval over as many ends. Occurrences changed within L consecutive steps change only windows that meet them,
    whose starts are at most longest + L - 1. Squared norms of starts and thresholds add. QED.
    """
    return len(thresholds) * starts * sensitivity.step_norms(taps, longest, np.square, formal=formal)[longest]


def start_trees_l1(weights: tuple[int, ...], starts: int, thresholds: tuple[int, ...], *, formal: bool) -> int:
    """Any windows, one item changed in the windows of `starts` starts, through a weighted tree for every start: L1.

    Proof. As in `start_counters_l2`: for each start and threshold the increments along ends change at one end (one
    item added or removed) or at two, each in at most one node of each level, by the level's weight. QED.
    """
    return (2 if formal else 1) * sum(weights) * starts * len(thresholds)


def _counter_error(problem: Problem, longest: int, formal: bool, alpha: float, decay: float) -> float:
    taps, inverse = real_taps(alpha, decay, longest), real_taps(-alpha, decay, longest)
    norm = real_interval_norms(taps, longest)[-1] if formal else float((np.cumsum(taps) ** 2).sum())
    variance = np.cumsum(inverse**2)
    return float(np.sqrt(norm * (variance[-1] if problem.criterion == "max" else variance.mean())))


def each_alone(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """Every window measured by itself."""
    if not _applies(problem):
        return
    longest = longest_window(problem.window, problem.steps)
    unit = 2**problem.bits if problem.law == GAUSSIAN else 1
    event = isinstance(problem.unit, EventLevel)
    # A step is in the windows of n steps at n places.
    touched = longest * (longest + 1) // 2 if event else _starts_moved(problem, longest, horizon) * longest
    cells = sensitivity.direct_cells(touched, touched, problem.thresholds, event=event)
    shape = BlocksShape(longest, 1, longest, Identity(1), CausalIdentity(unit))
    proof = "dpwindows.kernel.bounds.sensitivity.direct_cells"
    yield StepDesign(problem, shape, "direct", cells * unit**2, touched, proof, {})


def _applies(problem: Problem) -> bool:
    return isinstance(problem.window, AnyWindow)


def _widths(longest: int, horizon: int | None) -> list[int]:
    """Widths of blocks worth trying; with a horizon that windows may fill, everything in one block."""
    if horizon is not None and longest >= horizon:
        return [horizon]
    return [width for width in (longest, 2 * longest, 4 * longest) if horizon is None or width <= max(horizon, longest)]


def _extent(width: int, longest: int, horizon: int | None) -> int:
    """How many ends are measured with a block of starts."""
    whole = width + longest - 1
    return whole if horizon is None else min(whole, horizon)


def _moved(shape: BlocksShape) -> int:
    """All numbers of the blocks that one event meets."""
    met = -(-shape.reach // shape.width)
    return met * shape.reach * shape.starts.rows


def _below(length: int) -> list[int]:
    return [branching for branching in _BRANCHINGS if branching < length] or [2]


def _rms(variance: FloatArray) -> float:
    return float(np.sqrt(variance.mean()))
