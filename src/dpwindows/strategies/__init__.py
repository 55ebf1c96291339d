"""Strategies: ways to measure a window family so that the released error is small. One file a family.

A strategy is a function from a problem to a design, or to None where it does not apply. To add one, write its file
and name it in `STRATEGIES`; nothing else knows strategies by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpwindows.ask.privacy import ItemLevel, ItemPerPeriod
from dpwindows.errors import InputError
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.design import Design
from dpwindows.strategies import (
    anchored,
    compressed,
    counters,
    crossed_counters,
    dense_counter,
    direct,
    offset_filter,
    optimal_filter,
    paper,
    series_filter,
    tensor_filter,
    tree,
)
from dpwindows.strategies.scoring import score

Strategy = Callable[[Problem], Design | None]

STRATEGIES: dict[str, Strategy] = {
    series_filter.NAME: series_filter.design,
    optimal_filter.NAME: optimal_filter.design,
    offset_filter.NAME: offset_filter.design,
    dense_counter.NAME: dense_counter.design,
    tensor_filter.NAME: tensor_filter.design,
    counters.NAME: counters.design,
    crossed_counters.NAME: crossed_counters.design,
    anchored.NAME: anchored.design,
    tree.NAME: tree.design,
    direct.NAME: direct.design,
}

# Selected by name only: a construction to compare with, not one to use.
REFERENCES: dict[str, Strategy] = {paper.NAME: paper.design}


def candidates(problem: Problem, name: str = "auto") -> list[Design]:
    """The designs of all strategies that apply (or of the one named), best first by the problem's criterion.

    Raises:
        InputError: the name is unknown, or the strategy does not apply to this problem.
    """
    known = {**STRATEGIES, **REFERENCES}
    if name != "auto" and name not in known:
        raise InputError(f"unknown strategy {name!r}: use auto or one of {', '.join(known)}")
    if isinstance(problem.unit, ItemPerPeriod) and problem.unit.steps >= problem.steps:
        # A period as long as the range is all of it: everything about an item may change.
        problem = replace(problem, unit=ItemLevel())
    asked = STRATEGIES if name == "auto" else {name: known[name]}
    designs = [found for strategy in asked.values() if (found := strategy(problem)) is not None]
    if name == "auto" and problem.singleton:
        designs += compressed.designs(problem, candidates)
    if not designs:
        raise InputError(
            f"strategy {name!r} does not apply to {problem.window} windows for unit {problem.unit.name!r} with "
            f"{problem.law} noise: use auto"
        )
    return sorted(designs, key=score)
