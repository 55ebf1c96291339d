"""Rules: which bound holds for which measurement. Each is declared once, beside its proof.

A rule names the windows, units of privacy, noise laws and maps that its bound is proved for. The bound looks at the
integers that are applied, and returns None where a further condition of its proof does not hold. What is charged is the
smallest bound of all rules that apply; what no rule is for is refused.

Releases, exports and states carry the name of the proof that they rest on. A name never changes, wherever the code is
kept; `docs/proofs.md` lists them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import Rolling, WindowFamily
from dpwindows.kernel.accounting import GAUSSIAN, Law
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.problem import Problem

Bound = TypeVar("Bound", bound=Callable[..., int | None])

PROOFS: dict[str, Callable[..., Any]] = {}
"""Each proof's name with the function that computes its bound; the function's docstring holds the proof."""


def proves(name: str) -> Callable[[Bound], Bound]:
    """Give the bound below its name.

    Raises:
        ValueError: another bound has the name.
    """

    def named(bound: Bound) -> Bound:
        if name in PROOFS:
            raise ValueError(f"two bounds were given the name {name!r}")
        PROOFS[name] = bound
        return bound

    return named


@dataclass(frozen=True)
class Case:
    """What a rule is asked: a problem, what measures it, and for how long.

    Attributes:
        problem: window family, unit, law and thresholds; its `steps` are those of a forecast.
        measured: what is applied, of one of the classes that the rule names.
        steps: the horizon in steps, None if there is no end.
        advise: who is asked for the free choices of a bound.
    """

    problem: Problem
    measured: Any
    steps: int | None
    advise: Advise

    @property
    def thresholds(self) -> tuple[int, ...]:
        """The thresholds, each measured apart."""
        return self.problem.thresholds

    @property
    def rule(self) -> CountingRule:
        """Which occurrences of an item count."""
        return self.problem.rule

    @property
    def horizon(self) -> int:
        """The horizon, where there is an end.

        Raises:
            NotCertifiedError: there is none.
        """
        if self.steps is None:
            raise NotCertifiedError(self.problem, self.measured)
        return self.steps

    @property
    def length(self) -> int:
        """The length W of rolling windows."""
        assert isinstance(self.problem.window, Rolling)
        return self.problem.window.length

    @property
    def reach(self) -> int:
        """How many consecutive rolling windows hold one step."""
        return self.length if self.steps is None else min(self.length, self.steps)

    @property
    def span(self) -> int | None:
        """The steps within which two neighbours differ: one for an event, all for a whole item; None without an end."""
        match self.problem.unit:
            case EventLevel():
                return 1
            case ItemPerPeriod(steps=period):
                return period if self.steps is None else min(period, self.steps)
        return self.steps

    @property
    def formal(self) -> bool:
        """Whether a neighbour may change an item, and not only add or remove it."""
        return not isinstance(self.problem.unit, ItemAddRemove)

    @property
    def power(self) -> int:
        """The power of the norm that the noise law is charged for."""
        return 2 if self.problem.law == GAUSSIAN else 1

    def cell(self, unit: int) -> int:
        """What a number costs that moves by one count, on a lattice of `unit` to a count."""
        return unit * unit if self.power == 2 else unit


@dataclass(frozen=True)
class Rule:
    """One declared rule.

    Attributes:
        proof: the name of the proof that it rests on.
        windows: the window families that it is for.
        units: the units of privacy.
        laws: the noise laws.
        measured: the classes of maps or shapes.
        when: what else must hold, in words.
        bound: the bound, or None where that does not hold.
    """

    proof: str
    windows: tuple[type[WindowFamily], ...]
    units: tuple[type[Unit], ...]
    laws: tuple[Law, ...]
    measured: tuple[type, ...]
    when: str
    bound: Callable[[Case], int | None]

    def is_for(self, case: Case) -> bool:
        """Whether it names all that a case is made of; classes derived from what it names are none."""
        problem = case.problem
        return (
            type(case.measured) in self.measured
            and type(problem.window) in self.windows
            and type(problem.unit) in self.units
            and problem.law in self.laws
        )


RULES: list[Rule] = []
ITEM_UNITS = (ItemPerPeriod, ItemLevel, ItemAddRemove)
ALL_UNITS = (EventLevel, *ITEM_UNITS)


def rule(
    proof: str,
    windows: type[WindowFamily] | tuple[type[WindowFamily], ...],
    units: type[Unit] | tuple[type[Unit], ...],
    laws: Law | tuple[Law, ...],
    measured: type | tuple[type, ...],
    when: str = "",
) -> Callable[[Callable[[Case], int | None]], Callable[[Case], int | None]]:
    """Declare what the bound below is for. It is the proof of its name, unless another bound is that already.

    Args:
        proof: the name of the proof.
        windows: the window families.
        units: the units of privacy.
        laws: the noise laws.
        measured: the classes of maps or shapes.
        when: what else must hold, in words; the bound is None where it does not.
    """
    windows, units, measured = (one if isinstance(one, tuple) else (one,) for one in (windows, units, measured))
    laws = laws if isinstance(laws, tuple) else (laws,)

    def declare(bound: Callable[[Case], int | None]) -> Callable[[Case], int | None]:
        RULES.append(Rule(proof, windows, units, laws, measured, when, bound))
        return bound if proof in PROOFS else proves(proof)(bound)

    return declare


def certify(case: Case) -> tuple[int, str]:
    """The smallest bound of all rules that apply, and the name of its proof.

    Raises:
        NotCertifiedError: no rule applies.
        ValueError: an answer to what a bound asks is none that is legal.
    """
    bounds = [(bound, one.proof) for one in RULES if one.is_for(case) and (bound := one.bound(case)) is not None]
    # Rules are about items: of occurrences they are asked about one (`kernel.occurrences`).
    if case.problem.counts_occurrences or not bounds or min(bounds)[0] < 0:
        raise NotCertifiedError(case.problem, case.measured)
    return min(bounds)
