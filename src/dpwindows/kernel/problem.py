"""The problem that a strategy is given: one window family, one unit of privacy and one noise law."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.privacy import Budget, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import OCCURRENCES, WindowFamily
from dpwindows.kernel.accounting import Law

Criterion = Literal["rms", "max"]

# The units of privacy that have bounds; a strategy must not serve any other, nor one that its own bounds do not name.
BOUNDED_UNITS = (EventLevel, ItemPerPeriod, ItemLevel, ItemAddRemove)


@dataclass(frozen=True)
class Problem:
    """One window family with all thresholds measured in it, for one unit of privacy and one noise law.

    `bits` is the resolution of the integer lattice: one count is about `2^bits` lattice units. `noise_per_unit` is
    the noise scale, in counts, that the budget buys for a sensitivity of 1; strategies that trade noise for bias
    need it. `singleton` is the public promise of at most one event in each step. `budget` is what this problem may
    spend of the whole budget, for the strategies that share it out among parts of their own. `rule` says which
    occurrences the answers were counted from. `shares`, of rolling windows measured together, are the shares of the
    whole budget that each length has.

    Raises:
        ValueError: the thresholds are not whole numbers from 1 in ascending order, which bounds count on, nor those of
            occurrences alone; or the rule bounds what an item adds, and the unit protects less than whole items.
    """

    window: WindowFamily
    steps: int
    thresholds: tuple[int, ...]
    unit: Unit
    law: Law
    noise_per_unit: float
    criterion: Criterion = "rms"
    bits: int = 24
    singleton: bool = False
    budget: Budget | None = None
    rule: CountingRule = EVERY_OCCURRENCE
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        lowest = OCCURRENCES if self.counts_occurrences else 1
        whole = type(self.thresholds) is tuple and all(type(k) is int and k >= lowest for k in self.thresholds)
        if not (whole and self.thresholds and all(one < other for one, other in pairwise(self.thresholds))):
            raise ValueError(f"thresholds are whole numbers from 1 in ascending order, got {self.thresholds}")
        if self.rule.bounded and not isinstance(self.unit, ItemLevel | ItemAddRemove):
            # One event more changes which others count: neighbours by these units are none once the rule is enforced.
            raise ValueError(f"a rule that bounds what an item adds is for whole items, not for {self.unit.name}")

    @property
    def counts_occurrences(self) -> bool:
        """Whether occurrences are counted, and no items."""
        return self.thresholds == (OCCURRENCES,)
