"""Half widths of intervals against the exact laws of the noise: for single numbers, for sums, and in whole plans."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.privacy import Unit
from dpwindows.ask.queries import Measure
from dpwindows.ask.windows import window_steps
from dpwindows.kernel.accounting import CUBE, GAUSSIAN, JOINT, LAPLACE, RANGE, Law
from dpwindows.plan.allotment import Allotment
from dpwindows.plan.intervals import half_width_factors
from dpwindows.reading.lattice_noise import Noise, Sums
from tests.plans import plan_of

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
SCALES = (0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3, 2.0, 2.7, 4.0, 6.0, 10.0)
ONE, EXACTLY = Measure("at_least", 1), Measure("exactly", 1)
Values = np.ndarray


# --- The laws, by their definitions -----------------------------------------------------------------------------------


def whole_numbers(scale: float, law: Law) -> Values:
    """Probabilities of -n, ..., n under an independent law."""
    reach = np.arange(-math.ceil(45 * scale) - 2, math.ceil(45 * scale) + 3)
    weights = np.exp(-abs(reach) / scale if law == LAPLACE else -((reach / scale) ** 2) / 2)
    return np.asarray(weights / weights.sum())


def radii(law: Law, scale: float, size: int) -> Values:
    """Probabilities of the radii 0, 1, ... of a joint law (`dpwindows.kernel.joint_noise`)."""
    radius = np.arange(math.ceil(scale * (size + 60 + 12 * math.sqrt(size))) + 60)
    logs = -radius / scale + (size * np.log(2 * radius + 1) if law == CUBE else (size + 1) * np.log(radius + 1))
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def added(one: Values, other: Values) -> Values:
    """Probabilities of a sum; both are of an odd number of values around 0."""
    return np.asarray(np.convolve(one, other))


def stretched(probabilities: Values, weight: int) -> Values:
    """The same of so many times a number."""
    found = np.zeros((len(probabilities) - 1) * weight + 1)
    found[::weight] = probabilities
    return found


def centred(several: list[tuple[float, Values]]) -> Values:
    """A mixture."""
    longest = max(len(one) for _, one in several)
    return np.asarray(np.sum([share * np.pad(one, (longest - len(one)) // 2) for share, one in several], axis=0))


def of_a_vector(law: Law, scale: float, size: int, weights: tuple[int, ...]) -> Values:
    """Probabilities of a sum of numbers of one vector, each with a whole weight."""
    parts = []
    for radius, share in enumerate(radii(law, scale, size)):
        if share < 1e-13:
            continue
        places = 2 * radius + 1 if law == CUBE else radius + 1
        found = np.ones(1)
        for weight in weights if law == CUBE else (*weights, sum(weights)):
            if weight:
                found = np.convolve(found, stretched(np.full(places, 1 / places), abs(weight)))
        # Of an even number of values those between whole ones are the middle: numbers are taken twice.
        parts.append((share, stretched(found, 2)))
    return centred(parts)


def inside(probabilities: Values, half: float) -> float:
    """P(|X| <= half) of these values around 0, one apart."""
    values = np.arange(len(probabilities)) - (len(probabilities) - 1) / 2
    return float(probabilities[abs(values) <= half].sum())


@cache
def probabilities(noise: Noise) -> Values:
    """Of one number."""
    if noise.law not in JOINT:
        return whole_numbers(noise.scale, noise.law)
    return of_a_vector(noise.law, noise.scale, noise.size, (1,))[::2]


def test_the_reference_is_a_law_with_the_stated_deviation() -> None:
    for noise in (Noise(LAPLACE, 1.5), Noise(GAUSSIAN, 2.5), Noise(CUBE, 1.5, 3), Noise(RANGE, 1.5, 4)):
        found = probabilities(noise)
        values = np.arange(len(found)) - len(found) // 2
        assert found.sum() == pytest.approx(1.0, rel=1e-11)
        assert math.sqrt(found @ values**2.0) == pytest.approx(noise.deviation, rel=1e-9)


# --- One number, and the difference of two ----------------------------------------------------------------------------


@cache
def direct(law: Law) -> Allotment:
    """Six weeks measured as they are, on whole numbers."""
    unit, strategy = {
        CUBE: (dw.ItemLevel(), "joint-noise"), RANGE: (dw.ItemAddRemove(), "joint-noise")
    }.get(law, (dw.EventLevel(), "direct"))  # fmt: skip
    plan = plan_of(dw.Tumbling(7).at_least(1).exactly(1), steps=42, unit=unit, budget=dw.PureDP(1.0), strategy=strategy)
    return plan.allotments[0]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN, CUBE, RANGE])
def test_whole_numbers_have_exact_quantiles(law: Law, scale: float) -> None:
    """By their probabilities: as often inside as is said, and one step less is not enough."""
    found = direct(law)
    allotment = replace(found, measurement=replace(found.measurement, law=law, scale=scale))
    one = probabilities(Noise(law, scale, found.measurement.design.rows if law in JOINT else 1))
    for measure, errors in ((ONE, one), (EXACTLY, added(one, one))):
        for confidence in CONFIDENCES:
            (half,) = set(allotment.half_widths(measure, confidence).tolist())
            assert half == round(half)
            assert inside(errors, half) >= confidence
            assert inside(errors, half - 1) < confidence


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5, 3.0])
def test_months_of_a_release_by_event(epsilon: float) -> None:
    """The plan of the report: intervals that held for 93.8, 92.7, 84.8 and 90.5 % of all noise."""
    plan = dw.Plan(
        [dw.Tumbling("month")],
        timeline=dw.Timeline("2013-01-01", "2014-01-01", step="1d"),
        unit=dw.EventLevel(),
        budget=dw.PureDP(epsilon),
        strategy="direct",
    )
    (allotment,) = plan.allotments
    (half,) = set(allotment.half_widths(ONE, 0.95).tolist())
    assert inside(whole_numbers(allotment.measurement.scale, LAPLACE), half) >= 0.95
    assert inside(whole_numbers(allotment.measurement.scale, LAPLACE), half - 1) < 0.95


# --- Sums of numbers that weigh different amounts ---------------------------------------------------------------------

WEIGHTS = (
    (1, 1),
    (2, 1),
    (5, 4),
    (9, 1),
    (3, 2, 2),
    (7, 5, 3, 2, 1),
    (10, *[1] * 30),
    (10, 9, 8, *[1] * 10),
    (6, 6, 6, 1, 1, 1),
    tuple(range(1, 16)),
    (1,) * 40,
)


@pytest.mark.quick(4)
@pytest.mark.search(13)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN])
def test_sums_by_their_moments(law: Law, scale: float) -> None:
    """Few large weights and many small ones: exact convolutions."""
    noise = Noise(law, scale)
    for weights in WEIGHTS:
        errors = np.ones(1)
        for weight in weights:
            errors = added(errors, stretched(probabilities(noise), weight))
        squares = np.array(weights) ** 2.0
        kurtosis = np.array([3 * (squares**2).sum() / squares.sum() ** 2])
        for confidence in CONFIDENCES:
            std_error = math.sqrt(squares.sum()) * noise.deviation
            for known in (kurtosis, None):
                half = float(half_width_factors(Sums.of(noise, known), confidence)[0]) * std_error
                assert inside(errors, half) >= confidence - 0.001, (weights, confidence)
            half = float(half_width_factors(Sums.of(noise, kurtosis), confidence)[0]) * std_error
            # By steps of less than a fortieth of a standard deviation, and by few of them, nothing is wide.
            if confidence == 0.95 and noise.deviation >= (2.8 if law == LAPLACE else 8) and errors.max() < 0.02:
                assert inside(errors, half) <= 0.975, weights


@pytest.mark.quick(5)
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.7, 6.0])
@pytest.mark.parametrize(("law", "size"), [(CUBE, 3), (CUBE, 12), (RANGE, 3), (RANGE, 12)])
def test_sums_of_one_vector(law: Law, size: int, scale: float) -> None:
    """Numbers that share a radius, by their probabilities given each; and one of another vector beside one."""
    noise = Noise(law, scale, size)
    for weights in ((1, -1, 0), (1, 1, 1), (2, -1, 0), (3, 1, 1), (5, -4, -1)):
        errors = of_a_vector(law, scale, size, weights)
        values = (np.arange(len(errors)) - (len(errors) - 1) / 2) / 2
        std_error = math.sqrt(errors @ values**2)
        for confidence in CONFIDENCES:
            half = float(half_width_factors(Sums.of(noise), confidence)[0]) * std_error
            assert inside(errors, 2 * half) >= confidence - 0.001, (weights, confidence)
    one = probabilities(noise)
    for weight in (1, 2, 5):
        errors = added(one, stretched(one, weight))
        for confidence in CONFIDENCES:
            half = float(half_width_factors(Sums.of(noise), confidence)[0]) * noise.deviation * math.hypot(1, weight)
            assert inside(errors, half) >= confidence - 0.001, (weight, confidence)


def test_sums_of_several_kinds() -> None:
    pairs = [
        (Noise(LAPLACE, 0.8), Noise(LAPLACE, 3.0)),
        (Noise(GAUSSIAN, 0.9), Noise(CUBE, 2.0, 4)),
        (Noise(LAPLACE, 2.0), Noise(GAUSSIAN, 3.0)),
        (Noise(RANGE, 1.0, 6), Noise(LAPLACE, 6.0)),
    ]
    for kinds in pairs:
        for weights in ((1, 1), (3, 1), (1, 3)):
            errors = added(*(stretched(probabilities(one), by) for one, by in zip(kinds, weights, strict=True)))
            parts = np.array([one.deviation * by for one, by in zip(kinds, weights, strict=True)])
            std_error = float(np.linalg.norm(parts))
            smoothed, added_ = (
                np.array([np.linalg.norm(parts * [getattr(one, name) for one in kinds]) / std_error])
                for name in ("smoothed", "added")
            )
            sums = Sums(kinds, smoothed, added_, None)
            for confidence in CONFIDENCES:
                half = float(half_width_factors(sums, confidence)[0]) * std_error
                assert inside(errors, half) >= confidence - 0.001, (kinds, weights, confidence)


# --- Continuous noise -------------------------------------------------------------------------------------------------

FINE = Noise(LAPLACE, 2.0**40)


def factor(kurtosis: float, confidence: float) -> float:
    return float(half_width_factors(Sums.of(FINE, np.array([kurtosis])), confidence)[0])


_POINTS = (np.arange(8000) + 0.5) * 0.005


def laplace_coverage(x: float, shares: dict[float, int]) -> float:
    """P(|Z| <= x) of Laplace variables with these shares of variance 1, each so often, and a Gaussian with the rest.

    By its characteristic function: the integral of `2/pi sin(t x)/t` times it over t > 0, to t = 40 (what is beyond
    is below 3e-5: one variable alone has `2 / t^2`, and the sine changes its sign).
    """
    rest = 1 - sum(share * count for share, count in shares.items())
    logs = -rest * _POINTS**2 / 2 - sum(count * np.log1p(share * _POINTS**2 / 2) for share, count in shares.items())
    return float(2 / np.pi * (np.sin(_POINTS * x) / _POINTS * np.exp(logs)).sum() * 0.005)


def shares_of(kurtosis: float) -> Iterator[dict[float, int]]:
    """Weights of one size or two, some with a Gaussian, whose sum has this kurtosis."""
    for first in (1, 2, 3, 5, 10, 50):
        if kurtosis * first <= 3:
            yield {math.sqrt(kurtosis / 3 / first): first}
        for second in (1, 2, 3, 5, 10, 30):
            # first a + second b = 1 and first a^2 + second b^2 = kurtosis / 3.
            roots = np.roots([second**2 / first + second, -2 * second / first, 1 / first - kurtosis / 3])
            for b in roots[np.isreal(roots)].real:
                a = (1 - second * b) / first
                if min(a, b) >= 0 and a != b:
                    yield {a: first, b: second}


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_no_other_weights_have_a_wider_quantile(confidence: float) -> None:
    """The search that the module's bound of 0.06 points is from."""
    for kurtosis in (0.02, 0.1, 0.3, 0.7, 1.0, 1.4, 1.9, 2.4, 2.9):
        half = factor(kurtosis, confidence)
        found = [laplace_coverage(half, shares) for shares in shares_of(kurtosis) if sum(shares.values()) > 0]
        assert len(found) > 3
        assert min(found) >= confidence - 6e-4
        assert min(found) <= confidence + 2e-3


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_one_laplace_and_the_gaussian_are_exact(confidence: float) -> None:
    assert factor(0.0, confidence) == pytest.approx(float(special.ndtri((1 + confidence) / 2)), rel=1e-11)
    # A Laplace variable of scale b has variance 2 b^2 and |Z| exponential.
    assert factor(3.0, confidence) == pytest.approx(-np.log(1 - confidence) / np.sqrt(2), rel=1e-11)


def tail_given_variance(law: Any, x: float) -> float:
    """P(|Z| > x) of Z that is Gaussian given its variance, by adaptive quadrature over the variance's law."""
    return float(law.expect(lambda v: special.erfc(x / np.sqrt(2 * v)), epsrel=1e-7, epsabs=0, limit=500))


@pytest.mark.parametrize("beyond", [0.3, 1e-3, 1e-6, 1e-9])
def test_the_wider_of_two_laws_as_far_out_as_is_asked(beyond: float) -> None:
    for share in (1 / 24, 5 / 24, 1 / 2, 23 / 24):
        x = factor(3 * share**2, 1 - beyond)
        equal, beside = stats.gamma(share**-2, scale=share**2), stats.expon(1 - share, share)
        widest = max(tail_given_variance(equal, x), tail_given_variance(beside, x))
        assert widest == pytest.approx(beyond, rel=1e-5)


def test_wider_for_more_confidence() -> None:
    for noise in (FINE, Noise(LAPLACE, 1.0), Noise(GAUSSIAN, 0.5), Noise(GAUSSIAN, 4.0), Noise(RANGE, 0.4, 9)):
        for kurtosis in (0.0, 0.1, 0.7, 1.5, 2.9, 3.0, None):
            known = None if kurtosis is None else np.array([kurtosis])
            found = [float(half_width_factors(Sums.of(noise, known), confidence)[0]) for confidence in CONFIDENCES]
            assert all(np.diff(found) > 0)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_an_unknown_kurtosis_has_the_widest_quantile(confidence: float) -> None:
    known = half_width_factors(Sums.of(FINE, np.linspace(0, 3, 61)), confidence)
    (found,) = half_width_factors(Sums.of(FINE), confidence)
    assert known.max() <= found <= known.max() * (1 + 1e-3)


# --- Whole plans ------------------------------------------------------------------------------------------------------

DRAWS = 20_000
STEPS = 20
EVENT, ITEM, ADD_REMOVE = dw.EventLevel(), dw.ItemLevel(), dw.ItemAddRemove()
PLANS: list[Any] = [
    (dw.Tumbling(4), EVENT, "direct"),
    (dw.Tumbling(4), ITEM, "auto"),
    (dw.Tumbling(4), ADD_REMOVE, "auto"),
    (dw.ToDate(6), EVENT, "auto"),
    (dw.Cumulative(), EVENT, "auto"),
    (dw.Cumulative(), EVENT, "paper"),
    (dw.Cumulative(), ADD_REMOVE, "direct"),
    (dw.Rolling(5), EVENT, "auto"),
    (dw.Rolling(5), EVENT, "paper"),
    (dw.Rolling(5), ITEM, "auto"),
    (dw.Rolling(1), ADD_REMOVE, "joint-noise"),
    (dw.AnyWindow(4), EVENT, "direct"),
    (dw.AnyWindow(), EVENT, "auto"),
    # Planned anew for each budget, which takes long.
    pytest.param(dw.AnyWindow(), EVENT, "paper", marks=pytest.mark.search(1)),
]


def draws_of(noise: Noise, count: int, rng: np.random.Generator) -> Values:
    """One vector for each draw, by NumPy: shape (DRAWS, count)."""
    if noise.law == LAPLACE:
        chance = -math.expm1(-1 / noise.scale)
        return np.asarray(rng.geometric(chance, (DRAWS, count)) - rng.geometric(chance, (DRAWS, count)))
    if noise.law == GAUSSIAN:
        return np.rint(rng.normal(0, noise.scale, (DRAWS, count)))
    law = radii(noise.law, noise.scale, noise.size)
    radius = rng.choice(len(law), p=law, size=(DRAWS, 1))
    if noise.law == CUBE:
        return np.asarray(rng.integers(-radius, radius, (DRAWS, count), endpoint=True))
    shared = rng.integers(0, radius, (DRAWS, 1), endpoint=True)
    return np.asarray(rng.integers(0, radius, (DRAWS, count), endpoint=True) - shared)


@pytest.mark.quick(5)
@pytest.mark.parametrize("epsilon", [0.6, 1.7, 4.0, 9.0])
@pytest.mark.parametrize(("window", "unit", "strategy"), PLANS, ids=str)
def test_plans_cover_as_often_as_they_say(window: Any, unit: Unit, strategy: str, epsilon: float) -> None:
    """20,000 draws for some windows of each plan. A share of them is off by 0.9 points with probability below 1e-8."""
    budget = dw.PureDP(epsilon)
    plan = plan_of(window.at_least(1).exactly(1), steps=STEPS, unit=unit, budget=budget, strategy=strategy)
    (allotment,) = plan.allotments
    made, rng = allotment.measurement, np.random.default_rng(3)
    noise = Noise(made.law, made.scale, made.design.rows if made.law in JOINT else 1)
    first, last = window_steps(window, STEPS)
    for measure in (ONE, EXACTLY):
        halves = allotment.half_widths(measure, 0.95)
        for place in np.unique(np.linspace(0, len(halves) - 1, 5).astype(int)):
            errors = np.zeros(DRAWS)
            for k in measure.thresholds:
                found = reading.of(made.design.at(k)).noise_weights({(int(first[place]), int(last[place])): 1.0})
                weights = np.concatenate([part.ravel() for part in found.values()])
                weights = weights[weights != 0.0]
                errors += draws_of(noise, len(weights), rng) @ weights
            covered = float((abs(errors) <= halves[place] + 1e-9).mean())
            assert covered >= 0.95 - 0.001 - 0.009, (measure, place)
            nearby = float((abs(abs(errors) - halves[place]) <= 1e-6).mean())
            if nearby < 0.005 and noise.deviation >= 2.8:
                assert covered <= 0.975 + 0.009, (measure, place)
