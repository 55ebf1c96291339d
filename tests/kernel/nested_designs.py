"""Windows measured with those inside them: designs of any size, weighed and not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window, window_steps
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search.fractional import held_taps

TAPS = [(5,), (7, -3, -2), held_taps(0.52, 1.0, 9, 13), held_taps(0.7, 0.8, 4, 10)]


def problem(steps: int, longest: int | None = None, thresholds: tuple[int, ...] = (1,)) -> Problem:
    return Problem(AnyWindow(longest), steps, thresholds, EventLevel(), GAUSSIAN, 1.0)


def nested(asked: Problem, taps: tuple[int, ...], *, weighed: bool = False) -> Design:
    longest = longest_window(asked.window, asked.steps)
    # Neither rising nor falling with the length.
    weights = tuple(3 + (5 * length) % 7 for length in range(longest)) if weighed else ()
    return Design(asked, Nested(longest, taps, weights), "test")


def designs() -> Iterator[Design]:
    for taps, weighed in itertools.product(TAPS, (False, True)):
        for steps, longest in ((1, None), (2, None), (6, None), (7, 3), (7, 1), (5, 20)):
            yield nested(problem(steps, longest), taps, weighed=weighed)


def asked_for(design: Design) -> list[tuple[int, int]]:
    """The windows that are released, in canonical order."""
    first, last = window_steps(design.problem.window, design.problem.steps)
    return list(zip(first.tolist(), last.tolist(), strict=True))
