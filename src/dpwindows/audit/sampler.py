"""The sampler by itself, at one small scale for each law.

An exact sampler divides rationals. Where scales are large so are the numerators and denominators, and an error of one
in them changes no probability that could be seen; where scales are small it does. OpenDP before 0.14.2 is such a case
(its issue 2638): at these scales every third absolute value came 13 % too often, while at the scales of most plans
nothing showed. Its discrete Gaussian noise of scale s is made from Laplace noise of scale `floor(s) + 1`, so the
scale at which that shows most is lower there.

With `DRAWS` numbers the tests find that law with probability above 0.999.
"""

from __future__ import annotations

import numpy as np

from dpwindows.audit import joint_noise, noise_tests
from dpwindows.audit.discrete_laws import NoiseLaw
from dpwindows.kernel import measure as kernel
from dpwindows.kernel.accounting import CUBE, GAUSSIAN, JOINT, LAPLACE, RANGE, Law

DRAWS = 50_000
SMALL: dict[Law, float] = {LAPLACE: 3.0, GAUSSIAN: 2.5, CUBE: 3.0, RANGE: 3.0}
# Numbers of a vector of a joint law.
_TOGETHER = 10


def small_scale_chances(law: Law, rng: np.random.Generator) -> dict[str, float]:
    """What the tests of one law say of numbers drawn at its small scale: bounds on the chance of looking as bad.

    Args:
        law: of the noise.
        rng: makes vectors of a joint law into independent numbers.
    """
    stated, found = NoiseLaw(law, SMALL[law]), dict[str, float]()
    vectors = DRAWS // _TOGETHER
    noise = kernel.draw_noise(law, stated.scale, DRAWS, lambda drawn: None, vectors)
    if law in JOINT:
        apart = noise.reshape(vectors, _TOGETHER)
        found["radius"] = joint_noise.radius_chance(stated, apart)
        noise, stated = joint_noise.independent(stated, apart, rng), joint_noise.INDEPENDENT
    return found | noise_tests.law_chances(stated, noise)
