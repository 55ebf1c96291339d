"""The lower bound on what joint noise gives away against its true loss, summed over outcomes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpwindows.audit.losses import Moved, least_joint_delta, norms, pure_epsilon
from dpwindows.kernel.accounting import CUBE, RANGE, Law

# Outcomes of two numbers, so far out that hardly any chance is beyond.
BOX = np.array(list(itertools.product(range(-40, 41), repeat=2)))


def true_delta(law: Law, scale: float, change: tuple[int, int], epsilon: float) -> float:
    """`sum max(0, P(z) - e^epsilon P(z - change))`, P(z) as likely as the norm of z says."""
    one, other = (np.exp(-norms(law, outcomes, 1).astype(float) / scale) for outcomes in (BOX, BOX - change))
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum() / one.sum())


@pytest.mark.parametrize("law", [CUBE, RANGE])
@pytest.mark.parametrize("change", [(1, 1), (1, 0), (1, -1), (2, 1)])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_it_is_below_the_true_one(law: Law, change: tuple[int, int], scale: float) -> None:
    moved = [Moved(law, scale, change)]
    for share in (0.2, 0.6, 0.9):
        epsilon = share * float(pure_epsilon(moved))
        low = least_joint_delta(moved, Fraction(epsilon))
        assert 0 < low <= true_delta(law, scale, change, epsilon) < 15 * low


def test_vectors_that_are_drawn_apart_are_all_at_their_worst_together() -> None:
    one, both = Moved(CUBE, 1.0, (1, 1)), Moved(CUBE, 1.0, (1, 1, 1, 1), vectors=2)
    alone, together = (least_joint_delta([part], Fraction(0)) for part in (one, both))
    assert alone == pytest.approx((1 - math.exp(-1)) / 6)
    assert together == pytest.approx((1 - math.exp(-2)) / 36)
