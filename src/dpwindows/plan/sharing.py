"""How the parts of a plan share one budget: the noise law, the designs and the noise scales of least error."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, PureDP
from dpwindows.ask.queries import Query
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import Law
from dpwindows.kernel.designs import Design
from dpwindows.kernel.groups import Groups
from dpwindows.kernel.measure import Measurement
from dpwindows.plan.allotment import Allotment, Alternative
from dpwindows.plan.parts import Part, error_in
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.noise_scales import laws_for, scales, unit_scale
from dpwindows.strategies.strategy import PrescribedScale

# One count is about 2^24 lattice units unless the noise is so wide that a coarser lattice must do.
BITS, _FEWEST_BITS = 24, 8
_WIDEST_SCALE, _HIGHEST_SCALE = 2.0**50, 2.0**55
# Noise, in counts, beyond which no lattice is coarse enough.
_MOST_NOISE = 2.0**45

# The designs for a part of a plan under a noise law, where one count is about 2^bits lattice units.
Proposals = Callable[[Part, Law, int], Sequence[Design]]


def allot(budget: Budget, parts: Sequence[Part], proposals: Proposals) -> tuple[Allotment, ...]:
    """Shares a budget among parts: the noise law, the designs and the scales of least error within it.

    Args:
        budget: what all parts together may spend.
        parts: what is measured, each with its share; shares sum to 1.
        proposals: the designs that can measure a part, for which it raises `InputError` where there are none.

    Returns:
        One allotment for each part, in their order, all under one noise law.

    Raises:
        InputError: no noise law has designs for all parts, or the budget is too small for any noise that is drawn.
    """
    plans, refusals = [], []
    for law in laws_for(budget):
        try:
            plans.append(allot_with_law(law, budget, parts, proposals))
        except InputError as refusal:
            refusals.append(refusal)
    if not plans:
        raise refusals[0]
    return _choose_allotments(plans, [part.share for part in parts])


def allot_with_law(law: Law, budget: Budget, parts: Sequence[Part], proposals: Proposals) -> tuple[Allotment, ...]:
    """Like `allot`, for one given noise law.

    Raises:
        InputError: the budget is too small, so the noise would be larger than is drawn.
    """
    shares = [part.share for part in parts]
    if max(unit_scale(budget, law, share) for share in shares) > _MOST_NOISE:
        raise _too_small(budget)
    bits = BITS
    while True:
        ranked = [_ranked(part, proposals(part, law, bits)) for part in parts]
        # Scales come from what is certified, so at first any will do.
        measured = [
            Measurement(best, best.problem.law, 1.0, part.groups)
            for (best, *_), part in zip(ranked, parts, strict=True)
        ]
        noise_scales = scales(
            budget,
            law,
            [one.certificate.bound for one in measured],
            shares,
            [one.cost.rows for one in measured],
        )
        noise_scales = [
            one.design.shape.prescribed if isinstance(one.design.shape, PrescribedScale) else scale
            for one, scale in zip(measured, noise_scales, strict=True)
        ]
        if max(noise_scales) <= _WIDEST_SCALE or (bits == _FEWEST_BITS and max(noise_scales) <= _HIGHEST_SCALE):
            break
        if bits == _FEWEST_BITS:
            raise _too_small(budget)
        bits = max(_FEWEST_BITS, bits - math.ceil(math.log2(max(noise_scales) / _WIDEST_SCALE)))
    return tuple(
        Allotment(part.query, replace(one, scale=scale), part.share, *_alternatives(weighed, part.groups))
        for part, one, weighed, scale in zip(parts, measured, ranked, noise_scales, strict=True)
    )


def _ranked(part: Part, designs: Sequence[Design]) -> list[Design]:
    """The designs of a part, best first where each is measured in all groups."""
    return choice.ranked(designs, lambda design: error_in(design, part.groups))


def _too_small(budget: Budget) -> InputError:
    return InputError(
        f"{budget} is too small for what is asked: the noise would be {_MOST_NOISE:.0e} counts or more; "
        "choose a larger budget or ask for less"
    )


def shares_of(queries: Sequence[Query], weights: Mapping[str, float] | Sequence[float] | None) -> list[float]:
    """The share of the budget that each query has, in proportion to the weights; they sum to 1.

    Raises:
        InputError: weights do not fit the window families asked for, or one is not finite and above 0.
    """
    listed = weights_of(queries, weights)
    # Floating shares may sum to a hair over 1, which the head-room of the scales covers.
    return [weight / sum(listed) for weight in listed]


def weights_of(queries: Sequence[Query], weights: Mapping[str, float] | Sequence[float] | None) -> list[float]:
    """The weight of each query, 1 where none is given.

    Raises:
        InputError: weights do not fit the window families asked for, or one is not finite and above 0.
    """
    texts = [query.window.text for query in queries]
    if isinstance(weights, Mapping):
        if unknown := set(weights) - set(texts):
            raise InputError(f"weights name windows that are not asked for: {', '.join(sorted(unknown))}")
        weights = [weights.get(text, 1.0) for text in texts]
    weights = list(weights) if weights is not None else [1.0] * len(texts)
    if len(weights) != len(texts):
        raise InputError(f"weights are one for each window family ({', '.join(texts)}), got {len(weights)}")
    # Compared and not converted: a whole number may be too large for a floating one.
    if not all(isinstance(weight, (int, float)) and 0 < weight <= sys.float_info.max for weight in weights):
        raise InputError(f"weights must be finite and greater than 0, got {weights}")
    return [float(weight) for weight in weights]


def part_of(budget: Budget, share: float) -> Budget | None:
    """A share of a budget by basic composition; None where a part of it is too small for a floating-point number.

    Raises:
        ValueError: the budget is of no known kind.
    """
    try:
        match budget:
            case PureDP(epsilon):
                return PureDP(epsilon * share)
            case ApproxDP(epsilon, delta):
                return ApproxDP(epsilon * share, delta * share)
            case ZCDP(rho):
                return ZCDP(rho * share)
    except InputError:
        return None
    raise ValueError(f"unknown budget {budget!r}")


def _choose_allotments(plans: Sequence[tuple[Allotment, ...]], shares: Sequence[float]) -> tuple[Allotment, ...]:
    """The noise law whose designs have the least weighted geometric mean error; the others become alternatives.

    One law serves the whole plan: a family that another would serve better cannot have it, so that is none.
    """

    def mean(allotments: tuple[Allotment, ...]) -> float:
        errors = [allotment.chosen.error for allotment in allotments]
        return math.exp(sum(share * math.log(max(error, 1e-300)) for share, error in zip(shares, errors, strict=True)))

    best = choice.best_of(plans, mean)
    passed = [plan for plan in plans if plan is not best]
    return tuple(
        replace(
            allotment,
            others=allotment.others
            + tuple(better for plan in passed if (better := plan[i].chosen).error >= allotment.chosen.error),
        )
        for i, allotment in enumerate(best)
    )


def _alternatives(weighed: Sequence[Design], groups: Groups | None) -> tuple[Alternative, tuple[Alternative, ...]]:
    first, *rest = (Alternative(design.strategy, error_in(design, groups)) for design in weighed)
    return first, tuple(rest)
