"""`weighted-filter`: any windows at event level, each measured with the windows inside it and weighed by its length.

It errs a fifth less than `nested-filter` on windows of bounded length, for "at least 1". Its filters are half a
difference on starts and on ends, cut to a quarter of the longest window. One event changes many long windows and few
short ones, so weights give each length its share of the noise. The gain comes from the bound, exact but for rounding:
that of `nested-filter` takes windows of at most m steps for a square of m starts and m ends.

Power and decline of the weights, and the filter's exponent, are searched for windows of at most 64 steps in a range as
long in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.families.rectangles import MOST_PLACES
from dpwindows.kernel.problem import Problem
from dpwindows.reading.moments import FloatArray
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.apart_from_noise import apart_from_noise
from dpwindows.strategies.search.choice import Place
from dpwindows.strategies.search.fractional import held_taps, real_inverse, real_taps

NAME = "weighted-filter"
# The longest windows that are searched, and how many of them a range has that stands for one without end.
_SEARCHED, _ENDLESS = 64, 8

# The grid of what is searched: parts of 1; where to begin, the least and the most; strides.
_FINE = 100, 40, 20
_GRID = (50, 8, 16), (2, -40, -60), (98, 80, 60), (8, 4, 2, 1)

# Exponent of the filter; power and decline of the weights.
_Parameters = tuple[float, float, float]


def design(problem: Problem) -> Design | None:
    """The filter and weights of least error, or None where there are none."""
    if not _applies(problem):
        return None
    parameters, taps, weights = _choose_filter(problem)
    longest = longest_window(problem.window, problem.steps)
    return Design(problem, Nested(longest, taps, weights), NAME, parameters)


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """The same: what is inside a window has ended when the window ends."""
    if not _applies(problem):
        return
    longest = longest_window(problem.window, problem.steps)
    # Without a horizon no length has fewer windows than another, and no forecast's length must matter.
    searched = problem if horizon is not None else replace(problem, steps=_ENDLESS * longest)
    parameters, taps, weights = _choose_filter(searched)
    yield StepDesign(problem, Nested(longest, taps, weights), NAME, parameters, horizon=horizon)


def _applies(problem: Problem) -> bool:
    event = isinstance(problem.window, AnyWindow) and isinstance(problem.unit, EventLevel)
    one = problem.law == GAUSSIAN and problem.thresholds == (1,)
    return event and one and 1 < longest_window(problem.window, problem.steps) <= MOST_PLACES


def _choose_filter(problem: Problem) -> tuple[dict[str, float], tuple[int, ...], tuple[int, ...]]:
    """The parameters of a filter, for metadata, its taps and its weights."""
    longest = longest_window(problem.window, problem.steps)
    alpha, power, decline = _search(apart_from_noise(_shorten_windows(problem)))
    # Two filters multiply, and weights besides.
    bits, fine = problem.bits // 2 - 1, problem.bits // 4
    weights = [max(1, round(2**fine * weight)) for weight in _weights(longest, power, decline).tolist()]
    said = {"alpha": alpha, "power": power, "decline": decline, "bits_per_axis": bits}
    return said, held_taps(alpha, 1.0, _taps(longest), bits), tuple(weights)


def _taps(longest: int) -> int:
    return max(2, longest // 4)


def _weights(longest: int, power: float, decline: float) -> FloatArray:
    """By length, 1 for the heaviest."""
    lengths = np.arange(1, longest + 1)
    weights = lengths**power * np.exp(-decline * lengths / longest)
    return np.asarray(weights / weights.max())


def _shorten_windows(problem: Problem) -> Problem:
    """The problem with windows of at most `_SEARCHED` steps, and a range as long in proportion."""
    longest = longest_window(problem.window, problem.steps)
    within = min(longest, _SEARCHED)
    return replace(problem, window=AnyWindow(within), steps=-(-problem.steps * within // longest))


@lru_cache(maxsize=128)
def _search(problem: Problem) -> _Parameters:
    """The exponent, power and decline of least error."""
    longest, steps = longest_window(problem.window, problem.steps), problem.steps
    windows, places = steps - np.arange(longest), np.arange(longest)
    spans = np.add.outer(places, places)

    def error(place: Place) -> float:
        alpha, power, decline = _parameters(place)
        taps = real_taps(alpha, 1.0, longest)
        taps[_taps(longest) :] = 0.0
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

    return _parameters(choice.descend(error, *_GRID))


def _parameters(place: Place) -> _Parameters:
    alpha, power, decline = (at / fine for at, fine in zip(place, _FINE, strict=True))
    return alpha, power, decline
