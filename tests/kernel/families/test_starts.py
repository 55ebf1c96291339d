"""One map for every start, and every window by itself: bounds against the truth."""

from __future__ import annotations

from dataclasses import replace

from dpwindows.ask.queries import AnyWindow, Rolling
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.direct import design as direct_design_or_none
from tests.kernel.made_up import EVENT, ITEM
from tests.single_item import all_logs, differences


def direct_design(problem: Problem) -> Design:
    found = direct_design_or_none(problem)
    assert found is not None
    return found


def test_direct_measurement_touches_exactly_what_it_says() -> None:
    """The step met by most windows, counted one by one, also where enumeration of logs is out of reach."""
    for steps, longest in [(1, 1), (7, 3), (8, 8), (12, 5), (30, 7), (31, 30)]:
        problem = Problem(AnyWindow(longest), steps, (1,), EVENT, LAPLACE, 1.0)
        met = [
            sum(a <= s <= b for a in range(1, steps + 1) for b in range(a, min(steps, a + longest - 1) + 1))
            for s in range(1, steps + 1)
        ]
        assert direct_design(problem).sensitivity == max(met)
        # Gaussian noise: the squared norm of the same cells, each a count in units of the lattice.
        fine = replace(problem, law=GAUSSIAN, bits=3)
        assert direct_design(fine).sensitivity == 64 * max(met)
    several = Problem(Rolling(3), 8, (1, 2, 3), EVENT, LAPLACE, 1.0)
    assert direct_design(several).sensitivity == truth_of_rolling_direct(8, 3)
    assert isinstance(direct_design(several).shape, Series)
    assert direct_design(replace(several, window=Rolling(1), unit=ITEM)).sensitivity == 24
    assert Identity(4).rows(7) == 7


def truth_of_rolling_direct(steps: int, length: int) -> int:
    pieces = differences(all_logs(steps, 1), Rolling(length), (1,), EVENT)
    return max(int(abs(piece).sum(axis=(1, 2)).max()) for piece in pieces)
