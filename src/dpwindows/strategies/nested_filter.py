"""`nested-filter`: any windows at event level, each measured with the windows inside it, so that none is wasted.

It puts one fractional-difference filter on starts, taken last to first, and one on ends, taken first to last. So each
number is a weighted sum of the windows inside it; windows that do not exist need not be measured, for decoding knows
that they are 0 (`kernel/families/nested.py`). Windows of at most m steps are measured alone, as if the range had 2m - 1
steps; where m is much of the range, it is better to measure all windows and a few that reach beyond it.

The filter is `(1 - decay B)^alpha`, also cut short: a cut keeps the sum of its taps away from 0 as decay does, which
bounds the error of long windows. For one threshold of 1 cuts without decay are best, for larger ones decay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.apart_from_noise import apart_from_noise
from dpwindows.strategies.search.fractional import LONGEST, held_taps, real_interval_norms, real_inverse
from dpwindows.strategies.square import event_cost

NAME = "nested-filter"

Lengths = tuple[float, float | None]

# How many times the longest window a range is that stands for one without end.
_ENDLESS = 8
# How many taps are tried, and after how many steps they decay (None: they do not), as parts of the longest window.
_LENGTHS: tuple[Lengths, ...] = (
    *((cut, None) for cut in (0.06, 0.1, 0.15, 0.2, 0.27, 0.35, 0.5, 0.7, 1.0)),
    *product((0.27, 1.0), (0.06, 0.12, 0.25, 0.5)),
)
# The grid of powers: where to begin, the least and the most, and strides, in parts of 1; the resolution of taps.
_POWERS, _FINE, _BITS = ((100,), (4,), (196,), (32, 8, 2, 1)), 200, 16

# From taps to the mean or the largest variance over the windows, for noise of unit variance.
Typical = Callable[[tuple[int, ...]], float]


def design(problem: Problem) -> Design | None:
    """The filter of least error, or None where there is none."""
    if not _applies(problem):
        return None
    longest = longest_window(problem.window, problem.steps)
    parameters, taps = _build(problem, *_search_alone(apart_from_noise(problem)), longest)
    return Design(problem, Nested(longest, taps), NAME, parameters)


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """The filter in a stream: what is inside a window has ended when the window ends."""
    if not _applies(problem):
        return
    longest = longest_window(problem.window, problem.steps)
    # Without a horizon no length has fewer windows than another, and no forecast's length must matter.
    searched = problem if horizon is not None else replace(problem, steps=_ENDLESS * longest)
    parameters, taps = _build(problem, *_search_alone(apart_from_noise(searched)), longest)
    yield StepDesign(problem, Nested(longest, taps), NAME, parameters, horizon=horizon)


def _applies(problem: Problem) -> bool:
    event = isinstance(problem.window, AnyWindow) and isinstance(problem.unit, EventLevel)
    return event and problem.law == GAUSSIAN


def _build(problem: Problem, alpha: float, lengths: Lengths, longest: int) -> tuple[dict[str, float], tuple[int, ...]]:
    """The parameters of a filter, for metadata, and its taps."""
    # Two filters multiply, so each gets half the resolution and a little more.
    bits = problem.bits // 2 + 1
    taps = _taps(alpha, lengths, longest, bits)
    return {"alpha": alpha, "decay": _decay(lengths, longest), "taps": len(taps), "bits_per_axis": bits}, taps


def _filter_of(lengths: Lengths, longest: int) -> tuple[int, float]:
    """How many taps there are, and their decay, which a single one does not have."""
    count = max(1, min(round(lengths[0] * longest), LONGEST))
    return count, _decay(lengths, longest) if count > 1 else 1.0


def _decay(lengths: Lengths, longest: int) -> float:
    return 1.0 if lengths[1] is None else 1 - 1 / (1 + lengths[1] * longest)


def _taps(alpha: float, lengths: Lengths, longest: int, bits: int) -> tuple[int, ...]:
    count, decay = _filter_of(lengths, longest)
    return held_taps(alpha, decay, count, bits)


def _search(problem: Problem, longest: int, typical: Typical) -> tuple[float, Lengths]:
    """The power of least error, and the lengths that go with it."""
    places = min(problem.steps, 2 * longest - 1)

    # Few taps are the same for many powers.
    @lru_cache(maxsize=1024)
    def error(taps: tuple[int, ...]) -> float:
        norms = real_interval_norms(np.array(taps, dtype=np.float64), places)
        return float(np.sqrt(typical(taps) * event_cost(norms, places, problem.thresholds)))

    def error_of(candidate: tuple[float, Lengths]) -> float:
        return error(_taps(*candidate, longest, _BITS))

    def best(tried: Lengths) -> tuple[float, Lengths]:
        (power,) = choice.descend(lambda place: error_of((place[0] / _FINE, tried)), *_POWERS)
        return power / _FINE, tried

    # Where windows are short, many of the lengths come to the same filter; the first of them stands for all.
    apart: dict[tuple[int, float], Lengths] = {}
    for tried in _LENGTHS:
        apart.setdefault(_filter_of(tried, longest), tried)
    return choice.best_of([best(tried) for tried in apart.values()], error_of)


@lru_cache(maxsize=128)
def _search_alone(problem: Problem) -> tuple[float, Lengths]:
    return _search(problem, longest_window(problem.window, problem.steps), _alone(problem))


def _alone(problem: Problem) -> Typical:
    longest = longest_window(problem.window, problem.steps)
    windows = problem.steps - np.arange(longest)

    def typical(taps: tuple[int, ...]) -> float:
        powers = real_inverse(np.array(taps, dtype=np.float64), longest) ** 2
        by_length = np.cumsum(np.convolve(powers, powers)[:longest])
        return float(by_length[-1] if problem.criterion == "max" else by_length @ windows / windows.sum())

    return typical
