"""Windows measured with those inside them: decoding and errors against least squares written out, and real noise."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows import reading
from dpwindows.ask.privacy import ZCDP
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import count_windows, longest_window, window_steps
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.nested import lengths_exist
from dpwindows.kernel.measure import Measurement, measure
from dpwindows.reading.noise_moments import noise_variance
from tests.kernel.nested_designs import TAPS, asked_for, designs, nested, problem
from tests.kernel.truth import matrix_of
from tests.single_item import TableAnswers, random_square


def unknowns(design: Design) -> np.ndarray:
    """The matrix from the windows that a design measures to its numbers, in canonical order."""
    first, last = window_steps(AnyWindow(), design.problem.steps)
    return matrix_of(design).astype(float)[
        :, last - first < longest_window(design.problem.window, design.problem.steps)
    ]


@pytest.mark.quick(1)
@pytest.mark.parametrize("block", [3, 256])
def test_decoding_is_least_squares_over_the_windows_that_exist(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of starts that are read at a time."""
    monkeypatch.setattr("dpwindows.kernel.families.nested._AT_ONCE", block)
    for design in designs():
        matrix, reader = unknowns(design), reading.of(design)
        decoder = np.array([reader.decode(column) for column in np.eye(design.rows)]).T
        assert decoder == pytest.approx(np.linalg.pinv(matrix), abs=1e-9)
        covariance = np.linalg.inv(matrix.T @ matrix)
        assert reader.variance() == pytest.approx(np.diagonal(covariance), rel=1e-9)
        assert len(reader.variance()) == count_windows(design.problem.window, design.problem.steps)
        assert reader.fourth_moment() == pytest.approx((decoder**4).sum(axis=1), rel=1e-9)
        combination = np.random.default_rng(1).normal(size=design.rows)
        (weights,) = reader.noise_weights(dict(zip(asked_for(design), combination, strict=True))).values()
        # They come by start and length.
        exist = lengths_exist(weights.shape[1], design.problem.steps)
        assert not weights[~exist].any()
        assert weights[exist] == pytest.approx(decoder.T @ combination, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("counts", [9, 10**9])
def test_exact_numbers_are_decoded_to_what_was_counted(counts: int) -> None:
    square = random_square(np.random.default_rng(4), 40, counts)
    for longest in (None, 5):
        first, last = window_steps(AnyWindow(longest), 40)
        for weighed in (False, True):
            design = nested(problem(40, longest), TAPS[2], weighed=weighed)
            found = reading.of(design).decode(design.encode(TableAnswers(square), 1).astype(float))
            assert found == pytest.approx(square[first - 1, last - 1], abs=1e-9 * counts)


@pytest.mark.usefixtures("seeded_noise", "encoded_once")
@pytest.mark.parametrize("longest", [None, 3])
def test_errors_of_releases_are_as_forecast(longest: int | None) -> None:
    """400 releases: neither the mean nor the variance of any error is off by more than 6 standard errors."""
    asked, releases = problem(5, longest), 400
    square = random_square(np.random.default_rng(5), 5, 50)
    log = TableAnswers(square)
    first, last = window_steps(asked.window, 5)
    for weighed in (False, True):
        design = nested(asked, TAPS[2], weighed=weighed)
        reader = reading.of(design)
        measurement = Measurement(design, GAUSSIAN, 30.0 * design.sensitivity**0.5)
        drawn = np.array(
            [reader.decode(measure([measurement], ZCDP(1.0), log)[0][1].astype(float)) for _ in range(releases)]
        )
        errors = drawn - square[first - 1, last - 1]
        variance = reader.variance() * noise_variance(GAUSSIAN, measurement.scale)
        assert (abs(errors.mean(axis=0)) < 6 * np.sqrt(variance / releases)).all()
        ratios = (errors**2).mean(axis=0) / variance
        assert (abs(ratios - 1) < 6 * (2 / releases) ** 0.5).all()
