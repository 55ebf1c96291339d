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
class Errors:
    """Root mean square and largest error over the windows of a release, in counts, and the strategy that has them."""

    rms: float
    max: float
    strategy: str


@dataclass(frozen=True)
class Row:
    """A cell with its figures: `window` in canonical text, errors in counts, growth laws up to constants."""

    window: str
    unit: Level
    at: Setting
    paper: Errors
    ours: Errors
    lower: Lower | None
    paper_law: Growth
    lower_law: Growth

    @property
    def stream(self) -> str:
        """What a step may hold: any `bundle` of events, or at most a `singleton`."""
        return "singleton" if self.at.singleton else "bundle"

    @property
    def budget(self) -> str:
        """The kind of budget."""
        return "pure" if self.at.pure else "approximate"

    @property
    def ratio(self) -> float | None:
        """Our standard error over the lower bound, None where there is none.

        It is rms over rms, or our largest over bounds on the largest error; under pure budgets that bound is on the
        error of a release and not on a standard error.
        """
        if self.lower is None or self.lower.value <= 0:
            return None
        return (self.ours.rms if self.lower.of == "rms" else self.ours.max) / self.lower.value

    def to_dict(self) -> dict[str, Any]:
        """Plain values, one flat entry."""
        return {
            "window": self.window,
            "k": self.at.k,
            "unit": self.unit,
            "stream": self.stream,
            "budget": self.budget,
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
    cells = product(ks, families(steps, lengths), _UNITS, (0.0, delta) if delta else (0.0,), (False, True))
    settings = [
        # Where W does not matter the bounds ask for one nevertheless.
        (family, level, Setting(steps, getattr(window, "length", max(1, steps // 2)), k, epsilon, slack, singleton))
        for k, (family, window), level, slack, singleton in cells
    ]
    return (row(family, level, at) for family, level, at in settings)


def row(family: Family, level: Level, at: Setting) -> Row:
    """One cell with its figures.

    Raises:
        InputError: nothing can be planned with these parameters.
    """
    window = _window(family, at)
    paper, ours = (errors(window, level, at, strategy) for strategy in ("paper", "auto"))
    laws = bounds.UPPER[family, level](at), bounds.LOWER[family, level](at)
    return Row(window.text, level, at, paper, ours, lower(family, level, at), *laws)


def _window(family: Family, at: Setting) -> WindowFamily:
    return {"cumulative": Cumulative(), "rolling": Rolling(at.length), "any": AnyWindow()}[family]


def planned(window: WindowFamily, level: Level, at: Setting, strategy: str) -> Plan:
    """The plan of a release that holds one cell."""
    return Plan(
        [window.at_least(at.k)],
        timeline=Timeline.of_steps(at.steps),
        unit=_UNITS[level],
        budget=_budget(at),
        strategy=strategy,
        singleton=at.singleton,
    )


def _budget(at: Setting) -> Budget:
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
        return Lower(packing.PACKED[family, level](at), "largest", "every epsilon-private mechanism")
    if at.singleton:
        # Limits of additive noise do not bind mechanisms that use the promise, as time compression does.
        return None
    error = _gaussian(family, level, at)
    return replace(error, value=error.value * unit_scale(_budget(at), GAUSSIAN) * (1 - 1e-9))


def _gaussian(family: Family, level: Level, at: Setting) -> Lower:
    """Per unit of the noise scale."""
    known, prefixes = (
        limit(window, at.k, _UNITS[level], at.steps) or 0.0 for window in (_window(family, at), Cumulative())
    )
    # Any windows hold every cumulative count, rolling ones of half the horizon, and at item level single steps.
    answers = at.steps if level == "item" else max(1, min(2 * at.k - 3, at.steps // 2 - 1))
    held = max(prefixes, packing.cube_limit(answers)) if family == "any" else 0.0
    return Lower(max(known, held), "rms" if known >= held else "largest", "every Gaussian noise")
