"""The measurements of a release, rebuilt from its metadata to know how its noise is correlated.

Strategies are deterministic: the same problem leads to the same design, and to the same up to rounding on another
machine. Whether it did is checked by whoever uses it, against the standard errors that the release carries.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

from dpwindows.ask.calendar import Calendar
from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.periods import place
from dpwindows.ask.privacy import Budget, parse_budget, parse_unit
from dpwindows.ask.queries import PeriodFamily, parse_window, windows_together
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.windows import over
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import Law
from dpwindows.kernel.measure import Measurement
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import horizon_of
from dpwindows.kernel.shapes.design import Design
from dpwindows.kernel.untrusted.noise_scales import asked_as, unit_scale
from dpwindows.plan.description import ENDLESS, HORIZON, TOGETHER
from dpwindows.plan.sharing import BITS, part_of
from dpwindows.plan.stream_plan import planned_steps
from dpwindows.strategies import candidates, compressed, joint_filter, stream_candidates
from dpwindows.strategies.scoring import score
from dpwindows.strategies.search import choice


def rebuilt(metadata: Mapping[str, Any], entry: Mapping[str, Any]) -> Measurement:
    """One measurement of a release.

    Args:
        metadata: what the release says about itself.
        entry: what it says about this measurement, one of its `measurements`.

    Raises:
        InputError: the release does not say enough, or this version has no such measurement.
    """
    try:
        streamed = metadata.get("stream") is not None
        horizon = metadata[HORIZON] if streamed else metadata["timeline"]["steps"]
        horizon = None if horizon == ENDLESS else int(horizon)
        problem = _problem(metadata, entry, horizon, streamed=streamed)
        law, scale, strategy = entry["noise"]["law"], float(entry["noise"]["scale"]), entry["strategy"]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"the release does not say how its noise is correlated ({error}), as those of older versions and of older "
            "streams do not: each of its numbers has an error, differences and ratios of them have none that is known"
        ) from None
    return Measurement(_design(problem, strategy, horizon, streamed=streamed), law, scale)


def _problem(metadata: Mapping[str, Any], entry: Mapping[str, Any], horizon: int | None, *, streamed: bool) -> Problem:
    """What the measurement was chosen for."""
    unit, law, together = parse_unit(metadata["unit"]["name"]), asked_as(entry["noise"]["law"]), entry.get(TOGETHER, ())
    own = {one["window"]: float(one["budget_share"]) for one in metadata["measurements"] if TOGETHER in one}
    shares = tuple(own[text] for text in together)
    share = sum(shares) if together else float(entry["budget_share"])
    budget = parse_budget(*(metadata["budget"].get(name) for name in ("epsilon", "delta", "rho")))
    window = windows_together(together) if together else parse_window(entry["window"])
    if isinstance(window, PeriodFamily):
        window = place(window, Calendar.of(Timeline.from_dict(metadata["timeline"])))
    window = over(window, horizon)
    counting = metadata.get("counting")
    return Problem(
        window=window,
        steps=planned_steps(window, unit, horizon) if streamed else int(metadata["timeline"]["steps"]),
        thresholds=tuple(entry["thresholds"]),
        unit=unit,
        law=law,
        noise_per_unit=_noise_per_unit(budget, law, share),
        criterion=metadata["criterion"],
        bits=int(entry.get("bits", BITS)),
        singleton=bool(metadata["singleton"]),
        budget=None if streamed else part_of(budget, share),
        rule=CountingRule(**counting) if counting else EVERY_OCCURRENCE,
        shares=shares,
    )


@lru_cache(maxsize=64)
def _noise_per_unit(budget: Budget, law: Law, share: float) -> float:
    """Worked out once: under an approximate budget it is a search, and a release is asked many things."""
    return unit_scale(budget, law, share)


def _named(strategy: str, problem: Problem) -> list[Design]:
    """The designs of one strategy, none where it does not apply."""
    try:
        return candidates(problem, strategy)
    except InputError:
        return []


@lru_cache(maxsize=16)
def _design(problem: Problem, strategy: str, horizon: int | None, *, streamed: bool) -> Design:
    found: list[Design] = []
    if streamed:
        bounded = horizon_of(problem.window, problem.unit, horizon)
        one = [joint_filter.design(problem, bounded)] if problem.shares else None
        found += [
            design if horizon is None else design.over(horizon)
            for design in one or stream_candidates(problem, bounded, strategy)
        ]
    elif problem.shares:
        found.append(joint_filter.design(problem, horizon))
    elif strategy.startswith(compressed.NAME):
        inner = strategy.removeprefix(f"{compressed.NAME}(").removesuffix(")")
        found += choice.ranked(compressed.designs(problem, partial(_named, inner)), score)
    else:
        found += candidates(problem, strategy)
    made = next((design for design in found if design.strategy == strategy), None)
    if made is None:
        raise InputError(
            f"this version of dpwindows has no strategy {strategy} for {problem.window}, so it cannot tell how "
            "its noise is correlated: use the version that made the release, named in its metadata"
        )
    return made
