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

from dpwindows.ask.privacy import EventLevel, ItemAddRemove
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.maps.causal import CausalFilter, CausalIdentity, CausalMap
from dpwindows.kernel.maps.integer_maps import Filter, FloatArray, Identity, Tree
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import BlocksShape, StepDesign
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
        shape = BlocksShape(longest, width, extent, Filter(width, taps[:width]), CausalFilter(taps), backward)
        parameters = {"alpha": alpha, "decay": decay, "taps": len(taps), "width": width, "bits_per_axis": bits}
        yield StepDesign(problem, shape, "tensor-filter", horizon, parameters | {"starts_backward": backward})


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
        starts = min((Tree(width, b) for b in _below(width)), key=lambda tree: tree.levels * _rms(tree.variance()))
        _, ends = min((best_tree("rms", b, extent) for b in _below(extent)), key=lambda found: found[0])
        shape = BlocksShape(longest, width, extent, starts, ends)
        parameters = {"start_branching": starts.branching, "branching": ends.branching, "weights": list(ends.weights)}
        yield StepDesign(problem, shape, "tree", horizon, parameters | {"width": width})


def start_counters(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """One counter along the ends of every start; item level, any noise."""
    if not _applies(problem) or isinstance(problem.unit, EventLevel):
        return
    longest = longest_window(problem.window, problem.steps)
    formal = not isinstance(problem.unit, ItemAddRemove)
    counter: CausalMap
    parameters: dict[str, Any]
    if problem.law == GAUSSIAN:
        alpha, decay = search(lambda alpha, decay: _counter_error(problem, longest, formal, alpha, decay), longest)
        taps = integer_taps(alpha, decay, longest, problem.bits)
        counter, parameters = CausalFilter(taps), {"alpha": alpha, "decay": decay, "taps": len(taps)}
    else:
        _, tree = min((best_tree(problem.criterion, b, longest) for b in _below(longest)), key=lambda found: found[0])
        counter, parameters = tree, {"branching": tree.branching, "weights": list(tree.weights)}
    shape = BlocksShape(longest, 1, longest, Identity(1), counter)
    yield StepDesign(problem, shape, "counters", horizon, parameters)


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
    shape = BlocksShape(longest, 1, longest, Identity(1), CausalIdentity(unit))
    yield StepDesign(problem, shape, "direct", horizon, {})


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


def _below(length: int) -> list[int]:
    return [branching for branching in _BRANCHINGS if branching < length] or [2]


def _rms(variance: FloatArray) -> float:
    return float(np.sqrt(variance.mean()))
