"""How searches choose: the same on every machine, though errors in floating point differ there in their last bits.

Processors round sums, transforms and powers in different ways, so the smallest of nearly equal errors is another one
on another machine. Therefore `first_near_best` makes every choice: it takes the first in a fixed order whose error is
nearly the least. Parameters are points of coarse grids (`descend`), where neighbours differ by far more than rounding
does.

An edge is left: an error may lie at the tolerance itself. Errors of neighbours are about a thousandth apart, and those
of two machines less than 1e-12, so about one comparison in 1e9 falls there; a search makes a hundred. The tests work
every comparison out for the cells of the accuracy tables: none is within 4e-9 of its edge, so no errors that are wrong
by a part in 1e9 change a plan there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from typing import TypeVar

from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.problem import Problem

Candidate = TypeVar("Candidate")
Place = tuple[int, ...]

# Errors that differ by less, relative to the least, are alike: far more than rounding, far less than anybody sees.
TOLERANCE = 1e-6
# How many strides away neighbours are along one axis, and along two or three at once.
_FAR = {1: ((1,),), 2: ((1, 1), (1, 2), (2, 1)), 3: ((1, 1, 1),)}


def first_near_best(errors: Sequence[float]) -> int:
    """The place of the first error that is as good as the least.

    Args:
        errors: of some candidates, none below 0, in an order that is the same everywhere.
    """
    enough = min(errors) * (1 + TOLERANCE)
    return next(place for place, error in enumerate(errors) if error <= enough)


def best_of(candidates: Sequence[Candidate], error: Callable[[Candidate], float]) -> Candidate:
    """The first candidate whose error is as good as the least."""
    return candidates[first_near_best([error(one) for one in candidates])]


def ranked(candidates: Sequence[Candidate], error: Callable[[Candidate], float]) -> list[Candidate]:
    """The candidates, the best first; those that are alike in the order they came in."""
    left = [(error(one), one) for one in candidates]
    ordered = []
    while left:
        ordered.append(left.pop(first_near_best([value for value, _ in left]))[1])
    return ordered


def descend(error: Callable[[Place], float], start: Place, low: Place, high: Place, strides: Sequence[int]) -> Place:
    """A point of a grid that errs less than those around it.

    From a point to the best of its neighbours, along one axis and along several at once, for as long as that is better;
    in strides that get shorter, and again from the longest one where they led anywhere.

    Args:
        error: of a point.
        start: where to begin.
        low: the least coordinates.
        high: the largest.
        strides: how far neighbours are, the longest first.
    """
    known = cache(error)
    # In many dimensions there are too many directions along three axes.
    together = range(1, min(len(start), 3 if len(start) <= 3 else 2) + 1)
    best = tuple(min(max(at, least), most) for at, least, most in zip(start, low, high, strict=True))
    while True:
        before = best
        for stride, axes in product(strides, together):
            best = _descend(known, best, low, high, stride, axes)
        if best == before:
            return best


def _descend(error: Callable[[Place], float], best: Place, low: Place, high: Place, stride: int, axes: int) -> Place:
    """The point where moving to the best neighbour, again and again, ends."""
    while True:
        near = [best, *_neighbours(best, low, high, stride, axes)]
        nearby = near[first_near_best([error(point) for point in near])]
        if nearby == best:
            return best
        best = nearby


def _neighbours(point: Place, low: Place, high: Place, stride: int, axes: int) -> Iterator[Place]:
    """The points of the grid that differ from one along some axes, by a stride or two."""
    for moved in combinations(range(len(point)), axes):
        for signs, far in product(product((1, -1), repeat=axes), _FAR[axes]):
            near = list(point)
            for axis, sign, times in zip(moved, signs, far, strict=True):
                near[axis] = min(max(near[axis] + sign * times * stride, low[axis]), high[axis])
            yield tuple(near)


def apart_from_noise(problem: Problem) -> Problem:
    """The problem with fixed values for what searches for filters ignore: noise, budget and resolution.

    So a plan for another budget searches nothing anew. Windows of any length are those of no more steps than the range.
    """
    window = problem.window
    if isinstance(window, AnyWindow):
        window = AnyWindow(longest_window(window, problem.steps))
    return replace(problem, window=window, noise_per_unit=1.0, bits=1, budget=None, singleton=False, shares=())
