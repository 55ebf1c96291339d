"""`crossed-counters`: a filtered counter for every start and one for every end, read together; any windows, item level.

An item can change the counts of every start, and of every end, but on each of these lines only by a step or two. So
every start gets a counter along ends, every end a counter along starts, and least squares joins the two grids: noise
is averaged over neighbouring lines in both directions, and the error grows like the square root of the horizon, with
no logarithm under Gaussian noise (the filter's exponent settles near 3/4). Under Laplace noise plain differences are
best: filters with longer memory, and sums over longer stretches of a line, were searched too and vanish.

Lines with few windows are measured more coarsely than lines with many: a line of n windows is given the weight
`(n / longest)^power`. For Gaussian noise exponent, decay and power are searched on a horizon of at most 40 steps, of
which the best values hardly depend.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy

from dpwindows.ask.privacy import ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.crossed import Crossed
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.problem import Criterion, Problem
from dpwindows.strategies import gap_filter
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.choice import Place
from dpwindows.strategies.search.fractional import integer_taps, real_taps

NAME = "crossed-counters"
# Blocks of more starts or ends than this take too long to factor. Longer windows are beyond the limit on released rows.
_LARGEST = 3200
# A block costs nothing but the lines that it cuts: one block up to the first horizon, blocks of 16 windows' lengths
# beyond it, and, so that they are soon factored, of no more than the last number of starts unless windows are longer.
_ONE_BLOCK, _LENGTHS, _WIDEST = 512, 16, 1536
# For windows this short (half as long for the largest error) narrow blocks win, of 4 windows' lengths between the last
# two numbers: they contain more cells that are known to be zero (`families.crossed`), though they cut more lines.
_PINNED_LENGTHS: dict[Law, int] = {GAUSSIAN: 100, LAPLACE: 180}
_PINNED_LEAST, _PINNED_MOST = 256, 400
# The power of weights in narrow blocks, whose lines are nearly of a length.
_LEVEL = 0.05
# Horizon of the search, and lengths of windows that are searched as they are.
_SEARCHED, _SHORT = 40, 8
# The grid of what is searched: parts of the exponent, of octaves of memory and of the power; least, most and strides.
_FINE, _GRID = (100, 4, 40), ((1, -4, -40), (149, 80, 80), (8, 4, 2, 1))
# Windows of up to this many steps are searched with their cells known to be zero, on a shorter horizon.
_PINNED_SEARCH, _PINNED_HORIZON = 14, 24


def design(problem: Problem) -> Design | None:
    """The counters of least error, or None where they do not apply."""
    # Other units of privacy have neighbours that the bounds do not speak of.
    units = ItemLevel, ItemAddRemove, ItemPerPeriod
    applies = isinstance(problem.window, AnyWindow) and isinstance(problem.unit, units)
    if not applies or problem.steps < 2:
        return None
    longest = longest_window(problem.window, problem.steps)
    if longest > _LARGEST:
        return None
    width = min(problem.steps, _width(problem, longest), _LARGEST - longest + 1)
    if problem.law == LAPLACE:
        power, scale = _power(problem.steps, longest, problem.criterion), 2 ** (problem.bits // 2)
        power = _LEVEL if _narrow(problem, longest) else power
        shape = Crossed(width, (1, -1), _weights(problem, width, power, scale))
        return Design(problem, shape, NAME, {"power": power, "width": width, "weights": scale})
    formal = not isinstance(problem.unit, ItemAddRemove)
    alpha, decay, power = _search(problem.steps, longest, problem.criterion, formal=formal)
    power = _LEVEL if _narrow(problem, longest) else power
    # A third of the resolution goes to the weights.
    fine = problem.bits // 3
    taps = integer_taps(alpha, decay, min(width + longest - 1, problem.steps), problem.bits - fine)
    chosen = {"alpha": alpha, "decay": decay, "taps": len(taps), "bits": problem.bits, "power": power, "width": width}
    return Design(problem, Crossed(width, taps, _weights(problem, width, power, 2**fine)), NAME, chosen)


def _weights(problem: Problem, width: int, power: float, scale: int) -> tuple[int, ...]:
    """Weights of lines of n = 1, 2, ... windows, in proportion to `n^power`; the largest is `scale`."""
    most = min(width + longest_window(problem.window, problem.steps) - 1, problem.steps)
    # A negative power favours short lines.
    largest = max(1.0, most**-power)
    return tuple(max(1, round(scale * (n / most) ** power / largest)) for n in range(1, most + 1))


def outdone(problem: Problem) -> bool:
    """Whether a filter over gaps errs less: by 15 % or more from 100 to 2,400 steps, if windows span a quarter of them.

    Found by trying; by up to 42 % under Gaussian noise, 59 % under Laplace noise, where windows are of any length.
    """
    item = isinstance(problem.unit, (ItemLevel, ItemAddRemove)) and problem.thresholds == (1,)
    steps, longest = problem.steps, longest_window(problem.window, problem.steps)
    return item and problem.criterion == "rms" and 100 <= steps <= min(gap_filter.LARGEST, 4 * longest)


def _narrow(problem: Problem, longest: int) -> bool:
    """Whether blocks are kept narrow: a change within a period moves all lines of the blocks it meets."""
    unit = problem.unit
    return isinstance(unit, ItemPerPeriod) and 2 * (longest + unit.steps) <= 0.8 * problem.steps


def _width(problem: Problem, longest: int) -> int:
    """How many starts to a block."""
    pinned_lengths = _PINNED_LENGTHS[problem.law] // (2 if problem.criterion == "max" else 1)
    width = max(_ONE_BLOCK, min(_LENGTHS * longest, _WIDEST), longest)
    if problem.steps > _PINNED_MOST and longest <= pinned_lengths:
        width = max(_PINNED_LEAST, min(4 * longest, _PINNED_MOST))
    if isinstance(problem.unit, ItemPerPeriod) and _narrow(problem, longest):
        width = min(width, max(longest // 2, round(0.7 * problem.unit.steps), 1))
    return width


def _power(steps: int, longest: int, criterion: Criterion) -> float:
    """The power of weights for plain differences, as found by minimising on horizons of 8 to 1,000 steps.

    It falls with the horizon, and towards even weights where windows are short for the horizon. The largest error is
    on the shortest lines, which must then be finer than others; on short horizons it is not.
    """
    share, power = longest / steps, 0.0
    if criterion == "rms" and steps <= 40:
        power = 2.0 * min(1.0, 1.9 * share**0.6)
    elif criterion == "rms":
        power = 1.0 if longest == 2 else min(2.0, 1.19 * (365 / steps) ** 0.22) * min(1.0, 1.25 * share**0.75)
    elif steps <= 100:
        power = 1.07 if longest == 2 else 1.7
    elif longest == steps:
        power = 0.6 * (160 / steps) ** 0.22
    else:
        power = 0.25 if share >= 0.12 else -0.2
    return round(power, 3)


def _search(steps: int, longest: int, criterion: Criterion, *, formal: bool) -> tuple[float, float, float]:
    """Exponent, decay and power of weights for a horizon, for Gaussian noise.

    Of what is searched on a short horizon, the power alone drifts with the horizon: towards even weights, and the more
    so where windows are short for the horizon (found by trying; a percent or two of rms, several of the largest error).
    """
    pinned = longest <= _PINNED_SEARCH
    horizon = min(steps, _PINNED_HORIZON if pinned else _SEARCHED)
    within = longest if pinned else min(longest, max(_SHORT, round(longest * horizon / steps)))
    within = min(within, horizon)
    alpha, memory, power = _search_on(horizon, within, criterion, formal=formal, pinned=pinned)
    stretched = steps / horizon
    shorter = longest / steps * horizon / within
    if criterion == "rms":
        power *= stretched**-0.1 * min(1.0, max(0.5, shorter**0.7))
    elif stretched > 2:
        power *= stretched**-0.3 * (1.0 if longest == steps else 0.55)
        power = -0.1 if steps >= 8 * longest else power
    return alpha, round(1 - float(f"{1 / (memory * stretched):.4g}"), 12), round(power, 3)


@lru_cache(maxsize=256)
def _search_on(
    horizon: int, longest: int, criterion: Criterion, *, formal: bool, pinned: bool
) -> tuple[float, float, float]:
    """(alpha, memory, power) of least error on one block of `horizon` steps, where `decay = 1 - 1 / memory`."""
    spans = np.arange(horizon)[None, :] - np.arange(horizon)[:, None]
    asked = (spans >= 0) & (spans < longest)
    lengths, behind = np.arange(1, horizon + 1), np.maximum(-spans, -1)

    def parameters(place: Place) -> tuple[float, float, float]:
        alpha, octaves, power = (at / fine for at, fine in zip(place, _FINE, strict=True))
        return alpha, float(f"{1 + 2.0**octaves:.4g}"), power

    def error(place: Place) -> float:
        alpha, memory, power = parameters(place)
        taps = real_taps(alpha, 1 - 1 / memory, horizon)
        weights = (lengths / horizon) ** power
        filtering = np.append(taps, 0.0)[behind] / weights
        values, vectors = np.linalg.eigh(filtering.T @ filtering)
        vectors, spread = vectors / weights[:, None], 1 / (values[:, None] + values[None, :])
        variance = ((vectors**2)[::-1] @ spread @ (vectors**2).T)[asked]
        if pinned:
            variance = variance - _explained(vectors, spread)[asked]
        worst = float(variance.max() if criterion == "max" else variance.mean())
        return math.sqrt(float(weights**2 @ _real_norms(taps, formal=formal)) * worst)

    longer = round(_FINE[1] * math.log2(horizon))
    candidates = [choice.descend(error, start, *_GRID) for start in ((75, 3 * _FINE[1] + longer, 20), (97, 17, 8))]
    return parameters(choice.best_of(candidates, error))


def _explained(vectors: FloatArray, spread: FloatArray) -> FloatArray:
    """How much pinning lowers the variances of a block that reads the same backwards (`kernel.families.crossed`)."""
    starts, pins = vectors[::-1], np.arange(len(vectors) - 1)
    covariance = (starts * starts[1:, None]) @ spread @ (vectors * vectors[:-1, None]).transpose(0, 2, 1)
    root = scipy.linalg.cholesky(covariance[:, pins + 1, pins], lower=True)
    explained = scipy.linalg.solve_triangular(root, covariance.reshape(len(pins), -1), lower=True)
    return np.asarray((explained**2).sum(axis=0).reshape(spread.shape))


def _real_norms(taps: FloatArray, *, formal: bool) -> FloatArray:
    """`sensitivity.step_norms` of squares for n = 1..len(taps) in floating point, for searching only."""
    response, count = np.cumsum(taps), len(taps)
    earlier = np.arange(count)[None, :] - np.arange(1, count + 1)[:, None]
    later = np.where(earlier >= 0, response[earlier], 0.0) if formal else np.zeros((1, count))
    return np.asarray(np.cumsum((response - later) ** 2, axis=1).max(axis=0))
