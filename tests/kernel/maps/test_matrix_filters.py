"""Filters that mix series, against the whole matrix that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.kernel.maps.matrix_filters import MatrixFilter
from dpwindows.reading.designs import transposed_mixed

STEPS = 9


def drawn(lanes: int, memory: int, scale: int = 1) -> MatrixFilter:
    taps = np.random.default_rng([lanes, memory]).integers(-3, 4, (memory + 1, lanes, lanes))
    taps[0] += 9 * np.eye(lanes, dtype=np.int64)
    return MatrixFilter(lanes, tuple(scale * tap for tap in taps.ravel().tolist()))


def whole(mixed: MatrixFilter) -> np.ndarray:
    """The matrix on all steps, one step after another, as Python's integers."""
    lanes = mixed.lanes
    matrix = np.zeros((STEPS * lanes, STEPS * lanes), dtype=object)
    for t in range(STEPS):
        for back in range(min(t, mixed.memory) + 1):
            place = t - back
            matrix[t * lanes : (t + 1) * lanes, place * lanes : (place + 1) * lanes] = mixed.matrices[back].astype(
                object
            )
    return matrix


def run(mixed: MatrixFilter, series: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Step by step, as a stream does: the integers measured, and what is decoded from them with noise."""
    memory, measured, decoded = mixed.fresh(), [], []
    for exact, added in zip(series, noise, strict=True):
        measured.append(mixed.encode(exact, memory))
        estimate, kept = mixed.decode(measured[-1].astype(np.float64) + added, memory)
        memory = mixed.remember(exact, memory) | kept
        decoded.append(estimate)
    return np.array(measured), np.array(decoded)


@pytest.mark.parametrize(("lanes", "memory"), [(1, 3), (2, 0), (2, 4), (3, 20)])
def test_it_measures_and_decodes_as_the_whole_matrix_does(lanes: int, memory: int) -> None:
    mixed, rng = drawn(lanes, memory), np.random.default_rng(0)
    matrix = whole(mixed)
    series, noise = rng.integers(0, 1000, (STEPS, lanes)), rng.normal(size=(STEPS, lanes))
    measured, decoded = run(mixed, series, noise)
    np.testing.assert_array_equal(measured.ravel(), matrix @ series.ravel())
    inverse = np.linalg.inv(matrix.astype(np.float64))
    np.testing.assert_allclose(decoded.ravel(), series.ravel() + inverse @ noise.ravel(), rtol=1e-9)
    for power, found in ((2, mixed.variance(STEPS)), (4, mixed.fourth_moment(STEPS))):
        np.testing.assert_allclose(found.ravel(), (inverse**power).sum(axis=1), rtol=1e-9)
    weights = rng.normal(size=(STEPS, lanes))
    np.testing.assert_allclose(
        transposed_mixed(mixed, weights).ravel(), inverse.T @ weights.ravel(), rtol=1e-8, atol=1e-12
    )


def test_moments_settle_and_stay() -> None:
    mixed = drawn(2, 3)
    long = mixed.variance(1 << 16)
    assert long.shape == (1 << 16, 2)
    np.testing.assert_allclose(long[-1], mixed.variance(4096)[-1], rtol=1e-12)


def test_counts_and_weights_beyond_64_bits_do_not_wrap() -> None:
    mixed = drawn(2, 2, 1 << 40)
    series = np.full((STEPS, 2), 1 << 40, dtype=np.int64)
    measured, _ = run(mixed, series, np.zeros((STEPS, 2)))
    np.testing.assert_array_equal(measured.ravel(), whole(mixed) @ series.astype(object).ravel())
    assert max(map(abs, measured.ravel().tolist())) > 1 << 63
