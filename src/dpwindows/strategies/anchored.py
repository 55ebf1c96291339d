"""`anchored differences`: every step's change, and the value itself now and then; rolling counts, Laplace noise.

One event changes a rolling count along a run. Of what is measured it moves only two differences and a few anchors, in
L1 far less than the length of the run. Weighted least squares reads the counts back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import LAPLACE
from dpwindows.kernel.advice import from_witness
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import Case, certify
from dpwindows.reading.differences import AnchoredReader, AnchoredStepReader
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.choice import Place, apart_from_noise

NAME = "anchored-differences"
# The largest of the two integer weights; the other is searched relative to it.
_WEIGHT = 1000
# Horizon over which spacing and weights are searched.
_SEARCHED = 512
# How finely the ratio of weights is searched, and strides.
_PER_OCTAVE, _STRIDES = 12, (16, 4, 1)


def design(problem: Problem) -> Design | None:
    """The spacing and weights of least error, or None where the strategy does not apply."""
    if problem.law != LAPLACE or not isinstance(problem.window, Rolling):
        return None
    horizon = min(problem.steps, max(_SEARCHED, 4 * problem.window.length), 8 * _SEARCHED)
    chosen = _map(problem.steps, *_searched(apart_from_noise(problem), horizon))
    parameters = {"every": chosen.every, "step_weight": chosen.step_weight, "anchor_weight": chosen.anchor_weight}
    return Design(problem, Series(chosen), NAME, parameters)


def _best(error: Callable[[int, float], float], longest: int) -> tuple[int, float]:
    """The spacing of anchors and the logarithm of their weight over that of steps, of least error."""

    def at(place: Place) -> float:
        return error(place[0], place[1] / _PER_OCTAVE)

    # Each spacing is about a quarter wider than the one before.
    spacings = sorted({min(longest, max(1, round(1.25**power))) for power in range(40)})
    places = [
        choice.descend(at, (every, -_PER_OCTAVE), (every, -5 * _PER_OCTAVE), (every, 3 * _PER_OCTAVE), _STRIDES)
        for every in spacings
    ]
    every, ratio = choice.best_of(places, at)
    return every, ratio / _PER_OCTAVE


@lru_cache(maxsize=128)
def _searched(problem: Problem, horizon: int) -> tuple[int, float]:
    """Spacing and weights for a whole range."""
    return _best(lambda every, ratio: _error(problem, _map(horizon, every, ratio), horizon), horizon)


def _error(problem: Problem, tried: AnchoredDifferences, horizon: int) -> float:
    return _typical(problem, AnchoredReader(tried, horizon).variance()) * _bound(problem, tried, horizon)


def _bound(problem: Problem, tried: AnchoredDifferences, horizon: int | None) -> int:
    return certify(Case(problem, tried, horizon, from_witness({})))[0]


def _typical(problem: Problem, variance: FloatArray) -> float:
    return math.sqrt(variance.max() if problem.criterion == "max" else variance.mean())


def _map(steps: int, every: int, ratio: float) -> AnchoredDifferences:
    """The map with an anchor at the last step, which no later one helps; the first ones are near the known 0."""
    return AnchoredDifferences(every, *_weights(ratio), offset=steps % every)


def _weights(ratio: float) -> tuple[int, int]:
    """The weights of steps and of anchors."""
    return round(_WEIGHT * min(1.0, 2.0**-ratio)), round(_WEIGHT * min(1.0, 2.0**ratio))


# --- In a stream, decoded from what has been measured so far ----------------------------------------------------------


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """Anchored differences, with the spacing and weights that are best for causal decoding."""
    if problem.law != LAPLACE or not isinstance(problem.window, Rolling):
        return
    chosen = _causal_map(apart_from_noise(problem), min(problem.steps, 4 * problem.window.length), horizon)
    parameters = {"every": chosen.every, "step_weight": chosen.step_weight, "anchor_weight": chosen.anchor_weight}
    yield StepDesign(problem, Series(chosen), NAME, parameters, horizon=horizon)


@lru_cache(maxsize=128)
def _causal_map(problem: Problem, longest: int, horizon: int | None) -> AnchoredDifferences:
    """The causal map of least error, with anchors at most `longest` steps apart."""

    def error(every: int, ratio: float) -> float:
        tried = AnchoredDifferences(every, *_weights(ratio))
        typical = _typical(problem, AnchoredStepReader(tried).moment(max(8 * every, 64), 2)[-every:])
        return typical * _bound(problem, tried, horizon)

    every, ratio = _best(error, longest)
    return AnchoredDifferences(every, *_weights(ratio))
