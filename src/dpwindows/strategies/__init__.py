"""Strategies: ways to measure a window family so that the released error is small. One file a family.

A strategy is a function from a problem to a design for releases, and one to designs for streams (`strategy`). To add
one, write its file and name it in `STRATEGIES`; nothing else knows strategies by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from dpwindows.ask.privacy import EventLevel, ItemPerPeriod
from dpwindows.ask.queries import AnyWindow, Cumulative
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import JOINT
from dpwindows.kernel.designs import Design, StepDesign, horizon_of
from dpwindows.kernel.families.series import FromTotals, Series
from dpwindows.kernel.occurrences import problem_of_one
from dpwindows.kernel.problem import BOUNDED_UNITS, Problem
from dpwindows.strategies import (
    anchored,
    compressed,
    counters,
    crossed_counters,
    dense_counter,
    direct,
    gap_filter,
    joint_noise,
    logarithmic_counter,
    nested_filter,
    notch_filter,
    offset_filter,
    optimal_filter,
    paper,
    series_filter,
    threshold_filters,
    tree,
)
from dpwindows.strategies.in_periods import repeat_in_periods, series_problem
from dpwindows.strategies.scoring import score
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.witnesses import with_witness
from dpwindows.strategies.strategy import Batch, Strategy, Stream, to_stream

# Where several are alike the first of them is taken.
STRATEGIES: tuple[Strategy, ...] = (
    Strategy(direct.NAME, direct.design, to_stream(direct.design)),
    Strategy(series_filter.NAME, series_filter.design, to_stream(series_filter.design), notch_filter.outdoes),
    Strategy(optimal_filter.NAME, optimal_filter.design, to_stream(optimal_filter.design)),
    Strategy(notch_filter.NAME, notch_filter.design, to_stream(notch_filter.design)),
    Strategy(offset_filter.NAME, offset_filter.design, to_stream(offset_filter.design)),
    Strategy(threshold_filters.NAME, threshold_filters.design, to_stream(threshold_filters.design)),
    Strategy(dense_counter.NAME, dense_counter.design, to_stream(dense_counter.design)),
    Strategy(nested_filter.NAME, nested_filter.design, nested_filter.stream),
    Strategy(counters.NAME, counters.design, counters.stream),
    Strategy(gap_filter.NAME, gap_filter.design, None),
    Strategy(crossed_counters.NAME, crossed_counters.design, None, crossed_counters.outdone),
    Strategy(anchored.NAME, anchored.design, anchored.stream),
    Strategy(tree.NAME, tree.design, tree.stream),
    Strategy(joint_noise.NAME, joint_noise.design, None),
    Strategy(logarithmic_counter.NAME, None, logarithmic_counter.stream),
)
# The longest range over which windows are read off totals.
_MOST_TOTALS = 2048
# Selected by name only: a construction to compare with, not one to use.
REFERENCES: dict[str, Batch] = {paper.NAME: paper.design}

BATCH: dict[str, Batch] = {one.name: one.batch for one in STRATEGIES if one.batch is not None}
STREAM: dict[str, Stream] = {one.name: one.stream for one in STRATEGIES if one.stream is not None}


# A plan is often made more than once: shown, run, and made again for a stored release. Designs never change.
@lru_cache(maxsize=16)
def candidates(problem: Problem, name: str = "auto") -> tuple[Design, ...]:
    """The designs of all strategies that apply (or of the one named), best first by the problem's criterion.

    Raises:
        InputError: the name is unknown, or the strategy does not apply to this problem.
    """
    if problem.counts_occurrences:
        return tuple(choice.ranked(_for_occurrences(problem, name), score))
    known = BATCH | REFERENCES
    asked = _asked(name, known, problem)
    problem = replace(problem, unit=problem.unit.fit_to_range(problem.steps))
    series = series_problem(problem, problem.steps)
    answers = [answer for one in asked if (answer := known[one](series)) is not None]
    repeated = [repeat_in_periods(problem, answer, problem.steps) for answer in answers]
    designs = [with_witness(one) for one in repeated if one is not None]
    if name == "auto" and problem.singleton and series is problem:
        designs += compressed.designs(problem, candidates)
    if not designs:
        raise _does_not_apply(name, problem, "")
    return tuple(choice.ranked(designs, score))


@lru_cache(maxsize=16)
def stream_candidates(problem: Problem, horizon: int | None, name: str = "auto") -> tuple[StepDesign, ...]:
    """The best design for a stream of every strategy that applies (or of the one named), best first.

    Args:
        problem: what is measured for whom; its `steps` are those that designs are searched for.
        horizon: the steps after which the stream ends; None: it has no end.
        name: `auto`, or the name of one strategy.

    Raises:
        InputError: the family has no bound without a horizon for this unit, the name is unknown, or the strategy does
            not apply to this problem.
    """
    if problem.counts_occurrences:
        return tuple(replace(one, problem=problem) for one in stream_candidates(_of_one(problem), horizon, name))
    _require_bounded(problem, horizon)
    designs = [design for one in _asked(name, STREAM, problem) for design in _in_stream(one, problem, horizon)]
    best: dict[str, StepDesign] = {}
    for design in choice.ranked(designs, score):
        best.setdefault(design.strategy, design)
    if not best:
        serving = [one for one in STREAM if any(_in_stream(one, problem, horizon))]
        raise _does_not_apply(name, problem, " in a stream", serving)
    return tuple(best.values())


def _for_occurrences(problem: Problem, name: str) -> list[Design]:
    """The designs for a problem of occurrences: those for one of them, and those that measure totals in their place.

    To read windows off totals the noise in any two of these is looked at.
    """
    designs = [
        replace(one, problem=replace(problem, law=one.problem.law)) for one in candidates(_of_one(problem), name)
    ]
    if problem.steps > _MOST_TOTALS or isinstance(problem.window, Cumulative):
        return designs
    for one in candidates(_of_one(replace(problem, window=Cumulative())), name):
        # A vector of joint noise is read as it is, and not by differences.
        if isinstance(one.shape, Series) and one.problem.law not in JOINT:
            parameters = {**one.parameters, "measured": "totals"}
            designs.append(replace(one, problem=problem, shape=FromTotals(one.shape.map), parameters=parameters))
    return designs


def _of_one(problem: Problem) -> Problem:
    """The problem that strategies are asked in the place of one of occurrences: what moves one is what moves all."""
    one, most = problem_of_one(problem)
    return replace(one, noise_per_unit=problem.noise_per_unit * most)


def _in_stream(name: str, problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """What one strategy has for a stream."""
    series = series_problem(problem, horizon)
    own = horizon if series is problem else horizon_of(series.window, series.unit, series.steps)
    for design in STREAM[name](series, own):
        if (repeated := repeat_in_periods(problem, design, horizon)) is not None:
            yield with_witness(repeated)


def _asked(name: str, known: Iterable[str], problem: Problem) -> list[str]:
    """The names of the strategies to ask: all that may be best, or the one named where it is among those known.

    None is asked about a unit of privacy without bounds.
    """
    if not isinstance(problem.unit, BOUNDED_UNITS):
        return []
    if name == "auto":
        return [one.name for one in STRATEGIES if one.name in known and not one.outdone(problem)]
    if name not in {one.name for one in STRATEGIES} | set(REFERENCES):
        raise InputError(f"unknown strategy {name!r}: use auto or one of {', '.join(known)}")
    return [name] if name in known else []


def _does_not_apply(name: str, problem: Problem, where: str, serving: Iterable[str] = ()) -> InputError:
    others = ", ".join(sorted(serving))
    bounded = "" if problem.rule.max_runs is None else " and bounded runs (--max-runs)"
    return InputError(
        f"strategy {name!r} does not apply to {problem.window} windows{where} for unit {problem.unit.name!r} with "
        f"{problem.law} noise{bounded}: use auto" + (f" or one of {others}" if others else "")
    )


def _require_bounded(problem: Problem, horizon: int | None) -> None:
    """Refuse what cannot run for ever without a horizon."""
    if horizon is not None:
        return
    if isinstance(problem.window, AnyWindow) and problem.window.max_length is None:
        raise InputError(
            "any windows of any length need a horizon in a stream: bound their length (any:MAX) or give the number of "
            "steps after which the stream ends (--horizon, or --steps for a plan)"
        )
    # A whole item changes cumulative counts once or twice, and everything else at every step.
    if not isinstance(problem.unit, (EventLevel, ItemPerPeriod)) and not isinstance(problem.window, Cumulative):
        raise InputError(
            f"the unit {problem.unit.name!r} needs a horizon in a stream, for one item can change every step: give the "
            "number of steps after which the stream ends (--horizon, or --steps for a plan), or protect items within a "
            "period (item-per:L)"
        )
