"""Causal strategies for cumulative and rolling counts.

Most are those of batch release: a strategy whose map needs nothing of the future is the same in a stream, integer for
integer (`twins`). Anchored differences and trees are decoded from what has been measured so far, and have parameters
of their own for that. Cumulative counts of an unlimited stream have two strategies that batch has no use for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import singledispatch
from typing import Any

import numpy as np
from scipy import optimize

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemPerPeriod
from dpwindows.ask.queries import Cumulative, Rolling
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.maps.causal import CausalAnchors, CausalFilter, CausalIdentity, CausalMap
from dpwindows.kernel.maps.causal_counters import CausalCounter, CausalTree, ListedRows, WeightedRows
from dpwindows.kernel.maps.dense import TriangularCounter
from dpwindows.kernel.maps.endless_counter import MOST_STEPS, LogarithmicRows, cumulative_unlimited_l2
from dpwindows.kernel.maps.integer_maps import AnchoredDifferences, Filter, FloatArray, Identity, WeightedCounter
from dpwindows.kernel.shapes import Problem, SeriesDesign
from dpwindows.kernel.step_shapes import SeriesShape, StepDesign
from dpwindows.strategies import STRATEGIES, anchored

# Integer weights are this fine.
_WEIGHT = 1000
_BRANCHINGS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32)
# Steps, spread over all orders of magnitude, at which trees for unlimited streams are compared.
_SPREAD = np.unique(np.rint(np.geomspace(1, 1 << 20, 200)).astype(np.int64))
# Weighted counters, whose forecast takes the square of the horizon in memory, are offered up to this one.
_LONGEST_WEIGHTED = 2048


@singledispatch
def twin(of: object) -> CausalMap | None:
    """The causal side of a batch map; None where it needs the future."""
    return None


@twin.register
def _(of: Filter) -> CausalMap | None:
    return CausalFilter(of.taps)


@twin.register
def _(of: Identity) -> CausalMap | None:
    return CausalIdentity(of.unit)


@twin.register
def _(of: WeightedCounter) -> CausalMap | None:
    if of.length > _LONGEST_WEIGHTED:
        return None
    return CausalCounter(WeightedRows(np.array(of.taps, dtype=np.int64), np.array(of.weights, dtype=np.int64)))


@twin.register
def _(of: TriangularCounter) -> CausalMap | None:
    return CausalCounter(ListedRows(of.weights))


def twins(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """The batch designs that are causal."""
    if isinstance(problem.window, Cumulative) and horizon is None:
        return
    for strategy in STRATEGIES.values():
        design = strategy(problem)
        found = twin(design.map) if isinstance(design, SeriesDesign) else None
        if design is not None and found is not None:
            moved = moved_rows_along_time(problem, horizon, memory_of(found))
            yield _series(problem, found, design.strategy, design.sensitivity, moved, design.proof, design.parameters)


def causal_anchors(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """Anchored differences, with the spacing and weights that are best for causal decoding."""
    if problem.law != LAPLACE or not isinstance(problem.window, Rolling):
        return
    longest = min(problem.steps, 4 * problem.window.length)
    spacings = sorted({min(longest, max(1, round(1.25**power))) for power in range(40)})
    best = min((_best_anchors(problem, every) for every in spacings), key=lambda found: found[0])
    found = best[1]
    batch = AnchoredDifferences(problem.steps, found.every, found.step_weight, found.anchor_weight)
    bound, proof = anchored.certified(problem, batch, problem.steps)
    parameters = {"every": found.every, "step_weight": found.step_weight, "anchor_weight": found.anchor_weight}
    yield _series(problem, found, "anchored-differences", bound, 0, proof, parameters)


def _best_anchors(problem: Problem, every: int) -> tuple[float, CausalAnchors]:
    def made(ratio: float) -> CausalAnchors:
        anchor = 2.0**ratio
        largest = max(1.0, anchor)
        return CausalAnchors(every, max(1, round(_WEIGHT / largest)), max(1, round(_WEIGHT * anchor / largest)))

    def error(ratio: float) -> float:
        found = made(ratio)
        batch = AnchoredDifferences(problem.steps, every, found.step_weight, found.anchor_weight)
        variance = found.variance(max(8 * every, 64))[-every:]
        worst = variance.max() if problem.criterion == "max" else variance.mean()
        return float(np.sqrt(worst)) * anchored.certified(problem, batch, problem.steps)[0]

    found = optimize.minimize_scalar(error, bounds=(-5.0, 3.0), method="bounded", options={"maxiter": 14})
    return float(found.fun), made(float(found.x))


def causal_trees(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """A tree of increments with the branching and the level weights that are best for causal decoding."""
    if problem.law != LAPLACE or not isinstance(problem.window, Cumulative):
        return
    trees = (best_tree(problem.criterion, branching, horizon) for branching in _BRANCHINGS)
    _, tree = min(trees, key=lambda found: found[0])
    moved_ends = 1 if isinstance(problem.unit, ItemAddRemove) else 2
    bound = causal_tree_l1(tree.weights, moved_ends, problem.thresholds)
    parameters = {"branching": tree.branching, "weights": list(tree.weights)}
    proof = "dpwindows.strategies.causal_series.causal_tree_l1"
    yield _series(problem, tree, "tree", bound, 0, proof, parameters)


def causal_tree_l1(weights: tuple[int, ...], moved_ends: int, thresholds: tuple[int, ...]) -> int:
    """Cumulative counts through a tree of increments with a weight for each level: L1, whatever the horizon.

    Proof. For each threshold g is a step (one item added or removed: `moved_ends = 1`) or an interval of one sign
    (otherwise, 2), so its increments are +-1 at one step or at two. An increment is in at most one node of each level,
    where it changes the number measured by the level's weight. QED.
    """
    return moved_ends * sum(weights) * len(thresholds)


def best_tree(criterion: str, branching: int, horizon: int | None) -> tuple[float, CausalTree]:
    """(error per unit of noise and moved end, tree) for one branching.

    With a horizon all level weights are searched, for the error over its steps; without, a power law of the level,
    for the geometric mean of the error over all orders of magnitude of time.
    """
    levels = tree_levels(branching, horizon or MOST_STEPS)
    steps = _SPREAD if horizon is None else np.arange(1, horizon + 1)
    digits = np.array(
        [
            steps // branching**level if level == levels - 1 else steps // branching**level % branching
            for level in range(levels)
        ],
        dtype=np.float64,
    )

    def error(logs: FloatArray) -> float:
        weights = np.exp(np.concatenate([[0.0], logs]))
        variances = [weights[0] ** -2]
        for weight in weights[1:]:
            variances.append(1 / (1 / (branching * variances[-1]) + weight**2))
        by_step = np.array(variances) @ digits
        if horizon is None:
            typical = np.exp(np.log(by_step).mean())
        else:
            typical = by_step.max() if criterion == "max" else by_step.mean()
        return float(np.sqrt(typical) * weights.sum())

    if horizon is None:
        ladder = np.log(np.arange(1, levels) + 1.0)
        found = optimize.minimize_scalar(lambda power: error(-power * ladder), bounds=(0.0, 3.0), method="bounded")
        logs = -float(found.x) * ladder
    elif levels == 1:
        logs = np.zeros(0)
    else:
        logs = optimize.minimize(error, np.zeros(levels - 1), method="Nelder-Mead", options={"xatol": 1e-3}).x
    weights = np.exp(np.concatenate([[0.0], logs]))
    whole = tuple(max(1, round(float(weight))) for weight in weights / weights.max() * _WEIGHT)
    return error(np.log(np.array(whole[1:]) / whole[0])), CausalTree(branching, whole)


def tree_levels(branching: int, steps: int) -> int:
    """Levels of a tree over so many steps, the root left out."""
    levels, size = 1, branching
    while size < steps:
        levels, size = levels + 1, size * branching
    return levels


def unlimited_counter(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """The logarithmic counter, for cumulative counts of an unlimited stream."""
    if problem.law != GAUSSIAN or not isinstance(problem.window, Cumulative) or horizon is not None:
        return
    rows = LogarithmicRows(problem.bits)
    moved_ends = 1 if isinstance(problem.unit, ItemAddRemove) else 2
    bound = cumulative_unlimited_l2(rows, moved_ends, problem.thresholds)
    proof = "dpwindows.kernel.maps.endless_counter.cumulative_unlimited_l2"
    yield _series(problem, CausalCounter(rows), "logarithmic-counter", bound, MOST_STEPS, proof, {"bits": problem.bits})


def changed_ends(problem: Problem, horizon: int | None) -> int:
    """How many consecutive ends of windows one neighbour can change."""
    most = MOST_STEPS if horizon is None else horizon
    match problem.window, problem.unit:
        case Rolling(length=length), EventLevel():
            return min(length, most)
        case Rolling(length=length), ItemPerPeriod(steps=period):
            return min(length + period - 1, most)
    return most


def moved_rows_along_time(problem: Problem, horizon: int | None, memory: int) -> int:
    """How many rows a neighbour can change where each row looks back `memory` ends."""
    most = MOST_STEPS if horizon is None else horizon
    return min(most, changed_ends(problem, horizon) + memory)


def memory_of(causal_map: CausalMap) -> int:
    """How many ends before its own a row of the map looks at."""
    match causal_map:
        case CausalFilter(taps=taps):
            return len(taps) - 1
        case CausalIdentity():
            return 0
    return MOST_STEPS


def _series(
    problem: Problem, found: CausalMap, name: str, bound: int, moved: int, proof: str, parameters: Mapping[str, Any]
) -> StepDesign:
    assert isinstance(problem.window, (Cumulative, Rolling))
    return StepDesign(problem, SeriesShape(problem.window, found), name, bound, moved, proof, dict(parameters))
