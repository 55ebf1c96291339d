"""Filters that mix series, against the whole matrix that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.kernel.families.together import MatrixFilter

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


def run(mixed: MatrixFilter, series: np.ndarray) -> np.ndarray:
    """Step by step, as a stream does: the integers measured."""
    memory, measured = mixed.fresh(), []
    for exact in series:
        measured.append(mixed.encode_step(exact, memory))
        memory = mixed.remember(exact, memory)
    return np.array(measured)


@pytest.mark.parametrize(("lanes", "memory"), [(1, 3), (2, 0), (2, 4), (3, 20)])
def test_it_measures_as_the_whole_matrix_does(lanes: int, memory: int) -> None:
    mixed, rng = drawn(lanes, memory), np.random.default_rng(0)
    series = rng.integers(0, 1000, (STEPS, lanes))
    np.testing.assert_array_equal(run(mixed, series).ravel(), whole(mixed) @ series.ravel())


def test_counts_and_weights_beyond_64_bits_do_not_wrap() -> None:
    mixed = drawn(2, 2, 1 << 40)
    series = np.full((STEPS, 2), 1 << 40, dtype=np.int64)
    measured = run(mixed, series)
    np.testing.assert_array_equal(measured.ravel(), whole(mixed) @ series.astype(object).ravel())
    assert max(map(abs, measured.ravel().tolist())) > 1 << 63
