"""Windows measured with those inside them: decoding and errors against least squares written out, and real noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from dpwindows.kernel.untrusted.decoding import nested

from dpwindows.ask.privacy import ZCDP, EventLevel
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import count_windows, longest_window, window_steps
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design
from dpwindows.kernel.measure import Measurement, measure
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.nested import ExtendedDesign, Nested
from dpwindows.reading.noise_moments import noise_variance
from dpwindows.strategies.search.fractional import held_taps
from tests.kernel.bounds.test_sensitivity import matrix_of
from tests.single_item import TableAnswers, random_square

TAPS = [(5,), (7, -3, -2), held_taps(0.52, 1.0, 9, 13), held_taps(0.7, 0.8, 4, 10)]


def problem(steps: int, longest: int | None = None, thresholds: tuple[int, ...] = (1,)) -> Problem:
    return Problem(AnyWindow(longest), steps, thresholds, EventLevel(), GAUSSIAN, 1.0)


def designs() -> Iterator[NestedDesign | ExtendedDesign]:
    for taps in TAPS:
        for steps, longest in ((1, None), (2, None), (6, None), (7, 3), (7, 1), (5, 20)):
            yield Design(
                problem(steps, longest),
                Nested(longest_window(problem(steps, longest).window, problem(steps, longest).steps), taps),
                "test",
            )
            for beyond in (0, 1, 9):
                yield ExtendedDesign(problem(steps, longest), "test", taps=taps, beyond=beyond)


def unknowns(design: NestedDesign | ExtendedDesign) -> np.ndarray:
    """The matrix from the windows that a design measures to its numbers, in canonical order."""
    matrix = matrix_of(design).astype(float)
    if isinstance(design, NestedDesign):
        first, last = window_steps(AnyWindow(), design.problem.steps)
        matrix = matrix[:, last - first < design._longest]
    return matrix


def places(design: NestedDesign | ExtendedDesign) -> np.ndarray:
    """Which of these windows are asked for."""
    if isinstance(design, NestedDesign):
        return np.arange(design.rows)
    first, last = window_steps(AnyWindow(), design.problem.steps)
    return np.flatnonzero(last - first < longest_window(design.problem.window, design.problem.steps))


def test_every_number_is_a_weighted_sum_of_windows_inside() -> None:
    """By the definition, entry by entry, and no number is measured that is none."""
    for design in designs():
        steps, taps = design.problem.steps, design.taps
        beyond = design.beyond if isinstance(design, ExtendedDesign) else 0
        asked = list(zip(*(steps.tolist() for steps in window_steps(design.problem.window, steps)), strict=True))
        everywhere = [(steps - i, j + 1) for i in range(steps + beyond) for j in range(steps + beyond)]
        measured = asked if isinstance(design, NestedDesign) else [(a, b) for a, b in everywhere if a <= b]
        inside = list(zip(*(steps.tolist() for steps in window_steps(AnyWindow(), steps)), strict=True))

        def tap(lag: int, taps: tuple[int, ...] = taps) -> int:
            return taps[lag] if 0 <= lag < len(taps) else 0

        wanted = [[tap(a - first) * tap(last - b) for a, b in inside] for first, last in measured]
        assert np.array_equal(matrix_of(design), np.array(wanted))
        assert design.rows == len(measured)
        assert abs(np.array(wanted)).any(axis=1).all() or len(taps) < steps + beyond


@pytest.mark.quick(1)
@pytest.mark.parametrize("block", [3, 256])
def test_decoding_is_least_squares_over_the_windows_that_exist(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of the blocks that matrices are multiplied in."""
    monkeypatch.setattr(nested, "_BLOCK", block)
    for design in designs():
        matrix, asked = unknowns(design), places(design)
        decoder = np.array([design.decode(column) for column in np.eye(design.rows)]).T
        assert decoder == pytest.approx(np.linalg.pinv(matrix)[asked], abs=1e-9)
        covariance = np.linalg.inv(matrix.T @ matrix)[np.ix_(asked, asked)]
        assert design.variance() == pytest.approx(np.diagonal(covariance), rel=1e-9)
        assert len(design.variance()) == count_windows(design.problem.window, design.problem.steps)
        if (fourth := design.fourth_moment()) is not None:
            assert fourth == pytest.approx((decoder**4).sum(axis=1), rel=1e-9)
        combination = np.random.default_rng(1).normal(size=len(asked))
        assert design.noise_weights(combination) == pytest.approx(decoder.T @ combination, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("counts", [9, 10**9])
def test_exact_numbers_are_decoded_to_what_was_counted(counts: int) -> None:
    square = random_square(np.random.default_rng(4), 40, counts)
    for longest in (None, 5):
        first, last = window_steps(AnyWindow(longest), 40)
        for design in (
            Design(
                problem(40, longest),
                Nested(longest_window(problem(40, longest).window, problem(40, longest).steps), TAPS[2]),
                "test",
            ),
            ExtendedDesign(problem(40, longest), "test", taps=TAPS[2], beyond=3),
        ):
            found = design.decode(design.encode(TableAnswers(square), 1).astype(float))
            assert found == pytest.approx(square[first - 1, last - 1], abs=1e-9 * counts)


@pytest.mark.usefixtures("seeded_noise", "encoded_once")
@pytest.mark.parametrize("longest", [None, 3])
def test_errors_of_releases_are_as_forecast(longest: int | None) -> None:
    """400 releases: neither the mean nor the variance of any error is off by more than 6 standard errors."""
    asked, releases = problem(5, longest), 400
    square = random_square(np.random.default_rng(5), 5, 50)
    log = TableAnswers(square)
    first, last = window_steps(asked.window, 5)
    for design in (
        Design(asked, Nested(longest_window(asked.window, asked.steps), TAPS[2]), "test"),
        ExtendedDesign(asked, "test", taps=TAPS[2], beyond=2),
    ):
        measurement = Measurement(design, GAUSSIAN, 30.0 * design.sensitivity**0.5)
        drawn = np.array(
            [design.decode(measure([measurement], ZCDP(1.0), log)[0][1].astype(float)) for _ in range(releases)]
        )
        errors = drawn - square[first - 1, last - 1]
        variance = design.variance() * noise_variance(GAUSSIAN, measurement.scale)
        assert (abs(errors.mean(axis=0)) < 6 * np.sqrt(variance / releases)).all()
        ratios = (errors**2).mean(axis=0) / variance
        assert (abs(ratios - 1) < 6 * (2 / releases) ** 0.5).all()


def test_a_range_has_less_error_where_more_is_measured_beyond_it() -> None:
    taps = held_taps(0.53, 1.0, 12, 13)
    errors = [
        float(ExtendedDesign(problem(40), "", taps=taps, beyond=beyond).variance().mean()) for beyond in (0, 3, 11, 30)
    ]
    assert errors[0] == pytest.approx(
        Design(problem(40), Nested(longest_window(problem(40).window, problem(40).steps), taps), "").variance().mean(),
        rel=1e-9,
    )
    assert errors[0] > 1.1 * errors[1] > 1.1 * errors[2]
    # A filter has nothing more to say where its taps end.
    assert errors[2] == pytest.approx(errors[3], rel=1e-9)
