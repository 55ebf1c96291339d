"""`nested-filter`: any windows at event level, each measured with the windows inside it, so that none is wasted.

It puts one fractional-difference filter on starts, taken last to first, and one on ends, taken first to last. So each
number is a weighted sum of the windows inside it; windows that do not exist need not be measured, for decoding knows
that they are 0 (`kernel/families/nested.py`).

*At least 1*: windows are weighed by their length, for one event changes many long windows and few short ones, and
weights give each length its share of the noise. The bound is exact but for rounding. The filters are cut to a quarter
of the longest window; their exponent and the power and decline of the weights are searched for windows of at most 64
steps in a range as long in proportion.

*Other thresholds*: without weights, as if the range had 2m - 1 steps for windows of at most m. The filter is
`(1 - decay B)^alpha`, also cut short: a cut keeps the sum of its taps away from 0 as decay does, which bounds the error
of long windows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.families.rectangles import MOST_PLACES
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.choice import Place, apart_from_noise
from dpwindows.strategies.search.fractional import LONGEST, held_taps, real_interval_norms, real_inverse, real_taps

NAME = "nested-filter"
# How many times the longest window a range is that stands for one without end.
_ENDLESS = 8

Made = tuple[Nested, dict[str, float]]


def design(problem: Problem) -> Design | None:
    """The filter of least error, or None where there is none."""
    if not _applies(problem):
        return None
    shape, parameters = _make(problem, problem.steps)
    return Design(problem, shape, NAME, parameters)


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """The filter in a stream: what is inside a window has ended when the window ends."""
    if _applies(problem):
        # Without a horizon no length has fewer windows than another, and no forecast's length must matter.
        endless = _ENDLESS * longest_window(problem.window, problem.steps)
        shape, parameters = _make(problem, problem.steps if horizon is not None else endless)
        yield StepDesign(problem, shape, NAME, parameters, horizon=horizon)


def _applies(problem: Problem) -> bool:
    event = isinstance(problem.window, AnyWindow) and isinstance(problem.unit, EventLevel)
    return event and problem.law == GAUSSIAN


def _make(problem: Problem, steps: int) -> Made:
    """The filter of least error over `steps` steps, and its parameters."""
    longest = longest_window(problem.window, problem.steps)
    searched = apart_from_noise(replace(problem, steps=steps))
    weighed = problem.thresholds == (1,) and 1 < longest <= MOST_PLACES
    return (_make_weighed if weighed else _make_plain)(searched, longest, problem.bits)


# --- At least 1: windows weighed by length ----------------------------------------------------------------------------

# The longest windows that are searched. The grid: parts of 1 of exponent, power and decline; where to begin, the least
# and the most; strides.
_SEARCHED, _FINE = 64, (100, 40, 20)
_GRID = (50, 8, 16), (2, -40, -60), (98, 80, 60), (8, 4, 2, 1)


def _make_weighed(problem: Problem, longest: int, bits: int) -> Made:
    within = min(longest, _SEARCHED)
    shorter = replace(problem, window=AnyWindow(within), steps=-(-problem.steps * within // longest))
    alpha, power, decline = _search_weights(shorter)
    # Two filters multiply, and weights besides.
    bits, fine = bits // 2 - 1, bits // 4
    weights = tuple(max(1, round(2**fine * weight)) for weight in _weights(longest, power, decline).tolist())
    parameters = {"alpha": alpha, "power": power, "decline": decline, "bits_per_axis": bits}
    return Nested(longest, held_taps(alpha, 1.0, _quarter(longest), bits), weights), parameters


def _quarter(longest: int) -> int:
    return max(2, longest // 4)


def _weights(longest: int, power: float, decline: float) -> FloatArray:
    """By length, 1 for the heaviest."""
    lengths = np.arange(1, longest + 1)
    weights = lengths**power * np.exp(-decline * lengths / longest)
    return np.asarray(weights / weights.max())


@lru_cache(maxsize=128)
def _search_weights(problem: Problem) -> tuple[float, float, float]:
    """The exponent, power and decline of least error."""
    longest, steps = longest_window(problem.window, problem.steps), problem.steps
    windows, places = steps - np.arange(longest), np.arange(longest)
    spans = np.add.outer(places, places)

    def parameters(place: Place) -> tuple[float, float, float]:
        alpha, power, decline = (at / fine for at, fine in zip(place, _FINE, strict=True))
        return alpha, power, decline

    def error(place: Place) -> float:
        alpha, power, decline = parameters(place)
        taps = real_taps(alpha, 1.0, longest)
        taps[_quarter(longest) :] = 0.0
        powers, weights = real_inverse(taps, longest) ** 2, _weights(longest, power, decline)
        by_length = np.convolve(np.convolve(powers, powers)[:longest], weights**-2)[:longest]
        typical = by_length.max() if problem.criterion == "max" else by_length @ windows / windows.sum()
        sums = np.concatenate([np.zeros(longest), np.cumsum(taps)])
        responses = (sums[longest + places] - sums[longest + places - places[:, None] - 1]) ** 2
        across = np.where(spans < longest, weights[spans % longest] ** 2, 0.0)
        # An event in the middle meets as many starts as ends.
        met = min(longest, (steps + 1) // 2)
        charged = (responses[:met, :met] @ across[:met, :met] @ responses[:met, :met].T).max()
        return math.sqrt(typical * charged)

    return parameters(choice.descend(error, *_GRID))


# --- Other thresholds: all windows alike ------------------------------------------------------------------------------

Lengths = tuple[float, float | None]
# How many taps are tried, and after how many steps they decay (None: they do not), as parts of the longest window.
_LENGTHS: tuple[Lengths, ...] = (
    *((cut, None) for cut in (0.06, 0.1, 0.15, 0.2, 0.27, 0.35, 0.5, 0.7, 1.0)),
    *product((0.27, 1.0), (0.06, 0.12, 0.25, 0.5)),
)
# The grid of powers: where to begin, the least and the most, and strides, in parts of 1; the resolution of taps.
_POWERS, _PARTS, _BITS = ((100,), (4,), (196,), (32, 8, 2, 1)), 200, 16
# Offsets of an event at which its cost is estimated, and lengths of short intervals as parts of the mean length.
_OFFSETS, _SHORT = 9, (0.0, 0.1, 0.3)


def _make_plain(problem: Problem, longest: int, bits: int) -> Made:
    alpha, count, decay = _search_lengths(problem)
    # Two filters multiply, so each gets half the resolution and a little more.
    bits = bits // 2 + 1
    taps = held_taps(alpha, decay, count, bits)
    return Nested(longest, taps), {"alpha": alpha, "decay": decay, "taps": len(taps), "bits_per_axis": bits}


def _filter_of(lengths: Lengths, longest: int) -> tuple[int, float]:
    """How many taps there are, and their decay, which a single one does not have."""
    count = max(1, min(round(lengths[0] * longest), LONGEST))
    return count, 1.0 if lengths[1] is None or count == 1 else 1 - 1 / (1 + lengths[1] * longest)


@lru_cache(maxsize=128)
def _search_lengths(problem: Problem) -> tuple[float, int, float]:
    """The power of least error, and the number of taps and the decay that go with it."""
    longest = longest_window(problem.window, problem.steps)
    places, windows = min(problem.steps, 2 * longest - 1), problem.steps - np.arange(longest)

    # Few taps are the same for many powers.
    @lru_cache(maxsize=1024)
    def error(taps: tuple[int, ...]) -> float:
        real = np.array(taps, dtype=np.float64)
        powers = real_inverse(real, longest) ** 2
        by_length = np.cumsum(np.convolve(powers, powers)[:longest])
        typical = by_length[-1] if problem.criterion == "max" else by_length @ windows / windows.sum()
        return math.sqrt(typical * event_cost(real_interval_norms(real, places), places, problem.thresholds))

    def error_of(filtered: tuple[float, int, float]) -> float:
        alpha, count, decay = filtered
        return error(held_taps(alpha, decay, count, _BITS))

    def best(count: int, decay: float) -> tuple[float, int, float]:
        (power,) = choice.descend(lambda place: error_of((place[0] / _PARTS, count, decay)), *_POWERS)
        return power / _PARTS, count, decay

    # Where windows are short, many of the lengths come to one filter.
    tried = dict.fromkeys(_filter_of(lengths, longest) for lengths in _LENGTHS)
    return choice.best_of([best(*one) for one in tried], error_of)


def event_cost(norms: FloatArray, places: int, thresholds: tuple[int, ...]) -> float:
    """About `rectangles.any_nested_event_l2`, for interval norms in floating point; for searches only.

    At a few places of the event, for chains of one or two lengths in place of the costliest ones.
    """
    costs = np.zeros(1)
    for count in thresholds:
        lengths, times = _chains(places, count)
        high, low, two_high, two_low, both, three_high = np.interp(lengths, np.arange(len(norms)), norms)
        moved = high, low, high + low - both, 2 * high - two_high, 2 * low - two_low, 2 * two_high - high - three_high
        along_starts, along_ends = (times * np.square(moved)).sum(axis=0).max(axis=0).reshape(2, -1)
        costs = costs + np.sqrt(along_starts * along_ends)
    return float(costs.max())


@lru_cache(maxsize=64)
def _chains(places: int, count: int) -> tuple[FloatArray, FloatArray]:
    """The chains of `count` intervals that are tried: a few long ones, the others short.

    Returns:
        lengths whose norms are read, of a long interval, of a short one, of two long, of two short, of one of either
        and of three long ones, shape (6, chains, places), for the numbers of starts and then of ends that an event
        meets at a few of its places; and how often each of the terms of `event_cost` is taken, shape (6, chains, 1).
    """
    offsets = np.unique(np.rint(np.linspace(1, places, _OFFSETS)))
    across = np.concatenate([offsets, places - offsets + 1])
    few = sorted({min(count, 2**i) for i in range(count.bit_length() + 1)})
    kinds = [(long, part) for long in few[:-1] for part in _SHORT] + [(count, 1.0)]
    # How many intervals are long, and what part of the mean length the short ones have.
    long, part = (np.array(column)[:, None] for column in zip(*kinds, strict=True))
    short = count - long
    low = part * across / count
    high = (across - short * low) / long
    both = np.minimum(short, np.where(long == 1, 2, 1))
    thirds = np.where(short == 0, np.maximum(long - 2, 0), 0)
    times = np.array([2 * long, 2 * short, both, long - 1, np.maximum(short - both, 0), thirds]) / 2
    return np.stack([high, low, 2 * high, 2 * low, high + low, 3 * high]), times
