"""Windows weighed by length: the error that is promised, in releases and in streams, and what is left to others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dpwindows as dw
from dpwindows import reading
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import candidates, nested_filter, stream_candidates, weighted_filter
from dpwindows.strategies.scoring import score
from tests.single_item import TableAnswers, random_square


def asked(longest: int | None, steps: int = 365, **more: object) -> Problem:
    return Problem(dw.AnyWindow(longest), steps, (1,), dw.EventLevel(), GAUSSIAN, 4.2247, **more)  # type: ignore[arg-type]


# Errors to reach, in counts at T = 365 and (1, 1e-6), and the part of what nested filters err by.
@pytest.mark.parametrize(
    ("longest", "criterion", "most", "part"),
    [
        (90, "rms", 29.3, 0.83),
        (28, "rms", 19.5, 0.82),
        (7, "rms", 11.2, 0.83),
        (90, "max", 31.5, 0.82),
    ],
)
def test_a_year_of_days_has_the_error_promised(longest: int, criterion: str, most: float, part: float) -> None:
    problem = asked(longest, criterion=criterion)
    best, nested = candidates(problem)[0], nested_filter.design(problem)
    assert best.strategy == weighted_filter.NAME
    assert nested is not None
    assert score(best) <= min(most, part * score(nested))


@pytest.mark.parametrize("horizon", [None, 120])
def test_a_stream_errs_as_a_release_does(horizon: int | None) -> None:
    problem = asked(14, 120)
    best, released = stream_candidates(problem, horizon)[0], candidates(problem)[0]
    assert best.strategy == released.strategy == weighted_filter.NAME
    assert score(best) == pytest.approx(score(released), rel=0.02)


def test_estimates_are_what_was_counted_and_noise_is_as_forecast() -> None:
    design = weighted_filter.design(asked(9, 20))
    assert design is not None
    square = random_square(np.random.default_rng(1), 20, 10**6)
    first, last = np.triu_indices(20)
    wanted = square[first, last][last - first < 9]
    assert reading.of(design).decode(design.encode(TableAnswers(square), 1).astype(np.float64)) == pytest.approx(
        wanted, abs=1e-4
    )
    decoder = np.array([reading.of(design).decode(unit) for unit in np.eye(design.rows)]).T
    assert reading.of(design).variance() == pytest.approx((decoder**2).sum(axis=1), rel=1e-9)
    assert reading.of(design).fourth_moment() == pytest.approx((decoder**4).sum(axis=1), rel=1e-9)
    combination = np.random.default_rng(2).normal(size=len(wanted))
    windows = [(a + 1, b + 1) for a, b in zip(first.tolist(), last.tolist(), strict=True) if b - a < 9]
    (weights,) = reading.of(design).noise_weights(dict(zip(windows, combination, strict=True))).values()
    assert weights == pytest.approx(combination @ decoder, abs=1e-9 * abs(decoder).max())


def test_other_units_laws_and_thresholds_are_left_to_others() -> None:
    for problem in (
        replace(asked(9, 20), unit=dw.ItemLevel()),
        replace(asked(9, 20), law=LAPLACE),
        replace(asked(9, 20), thresholds=(1, 2)),
        replace(asked(9, 20), thresholds=(2,)),
        replace(asked(9, 20), window=dw.Rolling(9)),
        asked(1, 20),
    ):
        assert weighted_filter.design(problem) is None
        assert not list(weighted_filter.stream(problem, 20))
