"""The exact audit: the privacy loss of the integers and scales in use, over neighbouring logs, against the claim.

Where neighbours are few every pair is compared, and the verdict is a proof; otherwise a search looks for bad pairs, and
the verdict says only that none was found. All of it runs on the matrix that `probe` reads off the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.groups import Grouping
from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, PureDP, Unit, exact
from dpwindows.audit.losses import (
    Bounds,
    Moved,
    Power,
    analytic_delta,
    concentrated_delta,
    epsilon_at,
    gaussian_delta,
    laplace_delta,
    lattice_term,
    least_joint_delta,
    mu_squared,
    norms_of,
    pure_epsilon,
    scaled_sum,
)
from dpwindows.audit.neighbours import Histories, Ints, Pair
from dpwindows.audit.probe import Mechanism, Part, probe
from dpwindows.audit.search import search
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, JOINT, LAPLACE, Law
from dpwindows.kernel.measure import Measurement
from dpwindows.strategies.search.noise_scales import design_law, laws_for

if TYPE_CHECKING:
    from dpwindows.plan.planned import Planned

Verdict = Literal["within the claim", "beyond the claim", "not proved"]
# Histories that are held at once, and numbers that are compared, where every pair is.
HISTORIES, COMPARED = 1 << 16, 1 << 29
_PIECE = 1 << 16
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
    grouping: Grouping | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {
            "claim": self.budget.to_dict(),
            "unit": self.unit.name,
            "compared": "every neighbour" if self.exhaustive else "neighbours found by a search",
            "pairs": self.pairs,
            "worst": self.worst.to_dict(self.grouping),
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


def audit_exactly(plan: Planned, *, seed: int = 0) -> ExactAudit:
    """Audit the mechanism of a plan, over all neighbours if these are few enough and by a search otherwise.

    Args:
        plan: what to audit; a small horizon makes it exhaustive.
        seed: of the search, which is the only thing here that draws random numbers.

    Raises:
        InputError: the plan is too large to be audited.
    """
    return audit_measurements(plan.measurements, plan.budget, plan.unit, seed=seed)


def audit_measurements(measurements: Sequence[Measurement], budget: Budget, unit: Unit, *, seed: int = 0) -> ExactAudit:
    """Audit measurements that together claim `budget` for neighbours by `unit`.

    Raises:
        InputError: there are too many integers to be audited, the unit is not known here, or the noise is of a law that
            gives no guarantee of the claim's kind.
    """
    law = _law_of(measurements, budget)
    mechanism = probe(measurements)
    found = compare(mechanism, unit, 1 if law == LAPLACE else 2, seed)
    moved = mechanism.moved(found.worst)
    of_certified = _of_certified(measurements, moved)
    loss, verdict = _judged(budget, law, moved, mechanism)
    if verdict == "beyond the claim" and law == LAPLACE and isinstance(budget, ApproxDP) and not _joint(mechanism):
        # Not pure: the guarantee must come from the squares, which another pair may move further.
        by_squares = compare(mechanism, unit, 2, seed)
        found, loss, verdict = _laplace_by_squares(budget, mechanism, found, by_squares)
    shown = found.exhaustive, found.pairs, found.worst
    return ExactAudit(budget, unit, *shown, loss, of_certified, verdict, mechanism.grouping)


def _law_of(measurements: Sequence[Measurement], budget: Budget) -> Law:
    """The law of all the noise: Laplace for all pure ones, which may be mixed. Raises `InputError` if there is no such.

    Gaussian noise is never pure; what Laplace noise costs in rho is only bounded.
    """
    laws = {design_law(one.law) for one in measurements}
    if len(laws) != 1:
        raise InputError(f"an audit needs noise of one law, got {', '.join(sorted(laws)) or 'no measurement'}")
    (law,) = laws
    if law not in laws_for(budget):
        raise InputError(f"{law} noise gives no guarantee of the kind of {budget}: nothing to audit")
    return law


# --- Comparing pairs -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The worst pair of those that were compared, how many these were, and whether they are all there are."""

    worst: Pair
    pairs: int
    exhaustive: bool


def compare(mechanism: Mechanism, unit: Unit, power: Power, seed: int) -> Found:
    """Compare every pair of neighbours where they are few enough, and those that a search finds otherwise."""
    found = compare_all(mechanism, unit, power)
    return found or Found(*search(mechanism, unit, power, seed=seed), exhaustive=False)


def compare_all(mechanism: Mechanism, unit: Unit, power: Power) -> Found | None:
    """Compare every pair of neighbours; None where they are too many."""
    histories = Histories(mechanism.steps, mechanism.most, mechanism.groups, mechanism.places)
    if histories.count > HISTORIES:
        return None
    answers = mechanism.answers(histories.read(np.arange(histories.count)))
    # Occurrences may be more than one; everything else takes less time as bits.
    held = answers if answers.max(initial=0) > 1 else np.packbits(answers.astype(bool), axis=1)
    _, distinct = np.unique(held, axis=0, return_index=True)
    if histories.count_pairs(unit, len(distinct)) * mechanism.rows > COMPARED:
        return None
    return _every_pair(mechanism, histories, answers, np.sort(distinct), unit, power)


def _every_pair(
    mechanism: Mechanism, histories: Histories, answers: Ints, distinct: Ints, unit: Unit, power: Power
) -> Found:
    measured = [part.apply(answers) for part in mechanism.parts]
    smallest = min(part.scale for part in mechanism.parts)
    weights = [(smallest / part.scale) ** power for part in mechanism.parts]
    events = histories.read(np.arange(histories.count)).sum(axis=1)
    count, best, near = 0, -1.0, dict[tuple[int, ...], tuple[int, int, int]]()
    for one, other in _pieces(histories.pairs(unit, distinct)):
        count += len(one)
        moved = [
            _norms(numbers[other] - numbers[one], part, power)
            for numbers, part in zip(measured, mechanism.parts, strict=True)
        ]
        losses = np.sum([norm.astype(np.float64) * weight for norm, weight in zip(moved, weights, strict=True)], axis=0)
        best = max(best, float(losses.max()))
        for index in np.flatnonzero(losses >= best * (1 - _NEAR)):
            # Of pairs that are equally bad, one with few events is the easiest to understand.
            found = int(events[one[index]] + events[other[index]]), int(one[index]), int(other[index])
            key = tuple(int(norm[index]) for norm in moved)
            near[key] = min(near.get(key, found), found)
    scales = [part.scale for part in mechanism.parts]
    worst = max(near, key=lambda found: scaled_sum(zip(found, scales, strict=True), power))
    log, neighbour = histories.read(np.array(near[worst][1:])).tolist()
    return Found(Pair(tuple(log), tuple(neighbour)), count, exhaustive=True)


def _pieces(pairs: Iterator[tuple[Ints, Ints]]) -> Iterator[tuple[Ints, Ints]]:
    for one, other in pairs:
        for start in range(0, len(one), _PIECE):
            yield one[start : start + _PIECE], other[start : start + _PIECE]


def _norms(moved: NDArray[Any], part: Part, power: Power) -> NDArray[Any]:
    """The exact norm of each row."""
    largest = max(1, int(abs(moved).max(initial=0)))
    if largest**power * moved.shape[1] >= 1 << 62:
        moved = moved.astype(object)
    return norms_of(power, part.law, moved, part.vectors)


# --- From the worst pair to a verdict --------------------------------------------------------------------------------


def _judged(budget: Budget, law: Law, moved: Sequence[Moved], mechanism: Mechanism) -> tuple[Loss, Verdict]:
    """The loss of the worst pair, and a verdict: monotone in the norm compared, so that it holds for every pair.

    Laplace noise and that of the joint laws are judged as pure, by their norms.
    """
    match budget:
        case ZCDP(rho):
            spent = mu_squared(moved) / 2
            return Loss("rho", _exactly(spent), float(rho)), _within(spent <= exact(rho))
        case PureDP(epsilon) | ApproxDP(epsilon) if law == LAPLACE:
            spent = pure_epsilon(moved)
            verdict = _within(spent <= exact(epsilon))
            if verdict != "within the claim" and isinstance(budget, ApproxDP) and _joint(mechanism):
                least = least_joint_delta(moved, exact(epsilon))
                verdict = _beyond(Bounds(least, 1.0), exact(budget.delta))
            return Loss("epsilon", _exactly(spent), float(epsilon)), verdict
    assert isinstance(budget, ApproxDP)
    at, allowed, squared = exact(budget.epsilon), exact(budget.delta), mu_squared(moved)
    true = gaussian_delta(moved, at)
    least = epsilon_at(budget.delta, lambda candidate: gaussian_delta(moved, candidate).high)
    loss = Loss("delta", true, float(budget.delta), least)
    # Every row counted, so that it holds for pairs that move more of them less far.
    eta = lattice_term((part.rows, part.scale) for part in mechanism.parts)
    proved = concentrated_delta(squared / 2, at) <= allowed or analytic_delta(squared, eta, at) <= allowed
    return loss, "within the claim" if proved else _beyond(true, allowed)


def _joint(mechanism: Mechanism) -> bool:
    """Whether some noise is drawn for whole vectors, so that squares prove nothing."""
    return any(part.law in JOINT for part in mechanism.parts)


def _laplace_by_squares(
    budget: ApproxDP, mechanism: Mechanism, by_sums: Found, by_squares: Found
) -> tuple[Found, Loss, Verdict]:
    """The verdict where Laplace noise is not pure: concentrated for the largest squares, or one pair is beyond.

    The pair that is shown, of the two that are worst in a norm, is that of larger delta.
    """
    at, allowed = exact(budget.epsilon), exact(budget.delta)
    found = replace(by_squares, pairs=by_sums.pairs + by_squares.pairs * (not by_squares.exhaustive))
    deltas = {pair: laplace_delta(mechanism.moved(pair), at) for pair in (by_sums.worst, by_squares.worst)}
    worst = max(deltas, key=lambda pair: deltas[pair].low)
    proved = concentrated_delta(mu_squared(mechanism.moved(by_squares.worst)) / 2, at) <= allowed
    verdict = "within the claim" if proved else _beyond(deltas[worst], allowed)
    return replace(found, worst=worst), Loss("delta", deltas[worst], float(budget.delta)), verdict


def _within(proved: bool) -> Verdict:
    return "within the claim" if proved else "beyond the claim"


def _beyond(delta: Bounds, allowed: Fraction) -> Verdict:
    return "beyond the claim" if delta.low > allowed else "not proved"


def _exactly(value: Fraction) -> Bounds:
    nearest = float(value)
    low, high = np.nextafter(nearest, -np.inf), np.nextafter(nearest, np.inf)
    return Bounds(float(low) if Fraction(nearest) > value else nearest, float(high) if nearest < value else nearest)


def _of_certified(measurements: Sequence[Measurement], moved: Sequence[Moved]) -> float:
    power = 2 if measurements[0].law == GAUSSIAN else 1
    allowed = scaled_sum(((one.certificate.bound, one.scale) for one in measurements), power)
    reached = mu_squared(moved) if power == 2 else pure_epsilon(moved)
    return math.sqrt(reached / allowed) if power == 2 else float(reached / allowed)
