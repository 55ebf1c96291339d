"""Filters that mix series read back, against the inverse of the whole matrix that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.reading.matrix_filters import MatrixFilterReader
from tests.kernel.matrix_filters import STEPS, drawn_filter, run, whole


@pytest.mark.parametrize(("lanes", "memory"), [(1, 3), (2, 0), (2, 4), (3, 20)])
def test_it_decodes_as_the_whole_matrix_does(lanes: int, memory: int) -> None:
    mixed, rng = drawn_filter(lanes, memory), np.random.default_rng(0)
    reader = MatrixFilterReader(mixed)
    series, noise = rng.integers(0, 1000, (STEPS, lanes)), rng.normal(size=(STEPS, lanes))
    seen, decoded = reader.fresh(), []
    for step, measured in enumerate(run(mixed, series).astype(np.float64) + noise, 1):
        estimate, seen = reader.decode_step(step, measured, seen)
        decoded.append(estimate)
    inverse = np.linalg.inv(whole(mixed).astype(np.float64))
    np.testing.assert_allclose(np.ravel(decoded), series.ravel() + inverse @ noise.ravel(), rtol=1e-9)
    for power, found in ((power, reader.moment(STEPS, power)) for power in (2, 4)):
        np.testing.assert_allclose(found.ravel(), (inverse**power).sum(axis=1), rtol=1e-9)
    weights = rng.normal(size=(STEPS, lanes))
    np.testing.assert_allclose(reader.transposed(weights).ravel(), inverse.T @ weights.ravel(), rtol=1e-8, atol=1e-12)


def test_moments_settle_and_stay() -> None:
    reader = MatrixFilterReader(drawn_filter(2, 3))
    long = reader.moment(1 << 16, 2)
    assert long.shape == (1 << 16, 2)
    np.testing.assert_allclose(long[-1], reader.moment(4096, 2)[-1], rtol=1e-12)
