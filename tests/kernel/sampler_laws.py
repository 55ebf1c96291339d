"""The law of the sampler by itself, and what new processes draw: what the noise of a plan does not show.

An exact sampler divides rationals. Where scales are large so are the numerators and denominators, and an error of one
in them changes no probability that could be seen; where scales are small it does. OpenDP before 0.14.2 is such a case
(its issue 2638): at these scales every third absolute value came 13 % too often, while at the scales of most plans
nothing showed. Its discrete Gaussian noise of scale s is made from Laplace noise of scale `floor(s) + 1`, so the
scale at which that shows most is lower there. With `SMALL_DRAWS` numbers it is found with probability above 0.999.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpwindows.audit import noise_tests
from dpwindows.kernel import measure as kernel
from dpwindows.kernel.accounting import CUBE, GAUSSIAN, JOINT, LAPLACE, RANGE, Law

SMALL_DRAWS = 50_000
SMALL: dict[Law, float] = {LAPLACE: 3.0, GAUSSIAN: 2.5, CUBE: 3.0, RANGE: 3.0}
# Numbers of a vector of a joint law.
_TOGETHER = 10
# Absolute values that are compared one by one.
_EACH = 12
# On a busy machine loading the libraries alone has taken two minutes.
_SECONDS = 600


def law_chances(law: Law, scale: float, noise: NDArray[np.int64], rng: np.random.Generator) -> dict[str, float]:
    """What the tests of a law say of integers; of small ones, each by itself."""
    shares = noise_tests.uniforms(law, scale, noise, rng)
    chances = noise_tests.law_chances(law, shares)
    if law in JOINT:
        return chances | {"radius": noise_tests.radius_chance(law, scale, noise)}
    cells = noise_tests.distribution(law, scale, np.arange(-_EACH - 1, _EACH + 1))
    return chances | {"cells": noise_tests.shape_chance(shares, cells)}


def small_scale_chances(law: Law, rng: np.random.Generator) -> dict[str, float]:
    """What the tests of one law say of numbers drawn at its small scale."""
    vectors = SMALL_DRAWS // _TOGETHER
    noise = kernel.draw_noise(law, SMALL[law], SMALL_DRAWS, lambda drawn: None, vectors)
    return law_chances(law, SMALL[law], noise.reshape(vectors, _TOGETHER), rng)


_PROGRAM = """
import sys
from dpwindows.kernel.accounting import NORMS
from dpwindows.kernel.measure import draw_noise
law = next(known for known in NORMS if known == sys.argv[1])
print(*draw_noise(law, float.fromhex(sys.argv[2]), int(sys.argv[3])).tolist())
"""


def draws_of_processes(law: Law, scale: float, count: int, *, processes: int) -> list[NDArray[np.int64]]:
    """The first `count` noise values that each of some new processes draws."""
    command = [sys.executable, "-c", _PROGRAM, law, scale.hex(), str(count)]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(kernel.__file__).parents[2])
        for _ in range(processes)
    ]
    try:
        return [np.array(one.communicate(timeout=_SECONDS)[0].split(), dtype=np.int64) for one in started]
    finally:
        for process in started:
            process.kill()
            process.communicate()
