"""Half widths of intervals against the exact laws of the noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, optimize, special

from dpwindows.plan.intervals import half_width_factors

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)


def factor(kurtosis: float, confidence: float) -> float:
    return float(half_width_factors(np.array([kurtosis]), confidence, 1)[0])


def laplace_sum_coverage(x: float, terms: int) -> float:
    """P(|Z| <= x) for Z a sum of equal Laplace variables with unit variance, by its characteristic function.

    `1 / (1 + t^2 / (2m))^m`; the probability is the integral of `2/pi sin(t x)/t` times it over t > 0.
    """
    decay = 1 / (2 * terms)
    points = np.linspace(0, 400, 400_001)[1:]  # beyond it the integrand is below 1e-12
    values = np.sin(points * x) / points / (1 + decay * points**2) ** terms
    return float(2 / np.pi * integrate.simpson(np.concatenate([[x], values]), dx=points[0]))


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_one_laplace_and_the_gaussian_are_exact(confidence: float) -> None:
    assert factor(0.0, confidence) == pytest.approx(float(special.ndtri((1 + confidence) / 2)), rel=1e-12)
    # A Laplace variable of scale b has variance 2 b^2 and |Z| exponential.
    assert factor(3.0, confidence) == pytest.approx(-np.log(1 - confidence) / np.sqrt(2), rel=1e-12)


@pytest.mark.quick(8)
@pytest.mark.parametrize("terms", [2, 3, 4, 6, 12])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_sums_of_equal_laplace_variables(terms: int, confidence: float) -> None:
    reference = optimize.brentq(lambda x: laplace_sum_coverage(x, terms) - confidence, 0.1, 6.0, xtol=1e-6)
    # Exact where the kurtosis 3/m is on the grid of quarters, interpolated between.
    assert factor(3.0 / terms, confidence) == pytest.approx(reference, rel=2e-4 if 12 % terms == 0 else 2e-3)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_coverage_of_unequal_sums(confidence: float) -> None:
    """Simulated: 400,000 draws; five deviations of the observed coverage and half a percent of modelling error."""
    rng = np.random.default_rng(1)
    for weights in ([1.0, 0.5], [1.0, 0.3, 0.3, 0.1], [1.0] * 3 + [0.2] * 10, list(0.8 ** np.arange(20))):
        c = np.array(weights)
        kurtosis = 3 * (c**4).sum() / (c**2).sum() ** 2
        draws = rng.laplace(scale=1 / np.sqrt(2), size=(400_000, len(c))) @ c / np.sqrt((c**2).sum())
        covered = float((abs(draws) <= factor(float(kurtosis), confidence)).mean())
        assert abs(covered - confidence) < 5 * np.sqrt(confidence * (1 - confidence) / 400_000) + 0.005


def test_wider_for_more_confidence() -> None:
    for kurtosis in (0.0, 0.1, 0.7, 1.5, 2.9, 3.0):
        found = [factor(kurtosis, confidence) for confidence in CONFIDENCES]
        assert all(np.diff(found) > 0)


def test_smooth_in_the_kurtosis_and_wider_in_the_tails() -> None:
    kurtosis = np.linspace(0, 3, 61)
    for confidence in (0.99, 0.999):
        found = half_width_factors(kurtosis, confidence, 61)
        assert (np.diff(found) > 0).all()
        assert np.diff(found).max() < 0.1
    # In the middle of the law heavy tails mean a narrower body.
    assert factor(3.0, 0.5) < factor(0.0, 0.5)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_unknown_kurtosis_takes_the_wider_extreme(confidence: float) -> None:
    found = half_width_factors(None, confidence, 3)
    assert len(found) == 3
    assert (found == max(factor(0.0, confidence), factor(3.0, confidence))).all()


def test_kurtosis_is_held_within_its_range() -> None:
    inside = half_width_factors(np.array([0.0, 3.0]), 0.95, 2)
    outside = half_width_factors(np.array([-1e-9, 3.0 + 1e-9]), 0.95, 2)
    assert np.allclose(inside, outside)
    assert half_width_factors(np.zeros(4), 0.95, 4) == pytest.approx([factor(0.0, 0.95)] * 4)
