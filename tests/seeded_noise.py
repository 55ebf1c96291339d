"""Noise of the same laws as the kernel's, from a generator that a test seeds: what is made of it is the same each time.

For tests of what is done with noise (decoding, errors, intervals, audits). The sampler itself is tested as it is, in
`tests/kernel/test_measure.py` and `tests/kernel/test_joint_noise.py`.
"""

from __future__ import annotations

import random
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.kernel import joint_noise
from dpwindows.kernel import measure as kernel
from dpwindows.kernel.accounting import GAUSSIAN, Law

# Up to this scale a discrete Gaussian is drawn from its table; a rounded one is wider by a part in 12 * 2^20 beyond.
_TABLE = 1 << 10
_FURTHEST = 2.0**62


def install(patch: pytest.MonkeyPatch, seed: int = 0) -> None:
    """Draw from one generator for independent numbers, and from one for vectors, until the patch is undone."""
    rng, bits = np.random.default_rng(seed), random.Random(seed)
    patch.setitem(kernel._SAMPLERS, kernel.EXACT, lambda law, scale, count: partial(drawn, rng, law, scale))
    patch.setattr(joint_noise, "secrets", SimpleNamespace(randbits=bits.getrandbits, randbelow=bits.randrange))


def drawn(rng: np.random.Generator, law: Law, scale: float, many: int) -> NDArray[np.int64]:
    """Noise of `discrete Laplace` or `discrete Gaussian`."""
    if law != GAUSSIAN:
        # A difference of two geometric numbers, each an exponential one without its fraction.
        above, below = np.floor(np.minimum(scale * rng.standard_exponential((2, many)), _FURTHEST)).astype(np.int64)
        return np.asarray(above - below)
    if scale > _TABLE:
        return np.rint(np.clip(scale * rng.standard_normal(many), -_FURTHEST, _FURTHEST)).astype(np.int64)
    values = np.arange(-int(12 * scale) - 2, int(12 * scale) + 3)
    return rng.choice(values, many, p=_shares(values, scale))


def _shares(values: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    weights = np.exp(-((values / scale) ** 2) / 2)
    return np.asarray(weights / weights.sum())
