"""Table 1 for given parameters, in counts: the paper's algorithms, ours, and what is impossible, cell by cell.

Every error is a forecast of `dpwindows.plan.plan` for the cell's own release. The standard error of a real
release is the same number; where time compression makes answers biased, the bound on the bias is included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dpwindows.ask.privacy import ApproxDP, Budget, EventLevel, ItemLevel, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.windows import count_windows
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.plan.allotment import Allotment
from dpwindows.plan.plan import Plan
from dpwindows.plan.workload import MAX_ROWS
from dpwindows.strategies.search.limits import limit
from dpwindows.strategies.search.noise_scales import unit_scale
from dpwindows.theory import bounds, packing
from dpwindows.theory.bounds import Family, Growth, Level, Setting

_UNITS: dict[Level, Unit] = {"event": EventLevel(), "item": ItemLevel()}
_LEVELS: tuple[Level, ...] = ("event", "item")


@dataclass(frozen=True)
class Lower:
    """A lower bound in counts: on the `rms` of the standard errors, or on the `largest` error over all windows.

    `of` says on which, `holds` for which mechanisms. Bounds on the largest error hold with probability at least 1/2
    for one log, or, for Gaussian noise, speak of the largest standard error.
    """

    value: float
    of: str
    holds: str


@dataclass(frozen=True)
class Cell:
    """A cell of Table 1: `window` in canonical text, `unit` event or item, `stream` bundle or singleton."""

    window: str
    k: int
    unit: str
    stream: str
    budget: str


@dataclass(frozen=True)
class Errors:
    """Root mean square and largest error over the windows of a release, in counts, and the strategy that has them."""

    rms: float
    max: float
    strategy: str


@dataclass(frozen=True)
class Row:
    """A cell with its figures: errors in counts, growth laws up to constants.

    `ratio` is our standard error over the lower bound (rms over rms; our largest over bounds on the largest
    error, which for pure budgets is that of a release and not a standard error), None where there is no bound.
    """

    cell: Cell
    paper: Errors
    paper_law: Growth
    ours: Errors
    lower: Lower | None
    lower_law: Growth

    @property
    def ratio(self) -> float | None:
        """Our standard error over the lower bound."""
        if self.lower is None or self.lower.value <= 0:
            return None
        return (self.ours.rms if self.lower.of == "rms" else self.ours.max) / self.lower.value

    def to_dict(self) -> dict[str, Any]:
        """Plain values, one flat entry."""
        return {
            **self.cell.__dict__,
            "paper_rms": self.paper.rms,
            "paper_max": self.paper.max,
            "paper_law": self.paper_law.formula,
            "rms": self.ours.rms,
            "max": self.ours.max,
            "strategy": self.ours.strategy,
            "paper_over_ours": self.paper.rms / self.ours.rms,
            "lower": None if self.lower is None else self.lower.value,
            "lower_of": None if self.lower is None else self.lower.of,
            "lower_holds_for": None if self.lower is None else self.lower.holds,
            "lower_law": self.lower_law.formula,
            "ratio_to_lower": self.ratio,
        }


def families(steps: int, lengths: Sequence[int]) -> list[tuple[Family, WindowFamily]]:
    """The window families of the table, without those of more windows than one release may hold.

    Any windows of more than 3,161 steps are such.
    """
    families: list[tuple[Family, WindowFamily]] = [("cumulative", Cumulative())]
    families += [("rolling", Rolling(length)) for length in lengths]
    families += [("any", AnyWindow())]
    return [(family, window) for family, window in families if count_windows(window, steps) <= MAX_ROWS]


def table(
    steps: int, lengths: Sequence[int], ks: Sequence[int], epsilon: float = 1.0, delta: float = 1e-6
) -> Iterator[Row]:
    """Every cell of Table 1, for each k and each rolling length: 8 cells a window family, 4 where delta is 0.

    Rows come one by one, since some take a second or two to plan. `families` says which families there are.

    Raises:
        InputError: a parameter is not legal.
    """
    deltas = (0.0, delta) if delta else (0.0,)
    settings = [
        # Where W does not matter the bounds ask for one nevertheless.
        (family, level, Setting(steps, getattr(window, "length", max(1, steps // 2)), k, epsilon, slack, singleton))
        for k, (family, window), level, slack, singleton in product(
            ks, families(steps, lengths), _LEVELS, deltas, (False, True)
        )
    ]
    return (row(family, level, at) for family, level, at in settings)


def row(family: Family, level: Level, at: Setting) -> Row:
    """One cell with its figures.

    Raises:
        InputError: nothing can be planned with these parameters.
    """
    window = {"cumulative": Cumulative(), "rolling": Rolling(at.length), "any": AnyWindow()}[family]
    return Row(
        cell=Cell(
            window=window.text,
            k=at.k,
            unit=level,
            stream="singleton" if at.singleton else "bundle",
            budget="pure" if at.pure else "approximate",
        ),
        paper=errors(window, level, at, "paper"),
        paper_law=bounds.UPPER[family, level](at),
        ours=errors(window, level, at, "auto"),
        lower=lower(family, level, at),
        lower_law=bounds.LOWER[family, level](at),
    )


def planned(window: WindowFamily, level: Level, at: Setting, strategy: str) -> Plan:
    """The plan of a release that holds one cell."""
    return Plan(
        [window.at_least(at.k)],
        timeline=Timeline.of_steps(at.steps),
        unit=_UNITS[level],
        budget=budget_of(at),
        strategy=strategy,
        singleton=at.singleton,
    )


def budget_of(at: Setting) -> Budget:
    """The budget of a setting."""
    return PureDP(at.epsilon) if at.pure else ApproxDP(at.epsilon, at.delta)


def errors(window: WindowFamily, level: Level, at: Setting, strategy: str) -> Errors:
    """The forecast error of one cell by a strategy."""
    (allotment,) = planned(window, level, at, strategy).allotments
    squares = squared_errors(allotment)
    rms, largest = float(np.sqrt(squares.mean())), float(np.sqrt(squares.max()))
    return Errors(min(rms, largest), largest, allotment.measurement.design.strategy)


def squared_errors(allotment: Allotment) -> FloatArray:
    """Variance plus squared bound on the bias of every window."""
    (measure,) = allotment.query.measures
    return np.asarray(allotment.variance(measure) + allotment.bias_bounds() ** 2)


def lower(family: Family, level: Level, at: Setting) -> Lower | None:
    """A lower bound with all constants, or None where none is known."""
    if at.pure:
        return Lower(_packed(family, level, at), "largest", "every epsilon-private mechanism")
    if at.singleton:
        # Limits of additive noise do not bind mechanisms that use the promise, as time compression does.
        return None
    error = _gaussian(family, level, at)
    return replace(error, value=error.value * unit_scale(budget_of(at), GAUSSIAN) * (1 - 1e-9))


def _packed(family: Family, level: Level, at: Setting) -> float:
    promise = {"singleton": at.singleton}
    match family, level:
        case "cumulative", _:
            return packing.cumulative(at.steps, at.k, at.epsilon, **promise)
        case "rolling", "event":
            return packing.rolling_event(at.steps, at.length, at.k, at.epsilon, **promise)
        case "rolling", _:
            return packing.rolling_item(at.steps, at.length, at.k, at.epsilon, **promise)
        case _, "event":
            return packing.any_event(at.steps, at.k, at.epsilon, **promise)
    return packing.any_item(at.steps, at.k, at.epsilon, **promise)


def _gaussian(family: Family, level: Level, at: Setting) -> Lower:
    """Per unit of the noise scale."""
    window: WindowFamily = Rolling(at.length) if family == "rolling" else Cumulative()
    known = limit(AnyWindow() if family == "any" else window, at.k, _UNITS[level], at.steps)
    assert known is not None
    if family != "any":
        return Lower(known, "rms", "every Gaussian noise")
    # Any windows hold every cumulative count, rolling ones of half the horizon, and at item level single steps.
    answers = at.steps if level == "item" else max(1, min(2 * at.k - 3, at.steps // 2 - 1))
    prefixes = limit(Cumulative(), at.k, _UNITS[level], at.steps)
    assert prefixes is not None
    held = max(prefixes, packing.cube_limit(answers))
    return (
        Lower(known, "rms", "every Gaussian noise") if known >= held else Lower(held, "largest", "every Gaussian noise")
    )
