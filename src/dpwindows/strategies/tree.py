"""`tree`: increments, and sums of them under overlapping tents, decoded by least squares; Laplace noise.

Cumulative counts use one tree along time. Any windows use, at event level, a product of two trees, one on starts and
one on ends; for a change within a period, one tree for every start. All levels of a tree weigh alike: weights of their
own, tried together with the numbers of tents, change the least error by less than a thousandth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

import numpy as np

from dpwindows.ask.privacy import EventLevel, ItemPerPeriod
from dpwindows.ask.queries import AnyWindow, Cumulative
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import LAPLACE
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.blocks import Blocks
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.problem import Criterion, Problem
from dpwindows.reading.tent_tree import TentReader
from dpwindows.strategies.scoring import score
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.level_weights import best_of_trees, branchings
from dpwindows.strategies.square import block_variance, block_widths, stream_extent, stream_widths

NAME = "tree"
# Numbers of tents are searched on at most this many positions; longer trees have them in proportion.
_SEARCHED = 400
# Numbers of tents to begin with, by the number of levels: factors of `length`, divided once more for every level by
# its root of degree levels + 1. And how much worse than others these may be and still be searched from.
_USUAL = ((), (0.5,), (0.6, 0.35), (0.6, 0.45, 0.32))
_HOPELESS = 1.08
_STREAM_BRANCHINGS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32)

Counts = tuple[int, ...]


def design(problem: Problem) -> Design | None:
    """The numbers of tents of least error, or None where trees do not apply."""
    if problem.law != LAPLACE:
        return None
    if isinstance(problem.window, Cumulative):
        return _along_time(problem)
    if not isinstance(problem.window, AnyWindow):
        return None
    longest = longest_window(problem.window, problem.steps)
    if isinstance(problem.unit, ItemPerPeriod):
        return _design_for_starts(problem, longest)
    if not isinstance(problem.unit, EventLevel):
        return None
    return choice.best_of([_square(problem, width, longest) for width in block_widths(problem)], score)


def _along_time(problem: Problem) -> Design:
    chosen = TentTree(problem.steps, _choose_series_tents(problem.steps, problem.criterion), _unit(problem))
    return Design(problem, Series(chosen), NAME, {"tents": list(chosen.tents), "unit": chosen.unit})


def _design_for_starts(problem: Problem, longest: int) -> Design:
    chosen = TentTree(longest, _choose_series_tents(longest, problem.criterion), _unit(problem))
    parameters = {"tents": list(chosen.tents), "unit": chosen.unit}
    return Design(problem, Starts(longest, chosen, continued=True), NAME, parameters)


def _square(problem: Problem, width: int, longest: int) -> Design:
    extent = min(width + longest - 1, problem.steps)
    counts, unit = _choose_square_tents(width, extent, longest, problem.criterion), _unit(problem)
    shape = Blocks.made_of(problem.window, problem.steps, width, lambda size: _scale_tree(counts, extent, size, unit))
    return Design(problem, shape, NAME, {"tents": list(counts), "unit": unit, "width": width})


def _scale_tree(counts: Counts, length: int, size: int, unit: int) -> TentTree:
    """The tree of `size` positions with its tents as dense as those of another, and the same column total."""
    return TentTree(size, tuple(min(round(number * size / length), size - 1) for number in counts), unit)


def _unit(problem: Problem) -> int:
    """The weight of a tent at its top: smaller where wide noise makes the lattice coarse."""
    return 1 << max(2, min(10, problem.bits - 14))


# --- How many tents -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=128)
def _choose_series_tents(length: int, criterion: Criterion) -> Counts:
    """Numbers of tents for values that all matter alike."""
    return _choose_tents(length, lambda size, counts: _error(TentTree(size, counts), criterion))


def _error(tree: TentTree, criterion: Criterion) -> float:
    """The error of a tree's values by a criterion, up to a constant."""
    variance = TentReader(tree).variance()
    return tree.column_total * float(np.sqrt(variance.max() if criterion == "max" else variance.mean()))


@lru_cache(maxsize=128)
def _choose_square_tents(width: int, extent: int, longest: int, criterion: Criterion) -> Counts:
    """Numbers of tents on the `extent` ends of a full block, those on its `width` starts being in proportion."""

    def error(size: int, counts: Counts) -> float:
        starts = max(1, round(width * size / extent))
        ends = TentTree(size, counts)
        along_ends = TentReader(ends).variance()
        along_starts = along_ends
        if starts != size:
            along_starts = TentReader(_scale_tree(counts, size, starts, ends.unit)).variance()
        worst = block_variance(along_starts, along_ends[::-1], max(1, round(longest * size / extent)), criterion)
        return ends.column_total**2 * float(np.sqrt(worst))

    return _choose_tents(extent, error)


def _choose_tents(length: int, error: Callable[[int, Counts], float]) -> Counts:
    """The numbers of tents of least `error(length, counts)`, found on a shorter tree if that one is long.

    How many levels are worth a search is told by numbers of tents that are about right for the length itself.
    """
    usual = {levels: counts for levels in range(len(_USUAL)) if (counts := _usual(length, levels)) is not None}
    errors = {levels: error(length, counts) for levels, counts in usual.items()}
    hopeful = [levels for levels in usual if errors[levels] <= _HOPELESS * min(errors.values())]
    size = min(length, _SEARCHED)
    known = cache(lambda counts: error(size, counts))
    candidates = [_descend(counts, known) for levels in hopeful if (counts := _usual(size, levels)) is not None]
    if size == length:
        return choice.best_of(candidates, known)
    stretched = [tuple(_stretch_tents(counts, length / size)) for counts in candidates]
    return choice.best_of(stretched, lambda counts: error(length, counts))


def _usual(length: int, levels: int) -> Counts | None:
    """Numbers of tents that are about right for `levels` levels; None where there is no room for them."""
    distance = length ** (1 / (levels + 1))
    counts = tuple(round(factor * length / distance ** (level + 1)) for level, factor in enumerate(_USUAL[levels]))
    return counts if all(1 <= number < length for number in counts) else None


def _stretch_tents(counts: Counts, factor: float) -> Iterator[int]:
    """Numbers of tents of the same shape on `factor` times as many positions."""
    for level, number in enumerate(counts):
        yield round(number * factor ** (1 - (level + 1) / (len(counts) + 1)))


def _descend(counts: Counts, error: Callable[[Counts], float]) -> Counts:
    """Change one number at a time, in coarse and then in fine steps, for as long as the error falls."""
    for step in (1.35, 1.1):
        moved = True
        while moved:
            moved = False
            for level, number in enumerate(counts):
                for changed in (math.floor(number / step), math.ceil(number * step)):
                    tried = (*counts[:level], changed, *counts[level + 1 :])
                    if changed >= 1 and choice.first_near_best([error(counts), error(tried)]):
                        counts, moved = tried, True
                        break
    return counts


# --- In a stream: trees of sums, decoded from what has been measured so far -------------------------------------------


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """The branching and the level weights of least error for causal decoding."""
    if problem.law != LAPLACE:
        return
    if isinstance(problem.window, Cumulative):
        yield _along_time_in_stream(problem, horizon)
    if isinstance(problem.window, AnyWindow) and isinstance(problem.unit, EventLevel):
        yield from _squares_in_stream(problem, horizon)


def _along_time_in_stream(problem: Problem, horizon: int | None) -> StepDesign:
    """A tree of increments with the branching and the level weights that are best for causal decoding."""
    tree = best_of_trees(problem.criterion, _STREAM_BRANCHINGS, horizon)
    parameters = {"branching": tree.branching, "weights": list(tree.weights)}
    return StepDesign(problem, Series(tree), NAME, parameters, horizon=horizon)


def _squares_in_stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """A tree on the starts of a block times a tree on its ends."""
    longest = longest_window(problem.window, problem.steps)
    for width in stream_widths(longest, horizon):
        extent = stream_extent(width, longest, horizon)
        starts = TentTree(width, _choose_series_tents(width, "rms"), _unit(problem))
        ends = best_of_trees("rms", branchings(extent), extent)
        shape = Starts(longest, ends, width=width, across=starts)
        parameters = {"tents": list(starts.tents), "branching": ends.branching, "weights": list(ends.weights)}
        yield StepDesign(problem, shape, NAME, parameters | {"width": width}, horizon=horizon)
