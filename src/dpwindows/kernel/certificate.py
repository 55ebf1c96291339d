"""What is proved of a measurement, and what no proof can be for: parts that are not the kernel's own, or not whole."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from dpwindows.ask.calendar import Calendar
from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.queries import AnyWindow, Cumulative, LostItems, Rolling, RollingTogether, ToDate, Tumbling
from dpwindows.kernel.problem import BOUNDED_UNITS, Problem

_KERNEL = "dpwindows.kernel."
# What maps are made of beside one another.
_PLAIN = (int, bool, type(None))
# What a problem, its window, its unit and its rule are.
_WINDOWS = (Cumulative, Rolling, RollingTogether, AnyWindow, Tumbling, ToDate, LostItems)
_ASKED = ((Problem,), _WINDOWS, BOUNDED_UNITS, (CountingRule,), (Calendar, type(None)))


@dataclass(frozen=True)
class Certificate:
    """What is proved of one measurement.

    Attributes:
        bound: the most that one neighbour can move all that is measured, over all thresholds together: the L1 norm
            under Laplace noise, the squared L2 norm under Gaussian noise, in (squared) lattice units; under a joint law
            its norm, summed over the vectors that are drawn.
        proof: name of the proof (`dpwindows.kernel.rules`).
        moved: under Gaussian noise, which is charged for it, the most numbers of one threshold that one neighbour can
            change. Under Laplace noise nothing reads it.
        squared: under Laplace noise, a bound on the squared L2 norm too, where it is known.
        of_one: of occurrences, name of the proof for one of them.
    """

    bound: int
    proof: str
    moved: int
    squared: int | None = None
    of_one: str | None = None


class NotCertifiedError(ValueError):
    """No proof covers a measurement: a strategy proposed what no rule is for."""

    def __init__(self, problem: Problem, *measured: object) -> None:
        kinds = " and ".join(type(one).__name__ for one in measured)
        super().__init__(
            f"no proof covers {problem.window} windows through {kinds} for unit {problem.unit.name!r} "
            f"with {problem.law} noise"
        )


def require_own(problem: Problem, shape: Any, horizon: int | None) -> None:
    """Refuse what no proof can be for, before any rule is looked up.

    - What is asked in other classes than ours: a class derived from a window might read its length otherwise once it is
      certified, and a map's might encode anything.
    - Numbers that are not Python's whole ones, and arrays that are not of 64-bit ones and locked: bounds cut a fraction
      off and add up in the type they are given, so 0.9 would cost nothing, and small types wrap.
    - No steps.

    Raises:
        NotCertifiedError: the problem, the shape or the horizon is one of these.
    """
    calendar = type(getattr(problem.window, "calendar", None))
    asked = (type(problem), type(problem.window), type(problem.unit), type(problem.rule), calendar)
    if any(known not in legal for known, legal in zip(asked, _ASKED, strict=True)):
        raise NotCertifiedError(problem, shape)
    if any(type(steps) is not int or steps < 1 for steps in (problem.steps, 1 if horizon is None else horizon)):
        raise NotCertifiedError(problem, shape)
    whom = (problem.window, problem.unit, problem.rule)
    if not all(_is_exact(getattr(part, place.name)) for part in whom for place in fields(part)):
        raise NotCertifiedError(problem, shape)
    if type(shape).__module__.startswith(_KERNEL) and not _is_own(shape):
        raise NotCertifiedError(problem, shape)


def _is_own(part: Any) -> bool:
    """Whether something is of the kernel's own classes or whole numbers, and so is all that it is made of.

    A design inside a shape answers for itself.
    """
    if type(part) in _PLAIN:
        return True
    if type(part) is np.ndarray:
        # What is measured must stay what was certified; and one number in an array wraps where a whole number grows.
        if part.flags.writeable or not part.ndim:
            return False
        return part.dtype == np.int64 or (part.dtype == object and all(type(one) is int for one in part.flat))
    if type(part) is tuple:
        return all(map(_is_own, part))
    if not is_dataclass(part) or not type(part).__module__.startswith(_KERNEL):
        return False
    held = [getattr(part, place.name) for place in fields(part) if place.name != "inner"]
    return all(map(_is_own, held)) and _is_as_made(part)


def _is_as_made(part: Any) -> bool:
    """Whether what a class checks when one of it is made holds still: bounds add up weights that are positive."""
    try:
        getattr(type(part), "__post_init__", lambda _: None)(part)
    except ValueError:
        return False
    return True


def _is_exact(value: Any) -> bool:
    """Whether whole numbers are Python's own: a class derived from them might add up otherwise."""
    if isinstance(value, tuple):
        return all(map(_is_exact, value))
    return not isinstance(value, int) or type(value) in (int, bool)
