"""The causal strategies, ranked: what `dpwindows.strategies` is for batch, for streams.

A strategy is a function from a problem and a horizon (None: the stream is unlimited) to designs, none where it does
not apply. To add one, write it in `causal_series` or `causal_windows` and name it in `STRATEGIES` here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dpwindows.ask.privacy import EventLevel, ItemPerPeriod
from dpwindows.ask.queries import AnyWindow, Cumulative
from dpwindows.errors import InputError
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import StepDesign
from dpwindows.strategies import causal_series, causal_windows
from dpwindows.strategies.scoring import score

STRATEGIES: tuple[Callable[[Problem, int | None], Iterator[StepDesign]], ...] = (
    causal_series.twins,
    causal_series.causal_anchors,
    causal_series.causal_trees,
    causal_series.unlimited_counter,
    causal_windows.crossed_filters,
    causal_windows.crossed_trees,
    causal_windows.start_counters,
    causal_windows.each_alone,
)


def causal_candidates(problem: Problem, horizon: int | None, name: str = "auto") -> list[StepDesign]:
    """The best design of every causal strategy that applies (or of the one named), by the problem's criterion.

    Raises:
        InputError: the family has no bound without a horizon for this unit, or no strategy of that name serves it.
    """
    require_bounded(problem, horizon)
    designs = [design for strategy in STRATEGIES for design in strategy(problem, horizon)]
    found = [design for design in designs if name in ("auto", design.strategy)]
    if not found:
        known = ", ".join(sorted({design.strategy for design in designs}))
        raise InputError(
            f"strategy {name!r} does not serve {problem.window} windows in a stream for unit {problem.unit.name!r} "
            f"with {problem.law} noise: use auto" + (f" or one of {known}" if known else "")
        )
    best: dict[str, StepDesign] = {}
    for design in sorted(found, key=score):
        best.setdefault(design.strategy, design)
    return list(best.values())


def require_bounded(problem: Problem, horizon: int | None) -> None:
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
