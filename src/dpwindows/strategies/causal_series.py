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

from dpwindows.ask.queries import Cumulative, Rolling
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.certify import differences
from dpwindows.kernel.maps.causal import CausalAnchors, CausalFilter, CausalIdentity, CausalMap
from dpwindows.kernel.maps.causal_counters import CausalCounter, CausalTree, ListedRows, WeightedRows
from dpwindows.kernel.maps.dense import TriangularCounter
from dpwindows.kernel.maps.endless_counter import MOST_STEPS, LogarithmicRows
from dpwindows.kernel.maps.integer_maps import Filter, FloatArray, Identity, WeightedCounter
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import SeriesShape, StepDesign
from dpwindows.kernel.shapes.series import SeriesDesign
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
            yield _series(problem, horizon, found, design.strategy, design.parameters)


def causal_anchors(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """Anchored differences, with the spacing and weights that are best for causal decoding."""
    if problem.law != LAPLACE or not isinstance(problem.window, Rolling):
        return
    longest = min(problem.steps, 4 * problem.window.length)
    spacings = sorted({min(longest, max(1, round(1.25**power))) for power in range(40)})
    best = min((_best_anchors(problem, horizon, every) for every in spacings), key=lambda found: found[0])
    found = best[1]
    parameters = {"every": found.every, "step_weight": found.step_weight, "anchor_weight": found.anchor_weight}
    yield _series(problem, horizon, found, anchored.NAME, parameters)


def _best_anchors(problem: Problem, horizon: int | None, every: int) -> tuple[float, CausalAnchors]:
    def made(ratio: float) -> CausalAnchors:
        anchor = 2.0**ratio
        largest = max(1.0, anchor)
        return CausalAnchors(every, max(1, round(_WEIGHT / largest)), max(1, round(_WEIGHT * anchor / largest)))

    def error(ratio: float) -> float:
        found = made(ratio)
        variance = found.variance(max(8 * every, 64))[-every:]
        worst = variance.max() if problem.criterion == "max" else variance.mean()
        return float(np.sqrt(worst)) * differences(problem, found, horizon)[0]

    found = optimize.minimize_scalar(error, bounds=(-5.0, 3.0), method="bounded", options={"maxiter": 14})
    return float(found.fun), made(float(found.x))


def causal_trees(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """A tree of increments with the branching and the level weights that are best for causal decoding."""
    if problem.law != LAPLACE or not isinstance(problem.window, Cumulative):
        return
    trees = (best_tree(problem.criterion, branching, horizon) for branching in _BRANCHINGS)
    _, tree = min(trees, key=lambda found: found[0])
    parameters = {"branching": tree.branching, "weights": list(tree.weights)}
    yield _series(problem, horizon, tree, "tree", parameters)


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
    yield _series(problem, horizon, CausalCounter(rows), "logarithmic-counter", {"bits": problem.bits})


def _series(
    problem: Problem, horizon: int | None, found: CausalMap, name: str, parameters: Mapping[str, Any]
) -> StepDesign:
    assert isinstance(problem.window, (Cumulative, Rolling))
    return StepDesign(problem, SeriesShape(problem.window, found), name, horizon, dict(parameters))
