r"""Tests of noise that is drawn for a whole vector at once, for the audit of the noise.

Given its norm, a vector of a joint law is uniform among all vectors of that norm. So the norm is tested by itself, and
the rest is made into independent numbers, apart from the way the kernel draws them (`dpwindows.kernel.joint_noise`):

- *radius*: `P(z) ~ a^N(z)` is an exponential family in the norm N. With KL the relative entropy of the member whose
  mean norm is t to the stated one, Chernoff's bound for the mean norm of m vectors is `e^{-m KL}`, to either side;
- *numbers*: a radius is drawn for z as it would have been: of the range law `r = N + g + g'` with g, g' geometric, and
  u_0 uniform among the places that hold z; of the cube law `r = N + g`. If the law is the stated one, z_i + u_0 or z_i
  are then independent and uniform up to r. With a uniform number for the fraction they are uniform on [0, 1], and
  through the inverse distribution function independent Laplace numbers, for which there are tests.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from dpwindows.audit.discrete_laws import NoiseLaw
from dpwindows.audit.neighbours import Ints
from dpwindows.kernel.accounting import LAPLACE, RANGE
from dpwindows.reading.noise_moments import log_normaliser

# What numbers are made into.
INDEPENDENT = NoiseLaw(LAPLACE, 1000.0)
# How many scales to either side of the stated one are members of the family to compare with.
_FACTOR = 1e3


def radius_chance(law: NoiseLaw, vectors: Ints) -> float:
    """A bound on the probability of a mean norm as far from what the stated scale gives, to either side.

    Args:
        law: a joint law with its scale.
        vectors: shape (vectors, numbers).
    """
    size, mean = vectors.shape[1], float(_norms(law, vectors).mean())

    def entropy(log_factor: float) -> float:
        """The bound for the member of this scale where its mean norm is the one seen, and less for all others."""
        rate = 1 / law.scale - math.exp(-log_factor) / law.scale
        ends = log_normaliser(law.law, law.scale, size) - log_normaliser(
            law.law, law.scale * math.exp(log_factor), size
        )
        return rate * mean + ends

    reach = math.log(_FACTOR)
    found = scipy.optimize.minimize_scalar(lambda at: -entropy(at), bounds=(-reach, reach), method="bounded")
    return min(1.0, 2 * math.exp(min(0.0, len(vectors) * float(found.fun))))


def independent(law: NoiseLaw, vectors: Ints, rng: np.random.Generator) -> Ints:
    """Independent numbers of the law `INDEPENDENT`, made of vectors of a joint law: shape (vectors, numbers)."""
    found, norm, ratio = vectors.astype(np.float64), _norms(law, vectors), -math.expm1(-1 / law.scale)
    if law.law == RANGE:
        beyond = rng.negative_binomial(2, ratio, size=len(vectors))
        held = np.minimum(found.min(axis=1), 0)
        first = np.floor(rng.random(len(vectors)) * (beyond + 1)) - held
        found, count = found + first[:, None], norm + beyond + 1
    else:
        beyond = rng.negative_binomial(1, ratio, size=len(vectors))
        found, count = found + (norm + beyond)[:, None], 2 * (norm + beyond) + 1
    share = (found + rng.random(found.shape)) / count[:, None]
    return _quantile(share)


def _norms(law: NoiseLaw, vectors: Ints) -> np.ndarray:
    highest, lowest = np.maximum(vectors.max(axis=1), 0), np.minimum(vectors.min(axis=1), 0)
    return np.asarray(highest - lowest if law.law == RANGE else np.maximum(highest, -lowest), dtype=np.float64)


def _quantile(share: np.ndarray) -> Ints:
    """The least integer m with `P(z <= m)` at least the share, under the law `INDEPENDENT`."""
    scale = INDEPENDENT.scale
    whole = 1 + math.exp(-1 / scale)
    with np.errstate(divide="ignore"):
        below = np.ceil(scale * np.log(share * whole))
        above = np.ceil(-scale * np.log((1 - share) * whole)) - 1
    return np.asarray(np.where(share * whole <= math.exp(-1 / scale), below, np.maximum(above, 0)), dtype=np.int64)
