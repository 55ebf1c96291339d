"""The privacy promise: what two neighbouring logs may differ in (the unit), and how much may be learned (the budget).

Every unit is one frozen dataclass that states one guarantee. A guarantee at the level of a unit says: whatever is
published would have been almost as likely had the log been any of its neighbours.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpwindows.ask.whole_numbers import read_whole, require_steps
from dpwindows.errors import InputError


@dataclass(frozen=True)
class Unit:
    """Base of the units of privacy; use `EventLevel`, `ItemPerPeriod`, `ItemLevel` or `ItemAddRemove`."""

    @property
    def name(self) -> str:
        """The unit as users write it in options, such as `item-per:30`."""
        raise NotImplementedError

    @property
    def promise(self) -> str:
        """The guarantee in one sentence, with what it does not promise."""
        raise NotImplementedError

    def fit_to_range(self, steps: int) -> Unit:
        """The unit for a log of `steps` steps: a period that spans all of them is no period."""
        return self


@dataclass(frozen=True)
class EventLevel(Unit):
    """Neighbours: one occurrence of one item (one unit of count, never a row that carries a count) added or removed."""

    name = "event"
    promise = (
        "Protects each single occurrence of an item: the output is nearly as likely whether or not any one event is "
        "in the log; it does not hide that an item with many events is in the log, nor its habits."
    )


@dataclass(frozen=True)
class ItemLevel(Unit):
    """Neighbours: all occurrences of one item changed arbitrarily. Implies event level at the same budget."""

    name = "item"
    promise = (
        "Protects everything about each single item: the output is nearly as likely whatever occurrences that item "
        "has, none included; it does not hide facts that hold for many items together."
    )


@dataclass(frozen=True)
class ItemAddRemove(Unit):
    """Neighbours: one item present or absent with all its occurrences.

    Weaker than `ItemLevel`, and it does not imply event level at the same budget: adding one occurrence to an item
    that is there is removing the item and adding the longer one, two changes.
    """

    name = "item-add-remove"
    promise = (
        "Protects the presence of each single item with all its events: the output is nearly as likely whether or not "
        "that item is in the log; a change to an item that stays in the log counts as two changes, so it is protected "
        "at twice the epsilon and a larger delta (four times the rho), and facts that hold for many items together are "
        "not hidden."
    )


@dataclass(frozen=True)
class ItemPerPeriod(Unit):
    """Neighbours: the occurrences of one item changed arbitrarily inside some span of `steps` consecutive steps.

    Any multiplicity may change, in both directions, so even one step is stronger than event level. With as many steps
    as the range has it is `ItemLevel`; with fewer it is weaker, and a service without an end can promise it.

    Raises:
        InputError: `steps` is not a whole number of at least 1.
    """

    steps: int

    def __post_init__(self) -> None:
        require_steps("the period of item-per", self.steps)

    @property
    def name(self) -> str:
        """The text `item-per:STEPS`."""
        return f"item-per:{self.steps}"

    def fit_to_range(self, steps: int) -> Unit:
        """Everything about an item may change where the period spans all steps."""
        return self if self.steps < steps else ItemLevel()

    @property
    def promise(self) -> str:
        """The guarantee for spans of `steps` steps, whatever a step is."""
        span = "single step" if self.steps == 1 else f"{self.steps:,} consecutive steps"
        return (
            f"Protects everything that each single item does within any {span}: the output is nearly as likely "
            "whatever its occurrences there are, none included; what an item does over a longer time is not protected "
            "as well (n such periods: n times the epsilon and a larger delta, or n squared times the rho); facts "
            "that hold for many items are not hidden either."
        )


_UNITS: dict[str, Unit] = {unit.name: unit for unit in (EventLevel(), ItemLevel(), ItemAddRemove())}
_PER_PERIOD = "item-per"


def parse_unit(text: str) -> Unit:
    """Read `event`, `item`, `item-add-remove` or `item-per:STEPS`; raises `InputError` if the text is none of these."""
    name, colon, steps = text.strip().partition(":")
    if name == _PER_PERIOD:
        number = read_whole(steps)
        if not number:
            raise InputError(
                f"unit {text!r} needs a whole number of steps after a colon, for example item-per:30 (from 1 to 10^100)"
            )
        return ItemPerPeriod(number)
    if colon or name not in _UNITS:
        raise InputError(f"unknown unit {text!r}: use one of {', '.join(_UNITS)}, {_PER_PERIOD}:STEPS")
    return _UNITS[name]


@dataclass(frozen=True)
class Budget:
    """Base of the budgets; use `PureDP`, `ApproxDP` or `ZCDP`."""

    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """The budget as plain values, for metadata: `{"kind": "approximate", "epsilon": ..., "delta": ...}`."""
        return {"kind": self.kind, **{name: float(value) for name, value in vars(self).items()}}


@dataclass(frozen=True)
class PureDP(Budget):
    """epsilon-differential privacy: no output is more than exp(epsilon) times as likely under a neighbour."""

    epsilon: float
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        _require_positive("epsilon", self.epsilon)

    def __str__(self) -> str:
        return f"epsilon = {self.epsilon:g} (pure)"


@dataclass(frozen=True)
class ApproxDP(Budget):
    """(epsilon, delta)-differential privacy, with 0 < delta < 1. For delta = 0 use `PureDP`.

    Raises:
        InputError: epsilon or delta is not legal.
    """

    epsilon: float
    delta: float
    kind: ClassVar[str] = "approximate"

    def __post_init__(self) -> None:
        _require_positive("epsilon", self.epsilon)
        if not (isinstance(self.delta, (int, float)) and 0 < self.delta < 1):
            raise InputError(
                f"delta must lie strictly between 0 and 1 (use PureDP for delta = 0), got {self.delta!r}: "
                "choose a small probability, for example 1e-6"
            )

    def __str__(self) -> str:
        return f"(epsilon, delta) = ({self.epsilon:g}, {self.delta:g})"


@dataclass(frozen=True)
class ZCDP(Budget):
    """rho-zero-concentrated differential privacy (Bun and Steinke, 2016)."""

    rho: float
    kind: ClassVar[str] = "zcdp"

    def __post_init__(self) -> None:
        _require_positive("rho", self.rho)

    def __str__(self) -> str:
        return f"rho = {self.rho:g} (zCDP)"


def exact(value: float) -> Fraction:
    """The number that a parameter of a budget stands for: the decimal it is written as, and printed as.

    Not the binary number nearest to it: ten releases of epsilon = 0.1 make epsilon = 1, and three make 0.3.
    """
    return Fraction(value) if isinstance(value, int) else Fraction(repr(float(value)))


def parse_budget(epsilon: float | None, delta: float | None, rho: float | None) -> Budget:
    """Build a budget from the command line's options.

    Exactly one of `epsilon` and `rho` must be given; `delta` goes with `epsilon`, and none or 0 means pure.

    Raises:
        InputError: the combination or a value is not legal.
    """
    if epsilon is None and rho is None:
        raise InputError("no budget was given: give --epsilon (with or without --delta), or --rho")
    if epsilon is not None and rho is not None:
        raise InputError("give either epsilon (--epsilon, with or without --delta) or rho (--rho), and not both")
    if rho is not None:
        if delta is not None:
            raise InputError("--delta goes with --epsilon; a budget of --rho has none")
        return ZCDP(rho)
    assert epsilon is not None
    if delta is None or delta == 0:
        return PureDP(epsilon)
    if not (0 < delta < 1):
        raise InputError(f"delta must lie in [0, 1), got {delta!r}: choose a small probability, for example 1e-6")
    return ApproxDP(epsilon, delta)


def _require_positive(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{name} must be a number, got {value!r}")
    # Integers beyond the floating range are compared without being converted.
    if not (0 < value < math.inf) or (isinstance(value, int) and value > sys.float_info.max):
        raise InputError(f"{name} must be finite and greater than 0, got {value!r}")
