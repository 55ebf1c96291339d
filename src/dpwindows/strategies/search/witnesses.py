"""Searches for good answers to what bounds ask: found once for a design's certificate, and kept with the design."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from dpwindows.ask.privacy import ItemAddRemove, ItemLevel
from dpwindows.kernel.advice import Question
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.changes_of_two_counts import Held
from dpwindows.kernel.families.run_patterns import Lags
from dpwindows.kernel.families.signed_patterns import SignedLags, TwoCounts
from dpwindows.strategies.search.pattern_search import (
    CELLS,
    good_charges,
    good_charges_for_runs,
    good_prices,
    memory_for,
    price_of_disjoint,
)
from dpwindows.strategies.search.prices_of_ones import good_prices_of_ones
from dpwindows.strategies.search.wave_search import good_waves

AnyDesign = TypeVar("AnyDesign", bound=Design)


def with_witness(design: AnyDesign) -> AnyDesign:
    """The design with answers to all that its certificate asks, from searches.

    In groups a design for one item that changes is certified for one that comes or goes as well.
    """
    answers: dict[str, tuple[int, ...]] = {}

    def advise(question: Question) -> tuple[int, ...]:
        answers[question.key] = searched(question)
        return answers[question.key]

    design.certify(advise)
    if isinstance(design.problem.unit, ItemLevel):
        with suppress(NotCertifiedError):
            replace(design, problem=replace(design.problem, unit=ItemAddRemove())).certify(advise)
    return replace(design, witness=answers) if answers else design


@lru_cache(maxsize=256)
def searched(question: Question) -> tuple[int, ...]:
    """A good answer; none where the search knows none."""
    return _SEARCHES[question.kind](*question.about)


def _disjoint(lags: Lags, runs: tuple[int, ...]) -> tuple[int, ...]:
    # One table is for all of them: there is time for one that remembers more.
    return price_of_disjoint(lags, runs), memory_for(lags.length, max(runs), 2 * CELLS)


def _period(lags: SignedLags, known: Held | TwoCounts) -> tuple[int, ...]:
    return good_charges(lags, known) if isinstance(known, Held) else good_prices(lags, known)


_SEARCHES: dict[str, Callable[..., tuple[int, ...]]] = {
    "rolling-patterns-event": lambda lags, runs: (memory_for(lags.length, runs),),
    "rolling-patterns-event-disjoint": _disjoint,
    "rolling-patterns-period": _period,
    "rolling-patterns-period-wave": good_waves,
    "rolling-patterns-period-limited": good_charges_for_runs,
    "rolling-chains-item": good_prices_of_ones,
}
