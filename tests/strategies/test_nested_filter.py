"""Windows measured with those inside: the error that is promised, in releases and in streams, and who serves others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dpwindows as dw
from dpwindows import reading
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import candidates, nested_filter, stream_candidates
from dpwindows.strategies.scoring import score
from tests.single_item import TableAnswers, random_square


def asked(longest: int | None, steps: int = 365, **more: object) -> Problem:
    return Problem(dw.AnyWindow(longest), steps, (1,), dw.EventLevel(), GAUSSIAN, 4.2247, **more)  # type: ignore[arg-type]


# Errors to reach, in counts at T = 365 and (1, 1e-6).
@pytest.mark.parametrize(
    ("longest", "criterion", "most"), [(90, "rms", 29.3), (28, "rms", 19.5), (7, "rms", 11.2), (90, "max", 31.5)]
)
def test_a_year_of_days_has_the_error_promised(longest: int, criterion: str, most: float) -> None:
    best = candidates(asked(longest, criterion=criterion))[0]
    assert best.strategy == nested_filter.NAME
    assert score(best) <= most


def test_weights_by_length_save_more_than_a_seventh() -> None:
    """For at least 1; the filter for other thresholds has none."""
    for longest in (7, 28):
        problem = asked(longest, 120)
        weighed, plain = nested_filter.design(problem), nested_filter.design(replace(problem, thresholds=(2,)))
        assert weighed is not None
        assert plain is not None
        assert isinstance(weighed.shape, Nested)
        assert isinstance(plain.shape, Nested)
        assert weighed.shape.weights
        assert not plain.shape.weights
        alike = replace(plain, problem=problem)
        assert score(weighed) <= 0.87 * score(alike)


@pytest.mark.parametrize("horizon", [None, 120])
def test_a_stream_errs_as_a_release_does(horizon: int | None) -> None:
    problem = asked(14, 120)
    best, released = stream_candidates(problem, horizon)[0], candidates(problem)[0]
    assert best.strategy == released.strategy == nested_filter.NAME
    assert score(best) == pytest.approx(score(released), rel=0.02)


def test_estimates_are_what_was_counted_and_noise_is_as_forecast() -> None:
    design = nested_filter.design(asked(9, 20))
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


def test_other_units_laws_and_windows_are_left_to_others() -> None:
    for problem in (
        replace(asked(9, 20), unit=dw.ItemLevel()),
        replace(asked(9, 20), law=LAPLACE),
        replace(asked(9, 20), window=dw.Rolling(9)),
    ):
        assert nested_filter.design(problem) is None
        assert not list(nested_filter.stream(problem, 20))
