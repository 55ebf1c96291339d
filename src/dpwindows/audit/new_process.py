"""What a new process runs to draw noise on zeros as a stream would, and to print it.

It is run as a file and not as a module, so that it loads the kernel without all that the audit needs.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.privacy import ZCDP, EventLevel, ItemAddRemove, PureDP
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN, JOINT, NORMS
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.measure import Measurement, measure, measure_step
from dpwindows.kernel.problem import Problem


@dataclass(frozen=True)
class _Nothing:
    """The answers of a log without events."""

    steps: int

    def cumulative(self, k: int) -> NDArray[np.int64]:
        return np.zeros(self.steps, dtype=np.int64)

    def rolling(self, k: int, length: int) -> NDArray[np.int64]:
        return np.zeros(self.steps, dtype=np.int64)

    def windows(self, k: int, first_start: int, starts: int, first_end: int, ends: int) -> NDArray[np.int64]:
        return np.zeros((starts, ends), dtype=np.int64)


def print_draws(law_name: str, scale: str, count: str) -> None:
    """Draw `count` numbers of a law at a scale, which is given in hexadecimal, and print them."""
    law = next(known for known in NORMS if known == law_name)
    numbers, width = int(count), float.fromhex(scale)
    unit = ItemAddRemove() if law in JOINT else EventLevel()
    problem = Problem(Rolling(1), numbers, (1,), unit, law, width)
    measurement = Measurement(Design(problem, Series(Identity()), "none"), law, width)
    # Whatever one unit costs at this scale: nothing real is measured.
    budget = ZCDP(1 / width**2) if law == GAUSSIAN else PureDP(2 / width)
    nothing = _Nothing(numbers)
    (noisy,) = (
        measure([measurement], budget, nothing)
        if law in JOINT
        else measure_step([measurement], budget, [{1: nothing.cumulative(1)}])
    )
    print(*noisy[1].tolist())  # noqa: T201


if __name__ == "__main__":
    print_draws(*sys.argv[1:])
