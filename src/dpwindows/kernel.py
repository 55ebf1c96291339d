"""The trusted kernel: exact integers in, noisy integers out, within a proved budget.

Everything a privacy proof of a release rests on is reached from `measure`, and is little:

1. `recency` and `answers` give the exact integer answers of the log;
2. a design's `encode` multiplies them by an integer matrix, in arithmetic that cannot wrap (`integer_maps.widen`);
3. its `sensitivity` is a proved bound computed from the same integers (`sensitivity`);
4. noise is drawn by OpenDP's exact sampler on the integers, never from floating-point or seedable sources;
5. before any noise is drawn, `accounting.certify` proves the cost of all of it within the budget.

What is returned is `M x + z`. Everything done with it afterwards is post-processing and free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.accounting import GAUSSIAN, Cost, Law, certify
from dpwindows.integer_maps import widen
from dpwindows.privacy import Budget
from dpwindows.strategies.design import Design
from dpwindows.windows import Answers

# Noise is drawn in pieces of this many numbers, so that progress shows and memory stays flat.
_PIECE = 1 << 16


@dataclass(frozen=True)
class Measurement:
    """One design with the noise it is given: measured once for each of its thresholds."""

    design: Design
    law: Law
    scale: float

    @property
    def cost(self) -> Cost:
        """What the measurement is charged."""
        rows = self.design.rows * len(self.design.problem.thresholds)
        return Cost(self.law, self.design.sensitivity, self.scale, rows)


def measure(
    measurements: Sequence[Measurement],
    budget: Budget,
    answers: Answers,
    progress: Callable[[int], None] = lambda drawn: None,
) -> list[dict[int, NDArray[Any]]]:
    """Measure exact answers under noise: for each measurement, `M x + z` by threshold, as exact integers.

    Guarantee: the joint result satisfies `budget` for the unit of privacy of the designs' problems, which must be
    one and the same. Each call draws fresh noise and spends the budget again.

    Args:
        measurements: what to measure; their costs must be proved within `budget`.
        budget: the whole budget of this call.
        answers: the exact answers of one log.
        progress: called with the count of noise values drawn since the last call.

    Raises:
        BudgetExceededError: the costs cannot be proved within the budget; nothing was measured.
        ValueError: the designs protect different units, or answer for another horizon.
    """
    if len({measurement.design.problem.unit for measurement in measurements}) != 1:
        raise ValueError("all measurements of one call must protect the same unit")
    certify(budget, [measurement.cost for measurement in measurements])
    return [_measure_one(measurement, answers, progress) for measurement in measurements]


def _measure_one(
    measurement: Measurement, answers: Answers, progress: Callable[[int], None]
) -> dict[int, NDArray[Any]]:
    noisy = {}
    for k in measurement.design.problem.thresholds:
        exact = measurement.design.encode(answers, k)
        if exact.shape != (measurement.design.rows,):
            raise ValueError(f"encoded {exact.shape} numbers where the noise is charged for {measurement.design.rows}")
        noise = draw_noise(measurement.law, measurement.scale, len(exact), progress)
        # OpenDP's values lie within 63 bits; the sum is formed in Python integers where it could leave them.
        noisy[k] = widen(exact, 2) + widen(noise, 2)
    return noisy


def draw_noise(
    law: Law, scale: float, count: int, progress: Callable[[int], None] = lambda drawn: None
) -> NDArray[np.int64]:
    """Independent exact discrete noise from OpenDP, shape (count,).

    Drawn as OpenDP's mechanism on zeros; adding integers to it equals the mechanism on those integers. OpenDP clamps
    at 2^63, which is post-processing of the exact noise, and beyond reach for the scales a plan allows.
    """
    sampler = _sampler(law, scale)
    pieces = []
    for start in range(0, count, _PIECE):
        piece = np.array(sampler([0] * min(_PIECE, count - start)), dtype=np.int64)
        pieces.append(piece)
        progress(len(piece))
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)


@cache
def _sampler(law: Law, scale: float) -> Any:
    # Imported here: loading OpenDP takes most of a second, and planning does not need it.
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if law == GAUSSIAN:
        return dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=scale)
    return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
