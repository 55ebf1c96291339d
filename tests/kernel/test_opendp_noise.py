"""OpenDP's samplers as the reference of the kernel's own: the same laws. What holds of both is in `test_measure.py`."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.audit import noise_tests
from dpwindows.errors import InputError
from dpwindows.kernel import noise, opendp_noise
from dpwindows.kernel.accounting import CUBE, GAUSSIAN, LAPLACE, RANGE, Law

LAWS: tuple[Law, ...] = (GAUSSIAN, LAPLACE)
DRAWS = 10_000


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.4, 2.5, 33.3, 1e6])
def test_both_samplers_draw_the_same_law(law: Law, scale: float) -> None:
    """Honest noise is refused in one of 10^9 runs; of a scale 30 % off it is not taken for the same."""

    def chance(one: np.ndarray, other: np.ndarray) -> float:
        """Of the places that the numbers of the one have in the order of both."""
        both = np.concatenate([one, other])
        cuts = np.unique(np.quantile(both, np.arange(1, 32) / 32, method="lower"))
        shares = np.bincount(np.searchsorted(cuts, both), minlength=len(cuts) + 1) / len(both)
        ends = np.cumsum(shares)
        return noise_tests.shape_chance((ends - shares / 2)[np.searchsorted(cuts, one)], ends[:-1])

    theirs = opendp_noise.sampler(law, scale, DRAWS)(DRAWS)
    assert theirs.dtype == np.int64
    # Ours are so many that their frequencies are as good as the law's.
    assert chance(theirs, noise.sampler(law, scale, 40 * DRAWS)(40 * DRAWS)) > 1e-9
    wrong = noise.sampler(law, scale * 1.3, 40 * DRAWS)(40 * DRAWS)
    assert chance(theirs, wrong) < 1e-9


def test_of_no_numbers_there_are_none() -> None:
    assert opendp_noise.sampler(LAPLACE, 2.0, 0)(0).tolist() == []


@pytest.mark.parametrize("law", [CUBE, RANGE, "discrete Student"])
def test_a_law_that_is_none_of_the_two_is_refused(law: Law) -> None:
    with pytest.raises(ValueError, match="Gaussian or Laplace, not discrete"):
        opendp_noise.sampler(law, 2.0, 1)


def test_whoever_asks_for_it_in_vain_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    opendp_noise.require_installed()
    monkeypatch.setattr(opendp_noise, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'dpwindows\[opendp\]'"):
        opendp_noise.require_installed()
