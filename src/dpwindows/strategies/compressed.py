"""`compressed`: steps grouped before measuring, for streams with at most one event a step (`singleton`).

With g steps to a group the horizon shrinks, and with it the noise of item-level counts; the nearest window of whole
groups answers each window. In a singleton stream one step holds at most one event, so moving an end of a window by
one step changes "at least k" and "exactly k" by at most 1: the bias of an answer is at most the number of steps that
its two ends were moved. Neighbouring logs stay neighbours when steps are grouped (a span of L steps becomes the span of
the groups that it meets, at most `ceil((L-1)/g) + 1`). So the guarantee is the inner strategy's on the grouped stream,
which may hold several events a step and is not taken for a singleton.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.grouped_steps import GroupedSteps, grouped_unit
from dpwindows.kernel.problem import Problem

NAME = "compressed"


def designs(problem: Problem, candidates: Callable[[Problem], Sequence[Design]]) -> list[Design]:
    """The best inner design for every group size worth trying."""
    proposals: list[Design] = []
    for size in _group_sizes(problem):
        # What is read back is the same for every threshold.
        best = next((one for one in candidates(grouped_problem(problem, size)) if one.alike), None)
        if best is None:
            continue
        parameters = {"steps_per_group": size, **best.parameters}
        grouped = replace(problem, law=best.problem.law)
        proposals.append(Design(grouped, GroupedSteps(size, best), f"{NAME}({best.strategy})", parameters))
    return proposals


def grouped_problem(problem: Problem, size: int) -> Problem:
    """The problem that groups of `size` steps are measured for."""
    inner = replace(problem, window=_grouped(problem.window, size), singleton=False)
    inner = replace(inner, steps=-(-problem.steps // size), unit=grouped_unit(problem.unit, size))
    if isinstance(inner.window, Rolling) and inner.window.length >= inner.steps:
        inner = replace(inner, window=Cumulative())
    return inner


def inner_strategy(name: str) -> str:
    """The strategy for groups of steps, from the name of the whole."""
    return name.removeprefix(f"{NAME}(").removesuffix(")")


def _group_sizes(problem: Problem) -> list[int]:
    longest = longest_window(problem.window, problem.steps)
    sizes = sorted({max(2, round(1.3**power)) for power in range(1, 24)})
    if isinstance(problem.window, Rolling):
        # The grouped stream must have a rolling window of the same length.
        return [size for size in range(2, longest + 1) if longest % size == 0]
    return [size for size in sizes if size <= longest]


def _grouped(window: WindowFamily, size: int) -> WindowFamily:
    match window:
        case Rolling(length=length):
            return Rolling(length // size)
        case AnyWindow(max_length=int(longest)):
            # Both ends may move outward to the nearest boundary: one group more than fits.
            return AnyWindow(-(-longest // size) + 1)
    return window
