"""`tree`: increments, and sums of them under overlapping tents, decoded by least squares; Laplace noise.

Cumulative counts use one tree along time. Any windows use, at event level, a product of two trees, one on starts and
one on ends; for a change within a period, one tree for every start. All levels of a tree weigh alike: weights of their
own, tried together with the numbers of tents, change the least error by less than a thousandth. Streams are decoded
from what has been measured so far, by trees of sums with the branching and the level weights that are best for it.

Windows of at most m steps fill a band of the square of starts and ends. The band is not measured itself, for it clips
the rectangles that one event changes: starts are cut into blocks, and with each block all of its ends are measured.
Fewer events meet two wide blocks; narrow blocks are smaller problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
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
from dpwindows.kernel.maps.endless_counter import MOST_STEPS
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.problem import Criterion, Problem
from dpwindows.reading.tent_tree import TentReader
from dpwindows.strategies.scoring import score
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.choice import Place

NAME = "tree"
# Numbers of tents are searched on at most this many positions; longer trees have them in proportion.
_SEARCHED = 400
# Numbers of tents to begin with, by the number of levels: factors of `length`, divided once more for every level by
# its root of degree levels + 1. And how much worse than others these may be and still be searched from.
_USUAL = ((), (0.5,), (0.6, 0.35), (0.6, 0.45, 0.32))
_HOPELESS = 1.08
_STREAM_BRANCHINGS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32)
# Widths of blocks, as multiples of the longest window; numbers in one beyond which all in one block is not tried.
_WIDTHS, _LARGEST_SQUARE = (1, 2, 4), 1 << 23

Counts = tuple[int, ...]


def design(problem: Problem) -> Design | None:
    """The numbers of tents of least error, or None where trees do not apply."""
    if problem.law != LAPLACE:
        return None
    if isinstance(problem.window, Cumulative):
        chosen = TentTree(problem.steps, _choose_series_tents(problem.steps, problem.criterion), _unit(problem))
        return Design(problem, Series(chosen), NAME, {"tents": list(chosen.tents), "unit": chosen.unit})
    if not isinstance(problem.window, AnyWindow):
        return None
    longest = longest_window(problem.window, problem.steps)
    if isinstance(problem.unit, ItemPerPeriod):
        chosen = TentTree(longest, _choose_series_tents(longest, problem.criterion), _unit(problem))
        parameters = {"tents": list(chosen.tents), "unit": chosen.unit}
        return Design(problem, Starts(longest, chosen, continued=True), NAME, parameters)
    if not isinstance(problem.unit, EventLevel):
        return None
    return choice.best_of([_square(problem, width, longest) for width in _block_widths(problem)], score)


def _block_widths(problem: Problem) -> list[int]:
    """Widths worth trying: a few times the longest window, and everything in one block of moderate size.

    A block is a square of numbers to measure, most of them beyond the longest window where it is much wider than that.
    """
    longest, steps = longest_window(problem.window, problem.steps), problem.steps
    narrow = [times * longest for times in _WIDTHS if times * longest < steps]
    return [*narrow, steps] if not narrow or steps**2 <= _LARGEST_SQUARE else narrow


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

    def error(size: int, counts: Counts) -> float:
        tree = TentTree(size, counts)
        variance = TentReader(tree).variance()
        return tree.column_total * float(np.sqrt(variance.max() if criterion == "max" else variance.mean()))

    return _choose_tents(length, error)


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
        worst = _block_variance(along_starts, along_ends[::-1], max(1, round(longest * size / extent)), criterion)
        return ends.column_total**2 * float(np.sqrt(worst))

    return _choose_tents(extent, error)


def _block_variance(along_starts: FloatArray, along_ends: FloatArray, longest: int, criterion: Criterion) -> float:
    """The mean, or the largest, product of a start's and an end's variance over the windows of one block.

    The first end is that of the first start; windows have at most `longest` steps.
    """
    starts = np.arange(len(along_starts))
    until = np.minimum(starts + longest, len(along_ends))
    if criterion == "max":
        return max(float(along_starts[a] * along_ends[a : until[a]].max()) for a in starts)
    totals = np.concatenate([[0.0], np.cumsum(along_ends)])
    return float(along_starts @ (totals[until] - totals[starts]) / (until - starts).sum())


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


# --- In a stream ------------------------------------------------------------------------------------------------------


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """The branching and the level weights of least error for causal decoding."""
    if problem.law != LAPLACE:
        return
    if isinstance(problem.window, Cumulative):
        tree = best_of_trees(problem.criterion, _STREAM_BRANCHINGS, horizon)
        parameters = {"branching": tree.branching, "weights": list(tree.weights)}
        yield StepDesign(problem, Series(tree), NAME, parameters, horizon=horizon)
    if not isinstance(problem.window, AnyWindow) or not isinstance(problem.unit, EventLevel):
        return
    longest = longest_window(problem.window, problem.steps)
    most = math.inf if horizon is None else horizon
    # With a horizon that windows may fill, everything in one block.
    widths = [times * longest for times in _WIDTHS if times * longest <= most]
    for width in widths if longest < most else [int(most)]:
        extent = int(min(width + longest - 1, most))
        starts = TentTree(width, _choose_series_tents(width, "rms"), _unit(problem))
        ends = best_of_trees("rms", branchings(extent), extent)
        shape = Starts(longest, ends, width=width, across=starts)
        trees = {"tents": list(starts.tents), "branching": ends.branching, "weights": list(ends.weights)}
        yield StepDesign(problem, shape, NAME, trees | {"width": width}, horizon=horizon)


# --- Trees that are decoded causally: the level weights of least error for one branching ------------------------------


# Integer weights are this fine.
_WEIGHT = 1000
# The grid of what is searched: parts of a power; of an octave, and how many of these the weights are apart at most.
_PARTS, _PER_OCTAVE, _STRIDES = 100, 16, (16, 4, 2, 1)
_OCTAVES = 8 * _PER_OCTAVE
_BRANCHINGS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
# Steps, spread over all orders of magnitude, at which trees for unlimited streams are compared.
_SPREAD = np.unique(np.rint(np.geomspace(1, 1 << 20, 200)).astype(np.int64))


def branchings(length: int) -> list[int]:
    """Branchings worth trying for `length` positions."""
    return [branching for branching in _BRANCHINGS if branching < length] or [2]


def best_of_trees(criterion: str, tried: Sequence[int], horizon: int | None) -> CausalTree:
    """The tree of least error among those of some branchings."""
    best = choice.best_of([best_tree(criterion, branching, horizon) for branching in tried], lambda one: one[0])
    return best[1]


# Thresholds and units of one plan ask for the same trees.
@lru_cache(maxsize=256)
def best_tree(criterion: str, branching: int, horizon: int | None) -> tuple[float, CausalTree]:
    """(error per unit of noise and moved end, tree) for one branching.

    With a horizon all level weights are searched, for the error over its steps; without, a power law of the level,
    for the geometric mean of the error over all orders of magnitude of time.
    """
    levels = _levels(branching, horizon or MOST_STEPS)
    steps = _SPREAD if horizon is None else np.arange(1, horizon + 1)
    digits = np.array(
        [
            steps // branching**level if level == levels - 1 else steps // branching**level % branching
            for level in range(levels)
        ],
        dtype=np.float64,
    )

    def error(whole: tuple[int, ...]) -> float:
        weights = np.array(whole) / _WEIGHT
        variances = [weights[0] ** -2]
        for weight in weights[1:]:
            variances.append(1 / (1 / (branching * variances[-1]) + weight**2))
        by_step = np.array(variances) @ digits
        if horizon is None:
            typical = np.exp(np.log(by_step).mean())
        else:
            typical = by_step.max() if criterion == "max" else by_step.mean()
        return float(np.sqrt(typical) * weights.sum())

    def whole(place: Place) -> tuple[int, ...]:
        """The weights of the levels, the first one of them as it is."""
        if horizon is None:
            weights = [level ** (-place[0] / _PARTS) for level in range(1, levels + 1)]
        else:
            weights = [1.0, *(2.0 ** (at / _PER_OCTAVE) for at in place)]
        return tuple(max(1, round(weight / max(weights) * _WEIGHT)) for weight in weights)

    size, low, high = (1, 0, 3 * _PARTS) if horizon is None else (levels - 1, -_OCTAVES, _OCTAVES)
    start = (_PARTS if horizon is None else 0,) * size
    best = choice.descend(lambda place: error(whole(place)), start, (low,) * size, (high,) * size, _STRIDES)
    return error(whole(best)), CausalTree(branching, whole(best))


def _levels(branching: int, steps: int) -> int:
    """Levels of a tree over `steps` steps, the root left out."""
    levels, size = 1, branching
    while size < steps:
        levels, size = levels + 1, size * branching
    return levels
