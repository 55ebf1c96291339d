"""`tree`: sums over the nodes of a b-ary tree of increments, decoded by least squares; Laplace noise.

Cumulative counts use one tree along time; any windows at event level a product of two, one on starts and one on
ends; any windows at item level one tree for every start.
"""

from __future__ import annotations

import numpy as np

from dpwindows import period_sensitivity, sensitivity
from dpwindows.accounting import LAPLACE
from dpwindows.integer_maps import FloatArray, Tree
from dpwindows.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.queries import AnyWindow, Cumulative
from dpwindows.strategies.design import (
    BOUNDED_UNITS,
    BlocksDesign,
    CountersDesign,
    Design,
    Problem,
    SeriesDesign,
    score,
)
from dpwindows.strategies.square import block_widths
from dpwindows.windows import longest_window

NAME = "tree"
_BRANCHINGS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128)


def design(problem: Problem) -> Design | None:
    """The branching of least error, or None where trees do not apply."""
    if not isinstance(problem.unit, BOUNDED_UNITS):
        return None
    if problem.law != LAPLACE:
        return None
    if isinstance(problem.window, Cumulative):
        return min((_along_time(problem, branching) for branching in _branchings(problem.steps)), key=score)
    if not isinstance(problem.window, AnyWindow):
        return None
    longest = longest_window(problem.window, problem.steps)
    if not isinstance(problem.unit, EventLevel):
        return min((_for_every_start(problem, branching, longest) for branching in _branchings(longest)), key=score)
    return min((_best_square(problem, width, longest) for width in block_widths(problem)), key=score)


def _branchings(length: int) -> list[int]:
    # A branching of at least the length is one level: every increment measured directly.
    return [branching for branching in _BRANCHINGS if branching < length] + [max(2, length)]


def _along_time(problem: Problem, branching: int) -> Design:
    found = Tree(problem.steps, branching)
    moved_ends = 1 if isinstance(problem.unit, ItemAddRemove) else 2
    bound = sensitivity.cumulative_tree_l1(found.levels, moved_ends, problem.thresholds)
    return SeriesDesign(problem, NAME, bound, "dpwindows.sensitivity.cumulative_tree_l1", _parameters(found), map=found)


def _for_every_start(problem: Problem, branching: int, longest: int) -> Design:
    found = Tree(longest, branching)
    if isinstance(problem.unit, ItemPerPeriod):
        bound = period_sensitivity.any_counters_period_l1(
            found.levels, longest, problem.unit.steps, problem.steps, problem.thresholds
        )
        proof = "dpwindows.period_sensitivity.any_counters_period_l1"
    else:
        formal = isinstance(problem.unit, ItemLevel)
        bound = sensitivity.any_counters_l1(found.levels, problem.steps, problem.thresholds, formal=formal)
        proof = "dpwindows.sensitivity.any_counters_l1"
    return CountersDesign(problem, NAME, bound, proof, _parameters(found), map=found, causal=False)


def _best_square(problem: Problem, width: int, longest: int) -> Design:
    extent = min(width + longest - 1, problem.steps)

    def error(branching: int) -> float:
        starts, ends = Tree(width, branching), Tree(extent, branching)
        return starts.levels * ends.levels * float(np.sqrt(_mean(starts.variance()) * _mean(ends.variance())))

    branching = min(_branchings(extent), key=error)
    starts, ends = Tree(width, branching), Tree(extent, branching)
    met = min(-(-extent // width), -(-problem.steps // width))
    bound = sensitivity.any_tree_event_l1(starts.levels, ends.levels, met, problem.thresholds)
    return BlocksDesign(
        problem,
        NAME,
        bound,
        "dpwindows.sensitivity.any_tree_event_l1",
        {"branching": branching, "width": width, "start_levels": starts.levels, "end_levels": ends.levels},
        width=width,
        make_map=lambda size: Tree(size, branching),
    )


def _mean(variance: FloatArray) -> float:
    return float(variance.mean())


def _parameters(found: Tree) -> dict[str, int]:
    return {"branching": found.branching, "levels": found.levels}
