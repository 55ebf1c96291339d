"""What a new process runs to draw noise on zeros as a stream would, and to print it.

It is run as a file and not as a module, so that it loads the kernel without all that the audit needs.
"""

from __future__ import annotations

import sys

import numpy as np

from dpwindows.ask.privacy import ZCDP, EventLevel, PureDP
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.measure import Measurement, measure_step
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.series import SeriesDesign


def print_draws(law_name: str, scale: str, count: str) -> None:
    """Draw `count` numbers of a law at a scale, which is given in hexadecimal, and print them."""
    law = GAUSSIAN if law_name == GAUSSIAN else LAPLACE
    numbers, width = int(count), float.fromhex(scale)
    problem = Problem(Rolling(1), numbers, (1,), EventLevel(), law, width)
    measurement = Measurement(SeriesDesign(problem, "none", map=Identity(numbers)), law, width)
    # Whatever one unit costs at this scale: nothing real is measured.
    budget = ZCDP(1 / width**2) if law == GAUSSIAN else PureDP(2 / width)
    (noisy,) = measure_step([measurement], budget, [{1: np.zeros(numbers, dtype=np.int64)}])
    print(*noisy[1].tolist())  # noqa: T201


if __name__ == "__main__":
    print_draws(*sys.argv[1:])
