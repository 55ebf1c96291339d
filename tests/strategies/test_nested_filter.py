"""Windows measured with those inside: the error that is promised, in releases and in streams, and who serves others."""

from __future__ import annotations

from dataclasses import replace

import pytest

import dpwindows as dw
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import candidates, nested_filter, stream_candidates
from dpwindows.strategies.scoring import score


def asked(longest: int | None, steps: int = 365, **more: object) -> Problem:
    return Problem(dw.AnyWindow(longest), steps, (1,), dw.EventLevel(), GAUSSIAN, 4.2247, **more)  # type: ignore[arg-type]


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


def test_other_units_laws_and_windows_are_left_to_others() -> None:
    for problem in (
        replace(asked(9, 20), unit=dw.ItemLevel()),
        replace(asked(9, 20), law=LAPLACE),
        replace(asked(9, 20), window=dw.Rolling(9)),
    ):
        assert nested_filter.design(problem) is None
        assert not list(nested_filter.stream(problem, 20))
