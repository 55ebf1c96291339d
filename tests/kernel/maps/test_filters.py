"""Filters: convolution in exact integers, of one series and of many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpwindows.kernel.maps.filters import convolve_exactly
from tests.search import examples


@examples(60)
@given(
    taps=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=9),
    series=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9),
)
def test_convolution_is_exact_in_python_integers(taps: list[int], series: list[int]) -> None:
    wanted = [sum(taps[j] * series[t - j] for j in range(min(t + 1, len(taps)))) for t in range(len(series))]
    for exact in (np.array(series, dtype=np.int64), np.array(series, dtype=object)):
        found = convolve_exactly(np.array(taps, dtype=object), exact)
        assert [int(value) for value in found] == wanted


@pytest.mark.parametrize("shape", [(5, 0), (0, 3), (4, 7), (4, 3, 5), (70000, 2)])
@pytest.mark.parametrize("at_once", [1, 9, 1 << 15])
def test_many_series_are_filtered_like_each_alone(
    shape: tuple[int, ...], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpwindows.kernel.maps.filters._AT_ONCE", at_once)
    exact = np.random.default_rng(2).integers(-9, 9, shape)
    for values in (exact, exact.T.copy().T):
        taps = np.array((5, -2, 0, -1), dtype=object)
        found = convolve_exactly(taps, values)
        assert found.shape == shape
        for lane in np.ndindex(shape[1:] if shape[0] else (0,)):
            assert (found[:, *lane] == np.convolve((5, -2, 0, -1), values[:, *lane])[: shape[0]]).all()


def test_zeros_are_widened_too() -> None:
    """A failure would tell an empty log from others."""
    assert convolve_exactly(np.array([1 << 63], dtype=object), np.zeros(2, dtype=np.int64)).tolist() == [0, 0]
