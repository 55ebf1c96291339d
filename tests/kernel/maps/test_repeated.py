"""One map for several stretches: each is measured, and read back, by itself."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows import reading
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.maps.repeated import Repeated
from dpwindows.kernel.maps.tent_tree import TentTree


@pytest.mark.parametrize("lengths", [(4,), (4, 4), (2, 4, 1), (1, 3, 4, 2)], ids=str)
@pytest.mark.parametrize("largest", [9, 2**62])
def test_stretches_are_measured_one_by_one(lengths: tuple[int, ...], largest: int) -> None:
    """Those that end early have the first rows of a causal map, or go on with their last value."""
    exact = np.random.default_rng(3).integers(-largest, largest, sum(lengths), endpoint=True)
    stretches = np.split(exact, np.cumsum(lengths)[:-1])
    causal, tents = Filter((9, -3, -2, -1)), TentTree(4, (2,), 4)
    by_causal = [value for one in stretches for value in causal.encode(one).tolist()]
    longest = [np.pad(one, (0, 4 - len(one)), mode="edge") for one in stretches]
    by_tents = [value for one in longest for value in tents.encode(one).tolist()]
    for made, wanted in ((Repeated(causal, lengths, True), by_causal), (Repeated(tents, lengths, False), by_tents)):
        assert made.encode(exact).tolist() == wanted
        assert made.rows(sum(lengths)) == len(wanted)


def test_a_series_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="6 positions was applied to a series of 7"):
        Repeated(Identity(), (2, 4), True).rows(7)


def test_variances_are_those_of_the_noise_that_is_left() -> None:
    """The diagonal of the decoder times its transpose, from the decoder itself."""
    for causal, made in ((True, Filter((9, -3, -2, -1))), (False, TentTree(5, (2,), 4))):
        found, length = Repeated(made, (2, 5, 1), causal), 8
        reader = reading.series_reader(found, length)
        decoder = reader.decode(np.eye(found.rows(length)))
        assert decoder.shape == (length, found.rows(length))
        assert np.allclose((decoder**2).sum(axis=1), reader.variance())
        fourth = reader.fourth_moment()
        assert fourth is not None
        assert np.allclose((decoder**4).sum(axis=1), fourth)
        encoder = found.encode(np.eye(length, dtype=np.int64))
        assert np.allclose(decoder @ encoder.astype(float), np.eye(length))
