"""The exact audit: the privacy loss of the integers and scales in use, over neighbouring logs, against the claim.

Where neighbours are few every pair is compared, and the verdict is a proof; otherwise a search looks for bad pairs, and
the verdict says only that none was found. All of it runs on the matrix that `probe` reads off the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpwindows.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.audit.losses import (
    Bounds,
    Moved,
    analytic_delta,
    concentrated_delta,
    epsilon_at,
    gaussian_delta,
    laplace_delta,
    mu_squared,
    pure_epsilon,
)
from dpwindows.audit.neighbours import Histories, Ints, Pair
from dpwindows.audit.probe import Mechanism, probe
from dpwindows.audit.search import search
from dpwindows.kernel import Measurement
from dpwindows.privacy import ZCDP, ApproxDP, Budget, PureDP, Unit, exact

if TYPE_CHECKING:
    from dpwindows.plan import Plan

Verdict = Literal["within the claim", "beyond the claim", "not proved"]
# Histories that are held at once, and numbers that are compared, where every pair is.
_HISTORIES, _COMPARED, _PIECE = 1 << 16, 1 << 29, 1 << 16
# Pairs whose loss in floating point is within this of the largest are compared exactly. Norms are exact integers; a
# weighted sum of a few of them, rounded, is off by far less than this share of itself.
_NEAR = 2.0**-40


@dataclass(frozen=True)
class Loss:
    """The loss of one pair in the terms of the claim: `name` (epsilon, delta or rho), proved to lie in `bounds`.

    `claimed` is what the budget allows. Where it is delta, `epsilon` is the least one, rounded up, that the pair has at
    the claimed delta.
    """

    name: str
    bounds: Bounds
    claimed: float
    epsilon: float | None = None

    @property
    def share(self) -> float:
        """The loss over the claim; in terms of epsilon where the claim is (epsilon, delta)."""
        return self.bounds.high / self.claimed


@dataclass(frozen=True)
class ExactAudit:
    """What the exact audit found.

    `exhaustive` tells whether every neighbour was compared; `pairs` how many were. `worst` is the worst pair, `loss`
    its loss; `of_certified` how far it moves the measurements over how far the certificates allow (the norm, not its
    square).
    """

    budget: Budget
    unit: Unit
    exhaustive: bool
    pairs: int
    worst: Pair
    loss: Loss
    of_certified: float
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "claim": self.budget.to_dict(),
            "unit": self.unit.name,
            "compared": "every neighbour" if self.exhaustive else "neighbours found by a search",
            "pairs": self.pairs,
            "worst": {"log": list(self.worst.log), "neighbour": list(self.worst.neighbour)},
            "loss": {
                "of": self.loss.name,
                "at_least": self.loss.bounds.low,
                "at_most": self.loss.bounds.high,
                "claimed": self.loss.claimed,
                "epsilon_at_claimed_delta": self.loss.epsilon,
            },
            "of_certified": self.of_certified,
            "verdict": self.verdict,
        }


def audit_exactly(plan: Plan, *, seed: int = 0) -> ExactAudit:
    """Audit the mechanism of a plan, over all neighbours if these are few enough and by a search otherwise.

    Args:
        plan: what to audit; a small horizon makes it exhaustive.
        seed: of the search, which is the only thing here that draws random numbers.

    Raises:
        InputError: the plan is too large to be audited.
    """
    return audit_measurements([one.measurement for one in plan.allotments], plan.budget, plan.unit, seed=seed)


def audit_measurements(measurements: Sequence[Measurement], budget: Budget, unit: Unit, *, seed: int = 0) -> ExactAudit:
    """Audit measurements that together claim `budget` for neighbours by `unit`.

    Raises:
        InputError: there are too many integers to be audited, or the unit is not known here.
    """
    mechanism = probe(measurements)
    law = measurements[0].law
    found = _compare(mechanism, unit, 2 if law == GAUSSIAN else 1, seed)
    moved = mechanism.moved(found.worst)
    if law == LAPLACE and isinstance(budget, ApproxDP) and pure_epsilon(moved) > exact(budget.epsilon):
        # Not pure: the guarantee must come from the squares.
        found = _compare(mechanism, unit, 2, seed)
        moved = mechanism.moved(found.worst)
    return ExactAudit(
        budget=budget,
        unit=unit,
        exhaustive=found.exhaustive,
        pairs=found.pairs,
        worst=found.worst,
        loss=_loss(budget, law, moved),
        of_certified=_of_certified(measurements, moved),
        verdict=_verdict(budget, law, moved, mechanism),
    )


# --- Comparing pairs -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    worst: Pair
    pairs: int
    exhaustive: bool


def _compare(mechanism: Mechanism, unit: Unit, power: Literal[1, 2], seed: int) -> _Found:
    histories = Histories(mechanism.steps, mechanism.most)
    if histories.count <= _HISTORIES:
        logs = histories.read(np.arange(histories.count))
        answers = mechanism.answers(logs)
        _, distinct = np.unique(np.packbits(answers.astype(bool), axis=1), axis=0, return_index=True)
        pairs = histories.count_pairs(unit, len(distinct))
        if pairs * mechanism.rows <= _COMPARED:
            return _every_pair(mechanism, histories, answers, np.sort(distinct), unit, power)
    pair, tried = search(mechanism, unit, power, seed=seed)
    return _Found(pair, tried, exhaustive=False)


def _every_pair(
    mechanism: Mechanism, histories: Histories, answers: Ints, distinct: Ints, unit: Unit, power: Literal[1, 2]
) -> _Found:
    measured = [part.apply(answers) for part in mechanism.parts]
    smallest = min(part.scale for part in mechanism.parts)
    weights = [(smallest / part.scale) ** power for part in mechanism.parts]
    events = histories.read(np.arange(histories.count)).sum(axis=1)
    count, best, near = 0, -1.0, dict[tuple[int, ...], tuple[int, int, int]]()
    for one, other in _pieces(histories.pairs(unit, distinct)):
        count += len(one)
        norms = [_norms(part[other] - part[one], power) for part in measured]
        losses = np.sum([norm.astype(np.float64) * weight for norm, weight in zip(norms, weights, strict=True)], axis=0)
        best = max(best, float(losses.max()))
        for index in np.flatnonzero(losses >= best * (1 - _NEAR)):
            # Of pairs that are equally bad, one with few events is the easiest to understand.
            found = int(events[one[index]] + events[other[index]]), int(one[index]), int(other[index])
            key = tuple(int(norm[index]) for norm in norms)
            near[key] = min(near.get(key, found), found)
    exactly = [Fraction(part.scale) ** -power for part in mechanism.parts]
    worst = max(near, key=lambda norms: sum(norm * weight for norm, weight in zip(norms, exactly, strict=True)))
    log, neighbour = histories.read(np.array(near[worst][1:])).tolist()
    return _Found(Pair(tuple(log), tuple(neighbour)), count, exhaustive=True)


def _pieces(pairs: Iterator[tuple[Ints, Ints]]) -> Iterator[tuple[Ints, Ints]]:
    for one, other in pairs:
        for start in range(0, len(one), _PIECE):
            yield one[start : start + _PIECE], other[start : start + _PIECE]


def _norms(moved: NDArray[Any], power: Literal[1, 2]) -> NDArray[Any]:
    """The exact L1 or squared L2 norm of each row."""
    largest = max(1, int(abs(moved).max(initial=0)))
    if largest**power * moved.shape[1] >= 1 << 62:
        moved = moved.astype(object)
    return np.asarray((moved * moved if power == 2 else abs(moved)).sum(axis=1))


# --- From the worst pair to a verdict --------------------------------------------------------------------------------


def _loss(budget: Budget, law: Law, moved: Sequence[Moved]) -> Loss:
    match budget:
        case PureDP(epsilon):
            return Loss("epsilon", _exactly(pure_epsilon(moved)), float(epsilon))
        case ZCDP(rho):
            return Loss("rho", _exactly(mu_squared(moved) / 2), float(rho))
        case ApproxDP(epsilon, delta):
            if law == LAPLACE and pure_epsilon(moved) <= exact(epsilon):
                return Loss("epsilon", _exactly(pure_epsilon(moved)), float(epsilon))
            at = exact(epsilon)
            if law == GAUSSIAN:
                least = epsilon_at(delta, lambda candidate: gaussian_delta(moved, candidate).high)
                return Loss("delta", gaussian_delta(moved, at), float(delta), least)
            return Loss("delta", laplace_delta(moved, at), float(delta))
    raise ValueError(f"unknown budget {budget!r}")


def _exactly(value: Fraction) -> Bounds:
    nearest = float(value)
    low, high = np.nextafter(nearest, -np.inf), np.nextafter(nearest, np.inf)
    return Bounds(float(low) if Fraction(nearest) > value else nearest, float(high) if nearest < value else nearest)


def _verdict(budget: Budget, law: Law, moved: Sequence[Moved], mechanism: Mechanism) -> Verdict:
    """For the worst pair; monotone in its norm, so that it holds for every pair compared."""
    match budget:
        case PureDP(epsilon):
            return "within the claim" if pure_epsilon(moved) <= exact(epsilon) else "beyond the claim"
        case ZCDP(rho):
            return "within the claim" if mu_squared(moved) / 2 <= exact(rho) else "beyond the claim"
    assert isinstance(budget, ApproxDP)
    at, allowed = exact(budget.epsilon), exact(budget.delta)
    if law == LAPLACE and pure_epsilon(moved) <= at:
        return "within the claim"
    squared = mu_squared(moved)
    if concentrated_delta(squared / 2, at) <= allowed:
        return "within the claim"
    if law == GAUSSIAN:
        # Every row counted, so that it holds for pairs that move more of them less far.
        eta = sum((Fraction(len(part.matrix), 24) / Fraction(part.scale) ** 2 for part in mechanism.parts), Fraction(0))
        if analytic_delta(squared, eta, at) <= allowed:
            return "within the claim"
    true = gaussian_delta(moved, at) if law == GAUSSIAN else laplace_delta(moved, at)
    return "beyond the claim" if true.low > allowed else "not proved"


def _of_certified(measurements: Sequence[Measurement], moved: Sequence[Moved]) -> float:
    if measurements[0].law == LAPLACE:
        certified = sum(Fraction(one.design.sensitivity) / Fraction(one.scale) for one in measurements)
        return float(pure_epsilon(moved) / certified)
    certified = sum(Fraction(one.design.sensitivity) / Fraction(one.scale) ** 2 for one in measurements)
    return math.sqrt(mu_squared(moved) / certified)


__all__ = ["ExactAudit", "Loss", "Verdict", "audit_exactly", "audit_measurements"]
