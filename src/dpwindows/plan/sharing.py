"""How the parts of a plan share one budget: the noise law, the designs and the noise scales of least error.

A part is a query, and with groups a query at one level of them. Rolling windows of several lengths are measured as one
where all err less for it: day, week and month at event level change by one history, so one filter on all three costs
less than three filters with a third of the budget each. The weights of the queries still set their shares: a share says
who gains how much.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dpwindows.ask.groups import Grouping
from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, EventLevel, ItemPerPeriod, PureDP, Unit
from dpwindows.ask.queries import Measure, Query, Rolling, RollingTogether
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, Law
from dpwindows.kernel.designs import Design
from dpwindows.kernel.groups import Groups, certify_groups
from dpwindows.kernel.measure import Measurement
from dpwindows.kernel.problem import Criterion
from dpwindows.plan.allotment import Allotment, Alternative
from dpwindows.strategies.scoring import score, score_of
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.noise_scales import laws_for, scales, unit_scale
from dpwindows.strategies.strategy import PrescribedScale

# One count is about 2^24 lattice units unless the noise is so wide that a coarser lattice must do.
BITS, _FEWEST_BITS = 24, 8
# Occurrences are more than items may ever be: with these bits 2^48 of them fit into what is measured.
_OCCURRENCE_BITS = 12
_WIDEST_SCALE, _HIGHEST_SCALE = 2.0**50, 2.0**55
# Noise, in counts, beyond which no lattice is coarse enough.
_MOST_NOISE = 2.0**45

# How many families are measured as one at most; and the most cells (pairs of them times their longest window squared)
# that a filter is searched over, which takes a few seconds. Three families may have windows of 500 steps.
_MOST, _MOST_CELLS = 8, 1_500_000
_DISTINCT = (Measure("at_least", 1),)
# By what part the error must fall for at least 1 to be measured apart.
_APART = 0.95


# --- Parts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One query that is measured by itself with a share of the budget, in groups or not.

    Of several families that are measured as one, `shares` are those of each.
    """

    query: Query
    share: float
    groups: Groups | None = None
    shares: tuple[float, ...] = ()


def parts_of(queries: Sequence[Query], shares: Sequence[float], grouping: Grouping | None) -> list[Part]:
    """The parts of a plan; those of totals take their share of each query's share."""
    if grouping is None:
        return [Part(query, share) for query, share in zip(queries, shares, strict=True)]
    levels = list(zip(grouping.levels, grouping.shares(), strict=True))
    return [
        Part(query, share * part, Groups(grouping, level))
        for query, share in zip(queries, shares, strict=True)
        for level, part in levels
    ]


def error_in(design: Design, groups: Groups | None) -> float:
    """The error of a design in counts, by its problem's criterion, where it is measured in all of these groups."""
    if groups is None:
        return score(design)
    growth = certify_groups(design, groups).bound / design.sensitivity
    return score(design) * (growth**0.5 if design.problem.law == GAUSSIAN else growth)


# --- Shares ----------------------------------------------------------------------------------------------------------

# The designs for a part of a plan under a noise law, where one count is about 2^bits lattice units.
Proposals = Callable[[Part, Law, int], Sequence[Design]]


def allot(budget: Budget, parts: Sequence[Part], proposals: Proposals) -> tuple[Allotment, ...]:
    """Shares a budget among parts, whose shares sum to 1: the noise law, designs and scales of least error within it.

    `proposals` gives the designs that can measure a part, and raises `InputError` where there are none. Allotments come
    in the order of the parts, all under one noise law.

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
        weighed = []
        for part in parts:
            own_bits = min(bits, _OCCURRENCE_BITS) if part.query.counts_occurrences else bits
            ranked = choice.ranked(proposals(part, law, own_bits), partial(error_in, groups=part.groups))
            others = [Alternative(design.strategy, error_in(design, part.groups)) for design in ranked]
            # Scales come from what is certified, so at first any will do.
            weighed.append((Measurement(ranked[0], ranked[0].problem.law, 1.0, part.groups), others))
        bounds, rows = zip(*((one.certificate.bound, one.cost.rows) for one, _ in weighed), strict=True)
        noise_scales = [
            one.design.shape.prescribed if isinstance(one.design.shape, PrescribedScale) else scale
            for (one, _), scale in zip(weighed, scales(budget, law, bounds, shares, rows), strict=True)
        ]
        if max(noise_scales) <= _WIDEST_SCALE or (bits == _FEWEST_BITS and max(noise_scales) <= _HIGHEST_SCALE):
            break
        if bits == _FEWEST_BITS:
            raise _too_small(budget)
        bits = max(_FEWEST_BITS, bits - math.ceil(math.log2(max(noise_scales) / _WIDEST_SCALE)))
    return tuple(
        Allotment(part.query, replace(one, scale=scale), part.share, best, tuple(others))
        for part, (one, (best, *others)), scale in zip(parts, weighed, noise_scales, strict=True)
    )


def _too_small(budget: Budget) -> InputError:
    return InputError(
        f"{budget} is too small for what is asked: the noise would be {_MOST_NOISE:.0e} counts or more; "
        "choose a larger budget or ask for less"
    )


def weights_of(queries: Sequence[Query], weights: Mapping[str, float] | Sequence[float] | None) -> list[float]:
    """The weight of each query, 1 where none is given.

    Raises:
        InputError: weights do not fit the window families asked for, or one is not finite and above 0.
    """
    texts = [query.name for query in queries]
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


# --- One threshold apart ----------------------------------------------------------------------------------------------


def part_by_threshold(part: Part, law: Law, criterion: Criterion, proposals: Proposals) -> list[Part]:
    """What a part asks as two, at least 1 and all else, where they err less for it; otherwise the part.

    Thresholds that are measured alike each cost what the others do, and at least 1 may have a strategy of its own that
    costs less (`gap-filter`). What errs by e of n thresholds at the whole share has a variance of `e^2 / s^p` at a part
    s of it, p = 1 under Gaussian noise and 2 under Laplace noise: the sum of n of these is least, or the larger of
    them, at the s taken here. Where at least 1 is not asked first, or exact counts are, the part stays whole.
    """
    measures = part.query.measures
    kinds = {measure.kind for measure in measures}
    if len(measures) < 2 or measures[0] != _DISTINCT[0] or kinds != {_DISTINCT[0].kind}:
        return [part]
    queries = [Query(part.query.window, one) for one in (measures[:1], measures[1:])]
    try:
        whole, *each = (
            min(error_in(one, part.groups) for one in proposals(replace(part, query=query), law, BITS))
            for query in (part.query, *queries)
        )
    except InputError:
        return [part]  # another law may have a design
    power, sizes = (1 if law == GAUSSIAN else 2), [len(query.measures) for query in queries]
    if criterion == "max":
        needs = [error ** (2 / power) for error in each]
    else:
        needs = [(size * error**2) ** (1 / (power + 1)) for size, error in zip(sizes, each, strict=True)]
    first = float(f"{needs[0] / sum(needs):.3g}")
    squares = [error**2 / share**power for error, share in zip(each, (first, 1 - first), strict=True)]
    mean = sum(size * square for size, square in zip(sizes, squares, strict=True)) / sum(sizes)
    if (max(squares) if criterion == "max" else mean) > (_APART * whole) ** 2:
        return [part]
    shares = part.share * first, part.share * (1 - first)
    return [replace(part, query=query, share=share) for query, share in zip(queries, shares, strict=True)]


# --- Several families as one -----------------------------------------------------------------------------------------


def choose_joint(parts: Sequence[Part], unit: Unit, steps: int | None) -> list[int]:
    """The places of the parts that can be measured as one: rolling counts of distinct items, without groups.

    Where that are too many, or windows too long for a filter to be searched, the longest are measured apart. Windows as
    long as the horizon `steps` (None if there is none) are cumulative.
    """
    if not (isinstance(unit, EventLevel) or unit == ItemPerPeriod(1)):
        return []
    lengths = {at: window.length for at, part in enumerate(parts) if (window := _rolling(part, steps)) is not None}
    while len(lengths) > _MOST or _cells(lengths.values()) > _MOST_CELLS:
        del lengths[max(lengths, key=lambda at: lengths[at])]
    return list(lengths) if len(lengths) > 1 else []


def _rolling(part: Part, steps: int | None) -> Rolling | None:
    """The windows of a part that can be measured with others; None where it cannot."""
    window = part.query.window
    if part.groups is not None or part.query.measures != _DISTINCT or not isinstance(window, Rolling):
        return None
    return window if steps is None or window.length < steps else None


def _cells(lengths: Collection[int]) -> int:
    count = len(lengths)
    return count * (count + 1) // 2 * max(lengths, default=0) ** 2


def join_parts(parts: Sequence[Part], places: Sequence[int]) -> list[Part]:
    """The parts with those at the places as one, which comes first."""
    lengths = [window.length for at in places if isinstance(window := parts[at].query.window, Rolling)]
    shares = tuple(parts[at].share for at in places)
    one = Part(Query(RollingTogether(tuple(lengths)), _DISTINCT), sum(shares), shares=shares)
    return [one, *(part for at, part in enumerate(parts) if at not in places)]


def split_joint(
    allotments: Sequence[Allotment], apart: Sequence[Allotment], places: Sequence[int]
) -> tuple[Allotment, ...]:
    """The allotments of joined parts, the joint one first, as one for each query.

    `apart` is what every query gets by itself, `places` are those of the queries that are measured as one.
    """
    one, others = allotments[0], iter(allotments[1:])
    split = []
    for at, before in enumerate(apart):
        if at not in places:
            split.append(next(others))
            continue
        mine = replace(one, query=before.query, share=before.share, series=places.index(at))
        criterion = one.measurement.design.problem.criterion
        error = score_of(mine.variance(_DISTINCT[0]), None, criterion)
        chosen = Alternative(one.measurement.design.strategy, error)
        split.append(replace(mine, chosen=chosen, others=(before.chosen, *before.others)))
    return tuple(split)


def choose_together(split: tuple[Allotment, ...], apart: tuple[Allotment, ...]) -> tuple[Allotment, ...]:
    """The allotments together where no query errs more for it, else those apart."""
    worse = any(
        choice.first_near_best([after.chosen.error, before.chosen.error])
        for after, before in zip(split, apart, strict=True)
    )
    return apart if worse else split
