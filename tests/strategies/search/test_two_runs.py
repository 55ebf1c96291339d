"""What is found to be the dearest change within a period, against the certificate that tries them all."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.kernel.families.changes_of_two_counts import Held, two_runs_bound
from dpwindows.kernel.families.signed_patterns import SignedLags
from dpwindows.strategies.optimal_filter import TwoRuns
from dpwindows.strategies.search.spectrum import cost_of

CASES = [(2, 2, 3), (3, 2, 4), (3, 4, 6), (5, 5, 9), (5, 5, 6), (7, 3, 9), (9, 10, 18), (12, 4, 15)]


@pytest.mark.parametrize(("length", "span", "places"), CASES)
def test_the_dearest_change_is_the_one_that_is_certified(length: int, span: int, places: int) -> None:
    changes = TwoRuns(length, span, places)
    signs = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        # Smooth and rough ones, of either sign: each kind of change is the dearest of some.
        lags = [100, *(int(lag) for lag in rng.integers(-60, 60, places - 1) * 0.8 ** np.arange(places - 1))]
        found = changes(np.array(lags, dtype=np.float64))
        costs = [float(cost_of(column) @ lags) for column in found]
        assert costs == sorted(costs)
        assert costs[-1] == two_runs_bound(SignedLags(tuple(lags), 0), Held(span, length, places))
        signs.add(bool((found[-1] < 0).any()))
    assert signs == {False, True}


def test_it_begins_with_single_runs() -> None:
    first = TwoRuns(7, 4, 10).first
    assert [int(column[0]) for column in first] == list(range(1, 11))
    assert all((np.diff(column[: int(column[0])]) == -1).all() for column in first)
