"""Filters with a common offset: bounds against every neighbour, against adversaries, and the figures they buy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpwindows import reading
from dpwindows.ask.privacy import ApproxDP, EventLevel, ItemAddRemove, ItemLevel, Unit
from dpwindows.ask.queries import Cumulative, Rolling, WindowFamily
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import Design
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import Case, certify
from dpwindows.strategies import candidates, offset_filter
from dpwindows.strategies.scoring import score
from dpwindows.strategies.search.noise_scales import unit_scale
from dpwindows.strategies.search.witnesses import searched, with_witness

ADD_REMOVE = ItemAddRemove()


def problem(
    window: WindowFamily, *thresholds: int, steps: int = 365, unit: Unit = ADD_REMOVE, bits: int = 24
) -> Problem:
    scale = unit_scale(ApproxDP(1.0, 1e-6), GAUSSIAN)
    return Problem(window, steps, thresholds or (1,), unit, GAUSSIAN, scale, bits=bits)


def designed(window: WindowFamily, *thresholds: int, steps: int = 365, bits: int = 24) -> Design:
    found = offset_filter.design(problem(window, *thresholds, steps=steps, bits=bits))
    assert found is not None
    return with_witness(found)


@pytest.mark.parametrize(("length", "std", "least"), [(1, 42.6, 42.46), (7, 37.5, 34.7), (28, 28.6, 25.6)])
def test_figures_and_the_limit_of_random_items(length: int, std: float, least: float) -> None:
    """No Gaussian noise errs less than the limit, from the covariance of the series of items drawn at random."""
    assert least <= score(designed(Rolling(length))) <= std


def test_the_planner_chooses_it() -> None:
    found = candidates(problem(Rolling(7), steps=60))
    assert found[0].strategy == "offset-filter"
    assert score(found[0]) < 0.9 * score(found[1])


def test_what_it_is_not_for() -> None:
    for unit in (EventLevel(), ItemLevel()):
        assert offset_filter.design(problem(Rolling(7), unit=unit)) is None
    assert offset_filter.design(problem(Cumulative())) is None
    assert offset_filter.design(problem(Rolling(7), steps=offset_filter.LONGEST + 1)) is None
    assert offset_filter.design(Problem(Rolling(7), 30, (1,), ADD_REMOVE, LAPLACE, 1.0)) is None


def test_another_horizon_or_unit_is_not_certified() -> None:
    measured = offset_filter.filtered(0.6, 0.75, 0.2, 6, 2.0**24)
    for unit, steps in ((EventLevel(), 6), *((ADD_REMOVE, other) for other in (5, 7, None))):
        with pytest.raises(NotCertifiedError):
            certify(Case(problem(Rolling(3), steps=6, unit=unit), measured, steps, searched))
    assert certify(Case(problem(Rolling(3), steps=6), measured, 6, searched))[1] == "rolling-chains-item"


def test_its_matrix_is_applied_exactly_and_undone() -> None:
    measured = offset_filter.filtered(0.6, 0.75, 0.2, 30, 2.0**24)
    matrix = np.array([np.pad(measured.row(t), (0, 30 - t)) for t in range(1, 31)])
    wide = replace(
        measured,
        weights=tuple(weight << 40 for weight in measured.weights),
        offsets=tuple(offset << 40 for offset in measured.offsets),
        shift=measured.shift + 40,
    )
    rng = np.random.default_rng(1)
    for largest in (2**38, 2**63 - 1):
        exact = rng.integers(-largest, largest, size=(30, 2), endpoint=True)
        for one in (measured, wide):
            assert (one.encode(exact).astype(object) == matrix.astype(object) @ exact.astype(object)).all()
    with pytest.raises(ValueError, match="for 30 positions"):
        measured.encode(exact[:29])
    reader = reading.series_reader(measured, 30)
    decoder = reader.decode(np.eye(30))
    assert np.allclose(decoder @ matrix, np.eye(30), atol=1e-9)
    assert np.allclose(reader.variance(), (decoder**2).sum(axis=1), rtol=1e-5)
    fourth = reader.fourth_moment()
    assert fourth is not None
    assert np.allclose(fourth, (decoder**4).sum(axis=1), rtol=1e-5)
    wanted = rng.normal(size=(30, 3))
    assert np.allclose(reader.transposed(wanted), decoder.T @ wanted)
