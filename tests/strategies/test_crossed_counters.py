"""Crossed counters: exact integers in, unbiased estimates out, with the error that was forecast."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.privacy import Unit
from dpwindows.kernel.accounting import GAUSSIAN, Law
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.crossed import Crossed, CrossedFilters
from dpwindows.kernel.problem import Problem
from dpwindows.reading import crossed as crossed_filters
from dpwindows.reading.crossed import CrossedReader
from dpwindows.strategies import counters, crossed_counters
from dpwindows.strategies.scoring import score
from dpwindows.strategies.search.fractional import integer_taps
from tests.single_item import TableAnswers

GENERATOR = np.random.default_rng(7)


def explicit(found: CrossedFilters) -> NDArray[np.float64]:
    """The integer matrix, column by column."""
    starts, ends = found.shape
    units = np.eye(starts * ends, dtype=np.int64).reshape(-1, starts, ends)
    return np.array([found.encode(unit) for unit in units], dtype=np.float64).T


@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (6, 6), (5, 9), (11, 11)])
@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("pinned", [False, True])
def test_decoding_is_least_squares_and_the_variance_that_of_the_decoder(
    shape: tuple[int, int], alike: bool, pinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For blocks that look alike read backwards and for others; with and without the empty windows known to be 0."""
    starts, ends = shape
    if not pinned:
        monkeypatch.setattr(crossed_filters, "_PINNED", -1)
    weights = GENERATOR.integers(3, 40, size=starts + ends).tolist()
    end_weights = tuple(weights[starts:])
    start_weights = end_weights[::-1][:starts] if alike else tuple(weights[:starts])
    found = CrossedFilters(integer_taps(0.75, 0.99, ends, 12), start_weights, end_weights)
    # Least squares in which the unknowns a = b + 1 are 0 is least squares without them.
    unknown = np.eye(starts, ends, k=-1).ravel() == 0 if pinned else np.ones(starts * ends, dtype=np.bool_)
    decoder = np.array([CrossedReader(found).decode(unit).ravel() for unit in np.eye(found.rows)]).T
    expected = np.zeros_like(decoder)
    expected[unknown] = np.linalg.pinv(explicit(found)[:, unknown])
    assert decoder == pytest.approx(expected, abs=1e-8 * abs(decoder).max())
    check_moments(found, decoder)
    for longest in {1, max(1, ends // 3)}:
        bounded = CrossedFilters(found.taps, start_weights, end_weights, longest)
        spans = np.arange(ends)[None, :] - np.arange(starts)[:, None]
        asked = (spans >= 0) & (spans < longest)
        assert CrossedReader(bounded).variance()[asked] == pytest.approx(
            CrossedReader(found).variance()[asked], rel=1e-9
        )
        assert not CrossedReader(bounded).variance()[~asked].any()


def check_moments(found: CrossedFilters, decoder: NDArray[np.float64]) -> None:
    asked = np.triu(np.ones(found.shape, dtype=np.bool_))
    moment = CrossedReader(found).fourth_moment()
    assert moment is not None
    assert CrossedReader(found).variance()[asked] == pytest.approx((decoder**2).sum(axis=1)[asked.ravel()], rel=1e-9)
    assert moment[asked] == pytest.approx((decoder**4).sum(axis=1)[asked.ravel()], rel=1e-9)


@pytest.mark.slow
def test_a_long_block_has_the_variance_of_its_decoder() -> None:
    # Rows of the decoder by its transpose's definition: the variance of a window is the decoder applied both ways.
    size = 150
    weights = tuple(max(1, round(256 * (n / size) ** 0.5)) for n in range(1, size + 1))
    found = CrossedFilters(integer_taps(0.75, 0.9999, size, 16), weights[::-1], weights)
    reader = CrossedReader(found)
    noise = np.random.default_rng(3).normal(size=(400, found.rows))
    spread = np.mean([np.triu(reader.decode(draw)) ** 2 for draw in noise], axis=0)
    asked = np.triu(np.ones((size, size), dtype=np.bool_))
    ratio = spread[asked] / reader.variance()[asked]
    assert abs(ratio.mean() - 1) < 0.03
    assert ratio.std() < 1.3 * (2 / 400) ** 0.5


def test_counts_beyond_64_bits_are_encoded_exactly() -> None:
    found = CrossedFilters((1 << 16, -(1 << 15), -9), (200, 256), (256, 100, 7))
    exact = np.array([[1 << 45, -(1 << 44), 3], [5, 1 << 46, 7]])
    encoded = [int(value) for value in found.encode(exact)]
    taps, rows = found.taps, [[int(value) for value in row] for row in exact]
    along_ends = [
        found.start_weights[a] * sum(taps[j] * rows[a][b - j] for j in range(b + 1)) for a in range(2) for b in range(3)
    ]
    along_starts = [
        found.end_weights[b] * sum(taps[j] * rows[1 - a + j][b] for j in range(a + 1))
        for a in range(2)
        for b in range(3)
    ]
    assert encoded == along_ends + along_starts
    assert max(map(abs, encoded)) > 1 << 63


def asked(steps: int, unit: Unit, law: Law, longest: int | None = None, **more: object) -> Problem:
    noise = 4.2247 if law == GAUSSIAN else 1.0
    return Problem(dw.AnyWindow(longest), steps, (1,), unit, law, noise, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [3, 7, 20])
@pytest.mark.parametrize("longest", [1, 4, None])
def test_blocks_of_starts_give_every_window_back(width: int, longest: int | None) -> None:
    problem = asked(20, dw.ItemAddRemove(), GAUSSIAN, longest)
    taps = integer_taps(0.75, 0.999, 20, 16)
    weights = tuple(range(30, 30 + width + (longest or 20)))
    found = Design(problem, Crossed(width, taps, weights), "crossed-counters")

    square = np.triu(GENERATOR.integers(0, 1000, size=(20, 20)))
    measured = found.encode(TableAnswers(square), 1)
    assert measured.shape == (found.rows,)
    reach = longest or 20
    expected = [square[a, b] for a in range(20) for b in range(a, min(20, a + reach))]
    assert reading.of(found).decode(measured.astype(np.float64)) == pytest.approx(expected, abs=1e-6)
    assert len(reading.of(found).variance()) == len(expected)


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("steps", "longest"),
    [(600, 30), *(pytest.param(*more, marks=pytest.mark.search(0)) for more in ((2000, 90), (6000, 300)))],
)
def test_long_horizons_are_cut_into_blocks_at_little_cost(steps: int, longest: int) -> None:
    found = crossed_counters.design(asked(steps, dw.ItemAddRemove(), GAUSSIAN, longest))
    assert found is not None
    assert found.parameters["width"] < steps
    assert score(found) < 4.2247 * 1.35 * steps**0.5


@pytest.mark.slow
def test_counters_for_starts_alone_err_more_than_twice_as_much() -> None:
    problem = asked(365, dw.ItemAddRemove(), GAUSSIAN)
    alone, crossed = counters.design(problem), crossed_counters.design(problem)
    assert alone is not None
    assert crossed is not None
    assert score(alone) > 2 * score(crossed)
