"""`paper`: the constructions of Ghazi, Kumar, Manurangsi and Nelson (ITCS 2023), for every cell of their Table 1.

A reference to compare with: it runs through the same kernel under the same proofs, but is never chosen by `auto`.
Its noise is what the paper's own accounting asks for, not what the kernel would allow, so its error is the paper's.

| window | event level | item level |
|---|---|---|
| cumulative | one range tree | the same |
| rolling | blocks of 2W, two trees each; two blocks and group privacy 2k | the same trees, composed over all blocks |
| any | two trees on starts x ends, group privacy 2k+1 | a cumulative tree for every start, composed |
| any, singleton stream | the same | on groups of steps (time compression) |

Exact counts are at least k less at least k+1. Every tree is binary and is read by dyadic decomposition. Corrected
against the paper (its printed form would be wrong, or not private): points at 0 count as arrivals; the index of a
block; the group-privacy deltas (`composition`); a moved point is two changes (`bounds`); groups of steps that do not
overlap, with both ends rounded to the nearest boundary and the bias stated; points outside the square are dropped.

Where the paper is silent: a rolling window cut at step 1 belongs to a block before the first; item-add-remove counts
the points of one item once, not twice; windows of bounded length are read from the trees of all windows at event
level, and at item level bound the length of every start's tree; the size of the groups of steps is the one of least
error; advanced composition, Gaussian noise and Laplace noise are taken where each is least.
"""

from __future__ import annotations

from dataclasses import replace

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.grouped_steps import GroupedSteps
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import compressed
from dpwindows.strategies.paper import reading
from dpwindows.strategies.paper.composition import lattice_weight, part_noise
from dpwindows.strategies.paper.range_tree import RangeTree
from dpwindows.strategies.paper.shapes import (
    CompressedTrees,
    CumulativeTree,
    FixedWindowTrees,
    TimeWindowTrees,
    TreeForEveryStart,
    TreeShape,
)
from dpwindows.strategies.scoring import score
from dpwindows.strategies.search import choice

__all__ = ["NAME", "design", "reading"]

NAME = "paper"


def design(problem: Problem) -> Design | None:
    """The paper's cell for the problem, or None for units and budgets that the paper does not treat."""
    if not isinstance(problem.unit, (EventLevel, ItemLevel, ItemAddRemove)):
        return None
    # Its trees read windows of other lengths, and of each the first runs are others.
    if problem.rule.max_runs is not None and not isinstance(problem.window, Cumulative):
        return None
    direct = _design(problem)
    item_level = not isinstance(problem.unit, EventLevel)
    if direct is None or not (problem.singleton and item_level and isinstance(problem.window, AnyWindow)):
        return direct
    groups = [
        replace(grouped, shape=CompressedTrees(grouped.shape.size, grouped.shape.inner))
        for grouped in compressed.designs(problem, lambda inner: [_design(inner) or direct])
        if isinstance(grouped.shape, GroupedSteps) and isinstance(grouped.shape.inner.shape, TreeShape)
    ]
    return choice.best_of([direct, *groups], score)


def _design(problem: Problem) -> Design | None:
    """A cell with the paper's scale, and how it came about; None where window or budget are not the paper's."""
    shape = _shape(problem)
    if shape is None:
        return None
    touched = shape.touched(problem)
    noise = part_noise(problem, touched)
    if noise is None:
        return None
    parameters = {
        "trees_touched": touched.trees,
        "points_changed": list(touched.points),
        "nodes_per_point": touched.nodes_per_point,
        "lattice_units_per_count": shape.tree.weight,
        "epsilon_per_point": noise.epsilon,
        "delta_per_point": noise.delta,
        "composition": noise.composition,
    }
    return Design(problem, replace(shape, scale=noise.scale), NAME, parameters)


def _shape(problem: Problem) -> TreeShape | None:
    """The trees of a cell, before their noise is known."""
    weight = lattice_weight(problem)
    match problem.window:
        case Cumulative():
            return CumulativeTree(RangeTree(problem.steps, weight))
        case Rolling(length=length):
            return FixedWindowTrees(RangeTree(2 * length, weight))
        case AnyWindow() if isinstance(problem.unit, EventLevel):
            return TimeWindowTrees(RangeTree(problem.steps, weight))
        case AnyWindow():
            return TreeForEveryStart(RangeTree(longest_window(problem.window, problem.steps), weight))
    return None
